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

package task

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const manyManifests = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, names: {plural: widgets}, versions: [{name: v1, served: true}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sprockets.example.com}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: blue}
`

// TestRulesAreExact checks that a task requests no more than it needs. Other tests, by
// permitted, and those of integration check that it needs all of it.
func TestRulesAreExact(t *testing.T) {
	permit := func(resource schema.GroupResource, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, ResourceNames: names, Verbs: verbs}
	}
	resource, deployments, configMaps := widgets.GroupResource(), schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, schema.GroupResource{Resource: "configmaps"}
	definition := permit(crds.GroupResource(), []string{"widgets.example.com"}, "get")
	status := schema.GroupResource{Group: resource.Group, Resource: "widgets/status"}
	both := []string{"widgets.example.com", "sprockets.example.com"}
	for name, tc := range map[string]struct {
		task       Task
		everywhere []rbacv1.PolicyRule
		namespaced map[string][]rbacv1.PolicyRule
	}{
		"a field":                      {task: ClearField(widgets, "spec.x"), everywhere: []rbacv1.PolicyRule{permit(resource, nil, "get", "list", "patch"), definition}},
		"a field of status":            {task: ClearField(widgets, "status.x"), everywhere: []rbacv1.PolicyRule{permit(resource, nil, "get", "list", "patch"), permit(status, nil, "patch"), definition}},
		"a field of a built-in kind":   {task: ClearField(deployments, "spec.x"), everywhere: []rbacv1.PolicyRule{permit(deployments.GroupResource(), nil, "get", "list", "patch")}},
		"waiting":                      {task: WaitForNone(widgets, "x", "spec.x"), everywhere: []rbacv1.PolicyRule{permit(resource, nil, "list", "watch"), definition}},
		"waiting for a built-in kind":  {task: WaitForNone(deployments, "x", "spec.x"), everywhere: []rbacv1.PolicyRule{permit(deployments.GroupResource(), nil, "list", "watch")}},
		"a collection":                 {task: ClearCollection(resource), everywhere: []rbacv1.PolicyRule{permit(resource, nil, "list", "watch", "delete"), definition}},
		"a collection with finalizers": {task: ClearCollection(resource, "a/b"), everywhere: []rbacv1.PolicyRule{permit(resource, nil, "list", "watch", "delete", "get", "patch"), definition}},
		"in storage alone":             {task: ClearUnreadable(resource)},
		"a field that is gone":         {task: ClearRemovedField(RemovedField{Resource: deployments, Path: "spec.x", Number: 7, At: "1.37"}), everywhere: []rbacv1.PolicyRule{permit(deployments.GroupResource(), nil, "patch")}},
		"a migration":                  {task: MigrateStorage(resource), everywhere: []rbacv1.PolicyRule{permit(migrations, nil, "list", "watch", "create", "delete"), permit(resource, nil, "list"), definition}},
		"a migration of a built-in kind": {task: MigrateStorage(deployments.GroupResource()),
			everywhere: []rbacv1.PolicyRule{permit(migrations, nil, "list", "watch", "create", "delete"), permit(deployments.GroupResource(), nil, "list")}},
		"manifests that are applied": {
			task:       Apply("x", []byte(manyManifests)),
			everywhere: []rbacv1.PolicyRule{permit(crds.GroupResource(), both, "get", "create", "patch", "list", "watch")},
			namespaced: map[string][]rbacv1.PolicyRule{
				"red":  {permit(configMaps, []string{"a", "b"}, "get", "create", "patch")},
				"blue": {permit(configMaps, []string{"a"}, "get", "create", "patch")},
			},
		},
		"objects of a definition that are removed": {
			task:       Remove("x", []byte(twoWidgets)),
			everywhere: []rbacv1.PolicyRule{definition},
			namespaced: map[string][]rbacv1.PolicyRule{"ns": {permit(resource, []string{"a", "b"}, "get", "list", "watch", "delete")}},
		},
		"manifests that are removed": {
			task: Remove("x", []byte(manyManifests)),
			everywhere: []rbacv1.PolicyRule{
				permit(crds.GroupResource(), []string{"sprockets.example.com", "widgets.example.com"}, "get", "list", "watch", "delete"),
				// What is deleted with a definition is counted.
				permit(schema.GroupResource{Group: "example.com", Resource: "sprockets"}, nil, "list"),
				permit(resource, nil, "list"),
			},
			namespaced: map[string][]rbacv1.PolicyRule{
				"red":  {permit(configMaps, []string{"b", "a"}, "get", "list", "watch", "delete")},
				"blue": {permit(configMaps, []string{"a"}, "get", "list", "watch", "delete")},
			},
		},
	} {
		if err := tc.task.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.everywhere, tc.task.Rules); diff != "" {
			t.Errorf("%s: rules in all namespaces (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.namespaced, tc.task.NamespacedRules, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: rules by namespace (-want +got):\n%s", name, diff)
		}
	}
}
