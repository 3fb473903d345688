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
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Storage reads and deletes stored data without the API. A collection whose API was
// removed, or whose bytes no server can decode any more, cannot be reached otherwise.
// Implementations are safe for concurrent use.
type Storage interface {
	// List returns a page of at most limit stored objects of a resource, in the order of
	// their keys, and where the next page begins, "" when there is none.
	List(ctx context.Context, resource schema.GroupResource, limit int64, from string) (page []StoredObject, next string, err error)
	// ListHolding returns those of a page of at most limit stored objects whose bytes hold a
	// field that this server's types do not have, and where the next page begins. A page
	// may be empty although others follow. Only Namespace, Name, Key, Revision
	// and UID of the objects are set: none is decoded for more. Bytes in which the field cannot be
	// looked for are an error that names the object.
	ListHolding(ctx context.Context, field RemovedField, limit int64, from string) (page []StoredObject, next string, err error)
	// Delete removes the bytes of one object if they are still those that were listed. It
	// does not go through the API: no admission, no finalizers, which callers check, no
	// audit. A missing object is no error; a changed one is a conflict
	// (apierrors.IsConflict).
	Delete(ctx context.Context, resource schema.GroupResource, object StoredObject) error
}

// StoredObject is one stored object. It does not have the bytes themselves, nor anything
// that refers to them: tasks keep whole collections of these, some for days.
type StoredObject struct {
	// Namespace and Name are those of its key; Namespace is "" for resources
	// without namespaces.
	Namespace, Name string
	// Key and Revision identify the bytes.
	Key      string
	Revision int64
	// UID and Finalizers are those of the object's metadata; empty where the bytes do not
	// have them.
	UID        types.UID
	Finalizers []string
	// Unreadable is the reason why the bytes do not decode, nil when they do. It must not
	// quote them.
	Unreadable error
	// Outdated is true when the bytes decode and are of another API version than the
	// server writes now. For custom resources it is unknown here: their definition has the
	// version that is written.
	Outdated bool
	// APIVersion is that of the bytes of a custom resource, "" for others.
	APIVersion string
}

// storedPageSize is the number of stored objects that one read returns.
const storedPageSize = 100

// eachStored calls visit for every stored object of a resource.
func eachStored(ctx context.Context, storage Storage, resource schema.GroupResource, visit func(StoredObject) error) error {
	return eachInPages(visit, func(from string) ([]StoredObject, string, error) {
		return storage.List(ctx, resource, storedPageSize, from)
	})
}

// eachHolding calls visit for every stored object that holds a field.
func eachHolding(ctx context.Context, storage Storage, field RemovedField, visit func(StoredObject) error) error {
	return eachInPages(visit, func(from string) ([]StoredObject, string, error) {
		return storage.ListHolding(ctx, field, storedPageSize, from)
	})
}

// eachInPages calls visit for every object of pages, the first of which begins at "".
func eachInPages(visit func(StoredObject) error, list func(from string) ([]StoredObject, string, error)) error {
	for from := ""; ; {
		page, next, err := list(from)
		if err != nil {
			return err
		}
		for _, object := range page {
			if err := visit(object); err != nil {
				return err
			}
		}
		if from = next; from == "" {
			return nil
		}
	}
}
