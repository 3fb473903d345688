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

package rootfs

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/leftout"
)

func lock(arch string) string {
	var lines strings.Builder
	lines.WriteString("# comment\n\nsnapshot 20261122T050000Z\n")
	for _, name := range Names() {
		fmt.Fprintln(&lines, Package{For: arch, Name: name, Version: "1:2~3", Arch: arch, SHA256: strings.Repeat("0a", 32)})
	}
	return lines.String()
}

func TestReadLock(t *testing.T) {
	both := lock("amd64") + lock("arm64")
	got, err := ReadLock(strings.NewReader(both), "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Packages) != len(Names()) || got.Snapshot != "20261122T050000Z" {
		t.Errorf("%d packages of %s, want %d", len(got.Packages), got.Snapshot, len(Names()))
	}
	for _, p := range got.Packages {
		if p.For != "arm64" || p.Version != "1:2~3" {
			t.Errorf("read %v", p)
		}
	}
	for what, text := range map[string]string{
		"has no packages for it":  lock("amd64"),
		"lacks one package":       strings.Replace(both, "arm64 nftables", "arm64 nothing", 1),
		"has no time":             strings.ReplaceAll(both, "snapshot 20261122T050000Z\n", ""),
		"has a time that is none": strings.Replace(both, "snapshot 20261122", "snapshot 20261322", 1),
		"has a hash that is none": strings.Replace(both, strings.Repeat("0a", 32), "0a", 1),
	} {
		if _, err := ReadLock(strings.NewReader(text), "arm64"); err == nil {
			t.Errorf("a lock file that %s was accepted", what)
		}
	}
}

// TestRemedyOfALock: rewriting the lock file helps those architectures only that it
// is written for.
func TestRemedyOfALock(t *testing.T) {
	for arch, want := range map[string]bool{"amd64": true, "s390x": false} {
		_, err := ReadLock(strings.NewReader(lock("arm64")), arch)
		if err == nil || strings.Contains(err.Error(), "make update-release-lock") != want {
			t.Errorf("%s: %v; its advice to rewrite the lock file has to be %v", arch, err, want)
		}
	}
}

