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
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"k8s.io/kubernetes-features/pkg/apis/features"
)

// TestReportsShareEqualLists when they are read, and what one of them is
// changed to is its own.
func TestReportsShareEqualLists(t *testing.T) {
	r := newREST(t)
	with := func(ctx context.Context, component, name string, enabled bool) {
		made := report(component, name, name, "")
		made.Spec.Features = []features.ReportedFeature{{Name: "A", Enabled: enabled, Queried: true}, {Name: "B", Queried: true}}
		created(ctx, t, r, made)
	}
	with(node(t, "n1"), "kubelet", "n1", true)
	with(node(t, "n2"), "kubelet", "n2", true)
	with(in(t, "agent"), "agent", "n1", false)
	one, two, other := read(t, r, "kubelet.n1"), read(t, r, "kubelet.n2"), read(t, r, "agent.n1")
	if &one.Spec.Features[0] != &two.Spec.Features[0] {
		t.Error("equal lists are not shared")
	}
	if &one.Spec.Features[0] == &other.Spec.Features[0] {
		t.Error("different lists are shared")
	}
	if cap(one.Spec.Features) != len(one.Spec.Features) {
		t.Error("who appends to a shared list changes others")
	}
	want := two.DeepCopy()
	changed := read(t, r, "kubelet.n1").DeepCopy()
	changed.Spec.Features[0].Enabled = false
	_, err := update(node(t, "n1"), r, changed, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, r, "kubelet.n1"); got.Spec.Features[0].Enabled {
		t.Error("the change was lost")
	}
	if diff := cmp.Diff(want, read(t, r, "kubelet.n2")); diff != "" {
		t.Errorf("another report changed, too (-want +got):\n%s", diff)
	}
}

// storageCodec encodes and decodes reports as they are stored.
func storageCodec(t testing.TB) runtime.Codec {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf")
	}
	return legacyscheme.Codecs.CodecForVersions(info.Serializer, legacyscheme.Codecs.UniversalDeserializer(), v1alpha1.SchemeGroupVersion, features.SchemeGroupVersion)
}

// longReport is a report of n features.
func longReport(name string, n int) *features.FeatureReport {
	r := &features.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kubelet." + name, Generation: 7, Labels: map[string]string{"a": "b"}},
		Spec: features.FeatureReportSpec{
			Component: "kubelet", Instance: name, NodeName: name, BinaryVersion: "v1.37.2", EmulationVersion: "1.37",
			Username: "system:node:" + name, Process: "4d2c9c5e-6a5a-4f0f-9a52-7d1c3c5a4b10",
		},
	}
	for i := range n {
		r.Spec.Features = append(r.Spec.Features, features.ReportedFeature{Name: fmt.Sprintf("Feature%d", i), Enabled: i%2 == 0, Queried: true, Stage: "Alpha"})
	}
	return r
}

