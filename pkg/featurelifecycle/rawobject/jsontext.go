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
	"encoding/json"
	"errors"
	"fmt"
)

// maxDepth is how deep JSON may be nested, as in encoding/json.
const maxDepth = 10000

// errJSON is the error of what is no JSON. It does not quote it.
var errJSON = errors.New("malformed JSON")

// skipSpace returns where a JSON text continues behind white space.
func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the end of the JSON value that begins at a byte, -1 if there is none.
func skipValue(text []byte, at, depth int) int {
	if at >= len(text) || depth > maxDepth {
		return -1
	}
	switch c := text[at]; {
	case c == '"':
		return skipString(text, at)
	case c == '{', c == '[':
		return skipMembers(text, at, depth)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(text, at)
	case c == 't':
		return skipWord(text, at, "true")
	case c == 'f':
		return skipWord(text, at, "false")
	case c == 'n':
		return skipWord(text, at, "null")
	}
	return -1
}

func skipWord(text []byte, at int, word string) int {
	if end := at + len(word); end <= len(text) && string(text[at:end]) == word {
		return end
	}
	return -1
}

func skipMembers(text []byte, at, depth int) int {
	m := membersAt(text, at)
	m.depth = depth + 1
	for m.next() {
	}
	if m.failed {
		return -1
	}
	return m.at + 1
}

func skipString(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return at + 1
		case c < ' ':
			return -1
		case c == '\\':
			if at++; at >= len(text) {
				return -1
			}
			switch text[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if at++; at >= len(text) || !isHex(text[at]) {
						return -1
					}
				}
			default:
				return -1
			}
		}
	}
	return -1
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func skipNumber(text []byte, at int) int {
	if text[at] == '-' {
		at++
	}
	digits := func() bool {
		begin := at
		for at < len(text) && text[at] >= '0' && text[at] <= '9' {
			at++
		}
		return at > begin
	}
	if at < len(text) && text[at] == '0' {
		at++
	} else if !digits() {
		return -1
	}
	if at < len(text) && text[at] == '.' {
		if at++; !digits() {
			return -1
		}
	}
	if at < len(text) && (text[at] == 'e' || text[at] == 'E') {
		if at++; at < len(text) && (text[at] == '+' || text[at] == '-') {
			at++
		}
		if !digits() {
			return -1
		}
	}
	return at
}

// members is a cursor over the members of a JSON object, or the elements of a list.
type members struct {
	text  []byte
	depth int
	// object is true if they have keys.
	object bool
	// key is that of the current member, without quotes and with escapes.
	key []byte
	// The member is text[begin:end], and its value is text[value:end].
	begin, value, end int
	// at is behind the current member, and the closing bracket in the end.
	at     int
	failed bool
	first  bool
}

// membersAt returns a cursor before the first member of what opens at a byte.
func membersAt(text []byte, at int) members {
	return members{text: text, object: text[at] == '{', at: at + 1, first: true}
}

// next moves to the next member. It returns false at the end, or if there is no JSON.
func (m *members) next() bool {
	closing := byte(']')
	if m.object {
		closing = '}'
	}
	at := skipSpace(m.text, m.at)
	if at >= len(m.text) {
		return m.fail()
	}
	switch {
	case m.text[at] == closing:
		m.at = at
		return false
	case m.first:
		m.first = false
	case m.text[at] != ',':
		return m.fail()
	default:
		if at = skipSpace(m.text, at+1); at >= len(m.text) {
			return m.fail()
		}
	}
	m.begin = at
	if m.object {
		if m.text[at] != '"' {
			return m.fail()
		}
		end := skipString(m.text, at)
		if end < 0 {
			return m.fail()
		}
		m.key = m.text[at+1 : end-1]
		if at = skipSpace(m.text, end); at >= len(m.text) || m.text[at] != ':' {
			return m.fail()
		}
		at = skipSpace(m.text, at+1)
	}
	m.value = at
	if m.end = skipValue(m.text, at, m.depth); m.end < 0 {
		return m.fail()
	}
	m.at = m.end
	return true
}

func (m *members) fail() bool {
	m.failed = true
	return false
}

// err returns why there are no more members, nil at their end.
func (m *members) err() error {
	if m.failed {
		return errJSON
	}
	return nil
}

// valueBytes returns the current value.
func (m *members) valueBytes() []byte { return m.text[m.value:m.end] }

// hasKey returns true if the current member has a key.
func (m *members) hasKey(key string) bool { return isString(m.key, key) }

// isString returns true if what is between the quotes of a string is a text.
func isString(quoted []byte, text string) bool {
	for i, c := range quoted {
		if c == '\\' || c >= 0x80 {
			return unquoted(quoted) == text
		}
		if i >= len(text) || text[i] != c {
			return false
		}
	}
	return len(quoted) == len(text)
}

// unquoted returns the text of a string without its quotes.
func unquoted(quoted []byte) string {
	var text string
	if json.Unmarshal(append(append([]byte{'"'}, quoted...), '"'), &text) != nil {
		return ""
	}
	return text
}

// checkText returns an error unless there is one JSON object.
func checkText(text []byte) error {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '{' {
		return errJSON
	}
	end := skipValue(text, at, 0)
	if end < 0 || skipSpace(text, end) != len(text) {
		return errJSON
	}
	return nil
}

// memberEdit appends what replaces a member's value to dst: the member goes if keep is
// false, and is copied if changed is.
type memberEdit func(dst []byte, m *members) (edited []byte, keep, changed bool, err error)

// editMembers appends the object or list that opens at a byte, of which each member is
// edited, and returns where it ends in the text. A member that goes takes its comma.
func editMembers(dst, text []byte, at int, edit memberEdit) (edited []byte, end int, err error) {
	m := membersAt(text, at)
	dst = append(dst, text[at])
	// lead is the space before the first member, and from where the next one follows.
	from, opened, kept := at+1, at+1, false
	lead := 0
	for m.next() {
		if from == opened {
			lead = m.begin - opened
		}
		before := len(dst)
		if kept {
			dst = append(dst, text[from:m.begin]...)
		} else {
			dst = append(dst, text[opened:opened+lead]...)
		}
		dst = append(dst, text[m.begin:m.value]...)
		valued := len(dst)
		after, keep, changed, err := edit(dst, &m)
		switch {
		case err != nil:
			return dst, 0, err
		case !keep:
			dst = after[:before]
		case changed:
			dst, kept = after, true
		default:
			dst, kept = append(after[:valued], m.valueBytes()...), true
		}
		from = m.end
	}
	if err := m.err(); err != nil {
		return dst, 0, fmt.Errorf("editing it: %w", err)
	}
	return append(dst, text[from:m.at+1]...), m.at + 1, nil
}
