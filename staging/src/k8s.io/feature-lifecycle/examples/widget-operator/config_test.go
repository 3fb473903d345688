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
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	widgetsv1 "k8s.io/feature-lifecycle/examples/widget-operator/api/v1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/operator"
)

// documents returns those of a file below config, by kind and name. Unknown fields are
// refused.
func documents[T any](t *testing.T, file string, kinds ...string) map[string]T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("config", file))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]T{}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var object metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !slices.Contains(kinds, object.Kind) {
			continue
		}
		var decoded T
		if err := yaml.UnmarshalStrict(document, &decoded); err != nil {
			t.Fatalf("%s: %s %s: %v", file, object.Kind, object.Name, err)
		}
		found[object.Kind+" "+object.Name] = decoded
	}
	return found
}

// byHand are the rules of the roles for what the operator's own code does, which nothing
// can compute: the election of controller-runtime, which reads its Lease by name, and the
// reconciler, which reads from the manager's cache alone.
var byHand = map[string][]rbacv1.PolicyRule{
	"Role widget-operator-leader": {
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{leaderLease}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	},
	"Role widget-operator": {
		{APIGroups: []string{widgetsv1.Widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{widgetsv1.Widgets.Group}, Resources: []string{"widgets/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch", "create", "update"}},
	},
}

// TestRolesMatchNeededPermissions: the library says what its part needs, in the operator's own
// namespace and for the tasks, and byHand the rest; all roles belong to the service account
// that runs it.
func TestRolesMatchNeededPermissions(t *testing.T) {
	roles := documents[rbacv1.Role](t, "rbac.yaml", "Role")
	everywhere := documents[rbacv1.ClusterRole](t, "rbac.yaml", "ClusterRole")
	if diff := cmp.Diff([]string{"Role widget-operator", "Role widget-operator-features", "Role widget-operator-leader", "Role widget-operator-tasks"}, slices.Sorted(maps.Keys(roles))); diff != "" {
		t.Fatalf("the roles in its namespace (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ClusterRole widget-operator-tasks"}, slices.Sorted(maps.Keys(everywhere))); diff != "" {
		t.Fatalf("the roles everywhere (-want +have):\n%s", diff)
	}
	if diff := cmp.Diff(operator.Rules(component), roles["Role widget-operator-features"].Rules); diff != "" {
		t.Errorf("the role for Features is not what operator.Rules says (-need +have):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{defaultNamespace: roles["Role widget-operator-tasks"].Rules}, lifecycle.NamespacedRules(declared(defaultNamespace))); diff != "" {
		t.Errorf("the role for tasks is not what lifecycle.NamespacedRules says (-have +need):\n%s", diff)
	}
	if diff := cmp.Diff(lifecycle.Rules(declared(defaultNamespace)), everywhere["ClusterRole widget-operator-tasks"].Rules); diff != "" {
		t.Errorf("the role for what tasks need in no namespace is not what lifecycle.Rules says (-need +have):\n%s", diff)
	}
	for _, role := range everywhere {
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, widgetsv1.Widgets.Group) || len(rule.ResourceNames) == 0 {
				t.Errorf("%s permits %v in all namespaces", role.Name, rule)
			}
		}
	}
	for name, rules := range byHand {
		if diff := cmp.Diff(rules, roles[name].Rules); diff != "" {
			t.Errorf("%s is not what the operator's own code does (-need +have):\n%s", name, diff)
		}
	}
	if _, ok := documents[corev1.ServiceAccount](t, "namespace.yaml", "ServiceAccount")["ServiceAccount "+component]; !ok {
		t.Errorf("namespace.yaml has no service account %s", component)
	}
	account := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: defaultNamespace, Name: component}}
	for name, role := range roles {
		if role.Namespace != defaultNamespace {
			t.Errorf("%s is in namespace %q, want the operator's own, %s", name, role.Namespace, defaultNamespace)
		}
	}
	bound := map[string]bool{}
	// A RoleBinding has the fields of a ClusterRoleBinding.
	for name, binding := range documents[rbacv1.RoleBinding](t, "rbac.yaml", "RoleBinding", "ClusterRoleBinding") {
		bound[binding.RoleRef.Kind+" "+binding.RoleRef.Name] = true
		if diff := cmp.Diff(account, binding.Subjects); diff != "" {
			t.Errorf("%s has other subjects (-want +have):\n%s", name, diff)
		}
		if inNamespace := strings.HasPrefix(name, "RoleBinding"); inNamespace != (binding.Namespace == defaultNamespace) {
			t.Errorf("%s is in namespace %q", name, binding.Namespace)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(roles)), slices.Collect(maps.Keys(everywhere))) {
		if !bound[name] {
			t.Errorf("%s has no binding", name)
		}
	}
}

