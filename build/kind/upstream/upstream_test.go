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

package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/targets"
)

func TestVersion(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, string(Previous), "go.mod")
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ content, want, complaint string }{
		{"module m\n\nrequire k8s.io/kubernetes v1.36.3 // indirect\n", "v1.36.3", ""},
		{"module m\n\nrequire (\n\tk8s.io/kubectl v0.37.2\n\tk8s.io/kubernetes v1.37.2\n)\n", "v1.37.2", ""},
		{"module m\n", "", "requires no k8s.io/kubernetes"},
		{"module m\n\nrequire k8s.io/kubernetes main\n", "", "requires no k8s.io/kubernetes"},
	} {
		if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Previous.Version(root)
		if string(got) != test.want || (err != nil) != (test.complaint != "") || err != nil && !strings.Contains(err.Error(), test.complaint) {
			t.Errorf("%q: got %s, %v, want %s, %q", test.content, got, err, test.want, test.complaint)
		}
	}
}

func TestProgramsTellTheirVersion(t *testing.T) {
	p := Previous.program("kubelet", "v1.36.3")
	for _, want := range []string{"k8s.io/component-base/version.gitVersion=v1.36.3", "k8s.io/client-go/pkg/version.gitMinor=36"} {
		if !strings.Contains(p.Flags, want) {
			t.Errorf("the flags %q lack %s", p.Flags, want)
		}
	}
}

// TestStampCoversInputs changes what the archive is made from, one thing after another.
func TestStampCoversInputs(t *testing.T) {
	r := Release{Source: Previous, Programs: programs.Builder{Root: t.TempDir(), Arch: "amd64"}}
	put := func(name, content string) {
		t.Helper()
		file := filepath.Join(r.Programs.Root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{string(Previous) + "/go.mod", string(Previous) + "/go.sum", lockFile}
	for _, file := range files {
		put(file, "1")
	}
	v := targets.Version("v1.36.3")
	seen := map[string]string{}
	look := func(name string) {
		t.Helper()
		stamp, err := r.Stamp(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[stamp]; ok {
			t.Errorf("the stamp after a change of %s is that after a change of %s", name, other)
		}
		seen[stamp] = name
	}
	look("nothing")
	for _, file := range files {
		put(file, "2")
		look(file)
	}
	v = "v1.36.4"
	look("the version")
	r.Programs.Arch = "arm64"
	look("the architecture")
	if err := os.Remove(filepath.Join(r.Programs.Root, filepath.FromSlash(lockFile))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Stamp(t.Context(), v); err == nil || !strings.Contains(err.Error(), lockFile) {
		t.Errorf("got the error %v, want one that names %s", err, lockFile)
	}
}
