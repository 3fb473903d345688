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
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apitestingfuzzer "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
)

// TestFieldSetHoldsWhatItsFieldsHold compares one walk for all declared fields of a kind with
// one for each field, in random objects that have some of them.
func TestFieldSetHoldsWhatItsFieldsHold(t *testing.T) {
	byKind := map[schema.GroupVersionKind][]declared{}
	for _, d := range declaredFields(t) {
		byKind[d.kind] = append(byKind[d.kind], d)
	}
	for kind, all := range byKind {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			var fields []*Field
			for _, d := range all {
				fields = append(fields, newField(t, d.typ, d.path))
			}
			set, held := NewFieldSet(fields), make([]bool, len(fields))
			for i, d := range all {
				tr := &trial{
					T: t, declared: d, field: fields[i], rand: rand.New(rand.NewSource(int64(i))),
					fill: apitestingfuzzer.FuzzerFor(apitesting.FuzzerFuncs, rand.NewSource(int64(i)), legacyscheme.Codecs).NilChance(0.7).NumElements(0, 2),
				}
				object := tr.object()
				plain := tr.encode(object)
				empty := parsed(t, plain).withBody([]byte{})
				for _, o := range []Object{parsed(t, plain), parsed(t, tr.inject(plain)), parsed(t, encodedJSON(t, object)), empty, parsed(t, reversed(t, plain))} {
					if err := set.Hold(o, held); err != nil {
						t.Fatal(err)
					}
					for j, field := range fields {
						if has, err := field.Holds(o); err != nil || has != held[j] {
							t.Fatalf("the set says %t of %s, the field alone %t, %v, in an object made for %s, as JSON: %t", held[j], field, has, err, d.path, o.IsJSON())
						}
					}
				}
			}
		})
	}
}

// reversed returns an object whose fields are in the opposite order, as decoders allow it.
func reversed(t *testing.T, plain []byte) []byte {
	t.Helper()
	o := parsed(t, plain)
	var body []byte
	f := fields{message: o.body}
	for {
		more, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return o.withBody(body).Bytes()
		}
		body = slices.Concat(f.message[f.begin:f.end], body)
	}
}

// TestFieldWithValue compares the values that bytes show with those that the API shows.
func TestFieldWithValue(t *testing.T) {
	tried := map[string]int{}
	for i, d := range declaredFields(t) {
		field := newField(t, d.typ, d.path)
		if field.WithValue(func(any) bool { return true }) == nil {
			continue
		}
		path, err := task.ParsePath(d.path)
		if err != nil {
			t.Fatal(err)
		}
		tr := &trial{
			T: t, declared: d, field: field, rand: rand.New(rand.NewSource(int64(i))),
			fill: apitestingfuzzer.FuzzerFor(apitesting.FuzzerFuncs, rand.NewSource(int64(i)), legacyscheme.Codecs).NumElements(1, 2),
		}
		for range objectsPerPath {
			object := tr.object()
			content, o := tr.content(object), parsed(t, tr.encode(object))
			var want, got []any
			for _, pointer := range path.Pointers(content) {
				want = append(want, valueAt(t, content, pointer))
			}
			all := field.WithValue(func(value any) bool { got = append(got, value); return false })
			if has, err := all.Holds(o); has || err != nil {
				t.Fatal(d.path, has, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("values of %s in a %s (-API +bytes):\n%s", d.path, d.kind, diff)
			}
			for _, value := range want {
				if has, err := field.WithValue(func(v any) bool { return v == value }).Holds(o); !has || err != nil {
					t.Fatalf("%s=%v in a %s: %t, %v", d.path, value, d.kind, has, err)
				}
				tried[fmt.Sprintf("%T", value)]++
			}
		}
	}
	if tried["string"] == 0 || tried["int64"] == 0 || tried["bool"] == 0 {
		t.Errorf("tried values of these types: %v", tried)
	}
}

// valueAt returns what is at a JSON pointer.
func valueAt(t *testing.T, value any, pointer string) any {
	t.Helper()
	for key := range strings.SplitSeq(pointer[1:], "/") {
		switch within := value.(type) {
		case map[string]any:
			value = within[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
		case []any:
			at, err := strconv.Atoi(key)
			if err != nil {
				t.Fatal(err)
			}
			value = within[at]
		}
	}
	return value
}

// TestFieldsWithoutValuesInBytes: messages are none, nor is what JSON shows where bytes have
// nothing.
func TestFieldsWithoutValuesInBytes(t *testing.T) {
	for _, path := range []string{"spec", "metadata.creationTimestamp", "spec.containers[*].args[*]", "spec.containers[*].name", "spec.containers[*].resources.limits{cpu}"} {
		if newField(t, reflect.TypeOf(podOf(1)).Elem(), path).WithValue(func(any) bool { return true }) != nil {
			t.Errorf("%s has values in bytes", path)
		}
	}
}

func TestFieldSetOfMalformedMessages(t *testing.T) {
	set := NewFieldSet([]*Field{
		newField(t, reflect.TypeOf(podOf(1)).Elem(), "spec.containers[*].lifecycle"), newField(t, reflect.TypeOf(podOf(1)).Elem(), "spec.hostUsers"),
	})
	o := parsed(t, encoded(t, podOf(2)))
	held := make([]bool, 2)
	if err := set.Hold(o, held); err != nil || !slices.Equal(held, []bool{true, false}) {
		t.Fatal(held, err)
	}
	if err := set.Hold(o.withBody(o.body[:len(o.body)-1]), held); err == nil {
		t.Error("a message that was cut off is no error")
	}
}

// BenchmarkFieldSet compares one walk for all declared fields with one for each.
func BenchmarkFieldSet(b *testing.B) {
	for _, object := range []struct {
		plain []byte
		typ   reflect.Type
		kind  schema.GroupVersionKind
	}{
		{encoded(b, podOf(10)), reflect.TypeOf(podOf(1)).Elem(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
		{encoded(b, podOf(1)), reflect.TypeOf(podOf(1)).Elem(), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
	} {
		var fields []*Field
		for _, d := range declaredFields(b) {
			if d.kind == object.kind && !slices.Contains(madeByHand[d.kind], d.path) {
				fields = append(fields, newField(b, d.typ, d.path))
			}
		}
		o, name := parsed(b, object.plain), fmt.Sprintf("%d fields in a %s of %d bytes", len(fields), object.kind.Kind, len(object.plain))
		b.Run(name+"/each", func(b *testing.B) {
			for b.Loop() {
				for _, f := range fields {
					if _, err := f.Holds(o); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		set, held := NewFieldSet(fields), make([]bool, len(fields))
		b.Run(name+"/together", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := set.Hold(o, held); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
