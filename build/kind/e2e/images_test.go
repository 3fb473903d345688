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

package e2e

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/kind/base"
	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/rootfs"
)

// toolTree has a program under the name of each of Debian's tools, and a busybox that
// lists commands.
func toolTree() rootfs.Tree {
	tree := rootfs.Tree{"bin": {Name: "bin", Link: "usr/bin"}}
	for _, name := range debianTools {
		tree[name] = archive.Entry{Name: name, Data: []byte("#!/bin/sh\n"), Mode: 0o755}
	}
	tree[busybox] = archive.Entry{Name: busybox, Data: []byte("#!/bin/sh\necho cat\necho nslookup\necho sh\n"), Mode: 0o755}
	return tree
}

func TestToolsAreDebiansBeforeBusybox(t *testing.T) {
	b := Builder{Programs: programs.Builder{Arch: "amd64"}}
	entries, err := b.tools(t.Context(), toolTree())
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{}
	for _, e := range entries {
		links[e.Name] = e.Link
	}
	for name, want := range map[string]string{"usr/bin/sh": "bash", "usr/bin/cat": "busybox", "usr/bin/nslookup": "", "usr/bin/nc": "nc.openbsd", "bin": "usr/bin"} {
		if got, ok := links[name]; !ok || got != want {
			t.Errorf("%s is a link to %q (there: %t), want %q", name, got, ok, want)
		}
	}
	tree := toolTree()
	delete(tree, "usr/bin/dig")
	if _, err := b.tools(t.Context(), tree); err == nil || !strings.Contains(err.Error(), "usr/bin/dig") {
		t.Errorf("got the error %v, want one that names usr/bin/dig", err)
	}
}

// made builds a program of a test in place of those of upstream, whose builds take
// minutes.
func made(t *testing.T) programs.Program {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return programs.Program{Name: "m", Module: programs.Module{Dir: dir}, Package: "."}
}

