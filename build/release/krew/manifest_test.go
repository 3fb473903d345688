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

package krew

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var some = New("trees", Spec{
	Version: "v1.2.3+fork.1", Homepage: "https://example.com/trees", ShortDescription: "Count trees: all of them",
	Description: "Counts trees.\n\nIt is slow.\n",
	Platforms: []Platform{{
		Selector: Selector{MatchLabels: map[string]string{"os": "linux", "arch": "amd64"}},
		URI:      "https://example.com/trees.tar.gz", SHA256: "00",
		Files: []File{{From: "kubectl-trees", To: "."}}, Bin: "kubectl-trees",
	}},
})

const written = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: trees
spec:
  description: |
    Counts trees.

    It is slow.
  homepage: https://example.com/trees
  platforms:
  - bin: kubectl-trees
    files:
    - from: kubectl-trees
      to: .
    selector:
      matchLabels:
        arch: amd64
        os: linux
    sha256: "00"
    uri: https://example.com/trees.tar.gz
  shortDescription: 'Count trees: all of them'
  version: v1.2.3+fork.1
`

func TestManifestWritten(t *testing.T) {
	data, err := some.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, string(data)); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
}

func TestManifestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trees.yaml")
	if err := os.WriteFile(file, []byte(written), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(some, got); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(file, []byte(written+"other: field\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file); err == nil {
		t.Errorf("a manifest with an unknown field was read: %v", got)
	}
}
