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

package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

func TestValidate(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	clear := ClearField(widgets, "spec.x")
	for name, tc := range map[string]struct {
		features []Feature
		says     string
	}{
		"none":                   {nil, ""},
		"one that declares all":  {[]Feature{{Name: "A", OnDisable: Tasks{clear}, Control: Central}}, ""},
		"without a name":         {[]Feature{{}}, "without a name"},
		"a name with a slash":    {[]Feature{{Name: "example.com/A"}}, `feature "example.com/A": the name must begin with a letter and consist of`},
		"a name that is long":    {[]Feature{{Name: featuregate.Feature(strings.Repeat("A", v1alpha1.MaxNameLength+1))}}, "the name must be no more than 253 characters"},
		"twice":                  {[]Feature{{Name: "A"}, {Name: "A"}}, "declared twice"},
		"an unknown control":     {[]Feature{{Name: "A", Control: "Remote"}}, "Remote"},
		"one task twice":         {[]Feature{{Name: "A", OnEnable: Tasks{clear, clear}}}, "twice in one list"},
		"one task in both lists": {[]Feature{{Name: "A", OnEnable: Tasks{clear}, OnDisable: Tasks{clear}}}, ""},
		"two boundaries, both directions": {[]Feature{{Name: "A", Versions: Versions{
			{At: "1.36", OnUpgrade: Tasks{clear}, OnDowngrade: Tasks{clear}}, {At: "1.35", OnDowngrade: Tasks{clear}}}}}, ""},
		"a boundary that is no version":    {[]Feature{{Name: "A", Versions: Versions{{At: "next", OnUpgrade: Tasks{clear}}}}}, "like 1.36"},
		"a boundary of a patch version":    {[]Feature{{Name: "A", Versions: Versions{{At: "1.36.1", OnUpgrade: Tasks{clear}}}}}, "like 1.36"},
		"a boundary with a v":              {[]Feature{{Name: "A", Versions: Versions{{At: "v1.36", OnUpgrade: Tasks{clear}}}}}, "like 1.36"},
		"a boundary twice":                 {[]Feature{{Name: "A", Versions: Versions{{At: "1.36", OnUpgrade: Tasks{clear}}, {At: "1.36", OnDowngrade: Tasks{clear}}}}}, "declared twice"},
		"a boundary without a task":        {[]Feature{{Name: "A", Versions: Versions{{At: "1.36"}}}}, "declares no task"},
		"one task twice at a boundary":     {[]Feature{{Name: "A", Versions: Versions{{At: "1.36", OnUpgrade: Tasks{clear, clear}}}}}, "twice in one list"},
		"a task at a boundary that is bad": {[]Feature{{Name: "A", Versions: Versions{{At: "1.36", OnDowngrade: Tasks{ClearField(widgets, "")}}}}}, `feature "A"`},
		"more tasks than a list may have":  {[]Feature{{Name: "A", Versions: boundaries(60, clear)}}, "120 tasks"},
		"a task that is not valid":         {[]Feature{{Name: "A", OnDisable: Tasks{ClearField(widgets, "")}}}, `feature "A"`},
	} {
		err := Validate(tc.features)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
}

// boundaries are so many, with one task in each direction.
func boundaries(n int, t task.Task) Versions {
	var all Versions
	for minor := range n {
		all = append(all, Version{At: fmt.Sprintf("1.%d", minor), OnUpgrade: Tasks{t}, OnDowngrade: Tasks{t}})
	}
	return all
}

func TestRulesAreThoseOfAllLists(t *testing.T) {
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: name}
	}
	f := Feature{Name: "A", OnEnable: Tasks{ClearField(resource("enabled"), "spec.x")}, OnDisable: Tasks{ClearField(resource("disabled"), "spec.x")}, Versions: Versions{
		{At: "1.36", OnUpgrade: Tasks{ClearField(resource("upgraded"), "spec.x")}, OnDowngrade: Tasks{ClearField(resource("downgraded"), "spec.x")}},
	}}
	got := map[string]bool{}
	for _, rule := range Rules([]Feature{f}) {
		for _, r := range rule.Resources {
			got[r] = true
		}
	}
	for _, want := range []string{"enabled", "disabled", "upgraded", "downgraded"} {
		if !got[want] {
			t.Errorf("no rule permits what the task about %s does: %v", want, got)
		}
	}
}

// TestRulesHaveNoDuplicates: of tasks that look after one thing, and by the namespace.
func TestRulesHaveNoDuplicates(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	manifest := func(namespace string) []byte {
		return []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + namespace + "}}")
	}
	features := []Feature{
		{Name: "A", OnEnable: Tasks{Apply("red", manifest("red"))}, OnDisable: Tasks{ClearField(resource, "spec.x"), ClearField(resource, "spec.y")}},
		{Name: "B", OnEnable: Tasks{Apply("red", manifest("red")), Apply("blue", manifest("blue"))}, OnDisable: Tasks{ClearField(resource, "spec.z")}},
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "patch"}}}
	if diff := cmp.Diff(want, Rules(features)); diff != "" {
		t.Errorf("rules in all namespaces (-want +got):\n%s", diff)
	}
	applying := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a"}, Verbs: []string{"get", "create", "patch"}}}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"red": applying, "blue": applying}, NamespacedRules(features)); diff != "" {
		t.Errorf("rules by namespace (-want +got):\n%s", diff)
	}
}

func TestNamesOfVersionTasks(t *testing.T) {
	clear := ClearField(schema.GroupVersionResource{Version: "v1", Resource: "widgets"}, "spec.x")
	versions := boundaries(2, clear)
	seen := map[string]bool{}
	for _, named := range versions.tasks() {
		if seen[named.Name] {
			t.Errorf("%s is the name of two tasks", named.Name)
		}
		seen[named.Name] = true
		if found, ok := versions.Task(named.Name); !ok || found.Description != clear.Description {
			t.Errorf("%s is not found by its name: %+v", named.Name, found)
		}
	}
	if name := "Upgrade/1.1/" + clear.Name; !seen[name] {
		t.Errorf("no task is called %s: %v", name, seen)
	}
	if _, ok := versions.Task(clear.Name); ok {
		t.Error("a task is found by the name that it has in no list")
	}
	if clear.Name != versions[0].OnUpgrade[0].Name {
		t.Errorf("the declaration was changed: %s", versions[0].OnUpgrade[0].Name)
	}
}
