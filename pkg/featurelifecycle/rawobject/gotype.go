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
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/apimachinery/pkg/runtime"
)

// goField is the field of a struct with a JSON key.
type goField struct {
	typ reflect.Type
	// embedded are the numbers of the embedded structs that lead to it, number is its own.
	embedded []protowire.Number
	number   protowire.Number
	// shown is true if JSON has the key whatever its value is. omitsZero is true for one
	// that JSON omits when its value is zero, although it is a struct.
	shown, omitsZero bool
}

// fieldOf returns the field of a struct with a JSON key. The fields of an embedded struct
// without a key are those of the struct itself.
func fieldOf(of reflect.Type, key string) (goField, bool) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != key || !f.IsExported() || name == "-" {
			continue
		}
		found := goField{typ: f.Type, number: protobufNumber(f), shown: true}
		for option := range strings.SplitSeq(options, ",") {
			found.omitsZero = found.omitsZero || option == "omitzero"
			if option == "omitempty" && f.Type.Kind() != reflect.Struct {
				found.shown = false
			}
		}
		found.shown = found.shown && !found.omitsZero
		return found, found.number > 0
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number := protobufNumber(f)
		if !f.Anonymous || name != "" || number == 0 || f.Type.Kind() != reflect.Struct {
			continue
		}
		if found, ok := fieldOf(f.Type, key); ok {
			found.embedded = append([]protowire.Number{number}, found.embedded...)
			return found, true
		}
	}
	return goField{}, false
}

// protobufNumber returns the number in a struct tag such as protobuf:"bytes,13,opt", 0 if
// there is none.
func protobufNumber(f reflect.StructField) protowire.Number {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return 0
	}
	return protowire.Number(number)
}

// dereference returns the type that pointers lead to.
func dereference(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// isList returns true for a type that is encoded as one field for each element.
func isList(of reflect.Type) bool {
	return of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 && !hasEncoding(of)
}

// isMap returns true for a type that is encoded as one field for each entry.
func isMap(of reflect.Type) bool {
	return of.Kind() == reflect.Map && of.Key().Kind() == reflect.String && !hasEncoding(of)
}

type marshaler interface{ Marshal() ([]byte, error) }

type unmarshaler interface{ Unmarshal([]byte) error }

// hasEncoding returns true for a type that encodes itself as a message, such as a list
// that is one value of a map.
func hasEncoding(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[marshaler]())
}

// isRaw returns true for the type of what is kept as JSON in a message.
func isRaw(of reflect.Type) bool { return of == reflect.TypeFor[runtime.RawExtension]() }

// checkKeys returns an error for a type whose JSON form does not have the keys of a struct.
func checkKeys(of reflect.Type) error {
	switch {
	case of.Kind() != reflect.Struct:
		return fmt.Errorf("%s is no struct", of)
	case of.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()):
		return fmt.Errorf("%s writes its JSON form itself; end the path with it", of)
	}
	return nil
}

// zeroField returns the encoding with which upstream's encoder writes the zero value of a
// type, nil if it writes nothing.
func zeroField(of reflect.Type, number protowire.Number) ([]byte, error) {
	switch of.Kind() {
	case reflect.Struct:
		zero, ok := reflect.New(of).Interface().(marshaler)
		if !ok {
			return nil, fmt.Errorf("%s has no protobuf encoding", of)
		}
		encoded, err := zero.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding an empty %s: %w", of, err)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), encoded), nil
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return nil, nil
	}
	kind, ok := wireTypes[of.Kind()]
	if !ok {
		return nil, fmt.Errorf("%s has no protobuf encoding", of)
	}
	tag := protowire.AppendTag(nil, number, kind)
	switch kind {
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(tag, 0), nil
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(tag, 0), nil
	default: // the number 0, or a length of 0
		return append(tag, 0), nil
	}
}

// wireTypeOf returns that of a value, or of each element or entry.
func wireTypeOf(of reflect.Type) protowire.Type {
	if isList(of) {
		of = dereference(of.Elem())
	}
	if kind, ok := wireTypes[of.Kind()]; ok && !hasEncoding(of) {
		return kind
	}
	return protowire.BytesType
}

// wireTypes are those of values that are no messages.
var wireTypes = map[reflect.Kind]protowire.Type{
	reflect.Bool:    protowire.VarintType,
	reflect.Int:     protowire.VarintType,
	reflect.Int8:    protowire.VarintType,
	reflect.Int16:   protowire.VarintType,
	reflect.Int32:   protowire.VarintType,
	reflect.Int64:   protowire.VarintType,
	reflect.Uint:    protowire.VarintType,
	reflect.Uint8:   protowire.VarintType,
	reflect.Uint16:  protowire.VarintType,
	reflect.Uint32:  protowire.VarintType,
	reflect.Uint64:  protowire.VarintType,
	reflect.Float32: protowire.Fixed32Type,
	reflect.Float64: protowire.Fixed64Type,
	reflect.String:  protowire.BytesType,
}
