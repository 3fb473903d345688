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
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// newVendored is a small workspace that depends on one more module than its
// vendor/ has: the one that the library brings.
func newVendored(t *testing.T) (checkout, map[string]string) {
	t.Helper()
	identity(t)
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "empty")
	tree := checkout{dir: dir}
	if renewed, err := tree.vendor(t.Context(), nil, true); renewed || err != nil {
		t.Errorf("without vendor/: %v, %v; want nothing done", renewed, err)
	}
	var sums []string
	for line := range strings.Lines(read(t, filepath.Join(root, libraryDir, "go.sum"))) {
		if strings.HasPrefix(line, "pgregory.net/rapid ") {
			sums = append(sums, line)
		}
	}
	version := strings.Fields(sums[0])[1]
	put(t, dir, map[string]string{
		"go.work":            "go 1.26.0\n\nuse .\n",
		"go.mod":             "module k8s.io/kubernetes\n\ngo 1.26.0\n\nrequire pgregory.net/rapid " + version + "\n",
		"go.sum":             strings.Join(sums, ""),
		"a.go":               importsNothing,
		"vendor/modules.txt": "## workspace\n",
		"vendor/OWNERS":      "approvers:\n  - dep-approvers\n",
	})
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "before")
	return tree, map[string]string{"pgregory.net/rapid": version}
}

const (
	// importsNothing cannot be vendored.
	importsNothing = "package kubernetes\n\nimport _ \"pgregory.net/rapid/nothing\"\n"
	importsRapid   = "package kubernetes\n\nimport _ \"pgregory.net/rapid\"\n"
)

// TestVendor renews vendor/.
func TestVendor(t *testing.T) {
	tree, brought := newVendored(t)
	dir := tree.dir
	if renewed, err := tree.vendor(t.Context(), brought, true); renewed || err == nil || !strings.Contains(err.Error(), "could not be renewed; land again") {
		t.Errorf("with an import of nothing: %v, %v; want a failure", renewed, err)
	}
	// All has landed now, and vendoring is still to be done.
	if got := read(t, filepath.Join(dir, "vendor/OWNERS")); got != "approvers:\n  - dep-approvers\n" {
		t.Errorf("after the failure OWNERS is %q", got)
	}
	put(t, dir, map[string]string{"a.go": importsRapid})
	if renewed, err := tree.vendor(t.Context(), brought, false); !renewed || err != nil {
		t.Fatalf("%v, %v; want it renewed", renewed, err)
	}
	if got := read(t, filepath.Join(dir, "vendor/OWNERS")); got != "approvers:\n  - dep-approvers\n" {
		t.Errorf("OWNERS became %q", got)
	}
	text := read(t, filepath.Join(dir, "vendor/pgregory.net/rapid/LICENSE"))
	// The last line is what upstream's script writes for this module.
	want := "= vendor/pgregory.net/rapid licensed under: =\n\n" + text + "\n= vendor/pgregory.net/rapid/LICENSE 48a3fe23ed1353e0995dadfda05ffdb6\n"
	license := filepath.Join(dir, "LICENSES/vendor/pgregory.net/rapid/LICENSE")
	if got := read(t, license); got != want {
		t.Errorf("the license is\n%s\nwant\n%s", got, want)
	}
	// A fork's files of a known module are its own.
	put(t, dir, map[string]string{"LICENSES/vendor/pgregory.net/rapid/LICENSE": "mine"})
	if _, err := tree.vendor(t.Context(), brought, true); err != nil || read(t, license) != "mine" {
		t.Errorf("the second time: %v, and the license is %q", err, read(t, license))
	}
	if renewed, err := tree.vendor(t.Context(), brought, false); renewed || err != nil {
		t.Errorf("when nothing has landed and all is there: %v, %v", renewed, err)
	}
	// Also where a user has committed the files of a failed attempt.
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "after")
	if err := os.Remove(license); err != nil {
		t.Fatal(err)
	}
	if renewed, err := tree.vendor(t.Context(), brought, false); !renewed || err != nil || read(t, license) != want {
		t.Errorf("without the license: %v, %v", renewed, err)
	}
	if err := os.Remove(filepath.Join(dir, "vendor/pgregory.net/rapid/LICENSE")); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.license("pgregory.net/rapid"); err == nil || !strings.Contains(err.Error(), "pgregory.net/rapid in vendor/ has no license") {
		t.Errorf("a module without a license: %v", err)
	}
	put(t, dir, map[string]string{"vendor/pgregory.net/rapid/LICENCE.md": "as you like"}) //nolint:misspell // modules have it
	if found, err := tree.license("pgregory.net/rapid"); err != nil || !strings.Contains(string(found.data), "as you like") {
		t.Errorf("a license in the British spelling: %v", err)
	}
}

