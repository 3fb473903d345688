/*
Copyright 2026 The Kubernetes Authors.

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

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVendor renews vendor/ of a small workspace that depends on one more module
// than vendor/ has: the one that the library brings.
func TestVendor(t *testing.T) {
	identity(t)
	dir := t.TempDir()
	tree := checkout{dir: dir}
	if renewed, err := tree.vendor(t.Context(), nil, true); renewed || err != nil {
		t.Errorf("without vendor/: %v, %v; want nothing done", renewed, err)
	}
	var sums []string
	for line := range strings.Lines(read(t, filepath.Join(root, libraryDir, "go.sum"))) {
		if strings.HasPrefix(line, "pgregory.net/rapid ") {
			sums = append(sums, line)
		}
	}
	version := strings.Fields(sums[0])[1]
	brought := map[string]string{"pgregory.net/rapid": version}
	put(t, dir, map[string]string{
		"go.work":            "go 1.26.0\n\nuse .\n",
		"go.mod":             "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire pgregory.net/rapid " + version + "\n",
		"go.sum":             strings.Join(sums, ""),
		"a.go":               "package kubernetes\n\nimport _ \"pgregory.net/rapid/nothing\"\n",
		"vendor/modules.txt": "## workspace\n",
		"vendor/OWNERS":      "approvers:\n  - dep-approvers\n",
	})
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "before")
	if renewed, err := tree.vendor(t.Context(), brought, true); renewed || err == nil || !strings.Contains(err.Error(), "could not be renewed; land again") {
		t.Errorf("with an import of nothing: %v, %v; want a failure", renewed, err)
	}
	// All has landed now, and vendoring is still to be done.
	if got := read(t, filepath.Join(dir, "vendor/OWNERS")); got != "approvers:\n  - dep-approvers\n" {
		t.Errorf("after the failure OWNERS is %q", got)
	}
	put(t, dir, map[string]string{"a.go": "package kubernetes\n\nimport _ \"pgregory.net/rapid\"\n"})
	if renewed, err := tree.vendor(t.Context(), brought, false); !renewed || err != nil {
		t.Fatalf("%v, %v; want it renewed", renewed, err)
	}
	if got := read(t, filepath.Join(dir, "vendor/OWNERS")); got != "approvers:\n  - dep-approvers\n" {
		t.Errorf("OWNERS became %q", got)
	}
	text := read(t, filepath.Join(dir, "vendor/pgregory.net/rapid/LICENSE"))
	// The last line is what upstream's script writes for this module.
	want := "= vendor/pgregory.net/rapid licensed under: =\n\n" + text + "\n= vendor/pgregory.net/rapid/LICENSE 48a3fe23ed1353e0995dadfda05ffdb6\n"
	license := filepath.Join(dir, "LICENSES/vendor/pgregory.net/rapid/LICENSE")
	if got := read(t, license); got != want {
		t.Errorf("the licence is\n%s\nwant\n%s", got, want)
	}
	// What a fork has of a known module is its own.
	put(t, dir, map[string]string{"LICENSES/vendor/pgregory.net/rapid/LICENSE": "mine"})
	if _, err := tree.vendor(t.Context(), brought, true); err != nil || read(t, license) != "mine" {
		t.Errorf("the second time: %v, and the licence is %q", err, read(t, license))
	}
	if renewed, err := tree.vendor(t.Context(), brought, false); renewed || err != nil {
		t.Errorf("when nothing has landed and all is there: %v, %v", renewed, err)
	}
	// Also where somebody has committed what a failure left behind.
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "after")
	if err := os.Remove(license); err != nil {
		t.Fatal(err)
	}
	if renewed, err := tree.vendor(t.Context(), brought, false); !renewed || err != nil || read(t, license) != want {
		t.Errorf("without the licence: %v, %v", renewed, err)
	}
	if err := os.Remove(filepath.Join(dir, "vendor/pgregory.net/rapid/LICENSE")); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.license("pgregory.net/rapid"); err == nil || !strings.Contains(err.Error(), "pgregory.net/rapid in vendor/ has no licence") {
		t.Errorf("a module without a licence: %v", err)
	}
}
