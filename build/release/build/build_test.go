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

package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/targets"
)

// checkout makes a repository with one commit.
func checkout(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "")
	dir := t.TempDir()
	write(t, dir, map[string]string{"file": "x", ".gitignore": "_output\n"})
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	commit(t, dir)
	return dir
}

// write writes files below dir; those that begin with "#!" may be run.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// commit makes a repository of dir with one commit.
func commit(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=n", "-c", "user.email=n@example.com", "commit", "--quiet", "-m", "m", "--date", "2026-11-21T01:02:03Z"},
	} {
		gitIn(t, dir, args...)
	}
}

func describe(t *testing.T, dir string) Source {
	t.Helper()
	s, err := Describe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDescribe(t *testing.T) {
	dir := checkout(t)
	s := describe(t, dir)
	if len(s.Commit) != 40 || s.Dirty || !s.Time.Equal(time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)) {
		t.Errorf("a clean checkout is %+v", s)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	s = describe(t, dir)
	if !s.Dirty || s.Time.Unix() != 86400 {
		t.Errorf("a dirty checkout at another time is %+v", s)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := Describe(t.Context(), dir); err == nil {
		t.Error("a time that is no number was accepted")
	}
}

// TestOtherRepositories describes folders that have no repository, none of their
// own, and one without a commit.
func TestOtherRepositories(t *testing.T) {
	outer := checkout(t)
	const clone, commit = "clone the repository", `git add . && git commit`
	inside := filepath.Join(outer, "_output", "src")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	gitIn(t, empty, "init", "--quiet")
	for dir, want := range map[string][]string{
		t.TempDir(): {clone, commit}, filepath.Join(outer, "missing"): {clone}, inside: {inside + " is a folder of the checkout " + outer, clone, commit}, empty: {"has none", commit},
	} {
		s, err := Describe(t.Context(), dir)
		if err == nil {
			t.Errorf("%s is %+v", dir, s)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("the error is %q, want %q in it", err, w)
			}
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(outer, link); err != nil {
		t.Fatal(err)
	}
	if s := describe(t, link); s.Commit != describe(t, outer).Commit {
		t.Errorf("by a symbolic link the checkout is %+v", s)
	}
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-21T01:02:03Z", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// TestSettingsOfGit gives git the settings that would hide what is new, and that
// would say more than the time of a commit.
func TestSettingsOfGit(t *testing.T) {
	dir := checkout(t)
	for _, setting := range [][]string{{"status.showUntrackedFiles", "no"}, {"log.showSignature", "true"}, {"color.status", "always"}} {
		gitIn(t, dir, "config", setting[0], setting[1])
	}
	if s := describe(t, dir); s.Dirty || s.Time.Year() != 2026 {
		t.Errorf("a clean checkout is %+v", s)
	}
	write(t, dir, map[string]string{"new": ""})
	if s := describe(t, dir); !s.Dirty {
		t.Error("a file that git does not know makes no tree dirty")
	}
}

// TestHiddenChanges: files whose changes git ignores are compiled all the same.
func TestHiddenChanges(t *testing.T) {
	for what, hide := range map[string]func(dir string){
		"a file of .git/info/exclude": func(dir string) {
			write(t, dir, map[string]string{".git/info/exclude": "*.local\nlocal.go\n", "cmd/local.go": "package cmd\n"})
		},
		"a file of core.excludesFile": func(dir string) {
			gitIn(t, dir, "config", "core.excludesFile", filepath.Join(dir, "_output", "ignore"))
			write(t, dir, map[string]string{"_output/ignore": "go.work\n", "go.work": "go 1.26.0\n"})
		},
		"an assembler file in an ignored folder": func(dir string) {
			write(t, dir, map[string]string{".git/info/exclude": "*.local\nlocal/\n", "pkg/local/local.s": ""})
		},
		"a changed file with --assume-unchanged": func(dir string) {
			gitIn(t, dir, "update-index", "--assume-unchanged", "file")
			write(t, dir, map[string]string{"file": "changed"})
		},
		"a changed file with --skip-worktree": func(dir string) {
			gitIn(t, dir, "update-index", "--skip-worktree", "file")
			write(t, dir, map[string]string{"file": "changed"})
		},
	} {
		dir := checkout(t)
		// What the go command does not see does not count.
		write(t, dir, map[string]string{"_output/src/main.go": "", ".git/info/exclude": "*.local\n", "notes.local": ""})
		if s := describe(t, dir); s.Dirty {
			t.Errorf("before %s: the checkout is %+v", what, s)
		}
		hide(dir)
		before := describe(t, dir)
		if !before.Dirty {
			t.Errorf("%s makes no tree dirty", what)
			continue
		}
		files, err := before.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if hidden, _ := before.hidden(t.Context()); len(hidden) > 0 && !slices.Contains(files, hidden[0]) {
			t.Errorf("%s is not among the sources %v", what, files)
		}
	}
}

// TestInnerRepository has git worktree or a clone below the checkout.
func TestInnerRepository(t *testing.T) {
	dir := checkout(t)
	gitIn(t, dir, "worktree", "add", "--quiet", "inner")
	if _, err := Describe(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "inner/ is a repository of its own") || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("a repository below the checkout: %v", err)
	}
	write(t, dir, map[string]string{".git/info/exclude": "inner\n"})
	if s := describe(t, dir); s.Dirty {
		t.Errorf("with an ignored repository the checkout is %+v", s)
	}
}

// TestEntries changes a checkout behind git's back: what is packed is the commit.
func TestEntries(t *testing.T) {
	dir := checkout(t)
	write(t, dir, map[string]string{"program": "#!/bin/sh\n", "empty": "", "a folder/ä": "umlaut"})
	commit(t, dir)
	s := describe(t, dir)
	write(t, dir, map[string]string{"file": "changed"})
	entries, err := s.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []archive.Entry{
		{Name: ".gitignore", Data: []byte("_output\n")}, {Name: "a folder/ä", Data: []byte("umlaut")}, {Name: "empty", Data: []byte{}},
		{Name: "file", Data: []byte("x")}, {Name: "link", Link: "file"}, {Name: "program", Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("a clean tree (-want +got):\n%s", diff)
	}
	if entries, err = describe(t, dir).Entries(t.Context()); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(entries, func(e archive.Entry) bool { return e.Name == "file" })
	if i < 0 || entries[i].Path != filepath.Join(dir, "file") {
		t.Errorf("a dirty tree is not packed from disk: %+v", entries)
	}
}

func TestUnchanged(t *testing.T) {
	dir := checkout(t)
	clean := describe(t, dir)
	if err := clean.Unchanged(t.Context()); err != nil {
		t.Error(err)
	}
	write(t, dir, map[string]string{"file": "changed"})
	if err := clean.Unchanged(t.Context()); err == nil || !strings.Contains(err.Error(), "dirty") {
		t.Errorf("a tree that became dirty: %v", err)
	}
	dirty := describe(t, dir)
	if err := dirty.Unchanged(t.Context()); err != nil {
		t.Error(err)
	}
	write(t, dir, map[string]string{"file": "changed again"})
	if err := dirty.Unchanged(t.Context()); err == nil {
		t.Error("a dirty tree that changed is called unchanged")
	}
	commit(t, dir)
	if err := clean.Unchanged(t.Context()); err == nil {
		t.Error("another commit is called unchanged")
	}
}

func TestFiles(t *testing.T) {
	dir := checkout(t)
	for _, name := range []string{"new", "_output"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	files, err := describe(t, dir).Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{".gitignore", "link", "new"}; !slices.Equal(files, want) {
		t.Errorf("files are %v, want %v", files, want)
	}
}

func TestLDFlags(t *testing.T) {
	s := Source{Commit: "0123abc", Time: time.Unix(86400, 0).UTC()}
	flags := s.LDFlags("v1.36.3+feature.1")
	for _, want := range []string{
		"-s -w -buildid= ",
		"-X k8s.io/component-base/version.gitVersion=v1.36.3+feature.1",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3+feature.1",
		"-X k8s.io/component-base/version.gitCommit=0123abc",
		"-X k8s.io/component-base/version.buildDate=1970-01-02T00:00:00Z",
		"-X k8s.io/component-base/version.gitTreeState=clean",
		"-X k8s.io/component-base/version.gitMajor=1",
		"-X k8s.io/component-base/version.gitMinor=36",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not in %q", want, flags)
		}
	}
	clean := s.Revision()
	s.Dirty = true
	if !strings.Contains(s.LDFlags("v1.36.3"), "gitTreeState=dirty") {
		t.Error("a dirty tree is not called so")
	}
	if dirty := s.Revision(); clean != "0123abc" || dirty != "0123abc-dirty" {
		t.Errorf("the revisions are %s and %s", clean, dirty)
	}
}

func TestCommand(t *testing.T) {
	p := targets.Platform{OS: "linux", Arch: "arm64"}
	cmd := Source{Root: "/src"}.Command(t.Context(), "v1.36.3+feature.1", p, Folder("/out/bin"), Packages(p.Components())...)
	for _, want := range []string{"-trimpath", "-buildvcs=false", "-tags=" + targets.Tags, "/out/bin/", "k8s.io/kubernetes-features/cmd/kube-apiserver", targets.LogRunner.Package} {
		if !slices.Contains(cmd.Args, want) {
			t.Errorf("%q is not in %v", want, cmd.Args)
		}
	}
	if got, want := len(cmd.Args)-len(targets.For(p.Components())), 9; got != want {
		t.Errorf("%d arguments are not packages, want %d: %v", got, want, cmd.Args)
	}
	if cmd.Dir != "/src" {
		t.Errorf("the command runs in %s", cmd.Dir)
	}
}
