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

package operator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// TestClearingAFieldReadsNoWholeObjectsBack: answers to patches are metadata alone, as
// in kube-apiserver, and the client has no limit of its own.
func TestClearingAFieldReadsNoWholeObjectsBack(t *testing.T) {
	var patched []string
	object := map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "widgets", "name": "a", "uid": "1", "resourceVersion": "1"},
		"spec":     map[string]any{"color": "red"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": map[string]any{"resourceVersion": "2"}, "items": []any{object}}
		if r.Method == http.MethodPatch {
			patched = append(patched, r.Header.Get("Accept"))
			delete(object, "spec")
			answer = map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	c, err := connect(&rest.Config{Host: server.URL, QPS: 1, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c.tasks.Metadata == nil {
		t.Fatal("there is no client of metadata")
	}
	if err := lifecycle.ClearField(widgets, "spec.color").Run(t.Context(), c.tasks, task.Attempt{Report: func(task.Progress) {}}); err != nil {
		t.Fatal(err)
	}
	if len(patched) != 1 || !strings.Contains(patched[0], "as=PartialObjectMetadata") {
		t.Errorf("patches accept %q, want one that asks for metadata", patched)
	}
}
