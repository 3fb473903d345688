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
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Errors of Disown. The field has to be removed through the API, which leaves managed
// fields as package task has them.
var (
	// ErrOtherVersion is returned if fields are owned in a version that does not have the
	// path, where another may be the same field.
	ErrOtherVersion = errors.New("fields are owned in an API version that does not have the path; write it through the API")
	// ErrUnfinished is returned for what an attempt through the API has left between its two
	// writes (ownership.go of package task).
	ErrUnfinished = errors.New("its managed fields are those of an unfinished attempt through the API; finish it there")
)

// owner is one entry of managed fields, as it is encoded.
type owner struct {
	manager, operation, apiVersion []byte
	// fields is what it owns, as JSON.
	fields []byte
}

// OwnerEdit changes one entry of an object's managed fields.
type OwnerEdit struct {
	// Index is that of the entry.
	Index int
	// Fields replace what the entry owns, as JSON; nil removes the entry.
	Fields []byte
}

// Disown returns how managed fields change if the field is removed from an object, given
// as it is before that. Owners lose what is removed, and all that is in it. An owner of
// something that contains the field keeps it, as a list that is one value. No owner gains,
// and times stay. HasField returns whether the path exists in another API version; what is
// owned in one that has it is the same field. Taker is the manager that writes of the flow
// through the API leave. An error means that the API has to be used.
func (f *Field) Disown(o Object, taker string, hasField func(apiVersion string) bool) ([]OwnerEdit, error) {
	owners, err := o.owners()
	if err != nil {
		return nil, err
	}
	w := whereabouts{field: f, object: o}
	var edits []OwnerEdit
	for i, owner := range owners {
		if unfinished, err := owner.unfinished(taker); unfinished || err != nil {
			return nil, cmp.Or(err, ErrUnfinished)
		}
		if len(owner.fields) == 0 || string(owner.fields) == "{}" {
			continue
		}
		if !bytes.Equal(owner.apiVersion, o.apiVersion) && (hasField == nil || !hasField(string(owner.apiVersion))) {
			return nil, ErrOtherVersion
		}
		if !bytes.Contains(owner.fields, f.owned) {
			continue
		}
		left, changed, err := w.without(owner)
		if err != nil {
			return nil, err
		}
		if changed {
			edits = append(edits, OwnerEdit{Index: i, Fields: left})
		}
	}
	return edits, nil
}

// IsUnfinished returns true for an object with managed fields for which Disown returns
// ErrUnfinished, whether or not it has a field.
func (o Object) IsUnfinished(taker string) (bool, error) {
	if !bytes.Contains(o.body, []byte(taker)) {
		return false, nil
	}
	owners, err := o.owners()
	for _, owner := range owners {
		if unfinished, err := owner.unfinished(taker); unfinished || err != nil {
			return unfinished, err
		}
	}
	return false, err
}

// ownedName returns how managed fields write the last name of a path. Names with
// characters that JSON may escape are not looked for.
func ownedName(segments []segment) []byte {
	last := segments[len(segments)-1]
	name := last.key
	if last.which == oneEntry {
		name = last.name
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"\<>&`, r) }) {
		return nil
	}
	return []byte(`"f:` + name + `"`)
}

// unfinished returns true for the entry of the taker, or one with notes of it.
func (o owner) unfinished(taker string) (bool, error) {
	if string(o.manager) == taker && string(o.operation) == string(metav1.ManagedFieldsOperationUpdate) {
		return true, nil
	}
	if !bytes.Contains(o.fields, []byte(`"f:`+taker)) {
		return false, nil
	}
	at := skipSpace(o.fields, 0)
	if at >= len(o.fields) || o.fields[at] != '{' {
		return false, nil
	}
	m := membersAt(o.fields, at)
	for m.next() {
		if name, isField := strings.CutPrefix(string(m.key), "f:"); isField && name == taker {
			return true, nil
		}
	}
	return false, m.err()
}

// whereabouts finds out which parts of a path in managed fields are removed.
type whereabouts struct {
	field  *Field
	object Object
	// decoded is the object if it is stored as JSON, once it is needed.
	decoded map[string]any
}

