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

package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// Search implements task.Editor. It looks for fields in the bytes of objects, and decodes
// those alone that have one whose value counts.
func (e *editor) Search(ctx context.Context, resource schema.GroupVersionResource, namespace string, searches []task.FieldSearch, found func(search int, object task.FoundObject)) error {
	at, err := e.served(resource.GroupResource())
	if err != nil {
		return err
	}
	compiled := make([]search, len(searches))
	for i, s := range searches {
		if compiled[i], err = e.search(resource, s); err != nil {
			return throughAPI(err)
		}
	}
	pages := newStoredPages(at, namespace)
	for from, done := "", false; !done; done = from == "" {
		_, _, from, err = pages.read(ctx, from, func(object storedObject) error {
			raw, err := parsed(object)
			if err != nil {
				return err
			}
			return searchObject(&searched{at: at, key: object.key, raw: raw}, compiled, found)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// search is a search in the versions in which objects are stored.
type search struct {
	fields       []searchedField
	uncontrolled bool
}

type searchedField struct {
	task.SearchedField
	*fieldVersions
}

func (e *editor) search(resource schema.GroupVersionResource, of task.FieldSearch) (search, error) {
	s := search{uncontrolled: of.Uncontrolled}
	for _, field := range of.Fields {
		kinds, err := e.kinds(resource, field.Path)
		if err != nil {
			return s, err
		}
		s.fields = append(s.fields, searchedField{field, newFieldVersions(kinds)})
	}
	return s, nil
}

// searchObject calls found for the searches that an object matches. One that cannot be
// searched leaves all to the API.
func searchObject(object *searched, searches []search, found func(search int, object task.FoundObject)) error {
	for i, s := range searches {
		matches, err := s.matches(object)
		switch {
		case err != nil:
			return throughAPI(fmt.Errorf("the stored object %s: %w", object.key, err))
		case matches:
			found(i, object)
		}
	}
	return nil
}

func (s search) matches(object *searched) (bool, error) {
	for _, field := range s.fields {
		matches, err := field.matches(object)
		if err != nil {
			return false, err
		}
		if matches {
			return s.counts(object)
		}
	}
	return false, nil
}

// counts returns false for an object that a search with a match leaves out.
func (s search) counts(object *searched) (bool, error) {
	if !s.uncontrolled {
		return true, nil
	}
	controlled, err := isControlled(object.raw)
	return !controlled, err
}

func (f searchedField) matches(object *searched) (bool, error) {
	field, err := f.field(object.raw)
	if err != nil {
		return false, err
	}
	holds, err := field.Holds(object.raw)
	if err != nil || !holds {
		return false, err
	}
	// Protobuf has no null; the API shows it for what it always shows.
	if f.Wanted == nil && (!f.NotNull || !object.raw.IsJSON() && !field.AlwaysShown()) {
		return true, nil
	}
	content, err := object.decoded(f.kinds)
	if err != nil {
		return false, err
	}
	return f.In(content)
}

// searched is a stored object that is being searched.
type searched struct {
	at  place
	key string
	raw rawobject.Object
	// content is the object as the API shows it, once it is needed.
	content map[string]any
}

func (s *searched) decoded(kinds kinds) (map[string]any, error) {
	if s.content != nil {
		return s.content, nil
	}
	var err error
	s.content, err = kinds.content(s.raw)
	return s.content, err
}

// Namespace implements task.FoundObject.
func (s *searched) Namespace() string { return s.at.keyed(s.key).Namespace }

// Name implements task.FoundObject.
func (s *searched) Name() string { return s.at.keyed(s.key).Name }

// UID implements task.FoundObject; "" if the bytes have none.
func (s *searched) UID() types.UID {
	metadata, err := s.raw.Metadata()
	if err != nil {
		return ""
	}
	return metadata.UID
}
