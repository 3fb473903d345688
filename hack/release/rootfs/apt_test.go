/*
Copyright 2026 The Kubernetes Authors.

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
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeApt puts a script in apt-get's place that writes its calls to a file: it
// downloads a file with the content "package NAME=VERSION" for every package.
// It returns the calls so far.
func fakeApt(t *testing.T) func() string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := `#!/bin/bash
set -eu
while [[ $1 == -* ]]; do [[ $1 == -o ]] && shift; shift; done
echo "$*" >>` + calls + `
[[ $1 == download ]] || exit 0
shift
if [[ $1 == --print-uris ]]; then
	shift
	for p; do echo "'http://mirror/$p.deb' ${p}_1%3a2+b1_amd64.deb 10 SHA256:` + strings.Repeat("ab", 32) + `"; done
	exit 0
fi
for p; do
	[[ $p != gone=* ]] || { echo "E: Version was not found" >&2; exit 100; }
	printf 'package %s' "$p" >"${p%%=*}.deb"
done
`
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		content, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
}

func locked(name string) Package {
	return Package{
		For: "arm64", Name: name, Version: "1:2+b1", Arch: "arm64",
		SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte("package "+name+"=1:2+b1"))),
	}
}

func TestFetch(t *testing.T) {
	calls := fakeApt(t)
	apt := Apt{Dir: filepath.Join(t.TempDir(), "debian"), Arch: "arm64", Mirror: "http://mirror/debian"}
	packages := []Package{locked("kmod"), locked("ipset")}
	// The second time everything is there already.
	for range 2 {
		files, err := apt.Fetch(t.Context(), packages)
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if want := "package " + packages[i].Name + "=1:2+b1"; string(content) != want {
				t.Errorf("%s has %q, want %q", file, content, want)
			}
		}
	}
	if diff := cmp.Diff("update\ndownload kmod=1:2+b1 ipset=1:2+b1\n", calls()); diff != "" {
		t.Errorf("calls of apt-get (-want +got):\n%s", diff)
	}
	sources, err := os.ReadFile(filepath.Join(apt.Dir, "state-arm64", "sources.list"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[arch=arm64 signed-by=" + keyring + "] http://mirror/debian trixie main", "http://deb.debian.org/debian-security trixie-security main"} {
		if !strings.Contains(string(sources), want) {
			t.Errorf("%q is not in the sources %q", want, sources)
		}
	}
}

func TestFetchRefusesOtherContent(t *testing.T) {
	fakeApt(t)
	apt := Apt{Dir: t.TempDir(), Arch: "arm64"}
	other := locked("kmod")
	other.SHA256 = strings.Repeat("00", 32)
	if _, err := apt.Fetch(t.Context(), []Package{locked("ipset"), other}); err == nil || !strings.Contains(err.Error(), "kmod") {
		t.Errorf("a package with another hash: %v, want an error that names it", err)
	}
	if _, err := os.Stat(filepath.Join(apt.Dir, other.File())); !os.IsNotExist(err) {
		t.Errorf("the package with another hash is in the cache: %v", err)
	}
	if _, err := apt.Fetch(t.Context(), []Package{locked("gone")}); err == nil || !strings.Contains(err.Error(), "update-release-lock") {
		t.Errorf("a version that is gone: %v, want an error that says what to do", err)
	}
	if _, err := (Apt{Dir: t.TempDir(), Arch: "mips"}).Fetch(t.Context(), []Package{locked("kmod")}); err == nil {
		t.Error("an architecture without images was accepted")
	}
	left, err := filepath.Glob(filepath.Join(apt.Dir, "download-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestLock(t *testing.T) {
	fakeApt(t)
	packages, err := Apt{Dir: t.TempDir(), Arch: "amd64"}.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, p := range packages {
		fmt.Fprintln(&lines, p)
	}
	read, err := ReadLock(strings.NewReader(lines.String()), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packages, read); diff != "" {
		t.Errorf("written and read (-written +read):\n%s", diff)
	}
	if read[0].Version != "1:2+b1" {
		t.Errorf("the version is %q", read[0].Version)
	}
}
