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

package rawobject

import (
	"bytes"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzObject: whatever is stored, it is an error or an object, and an object without a
// field after the field is removed.
func FuzzObject(f *testing.F) {
	revision := &appsv1.ControllerRevision{TypeMeta: typedMeta("ControllerRevision"), Data: runtime.RawExtension{Raw: []byte(`{"spec":{"a":[{"b":1}]}}`)}}
	pod := podOf(2)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{entry("a", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:spec":{"f:containers":{"k:{\"name\":\"c-0\"}":{"f:ports":{}}}}}`)}
	for _, object := range []runtime.Object{described(), revision, pod} {
		for _, plain := range [][]byte{encoded(f, object), encodedJSON(f, object)} {
			f.Add(plain)
			f.Add(plain[:len(plain)/2])
			f.Add(bytes.ReplaceAll(plain, []byte("a"), []byte("\xff")))
		}
	}
	for _, seed := range textSeeds {
		f.Add([]byte(seed))
	}
	f.Add([]byte("k8s\x00\x12\x06\x0a\x04\x8a\x01\x01\x00"))
	var searched []*Field
	for path, typ := range map[string]reflect.Type{
		"metadata.labels{a}":                     reflect.TypeFor[corev1.Pod](),
		"metadata.creationTimestamp":             reflect.TypeFor[corev1.Pod](),
		"spec[hostNetwork=true].containers":      reflect.TypeFor[corev1.Pod](),
		"spec.containers[*].resources.limits{a}": reflect.TypeFor[corev1.Pod](),
		"spec.containers[name=c-0].ports[*]":     reflect.TypeFor[corev1.Pod](),
		"spec.volumes[*].emptyDir.sizeLimit":     reflect.TypeFor[corev1.Pod](),
		"data.spec.a[*].b":                       reflect.TypeFor[appsv1.ControllerRevision](),
	} {
		searched = append(searched, newField(f, typ, path))
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		o, err := Parse(plain)
		if err != nil {
			return
		}
		for _, field := range searched {
			tryField(t, o, field)
		}
		if edited, err := o.WithGeneration(7); err == nil {
			if metadata, err := edited.Metadata(); err == nil && metadata.Generation != 7 {
				t.Errorf("%q has the generation %d, want 7", edited.Bytes(), metadata.Generation)
			}
		}
		// Whether it is unfinished is of no interest here.
		_, _ = o.IsUnfinished(taker)
	})
}

// tryField removes a field from what may be an object.
func tryField(t *testing.T, o Object, field *Field) {
	has, err := field.Holds(o)
	edited, removed, removeErr := field.Remove(o)
	edits, disownErr := field.Disown(o, taker, nil)
	if disownErr == nil {
		if _, err := o.WithOwners(edits); err != nil {
			t.Errorf("%q: edits %v: %v", o.Bytes(), edits, err)
		}
	}
	if err != nil || removeErr != nil {
		return
	}
	if !has && removed > 0 {
		t.Errorf("%q: %s is not there, and was removed from %d places", o.Bytes(), field, removed)
	}
	if removed == 0 {
		return
	}
	again := parsed(t, edited.Bytes())
	if left, err := field.Holds(again); left || err != nil {
		t.Errorf("%q still holds %s, %v", edited.Bytes(), field, err)
	}
}
