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
	"bytes"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

// node is a step from an encoded message to the field of a path. What it leads to has the
// node's number in the message: once, or for each element of a list or entry of a map.
type node struct {
	number protowire.Number
	// kind is the wire type, anyKind if it is not known; lists of numbers may be packed, too.
	kind protowire.Type
	list bool
	// chosen, if not nil, selects some of the elements or entries.
	chosen *choice
	// The step leads on to next in the messages, or to text in JSON; else the path ends.
	next *node
	text []segment
	// key and owned are how managed fields name the step; element is the type of elements.
	key     string
	named   naming
	element reflect.Type

	// shown is true for the end of a path which JSON shows whatever its value is.
	shown bool
	// scalar is the kind of a text, an integer or a truth value at the end of a path, else
	// reflect.Invalid.
	scalar reflect.Kind
	// isUnset, if not nil, returns true for values that JSON omits.
	isUnset func(value []byte, kind protowire.Type) bool
	// zero replaces what is removed. It is nil for what may be absent.
	zero []byte
	// unwritten is true if a message without the number has what the path leads to: a
	// struct that is no pointer is there anyway.
	unwritten bool
}

// anyKind is the wire type of fields whose type is not known.
const anyKind protowire.Type = -1

// naming is how many parts of a path in managed fields a step is.
type naming int

const (
	// notNamed is for what the JSON form does not have: an embedded struct, the value in an
	// entry.
	notNamed naming = iota
	byKey
	byElement
	byEntry
)

// choice selects the messages in which a scalar has a value.
type choice struct {
	scalar
	wanted string
}

func (c *choice) selects(message []byte) (bool, error) {
	is, _, err := c.is(message, c.wanted)
	return is, err
}

