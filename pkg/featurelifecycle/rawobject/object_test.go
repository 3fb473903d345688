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
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// typedMeta is the type of an object in apps/v1.
func typedMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind}
}

func parsed(t testing.TB, plain []byte) Object {
	t.Helper()
	o, err := Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestParse(t *testing.T) {
	set := encoded(t, &appsv1.StatefulSet{TypeMeta: typedMeta("StatefulSet")})
	unknown := func(u runtime.Unknown) []byte {
		data, err := u.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte("k8s\x00"), data...)
	}
	of := runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	for name, tc := range map[string]struct {
		plain            string
		apiVersion, kind string
		wrong            string
	}{
		"protobuf":                     {plain: string(set), apiVersion: "apps/v1", kind: "StatefulSet"},
		"protobuf of a content type":   {plain: string(unknown(runtime.Unknown{TypeMeta: of, Raw: []byte{}, ContentType: "application/vnd.kubernetes.protobuf"})), apiVersion: "v1", kind: "Pod"},
		"JSON":                         {plain: `{"kind":"Pod","apiVersion":"v1","x":{"kind":"y"}}` + "\n", apiVersion: "v1", kind: "Pod"},
		"JSON with spaces and escapes": {plain: " {\n \"kind\" : \"P\\u006fd\", \"apiVersion\": \"v1\" } ", apiVersion: "v1", kind: "Pod"},
		"JSON without a type":          {plain: `{}`},
		"CBOR":                         {plain: "\xd9\xd9\xf7\xa0", wrong: "CBOR"},
		"JSON within protobuf":         {plain: string(unknown(runtime.Unknown{TypeMeta: of, Raw: []byte("{}"), ContentType: "application/json"})), wrong: "another encoding"},
		"compressed":                   {plain: string(unknown(runtime.Unknown{TypeMeta: of, Raw: []byte("x"), ContentEncoding: "gzip"})), wrong: "another encoding"},
		"no object in protobuf":        {plain: "k8s\x00", wrong: "no object"},
		"two objects in protobuf":      {plain: "k8s\x00\x12\x00\x12\x00", wrong: "two objects"},
		"protobuf that ends too early": {plain: string(set[:len(set)-1]), wrong: "malformed protobuf"},
		"a number for the type":        {plain: "k8s\x00\x08\x01", wrong: "wire type"},
		"nothing":                      {plain: "", wrong: "neither"},
		"YAML":                         {plain: "kind: Pod\n", wrong: "neither"},
		"a list":                       {plain: "[]", wrong: "neither"},
		"JSON that ends too early":     {plain: `{"kind":"Pod"`, wrong: "malformed JSON"},
		"two JSON objects":             {plain: `{}{}`, wrong: "malformed JSON"},
		"a number as the kind":         {plain: `{"kind":1}`, wrong: "no string"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Parse([]byte(tc.plain))
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("got %v, want an error with %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o.APIVersion() != tc.apiVersion || o.Kind() != tc.kind || !o.Is(tc.apiVersion, tc.kind) || o.Is(tc.apiVersion, "Other") {
				t.Errorf("got %s %s, want %s %s", o.APIVersion(), o.Kind(), tc.apiVersion, tc.kind)
			}
			if string(o.Bytes()) != tc.plain {
				t.Errorf("the bytes are not what was parsed: %q", o.Bytes())
			}
		})
	}
	if _, err := Parse([]byte("\xd9\xd9\xf7\xa0")); !errors.Is(err, ErrCBOR) {
		t.Errorf("CBOR: got %v, want ErrCBOR", err)
	}
}