// without returns what an entry owns without what is removed, nil if that is nothing.
func (w *whereabouts) without(o owner) (left []byte, changed bool, err error) {
	set := fieldpath.NewSet()
	if err := set.FromJSON(bytes.NewReader(o.fields)); err != nil {
		return nil, false, errors.New("its managed fields cannot be read; write it through the API")
	}
	removed := fieldpath.NewSet()
	set.Iterate(func(at fieldpath.Path) {
		if err != nil {
			return
		}
		var is bool
		if is, err = w.isRemoved(at); is {
			removed.Insert(at.Copy())
		}
	})
	if err != nil || removed.Empty() {
		return nil, false, err
	}
	rest := set.Difference(removed)
	if rest.Empty() {
		return nil, true, nil
	}
	if left, err = rest.ToJSON(); err != nil {
		return nil, false, fmt.Errorf("encoding its managed fields: %w", err)
	}
	return left, true, nil
}

// isRemoved returns whether something that is owned is at a place of the field, or in it.
func (w *whereabouts) isRemoved(at fieldpath.Path) (bool, error) {
	if w.object.encoding == protobuf {
		if w.field.within == nil {
			return false, w.field.unknownType(w.object)
		}
		return w.field.within.owns(w.object.body, at)
	}
	if len(at) == 0 || at[0].FieldName == nil || *at[0].FieldName != w.field.segments[0].key {
		return false, nil
	}
	if w.decoded == nil {
		if err := decode(w.object.body, &w.decoded); err != nil {
			return false, err
		}
	}
	return ownsIn(w.decoded, w.field.segments, at), nil
}

// owns returns whether a path in managed fields is that of a place to which the node leads
// from a message, or continues from there.
func (n *node) owns(message []byte, at fieldpath.Path) (bool, error) {
	var part *fieldpath.PathElement
	if n.named != notNamed {
		if len(at) == 0 || at[0].FieldName == nil || *at[0].FieldName != n.key {
			return false, nil
		}
		at = at[1:]
	}
	if n.named == byElement || n.named == byEntry {
		if len(at) == 0 || (at[0].FieldName != nil) != (n.named == byEntry) {
			return false, nil
		}
		part, at = &at[0], at[1:]
	}
	index := -1
	f := fields{message: message}
	for {
		more, err := f.next()
		if !more || err != nil {
			return false, err
		}
		if f.number != n.number {
			continue
		}
		index++
		if err := n.check(&f); err != nil {
			return false, err
		}
		if is, err := n.isPart(part, f.value(), index); err != nil || !is {
			if err != nil {
				return false, err
			}
			continue
		}
		if owns, err := n.ownsFrom(&f, at); owns || err != nil {
			return owns, err
		}
	}
}

// ownsFrom is owns for a field with the node's number, from which the path continues.
func (n *node) ownsFrom(f *fields, at fieldpath.Path) (bool, error) {
	if n.chosen != nil {
		if selected, err := n.chosen.selects(f.value()); !selected || err != nil {
			return false, err
		}
	}
	switch {
	case n.next != nil:
		return n.next.owns(f.value(), at)
	case n.text != nil:
		var value any
		if err := decode(f.value(), &value); err != nil {
			return false, err
		}
		return ownsIn(value, n.text, at), nil
	default:
		return n.leadsFrom(f.value(), f.kind)
	}
}

// isPart returns whether an element or an entry is the one that a path in managed fields
// names.
func (n *node) isPart(part *fieldpath.PathElement, value []byte, index int) (bool, error) {
	switch {
	case part == nil:
		return true, nil
	case part.FieldName != nil:
		is, _, err := entryKey.is(value, *part.FieldName)
		return is, err
	case part.Index != nil:
		return *part.Index == index, nil
	case part.Key == nil:
		// A value of a set, whose elements go all or not at all.
		return true, nil
	}
	for _, key := range *part.Key {
		s, err := newScalar(n.element, key.Name)
		if err != nil {
			return false, fmt.Errorf("managed fields name elements of %s: %w", n.key, err)
		}
		// A key that is not set may be a default.
		is, set, err := s.is(value, fmt.Sprint(key.Value.Unstructured()))
		if err != nil || set && !is {
			return false, err
		}
	}
	return true, nil
}

