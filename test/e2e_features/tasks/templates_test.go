//go:build linux

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

package tasks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
)

// workload is a resource whose objects have a pod template at a path.
type workload struct {
	schema.GroupVersionResource
	kind string
	path []string
	spec map[string]any
	// restart is the restart policy of the pods.
	restart string
}

func workloads() []workload {
	selector := map[string]any{"matchLabels": map[string]any{"app": "a"}}
	inSpec := []string{"spec", "template"}
	apps := func(resource, kind string, spec map[string]any) workload {
		return workload{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}, kind, inSpec, spec, "Always"}
	}
	return []workload{
		{schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}, "PodTemplate", []string{"template"}, nil, "Always"},
		apps("deployments", "Deployment", map[string]any{"replicas": int64(0), "selector": selector}),
		apps("replicasets", "ReplicaSet", map[string]any{"replicas": int64(0), "selector": selector}),
		// StatefulSets are those of another test; this one has its own name.
		apps("statefulsets", "StatefulSet", map[string]any{"replicas": int64(0), "selector": selector, "serviceName": "s"}),
		apps("daemonsets", "DaemonSet", map[string]any{"selector": selector}),
		{schema.GroupVersionResource{Version: "v1", Resource: "replicationcontrollers"}, "ReplicationController", inSpec, map[string]any{"replicas": int64(0), "selector": map[string]any{"app": "a"}}, "Always"},
		{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, "CronJob", []string{"spec", "jobTemplate", "spec", "template"}, map[string]any{"schedule": "0 0 1 1 *", "suspend": true}, "Never"},
		{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "Job", inSpec, map[string]any{"suspend": true}, "Never"},
	}
}

// object is one of the workload, in whose second container the field is set. In
// the first it is not, and in the third it is empty, which is not stored.
func (k workload) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
		"spec": map[string]any{
			"restartPolicy":  k.restart,
			"initContainers": []any{map[string]any{"name": "i", "image": "example.invalid/i", "terminationMessagePath": "/init"}},
			"containers": []any{
				map[string]any{"name": "a", "image": "example.invalid/a"},
				map[string]any{"name": "b", "image": "example.invalid/b", "workingDir": "/work", "command": []any{"workingDir"}},
				map[string]any{"name": "c", "image": "example.invalid/c", "workingDir": ""},
			},
		},
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(k.GroupVersion().WithKind(k.kind))
	object.SetNamespace(ns)
	object.SetName("template-" + strings.ToLower(k.kind))
	if k.spec != nil {
		object.Object["spec"] = k.spec
	}
	if err := unstructured.SetNestedMap(object.Object, template, k.path...); err != nil {
		t.Fatal(err)
	}
	return object
}

// withoutWorkingDir is the object after a clean-up that changes nothing else.
func (k workload) withoutWorkingDir(t *testing.T, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	object = object.DeepCopy()
	path := append(append([]string{}, k.path...), "spec", "containers")
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers {
		delete(c.(map[string]any), "workingDir")
	}
	if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
		t.Fatal(err)
	}
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetGeneration(0)
	// The server counts a DaemonSet's templates there; it is a generation, too.
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "deprecated.daemonset.template.generation")
	return object.Object
}

func (w *world) clearTemplates(t *testing.T) {
	before := map[string]*unstructured.Unstructured{}
	for _, k := range workloads() {
		before[k.kind] = w.objects.Create(t, k.GroupVersionResource, k.object(t))
	}
	tasks := declared(t, lifecycle.ClearPodTemplates("a working directory", "spec.containers[*].workingDir")...)
	if len(tasks) != len(before) {
		t.Errorf("%d tasks for %d workload kinds", len(tasks), len(before))
	}
	clients := w.clients(t, tasks...)
	var holding *task.BlockedError
	for _, one := range tasks {
		if strings.Contains(one.Name, "/statefulsets.apps/") {
			// Others write StatefulSets meanwhile; the rest of them is not looked at.
			if err := one.Run(t.Context(), clients, attempt(t)); err != nil {
				t.Errorf("%s: %v", one.Name, err)
			}
			continue
		}
		if n := count(t, clients, one); n != 1 {
			t.Errorf("%s: found %d, want 1", one.Name, n)
		}
		if !strings.Contains(one.Name, "/jobs.batch/") {
			run(t, clients, one)
			continue
		}
		holding = runBlocked(t, clients, one)
		if want := "waiting for 1 jobs.batch using a working directory: tasks/template-job"; holding.Message != want {
			t.Errorf("the message is %q, want %q", holding.Message, want)
		}
	}
	if holding == nil {
		t.Fatal("Jobs hold nothing")
	}
	for _, k := range workloads() {
		was, is := before[k.kind], w.objects.Read(t, k.GroupVersionResource, ns, before[k.kind].GetName())
		if k.kind == "Job" {
			if was.GetResourceVersion() != is.GetResourceVersion() {
				t.Error("the Job was written; nothing may change it")
			}
			continue
		}
		if diff := cmp.Diff(k.withoutWorkingDir(t, was), k.withoutWorkingDir(t, is)); diff != "" {
			t.Errorf("S7: the %s changed elsewhere (-before +after):\n%s", k.kind, diff)
		}
	}
	until(t, holding, func() {
		if err := w.Kube.BatchV1().Jobs(ns).Delete(t.Context(), "template-job", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}); err != nil {
			t.Error(err)
		}
	})
	run(t, clients, tasks...)
	for _, one := range tasks {
		if n := count(t, clients, one); n != 0 {
			t.Errorf("%s: found %d after the clean-up", one.Name, n)
		}
	}
}