func TestEntriesOfAnImage(t *testing.T) {
	b := Builder{Programs: programs.Builder{Root: "/", Dir: t.TempDir(), Arch: "amd64"}}
	sources := t.TempDir()
	if err := os.WriteFile(filepath.Join(sources, "key"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := content{
		programs: map[string]programs.Program{"bin/m": made(t)}, setuid: []string{"bin/m"},
		files: map[string]string{"localhost.key": "key"}, data: map[string]string{"etc/passwd": "x:1\n"}, links: map[string]string{"two": "bin/m"},
	}
	entries, err := b.entries(t.Context(), c, sources)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]archive.Entry{}
	for _, e := range entries {
		found[e.Name] = e
	}
	if e := found["bin/m"]; e.Mode != 0o4755 || e.Path == "" {
		t.Errorf("the program is %+v, want one that runs as its owner", e)
	}
	if e := found["localhost.key"]; e.Path != filepath.Join(sources, "key") {
		t.Errorf("the file is %+v", e)
	}
	if e := found["etc/passwd"]; string(e.Data) != "x:1\n" {
		t.Errorf("the image's own passwd is %q", e.Data)
	}
	if e := found["two"]; e.Link != "bin/m" {
		t.Errorf("the link is %+v", e)
	}
}

// TestServedImageIsWhole follows the digests of an image that agnhost's registry has.
func TestServedImageIsWhole(t *testing.T) {
	b := Builder{Programs: programs.Builder{Root: "/", Dir: t.TempDir(), Arch: "amd64"}}
	c := content{served: map[string]content{"pause:testing": {programs: map[string]programs.Program{"pause": made(t)}, entrypoint: []string{"/pause"}}}}
	entries, err := b.entries(t.Context(), c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, e := range entries {
		found[e.Name] = e.Data
	}
	read := func(folder, digest string) []byte {
		t.Helper()
		hash, ok := strings.CutPrefix(digest, "sha256:")
		if !ok {
			t.Fatalf("%q is no digest", digest)
		}
		data := found["var/registry/pause/"+folder+"/sha256/"+hash[:2]+"/"+hash+"/data"]
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != hash {
			t.Errorf("%s %s has %d bytes with another digest", folder, digest, len(data))
		}
		return data
	}
	var manifest struct {
		MediaType string
		Config    struct{ Digest string }
		Layers    []struct{ Digest string }
	}
	if err := json.Unmarshal(read("manifests", strings.TrimSpace(string(found["var/registry/pause/manifests/testing"]))), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType == "" || len(manifest.Layers) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	if config := read("blobs", manifest.Config.Digest); !strings.Contains(string(config), `"/pause"`) {
		t.Errorf("the configuration is %s", config)
	}
	if layer := read("blobs", manifest.Layers[0].Digest); len(layer) == 0 {
		t.Error("the layer is empty")
	}
}

// debs makes packages whose files are those of toolTree.
func debs(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	files := toolTree()
	delete(files, "bin")
	for name, e := range files {
		file := filepath.Join(dir, "tools", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, e.Data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "tools", "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: tools\nVersion: 1\nArchitecture: all\nMaintainer: Test <test@example.com>\nDescription: tools\n"
	if err := os.WriteFile(filepath.Join(dir, "tools", "DEBIAN", "control"), []byte(control), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tools.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", "--root-owner-group", filepath.Join(dir, "tools"), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{file}
}

// checkout is the root, above the module of upstream's tests.
func checkout(t *testing.T) string {
	t.Helper()
	module, err := filepath.Abs("../../../hack/e2e")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(filepath.Dir(module))
}

// TestImages makes one image of tools, passes over those that need not be made, and names
// all others.
func TestImages(t *testing.T) {
	root := checkout(t)
	b := Builder{Programs: programs.Builder{Root: root, Dir: t.TempDir(), Arch: "amd64"}, Dir: t.TempDir(), Debs: debs(t)}
	const name = registry + "nonroot:1.5"
	other := []string{registry + "perl:5.26", "gcr.io/nonroot:1"}
	files, unknown, err := b.Images(t.Context(), append([]string{name, "registry.k8s.io/pause:3.10", "invalid.registry.k8s.io/invalid/alpine:3.1"}, other...))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{base.ImageFile(b.Dir, name)}; !slices.Equal(files, want) || !slices.Equal(unknown, other) {
		t.Fatalf("made %q and not %q, want %q and not %q", files, unknown, want, other)
	}
	user, command := configOf(t, files[0])
	if user != "1234" || !slices.Equal(command, []string{"sh"}) {
		t.Errorf("the image runs %q as %q, want sh as 1234", command, user)
	}
}

// configOf reads what an image in an archive runs.
func configOf(t *testing.T, file string) (user string, command []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for tr := tar.NewReader(f); ; {
		if _, err := tr.Next(); errors.Is(err, io.EOF) {
			t.Fatalf("%s has no configuration of an image", file)
		} else if err != nil {
			t.Fatal(err)
		}
		// Manifests have a field of that name, too.
		var config struct {
			RootFS *struct{}
			Config *struct {
				User string
				Cmd  []string
			}
		}
		if json.NewDecoder(tr).Decode(&config) == nil && config.RootFS != nil && config.Config != nil {
			return config.Config.User, config.Config.Cmd
		}
	}
}

// TestContentsAreUpstreams holds the images against the folders of upstream's module.
func TestContentsAreUpstreams(t *testing.T) {
	root := checkout(t)
	sources, err := Builder{Programs: programs.Builder{Root: root}}.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range contents {
		if info, err := os.Stat(filepath.Join(sources, name)); err != nil || !info.IsDir() {
			t.Errorf("upstream has no image %s: %v", name, err)
		}
		for _, file := range c.files {
			if _, err := os.Stat(filepath.Join(sources, filepath.FromSlash(file))); err != nil {
				t.Errorf("the image %s: %v", name, err)
			}
		}
	}
}
