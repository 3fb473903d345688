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
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// identity sets the committer in tests.
func identity(t *testing.T) {
	t.Helper()
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "Committer")
		t.Setenv("GIT_"+who+"_EMAIL", "committer@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	output, err := command(t.Context(), dir, nil, nil, "git", args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// small is a small upstream, a checkout of it, and the files that land there: a
// new file in the first part, an executable one in the second, and an edited
// one.
type small struct {
	base *upstream
	tree checkout
	plan *plan
}

func newSmall(t *testing.T) small {
	t.Helper()
	return newSmallIn(t, t.TempDir())
}

// newSmallIn has the checkout in a directory.
func newSmallIn(t *testing.T, dir string) small {
	t.Helper()
	identity(t)
	upstreamFiles := map[string]string{"go.mod": "module k8s.io/kubernetes\n", "hack/lib/init.sh": "events\n", "pkg/a/a.go": "package a\n"}
	library := map[string]string{"b.go": "package b\n", "go.mod": "module k8s.io/b // published\n", "go.sum": "published\n", "generate.sh": "generate\n"}
	s := small{
		base: &upstream{version: "v1.36.3", dir: t.TempDir(), staging: map[string]string{"k8s.io/b": t.TempDir()}},
		tree: checkout{dir: dir},
	}
	put(t, s.base.dir, upstreamFiles)
	put(t, s.base.staging["k8s.io/b"], library)
	put(t, s.tree.dir, upstreamFiles)
	put(t, s.tree.dir, map[string]string{"staging/src/k8s.io/b/b.go": "package b\n", "staging/src/k8s.io/b/generate.sh": "generate\n", "staging/src/k8s.io/b/go.sum": "\n", "staging/src/k8s.io/b/go.mod": "module k8s.io/b\n", "only/in/git": "x\n", ".gitignore": "/_output\n"})
	if err := os.Chmod(filepath.Join(s.tree.dir, "hack", "lib", "init.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, s.tree.dir, "init", "-q")
	git(t, s.tree.dir, "add", "-A")
	git(t, s.tree.dir, "commit", "-qm", "v1.36.3")
	s.plan = s.planned(t,
		&target{path: "pkg/new/new.go", data: []byte("package new\n"), part: 0},
		&target{path: "cmd/tool", data: []byte("#!/bin/sh\n"), part: 1, executable: true},
		&target{path: "hack/lib/init.sh", data: []byte("events\nfeatures\n"), part: 1, base: []byte("events\n")},
	)
	return s
}

// planned is a plan of some files, the library's go.mod and the record.
func (s small) planned(t *testing.T, files ...*target) *plan {
	t.Helper()
	p := &plan{base: s.base, files: map[string]*target{}}
	for _, f := range append(files, &target{path: libraryDir + "/go.mod", data: []byte("module " + libraryPath + "\n")}) {
		if err := p.add(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.addRecord(); err != nil {
		t.Fatal(err)
	}
	return p
}

// next is the same tree with a later delta.
func (s small) next(t *testing.T, files ...*target) small {
	t.Helper()
	s.plan = s.planned(t, files...)
	return s
}

func (s small) commit(t *testing.T) {
	t.Helper()
	git(t, s.tree.dir, "add", "-A")
	git(t, s.tree.dir, "commit", "-qm", "mine")
}

func (s small) land(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	tree, err := open(t.Context(), s.tree.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.check(t.Context(), s.base, s.plan, false, &out); err != nil {
		t.Fatal(err)
	}
	if err := land(t.Context(), tree, s.base, s.plan, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// content is the tree's content with modes, as git sees it.
func (s small) content(t *testing.T) string {
	t.Helper()
	git(t, s.tree.dir, "add", "-A")
	return git(t, s.tree.dir, "ls-files", "-s")
}

func TestLandingTwiceIsLandingOnce(t *testing.T) {
	s := newSmall(t)
	if out := s.land(t); !strings.Contains(out, "1 files new, 1 changed") || !strings.Contains(out, "upstream's hack/lib/init.sh\n") || !strings.Contains(out, "5 files written") {
		t.Errorf("it said:\n%s", out)
	}
	before := s.content(t)
	if !strings.Contains(before, "100755") || strings.Count(before, "100755") != 2 {
		t.Errorf("the new tool and upstream's script shall be executable:\n%s", before)
	}
	if out := s.land(t); !strings.Contains(out, "nothing changed") {
		t.Errorf("the second time, not committed, it said:\n%s", out)
	}
	git(t, s.tree.dir, "commit", "-qm", "landed")
	if out := s.land(t); !strings.Contains(out, "nothing changed") {
		t.Errorf("the third time, committed, it said:\n%s", out)
	}
	if diff := cmp.Diff(before, s.content(t)); diff != "" {
		t.Errorf("landing again changed:\n%s", diff)
	}
}

func TestSeriesMatchesLanding(t *testing.T) {
	s := newSmall(t)
	dir := filepath.Join(t.TempDir(), "series")
	objects := git(t, s.tree.dir, "count-objects")
	var out bytes.Buffer
	if err := writeSeries(t.Context(), s.tree, s.plan, dir, &out); err != nil {
		t.Fatal(err)
	}
	if status := git(t, s.tree.dir, "status", "--porcelain"); status != "" || git(t, s.tree.dir, "count-objects") != objects {
		t.Errorf("the checkout is not as it was: %s", status)
	}
	patches, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil || len(patches) != 3 {
		t.Fatalf("%d patches, %v:\n%s", len(patches), err, out.String())
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := writeSeries(t.Context(), s.tree, s.plan, again, &out); err != nil {
		t.Fatal(err)
	}
	for _, patch := range patches {
		if diff := cmp.Diff(read(t, patch), read(t, filepath.Join(again, filepath.Base(patch)))); diff != "" {
			t.Errorf("the same series is another one the second time:\n%s", diff)
		}
	}
	// The user's configuration does not change patches.
	configured := filepath.Join(t.TempDir(), "configured")
	for key, value := range map[string]string{"format.pretty": "oneline", "format.attach": "true", "format.coverLetter": "true", "format.signOff": "true", "format.headers": "X: y\n", "diff.noprefix": "true", "format.suffix": ".txt", "diff.context": "0"} {
		git(t, s.tree.dir, "config", key, value)
	}
	if err := writeSeries(t.Context(), s.tree, s.plan, configured, &out); err != nil {
		t.Fatal(err)
	}
	for _, patch := range patches {
		if diff := cmp.Diff(read(t, patch), read(t, filepath.Join(configured, filepath.Base(patch)))); diff != "" {
			t.Errorf("the same series is another one with other settings of git:\n%s", diff)
		}
	}
	git(t, s.tree.dir, append([]string{"am", "-q"}, patches...)...)
	applied := s.content(t)
	git(t, s.tree.dir, "reset", "-q", "--hard", "HEAD~3")
	s.land(t)
	if diff := cmp.Diff(applied, s.content(t)); diff != "" {
		t.Errorf("applied (-) and landed (+):\n%s", diff)
	}
	if err := writeSeries(t.Context(), s.tree, s.plan, t.TempDir(), &out); err == nil {
		t.Error("a series on changes that are not committed: no error")
	}
	git(t, s.tree.dir, "commit", "-qm", "landed")
	out.Reset()
	if err := writeSeries(t.Context(), s.tree, s.plan, t.TempDir(), &out); err != nil || !strings.Contains(out.String(), "nothing to write") {
		t.Errorf("where all has landed: %v, %s", err, out.String())
	}
	if err := writeSeries(t.Context(), s.tree, s.plan, dir, &out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a directory with a series: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestASeriesNeedsAnAuthor(t *testing.T) {
	s := newSmall(t)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "")
		t.Setenv("GIT_"+who+"_EMAIL", "")
	}
	git(t, s.tree.dir, "config", "user.useConfigOnly", "true")
	err := writeSeries(t.Context(), s.tree, s.plan, filepath.Join(t.TempDir(), "series"), t.Output())
	if err == nil || !strings.Contains(err.Error(), "git config user.email") {
		t.Errorf("without an author: %v", err)
	}
}

// TestALaterDelta lands one over an earlier one: files change, go, and are given
// back to upstream, in the tree and as a series alike.
func TestALaterDelta(t *testing.T) {
	s := newSmall(t)
	s.plan = s.planned(t, &target{path: "pkg/new/new.go", data: []byte("package new\n")},
		&target{path: "pkg/new/kept.go", data: []byte("package new // kept\n")},
		&target{path: "pkg/new/gone.go", data: []byte("package new // gone\n")},
		&target{path: "pkg/deep/down/gone.go", data: []byte("package down\n")},
		&target{path: "pkg/a/a.go", data: []byte("package a // edited\n"), base: []byte("package a\n")})
	s.land(t)
	s.commit(t)
	put(t, s.tree.dir, map[string]string{"pkg/new/kept.go": "package new // mine\n"})
	s.commit(t)
	later := func() small {
		return s.next(t, &target{path: "pkg/new/new.go", data: []byte("package new // later\n")},
			&target{path: "hack/lib/init.sh", data: []byte("events\nlater\n"), part: 1, base: []byte("events\n")})
	}
	next := later()
	out := next.land(t)
	for _, want := range []string{"so they stay: pkg/new/kept.go", "2 removed", "upstream's hack/lib/init.sh", "upstream's pkg/a/a.go"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	landed := next.content(t)
	for name, want := range map[string]string{"pkg/new/new.go": "package new // later\n", "pkg/new/kept.go": "package new // mine\n", "pkg/a/a.go": "package a\n", "hack/lib/init.sh": "events\nlater\n"} {
		if got := read(t, filepath.Join(s.tree.dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if strings.Contains(landed, "gone.go") {
		t.Errorf("gone.go is still there:\n%s", landed)
	}
	if _, err := os.Stat(filepath.Join(s.tree.dir, "pkg", "deep")); !os.IsNotExist(err) {
		t.Errorf("a directory without files is still there: %v", err)
	}
	if out := later().land(t); !strings.Contains(out, "nothing changed") {
		t.Errorf("again, not committed, it said:\n%s", out)
	}
	git(t, s.tree.dir, "reset", "-q", "--hard")
	next, dir := later(), filepath.Join(t.TempDir(), "series")
	if err := next.tree.check(t.Context(), next.base, next.plan, false, t.Output()); err != nil {
		t.Fatal(err)
	}
	if err := writeSeries(t.Context(), next.tree, next.plan, dir, t.Output()); err != nil {
		t.Fatal(err)
	}
	patches, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		t.Fatal(err)
	}
	git(t, s.tree.dir, append([]string{"am", "-q"}, patches...)...)
	if diff := cmp.Diff(landed, next.content(t)); diff != "" {
		t.Errorf("landed (-) and applied (+):\n%s", diff)
	}
}

// TestLandingContinues checks that an interruption leaves whole files behind, and
// that the next landing does the rest.
func TestLandingContinues(t *testing.T) {
	want := newSmall(t)
	want.land(t)
	s := newSmall(t)
	// A directory where a file belongs ends the landing after two files.
	blocked := filepath.Join(s.tree.dir, "pkg", "new", "new.go")
	if err := os.MkdirAll(blocked, 0o755); err != nil {
		t.Fatal(err)
	}
	err := land(t.Context(), s.tree, s.base, s.plan, t.Output())
	if err == nil || !strings.Contains(err.Error(), "of 5 that landing has") {
		t.Errorf("where a directory is in the way: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if _, err := s.tree.write(ended, s.plan.of(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interruption: %v", err)
	}
	s.land(t)
	if diff := cmp.Diff(want.content(t), s.content(t)); diff != "" {
		t.Errorf("landed at once (-) and in two goes (+):\n%s", diff)
	}
}

// TestAForksOwnChanges land only when that is asked for, and stay.
func TestAForksOwnChanges(t *testing.T) {
	s := newSmall(t)
	put(t, s.tree.dir, map[string]string{"pkg/a/a.go": "package a // mine\n"})
	s.commit(t)
	var out bytes.Buffer
	if err := s.tree.check(t.Context(), s.base, s.plan, true, &out); err != nil || !strings.Contains(out.String(), "1 of 5 files differ from upstream's v1.36.3, which landing leaves as they are: pkg/a/a.go") {
		t.Errorf("%v, %s", err, out.String())
	}
	put(t, s.tree.dir, map[string]string{"hack/lib/init.sh": "mine\n"})
	s.commit(t)
	if err := s.tree.check(t.Context(), s.base, s.plan, true, &out); err == nil || !strings.Contains(err.Error(), "own changes in files that landing edits: hack/lib/init.sh") {
		t.Errorf("a file that landing edits: %v", err)
	}
}

// TestModes: landing gives its own files the mode that they have here, and leaves
// upstream's the one that git has.
func TestModes(t *testing.T) {
	s := newSmall(t)
	s.land(t)
	want := s.content(t)
	if err := os.Chmod(filepath.Join(s.tree.dir, "cmd", "tool"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.commit(t)
	if out := s.land(t); !strings.Contains(out, "1 changed") {
		t.Errorf("of a file that is not executable any more, it said:\n%s", out)
	}
	if diff := cmp.Diff(want, s.content(t)); diff != "" {
		t.Errorf("the modes were not mended:\n%s", diff)
	}
	git(t, s.tree.dir, "config", "core.fileMode", "false")
	git(t, s.tree.dir, "reset", "-q", "--hard", "HEAD~1")
	script := filepath.Join(s.tree.dir, "hack", "lib", "init.sh")
	if err := os.Chmod(script, 0o644); err != nil {
		t.Fatal(err)
	}
	s.land(t)
	if info, err := os.Stat(script); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("upstream's script became %v, %v; git has it as executable", info.Mode(), err)
	}
}

func TestAForksOwnFilesStay(t *testing.T) {
	s := newSmall(t)
	put(t, s.tree.dir, map[string]string{"pkg/mine/mine.go": "package mine\n"})
	git(t, s.tree.dir, "add", "-A")
	git(t, s.tree.dir, "commit", "-qm", "mine")
	s.land(t)
	if got := read(t, filepath.Join(s.tree.dir, "pkg/mine/mine.go")); got != "package mine\n" {
		t.Errorf("a file of the fork became %q", got)
	}
}
