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
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/kind/programs"
)

func TestSplit(t *testing.T) {
	for name, want := range map[string][2]string{
		"registry.k8s.io/pause:3.10": {"registry.k8s.io/pause", "3.10"},
		"localhost:5000/pause":       {"localhost:5000/pause", ""},
		"localhost:5000/pause:1":     {"localhost:5000/pause", "1"},
	} {
		if repository, tag := split(name); repository != want[0] || tag != want[1] {
			t.Errorf("split(%s) is %s, %s, want %s", name, repository, tag, want)
		}
	}
}

// kindModule writes a module that names images as kind's does.
func kindModule(t *testing.T) Kind {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		baseImage.file:     `const DefaultBaseImage = "docker.io/kindest/base:v1"`,
		networkImage.file:  `const kindnetdImage = "docker.io/kindest/kindnetd:v2"`,
		storageImage.file:  "const a = \"docker.io/kindest/local-path-provisioner:v3\"\nconst b = \"docker.io/kindest/local-path-helper:v4\"",
		sandboxImage.file:  `  sandbox_image = "registry.k8s.io/pause:3.10"`,
		balancerImage.file: `const Image = "docker.io/envoyproxy/envoy:v5"`,
	} {
		name := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Kind(dir)
}

func TestImagesThatKindNames(t *testing.T) {
	kind := kindModule(t)
	names, err := kind.InNode()
	want := []string{
		"registry.k8s.io/pause:3.10", "docker.io/kindest/kindnetd:v2",
		"docker.io/kindest/local-path-provisioner:v3", "docker.io/kindest/local-path-helper:v4",
	}
	if err != nil || !slices.Equal(names, want) {
		t.Fatalf("got %s, %v, want %s", names, err, want)
	}
	balancer, err := kind.Balancer()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, balancer) {
		repository, _ := split(name)
		if _, ok := contents[repository]; !ok {
			t.Errorf("nothing is known to be in %s", name)
		}
	}
	if err := os.WriteFile(filepath.Join(string(kind), networkImage.file), []byte("package nodeimage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.InNode(); err == nil || !strings.Contains(err.Error(), networkImage.file) {
		t.Errorf("got the error %v, want one that names %s", err, networkImage.file)
	}
}

func TestImageHasAShell(t *testing.T) {
	busybox := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(busybox, []byte("static"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"docker.io/kindest/local-path-helper:v4", "localhost/shell:v1"} {
		if err := WriteImages(t.Context(), dir, programs.Builder{Arch: "amd64"}, busybox, []string{name}); err != nil {
			t.Fatal(err)
		}
		found := filesOfLayers(t, ImageFile(dir, name))
		// Pods of tests call these.
		for _, program := range []string{"busybox", "sh", "cat", "ls", "sleep", "stat", "touch"} {
			if !slices.Contains(found, "bin/"+program) {
				t.Errorf("the image %s has %s, want %s", name, found, program)
			}
		}
	}
	err := WriteImages(t.Context(), dir, programs.Builder{}, busybox, []string{"example.com/other:v1"})
	if err == nil || !strings.Contains(err.Error(), "example.com/other:v1") {
		t.Errorf("got the error %v, want one that names the image", err)
	}
}

// filesOfLayers returns the names in all layers of an archive of an image.
func filesOfLayers(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	for tr := tar.NewReader(f); ; {
		if _, err := tr.Next(); errors.Is(err, io.EOF) {
			return names
		} else if err != nil {
			t.Fatal(err)
		}
		// Files that are no layers are no archives either.
		for layer := tar.NewReader(tr); ; {
			h, err := layer.Next()
			if err != nil {
				break
			}
			names = append(names, h.Name)
		}
	}
}

func TestOwnImagesHaveNamesOfNoRegistry(t *testing.T) {
	for _, name := range OwnImages {
		repository, tag := split(name)
		if _, ok := contents[repository]; !ok || tag == "" || !strings.HasPrefix(name, "localhost/") {
			t.Errorf("nothing is known to be in %s, or a registry may have it", name)
		}
	}
}
