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
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// The numbers of metav1.ObjectMeta in all objects, and of its fields.
const (
	objectMeta protowire.Number = 1

	metaGeneration    protowire.Number = 7
	metaManagedFields protowire.Number = 17
)

// errNoMetadata is returned where an edit needs what every stored object has.
var errNoMetadata = errors.New("the object has no metadata; write it through the API")

// Metadata returns the metadata of the object. It has no resourceVersion: that is not
// stored.
func (o Object) Metadata() (metav1.ObjectMeta, error) {
	var metadata metav1.ObjectMeta
	if o.encoding == jsonText {
		m, ok, err := memberOf(o.body, skipSpace(o.body, 0), "metadata")
		if !ok || err != nil {
			return metadata, err
		}
		if kjson.UnmarshalCaseSensitivePreserveInts(m.valueBytes(), &metadata) != nil {
			return metav1.ObjectMeta{}, errors.New("its metadata is no metadata of an object")
		}
		return metadata, nil
	}
	encoded, kind, _, err := lastOf(o.body, objectMeta)
	if err != nil {
		return metadata, err
	}
	if encoded == nil {
		return metadata, nil
	}
	if kind != protowire.BytesType || metadata.Unmarshal(encoded) != nil {
		return metav1.ObjectMeta{}, errors.New("malformed protobuf: its metadata is no metadata of an object")
	}
	return metadata, nil
}

// WithGeneration returns the object with another generation.
func (o Object) WithGeneration(generation int64) (Object, error) {
	if o.encoding == jsonText {
		return o.editMetadata("generation", strconv.AppendInt(nil, generation, 10), nil)
	}
	field := protowire.AppendTag(nil, metaGeneration, protowire.VarintType)
	field = protowire.AppendVarint(field, uint64(generation))
	return o.editMessage(func(dst, metadata []byte) ([]byte, bool, error) {
		dst, err := setField(dst, metadata, metaGeneration, field)
		return dst, err == nil, err
	})
}

// editMessage returns the object with another message as its metadata. An edit that
// changes nothing returns the object as it is.
func (o Object) editMessage(edit func(dst, metadata []byte) ([]byte, bool, error)) (Object, error) {
	found := false
	// The longest edits are of some bytes.
	dst := make([]byte, 0, len(o.body)+16)
	body, changed, err := editFields(dst, o.body, objectMeta, func(dst []byte, f *fields) ([]byte, bool, error) {
		found = true
		return editNested(dst, f, edit)
	})
	switch {
	case err != nil:
		return o, err
	case !found:
		return o, errNoMetadata
	case !changed:
		return o, nil
	}
	return o.withBody(body), nil
}

// editMetadata returns the object with a member of its metadata edited. If it is not
// there, absent is added as its value; nil leaves it out.
func (o Object) editMetadata(key string, absent []byte, edit memberEdit) (Object, error) {
	at := skipSpace(o.body, 0)
	found := false
	body := append(make([]byte, 0, len(o.body)+len(absent)), o.body[:at]...)
	body, end, err := editMembers(body, o.body, at, func(dst []byte, m *members) ([]byte, bool, bool, error) {
		if !m.hasKey("metadata") || m.text[m.value] != '{' {
			return dst, true, false, nil
		}
		found = true
		dst, err := editMember(dst, m, key, absent, edit)
		return dst, true, true, err
	})
	switch {
	case err != nil:
		return o, err
	case !found:
		return o, errNoMetadata
	}
	return o.withBody(append(body, o.body[end:]...)), nil
}

// editMember appends the object that a member is, with the value of one key edited, or
// absent in its place if edit is nil.
func editMember(dst []byte, object *members, key string, absent []byte, edit memberEdit) ([]byte, error) {
	found := false
	before := len(dst)
	dst, _, err := editMembers(dst, object.text, object.value, func(dst []byte, m *members) ([]byte, bool, bool, error) {
		if !m.hasKey(key) {
			return dst, true, false, nil
		}
		found = true
		if edit == nil {
			return append(dst, absent...), true, true, nil
		}
		return edit(dst, m)
	})
	if err != nil || found || absent == nil {
		return dst, err
	}
	// Behind the last member, without what may be between it and the bracket.
	dst = dst[:len(dst)-1]
	if skipSpace(dst, before+1) < len(dst) {
		dst = append(dst, ',')
	}
	dst = append(strconv.AppendQuote(dst, key), ':')
	return append(append(dst, absent...), '}'), nil
}

// memberOf returns the last member of a JSON object with a key.
func memberOf(text []byte, at int, key string) (found members, ok bool, err error) {
	if at >= len(text) || text[at] != '{' {
		return members{}, false, nil
	}
	m := membersAt(text, at)
	for m.next() {
		if m.hasKey(key) {
			found, ok = m, true
		}
	}
	return found, ok, m.err()
}
