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
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle"
)

const definitionAndObject = `# A definition and one of what it defines.
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: applieds.tasks.example.com
spec:
  group: tasks.example.com
  scope: Namespaced
  names: {kind: Applied, listKind: AppliedList, plural: applieds, singular: applied}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
---
apiVersion: tasks.example.com/v1
kind: Applied
metadata: {name: one, namespace: tasks}
spec: {size: 3}
`

func (w *world) applyDefinition(t *testing.T) {
	applying := lifecycle.Apply("definition", []byte(definitionAndObject))
	clients := w.clients(t, declared(t, applying)...)
	if n := count(t, clients, applying); n != 2 {
		t.Errorf("found %d objects missing, want 2", n)
	}
	clearAll(t, clients, applying)
	if found := find(t, clients, applying); len(found) != 0 {
		t.Errorf("found %v after it was applied", found)
	}
	applieds := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "applieds"}
	once := w.objects.Read(t, applieds, ns, "one")
	run(t, clients, applying)
	if again := w.objects.Read(t, applieds, ns, "one"); again.GetResourceVersion() != once.GetResourceVersion() {
		t.Error("applying again wrote the object")
	}
	if _, err := w.objects.Resource(applieds).Namespace(ns).Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"size":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if found := find(t, clients, applying); len(found) != 1 || found[0].Resource != "applieds" || found[0].Examples[0] != "tasks/one" {
		t.Errorf("found %v, want the object that was changed", found)
	}
	run(t, clients, applying)
	if n := count(t, clients, applying); n != 0 {
		t.Errorf("found %d after it was applied again", n)
	}
}

// applyOfTwoFlows: fields that one operator has applied are conflicts for another one, if
// their values differ.
func (w *world) applyOfTwoFlows(t *testing.T) {
	manifest := func(data string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared","namespace":"tasks"},"data":` + data + `}`)
	}
	first, second := lifecycle.Apply("shared", manifest(`{"both":"same","one":"red"}`)), lifecycle.Apply("shared", manifest(`{"both":"same","two":"blue"}`))
	red, blue := w.clients(t, declared(t, first)...), w.clients(t, declared(t, second)...)
	red.Flow, blue.Flow = "red", "blue"
	run(t, red, first)
	run(t, blue, second)
	data := func() map[string]string {
		t.Helper()
		shared, err := w.Kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "shared", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return shared.Data
	}
	// One drops nothing that the other has applied.
	want := map[string]string{"both": "same", "one": "red", "two": "blue"}
	if diff := cmp.Diff(want, data()); diff != "" {
		t.Errorf("after both have applied (-want +got):\n%s", diff)
	}
	taking := lifecycle.Apply("shared", manifest(`{"both":"same","one":"blue","two":"blue"}`))
	if n := count(t, blue, taking); n != 1 {
		t.Errorf("found %d objects that differ, want 1", n)
	}
	_ = runBlocked(t, blue, taking, "ConfigMap tasks/shared", "feature-lifecycle/red", ".data.one")
	if diff := cmp.Diff(want, data()); diff != "" {
		t.Errorf("after blue was refused (-want +got):\n%s", diff)
	}
}

func (w *world) applyConflict(t *testing.T) {
	applying := lifecycle.Apply("conflict", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"taken","namespace":"tasks"},"data":{"key":"ours"}}`))
	clients := w.clients(t, declared(t, applying)...)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Data: map[string]string{"key": "theirs"}}
	if _, err := w.Kube.CoreV1().ConfigMaps(ns).Create(t.Context(), object, metav1.CreateOptions{FieldManager: "stranger"}); err != nil {
		t.Fatal(err)
	}
	if n := count(t, clients, applying); n != 1 {
		t.Errorf("found %d objects that differ, want 1", n)
	}
	blocked := runBlocked(t, clients, applying, "ConfigMap tasks/taken", "stranger", ".data.key")
	taken, err := w.Kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "taken", metav1.GetOptions{})
	if err != nil || taken.Data["key"] != "theirs" {
		t.Errorf("the value is %v (%v); whose value holds is for people to decide", taken.Data, err)
	}
	until(t, blocked, func() {
		if err := w.Kube.CoreV1().ConfigMaps(ns).Delete(t.Context(), "taken", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	run(t, clients, applying)
	if n := count(t, clients, applying); n != 0 {
		t.Errorf("found %d after it was applied", n)
	}
}
