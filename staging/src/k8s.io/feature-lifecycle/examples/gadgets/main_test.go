/*
Copyright 2026 The Kubernetes Authors.

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
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/operator"
)

// TestRolesAreWhatIsNeeded: the permissions on gadgets are those of the declared
// tasks, and all others are in the operator's own namespace.
func TestRolesAreWhatIsNeeded(t *testing.T) {
	manifests, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var everywhere []rbacv1.PolicyRule
	kinds := 0
	for _, document := range strings.Split(string(manifests), "\n---\n") {
		// A Role has all fields of a ClusterRole that this test reads.
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		switch role.Kind {
		case "ClusterRole":
			kinds++
			everywhere = append(everywhere, role.Rules...)
		case "Role":
			kinds++
			if role.Namespace != namespace {
				t.Errorf("Role %s is in namespace %q, want %s", role.Name, role.Namespace, namespace)
			}
			if diff := cmp.Diff(operator.Rules(component), role.Rules); diff != "" {
				t.Errorf("the Role is not what a replica needs (-need +have):\n%s", diff)
			}
		}
	}
	if kinds != 2 {
		t.Errorf("found %d roles, want a Role and a ClusterRole; does the test still understand rbac.yaml?", kinds)
	}
	if diff := cmp.Diff(lifecycle.Rules(declared), everywhere); diff != "" {
		t.Errorf("the ClusterRole is not what the tasks need (-need +have):\n%s", diff)
	}
}

// TestDeclarationsFitTheGates: what is declared is valid, and of gates that the
// operator has; what its author permits, the command line may ask for.
func TestDeclarationsFitTheGates(t *testing.T) {
	if err := lifecycle.Validate(declared); err != nil {
		t.Error(err)
	}
	for _, feature := range declared {
		if _, ok := gates[feature.Name]; !ok {
			t.Errorf("%s is declared and no gate of the operator", feature.Name)
		}
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"dynamic as its author permits":    {args: []string{"--dynamic-features=GadgetColours"}},
		"set by hand":                      {args: []string{"--feature-gates=GadgetColours=true"}},
		"a gate that the operator has not": {args: []string{"--dynamic-features=Widgets"}, want: `no feature gate "Widgets" is known`},
		"set by hand and dynamic":          {args: []string{"--dynamic-features=GadgetColours", "--feature-gates=GadgetColours=true"}, want: "would win over the API"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append(test.args, "--instance=replica-a"))
			if err == nil {
				_, err = newReplica(o, &rest.Config{Host: "https://127.0.0.1:1"})
			}
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Fatalf("error %v, want one that says %q", err, test.want)
			case test.want != "":
				return
			}
			dynamic := o.decides.Of(string(GadgetColours)) == v1alpha1.ControlDynamic
			if want := slices.Contains(test.args, "--dynamic-features=GadgetColours"); dynamic != want {
				t.Errorf("GadgetColours is dynamic: %t, want %t", dynamic, want)
			}
		})
	}
}
