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
	"encoding/binary"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// fields is a cursor over the fields of an encoded message.
type fields struct {
	message []byte
	// number and kind are those of the current field.
	number protowire.Number
	kind   protowire.Type
	// The field is message[begin:end]. Its tag ends at tagged, and its value begins at
	// start: behind the length of a message, string or bytes.
	begin, tagged, start, end int
}

// next moves to the next field. It returns false at the end of the message.
func (f *fields) next() (bool, error) {
	f.begin = f.end
	if f.begin == len(f.message) {
		return false, nil
	}
	tag, at := uvarint(f.message, f.begin)
	number := tag >> 3
	if at < 0 || number == 0 || number > uint64(protowire.MaxValidNumber) {
		return false, f.malformed()
	}
	f.number, f.kind = protowire.Number(number), protowire.Type(tag&7)
	f.tagged, f.start = at, at
	switch f.kind {
	case protowire.BytesType:
		var length uint64
		if length, f.start = uvarint(f.message, at); f.start < 0 || length > uint64(len(f.message)-f.start) {
			return false, f.malformed()
		}
		f.end = f.start + int(length)
	case protowire.VarintType:
		if _, f.end = uvarint(f.message, at); f.end < 0 {
			return false, f.malformed()
		}
	default:
		n := protowire.ConsumeFieldValue(f.number, f.kind, f.message[at:])
		if n < 0 {
			return false, f.malformed()
		}
		f.end = at + n
	}
	return true, nil
}

// malformed returns an error without the bytes, and leaves the cursor where it cannot move.
func (f *fields) malformed() error {
	at := f.begin
	f.begin, f.end = len(f.message), len(f.message)
	return fmt.Errorf("malformed protobuf at byte %d of a message of %d bytes", at, len(f.message))
}

// value returns the bytes of the current field's value.
func (f *fields) value() []byte { return f.message[f.start:f.end] }

// uvarint returns the number that begins at a byte, and where it ends: -1 if it does not.
func uvarint(b []byte, at int) (uint64, int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	value, n := protowire.ConsumeVarint(b[at:])
	if n < 0 {
		return 0, -1
	}
	return value, at + n
}

// lastOf returns the value of a message's last field with a number. Nested messages that
// occur several times are merged by decoders; upstream writes each once.
func lastOf(message []byte, number protowire.Number) (value []byte, kind protowire.Type, ok bool, err error) {
	f := fields{message: message}
	for {
		more, err := f.next()
		if !more || err != nil {
			return value, kind, ok, err
		}
		if f.number == number {
			value, kind, ok = f.value(), f.kind, true
		}
	}
}

// openNested appends a tag and room for a length, for closeNested.
func openNested(dst, tag []byte) (opened []byte, lengthAt int) {
	dst = append(dst, tag...)
	return append(dst, 0), len(dst)
}

// closeNested writes the length of what was appended since openNested.
func closeNested(dst []byte, lengthAt int) []byte {
	length := uint64(len(dst) - lengthAt - 1)
	if length < 0x80 {
		dst[lengthAt] = byte(length)
		return dst
	}
	var encoded [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(encoded[:], length)
	return slices.Replace(dst, lengthAt, lengthAt+1, encoded[:n]...)
}

// edit appends what replaces a field to dst. It returns false to keep the field; what it
// appended is dropped then.
type edit func(dst []byte, f *fields) ([]byte, bool, error)

// editFields appends a message to dst, in which each field with a number is edited.
func editFields(dst, message []byte, number protowire.Number, edit edit) (edited []byte, changed bool, err error) {
	kept := 0
	f := fields{message: message}
	for {
		more, err := f.next()
		if err != nil {
			return dst, false, err
		}
		if !more {
			return append(dst, message[kept:]...), changed, nil
		}
		if f.number != number {
			continue
		}
		before := len(dst)
		after, ok, err := edit(append(dst, message[kept:f.begin]...), &f)
		if err != nil {
			return dst, false, err
		}
		if !ok {
			dst = after[:before]
			continue
		}
		dst, kept, changed = after, f.end, true
	}
}

// editNested edits the message that a field is.
func editNested(dst []byte, f *fields, within func(dst, message []byte) ([]byte, bool, error)) ([]byte, bool, error) {
	if f.kind != protowire.BytesType {
		return dst, false, wrongKind(f)
	}
	dst, lengthAt := openNested(dst, f.message[f.begin:f.tagged])
	dst, changed, err := within(dst, f.value())
	if !changed || err != nil {
		return dst, false, err
	}
	return closeNested(dst, lengthAt), true, nil
}

// wrongKind returns the error of a field that its type does not let be encoded so.
func wrongKind(f *fields) error {
	return fmt.Errorf("malformed protobuf: field %d has wire type %d", f.number, f.kind)
}

// setField appends a message to dst in which one field with a number is as encoded, and
// where it was: else where upstream's encoder puts it, in the order of numbers.
func setField(dst, message []byte, number protowire.Number, encoded []byte) ([]byte, error) {
	at, end := -1, -1
	f := fields{message: message}
	for {
		more, err := f.next()
		if err != nil {
			return dst, err
		}
		if !more {
			break
		}
		switch {
		case f.number == number:
			// The last one counts.
			at, end = f.begin, f.end
		case f.number > number && at < 0:
			at, end = f.begin, f.begin
		}
	}
	if at < 0 {
		at, end = len(message), len(message)
	}
	dst = append(dst, message[:at]...)
	dst = append(dst, encoded...)
	return append(dst, message[end:]...), nil
}
