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
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/feature-lifecycle/lifecycle/task"
	_ "k8s.io/kubernetes/pkg/controlplane" // the built-in types
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

// TestRemovedFieldsInStoredBytes reads what the version before and this one store.
func TestRemovedFieldsInStoredBytes(t *testing.T) {
	slice, pod := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	old := slice
	old.Version = "v1beta2"
	inMap := resources
	inMap.Path, inMap.Number = "spec.overhead{*}.string", 1
	inline := resources
	inline.Path, inline.Number = "spec.volumes[*].emptyDir.medium", 1
	for name, tc := range map[string]struct {
		version, file string
		kind          schema.GroupVersionKind
		field         task.RemovedField
		want          bool
	}{
		"a slice of the version before, as protobuf": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.pb", slice, mappings, true},
		"that, as JSON": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.json", slice, mappings, true},
		"a slice of the version before that was written by this one": {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.after_roundtrip.pb", slice, mappings, false},
		"that, as JSON, again":               {"v1.36.0", "resource.k8s.io.v1.ResourceSlice.after_roundtrip.json", slice, mappings, false},
		"a slice of this version":            {"HEAD", "resource.k8s.io.v1.ResourceSlice.pb", slice, mappings, false},
		"a slice of this version, as JSON":   {"HEAD", "resource.k8s.io.v1.ResourceSlice.json", slice, mappings, false},
		"a slice of an older one":            {"v1.35.0", "resource.k8s.io.v1.ResourceSlice.pb", slice, mappings, false},
		"another version of the API":         {"v1.36.0", "resource.k8s.io.v1beta2.ResourceSlice.pb", old, mappings, false},
		"a Pod of the version before":        {"v1.36.0", "core.v1.Pod.pb", pod, resources, true},
		"a Pod of that version, as JSON":     {"v1.36.0", "core.v1.Pod.json", pod, resources, true},
		"a Pod of this version":              {"HEAD", "core.v1.Pod.pb", pod, resources, false},
		"a Pod of this version, as JSON":     {"HEAD", "core.v1.Pod.json", pod, resources, false},
		"values of a map":                    {"HEAD", "core.v1.Pod.pb", pod, inMap, true},
		"what is embedded in JSON":           {"HEAD", "core.v1.Pod.pb", pod, inline, true},
		"a kind that this server never knew": {"HEAD", "core.v1.Pod.pb", schema.GroupVersionKind{Version: "v1", Kind: "Gadget"}, resources, false},
	} {
		if got := holdsRemoved(publishedObject(t, tc.version, tc.file), tc.kind, tc.field); got != tc.want {
			t.Errorf("%s: the field is there: %t, want %t", name, got, tc.want)
		}
	}
}

// TestRemovedFieldsInGarbage: bytes that are neither JSON nor protobuf, or end too early.
func TestRemovedFieldsInGarbage(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"}
	whole := publishedObject(t, "v1.36.0", "resource.k8s.io.v1.ResourceSlice.pb")
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(whole[len(protobufPrefix):]); err != nil {
		t.Fatal(err)
	}
	cut := envelope
	cut.Raw = envelope.Raw[:10]
	short, err := cut.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	partial, err := json.Marshal(map[string]any{"spec": map[string]any{"devices": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, plain := range map[string][]byte{
		"nothing": nil, "text": []byte("no server can decode this"), "an envelope of garbage": []byte("k8s\x00garbage"),
		"a part of an object": append([]byte("k8s\x00"), short...), "JSON of another shape": partial, "a part of JSON": []byte(`{"spec":`),
	} {
		if holdsRemoved(plain, kind, mappings) {
			t.Errorf("%s has the field", name)
		}
	}
}
