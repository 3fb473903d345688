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
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Feature declares what happens to one gate. The zero value of every field but
// Name declares nothing.
type Feature struct {
	// Name is the gate's exact name.
	Name featuregate.Feature
	// OnEnable is what a transition to On does once no live user has the
	// feature off, in order. A feature that is On when the server flow sees it first has no
	// such transition: its tasks do not run before it is turned off and on again, and an
	// event (transition.EventTasksNotRun) names them.
	OnEnable Tasks
	// OnDisable is what a transition to Off does once no live user has the
	// feature on, in order. Its finders also count the leftovers of a feature
	// that is off.
	OnDisable Tasks
	// Versions is what happens when the cluster's version passes a boundary, on
	// the way up and down. Without an entry the version just moves.
	Versions Versions
	// Control permits the cluster's administrator to let others than a
	// binary's own command line decide the value. Features with configuration
	// of their own stay Local, which is the zero value's meaning.
	Control v1alpha1.FeatureControl
}

// NeedStorage returns the names of the feature's tasks that do nothing without
// task.Clients.Storage.
func (f Feature) NeedStorage() []string {
	var names []string
	for _, t := range f.AllTasks() {
		if t.NeedsStorage {
			names = append(names, t.Name)
		}
	}
	return names
}

// Tasks are run in order, each after the one before it is done.
type Tasks []task.Task

// Names returns the names of the tasks in order.
func (t Tasks) Names() []string {
	names := make([]string, 0, len(t))
	for _, task := range t {
		names = append(names, task.Name)
	}
	return names
}

// StartupBlocking returns the names of those that have to run before a server has the
// feature on (task.Task.BlocksStartup).
func (t Tasks) StartupBlocking() []string {
	var names []string
	for _, task := range t {
		if task.BlocksStartup {
			names = append(names, task.Name)
		}
	}
	return names
}

// ClearField removes a field, for example "spec.containers[*].x", from every stored object
// of a resource and changes nothing else in them (task.ClearField).
func ClearField(resource schema.GroupVersionResource, field string) task.Task {
	return task.ClearField(resource, field)
}

// ClearPodTemplates removes a field, written as in a Pod, from the pod templates of all
// workloads, and waits for Jobs that have it. Using describes what they use
// (task.ClearPodTemplates).
func ClearPodTemplates(using, field string) []task.Task { return task.ClearPodTemplates(using, field) }

// ClearCollection removes every object of a resource that goes with its feature, and from
// objects that are being deleted the finalizers that are listed (task.ClearCollection).
func ClearCollection(resource schema.GroupResource, finalizers ...string) task.Task {
	return task.ClearCollection(resource, finalizers...)
}

// ClearUnreadable removes the stored objects of a resource that no server can decode any
// more; only kube-apiserver can run it (task.ClearUnreadable).
func ClearUnreadable(resource schema.GroupResource) task.Task { return task.ClearUnreadable(resource) }

// ClearRemovedField rewrites stored objects that hold a field which this version no longer
// has; only kube-apiserver can run it (task.ClearRemovedField).
func ClearRemovedField(field task.RemovedField) task.Task { return task.ClearRemovedField(field) }

// WaitForNone waits until no object of a resource has any of the fields, or
// <field>=<value>. Using describes in their words what is used (task.WaitForNone).
func WaitForNone(resource schema.GroupVersionResource, using string, fields ...string) task.Task {
	return task.WaitForNone(resource, using, fields...)
}

// WaitForNoneWhere waits like WaitForNone until no field has a value that wanted chooses
// (task.WaitForNoneWhere).
func WaitForNoneWhere(resource schema.GroupVersionResource, using string, wanted func(value any) bool, fields ...string) task.Task {
	return task.WaitForNoneWhere(resource, using, wanted, fields...)
}

// WaitForNoneInPods waits until no pod template and no Pod has any of the fields, written as
// in a Pod (task.WaitForNoneInPods).
func WaitForNoneInPods(using string, fields ...string) []task.Task {
	return task.WaitForNoneInPods(using, fields...)
}

// MigrateStorage rewrites every object of a resource in the version that the server stores
// now (task.MigrateStorage).
func MigrateStorage(resource schema.GroupResource) task.Task { return task.MigrateStorage(resource) }

// Apply installs the objects of manifests, YAML documents, by server-side apply. The
// name distinguishes the task from others of its feature (task.Apply).
func Apply(name string, manifests []byte) task.Task { return task.Apply(name, manifests) }