// compile returns the node that leads from a struct to what segments name.
func compile(of reflect.Type, segments []segment) (*node, error) {
	if number := segments[0].number; number > 0 {
		return &node{number: number, kind: anyKind}, nil
	}
	if isRaw(of) {
		return &node{number: 1, kind: protowire.BytesType, text: segments}, nil
	}
	if err := checkKeys(of); err != nil {
		return nil, err
	}
	s := segments[0]
	f, ok := fieldOf(of, s.key)
	if !ok {
		return nil, fmt.Errorf("%s has no field %s with a protobuf number", of, s.key)
	}
	n, err := compileField(f, s, segments[1:])
	if err != nil {
		return nil, err
	}
	for i := len(f.embedded) - 1; i >= 0; i-- {
		n = &node{number: f.embedded[i], kind: protowire.BytesType, next: n}
		if err := n.findUnwritten(true); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// compileField returns the node for a segment. More are the segments behind it.
func compileField(f goField, s segment, more []segment) (n *node, err error) {
	n = &node{number: f.number, key: s.key, named: byKey}
	value := dereference(f.typ)
	switch s.which {
	case itself:
		if len(more) == 0 {
			return n, n.endAt(f)
		}
	case eachElement:
		if !isList(value) {
			return nil, fmt.Errorf("%s is a %s; [*] selects elements of a list", s.key, value)
		}
	case someElements:
		if !isList(value) && value.Kind() != reflect.Struct {
			return nil, fmt.Errorf("%s is a %s; [%s=%s] selects elements of a list, or a struct", s.key, value, s.name, s.value)
		}
	case eachEntry, oneEntry:
		if !isMap(value) {
			return nil, fmt.Errorf("%s is a %s; {} selects entries of a map with strings as keys", s.key, value)
		}
		return compileEntries(n, value, s, more)
	}
	isElement := s.which != itself && isList(value)
	if isElement {
		value = dereference(value.Elem())
		n.list, n.named, n.element = true, byElement, value
	}
	if s.which == someElements {
		found, err := newScalar(value, s.name)
		if err != nil {
			return nil, err
		}
		n.chosen = &choice{found, s.value}
	}
	n.kind = wireTypeOf(value)
	direct := f.typ.Kind() == reflect.Struct
	switch {
	case len(more) > 0:
		n.next, err = compile(value, more)
	case direct:
		n.zero, err = zeroField(f.typ, f.number)
	}
	if err != nil {
		return nil, err
	}
	return n, n.findUnwritten(direct)
}

// compileEntries returns the node for entries of a map. An entry is a message with the key
// as 1 and the value as 2.
func compileEntries(n *node, value reflect.Type, s segment, more []segment) (_ *node, err error) {
	n.kind, n.list, n.named = protowire.BytesType, true, byEntry
	if s.which == oneEntry {
		n.chosen = &choice{entryKey, s.name}
	}
	if len(more) == 0 {
		return n, nil
	}
	within := &node{number: 2, kind: protowire.BytesType}
	if within.next, err = compile(dereference(value.Elem()), more); err != nil {
		return nil, err
	}
	n.next = within
	return n, within.findUnwritten(value.Elem().Kind() == reflect.Struct)
}

// endAt makes the node the end of a path.
func (n *node) endAt(f goField) (err error) {
	value := dereference(f.typ)
	switch {
	case value.Kind() == reflect.Map && !isMap(value):
		return fmt.Errorf("%s is a %s; only maps with strings as keys are stored", n.key, value)
	case value.Kind() == reflect.Slice && hasEncoding(value):
		return fmt.Errorf("%s is a %s, which encodes itself", n.key, value)
	}
	n.kind, n.list = wireTypeOf(value), isList(value)
	if isComparable(value.Kind()) && !hasEncoding(value) {
		n.scalar = value.Kind()
	}
	n.shown = f.shown
	switch {
	case f.omitsZero && f.typ.Kind() == reflect.Struct:
		n.isUnset = unsetStruct(f.typ)
	case !f.shown && f.typ.Kind() != reflect.Pointer && !n.list && f.typ.Kind() != reflect.Map:
		n.isUnset = func(value []byte, kind protowire.Type) bool { return isZero(value, kind) }
	}
	n.zero, err = zeroField(f.typ, f.number)
	n.unwritten = n.shown
	return err
}

// withValue returns a copy of the nodes from n on, at the end of which only values count that
// wanted chooses, as JSON shows them. It returns nil if values are no scalars, or are shown
// where a message has none.
func (n *node) withValue(wanted func(value any) bool) *node {
	chosen := *n
	if n.next != nil {
		if chosen.next = n.next.withValue(wanted); chosen.next == nil {
			return nil
		}
		return &chosen
	}
	if n.shown || n.scalar == reflect.Invalid {
		return nil
	}
	chosen.isUnset = func(value []byte, kind protowire.Type) bool {
		return n.isUnset != nil && n.isUnset(value, kind) || !wanted(scalarValue(n.scalar, value))
	}
	return &chosen
}

// unsetStruct returns whether an encoded struct is one that JSON omits as zero.
func unsetStruct(of reflect.Type) func([]byte, protowire.Type) bool {
	return func(value []byte, _ protowire.Type) bool {
		decoded := reflect.New(of)
		if u, ok := decoded.Interface().(unmarshaler); !ok || u.Unmarshal(value) != nil {
			return false
		}
		if z, ok := decoded.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		return decoded.Elem().IsZero()
	}
}

// findUnwritten sets unwritten. Direct is true for a struct that is no pointer.
func (n *node) findUnwritten(direct bool) (err error) {
	if !direct {
		return nil
	}
	n.unwritten, err = n.leadsFrom(nil, n.kind)
	return err
}

// isIn returns whether a message has what the node leads to.
func (n *node) isIn(message []byte) (bool, error) {
	if n.shown {
		return true, nil
	}
	written := false
	f := fields{message: message}
	for {
		more, err := f.next()
		if err != nil {
			return false, err
		}
		if !more {
			return !written && n.unwritten, nil
		}
		if f.number != n.number {
			continue
		}
		written = true
		if err := n.check(&f); err != nil {
			return false, err
		}
		if has, err := n.leadsFrom(f.value(), f.kind); has || err != nil {
			return has, err
		}
	}
}

// check returns an error for a field that is not encoded as the node's type is.
func (n *node) check(f *fields) error {
	if f.kind == n.kind || n.kind == anyKind || n.list && f.kind == protowire.BytesType {
		return nil
	}
	return wrongKind(f)
}

// leadsFrom returns whether the path leads from a value of the node's number to its end.
func (n *node) leadsFrom(value []byte, kind protowire.Type) (bool, error) {
	if n.chosen != nil {
		if selected, err := n.chosen.selects(value); !selected || err != nil {
			return false, err
		}
	}
	if n.next != nil {
		return n.next.isIn(value)
	}
	return n.endsAt(value, kind)
}

// endsAt returns whether a value that a node without a next one selects is, or has, what
// the path names.
func (n *node) endsAt(value []byte, kind protowire.Type) (bool, error) {
	if n.text != nil {
		return holdsRaw(value, n.text)
	}
	return n.isUnset == nil || !n.isUnset(value, kind), nil
}

// cut appends a message without what the node leads to, and returns the number of places.
func (n *node) cut(dst, message []byte) (edited []byte, removed int, err error) {
	edited, _, err = editFields(dst, message, n.number, func(dst []byte, f *fields) ([]byte, bool, error) {
		if err := n.check(f); err != nil {
			return dst, false, err
		}
		if n.chosen != nil {
			if selected, err := n.chosen.selects(f.value()); !selected || err != nil {
				return dst, false, err
			}
		}
		if n.next == nil && n.text == nil {
			if n.isUnset != nil && n.isUnset(f.value(), f.kind) || n.zero != nil && bytes.Equal(f.message[f.begin:f.end], n.zero) {
				return dst, false, nil
			}
			if removed == 0 || n.named != byKey {
				// A list as a whole is one place.
				removed++
			}
			return append(dst, n.zero...), true, nil
		}
		return editNested(dst, f, func(dst, within []byte) (_ []byte, _ bool, err error) {
			var places int
			if n.text != nil {
				dst, places, err = cutRaw(dst, within, n.text)
			} else {
				dst, places, err = n.next.cut(dst, within)
			}
			removed += places
			return dst, places > 0, err
		})
	})
	return edited, removed, err
}
