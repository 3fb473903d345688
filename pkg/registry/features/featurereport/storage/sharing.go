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

package storage

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/feature-lifecycle/intern"
	"k8s.io/utils/lru"

	"k8s.io/kubernetes-features/pkg/apis/features"
)

// sharing makes reports that are read from etcd, and then held by the watch cache,
// share equal lists of features. Most data of 10,000 processes is the same few
// lists. Objects in the cache are never changed; writers change a copy (apiserver's
// endpoints/handlers and storage/cacher).
type sharing struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with a codec that shares.
func (s sharing) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || options.StorageConfig == nil || options.StorageConfig.Codec == nil {
		return options, err
	}
	config := *options.StorageConfig
	config.Codec = newSharingCodec(config.Codec)
	options.StorageConfig = &config
	return options, nil
}

// sharingCodec shares what it decodes. A list that it has decoded before is recognized by
// its bytes and not decoded again: each write of a report is decoded three times, and its
// list is most of it. It is safe for concurrent use.
type sharingCodec struct {
	runtime.Codec
	lists *intern.Lists[features.ReportedFeature]

	mu sync.Mutex
	// encoded are known lists by the hash of their bytes. Only one list of each hash is
	// known.
	encoded *lru.Cache
	// held is the number of bytes that the known lists have together.
	held int
}

// encodedList is a list, and its bytes.
type encodedList struct {
	bytes []byte
	list  []features.ReportedFeature
}

const (
	// keptEncoded is the largest number of different lists whose bytes are known, as many
	// as intern knows.
	keptEncoded = 1024
	// keptBytes is the largest number of bytes that they have together.
	keptBytes = 2 << 20
	// largestEncoded is the largest number of bytes of a known list: a longer one would
	// evict too many others.
	largestEncoded = keptBytes / 64
)

// seed is for hashes that are compared within this process only.
var seed = maphash.MakeSeed()

func newSharingCodec(codec runtime.Codec) *sharingCodec {
	c := &sharingCodec{Codec: codec, lists: intern.NewLists[features.ReportedFeature]()}
	c.encoded = lru.NewWithEvictionFunc(keptEncoded, func(_ lru.Key, known any) { c.held -= len(known.(encodedList).bytes) })
	return c
}

// Decode decodes an object, and lets a report share its list of features.
func (c *sharingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	encoded, rest := splitList(data)
	if list := c.known(encoded); list != nil {
		object, kind, err := c.Codec.Decode(rest, defaults, into)
		if report, ok := object.(*features.FeatureReport); ok && err == nil {
			report.Spec.Features = list
			return object, kind, nil
		}
		// It is something else, and is decoded as a whole.
	}
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if report, ok := object.(*features.FeatureReport); ok && err == nil {
		report.Spec.Features = c.lists.Of(report.Spec.Features)
		c.know(encoded, report.Spec.Features)
	}
	return object, kind, err
}

// known returns the list that has these bytes, nil if that is not known.
func (c *sharingCodec) known(encoded []byte) []features.ReportedFeature {
	if len(encoded) == 0 {
		return nil
	}
	hash := maphash.Bytes(seed, encoded)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.encoded.Get(hash); ok && bytes.Equal(known.(encodedList).bytes, encoded) {
		return known.(encodedList).list
	}
	return nil
}

// know records which list bytes encode.
func (c *sharingCodec) know(encoded []byte, list []features.ReportedFeature) {
	if len(encoded) == 0 || len(encoded) > largestEncoded || len(list) == 0 {
		return
	}
	hash := maphash.Bytes(seed, encoded)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encoded.Remove(hash)
	c.encoded.Add(hash, encodedList{bytes.Clone(encoded), list})
	for c.held += len(encoded); c.held > keptBytes; {
		c.encoded.RemoveOldest()
	}
}

// The fields of a stored report that lead to its list, by their numbers in
// runtime.Unknown and in the generated.proto of the API.
const (
	unknownRaw     protowire.Number = 2
	reportSpec     protowire.Number = 2
	reportFeatures protowire.Number = 6
)

// protobufMagic begins what apimachinery encodes as protobuf.
var protobufMagic = []byte("k8s\x00")

// splitList returns the list of a report that is encoded as protobuf, and the report
// without it. The list is nil if there is none, or if it is not where the API's own
// encoder puts it: in one piece.
func splitList(data []byte) (list, rest []byte) {
	if !bytes.HasPrefix(data, protobufMagic) {
		return nil, nil
	}
	raw, ok := find(data[len(protobufMagic):], unknownRaw)
	if !ok || !raw.once() {
		return nil, nil
	}
	spec, ok := find(raw.value, reportSpec)
	if !ok || !spec.once() {
		return nil, nil
	}
	at, ok := find(spec.value, reportFeatures)
	if !ok {
		return nil, nil
	}
	rest = append(rest, protobufMagic...)
	rest = raw.replace(rest, spec.replace(nil, at.without()))
	return at.encoded, rest
}

// field is what a message has of one of its fields, in one piece.
type field struct {
	number protowire.Number
	// before and after are the other fields, encoded is this one, with its tags.
	before, encoded, after []byte
	// value is the value of the last one.
	value []byte
}

// find returns a field of a message by its number. Ok is false if the field is missing or
// not in one piece, and if the message is not well formed.
func find(message []byte, number protowire.Number) (f field, ok bool) {
	start, end := -1, 0
	for at := 0; at < len(message); {
		num, kind, tag := protowire.ConsumeTag(message[at:])
		if tag < 0 {
			return field{}, false
		}
		size := protowire.ConsumeFieldValue(num, kind, message[at+tag:])
		if size < 0 {
			return field{}, false
		}
		next := at + tag + size
		if num == number {
			if kind != protowire.BytesType || start >= 0 && end != at {
				return field{}, false
			}
			if start < 0 {
				start = at
			}
			f.value, _ = protowire.ConsumeBytes(message[at+tag:])
			end = next
		}
		at = next
	}
	if start < 0 {
		return field{}, false
	}
	f.number, f.before, f.encoded, f.after = number, message[:start], message[start:end], message[end:]
	return f, true
}

// once returns true if the message has the field once. Values of an embedded message that is
// there twice are merged.
func (f field) once() bool {
	_, _, tag := protowire.ConsumeTag(f.encoded)
	_, size := protowire.ConsumeBytes(f.encoded[tag:])
	return tag+size == len(f.encoded)
}

// without returns the message without the field.
func (f field) without() []byte {
	return slices.Concat(f.before, f.after)
}

// replace appends the message with another value of the field.
func (f field) replace(to, value []byte) []byte {
	to = slices.Grow(to, len(f.before)+len(value)+len(f.after)+protowire.SizeTag(f.number)+protowire.SizeBytes(len(value)))
	to = append(to, f.before...)
	to = protowire.AppendTag(to, f.number, protowire.BytesType)
	to = protowire.AppendBytes(to, value)
	return append(to, f.after...)
}
