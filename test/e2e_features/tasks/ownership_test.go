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
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle"
)

var resourceSlices = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}

// ownedLists: lists that the server treats as one value stay with those who applied them.
// One is of a custom resource, where each list without x-kubernetes-list-type is such a
// one, and one of a built-in one.
func (w *world) ownedLists(t *testing.T) {
	k := customKind("Owned")
	w.serve(t, k)
	// A patch may have 10,000 operations.
	custom := func(size int64) *unstructured.Unstructured {
		devices := []any{map[string]any{"name": "x", "size": size}}
		for range 10050 {
			devices = append(devices, map[string]any{"hue": "red"})
		}
		return k.object("a", map[string]any{"devices": devices})
	}
	slice := func(size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
			"metadata": map[string]any{"name": "owned.tasks.example.com"},
			"spec": map[string]any{
				"driver": group, "nodeName": "no-such-node",
				"pool": map[string]any{"name": "owned", "generation": int64(1), "resourceSliceCount": int64(1)},
				"devices": []any{map[string]any{"name": "x", "attributes": map[string]any{
					"size": map[string]any{"int": size}, "hue": map[string]any{"string": "red"},
				}}},
			},
		}}
	}
	for _, tc := range []struct {
		resource schema.GroupVersionResource
		field    string
		object   func(size int64) *unstructured.Unstructured
	}{
		{k.resource, "spec.devices[*].hue", custom},
		{resourceSlices, "spec.devices[*].attributes{hue}", slice},
	} {
		clearing := lifecycle.ClearField(tc.resource, tc.field)
		clients := w.clients(t, declared(t, clearing)...)
		apply := func(size int64) (*unstructured.Unstructured, error) {
			object := tc.object(size)
			return w.objects.Resource(tc.resource).Namespace(object.GetNamespace()).Apply(t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "driver"})
		}
		before, err := apply(1)
		if err != nil {
			t.Fatal(err)
		}
		if n := count(t, clients, clearing); n != 1 {
			t.Fatalf("%s: found %d objects, want 1", tc.resource, n)
		}
		run(t, clients, clearing)
		if n := count(t, clients, clearing); n != 0 {
			t.Errorf("%s: found %d objects after the clean-up", tc.resource, n)
		}
		after := w.objects.Read(t, tc.resource, before.GetNamespace(), before.GetName())
		if diff := cmp.Diff(managed(t, before), managed(t, after)); diff != "" {
			t.Errorf("%s: managed fields (-before +after):\n%s", tc.resource, diff)
		}
		if _, err := apply(2); err != nil {
			t.Errorf("%s: the driver applies what it owns: %v", tc.resource, err)
		}
		other := tc.object(3)
		if _, err := w.objects.Resource(tc.resource).Namespace(other.GetNamespace()).Apply(t.Context(), other.GetName(), other, metav1.ApplyOptions{FieldManager: "other"}); !apierrors.IsConflict(err) {
			t.Errorf("%s: another manager applies what the driver owns: %v, want a conflict", tc.resource, err)
		}
	}
}

// managed are the managed fields of an object, as JSON of each.
func managed(t *testing.T, object *unstructured.Unstructured) []string {
	t.Helper()
	var entries []string
	for _, entry := range object.GetManagedFields() {
		data, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, string(data))
	}
	return entries
}
