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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane" // the built-in types
	"sigs.k8s.io/yaml"
)

// mappings is the field of ResourceSlices that 1.37 replaced.
var mappings = task.RemovedField{
	Resource: schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"},
	Path:     "spec.devices[*].nodeAllocatableResourceMappings", Number: 13, At: "1.37",
}

// resources is the one of Pods' status.
var resources = task.RemovedField{
	Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	Path:     "status.nodeAllocatableResourceClaimStatuses[*].resources", Number: 3, At: "1.37",
}

// publishedObject returns an object with every field set, as upstream publishes it for each minor
// version in the module of the API types (testdata of k8s.io/api).
func publishedObject(t *testing.T, version, name string) []byte {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "testdata", version, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// asYAML and asCBOR return a published object, which is JSON, in another encoding of
// storage (--storage-media-type; CBOR with the gate CBORServingAndStorage).
func asYAML(t *testing.T, object []byte) []byte {
	t.Helper()
	data, err := yaml.JSONToYAML(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func asCBOR(t *testing.T, object []byte) []byte {
	t.Helper()
	var content unstructured.Unstructured
	if err := content.UnmarshalJSON(object); err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	if err := cbor.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme).Encode(&content, &data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// enveloped returns a protobuf object as it is stored.
func enveloped(t *testing.T, envelope runtime.Unknown) []byte {
	t.Helper()
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(protobufPrefix), data...)
}

// envelopeOf returns what is in a stored protobuf object.
func envelopeOf(t *testing.T, stored []byte) runtime.Unknown {
	t.Helper()
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(bytes.TrimPrefix(stored, protobufPrefix)); err != nil {
		t.Fatal(err)
	}
	return envelope
}

// TestRemovedFieldsInStoredBytes reads what the version before and this one store.
func TestRemovedFieldsInStoredBytes(t *testing.T) {
	inMap := resources
	inMap.Path, inMap.Number = "spec.overhead{*}.string", 1
	inline := resources
	inline.Path, inline.Number = "spec.volumes[*].emptyDir.medium", 1
	for name, tc := range map[string]struct {
		version, file string
		field         task.RemovedField
		want          bool
	}{
		"a slice of the version before, as protobuf": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.pb", mappings, true},
		"that, as text": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.json", mappings, true},
		"a slice of the version before that was written by this one": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.after_roundtrip.pb", mappings, false},
		"that, as text, again":           {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.after_roundtrip.json", mappings, false},
		"a slice of this version":        {"HEAD", "resource.k8s.io.v1.ResourceSlice.pb", mappings, false},
		"a slice of this version, text":  {"HEAD", "resource.k8s.io.v1.ResourceSlice.json", mappings, false},
		"a slice of an older one":        {"v1.35.0", "resource.k8s.io.v1.ResourceSlice.pb", mappings, false},
		"another version of the API":     {"v1.36.0", "resource.k8s.io.v1beta2.ResourceSlice.pb", mappings, false},
		"that other version, as text":    {"v1.36.0", "resource.k8s.io.v1beta2.ResourceSlice.json", mappings, false},
		"a Pod of the version before":    {"v1.36.0", "core.v1.Pod.pb", resources, true},
		"a Pod of that version, as text": {"v1.36.0", "core.v1.Pod.json", resources, true},
		"a Pod of this version":          {"HEAD", "core.v1.Pod.pb", resources, false},
		"a Pod of this version, as text": {"HEAD", "core.v1.Pod.json", resources, false},
		"values of a map":                {"HEAD", "core.v1.Pod.pb", inMap, true},
		"what is embedded in JSON":       {"HEAD", "core.v1.Pod.pb", inline, true},
	} {
		object := publishedObject(t, tc.version, tc.file)
		encodings := map[string][]byte{"as published": object}
		if strings.HasSuffix(tc.file, ".json") {
			encodings["as YAML"], encodings["as CBOR"] = asYAML(t, object), asCBOR(t, object)
		}
		for encoding, plain := range encodings {
			if got, err := (&removedField{RemovedField: tc.field}).in(plain); err != nil || got != tc.want {
				t.Errorf("%s, %s: the field is there: %t, %v; want %t", name, encoding, got, err, tc.want)
			}
		}
	}
}

// TestRemovedFieldsInNewerBytes: a version of the API that this server does not know does
// not have the field, and fields that it does not know are passed over.
func TestRemovedFieldsInNewerBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want bool
	}{"without the field": {"resource.k8s.io.v1.ResourceSlice.after_roundtrip", false}, "with it": {"resource.k8s.io.v1.ResourceSlice", true}} {
		envelope := envelopeOf(t, publishedObject(t, "v1.36.0", tc.file+".pb"))
		// A number that no version has used, before and behind all others.
		unknown := protowire.AppendString(protowire.AppendTag(nil, 4711, protowire.BytesType), "newer")
		envelope.Raw = slices.Concat(unknown, envelope.Raw, unknown)
		if has, err := (&removedField{RemovedField: mappings}).in(enveloped(t, envelope)); err != nil || has != tc.want {
			t.Errorf("%s, beside unknown fields: %t, %v; want %t", name, has, err, tc.want)
		}
		envelope.APIVersion = "resource.k8s.io/v2"
		if has, err := (&removedField{RemovedField: mappings}).in(enveloped(t, envelope)); err != nil || has {
			t.Errorf("%s, in a newer version of the API: %t, %v; want none", name, has, err)
		}
		newer := bytes.Replace(publishedObject(t, "v1.36.0", tc.file+".json"), []byte(`"resource.k8s.io/v1"`), []byte(`"resource.k8s.io/v2"`), 1)
		for encoding, plain := range map[string][]byte{"JSON": newer, "YAML": asYAML(t, newer), "CBOR": asCBOR(t, newer)} {
			if has, err := (&removedField{RemovedField: mappings}).in(plain); err != nil || has {
				t.Errorf("%s, in a newer version of the API, as %s: %t, %v; want none", name, encoding, has, err)
			}
		}
	}
}

// TestUnreadableBytesAreNoAnswer: whether they hold the field is not known, and nothing of
// them is quoted.
func TestUnreadableBytesAreNoAnswer(t *testing.T) {
	envelope := envelopeOf(t, publishedObject(t, "v1.36.0", "resource.k8s.io.v1.ResourceSlice.pb"))
	short, other, unknown := envelope, envelope, envelope
	short.Raw = envelope.Raw[:10]
	other.Kind = "DeviceClass"
	unknown.APIVersion = "v1"
	noPath, noType := mappings, mappings
	noPath.Path = "spec.gadgets[*].hue"
	noType.Resource.Version = "v2"
	newer := envelope
	newer.APIVersion = "resource.k8s.io/v2"
	for name, tc := range map[string]struct {
		plain []byte
		field task.RemovedField
		says  string
	}{
		"nothing":                    {nil, mappings, "it names no kind"},
		"text":                       {[]byte("secret"), mappings, "reading it as JSON, YAML or CBOR"},
		"an envelope of garbage":     {[]byte("k8s\x00secret"), mappings, "malformed protobuf"},
		"a part of an object":        {enveloped(t, short), mappings, "malformed protobuf"},
		"a part of JSON":             {[]byte(`{"kind":"ResourceSlice","spec":"secret`), mappings, "reading it as JSON, YAML or CBOR"},
		"JSON without a kind":        {[]byte(`{"spec":"secret"}`), mappings, "it names no kind"},
		"another kind":               {enveloped(t, other), mappings, "it is a DeviceClass.resource.k8s.io and not one of resourceslices.resource.k8s.io"},
		"a kind of another group":    {enveloped(t, unknown), mappings, "it is a ResourceSlice and not one of resourceslices.resource.k8s.io"},
		"another kind, as text":      {[]byte(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass"}`), mappings, "not one of resourceslices.resource.k8s.io"},
		"a path that is not":         {enveloped(t, envelope), noPath, "ResourceSliceSpec has no field gadgets"},
		"a version that is not here": {enveloped(t, newer), noType, "this server has no type resource.k8s.io/v2, Kind=ResourceSlice"},
	} {
		has, err := (&removedField{RemovedField: tc.field}).in(tc.plain)
		if has || err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %t, %v; want an error that says %q", name, has, err, tc.says)
		}
	}
	// What decodes and has no such field is an answer.
	shape := []byte(`{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","spec":{"devices":"none"}}`)
	if has, err := (&removedField{RemovedField: mappings}).in(shape); has || err != nil {
		t.Errorf("JSON of another shape: %t, %v", has, err)
	}
}