// TestDefinitionHasClearedFields: a field that it lacked would be cleared nowhere.
func TestDefinitionHasClearedFields(t *testing.T) {
	definition := unstructured.Unstructured{Object: documents[map[string]any](t, "crd.yaml", "CustomResourceDefinition")["CustomResourceDefinition widgets.widgets.example.com"]}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if len(versions) != 1 {
		t.Fatalf("the definition has %d versions, want v1", len(versions))
	}
	v1 := versions[0].(map[string]any)
	if want := widgetsv1.Widgets; group != want.Group || plural != want.Resource || v1["name"] != want.Version {
		t.Errorf("the definition is of %s, %s, %v, want %v", group, plural, v1["name"], want)
	}
	for _, field := range []string{"size", "text", "color"} {
		if _, ok, err := unstructured.NestedMap(v1, "schema", "openAPIV3Schema", "properties", "spec", "properties", field); !ok || err != nil {
			t.Errorf("the definition has no field spec.%s: %v", field, err)
		}
	}
	if _, ok, err := unstructured.NestedMap(v1, "subresources", "status"); !ok || err != nil {
		t.Errorf("the definition has no subresource status: %v", err)
	}
}

// TestSamples: what people and hack/example.sh apply is of the types of the API, and
// where the operator looks.
func TestSamples(t *testing.T) {
	widgets := documents[widgetsv1.Widget](t, "samples/widgets.yaml", "Widget")
	if widgets["Widget lamp"].Spec.Color == "" || widgets["Widget door"].Spec.Color != "" || len(widgets) != 2 {
		t.Errorf("of the samples the lamp alone should have a color: %v", widgets)
	}
	late := documents[widgetsv1.Widget](t, "samples/late.yaml", "Widget")
	if len(late) != 1 {
		t.Error("samples/late.yaml should have one Widget")
	}
	for _, samples := range []map[string]widgetsv1.Widget{widgets, late} {
		for name, widget := range samples {
			if widget.Namespace != defaultNamespace {
				t.Errorf("%s is in namespace %q, and the operator looks after those in %s", name, widget.Namespace, defaultNamespace)
			}
		}
	}
}

// TestTheDeploymentRunsTheOperator: its flags are those that there are, and each replica
// has its pod's name.
func TestTheDeploymentRunsTheOperator(t *testing.T) {
	deployment, ok := documents[appsv1.Deployment](t, "deployment.yaml", "Deployment")["Deployment "+component]
	if !ok {
		t.Fatal("there is no Deployment of the operator")
	}
	pod := deployment.Spec.Template.Spec
	if deployment.Namespace != defaultNamespace || pod.ServiceAccountName != component || *deployment.Spec.Replicas != 3 {
		t.Errorf("it has %d replicas in %s as %s, want 3 in %s as %s", *deployment.Spec.Replicas, deployment.Namespace, pod.ServiceAccountName, defaultNamespace, component)
	}
	container := pod.Containers[0]
	if len(container.Env) != 1 || container.Env[0].Name != "POD_NAME" || container.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("the environment is %v, want the pod's name as POD_NAME", container.Env)
	}
	t.Setenv("POD_NAME", "widget-operator-5d9c-abcde")
	o, err := parse(container.Args)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.replica(nowhere()); err != nil {
		t.Error(err)
	}
	if !o.leaderElect {
		t.Error("several replicas would reconcile")
	}
	if port := container.Ports[0]; !strings.HasSuffix(o.probeAddress, ":8081") || port.ContainerPort != 8081 {
		t.Errorf("probes ask port %d, and the operator listens on %s", port.ContainerPort, o.probeAddress)
	}
}