// TestVendoringIsRepeated: also where vendor/ has what an earlier landing brought,
// and where the go command was killed.
func TestVendoringIsRepeated(t *testing.T) {
	tree, brought := newVendored(t)
	commit := func() {
		t.Helper()
		git(t, tree.dir, "add", "-A")
		git(t, tree.dir, "commit", "-qm", "mine")
	}
	renews := func(landed, want bool) {
		t.Helper()
		if renewed, err := tree.vendor(t.Context(), brought, landed); renewed != want || err != nil {
			t.Errorf("renewed: %v, %v; want %v", renewed, err, want)
		}
	}
	put(t, tree.dir, map[string]string{"a.go": importsRapid})
	renews(true, true)
	commit()
	renews(false, false)

	t.Log("a later landing fails")
	put(t, tree.dir, map[string]string{"a.go": importsNothing})
	if renewed, err := tree.vendor(t.Context(), brought, true); renewed || err == nil {
		t.Errorf("with an import of nothing: %v, %v", renewed, err)
	}
	put(t, tree.dir, map[string]string{"a.go": importsRapid})
	renews(false, true)
	renews(false, false)

	t.Log("the go command is interrupted")
	interrupted(t, tree, brought)
	if v, err := tree.vendoring(t.Context()); err != nil || !v.Due || v.Running != "" || len(v.Left) == 0 {
		t.Errorf("on record is %+v, %v; want what is left", v, err)
	}
	renews(false, true)

	t.Log("landing is killed before vendoring")
	if err := tree.vendoringDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	renews(false, true)

	t.Log("the go command is killed after it has removed vendor/")
	if err := tree.vendoringBegins(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(tree.dir, "vendor")); err != nil {
		t.Fatal(err)
	}
	renews(false, true)
	if status := git(t, tree.dir, "status", "--porcelain"); status != "" {
		t.Errorf("vendor/ is not as it was:\n%s", status)
	}
}

// interrupted ends vendoring when the go command has removed vendor/.
func interrupted(t *testing.T, tree checkout, brought map[string]string) {
	t.Helper()
	standIn := t.TempDir()
	removed := filepath.Join(standIn, "removed")
	if err := syscall.Mkfifo(removed, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nrm -r vendor\necho >" + removed + "\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(standIn, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", standIn+":"+path)
	ctx, interrupt := context.WithCancel(t.Context())
	failure := make(chan error)
	go func() {
		_, err := tree.vendor(ctx, brought, true)
		failure <- err
	}()
	if _, err := os.ReadFile(removed); err != nil {
		t.Fatal(err)
	}
	interrupt()
	if err := <-failure; err == nil || !strings.Contains(err.Error(), "land again") {
		t.Errorf("interrupted: %v", err)
	}
	t.Setenv("PATH", path)
}

// TestVendorOwner: changes in vendor/ that are not committed are landing's only
// where it is on record that it made them.
func TestVendorOwner(t *testing.T) {
	tree, brought := newVendored(t)
	nothing := &plan{files: map[string]*target{}}
	clean := func(want string) {
		t.Helper()
		err := tree.checkClean(t.Context(), nothing, sums{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "not committed: "+want+";")) {
			t.Errorf("%v, want %q refused", err, want)
		}
	}
	const license = "vendor/pgregory.net/rapid/LICENSE"
	if _, err := tree.vendor(t.Context(), brought, true); err == nil {
		t.Fatal("with an import of nothing: no error")
	}
	t.Log("what a failure left")
	clean("")
	put(t, tree.dir, map[string]string{"vendor/mine.go": "package mine\n"})
	clean("vendor/mine.go")
	git(t, tree.dir, "clean", "-fdq", "vendor")
	put(t, tree.dir, map[string]string{"a.go": importsRapid})
	git(t, tree.dir, "add", "a.go")
	git(t, tree.dir, "commit", "-qm", "imports")
	if _, err := tree.vendor(t.Context(), brought, false); err != nil {
		t.Fatal(err)
	}
	t.Log("what vendoring wrote")
	clean("")
	text := read(t, filepath.Join(tree.dir, license))
	put(t, tree.dir, map[string]string{license: text + "mine\n"})
	clean(license)
	put(t, tree.dir, map[string]string{license: text, "LICENSES/vendor/mine/LICENSE": "mine\n"})
	clean("LICENSES/vendor/mine/LICENSE")
	if err := os.RemoveAll(filepath.Join(tree.dir, "LICENSES", "vendor", "mine")); err != nil {
		t.Fatal(err)
	}
	clean("")
	t.Log("what the go command left when it was killed, until a user commits something else")
	if err := tree.vendoringBegins(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, tree.dir, map[string]string{license: ""})
	clean("")
	git(t, tree.dir, "add", "-A")
	git(t, tree.dir, "reset", "-q", license)
	git(t, tree.dir, "commit", "-qm", "some of it")
	clean(license)
}

// TestVendoringIsDueBeforeAnythingLands: else an end in between would leave a tree
// that has it all but for vendor/.
func TestVendoringIsDueBeforeAnythingLands(t *testing.T) {
	s := newSmall(t)
	put(t, s.tree.dir, map[string]string{"vendor/modules.txt": "## workspace\n"})
	s.commit(t)
	ended, end := context.WithCancel(t.Context())
	if err := s.tree.prepare(t.Context(), s.plan); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := s.tree.write(ended, s.plan.of(0)); err == nil {
		t.Error("writing after an interruption: no error")
	}
	if v, err := s.tree.vendoring(t.Context()); err != nil || !v.Due {
		t.Errorf("on record is %+v, %v; want it due", v, err)
	}
	clean := newSmall(t)
	clean.land(t)
	if v, err := clean.tree.vendoring(t.Context()); err != nil || v.Due {
		t.Errorf("without vendor/ on record is %+v, %v; want nothing", v, err)
	}
}
