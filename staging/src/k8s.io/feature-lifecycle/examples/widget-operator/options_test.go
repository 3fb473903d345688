/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
)

// nowhere returns the configuration of a cluster that no test calls.
func nowhere() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }

// TestDeclarationsFitTheGates: what is declared is valid, and all gates are declared.
func TestDeclarationsFitTheGates(t *testing.T) {
	if err := lifecycle.Validate(declared(defaultNamespace)); err != nil {
		t.Error(err)
	}
	want, got := map[string]bool{}, map[string]bool{}
	for name := range gates {
		want[string(name)] = true
	}
	for _, feature := range declared(defaultNamespace) {
		got[string(feature.Name)] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the declared features are others than the gates (-gates +declared):\n%s", diff)
	}
	gate := gateOf(t)
	for name, specs := range gates {
		if gate.Enabled(name) != specs[0].Default {
			t.Errorf("%s is %t in version %s, want its default %t", name, gate.Enabled(name), gate.EmulationVersion(), specs[0].Default)
		}
	}
}

// TestCommandsOfTheReadme: what README.md has people run is a command line that is taken.
func TestCommandsOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^GOWORK=off go run \.(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) == 0 {
		t.Fatal("README.md does not say how to run the program")
	}
	for _, line := range lines {
		o, err := parse(strings.Fields(line[1]))
		if err != nil {
			t.Errorf("go run .%s: %v", line[1], err)
			continue
		}
		for name := range gates {
			if !slices.Contains(o.control.Dynamic, string(name)) {
				t.Errorf("go run .%s: %s is not dynamic, so kubectl feature enable is refused", line[1], name)
			}
		}
	}
}

// TestFlags: what the authors permit can be asked for; anything else is refused with what
// to do, before anything runs.
func TestFlags(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing said":                     {},
		"dynamic as its author permits":    {args: []string{"--dynamic-features=WidgetColor,WidgetUppercase"}},
		"central, which is less":           {args: []string{"--central-features=WidgetColor"}},
		"set by hand":                      {args: []string{"--feature-gates=WidgetColor=true"}},
		"set by hand and dynamic":          {args: []string{"--dynamic-features=WidgetColor", "--feature-gates=WidgetColor=true"}, want: "remove it there and set spec.enabled of Feature WidgetColor in widgets"},
		"a gate that the operator has not": {args: []string{"--dynamic-features=GadgetColors"}, want: `no feature gate "GadgetColors" is known at the emulation version 0.1`},
		"such a gate set by hand":          {args: []string{"--feature-gates=GadgetColors=true"}, want: "unrecognized feature gate: GadgetColors"},
		"the namespace of Kubernetes":      {args: []string{"--namespace=kube-system"}, want: "use the operator's own"},
		"a name that no report can have":   {args: []string{"--instance=Replica_A"}, want: `Instance "Replica_A"`},
		"a word too many":                  {args: []string{"run"}, want: "takes flags only, and no run"},
		"a flag that there is not":         {args: []string{"--colors"}, want: "unknown flag: --colors"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("POD_NAME", "replica-a")
			o, err := parse(test.args)
			if err == nil {
				_, err = o.replica(nowhere())
			}
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// TestNameOfAReplica: a flag, the name of the pod, or that of the host.
func TestNameOfAReplica(t *testing.T) {
	t.Setenv("POD_NAME", "widget-operator-x")
	for arg, want := range map[string]string{"--instance=replica-b": "replica-b", "--instance=": "widget-operator-x"} {
		if o, err := parse([]string{arg}); err != nil || o.instance != want {
			t.Errorf("%s: %v, %v; want %s", arg, o, err, want)
		}
	}
	t.Setenv("POD_NAME", "")
	if o, err := parse(nil); err != nil || o.instance == "" {
		t.Errorf("without POD_NAME: %v, %v", o, err)
	}
}

// TestOwner: what replicas write goes with the service account, unless a flag says that
// they are none.
func TestOwner(t *testing.T) {
	for _, test := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--owned-by-service-account=false"}, false},
	} {
		o, err := parse(append(test.args, "--instance=replica-a"))
		if err != nil {
			t.Fatal(err)
		}
		if o.ownedByServiceAccount != test.want {
			t.Errorf("%q: owned by the service account is %t, want %t", test.args, o.ownedByServiceAccount, test.want)
		}
	}
}

// TestPartsFitTogether: a manager takes everything that run adds to it.
func TestPartsFitTogether(t *testing.T) {
	for range 2 { // as cluster tests have several replicas in one process
		o, err := parse([]string{"--instance=replica-a", "--health-probe-bind-address=0", "--dynamic-features=WidgetColor"})
		if err != nil {
			t.Fatal(err)
		}
		if control := o.control.Of(string(WidgetColor)); control != v1alpha1.ControlDynamic {
			t.Errorf("WidgetColor is %s, want Dynamic", control)
		}
		replica, err := o.replica(nowhere())
		if err != nil {
			t.Fatal(err)
		}
		mgr, err := newManager(nowhere(), o, replica)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(setUp(mgr, o.gate), mgr.Add(replica)); err != nil {
			t.Error(err)
		}
	}
}

// TestOtherNamespacesNotRead: the role in rbac.yaml permits no more, and a watch
// of all namespaces would keep the reconciler waiting for ever.
func TestOtherNamespacesNotRead(t *testing.T) {
	// It says that there are ConfigMaps, which have namespaces, and no more is asked.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch r.URL.Path {
		case "/api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
		case "/apis":
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		case "/api/v1":
			answer = metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
				APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}},
			}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	o, err := parse([]string{"--instance=replica-a", "--namespace=mine", "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	if err != nil {
		t.Fatal(err)
	}
	replica, err := o.replica(config)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := newManager(config, o, replica)
	if err != nil {
		t.Fatal(err)
	}
	// The cache has not started, and can say at once where it would look.
	var notStarted *cache.ErrCacheNotStarted
	if err := mgr.GetCache().Get(t.Context(), client.ObjectKey{Namespace: "mine", Name: "lamp"}, &corev1.ConfigMap{}); !errors.As(err, &notStarted) {
		t.Errorf("a ConfigMap of its own namespace: %v, want that the cache has not started", err)
	}
	if err := mgr.GetCache().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "lamp"}, &corev1.ConfigMap{}); err == nil || !strings.Contains(err.Error(), "unknown namespace") {
		t.Errorf("a ConfigMap of another namespace: %v, want that the cache does not look there", err)
	}
}