// ownsIn is owns for a JSON value.
func ownsIn(value any, segments []segment, at fieldpath.Path) bool {
	object, _ := value.(map[string]any)
	s := segments[0]
	within, ok := object[s.key]
	if !ok || len(at) == 0 || at[0].FieldName == nil || *at[0].FieldName != s.key {
		return false
	}
	at = at[1:]
	leads := func(value any, at fieldpath.Path) bool {
		return len(segments) == 1 || ownsIn(value, segments[1:], at)
	}
	if _, isObject := within.(map[string]any); s.which == itself || s.which == someElements && isObject {
		return (s.which == itself || s.selectsDecoded(within)) && leads(within, at)
	}
	if len(at) == 0 {
		return false
	}
	part, at := at[0], at[1:]
	switch selected := within.(type) {
	case []any:
		return (s.which == eachElement || s.which == someElements) && part.FieldName == nil &&
			slices.ContainsFunc(indexed(selected), func(e element) bool {
				return (s.which == eachElement || s.selectsDecoded(e.value)) && e.is(part) && leads(e.value, at)
			})
	case map[string]any:
		if s.which != eachEntry && s.which != oneEntry || part.FieldName == nil || s.which == oneEntry && *part.FieldName != s.name {
			return false
		}
		entry, ok := selected[*part.FieldName]
		return ok && leads(entry, at)
	}
	return false
}

// selectsDecoded is selects for a decoded value.
func (s segment) selectsDecoded(value any) bool {
	object, _ := value.(map[string]any)
	named, ok := object[s.name]
	return ok && fmt.Sprint(named) == s.value
}

// element is one of a decoded list.
type element struct {
	index int
	value any
}

func indexed(list []any) []element {
	elements := make([]element, len(list))
	for i, value := range list {
		elements[i] = element{i, value}
	}
	return elements
}

