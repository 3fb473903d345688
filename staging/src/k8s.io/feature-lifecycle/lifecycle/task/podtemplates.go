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

import "k8s.io/apimachinery/pkg/runtime/schema"

// podTemplate is where a workload kind of Kubernetes has its pod template.
type podTemplate struct {
	resource schema.GroupVersionResource
	path     string
	// immutable: the server refuses to change the template of an object.
	immutable bool
	// copies: a controller makes objects of the kind, with the template of
	// another kind.
	copies bool
}

// podTemplates are in the order in which a template is copied from one kind to
// another.
func podTemplates() []podTemplate {
	apps := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
	}
	batch := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: resource}
	}
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	return []podTemplate{
		{resource: core("podtemplates"), path: "template."},
		{resource: apps("deployments"), path: "spec.template."},
		{resource: apps("replicasets"), path: "spec.template.", copies: true},
		{resource: apps("statefulsets"), path: "spec.template."},
		{resource: apps("daemonsets"), path: "spec.template."},
		{resource: core("replicationcontrollers"), path: "spec.template."},
		{resource: batch("cronjobs"), path: "spec.jobTemplate.spec.template."},
		{resource: batch("jobs"), path: "spec.template.", immutable: true},
	}
}

// ClearPodTemplates removes a field from the pod template of every workload kind. The
// field is written as in a Pod, for example spec.containers[*].x. Job templates cannot
// be changed: Jobs that have the field are waited for. Using describes what they use,
// as in WaitForNone.
//
// The ReplicaSets of a Deployment are left alone: they are its history until its
// revisionHistoryLimit removes them. One whose template became that of the Deployment
// would be taken for its present one (FindNewReplicaSet in
// k8s.io/kubernetes/pkg/controller/deployment/util), and the rollout would revert to
// pods that still have the field.
//
// A template that changes rolls its pods, except those of StatefulSets and DaemonSets
// with the update strategy OnDelete, and of ReplicaSets. Where that does harm, declare
// WaitForNoneInPods instead.
func ClearPodTemplates(using, field string) []Task {
	var tasks []Task
	for _, t := range podTemplates() {
		if t.immutable {
			tasks = append(tasks, WaitForNone(t.resource, using, t.path+field))
		} else {
			tasks = append(tasks, newClearField(clearField{resource: t.resource, uncontrolled: t.copies}, t.path+field))
		}
	}
	return tasks
}

// WaitForNoneInPods waits until no pod template and no Pod uses something. The
// fields are written as in a Pod; templates come first, since they make Pods.
func WaitForNoneInPods(using string, fields ...string) []Task {
	var tasks []Task
	for _, t := range podTemplates() {
		var paths []string
		for _, field := range fields {
			paths = append(paths, t.path+field)
		}
		tasks = append(tasks, WaitForNone(t.resource, using, paths...))
	}
	return append(tasks, WaitForNone(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, using, fields...))
}
