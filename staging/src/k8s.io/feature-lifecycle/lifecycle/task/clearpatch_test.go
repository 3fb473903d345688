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
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestClearFieldWithMorePlacesThanAPatchMayHave: kube-apiserver takes 10,000 operations.
func TestClearFieldWithMorePlacesThanAPatchMayHave(t *testing.T) {
	for _, n := range []int{maxOperations - 3, maxOperations - 2, maxOperations - 1, maxOperations + 50} {
		for _, text := range []string{"spec.list[*].field", "spec.list[field=x]", "spec.list[*].in{*}.field"} {
			object, want := widget("a", ""), widget("a", "")
			var list, left []any
			for i := range n {
				element := map[string]any{"field": "x", "n": int64(i), "in": map[string]any{"/~": map[string]any{"field": "x"}}}
				list = append(list, element)
				switch text {
				case "spec.list[*].field":
					left = append(left, map[string]any{"n": int64(i), "in": element["in"]})
				case "spec.list[*].in{*}.field":
					left = append(left, map[string]any{"field": "x", "n": int64(i), "in": map[string]any{"/~": map[string]any{}}})
				}
			}
			if left == nil {
				left = []any{}
			}
			object.Object["spec"].(map[string]any)["list"] = list
			want.Object["spec"].(map[string]any)["list"] = left
			path, err := ParsePath(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Object, applied(t, clearField{path: path}, object.Object)); diff != "" {
				t.Errorf("%s from %d elements (-want +got):\n%.2000s", text, n, diff)
			}
		}
	}
}

// TestReplacementMinimal: what is beside the places is not sent.
func TestReplacementMinimal(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"beside": "x"}}
	for i := range 3 {
		object["spec"].(map[string]any)[strconv.Itoa(i)] = map[string]any{"list": []any{map[string]any{"a": "x"}, map[string]any{"a": "x", "b": "x"}}}
	}
	for text, want := range map[string]jsonPatchOperation{
		"spec{1}.list[*].a": {Op: "replace", Path: "/spec/1/list", Value: []any{map[string]any{}, map[string]any{"b": "x"}}},
		"spec{1}.list[a=x]": {Op: "replace", Path: "/spec/1/list", Value: []any{}},
		"spec{*}.list[b=x].a": {Op: "replace", Path: "/spec", Value: map[string]any{
			"beside": "x",
			"0":      map[string]any{"list": []any{map[string]any{"a": "x"}, map[string]any{"b": "x"}}},
			"1":      map[string]any{"list": []any{map[string]any{"a": "x"}, map[string]any{"b": "x"}}},
			"2":      map[string]any{"list": []any{map[string]any{"a": "x"}, map[string]any{"b": "x"}}},
		}},
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		got := clearField{path: path}.removals(&unstructured.Unstructured{Object: object}, 1)
		if diff := cmp.Diff([]jsonPatchOperation{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
