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

// scalar is a text, a number or a truth value in an encoded message. The zero value is not
// valid.
type scalar struct {
	// embedded are the numbers of the messages that lead to it, number is its own.
	embedded []protowire.Number
	number   protowire.Number
	kind     reflect.Kind
	// pointer is true if zero is a value like others.
	pointer bool
	// unset is what JSON shows for one that is not set, "" if nothing: "<nil>", "0", "false".
	unset string
}

// newScalar returns the field of a struct with a JSON key.
func newScalar(of reflect.Type, key string) (scalar, error) {
	if err := checkKeys(of); err != nil {
		return scalar{}, err
	}
	f, ok := fieldOf(of, key)
	if !ok {
		return scalar{}, fmt.Errorf("%s has no field %s", of, key)
	}
	s := scalar{embedded: f.embedded, number: f.number, kind: dereference(f.typ).Kind(), pointer: f.typ.Kind() == reflect.Pointer}
	if !isComparable(s.kind) {
		return scalar{}, fmt.Errorf("%s of %s has the type %s; compare a string, an integer or a boolean", key, of, f.typ)
	}
	if f.shown {
		s.unset = "<nil>"
		if !s.pointer {
			s.unset = fmt.Sprint(reflect.Zero(f.typ))
		}
	}
	return s, nil
}

// isComparable returns true for the kinds of texts, integers and truth values.
func isComparable(kind reflect.Kind) bool {
	wire, ok := wireTypes[kind]
	return ok && (wire == protowire.VarintType || wire == protowire.BytesType)
}

// entryKey is the key in the message that an entry of a map is.
var entryKey = scalar{number: 1, kind: reflect.String, pointer: true}

// is returns whether the scalar in a message has a value, written as JSON's values are
// printed. Set is false if the message does not have it, or has zero where that is none.
func (s scalar) is(message []byte, wanted string) (is, set bool, err error) {
	for _, number := range s.embedded {
		var kind protowire.Type
		if message, kind, _, err = lastOf(message, number); err != nil {
			return false, false, err
		}
		if message != nil && kind != protowire.BytesType {
			return false, false, fmt.Errorf("malformed protobuf: field %d is no message", number)
		}
	}
	value, kind, ok, err := lastOf(message, s.number)
	if err != nil {
		return false, false, err
	}
	if ok && kind != wireTypes[s.kind] {
		return false, false, fmt.Errorf("malformed protobuf: field %d has wire type %d", s.number, kind)
	}
	if !ok || !s.pointer && isZero(value, kind) {
		return s.unset != "" && s.unset == wanted, false, nil
	}
	return s.equals(value, wanted), true, nil
}

// equals returns whether an encoded value is printed as wanted.
func (s scalar) equals(value []byte, wanted string) bool {
	if s.kind == reflect.String {
		return string(value) == wanted
	}
	return fmt.Sprint(scalarValue(s.kind, value)) == wanted
}

// scalarValue returns an encoded value as the API shows it: a string, an int64 or a bool.
func scalarValue(kind reflect.Kind, encoded []byte) any {
	if kind == reflect.String {
		return string(encoded)
	}
	number, _ := uvarint(encoded, 0)
	switch kind {
	case reflect.Bool:
		return number != 0
	case reflect.Int32:
		return int64(int32(number))
	default:
		return int64(number)
	}
}

// isZero returns true for the zero value of what is no message.
func isZero(value []byte, kind protowire.Type) bool {
	if kind == protowire.VarintType {
		number, _ := uvarint(value, 0)
		return number == 0
	}
	for _, b := range value {
		if kind == protowire.BytesType || b != 0 {
			return false
		}
	}
	return true
}
