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
	"bytes"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// holdsRemoved returns whether the bytes of an object have a field that their kind no
// longer has. Decoding drops it, so the bytes themselves are read: a number in the message
// that the path leads to, or a key where they are not protobuf. Bytes of another version
// than the field's have none. Bytes that cannot be read are an error: what they hold is
// not known.
func holdsRemoved(plain []byte, field task.RemovedField) (bool, error) {
	resource := field.Resource.GroupResource()
	raw, isProtobuf := bytes.CutPrefix(plain, protobufPrefix)
	if !isProtobuf {
		content, err := contentOf(plain)
		if err != nil {
			return false, err
		}
		if err := isOf(content.GroupVersionKind(), resource); err != nil || content.GroupVersionKind().GroupVersion() != field.Resource.GroupVersion() {
			return false, err
		}
		return task.Field{Resource: resource, Path: field.Path}.In(content.Object)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(raw); err != nil {
		return false, fmt.Errorf("reading it as protobuf: %w", err)
	}
	kind := schema.FromAPIVersionAndKind(envelope.APIVersion, envelope.Kind)
	if err := isOf(kind, resource); err != nil || kind.GroupVersion() != field.Resource.GroupVersion() {
		return false, err
	}
	return holdsNumber(envelope.Raw, kind, field)
}

// texts reads what is not protobuf, as the storage of built-in resources does, without
// knowing kinds.
var texts = serializer.NewCodecFactory(runtime.NewScheme(), serializer.WithSerializer(cbor.NewSerializerInfo)).UniversalDeserializer()

// contentOf returns an object that is stored as JSON, YAML or CBOR with all its fields.
func contentOf(plain []byte) (*unstructured.Unstructured, error) {
	content := &unstructured.Unstructured{}
	if _, _, err := texts.Decode(plain, nil, content); err != nil {
		return nil, fmt.Errorf("reading it as JSON, YAML or CBOR: %w", withoutBytes(err))
	}
	return content, nil
}

// holdsNumber returns whether an encoded object has a field's number in a message that the
// field's path leads to.
func holdsNumber(object []byte, kind schema.GroupVersionKind, field task.RemovedField) (bool, error) {
	typ, err := structOf(legacyscheme.Scheme, kind)
	if err != nil {
		return false, fmt.Errorf("%w, which shows the numbers of fields", err)
	}
	keys, selectors := field.Keys()
	messages := [][]byte{object}
	for i, key := range keys[:len(keys)-1] {
		numbers, next := encodedAs(typ, key)
		if len(numbers) == 0 {
			return false, fmt.Errorf("this server's type %s has no field %s of the path", typ, key)
		}
		if selectors[i] == "{*}" {
			// An entry of a map is a message with the key as 1 and the value as 2.
			numbers = append(numbers, 2)
		}
		for _, number := range numbers {
			var err error
			if messages, err = inMessages(messages, number); err != nil {
				return false, err
			}
		}
		typ = next
	}
	for _, message := range messages {
		if has, err := hasNumber(message, field.Number); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// encodedAs returns the protobuf numbers that lead from a struct to the field with a JSON
// key, and the struct that the field, each element of a list or each value of a map is.
// The numbers are several if the key is that of an embedded struct's field, and none if
// there is no such key.
func encodedAs(of reflect.Type, key string) (numbers []protowire.Number, next reflect.Type) {
	if of.Kind() != reflect.Struct {
		return nil, nil
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number := protobufNumber(f)
		switch {
		case name == key && number > 0:
			return []protowire.Number{number}, element(f.Type)
		case name == "" && f.Anonymous && number > 0:
			if within, next := encodedAs(element(f.Type), key); len(within) > 0 {
				return append([]protowire.Number{number}, within...), next
			}
		}
	}
	return nil, nil
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

// element returns what pointers, lists and maps hold in the end.
func element(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	return of
}

// inMessages returns the messages with a number in some others.
func inMessages(messages [][]byte, number protowire.Number) ([][]byte, error) {
	var found [][]byte
	for _, message := range messages {
		err := eachField(message, func(n protowire.Number, value []byte) bool {
			if n == number && value != nil {
				found = append(found, value)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// hasNumber returns true if a message has a field with a number.
func hasNumber(message []byte, number int) (has bool, err error) {
	err = eachField(message, func(n protowire.Number, _ []byte) bool {
		has = has || int(n) == number
		return !has
	})
	return has, err
}

// eachField calls visit for the fields of an encoded message until it returns false. Value
// is nil for what is no message, string or bytes. What is no protobuf is an error.
func eachField(message []byte, visit func(number protowire.Number, value []byte) bool) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("reading it as protobuf: %w", protowire.ParseError(n))
		}
		message = message[n:]
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return fmt.Errorf("reading it as protobuf: %w", protowire.ParseError(n))
		}
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message)
		}
		if !visit(number, value) {
			return nil
		}
		message = message[n:]
	}
	return nil
}
