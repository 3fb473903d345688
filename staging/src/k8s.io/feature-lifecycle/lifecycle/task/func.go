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
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Own is a task of an author's own.
type Own struct {
	// Name identifies the task among those of its feature (Task.Name, which is Func/<Name>);
	// it is required.
	Name string
	// Description is what the task does, for plans.
	Description string
	// Find counts what the task would handle. It reads only; it is required.
	Find func(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error)
	// Run does the task until nothing is left. It is idempotent, and may run in two servers at
	// once; it is required.
	Run func(ctx context.Context, clients Clients, attempt Attempt) error
	// Try does what Run would do and stores nothing, as Task.Try; optional.
	Try func(ctx context.Context, clients Clients, attempt Attempt) (Trial, error)
	// Fields are those that both read, for checks of declarations; optional.
	Fields []Field
	// Defines are resources that the task defines, which may be absent before it has run;
	// optional.
	Defines []schema.GroupResource
	// Rules are the permissions that both need in all namespaces and for cluster-scoped
	// objects. NamespacedRules are those that they need in one namespace alone, by its
	// name.
	Rules           []rbacv1.PolicyRule
	NamespacedRules map[string][]rbacv1.PolicyRule
}

// Func returns a task of the author's own, for what the others do not cover. It has to
// keep the contract of Task.Find and Task.Run.
func Func(own Own) Task {
	return Task{
		Name: "Func/" + own.Name, Description: own.Description, Find: own.Find, Run: own.Run, Try: own.Try,
		Fields: own.Fields, defines: own.Defines, Rules: own.Rules, NamespacedRules: own.NamespacedRules,
	}
}

// Leftovers returns what a finder of an author's own (Func) reports about the objects
// of a resource that it has found: their number and the names of the first five. Field
// is what they have, as for ClearField; "" means the objects themselves. Without
// objects it returns nil.
func Leftovers(resource schema.GroupResource, field string, objects []unstructured.Unstructured) []v1alpha1.ResourceLeftovers {
	found := v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource, Field: field}
	for i := range objects {
		count(&found, objectName(objects[i].GetNamespace(), objects[i].GetName()))
	}
	return nonEmpty(found)
}

// rule permits verbs on a resource.
func rule(resource schema.GroupResource, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs}
}

// named limits a rule to objects of some names.
func named(r rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	r.ResourceNames = names
	return r
}
