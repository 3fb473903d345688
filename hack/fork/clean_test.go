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
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAKilledLanding: a temporary file is landing's to remove, and nothing else
// with such a name is.
func TestAKilledLanding(t *testing.T) {
	want := newSmall(t)
	want.land(t)
	s := newSmall(t)
	put(t, s.tree.dir, map[string]string{temporaryOf("pkg/new/new.go"): "package n", temporaryOf("cmd/tool"): ""})
	s.land(t)
	if got := s.content(t); got != want.content(t) {
		t.Errorf("after a landing that was killed:\n%s", got)
	}
	for name, text := range map[string]string{
		temporaryOf("pkg/new/new.go"):   "package mine",
		temporaryOf("pkg/new/other.go"): "package n",
		"pkg/new/.landing-new.go":       "package n",
		"pkg/new/x-new.go":              "package n",
	} {
		t.Run(text+" in "+name, func(t *testing.T) {
			s := newSmall(t)
			put(t, s.tree.dir, map[string]string{name: text})
			err := s.tree.check(t.Context(), s.base, s.plan, false, t.Output())
			if err == nil || !strings.Contains(err.Error(), "not committed: "+name) {
				t.Errorf("%v, want it refused", err)
			}
		})
	}
}

// TestLinksLeadNowhere: also what the check has not seen does not make landing
// write, or remove, outside of the checkout.
func TestLinksLeadNowhere(t *testing.T) {
	s := newSmall(t)
	outside := t.TempDir()
	put(t, outside, map[string]string{"new.go": "theirs\n"})
	s.link(t, outside, "pkg/new")
	if _, err := s.tree.write(t.Context(), s.plan.of(0)); err == nil || !strings.Contains(err.Error(), "pkg/new is a symbolic link") {
		t.Errorf("writing beyond a link: %v", err)
	}
	// The same without the look before, as for links that come in between.
	if err := s.tree.replace(t.Context(), s.plan.files["pkg/new/new.go"]); err == nil {
		t.Error("replacing beyond a link: no error")
	}
	if err := s.tree.remove("pkg/new/new.go"); err == nil {
		t.Error("removing beyond a link: no error")
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || read(t, filepath.Join(outside, "new.go")) != "theirs\n" {
		t.Errorf("outside there are %v now, %v", entries, err)
	}
}

// TestWithoutModes: where git ignores modes, the file system's do not count.
func TestWithoutModes(t *testing.T) {
	s := newSmall(t)
	s.land(t)
	s.commit(t)
	git(t, s.tree.dir, "config", "core.fileMode", "false")
	err := filepath.WalkDir(s.tree.dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.Contains(file, "/.git/") {
			return err
		}
		return os.Chmod(file, 0o755)
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := s.land(t); !strings.Contains(out, "nothing changed") || strings.Contains(out, "chmod") {
		t.Errorf("where all files are executable it said:\n%s", out)
	}
	git(t, s.tree.dir, "update-index", "--chmod=-x", "cmd/tool")
	git(t, s.tree.dir, "commit", "-qm", "as git add on such a file system")
	if out := s.land(t); !strings.Contains(out, "nothing changed") || !strings.Contains(out, "git add --chmod=+x cmd/tool\n") {
		t.Errorf("where git has another mode it said:\n%s", out)
	}
	tree, err := open(t.Context(), s.tree.dir)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "series")
	if err := writeSeries(t.Context(), tree, s.plan, dir, t.Output()); err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(patches) != 1 || !strings.Contains(read(t, patches[0]), "new mode 100755") {
		t.Errorf("the series is %v, %v; want the mode", patches, err)
	}
}

// TestUnusualPaths: neither the checkout's nor the series' has to be a plain word.
func TestUnusualPaths(t *testing.T) {
	s := newSmallIn(t, filepath.Join(t.TempDir(), "k:1.36 'fork'"))
	// Some golden files end with empty lines, which settings of git forbid.
	s.plan = s.planned(t, &target{path: "pkg/new/testdata/golden", data: []byte("text\n\n")}, &target{path: "cmd/tool", data: []byte("#!/bin/sh\n"), part: 1, executable: true})
	git(t, s.tree.dir, "config", "apply.whitespace", "error")
	dir := filepath.Join(t.TempDir(), "a 'series'")
	var out bytes.Buffer
	if err := writeSeries(t.Context(), s.tree, s.plan, dir, &out); err != nil {
		t.Fatal(err)
	}
	_, advice, ok := strings.Cut(out.String(), "Apply them with ")
	advice, _, _ = strings.Cut(advice, ",")
	if !ok {
		t.Fatalf("it said:\n%s", out.String())
	}
	if _, err := command(t.Context(), s.tree.dir, nil, nil, "sh", "-c", advice); err != nil {
		t.Fatal(err)
	}
	if landed := git(t, s.tree.dir, "log", "--format=%s"); strings.Count(landed, "\n") != 3 {
		t.Errorf("the commits are\n%s", landed)
	}
}

// TestUntrackedFilesDoNotLand: they may be anything; what would have landed is
// named.
func TestUntrackedFilesDoNotLand(t *testing.T) {
	identity(t)
	source := t.TempDir()
	put(t, source, map[string]string{"pkg/featurelifecycle/catalog/catalog.go": "package catalog\n", "TODO-12.md": "later\n"})
	git(t, source, "init", "-q")
	git(t, source, "add", "-A")
	put(t, source, map[string]string{"pkg/featurelifecycle/catalog/catalog.go": "package catalog // edited\n", "pkg/featurelifecycle/catalog/scratch.go": "package scratch\n", "series/0001-x.patch": "x\n"})
	p := &plan{source: source, base: &upstream{version: "v1.36.3", dir: t.TempDir()}, files: map[string]*target{}}
	if err := p.addAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.files) != 1 || string(p.files["pkg/featurelifecycle/catalog/catalog.go"].data) != "package catalog // edited\n" {
		t.Errorf("%d files land, want one, as it is in the tree", len(p.files))
	}
	if got := fmt.Sprint(p.untracked); got != "[pkg/featurelifecycle/catalog/scratch.go]" {
		t.Errorf("it names %s", got)
	}
}
