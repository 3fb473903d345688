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
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnfitCheckoutsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s small)
		want   string
	}{
		"a changed file": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"only/in/git": "y\n"})
		}, "not committed: only/in/git"},
		"a new file": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/mine/mine.go": "package mine\n"})
		}, "not committed: pkg/mine/mine.go"},
		"a new file where another one lands": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/new/new.go": "package mine\n"})
		}, "not committed: pkg/new/new.go"},
		// Advice about committed changes would overwrite these.
		"an edit of a file that landing edits": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"hack/lib/init.sh": "events\nmine\n"})
		}, "not committed: hack/lib/init.sh"},
		"an edit of a file that landing does not edit": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/a/a.go": "package a // mine\n"})
		}, "not committed: pkg/a/a.go"},
		"an edit of what has landed": {func(t *testing.T, s small) {
			s.land(t)
			s.commit(t)
			put(t, s.tree.dir, map[string]string{"pkg/new/new.go": "package mine\n"})
		}, "not committed: pkg/new/new.go"},
		"work in vendor where all has landed": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"vendor/modules.txt": "## workspace\n", "vendor/old/old.go": "package old\n"})
			s.asSeries(t)
			put(t, s.tree.dir, map[string]string{"vendor/old/old.go": "package old // mine\n", "vendor/mine.go": "package mine\n"})
		}, "not committed: vendor/mine.go, vendor/old/old.go"},
		"a renewed vendor before landing": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"vendor/modules.txt": "mine\n"})
		}, "not committed: vendor"},
		"a license of a vendored module before landing": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"LICENSES/vendor/mine/LICENSE": "mine\n"})
		}, "not committed: LICENSES/vendor/mine/LICENSE"},
		"another version": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/a/a.go": "package a // 1.36.2\n"})
			s.commit(t)
		}, "is not kubernetes/kubernetes v1.36.3: 1 of 5 files differ or are missing: pkg/a/a.go"},
		"another version of a staging module": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"staging/src/k8s.io/b/b.go": "package b // 1.36.2\n"})
			s.commit(t)
		}, "files differ or are missing: staging/src/k8s.io/b/b.go"},
		"another script in a staging module": {func(t *testing.T, s small) {
			git(t, s.tree.dir, "rm", "-q", "staging/src/k8s.io/b/generate.sh")
			s.commit(t)
		}, "files differ or are missing: staging/src/k8s.io/b/generate.sh"},
		"a fork's own change in what landing edits": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"hack/lib/init.sh": "events\nmine\n"})
			s.commit(t)
		}, "own changes in files that landing edits: hack/lib/init.sh"},
		"a fork's own committed file where another one lands": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/new/new.go": "package mine\n"})
			s.commit(t)
		}, "own files where landing puts others, and no landing that hack/.feature-lifecycle.sums knows wrote them: pkg/new/new.go"},
		"a landed file that the fork has changed since": {func(t *testing.T, s small) {
			s.land(t)
			put(t, s.tree.dir, map[string]string{"pkg/new/new.go": "package mine\n"})
			s.commit(t)
		}, "wrote them: pkg/new/new.go"},
		"a link where a directory belongs": {func(t *testing.T, s small) {
			s.link(t, t.TempDir(), "pkg/new")
		}, "pkg/new is a symbolic link, where a directory should be"},
		"a link to a directory of the checkout": {func(t *testing.T, s small) {
			s.link(t, "../only", "pkg/new")
		}, "pkg/new is a symbolic link, where a directory should be"},
		"a link to nothing where a file belongs": {func(t *testing.T, s small) {
			s.link(t, "nothing", "pkg/new/new.go")
		}, "pkg/new/new.go is a symbolic link, where a file should be"},
		"a link in the place of a file that landing edits": {func(t *testing.T, s small) {
			s.link(t, "../../only/in/git", "hack/lib/init.sh")
		}, "hack/lib/init.sh is a symbolic link, where a file should be"},
		"a file where a directory belongs": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/new": "mine\n"})
			s.commit(t)
		}, "pkg/new is no directory, where a directory should be; move or remove it"},
		"a directory where a file belongs": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"pkg/new/new.go/mine.go": "package mine\n"})
			s.commit(t)
		}, "pkg/new/new.go is no regular file, where a file should be"},
		"landed files that the fork has removed": {func(t *testing.T, s small) {
			s.land(t)
			s.commit(t)
			git(t, s.tree.dir, "rm", "-q", "pkg/new/new.go")
			s.commit(t)
		}, "has removed files that landing writes: pkg/new/new.go"},
		"without a tag": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{"hack/lib/init.sh": "mine\n"})
			s.commit(t)
		}, "hack/lib/init.sh; get the tag with \"git fetch --depth=1 https://github.com/kubernetes/kubernetes tag v1.36.3\", take"},
		"with a tag": {func(t *testing.T, s small) {
			git(t, s.tree.dir, "tag", "v1.36.3")
			put(t, s.tree.dir, map[string]string{"hack/lib/init.sh": "mine\n"})
			s.commit(t)
		}, "hack/lib/init.sh; take upstream's with \"git checkout v1.36.3 -- FILE\""},
		"a record of a file outside":     {recorded("../victim.txt"), `names "../victim.txt", which is no file of the checkout`},
		"a record of a file by its root": {recorded("/victim.txt"), "which is no file of the checkout"},
		"a record of git's own":          {recorded("pkg/../.GIT/config"), "which is no file of the checkout"},
		"a record of git's own, plainly": {recorded(".GIT/config"), "which is no file of the checkout"},
		"a record that is none": {func(t *testing.T, s small) {
			put(t, s.tree.dir, map[string]string{recordFile: "<<<<<<< HEAD\n"})
			s.commit(t)
		}, "a line that is not of sha256sum"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSmall(t)
			test.change(t, s)
			err := s.tree.check(t.Context(), s.base, s.plan, false, t.Output())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestRemovedFilesComeBack: as the refusal says, without their lines in the record.
func TestRemovedFilesComeBack(t *testing.T) {
	s := newSmall(t)
	s.land(t)
	want := s.content(t)
	s.commit(t)
	git(t, s.tree.dir, "rm", "-q", "pkg/new/new.go")
	var rest strings.Builder
	for line := range strings.Lines(read(t, filepath.Join(s.tree.dir, recordFile))) {
		if !strings.Contains(line, "pkg/new/new.go") {
			rest.WriteString(line)
		}
	}
	put(t, s.tree.dir, map[string]string{recordFile: rest.String()})
	s.commit(t)
	if out := s.land(t); !strings.Contains(out, "2 files written") {
		t.Errorf("it said:\n%s", out)
	}
	if got := s.content(t); got != want {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
}

// recorded commits a record of a landing that names a file.
func recorded(name string) func(t *testing.T, s small) {
	return func(t *testing.T, s small) {
		put(t, s.tree.dir, map[string]string{recordFile: sum([]byte("theirs\n")) + "  " + name + "\n"})
		s.commit(t)
	}
}

// asSeries lands as git am does, which leaves vendor/ alone.
func (s small) asSeries(t *testing.T) {
	t.Helper()
	for number := range parts {
		if _, err := s.tree.write(t.Context(), s.plan.of(number)); err != nil {
			t.Fatal(err)
		}
	}
	s.commit(t)
}

// link commits a symbolic link, in the place of what is there.
func (s small) link(t *testing.T, to, name string) {
	t.Helper()
	file := filepath.Join(s.tree.dir, filepath.FromSlash(name))
	if err := errors.Join(os.RemoveAll(file), os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(to, file)); err != nil {
		t.Fatal(err)
	}
	s.commit(t)
}

// TestNoCheckouts checks that a directory that is no root of a checkout is
// named before anything else.
func TestNoCheckouts(t *testing.T) {
	s := newSmall(t)
	t.Setenv("GIT_CEILING_DIRECTORIES", "/")
	empty := t.TempDir()
	git(t, empty, "init", "-q")
	for name, test := range map[string]struct{ dir, want string }{
		"a directory inside":          {filepath.Join(s.tree.dir, "pkg"), "name its root"},
		"no checkout":                 {t.TempDir(), "is no checkout"},
		"a checkout without a commit": {empty, "has no commit; check out a version"},
		"nothing":                     {filepath.Join(empty, "nothing"), "which is no directory; name the root"},
		"a file":                      {filepath.Join(s.tree.dir, "go.mod"), "which is no directory; name the root"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := open(t.Context(), test.dir); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	t.Run("no directory is named", func(t *testing.T) {
		if err := run(t.Context(), options{source: "../.."}, os.Stdout); err == nil || !strings.Contains(err.Error(), "KUBE_ROOT") {
			t.Errorf("%v", err)
		}
	})
}
