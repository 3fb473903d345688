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
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// Search implements task.Editor. It looks for all fields in one walk through the bytes of an
// object, and decodes those objects alone that have a field whose value counts.
func (e *editor) Search(ctx context.Context, resource schema.GroupVersionResource, namespace string, searches []task.FieldSearch, found func(search int, object task.FoundObject)) (read int64, err error) {
	at, err := e.served(resource.GroupResource())
	if err != nil {
		return 0, err
	}
	together, err := e.together(resource, searches)
	if err != nil {
		return 0, throughAPI(err)
	}
	pages := newStoredPages(at, namespace)
	for from, done := "", false; !done; done = from == "" {
		var objects int64
		objects, _, from, err = pages.read(ctx, from, func(object storedObject) error {
			if err := together.search(at, object, found); err != nil {
				return throughAPI(fmt.Errorf("the stored object %s: %w", object.key, err))
			}
			return nil
		})
		if err != nil {
			return read, err
		}
		read += objects
	}
	return read, nil
}

// searches are made together, in one walk. They are not safe for concurrent use.
type searches struct {
	of []task.FieldSearch
	// kinds are those of all fields of all searches in a row, and versions has the fields in
	// each version in which objects are stored.
	kinds    []kinds
	versions map[storedAs]*versionFields
	// held is for the object that is searched.
	held []bool
}

// storedAs is how an object is stored.
type storedAs struct {
	apiVersion, kind string
	isJSON           bool
}

// versionFields are the fields of searches in one version.
type versionFields struct {
	set *rawobject.FieldSet
	// exact is true for fields of which bytes show all that is wanted. The others are looked
	// at as the API shows them.
	exact []bool
}

func (e *editor) together(resource schema.GroupVersionResource, of []task.FieldSearch) (*searches, error) {
	s := &searches{of: of, versions: map[storedAs]*versionFields{}}
	for _, one := range of {
		for _, field := range one.Fields {
			kinds, err := e.kinds(resource, field.Path)
			if err != nil {
				return nil, err
			}
			s.kinds = append(s.kinds, kinds)
		}
	}
	s.held = make([]bool, len(s.kinds))
	return s, nil
}

// version returns the fields in the version of an object.
func (s *searches) version(object rawobject.Object) (*versionFields, error) {
	kind := storedAs{object.APIVersion(), object.Kind(), object.IsJSON()}
	if v, ok := s.versions[kind]; ok {
		return v, nil
	}
	v := &versionFields{}
	var fields []*rawobject.Field
	for _, one := range s.of {
		for _, wanted := range one.Fields {
			field, err := s.kinds[len(fields)].field(kind.apiVersion, kind.kind)
			if err != nil {
				return nil, err
			}
			field, exact := inBytes(field, wanted, object.IsJSON())
			fields, v.exact = append(fields, field), append(v.exact, exact)
		}
	}
	v.set = rawobject.NewFieldSet(fields)
	s.versions[kind] = v
	return v, nil
}

// inBytes returns the field that is looked for in bytes, and whether objects that have it
// need no other look.
func inBytes(field *rawobject.Field, wanted task.SearchedField, isJSON bool) (sought *rawobject.Field, exact bool) {
	switch {
	case wanted.Wanted == nil:
		// Protobuf has no null; the API shows it for what it always shows.
		return field, !wanted.NotNull || !isJSON && !field.AlwaysShown()
	case !isJSON:
		if valued := field.WithValue(wanted.Wanted); valued != nil {
			return valued, true
		}
	}
	return field, false
}

// object returns a stored object and the fields in its version, or in that of the paths if
// bytes do not show all of them.
func (s *searches) object(at place, stored storedObject) (rawobject.Object, *versionFields, error) {
	object, err := rawobject.Parse(stored.plain)
	if err == nil {
		var version *versionFields
		if version, err = s.version(object); err == nil {
			return object, version, nil
		}
	}
	if len(s.kinds) == 0 {
		return object, nil, err
	}
	object, errConverted := s.kinds[0].converted(at, stored.plain)
	if errConverted != nil {
		return object, nil, errors.Join(err, errConverted)
	}
	version, err := s.version(object)
	return object, version, err
}

// search calls found for the searches that a stored object matches.
func (s *searches) search(in place, stored storedObject, found func(search int, object task.FoundObject)) error {
	raw, version, err := s.object(in, stored)
	if err != nil {
		return err
	}
	if err := version.set.Hold(raw, s.held); err != nil {
		return err
	}
	object := &searched{at: in, key: stored.key, raw: raw}
	at := 0
	for i, one := range s.of {
		matches, err := s.matches(one.Fields, at, version, object)
		if err == nil && matches && one.Uncontrolled {
			var controlled bool
			controlled, err = isControlled(object.raw)
			matches = !controlled
		}
		if err != nil {
			return err
		}
		if matches {
			found(i, object)
		}
		at += len(one.Fields)
	}
	return nil
}

// matches returns whether an object has one of some fields, the first of which is at an
// index of all, with a value that counts.
func (s *searches) matches(fields []task.SearchedField, at int, version *versionFields, object *searched) (bool, error) {
	for i, field := range fields {
		if !s.held[at+i] {
			continue
		}
		if version.exact[at+i] {
			return true, nil
		}
		content, err := object.decoded(s.kinds[at+i])
		if err != nil {
			return false, err
		}
		if in, err := field.In(content); in || err != nil {
			return in, err
		}
	}
	return false, nil
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