// described is an object with all that Metadata is asked for.
func described() *appsv1.StatefulSet {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local())
	return &appsv1.StatefulSet{TypeMeta: typedMeta("StatefulSet"), ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "u", Generation: 3, DeletionTimestamp: &at, Finalizers: []string{"example.com/wait"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "y", Controller: ptr.To(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`), Subresource: "scale",
		}},
	}}
}

// bothEncodings calls check with the object as protobuf and as JSON.
func bothEncodings(t *testing.T, object runtime.Object, check func(t *testing.T, o Object)) {
	t.Helper()
	for name, plain := range map[string][]byte{"protobuf": encoded(t, object), "JSON": encodedJSON(t, object)} {
		t.Run(name, func(t *testing.T) { check(t, parsed(t, plain)) })
	}
}

func TestMetadata(t *testing.T) {
	set := described()
	bothEncodings(t, set, func(t *testing.T, o Object) {
		got, err := o.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(set.ObjectMeta, got); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
	})
}

func TestMetadataThatIsNone(t *testing.T) {
	for _, plain := range []string{`{"metadata":[]}`, `{"metadata":{"name":1}}`, "k8s\x00\x12\x02\x08\x01", "k8s\x00\x12\x04\x0a\x02\x08\x01"} {
		if got, err := parsed(t, []byte(plain)).Metadata(); err == nil {
			t.Errorf("%q has metadata %v, want an error", plain, got)
		}
	}
}

func TestWithGeneration(t *testing.T) {
	for _, generation := range []int64{0, 1, 127, 128, 1 << 40} {
		set := described()
		bothEncodings(t, set, func(t *testing.T, o Object) {
			edited, err := o.WithGeneration(generation)
			if err != nil {
				t.Fatal(err)
			}
			want := described()
			want.Generation = generation
			plain := encoded(t, want)
			if o.IsJSON() {
				plain = bytes.Replace(o.Bytes(), []byte(`"generation":3`), []byte(`"generation":`+strconv.FormatInt(generation, 10)), 1)
			}
			if diff := cmp.Diff(plain, edited.Bytes()); diff != "" {
				t.Errorf("generation %d (-want +got):\n%s", generation, diff)
			}
		})
	}
}

func TestWithGenerationWhereNoneIs(t *testing.T) {
	for plain, want := range map[string]string{
		`{"metadata":{}}`:                         `{"metadata":{"generation":5}}`,
		`{"metadata": { "name" : "a" } }`:         `{"metadata": { "name" : "a" ,"generation":5} }`,
		"k8s\x00\x12\x02\x0a\x00":                 "k8s\x00\x12\x04\x0a\x02\x38\x05",
		"k8s\x00\x12\x05\x0a\x03\x42\x01x":        "k8s\x00\x12\x07\x0a\x05\x38\x05\x42\x01x",
		"k8s\x00\x12\x06\x0a\x04\x38\x81\x80\x00": "k8s\x00\x12\x04\x0a\x02\x38\x05",
	} {
		edited, err := parsed(t, []byte(plain)).WithGeneration(5)
		if err != nil || string(edited.Bytes()) != want {
			t.Errorf("%q: got %q, %v, want %q", plain, edited.Bytes(), err, want)
		}
	}
	for _, plain := range []string{`{}`, `{"metadata":null}`, "k8s\x00\x12\x00"} {
		if edited, err := parsed(t, []byte(plain)).WithGeneration(5); err == nil {
			t.Errorf("%q: got %q, want an error", plain, edited.Bytes())
		}
	}
}

// TestEditsAdd: an object that was edited is edited again.
func TestEditsAdd(t *testing.T) {
	replicas := newField(t, reflect.TypeFor[appsv1.StatefulSet](), "spec.replicas")
	set := described()
	set.Spec.Replicas = ptr.To[int32](3)
	bothEncodings(t, set, func(t *testing.T, o Object) {
		edited, removed, err := replicas.Remove(o)
		if err != nil || removed != 1 {
			t.Fatalf("removed from %d places, %v", removed, err)
		}
		if edited, err = edited.WithGeneration(4); err != nil {
			t.Fatal(err)
		}
		if edited, err = edited.WithOwners([]OwnerEdit{{Index: 0}}); err != nil {
			t.Fatal(err)
		}
		want := described()
		want.Generation, want.ManagedFields = 4, nil
		var got appsv1.StatefulSet
		decodeTyped(t, edited.Bytes(), &got)
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Errorf("the edited object (-want +got):\n%s", diff)
		}
	})
}

func TestNewFieldRefuses(t *testing.T) {
	pod := reflect.TypeFor[corev1.Pod]()
	for path, want := range map[string]string{
		"":                                           "is neither a key",
		"spec.nonsense":                              "no field nonsense",
		"spec.volumes.projected":                     "is no struct",
		"spec.volumes{*}.projected":                  "selects entries of a map",
		"spec[*].volumes":                            "selects elements of a list",
		"spec.containers[*].resources.limits[*]":     "selects elements of a list",
		"metadata.labels.zone":                       "is no struct",
		"kind":                                       "no field kind",
		"metadata.creationTimestamp.Time":            "writes its JSON form itself",
		"spec.volumes[emptyDir=x]":                   "compare a string",
		"status.conditions[kind=x]":                  "no field kind",
		"spec.nodeName[a=b]":                         "selects elements of a list, or a struct",
		"spec.containers[*].args[a=b]":               "is no struct",
		"spec.containers[*].livenessProbe.port.type": "no field port",
	} {
		if _, err := NewField(pod, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", path, err, want)
		}
	}
}

// TestFieldWithoutAType: protobuf is not searched without the numbers.
func TestFieldWithoutAType(t *testing.T) {
	field := newField(t, nil, "spec.replicas")
	set := described()
	set.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
	o := parsed(t, encoded(t, set))
	_, err := field.Holds(o)
	_, _, err2 := field.Remove(o)
	_, err3 := field.Disown(o, taker, nil)
	for _, err := range []error{err, err2, err3} {
		if err == nil || !strings.Contains(err.Error(), "pass it to NewField") {
			t.Errorf("got %v, want an error about the type", err)
		}
	}
}

func newField(t testing.TB, typ reflect.Type, path string) *Field {
	t.Helper()
	field, err := NewField(typ, path)
	if err != nil {
		t.Fatal(err)
	}
	if field.String() != path {
		t.Errorf("the field names itself %s, want %s", field, path)
	}
	return field
}
