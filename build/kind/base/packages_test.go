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
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/rootfs"
)

// TestProgramForNewerLibcIsRefused takes a program of this machine, which is linked with its
// C library, for those of nodes.
func TestProgramForNewerLibcIsRefused(t *testing.T) {
	file, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	if needs, err := programs.NeedsLibc(file); err != nil || needs == "" {
		t.Skipf("%s is not linked with glibc: %v", file, err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b := programs.Builder{Dir: t.TempDir(), Arch: runtime.GOARCH}
	for _, p := range programs.Node {
		if err := os.WriteFile(b.File(p), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	lock := func(name, version string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(NodePackages.LockFile(root)), 0o750); err != nil {
			t.Fatal(err)
		}
		line := strings.Join([]string{b.Arch, name, version, b.Arch, strings.Repeat("0", 64)}, " ")
		if err := os.WriteFile(NodePackages.LockFile(root), []byte("snapshot 20260101T000000Z\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock("libc6", "99.1-1+deb99u1")
	if err := CheckLibc(root, b); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"libc6": "make update-kind-lock", "musl": "has no libc6"} {
		lock(name, "2.1-1")
		if err := CheckLibc(root, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s 2.1: got the error %v, want one with %q", name, err, want)
		}
	}
}

// TestFetchOfOnePackage has only that one's file, so that no other can be asked for.
func TestFetchOfOnePackage(t *testing.T) {
	root, apt := t.TempDir(), rootfs.Apt{Dir: t.TempDir(), Arch: "amd64"}
	content := []byte("package")
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	wanted := rootfs.Package{Name: "busybox-static", Version: "1", Arch: "amd64", SHA256: sum}
	if err := os.WriteFile(filepath.Join(apt.Dir, wanted.File()), content, 0o600); err != nil {
		t.Fatal(err)
	}
	lock := "snapshot 20260101T000000Z\namd64 busybox-static 1 amd64 " + sum + "\namd64 other 1 amd64 " + strings.Repeat("0", 64) + "\n"
	if err := os.MkdirAll(filepath.Dir(NodePackages.LockFile(root)), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(NodePackages.LockFile(root), []byte(lock), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := NodePackages.Fetch(t.Context(), root, apt, wanted.Name)
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != wanted.File() {
		t.Errorf("got %q, %v, want %s alone", files, err, wanted.File())
	}
}