// is returns whether a part of a path in managed fields names the element.
func (e element) is(part fieldpath.PathElement) bool {
	switch {
	case part.Index != nil:
		return *part.Index == e.index
	case part.Key == nil:
		return true
	}
	object, _ := e.value.(map[string]any)
	for _, key := range *part.Key {
		if value, ok := object[key.Name]; ok && fmt.Sprint(value) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// The numbers of metav1.ManagedFieldsEntry and of FieldsV1.
const (
	entryManager    protowire.Number = 1
	entryOperation  protowire.Number = 2
	entryAPIVersion protowire.Number = 3
	entryFieldsV1   protowire.Number = 7

	fieldsV1Raw protowire.Number = 1
)

// owners returns the entries of the object's managed fields.
func (o Object) owners() (owners []owner, err error) {
	if o.encoding == jsonText {
		return o.jsonOwners()
	}
	metadata, _, _, err := lastOf(o.body, objectMeta)
	if err != nil {
		return nil, err
	}
	f := fields{message: metadata}
	for {
		more, err := f.next()
		if !more || err != nil {
			return owners, err
		}
		if f.number != metaManagedFields {
			continue
		}
		owner, err := parseOwner(f.value())
		if err != nil {
			return nil, err
		}
		owners = append(owners, owner)
	}
}

func parseOwner(entry []byte) (o owner, err error) {
	f := fields{message: entry}
	for {
		more, err := f.next()
		if !more || err != nil {
			return o, err
		}
		switch f.number {
		case entryManager:
			o.manager = f.value()
		case entryOperation:
			o.operation = f.value()
		case entryAPIVersion:
			o.apiVersion = f.value()
		case entryFieldsV1:
			if o.fields, _, _, err = lastOf(f.value(), fieldsV1Raw); err != nil {
				return o, err
			}
		}
	}
}

func (o Object) jsonOwners() (owners []owner, err error) {
	metadata, ok, err := memberOf(o.body, skipSpace(o.body, 0), "metadata")
	if !ok || err != nil {
		return nil, err
	}
	list, ok, err := memberOf(o.body, metadata.value, "managedFields")
	if !ok || err != nil || o.body[list.value] != '[' {
		return nil, err
	}
	entries := membersAt(o.body, list.value)
	for entries.next() {
		var parsed owner
		if o.body[entries.value] == '{' {
			m := membersAt(o.body, entries.value)
			for m.next() {
				parsed.set(&m)
			}
		}
		owners = append(owners, parsed)
	}
	return owners, entries.err()
}

// set takes over a member of an entry.
func (o *owner) set(m *members) {
	value := m.valueBytes()
	if m.hasKey("fieldsV1") {
		if o.fields = value; value[0] != '{' {
			o.fields = nil
		}
		return
	}
	if value[0] != '"' {
		return
	}
	text := []byte(unquoted(value[1 : len(value)-1]))
	switch {
	case m.hasKey("manager"):
		o.manager = text
	case m.hasKey("operation"):
		o.operation = text
	case m.hasKey("apiVersion"):
		o.apiVersion = text
	}
}

// WithOwners returns the object with its managed fields edited. The edits are in the order
// of the entries, each of which is edited once at most. All else of the entries stays.
func (o Object) WithOwners(edits []OwnerEdit) (Object, error) {
	if len(edits) == 0 {
		return o, nil
	}
	pending := edits
	index := -1
	// take returns the edit of the next entry, nil if it has none.
	take := func() (taken *OwnerEdit) {
		if index++; len(pending) > 0 && pending[0].Index == index {
			taken, pending = &pending[0], pending[1:]
		}
		return taken
	}
	edited, err := o.editOwners(take)
	if err == nil && len(pending) > 0 {
		err = fmt.Errorf("its managed fields have no entry %d that is to be edited", pending[0].Index)
	}
	if err != nil {
		return o, err
	}
	return edited, nil
}

func (o Object) editOwners(take func() *OwnerEdit) (Object, error) {
	if o.encoding == jsonText {
		return o.editJSONOwners(take)
	}
	return o.editMessage(func(dst, metadata []byte) ([]byte, bool, error) {
		return editFields(dst, metadata, metaManagedFields, func(dst []byte, f *fields) ([]byte, bool, error) {
			switch edit := take(); {
			case edit == nil:
				return dst, false, nil
			case edit.Fields == nil:
				return dst, true, nil
			default:
				return editNested(dst, f, edit.inEntry)
			}
		})
	})
}

// inEntry appends an encoded entry with other fields.
func (e OwnerEdit) inEntry(dst, entry []byte) ([]byte, bool, error) {
	return editFields(dst, entry, entryFieldsV1, func(dst []byte, f *fields) ([]byte, bool, error) {
		return editNested(dst, f, func(dst, fieldsV1 []byte) ([]byte, bool, error) {
			raw := protowire.AppendBytes(protowire.AppendTag(nil, fieldsV1Raw, protowire.BytesType), e.Fields)
			dst, err := setField(dst, fieldsV1, fieldsV1Raw, raw)
			return dst, err == nil, err
		})
	})
}

func (o Object) editJSONOwners(take func() *OwnerEdit) (Object, error) {
	return o.editMetadata("managedFields", nil, func(dst []byte, list *members) (_ []byte, keep, changed bool, err error) {
		if list.text[list.value] != '[' {
			return dst, true, false, nil
		}
		left := 0
		dst, _, err = editMembers(dst, list.text, list.value, func(dst []byte, m *members) ([]byte, bool, bool, error) {
			edit := take()
			if edit != nil && edit.Fields == nil {
				return dst, false, true, nil
			}
			left++
			if edit == nil || m.text[m.value] != '{' {
				return dst, true, false, nil
			}
			dst, err := editMember(dst, m, "fieldsV1", edit.Fields, nil)
			return dst, true, true, err
		})
		return dst, left > 0, true, err
	})
}
