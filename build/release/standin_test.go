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

package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/rootfs/debiantest"
	"k8s.io/kubernetes-features/build/release/targets"
)

// copies are the checkouts that copied has made and the folders that acceptance
// tests have unpacked; TestMain removes them.
var copies []string

// copied makes a checkout with the files of this one, in which they are committed:
// a release of it is one of a clean tree, the same one wherever it is.
func copied(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files, err := build.Source{Root: root}.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A space has to be in no command's way.
	dir, err := os.MkdirTemp("", "a checkout-")
	if err != nil {
		t.Fatal(err)
	}
	copies = append(copies, dir)
	for _, name := range files {
		e, err := archive.FromFile(name, filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if e.Link != "" {
			err = os.Symlink(e.Link, to)
		} else {
			var content []byte
			if content, err = os.ReadFile(e.Path); err == nil {
				err = os.WriteFile(to, content, os.FileMode(cmp.Or(e.Mode, 0o644)))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if debian := os.Getenv("RELEASE_DEBIAN"); debian != "" {
		lock := debiantest.Lock(t, lockFile(root), rootfs.Apt{Dir: debian})
		if err := os.WriteFile(lockFile(dir), []byte(lock), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "--force", "."},
		{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "-m", "m", "--date", "2026-11-21T01:02:03Z"},
	} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = dir
		git.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-21T01:02:03Z", "GIT_CONFIG_GLOBAL="+os.DevNull)
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// checkout is one of copied for all tests that need no other.
func checkout(t *testing.T) string {
	t.Helper()
	if shared == "" {
		shared = copied(t)
	}
	return shared
}

var shared string

// inTheMaking is a release of the checkout root in which a program of the standard
// library stands for every binary, so that all but the go command's part takes
// seconds. The name at its end tells one from another.
func inTheMaking(t *testing.T, root string) *release {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := debiantest.Dir(t)
	source, err := build.Describe(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	// Here any Go does.
	if source.Go, err = build.FindGo(t.Context(), root, true); err != nil {
		t.Fatal(err)
	}
	r := &release{
		flags: flags{root: root, source: "https://example.com/fork", download: "https://example.com/downloads", apt: rootfs.Apt{Dir: dir}}, out: t.TempDir(), version: "v1.36.3+feature.1",
		source: source,
	}
	r.compile = func(ctx context.Context, p targets.Platform) error {
		first := filepath.Join(r.bin(p), "first")
		if out, err := r.source.Command(ctx, r.version, p, first, targets.LogRunner.Package).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
			return err
		}
		content, err := os.ReadFile(first)
		if err != nil {
			return err
		}
		for _, b := range targets.For(r.components(p)) {
			if err := os.WriteFile(r.binary(b, p), append(content, b.Name...), 0o755); err != nil {
				return err
			}
		}
		return os.Remove(first)
	}
	return r
}

// standIn makes it.
func standIn(t *testing.T, root string, platforms ...targets.Platform) *release {
	t.Helper()
	r := inTheMaking(t, root)
	if err := r.make(t.Context(), platforms); err != nil {
		t.Fatal(err)
	}
	return r
}

// made is a release for amd64 that tests only look at.
func made(t *testing.T) *release {
	t.Helper()
	if finished == nil {
		r := inTheMaking(t, checkout(t))
		out, err := os.MkdirTemp("", "made-")
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, out)
		r.out = out
		if err := r.make(t.Context(), []targets.Platform{amd64}); err != nil {
			t.Fatal(err)
		}
		finished = r
	}
	return finished
}

var finished *release

// contents reads a compressed archive: the content of small files, and the
// names of all.
func contents(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.LimitReader(tr, 1<<12))
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(content)
	}
}

// below returns the names in a folder of an archive, sorted.
func below(files map[string]string, dir string) []string {
	var names []string
	for name := range files {
		if rest, ok := strings.CutPrefix(name, dir); ok && rest != "" {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

var (
	amd64   = targets.Platform{OS: "linux", Arch: "amd64"}
	arm64   = targets.Platform{OS: "linux", Arch: "arm64"}
	windows = targets.Platform{OS: "windows", Arch: "amd64"}
)