func encoded(t testing.TB, codec runtime.Codec, r *features.FeatureReport) []byte {
	t.Helper()
	data, err := runtime.Encode(codec, r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestListIsKnownByItsBytes: the second report with a list is decoded without it, and is
// what it would be otherwise.
func TestListIsKnownByItsBytes(t *testing.T) {
	plain := storageCodec(t)
	sharing := newSharingCodec(plain)
	for _, n := range []int{0, 1, 48, 250} {
		for _, name := range []string{"n1", "n2", "n3"} {
			want := longReport(name, n)
			data := encoded(t, plain, want)
			list, _ := splitList(data)
			if name != "n1" && n > 0 && sharing.known(list) == nil {
				t.Errorf("the list of %d features is not known when it comes again", n)
			}
			got, _, err := sharing.Decode(data, nil, &features.FeatureReport{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %d features (-want +got):\n%s", name, n, diff)
			}
		}
	}
}

// TestListInOtherPlaces: reports that another encoder wrote are decoded alike, and as a
// whole where their list is not in one piece.
func TestListInOtherPlaces(t *testing.T) {
	plain := storageCodec(t)
	data := encoded(t, plain, longReport("n1", 3))
	raw, _ := find(data[len(protobufMagic):], unknownRaw)
	spec, _ := find(raw.value, reportSpec)
	list, _ := find(spec.value, reportFeatures)
	message := func(spec []byte) []byte { return raw.replace(slices.Clone(protobufMagic), spec) }
	inSpec := func(value []byte) []byte { return message(spec.replace(nil, value)) }
	_, _, tag := protowire.ConsumeTag(list.encoded)
	_, size := protowire.ConsumeBytes(list.encoded[tag:])
	first, others := list.encoded[:tag+size], list.encoded[tag+size:]
	for name, data := range map[string][]byte{
		"first in the message":    inSpec(slices.Concat(list.encoded, list.before, list.after)),
		"last in the message":     inSpec(slices.Concat(list.before, list.after, list.encoded)),
		"in two pieces":           inSpec(slices.Concat(first, list.before, others, list.after)),
		"in a spec that is split": message(slices.Concat(raw.before[:0], spec.before, protowire.AppendBytes(protowire.AppendTag(nil, reportSpec, protowire.BytesType), slices.Concat(list.before, first)), protowire.AppendBytes(protowire.AppendTag(nil, reportSpec, protowire.BytesType), slices.Concat(others, list.after)), spec.after)),
	} {
		t.Run(name, func(t *testing.T) {
			sharing := newSharingCodec(plain)
			want, _, err := plain.Decode(data, nil, &features.FeatureReport{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(want.(*features.FeatureReport).Spec.Features); n != 3 {
				t.Fatalf("the test's report has %d features, want 3", n)
			}
			for range 2 {
				got, _, err := sharing.Decode(data, nil, &features.FeatureReport{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestBytesOfRarelyUsedListsAreForgotten: what is held is counted, and bounded.
func TestBytesOfRarelyUsedListsAreForgotten(t *testing.T) {
	plain := storageCodec(t)
	sharing := newSharingCodec(plain)
	decode := func(n int, prefix string) (list []byte) {
		t.Helper()
		r := longReport("n1", n)
		for i := range r.Spec.Features {
			r.Spec.Features[i].Name = prefix + r.Spec.Features[i].Name
		}
		data := encoded(t, plain, r)
		if _, _, err := sharing.Decode(data, nil, &features.FeatureReport{}); err != nil {
			t.Fatal(err)
		}
		list, _ = splitList(data)
		return list
	}
	first := decode(500, "First")
	if sharing.held != len(first) {
		t.Errorf("%d bytes are held of one list of %d", sharing.held, len(first))
	}
	// A list that takes its place, as one of the same hash does, is counted once.
	sharing.know(first, longReport("n1", 500).Spec.Features)
	if sharing.held != len(first) {
		t.Errorf("%d bytes are held of a list of %d that was replaced", sharing.held, len(first))
	}
	size := 0
	for i := 0; size <= keptBytes+largestEncoded; i++ {
		list := decode(500, fmt.Sprintf("List%d", i))
		size += len(list)
		if sharing.known(list) == nil {
			t.Fatalf("list %d of %d bytes is not known", i, len(list))
		}
		if sharing.held > keptBytes {
			t.Fatalf("%d bytes are held, more than %d", sharing.held, keptBytes)
		}
	}
	if sharing.known(first) != nil {
		t.Error("the first list is known after others that fill the cache")
	}
	if long := decode(2000, "Long"); len(long) <= largestEncoded || sharing.known(long) != nil {
		t.Errorf("a list of %d bytes is known, or is not longer than the largest, %d", len(long), largestEncoded)
	}
}

// FuzzSharingCodec: it decodes what the codec decodes, whatever it has seen before.
func FuzzSharingCodec(f *testing.F) {
	plain := storageCodec(f)
	sharing := newSharingCodec(plain)
	for _, n := range []int{0, 1, 3, 48} {
		data := encoded(f, plain, longReport("n1", n))
		if _, _, err := sharing.Decode(data, nil, &features.FeatureReport{}); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
		f.Add(append(bytes.Clone(data), data...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, _, wantErr := plain.Decode(bytes.Clone(data), nil, &features.FeatureReport{})
		// The second time a list is known by its bytes.
		for range 2 {
			got, _, err := sharing.Decode(data, nil, &features.FeatureReport{})
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("got error %v, want %v", err, wantErr)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	})
}

// BenchmarkDecodeReport of a kubelet with the codec, and with the one that shares.
func BenchmarkDecodeReport(b *testing.B) {
	plain := storageCodec(b)
	data := encoded(b, plain, longReport("n1", 48))
	for name, codec := range map[string]runtime.Codec{"plain": plain, "sharing": newSharingCodec(plain)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := codec.Decode(data, nil, &features.FeatureReport{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
