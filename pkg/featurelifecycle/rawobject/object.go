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
	"encoding/binary"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrCBOR is returned for an object that is stored as CBOR.
var ErrCBOR = errors.New("it is stored as CBOR, whose bytes are not edited; write it through the API")

// Object is a stored object of which parts may have been edited. It is immutable, refers
// to the bytes that were parsed, and is invalid as its zero value.
type Object struct {
	// plain is what was parsed, nil once something is edited.
	plain    []byte
	encoding encoding
	// The bytes are head, the length of body if it is protobuf, body, and tail.
	head, body, tail []byte
	// apiVersion and kind are texts.
	apiVersion, kind []byte
}

type encoding int

const (
	protobuf encoding = iota
	jsonText
)

var (
	// protobufPrefix begins what is stored as protobuf, and cborPrefix what is stored as
	// CBOR (the serializers of apimachinery's pkg/runtime/serializer).
	protobufPrefix = []byte("k8s\x00")
	cborPrefix     = []byte{0xd9, 0xd9, 0xf7}
)

// Parse returns a view of the bytes of an object, after decryption. They must not change
// while it is used.
func Parse(plain []byte) (Object, error) {
	if bytes.HasPrefix(plain, protobufPrefix) {
		return parseProtobuf(plain)
	}
	if bytes.HasPrefix(plain, cborPrefix) {
		return Object{}, ErrCBOR
	}
	if at := skipSpace(plain, 0); at < len(plain) && plain[at] == '{' {
		return parseJSON(plain, at)
	}
	return Object{}, errors.New("it is stored neither as protobuf nor as JSON; write it through the API")
}

// The numbers of runtime.Unknown and of its type.
const (
	unknownType            protowire.Number = 1
	unknownRaw             protowire.Number = 2
	unknownContentEncoding protowire.Number = 3
	unknownContentType     protowire.Number = 4

	typeAPIVersion protowire.Number = 1
	typeKind       protowire.Number = 2
)

// parseProtobuf parses an encoded runtime.Unknown behind its prefix.
func parseProtobuf(plain []byte) (Object, error) {
	o := Object{plain: plain}
	f := fields{message: plain, end: len(protobufPrefix)}
	for {
		more, err := f.next()
		if err != nil {
			return Object{}, err
		}
		if !more {
			break
		}
		if f.number > unknownContentType {
			continue
		}
		if f.kind != protowire.BytesType {
			return Object{}, wrongKind(&f)
		}
		switch value := f.value(); f.number {
		case unknownType:
			if err := o.parseType(value); err != nil {
				return Object{}, err
			}
		case unknownRaw:
			if o.head != nil {
				return Object{}, errors.New("malformed protobuf: there are two objects in it")
			}
			o.head, o.body, o.tail = plain[:f.tagged], value, plain[f.end:]
		case unknownContentEncoding, unknownContentType:
			if len(value) > 0 && string(value) != "application/vnd.kubernetes.protobuf" {
				return Object{}, errors.New("its content has another encoding than protobuf within protobuf; write it through the API")
			}
		}
	}
	if o.head == nil {
		return Object{}, errors.New("malformed protobuf: there is no object in it")
	}
	return o, nil
}

// parseType reads the API version and the kind of a runtime.Unknown.
func (o *Object) parseType(message []byte) error {
	f := fields{message: message}
	for {
		more, err := f.next()
		if !more || err != nil {
			return err
		}
		switch f.number {
		case typeAPIVersion:
			o.apiVersion = f.value()
		case typeKind:
			o.kind = f.value()
		}
	}
}

// parseJSON parses a JSON object that opens at a byte.
func parseJSON(plain []byte, at int) (Object, error) {
	o := Object{plain: plain, encoding: jsonText, body: plain}
	m := membersAt(plain, at)
	for m.next() {
		isVersion := m.hasKey("apiVersion")
		if !isVersion && !m.hasKey("kind") {
			continue
		}
		value := m.valueBytes()
		if value[0] != '"' {
			return Object{}, errors.New("malformed JSON: its apiVersion or kind is no string")
		}
		if value = value[1 : len(value)-1]; bytes.IndexByte(value, '\\') >= 0 {
			value = []byte(unquoted(value))
		}
		if isVersion {
			o.apiVersion = value
		} else {
			o.kind = value
		}
	}
	if err := m.err(); err != nil {
		return Object{}, err
	}
	if skipSpace(plain, m.at+1) != len(plain) {
		return Object{}, errJSON
	}
	return o, nil
}

// Bytes returns the object as it is to be stored. Callers must not change what they get.
func (o Object) Bytes() []byte {
	switch {
	case o.plain != nil:
		return o.plain
	case o.encoding == jsonText:
		return o.body
	}
	all := make([]byte, 0, len(o.head)+binary.MaxVarintLen64+len(o.body)+len(o.tail))
	all = append(all, o.head...)
	all = protowire.AppendBytes(all, o.body)
	return append(all, o.tail...)
}

// withBody returns the object with another body.
func (o Object) withBody(body []byte) Object {
	o.plain, o.body = nil, body
	return o
}

// Is returns true for an object of an API version and a kind.
func (o Object) Is(apiVersion, kind string) bool {
	return string(o.apiVersion) == apiVersion && string(o.kind) == kind
}

// APIVersion returns the version in which the object is stored.
func (o Object) APIVersion() string { return string(o.apiVersion) }

// Kind returns the kind of the object.
func (o Object) Kind() string { return string(o.kind) }

// IsJSON returns true for an object that is stored as JSON.
func (o Object) IsJSON() bool { return o.encoding == jsonText }
