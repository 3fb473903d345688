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
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is a field of the objects of one resource version. It is immutable and safe for
// concurrent use.
type Field struct {
	path     string
	segments []segment
	// within leads to the field in the message that an object is, nil for a type that is not
	// known: its objects are stored as JSON.
	within *node
	// owned is what the text of every set has that owns the field, nil if that is not known.
	owned []byte
}

// NewField returns the field of a type with a path, which is written as for task.ParsePath.
// Typ is the struct of the API version in which the objects are stored, for example
// reflect.TypeFor[appsv1.StatefulSet](); nil for custom resources, which are JSON. It is
// an error if the type has no such field, or if bytes do not show what the path selects.
// Callers pass only objects of this version (Object.Is).
func NewField(typ reflect.Type, path string) (*Field, error) {
	segments, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	f := &Field{path: path, segments: segments, owned: ownedName(segments)}
	if typ == nil {
		return f, nil
	}
	if f.within, err = compile(dereference(typ), segments); err != nil {
		return nil, fmt.Errorf("%s in objects of type %s: %w", path, typ, err)
	}
	return f, nil
}

// NewRemovedField returns a field that a type does not have any more, to look for it alone
// (Holds). Path is the one that it had, and number its protobuf number in the message that the
// path leads to. It is an error if the type does not have that message.
func NewRemovedField(typ reflect.Type, path string, number int) (*Field, error) {
	segments, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	segments[len(segments)-1].number = protowire.Number(number)
	f := &Field{path: path, segments: segments}
	if f.within, err = compile(dereference(typ), segments); err != nil {
		return nil, fmt.Errorf("%s, which objects of type %s had: %w", path, typ, err)
	}
	return f, nil
}

// String returns the path as it was written.
func (f *Field) String() string { return f.path }

// Holds returns whether an object has the field, as the paths of package task find it in
// what the API shows without defaults. Null counts. So does zero where JSON does not omit
// it: such a field is there whatever is removed.
func (f *Field) Holds(o Object) (bool, error) {
	if o.encoding == jsonText {
		return holdsText(o.body, skipSpace(o.body, 0), f.segments)
	}
	if f.within == nil {
		return false, f.unknownType(o)
	}
	return f.within.isIn(o.body)
}

// WithValue returns the field for protobuf objects in which it has a value that wanted
// chooses, as the API shows it: a string, an int64 or a bool. It returns nil if bytes do not
// show values of the field so.
func (f *Field) WithValue(wanted func(value any) bool) *Field {
	if f.within == nil {
		return nil
	}
	chosen := *f
	if chosen.within = f.within.withValue(wanted); chosen.within == nil {
		return nil
	}
	return &chosen
}

// AlwaysShown returns true if the API shows the field in each object that has what is
// around it, null if it has no value.
func (f *Field) AlwaysShown() bool {
	for n := f.within; n != nil; n = n.next {
		if n.shown {
			return true
		}
	}
	return false
}

// Remove removes the field from an object wherever it is, and returns the number of
// places. All other bytes stay. An object that has nothing to remove is returned as it is,
// with 0. What cannot be absent is set to zero: then the server encodes the same.
func (f *Field) Remove(o Object) (edited Object, removed int, err error) {
	if o.encoding == jsonText {
		at := skipSpace(o.body, 0)
		has, err := holdsText(o.body, at, f.segments)
		if !has || err != nil {
			return o, 0, err
		}
		body := append(make([]byte, 0, len(o.body)), o.body[:at]...)
		body, end, removed, err := cutText(body, o.body, at, f.segments)
		if removed == 0 || err != nil {
			return o, 0, err
		}
		return o.withBody(append(body, o.body[end:]...)), removed, nil
	}
	if f.within == nil {
		return o, 0, f.unknownType(o)
	}
	if has, err := f.within.isIn(o.body); !has || err != nil {
		return o, 0, err
	}
	body, removed, err := f.within.cut(make([]byte, 0, len(o.body)), o.body)
	if removed == 0 || err != nil {
		return o, 0, err
	}
	return o.withBody(body), removed, nil
}

// unknownType returns the error of protobuf without a type that shows its numbers.
func (f *Field) unknownType(o Object) error {
	return fmt.Errorf("%s is stored as protobuf, and the field %s was made without its Go type; pass it to NewField", o.Kind(), f.path)
}
