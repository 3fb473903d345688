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
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// v2 is the version that is served, while v1, for which tasks are declared, is not.
var v2 = widgets.GroupResource().WithVersion("v2")

// servedElsewhere returns a server that serves widgets in v2 alone.
func servedElsewhere(objects ...*unstructured.Unstructured) *wire {
	s := &server{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList", v2: "WidgetList", crds: "CustomResourceDefinitionList"})}
	for _, o := range objects {
		resource := crds
		if o.GetKind() == "Widget" {
			o.SetAPIVersion(v2.GroupVersion().String())
			resource = v2
		}
		if err := s.Tracker().Create(resource, o, o.GetNamespace()); err != nil {
			panic(err)
		}
	}
	s.PrependReactor("*", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetResource() == v2 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewNotFound(widgets.GroupResource(), "")
	})
	return &wire{server: s}
}

// definitionWith defines widgets whose served version has properties of spec.
func definitionWith(properties map[string]any) *unstructured.Unstructured {
	definition := widgetDefinition()
	definition.Object["spec"] = map[string]any{"versions": []any{
		map[string]any{"name": "v1"},
		map[string]any{"name": "v2", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{
			"spec": map[string]any{"properties": properties},
		}}}},
	}}
	return definition
}

// TestAnyVersionWithFieldsUsed: which one is served is the cluster's business.
func TestAnyVersionWithFieldsUsed(t *testing.T) {
	has := func(resource schema.GroupVersionResource, path string) bool {
		return resource == v2 && path == "spec.field"
	}
	hasNot := func(schema.GroupVersionResource, string) bool { return false }
	const blocked = "widgets.example.com is served in v2 and not in v1, and objects are there that show no spec.field in it: "
	for name, tc := range map[string]struct {
		objects  []*unstructured.Unstructured
		field    string
		hasField func(schema.GroupVersionResource, string) bool
		storage  Storage
		// found is the number of objects that a finder sees. says is in the message while it
		// waits for the declared version, "" if it sees the field in the other.
		found int64
		says  []string
		wrong string
	}{
		"metadata is the same in all":           {objects: []*unstructured.Unstructured{widget("a", "x")}, field: "metadata.uid", found: 1},
		"a built-in resource with the field":    {objects: []*unstructured.Unstructured{widget("a", "x"), widget("b", "")}, field: "spec.field", hasField: has, found: 1},
		"a built-in resource without the field": {objects: []*unstructured.Unstructured{widget("a", "x")}, field: "spec.field", hasField: hasNot, storage: store(), says: []string{blocked + "serve it again (--runtime-config=example.com/v1=true"}, wrong: "declare"},
		"nothing is there":                      {field: "spec.field", hasField: hasNot},
		"a custom resource with the field":      {objects: []*unstructured.Unstructured{widget("a", "x"), definitionWith(map[string]any{"field": map[string]any{}})}, field: "spec.field", found: 1},
		"a custom resource without the field":   {objects: []*unstructured.Unstructured{widget("a", "x"), definitionWith(map[string]any{"other": map[string]any{}})}, field: "spec.field", says: []string{blocked + "let its definition serve v1", "or declare the task for v2"}, wrong: "--runtime-config"},
	} {
		t.Run(name, func(t *testing.T) {
			waiting, clearing := WaitForNone(widgets, "something", tc.field), ClearField(widgets, tc.field)
			w := servedElsewhere(tc.objects...)
			clients := Clients{Dynamic: w, Mapper: mapperOf(v2.GroupVersion().WithKind("Widget")), HasField: tc.hasField, Storage: tc.storage}
			for _, of := range []Task{waiting, clearing} {
				found, err := of.Find(t.Context(), clients)
				var sum int64
				for _, f := range found {
					sum += f.Count
				}
				if sum != tc.found || (err != nil) != (tc.says != nil) {
					t.Errorf("%s: found %v, %v, want %d and an error: %t", of.Name, found, err, tc.found, tc.says != nil)
				}
				var blocked *BlockedError
				err = of.Run(t.Context(), clients, ignored)
				if tc.says == nil {
					continue
				}
				if !errors.As(err, &blocked) || blocked.Until == nil || strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("%s: %v is no block that does not say %q", of.Name, err, tc.wrong)
				}
				for _, text := range tc.says {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %v does not say %q", of.Name, err, text)
					}
				}
			}
			if tc.field == "spec.field" && tc.says == nil {
				if found, err := clearing.Find(t.Context(), clients); err != nil || len(found) > 0 {
					t.Errorf("after clearing %v is found, %v", found, err)
				}
			}
			w.permitted(t, clearing)
		})
	}
}

func TestPathsInSchemas(t *testing.T) {
	object := func(properties map[string]any) map[string]any { return map[string]any{"properties": properties} }
	schema := object(map[string]any{"spec": object(map[string]any{
		"list": map[string]any{"items": object(map[string]any{"a": map[string]any{}})},
		"map":  map[string]any{"additionalProperties": object(map[string]any{"a": map[string]any{}})},
		"one":  object(map[string]any{"a": map[string]any{}}),
		"any":  map[string]any{"x-kubernetes-preserve-unknown-fields": true},
	})})
	for text, want := range map[string]bool{
		"spec.list[*].a": true, "spec.list[a=b].a": true, "spec.list[*].b": false, "spec.list.a": false, "spec.one[*].a": false,
		"spec.map{*}.a": true, "spec.map{x.y/z}.a": true, "spec.map{*}.b": false, "spec.one{a}": true, "spec.one{b}": false,
		"spec.one[a=b].a": true, "spec.any.x.y": true, "spec.any[*].x": true, "spec.none": false, "status.x": false,
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := !definedIn(schema, path.segments).absent; got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}
