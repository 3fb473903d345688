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

package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// errReadOnly is what everything but reading answers.
var errReadOnly = errors.New("a view of a moment cannot be written; finders must only read, or try to apply with DryRun")

// viewDynamic reads a view.
type viewDynamic struct{ view *View }

func (d viewDynamic) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return viewResource{view: d.view, resource: resource}
}

// viewResource reads the objects of a resource. It tells what a write would do only where
// finders ask for that: Apply with DryRun.
type viewResource struct {
	view      *View
	resource  schema.GroupVersionResource
	namespace string
}

func (r viewResource) Namespace(namespace string) dynamic.ResourceInterface {
	r.namespace = namespace
	return r
}

func (r viewResource) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	for _, object := range r.view.Of(r.resource.GroupResource()) {
		if r.namespace != "" && object.GetNamespace() != r.namespace || !selector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		converted, err := r.view.in(object.Unstructured, r.resource.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.ID(), err)
		}
		list.Items = append(list.Items, *converted)
	}
	return list, nil
}

func (r viewResource) Get(ctx context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return &list.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(r.resource.GroupResource(), name)
}

// Apply returns what applying an object would make of the one in the view, and supports
// DryRun alone. A view knows no schema: fields that are applied count, and what the server
// fills in beside them does not. The owners of fields are not known either, so there are no
// conflicts, and no field is removed because it is no longer applied.
func (r viewResource) Apply(ctx context.Context, name string, applied *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string) (*unstructured.Unstructured, error) {
	if !slices.Contains(options.DryRun, metav1.DryRunAll) || len(subresources) > 0 {
		return nil, errReadOnly
	}
	is, err := r.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return applied.DeepCopy(), nil
	}
	if err != nil {
		return nil, err
	}
	is.Object, _ = with(is.Object, runtime.DeepCopyJSONValue(applied.Object)).(map[string]any)
	return is, nil
}

// with returns a value after another one was applied to it. How lists merge is not known:
// one that has all that is applied stays, and any other is replaced.
func with(is, applied any) any {
	if has(is, applied) {
		return is
	}
	fields, ok := applied.(map[string]any)
	merged, alike := is.(map[string]any)
	if !ok || !alike {
		return applied
	}
	for key, value := range fields {
		merged[key] = with(merged[key], value)
	}
	return merged
}

// has returns true for a value that applying another one would not change.
func has(is, applied any) bool {
	switch wanted := applied.(type) {
	case nil:
		return is == nil
	case map[string]any:
		fields, ok := is.(map[string]any)
		if !ok {
			// Empty maps are not stored.
			return is == nil && len(wanted) == 0
		}
		for key, value := range wanted {
			if !has(fields[key], value) {
				return false
			}
		}
		return true
	case []any:
		items, ok := is.([]any)
		if !ok {
			return is == nil && len(wanted) == 0
		}
		return hasItems(items, wanted)
	default:
		return number(is) == number(applied)
	}
}

// hasItems returns true for a list that has the items of another one, in their order. Most
// lists of objects have keys, by which others add objects of their own in between. Most
// other lists belong to one applier.
func hasItems(items, applied []any) bool {
	if len(applied) == 0 {
		return len(items) == 0
	}
	next := 0
	for _, wanted := range applied {
		_, object := wanted.(map[string]any)
		for object && next < len(items) && !has(items[next], wanted) {
			next++
		}
		if next == len(items) || !has(items[next], wanted) {
			return false
		}
		next++
	}
	_, objects := applied[0].(map[string]any)
	return objects || next == len(items)
}

// number returns a value in the form in which numbers of manifests and of answers are equal.
func number(value any) any {
	if whole, ok := value.(int64); ok {
		return float64(whole)
	}
	return value
}

var _ dynamic.NamespaceableResourceInterface = viewResource{}

// Create cannot be done.
func (viewResource) Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}

// Update cannot be done.
func (viewResource) Update(context.Context, *unstructured.Unstructured, metav1.UpdateOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}

// UpdateStatus cannot be done.
func (viewResource) UpdateStatus(context.Context, *unstructured.Unstructured, metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}

// Delete cannot be done.
func (viewResource) Delete(context.Context, string, metav1.DeleteOptions, ...string) error {
	return errReadOnly
}

// DeleteCollection cannot be done.
func (viewResource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return errReadOnly
}

// Watch cannot be done: nothing happens in a moment.
func (viewResource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errReadOnly
}

// Patch cannot be done.
func (viewResource) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}

// ApplyStatus cannot be done.
func (viewResource) ApplyStatus(context.Context, string, *unstructured.Unstructured, metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return nil, errReadOnly
}
