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

package task_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// A task finds what a feature leaves behind, and removes it. The server flow runs tasks;
// here one runs by itself, on a fake cluster with one Widget.
func ExampleClearField() {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	round := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "round", "namespace": "default", "uid": "1", "resourceVersion": "1"},
		"spec": map[string]any{"size": int64(3), "color": "red"},
	}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(widgets.GroupVersion().WithKind("Widget"), meta.RESTScopeNamespace)
	clients := task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), round), Mapper: static{mapper}}

	var cleared int64
	clear := task.ClearField(widgets, "spec.color")
	if err := clear.Run(context.Background(), clients, task.Attempt{Report: func(p task.Progress) { cleared = p.Done }}); err != nil {
		fmt.Println(err)
	}
	left, err := clients.Dynamic.Resource(widgets).Namespace("default").Get(context.Background(), "round", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cleared, "cleared:", left.Object["spec"])
	// Output:
	// 1 cleared: map[size:3]
}

// static is a mapper that has nothing to forget.
type static struct{ meta.RESTMapper }

func (static) Reset() {}
