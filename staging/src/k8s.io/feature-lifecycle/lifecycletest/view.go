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
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Object is one object of a view and the resource it belongs to.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupResource
	// Key and Revision are those of its bytes, if the view is of what is stored.
	Key      string
	Revision int64
	// MediaType is how the bytes are encoded, "" if that is not known.
	MediaType string
}

// ID names the object among all of a cluster.
func (o Object) ID() string {
	return o.Resource.String() + " " + name(o.GetNamespace(), o.GetName())
}

// View is what finders see of a cluster in one moment: it reads and never
// writes.
type View struct {
	Objects []Object
	mapper  meta.ResettableRESTMapper
	// convert returns an object in another version; nil where objects have the
	// version that tasks ask for.
	convert func(*unstructured.Unstructured, schema.GroupVersion) (*unstructured.Unstructured, error)
}

// NewView makes a view of objects. Convert may be nil where they have the
// versions that tasks ask for.
func NewView(objects []Object, mapper meta.ResettableRESTMapper, convert func(*unstructured.Unstructured, schema.GroupVersion) (*unstructured.Unstructured, error)) *View {
	return &View{Objects: objects, mapper: mapper, convert: convert}
}

// Clients let the finders of tasks read the view.
func (v *View) Clients() task.Clients {
	return task.Clients{Dynamic: viewDynamic{v}, Mapper: v.mapper, Storage: viewStorage{v}}
}

// Of returns the objects of a resource.
func (v *View) Of(resource schema.GroupResource) []Object {
	var found []Object
	for _, object := range v.Objects {
		if object.Resource == resource {
			found = append(found, object)
		}
	}
	return found
}

// ByID returns all objects by their IDs.
func (v *View) ByID() map[string]Object {
	byID := map[string]Object{}
	for _, object := range v.Objects {
		byID[object.ID()] = object
	}
	return byID
}

// only returns the view of some of the objects.
func (v *View) only(wanted func(*unstructured.Unstructured) bool) *View {
	objects := slices.DeleteFunc(slices.Clone(v.Objects), func(o Object) bool { return !wanted(o.Unstructured) })
	return &View{Objects: objects, mapper: v.mapper, convert: v.convert}
}

// withoutAll returns the view without what cases made.
func (v *View) withoutAll(cases []*Case) *View {
	made := map[types.UID]bool{}
	for _, c := range cases {
		for _, object := range c.Own(v).Objects {
			made[object.GetUID()] = true
		}
	}
	return v.only(func(object *unstructured.Unstructured) bool { return !made[object.GetUID()] })
}

// with returns the view and what another has beside it.
func (v *View) with(other *View) *View {
	objects := slices.Clone(v.Objects)
	here := v.ByID()
	for _, object := range other.Objects {
		if _, ok := here[object.ID()]; !ok {
			objects = append(objects, object)
		}
	}
	return &View{Objects: objects, mapper: v.mapper, convert: v.convert}
}

// describe names the objects of the resources that a task looks at.
func (v *View) describe(t task.Task) string {
	var names []string
	for _, field := range t.Fields {
		for _, object := range v.Of(field.Resource) {
			if !slices.Contains(names, object.ID()) {
				names = append(names, object.ID())
			}
		}
	}
	if len(names) == 0 {
		return "the fixture has no object of the resource"
	}
	return "it has " + strings.Join(names, ", ")
}

// in returns an object in a version.
func (v *View) in(object *unstructured.Unstructured, version schema.GroupVersion) (*unstructured.Unstructured, error) {
	if v.convert == nil || object.GroupVersionKind().GroupVersion() == version {
		return object.DeepCopy(), nil
	}
	return v.convert(object, version)
}

type viewStorage struct{ view *View }

var _ task.Storage = viewStorage{}

func (s viewStorage) List(_ context.Context, resource schema.GroupResource, _ int64, _ string) ([]task.StoredObject, string, error) {
	var page []task.StoredObject
	for _, object := range s.view.Of(resource) {
		page = append(page, task.StoredObject{
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), Finalizers: object.GetFinalizers(),
			Key: object.Key, Revision: object.Revision, APIVersion: object.GetAPIVersion(),
		})
	}
	return page, "", nil
}

// ListHolding returns none: a view has objects as this version decodes them, without the
// fields that it does not have.
func (viewStorage) ListHolding(context.Context, task.RemovedField, int64, string) ([]task.StoredObject, string, error) {
	return nil, "", nil
}

func (viewStorage) Delete(context.Context, schema.GroupResource, task.StoredObject) error {
	return errReadOnly
}

func name(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
