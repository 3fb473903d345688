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

package base

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/kubernetes-features/build/kind/programs"
)

// packed is an archive of folders, whose names end in "/", and of files.
func packed(t *testing.T, names ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, name := range names {
		h := &tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeReg}
		if name[len(name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func TestFoldersOfSeveralPackagesAreWrittenOnce(t *testing.T) {
	var all bytes.Buffer
	tw := tar.NewWriter(&all)
	folders := map[string]bool{}
	for _, p := range []*bytes.Buffer{packed(t, "./", "./usr/", "./usr/a"), packed(t, "./", "./usr/", "./usr/b", "./var/")} {
		if err := copyTar(tw, tar.NewReader(p), folders); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	var names []string
	for tr := tar.NewReader(&all); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if want := []string{"./", "./usr/", "./usr/a", "./usr/b", "./var/"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestHashCoversInputs changes what an image is made from, one thing after another.
func TestHashCoversInputs(t *testing.T) {
	b := Base{Kind: Kind(t.TempDir()), Programs: programs.Builder{Dir: t.TempDir()}, Debs: []string{"a_1.deb"}, Images: []string{filepath.Join(t.TempDir(), "image.tar")}}
	put := func(file, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entrypoint := filepath.Join(b.Kind.Files(), "usr", "local", "bin", "entrypoint")
	put(entrypoint, "1")
	put(b.Images[0], "1")
	for _, p := range programs.Node {
		put(b.Programs.File(p), "1")
	}
	seen := map[string]string{}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"nothing", func() {}},
		{"a file of kind", func() { put(entrypoint, "2") }},
		{"an image", func() { put(b.Images[0], "2") }},
		{"a program", func() { put(b.Programs.File(programs.Node["usr/local/sbin/runc"]), "2") }},
		{"a package", func() { b.Debs = []string{"a_2.deb"} }},
		{"a setting", func() { b.RestrictOOMScore = true }},
	} {
		step.change()
		hash, err := b.hash()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[hash]; ok {
			t.Errorf("the hash after a change of %s is that after a change of %s", step.name, other)
		}
		seen[hash] = step.name
	}
}