func TestLockOfThisTree(t *testing.T) {
	for arch := range map[string]bool{"amd64": true, "arm64": true} {
		f, err := os.Open(filepath.Join("..", "debian.lock"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLock(f, arch); err != nil {
			t.Error(err)
		}
		f.Close()
	}
}

func TestResolve(t *testing.T) {
	tree := Tree{}
	for _, e := range []archive.Entry{
		{Name: "lib64", Link: "usr/lib64"}, {Name: "usr/lib64/ld.so", Link: "/lib/ld-1.so"}, {Name: "lib", Link: "usr/lib"},
		{Name: "usr/lib/ld-1.so", Data: []byte("x")}, {Name: "a", Link: "b"}, {Name: "b", Link: "a"}, {Name: "up", Link: "../../lib/ld-1.so"},
	} {
		tree[e.Name] = e
	}
	file, links, err := tree.Resolve("/lib64/ld.so")
	if err != nil || file != "usr/lib/ld-1.so" {
		t.Errorf("/lib64/ld.so is %q: %v", file, err)
	}
	if diff := cmp.Diff([]string{"lib64", "usr/lib64/ld.so", "lib"}, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if file, _, err := tree.Resolve("up"); err != nil || file != "usr/lib/ld-1.so" {
		t.Errorf("a link above the root leads to %q: %v", file, err)
	}
	for _, name := range []string{"a", "usr/lib/missing"} {
		if file, _, err := tree.Resolve(name); err == nil {
			t.Errorf("%s is %s, want an error", name, file)
		}
	}
}

// dpkgDeb returns a tree with a program of this machine, which is linked
// dynamically, and the names of what it needs.
func dpkgDeb(t *testing.T) (Tree, []string) {
	t.Helper()
	program, err := exec.LookPath("dpkg-deb")
	if err != nil {
		leftout.Skip(t, "dpkg-deb is not installed; images cannot be made here either")
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	needs, err := needed(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(needs) < 2 {
		t.Fatalf("dpkg-deb needs %v, want an interpreter and a library", needs)
	}
	tree := Tree{"usr/bin/dpkg-deb": {Name: "usr/bin/dpkg-deb", Data: content}}
	for _, need := range needs {
		name := strings.TrimPrefix(need, "/")
		if !path.IsAbs(need) {
			name = "usr/lib/x86_64-linux-gnu/" + need
		}
		tree[name+".1"] = archive.Entry{Name: name + ".1", Data: []byte("a library")}
		tree[name] = archive.Entry{Name: name, Link: path.Base(name) + ".1"}
	}
	tree["usr/bin/other"] = archive.Entry{Name: "usr/bin/other", Data: []byte("not needed")}
	return tree, needs
}

func TestClosure(t *testing.T) {
	tree, needs := dpkgDeb(t)
	found, err := Closure(tree, "amd64", []string{"usr/bin/dpkg-deb"})
	if err != nil {
		t.Fatal(err)
	}
	// The program, and a link and a file for each need.
	if want := 1 + 2*len(needs); len(found) != want {
		t.Errorf("the closure has %d files, want %d", len(found), want)
	}
	if _, ok := found["usr/bin/other"]; ok {
		t.Error("the closure has a file that nothing needs")
	}
	for _, need := range needs {
		tree, _ := dpkgDeb(t)
		for name := range tree {
			if path.Base(name) == path.Base(need) {
				delete(tree, name)
			}
		}
		if _, err := Closure(tree, "amd64", []string{"usr/bin/dpkg-deb"}); err == nil || !strings.Contains(err.Error(), path.Base(need)) {
			t.Errorf("without %s: %v, want an error that names it", need, err)
		}
	}
}

// pack builds a package of a name with files.
func pack(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		leftout.Skip(t, "dpkg-deb is not installed; images cannot be made here either")
	}
	dir := filepath.Join(t.TempDir(), "package")
	files["DEBIAN/control"] = "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: tester\nDescription: test\n"
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deb := filepath.Join(t.TempDir(), name+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", dir, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return deb
}

func certificatesPackage(t *testing.T) string {
	return pack(t, "ca-certificates", map[string]string{
		"usr/share/ca-certificates/mozilla/B.crt":     "\nB\n\n",
		"usr/share/ca-certificates/mozilla/A.crt":     "A",
		"usr/share/ca-certificates/mozilla/link":      "-> A.crt",
		"usr/share/ca-certificates/mozilla/README":    "no certificate",
		"usr/share/doc/ca-certificates/copyright":     "license: see\n /usr/share/common-licenses/GPL.",
		"usr/share/ca-certificates/elsewhere/CCC.crt": "C",
	})
}

// TestUnpack builds packages and reads them back.
func TestUnpack(t *testing.T) {
	base := pack(t, "base-files", map[string]string{
		"etc/os-release": "-> ../usr/lib/os-release", "usr/lib/os-release": "ID=debian\n",
		"usr/share/common-licenses/GPL": "-> GPL-3", "usr/share/common-licenses/GPL-3": "text", "usr/share/common-licenses/BSD": "other",
		"usr/share/doc/base-files/copyright": "free",
	})
	tree, err := Unpack(t.Context(), []string{certificatesPackage(t), base})
	if err != nil {
		t.Fatal(err)
	}
	if got := tree["usr/share/ca-certificates/mozilla/link"].Link; got != "A.crt" {
		t.Errorf("the link leads to %q", got)
	}
	entries, err := Static(tree)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]string{}
	for _, e := range entries {
		content[e.Name] = string(e.Data) + e.Link
	}
	if got := content[CertificatesFile]; got != "A\nB\n" {
		t.Errorf("the certificates are %q", got)
	}
	for name, want := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n", // diction:ok
		"etc/group":  "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n",                                                                                                           // diction:ok
		"usr/share/doc/ca-certificates/copyright": "license: see\n /usr/share/common-licenses/GPL.",
		"usr/share/common-licenses/GPL":           "GPL-3",
		"usr/share/common-licenses/GPL-3":         "text",
		"usr/share/common-licenses/BSD":           "",
		"etc/os-release":                          "../usr/lib/os-release",
		"usr/lib/os-release":                      "ID=debian\n",
		"var/lib/dpkg/status.d/base-files":        "Package: base-files\nVersion: 1\nArchitecture: all\nMaintainer: tester\nDescription: test\n",
	} {
		if content[name] != want {
			t.Errorf("%s is %q, want %q", name, content[name], want)
		}
	}
	for _, want := range []archive.Entry{{Name: "tmp", Dir: true, Mode: 0o1777}, {Name: "home/nonroot", Dir: true, Mode: 0o700, User: NonRoot}} {
		if !slices.ContainsFunc(entries, func(e archive.Entry) bool { return cmp.Equal(e, want) }) {
			t.Errorf("there is no %+v", want)
		}
	}
	if _, err := Static(Tree{}); err == nil {
		t.Error("a file system without certificates was made")
	}
	delete(tree, "usr/share/common-licenses/GPL-3")
	if _, err := Static(tree); err == nil || !strings.Contains(err.Error(), "common-licenses/GPL") {
		t.Errorf("without the text of a license: %v, want an error that names it", err)
	}
}

func TestTwoPackagesWithOneFile(t *testing.T) {
	other := pack(t, "other", map[string]string{"usr/share/doc/ca-certificates/copyright": "mine"})
	if _, err := Unpack(t.Context(), []string{certificatesPackage(t), other}); err == nil || !strings.Contains(err.Error(), "usr/share/doc/ca-certificates/copyright") {
		t.Errorf("two packages with one file: %v, want an error that names it", err)
	}
}

func TestNotAPackage(t *testing.T) {
	if _, err := Unpack(t.Context(), []string{filepath.Join(t.TempDir(), "missing.deb")}); err == nil {
		t.Error("a package that is missing was unpacked")
	}
}
