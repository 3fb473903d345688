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

	kjson "sigs.k8s.io/json"
)

// holdsRaw returns whether the JSON that a message keeps has a field.
func holdsRaw(raw []byte, segments []segment) (bool, error) {
	at := skipSpace(raw, 0)
	if at >= len(raw) || raw[at] != '{' {
		return false, checkRaw(raw)
	}
	if err := checkText(raw); err != nil {
		return false, err
	}
	return holdsText(raw, at, segments)
}

// checkRaw returns an error for what is kept in a message and is neither JSON nor nothing.
func checkRaw(raw []byte) error {
	at := skipSpace(raw, 0)
	if at == len(raw) {
		return nil
	}
	if end := skipValue(raw, at, 0); end < 0 || skipSpace(raw, end) != len(raw) {
		return fmt.Errorf("an object within it: %w", errJSON)
	}
	return nil
}

// cutRaw appends the JSON that a message keeps without a field.
func cutRaw(dst, raw []byte, segments []segment) ([]byte, int, error) {
	has, err := holdsRaw(raw, segments)
	if !has || err != nil {
		return dst, 0, err
	}
	at := skipSpace(raw, 0)
	dst, end, places, err := cutText(append(dst, raw[:at]...), raw, at, segments)
	if err != nil {
		return dst, 0, err
	}
	return append(dst, raw[end:]...), places, nil
}

// holdsText returns whether the JSON value that begins at a byte has what segments name.
func holdsText(text []byte, at int, segments []segment) (bool, error) {
	if at >= len(text) || text[at] != '{' {
		return false, nil
	}
	m := membersAt(text, at)
	for m.next() {
		if !m.hasKey(segments[0].key) {
			continue
		}
		if has, err := holdsMember(&m, segments); has || err != nil {
			return has, err
		}
	}
	return false, m.err()
}

// holdsMember returns whether the value of the first segment's key has the rest.
func holdsMember(m *members, segments []segment) (bool, error) {
	s, text := segments[0], m.text
	leads := func(at int) (bool, error) {
		if len(segments) == 1 {
			return true, nil
		}
		return holdsText(text, at, segments[1:])
	}
	opens := text[m.value]
	switch {
	case s.which == itself:
		return leads(m.value)
	case s.which == someElements && opens == '{':
		selected, err := s.selects(text, m.value)
		if !selected || err != nil {
			return false, err
		}
		return leads(m.value)
	case !s.opensWith(opens):
		return false, nil
	}
	within := membersAt(text, m.value)
	for within.next() {
		selected, err := s.selectsMember(&within)
		if err != nil {
			return false, err
		}
		if !selected {
			continue
		}
		if has, err := leads(within.value); has || err != nil {
			return has, err
		}
	}
	return false, within.err()
}

// opensWith returns true for the first byte of what the segment selects members of.
func (s segment) opensWith(opens byte) bool {
	if s.which == eachElement || s.which == someElements {
		return opens == '['
	}
	return opens == '{'
}

// selectsMember returns whether the segment selects a member of its key's value.
func (s segment) selectsMember(m *members) (bool, error) {
	switch s.which {
	case someElements:
		return s.selects(m.text, m.value)
	case oneEntry:
		return m.hasKey(s.name), nil
	default:
		return true, nil
	}
}

// selects returns whether the JSON value that begins at a byte has the segment's name with
// its value. The last of equal keys counts, as for decoders.
func (s segment) selects(text []byte, at int) (selected bool, err error) {
	if text[at] != '{' {
		return false, nil
	}
	m := membersAt(text, at)
	for m.next() {
		if !m.hasKey(s.name) {
			continue
		}
		if text[m.value] == '"' {
			selected = isString(text[m.value+1:m.end-1], s.value)
			continue
		}
		var value any
		if err := decode(m.valueBytes(), &value); err != nil {
			return false, err
		}
		selected = fmt.Sprint(value) == s.value
	}
	return selected, m.err()
}

// cutText appends the JSON value that begins at a byte without what segments name. It
// returns where the value ends in the text, and the number of places.
func cutText(dst, text []byte, at int, segments []segment) (edited []byte, end, places int, err error) {
	if text[at] != '{' {
		if end = skipValue(text, at, 0); end < 0 {
			return dst, 0, 0, errJSON
		}
		return append(dst, text[at:end]...), end, 0, nil
	}
	dst, end, err = editMembers(dst, text, at, func(dst []byte, m *members) (_ []byte, keep, changed bool, err error) {
		if !m.hasKey(segments[0].key) {
			return dst, true, false, nil
		}
		dst, keep, n, err := cutMember(dst, m, segments)
		places += n
		return dst, keep, n > 0, err
	})
	return dst, end, places, err
}

// cutMember appends the value of the first segment's key without the rest. Keep is false
// if the member goes itself.
func cutMember(dst []byte, m *members, segments []segment) (edited []byte, keep bool, places int, err error) {
	s, opens := segments[0], m.text[m.value]
	if s.which == someElements && opens == '{' {
		if selected, err := s.selects(m.text, m.value); !selected || err != nil {
			return dst, true, 0, err
		}
		s.which = itself
	}
	if s.which == itself {
		return cutSelected(dst, m, segments)
	}
	if !s.opensWith(opens) {
		return dst, true, 0, nil
	}
	dst, _, err = editMembers(dst, m.text, m.value, func(dst []byte, within *members) (_ []byte, keep, changed bool, err error) {
		if selected, err := s.selectsMember(within); !selected || err != nil {
			return dst, true, false, err
		}
		dst, keep, n, err := cutSelected(dst, within, segments)
		places += n
		return dst, keep, n > 0, err
	})
	return dst, true, places, err
}

// cutSelected appends a value that the first segment selects without the rest.
func cutSelected(dst []byte, m *members, segments []segment) (edited []byte, keep bool, places int, err error) {
	if len(segments) == 1 {
		return dst, false, 1, nil
	}
	dst, _, places, err = cutText(dst, m.text, m.value, segments[1:])
	return dst, true, places, err
}

// decode decodes JSON as package unstructured does.
func decode(text []byte, into any) error {
	if kjson.UnmarshalCaseSensitivePreserveInts(text, into) != nil {
		return errJSON
	}
	return nil
}