// Remove deletes the objects that manifests name, in the reverse of their order
// (task.Remove).
func Remove(name string, manifests []byte) task.Task { return task.Remove(name, manifests) }

// Func returns a task of the author's own, for what the others do not cover
// (task.Func).
func Func(own task.Own) task.Task { return task.Func(own) }

// InNamespace returns tasks that are limited to the objects of one namespace
// (task.Task.InNamespace): for an operator that looks after one, beside which another
// installation may look after another.
//
//	OnDisable: lifecycle.InNamespace(namespace, lifecycle.ClearField(widgets, "spec.color")),
func InNamespace(namespace string, tasks ...task.Task) Tasks {
	var limited Tasks
	for _, t := range tasks {
		limited = append(limited, t.InNamespace(namespace))
	}
	return limited
}

// Rules returns the permissions that the tasks of all these features need in all
// namespaces and for cluster-scoped objects, each once. They are for the ClusterRole of
// the process that runs the server flow. NamespacedRules returns the others.
func Rules(features []Feature) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, f := range features {
		for _, t := range f.AllTasks() {
			rules = addRules(rules, t.Rules)
		}
	}
	return rules
}

// NamespacedRules returns the permissions that the tasks of all these features need in
// one namespace alone, by its name, each once. They are for a Role of the process that
// runs the server flow there: of tasks that are limited to the namespace (InNamespace),
// and of objects that manifests have there.
func NamespacedRules(features []Feature) map[string][]rbacv1.PolicyRule {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, f := range features {
		for _, t := range f.AllTasks() {
			for namespace, more := range t.NamespacedRules {
				rules[namespace] = addRules(rules[namespace], more)
			}
		}
	}
	return rules
}

// AllTasks returns the tasks of all lists, in the order of the fields.
func (f Feature) AllTasks() Tasks { return slices.Concat(f.OnEnable, f.OnDisable, f.Versions.tasks()) }

// addRules adds those that are not there yet.
func addRules(rules, more []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	for _, rule := range more {
		if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(r, rule) }) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// ValidateWithoutStorage returns an error that names the features with tasks that only
// kube-apiserver can run.
func ValidateWithoutStorage(features []Feature) error {
	var problems []error
	for _, f := range features {
		if names := f.NeedStorage(); len(names) > 0 {
			problems = append(problems, fmt.Errorf("%s declares %s, which only kube-apiserver can run: no other server reaches etcd; leave it out", f.Name, strings.Join(names, ", ")))
		}
	}
	return errors.Join(problems...)
}

// Values of Feature.Control.
const (
	Local   = v1alpha1.ControlLocal
	Central = v1alpha1.ControlCentral
	Dynamic = v1alpha1.ControlDynamic
)

// maxTasks leaves room for the one that the server flow writes.
const maxTasks = v1alpha1.MaxTasks - 1

// Validate returns everything that is wrong with a set of declarations: names
// twice, missing or such as no Feature can have, tasks that are not valid, task names twice in one list,
// boundaries that are no minor versions.
func Validate(features []Feature) error {
	var problems []error
	seen := map[featuregate.Feature]bool{}
	for _, f := range features {
		problem := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("feature %q: %w", f.Name, fmt.Errorf(format, args...)))
		}
		if f.Name == "" {
			problem("declared without a name")
		} else if wrong := v1alpha1.GateNameProblems(string(f.Name)); len(wrong) > 0 {
			problem("the name %s", strings.Join(wrong, "; "))
		}
		if seen[f.Name] {
			problem("declared twice; merge the declarations")
		}
		seen[f.Name] = true
		switch f.Control {
		case "", Local, Central, Dynamic:
		default:
			problem("unknown control %q; use Local, Central or Dynamic", f.Control)
		}
		f.Versions.validate(problem)
		lists := []Tasks{f.OnEnable, f.OnDisable}
		for _, v := range f.Versions {
			lists = append(lists, v.Upgrading(), v.Downgrading())
		}
		for _, tasks := range lists {
			tasks.validate(problem)
		}
	}
	return errors.Join(problems...)
}

// validate reports what is wrong with one list.
func (t Tasks) validate(problem func(format string, args ...any)) {
	if len(t) > maxTasks {
		problem("%d tasks are declared for one direction, %d are allowed", len(t), maxTasks)
	}
	names := map[string]bool{}
	for _, task := range t {
		if err := task.Validate(); err != nil {
			problem("%w", err)
		}
		if names[task.Name] {
			problem("task %s is declared twice in one list", task.Name)
		}
		names[task.Name] = true
	}
}
