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

package reporting

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/agent"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/kubernetes-features/pkg/features"
)

func TestValuesComeFromConfiguredServer(t *testing.T) {
	server := kubeconfig(t, "https://server")
	for name, tc := range map[string]struct {
		component           Component
		args                []string
		reportsAs, instance string
		always              bool
		noServer, later     bool
		// mend: a user has to fix the configuration before the process can
		// start.
		mend bool
	}{
		"a scheduler":                           {component: Component{Name: "kube-scheduler"}, args: []string{"--kubeconfig=" + server}, reportsAs: "kube-scheduler", always: true},
		"a hollow kubelet":                      {component: Component{Name: "kubemark", Node: true}, args: []string{"--kubeconfig=" + server, "--morph=kubelet", "--name=n1"}, reportsAs: "kubelet", instance: "n1"},
		"a hollow proxy":                        {component: Component{Name: "kubemark", Node: true}, args: []string{"--kubeconfig=" + server, "--morph=proxy", "--name=n1"}, reportsAs: "kube-proxy", instance: "n1"},
		"a kubelet alone":                       {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1"}, reportsAs: "kubelet", instance: "n1", noServer: true},
		"outside of a cluster":                  {component: Component{Name: "kube-scheduler"}, reportsAs: "kube-scheduler", always: true, noServer: true},
		"a kubeconfig to come":                  {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1", "--kubeconfig=" + server + ".not"}, reportsAs: "kubelet", instance: "n1", later: true},
		"a bootstrap kubeconfig to come, too":   {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1", "--kubeconfig=" + server + ".not", "--bootstrap-kubeconfig=" + server + ".not"}, reportsAs: "kubelet", instance: "n1", later: true},
		"a kubelet that bootstraps":             {component: Component{Name: "kubelet", Node: true}, args: []string{"--hostname-override=n1", "--kubeconfig=" + server + ".not", "--bootstrap-kubeconfig=" + server}, reportsAs: "kubelet", instance: "n1"},
		"a proxy's, as that of all nodes":       {component: Component{Name: "kube-proxy", Node: true}, args: []string{"--config=" + server + ".not"}, reportsAs: "kube-proxy", later: true},
		"a mistaken --kubeconfig":               {component: Component{Name: "kube-scheduler"}, args: []string{"--kubeconfig=" + server + ".not"}, reportsAs: "kube-scheduler", always: true, mend: true},
		"a kubeconfig that is no YAML":          {component: Component{Name: "kube-controller-manager"}, args: []string{"--kubeconfig=" + write(t, "kubeconfig", "{")}, reportsAs: "kube-controller-manager", always: true, mend: true},
		"a mistaken --config":                   {component: Component{Name: "kube-scheduler"}, args: []string{"--config=/nonexistent"}, reportsAs: "kube-scheduler", always: true, mend: true},
		"a --master that is no address":         {component: Component{Name: "kube-scheduler"}, args: []string{"--master=http://a b"}, reportsAs: "kube-scheduler", always: true, mend: true},
		"a scheduler knows no such thing as it": {component: Component{Name: "kube-scheduler"}, args: []string{"--kubeconfig=" + server + ".not", "--bootstrap-kubeconfig=" + server}, reportsAs: "kube-scheduler", always: true, mend: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &process{component: tc.component, gate: gateWith(t, nil), arguments: parseArguments(tc.args), flags: newValueFlags(tc.component)}
			got, err := p.agentConfig()
			if err != nil {
				t.Fatal(err)
			}
			if r := got.Reporter; r.Component != tc.reportsAs || (tc.instance != "" && r.Instance != tc.instance) || got.Syncer.AlwaysWatch != tc.always || r.Namespace != "kube-system" {
				t.Errorf("unexpected configuration %+v", got)
			}
			_, err = got.Syncer.Connect()
			if errors.Is(err, agent.ErrNoServer) != tc.noServer || errors.Is(err, agent.ErrConfiguration) != tc.mend || (err != nil) != (tc.noServer || tc.later || tc.mend) {
				t.Errorf("connecting: %v", err)
			}
			if _, err := agent.New(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGateOffTakesNoValues holds S6: no client, no file, no waiting.
func TestGateOffTakesNoValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, []byte("not touched"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := newValueFlags(Component{Name: "kubelet", Node: true})
	if err := flags.Parse([]string{"--feature-values-file=" + file}); err != nil {
		t.Fatal(err)
	}
	p := &process{component: Component{Name: "kubelet", Node: true}, gate: gateWith(t, map[string]bool{string(features.FeatureLifecycle): false}),
		arguments: parseArguments([]string{"--kubeconfig=" + file}), flags: flags}
	p.resolve(t.Context())
	if p.agent != nil {
		t.Error("it takes values")
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "not touched" {
		t.Errorf("the file was touched: %q, %v", content, err)
	}
}

// TestEarlyQueriesFindFinalValues: the values are final when the command runs.
func TestEarlyQueriesFindFinalValues(t *testing.T) {
	gate := gateWith(t, nil)
	const feature = "MaxUnavailableStatefulSet"
	gate.BeforeFinal(func() { gate.SetRemote(map[componentfeaturegate.Feature]featuregate.Remote{feature: {Value: false}}) })
	found := true
	c := &cobra.Command{RunE: func(*cobra.Command, []string) error {
		found = gate.Enabled(feature)
		return nil
	}}
	c.SetArgs([]string{})
	finalizeFirst(c, gate)
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if found {
		t.Error("the command found the default")
	}
}

// server answers lists of Features with one central feature, and remembers which
// credentials they came with.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	tokens []string
}

func newServer(t *testing.T) *server {
	s := &server{}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		s.mu.Lock()
		s.tokens = append(s.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		s.mu.Unlock()
		list := v1alpha1.FeatureList{Items: []v1alpha1.Feature{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "MaxUnavailableStatefulSet"}}}}
		list.APIVersion, list.Kind, list.ResourceVersion = "features.k8s.io/v1alpha1", "FeatureList", "1"
		list.Items[0].Status.Control, list.Items[0].Status.Configured = v1alpha1.ControlCentral, &v1alpha1.FeatureConfiguration{Value: false}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(s.Close)
	return s
}

// kubeconfig writes one with a token.
func (s *server) kubeconfig(t *testing.T, file, token string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.URL, InsecureSkipTLSVerify: true}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
}

// TestBootstrappingKubeletTakesValues at its first start, and has its own identity as soon
// as possible.
func TestBootstrappingKubeletTakesValues(t *testing.T) {
	s := newServer(t)
	dir := t.TempDir()
	own, bootstrap := filepath.Join(dir, "kubelet"), filepath.Join(dir, "bootstrap")
	s.kubeconfig(t, bootstrap, "bootstrap")
	flags := newValueFlags(Component{Name: "kubelet", Node: true})
	if err := flags.Parse([]string{"--feature-values-file=", "--feature-values-timeout=1h"}); err != nil {
		t.Fatal(err)
	}
	p := &process{component: Component{Name: "kubelet", Node: true}, gate: gateWith(t, nil), flags: flags,
		arguments: parseArguments([]string{"--kubeconfig=" + own, "--bootstrap-kubeconfig=" + bootstrap, "--hostname-override=n1"})}
	p.gate.BeforeFinal(func() { p.resolve(t.Context()) })
	p.gate.Finalize()
	if p.gate.Enabled("MaxUnavailableStatefulSet") {
		t.Error("the kubelet started without the central value")
	}
	all, err := p.agentConfig()
	if err != nil {
		t.Fatal(err)
	}
	config := all.Syncer
	list := func() {
		t.Helper()
		client, err := config.Connect()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.FeaturesV1alpha1().Features("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list()
	if config.Reconnect() {
		t.Error("it connects again and again")
	}
	s.kubeconfig(t, own, "own")
	if !config.Reconnect() {
		t.Error("it keeps the bootstrap token")
	}
	list()
	if config.Reconnect() {
		t.Error("it keeps connecting")
	}
	if diff := cmp.Diff([]string{"bootstrap", "bootstrap", "own"}, s.tokens); diff != "" {
		t.Errorf("unexpected credentials (-want +got):\n%s", diff)
	}
}

// TestSignalEndsWaitOfKubelet covers a kubelet that has registered its own
// handler.
func TestSignalEndsWaitOfKubelet(t *testing.T) {
	upstreams := make(chan os.Signal, 1)
	signal.Notify(upstreams, syscall.SIGTERM)
	defer signal.Stop(upstreams)
	requested := make(chan struct{}, 100)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requested <- struct{}{}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	flags := newValueFlags(Component{Name: "kubelet", Node: true})
	if err := flags.Parse([]string{"--feature-values-file=", "--feature-values-timeout=24h"}); err != nil {
		t.Fatal(err)
	}
	p := &process{component: Component{Name: "kubelet", Node: true}, gate: gateWith(t, nil), flags: flags,
		arguments: parseArguments([]string{"--kubeconfig=" + kubeconfig(t, hanging.URL), "--hostname-override=n1"})}
	resolved := make(chan struct{})
	go func() {
		defer close(resolved)
		p.resolve(t.Context())
	}()
	<-requested
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-resolved
	<-upstreams
	for component, want := range map[string]bool{"kubelet": true, "kubemark": false, "kube-proxy": false, "kube-scheduler": false, "kube-controller-manager": false} {
		if got := (&process{component: Component{Name: component}}).handlesSignals(); got != want {
			t.Errorf("%s handles signals while it waits: %t, want %t", component, got, want)
		}
	}
}
