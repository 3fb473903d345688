//go:build linux

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

package clients

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// update writes the transcripts.
var update = flag.Bool("update", false, "write the transcripts of clients")

// transcript is what one client did and saw, and what the server stored of it. Those of
// testdata are what is expected.
type transcript struct {
	client
	objects framework.Objects
	dir     string
	text    strings.Builder
	// versions are the resource versions at the last look.
	versions map[string]string
}

func (s *transcript) heading(text string) { fmt.Fprintf(&s.text, "== %s\n", text) }

// do does an action with an edition of the manifest, and returns what the client printed.
func (s *transcript) do(t *testing.T, action string, e edition) []string {
	t.Helper()
	file := filepath.Join(s.dir, fmt.Sprintf("%s-%s.json", s.name, strings.ReplaceAll(string(e), " ", "-")))
	if err := os.WriteFile(file, manifest(t, managed(s.name, e)), 0o600); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&s.text, "%s %s\n", action, e)
	// Names without a namespace are the client's.
	names := strings.NewReplacer(file, "FILE", "resourceslice.resource.k8s.io/"+s.name, "resourceslice.resource.k8s.io/web", "ResourceSlice/"+s.name, "ResourceSlice/web")
	printed := s.run(t, action, file)
	for _, text := range printed {
		fmt.Fprintf(&s.text, "  %s\n", names.Replace(text))
	}
	for _, object := range s.stored(t) {
		kind, version := object.GetKind(), object.GetResourceVersion()
		became := "written"
		switch s.versions[kind] {
		case "":
			became = "created"
		case version:
			became = "not written"
		}
		s.versions[kind] = version
		fmt.Fprintf(&s.text, "  stored: %s %s, has %s\n", kind, became, or(gated(object), "no field of a gate"))
	}
	return printed
}

// look takes note of what others wrote.
func (s *transcript) look(t *testing.T) {
	t.Helper()
	for _, object := range s.stored(t) {
		s.versions[object.GetKind()] = object.GetResourceVersion()
	}
}

// or is the first text that is not empty.
func or(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// stored are the client's objects.
func (s *transcript) stored(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return []*unstructured.Unstructured{
		s.objects.Read(t, statefulSets, s.name, "web"), s.objects.Read(t, deployments, s.name, "web"), s.objects.Read(t, deviceSlices, "", s.name),
	}
}

// check holds the transcript against what is expected.
func (s *transcript) check(t *testing.T) {
	t.Helper()
	file := filepath.Join("testdata", s.name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(s.text.String()), 0o644); err != nil {
			t.Error(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("what %s should do is not written: %v; run this test with -update, and read what it wrote", s.name, err)
	}
	if diff := cmp.Diff(string(want), s.text.String()); diff != "" {
		t.Errorf("what %s did is not that of %s (-want +got):\n%s", s.name, file, diff)
	}
}

// resources are those of the objects, in their order.
var resources = []schema.GroupVersionResource{statefulSets, deployments, deviceSlices}
