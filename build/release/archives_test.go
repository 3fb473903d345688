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
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/targets"
)

// checkArchives reads the archives of all platforms in a folder: which programs are
// in them, and for what and how they were built by the Go goVersion. It returns the
// names of the archives.
func checkArchives(t *testing.T, dir, goVersion string) []string {
	t.Helper()
	var names []string
	for _, p := range targets.Platforms() {
		for _, c := range p.Components() {
			name := archiveName(c, p)
			if !exists(filepath.Join(dir, name)) {
				continue
			}
			names = append(names, name)
			checkArchive(t, filepath.Join(dir, name), c, p, goVersion)
		}
	}
	return names
}

func checkArchive(t *testing.T, file string, c targets.Component, p targets.Platform, goVersion string) {
	t.Helper()
	about := filepath.Base(file)
	var want []string
	if hasCompletion(c, p) {
		want = append(want, completion)
	}
	for _, b := range targets.Of(c) {
		want = append(want, p.Executable(b.Name))
	}
	if c == targets.Server {
		for _, b := range targets.Images() {
			want = append(want, b.Name+".tar", b.Name+".docker_tag")
		}
	}
	folder := "kubernetes/" + string(c) + "/bin/"
	if c == targets.Plugin {
		folder = ""
		want = append(want, ownLicense)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		dir, name := path.Split(h.Name)
		if dir != folder || h.Typeflag == tar.TypeDir {
			continue
		}
		got = append(got, name)
		if ext := path.Ext(name); ext == ".tar" || ext == ".docker_tag" || name == ownLicense {
			continue
		}
		if h.Mode != 0o755 {
			t.Errorf("%s in %s has the mode %o", name, about, h.Mode)
		}
		if name != completion {
			content, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			checkProgram(t, name+" in "+about, content, p, goVersion)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", about, diff)
	}
}

// formats are how files of programs begin, by operating system: ELF, Mach-O of 64
// bits, and PE.
var formats = map[string]string{"linux": "\x7fELF", "darwin": "\xcf\xfa\xed\xfe", "windows": "MZ"}

// checkProgram reads what the go command wrote into a program.
func checkProgram(t *testing.T, about string, content []byte, p targets.Platform, goVersion string) {
	t.Helper()
	if !bytes.HasPrefix(content, []byte(formats[p.OS])) {
		t.Errorf("%s begins with %q, want %q for %s", about, content[:min(4, len(content))], formats[p.OS], p)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		t.Errorf("%s: %v", about, err)
		return
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for name, want := range map[string]string{
		"-tags": targets.Tags, "-trimpath": "true", "CGO_ENABLED": "0", "GOOS": p.OS, "GOARCH": p.Arch,
		// Git's state would be in the bytes.
		"vcs": "", "GOEXPERIMENT": "",
	} {
		if settings[name] != want {
			t.Errorf("%s was built with %s=%q, want %q", about, name, settings[name], want)
		}
	}
	if info.GoVersion != goVersion {
		t.Errorf("%s was built with %s, want %s", about, info.GoVersion, goVersion)
	}
	// It keeps each request; upstream's tags leave it out.
	if bytes.Contains(content, []byte("golang.org/x/net/trace.")) {
		t.Errorf("%s has golang.org/x/net/trace", about)
	}
}

func TestArchives(t *testing.T) {
	r := made(t)
	if got := checkArchives(t, r.tars(), r.source.Go.Version); len(got) != 4 {
		t.Errorf("the archives for linux/amd64 are %v", got)
	}
}

// TestLicensesOfThePlugin: what is handed on alone has the licenses of all that is in it.
func TestLicensesOfThePlugin(t *testing.T) {
	r := made(t)
	got := contents(t, filepath.Join(r.tars(), "kubectl-feature-linux-amd64.tar.gz"))
	for _, name := range []string{"LICENSE", "LICENSES/k8s.io/component-base/LICENSE", "LICENSES/stdlib/LICENSE"} {
		if got[name] == "" {
			t.Errorf("the archive has no %s", name)
		}
	}
}

// TestClients makes the clients of systems that have nothing else.
func TestClients(t *testing.T) {
	r := standIn(t, checkout(t), targets.Platform{OS: "darwin", Arch: "arm64"}, targets.Platform{OS: "linux", Arch: "arm"}, windows)
	want := []string{
		"kubernetes-client-darwin-arm64.tar.gz", "kubectl-feature-darwin-arm64.tar.gz", "kubernetes-client-linux-arm.tar.gz",
		"kubernetes-client-windows-amd64.tar.gz", "kubernetes-node-windows-amd64.tar.gz", "kubectl-feature-windows-amd64.tar.gz",
	}
	if diff := gocmp.Diff(want, checkArchives(t, r.tars(), r.source.Go.Version)); diff != "" {
		t.Errorf("archives (-want +got):\n%s", diff)
	}
	for _, name := range []string{filepath.Join(r.tars(), "kubernetes-server-windows-amd64.tar.gz"), filepath.Join(r.out, imagesFolder)} {
		if exists(name) {
			t.Errorf("%s is there", filepath.Base(name))
		}
	}
}

// TestArchivesOfTheRelease looks at each archive, whatever the platform.
func TestArchivesOfTheRelease(t *testing.T) {
	leftout.Long(t)
	wanted, err := os.ReadFile(filepath.Join("..", "..", build.VersionFile))
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("RELEASE_TARS")
	found, err := filepath.Glob(filepath.Join(dir, "kube*-*-*-*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	known := checkArchives(t, dir, "go"+strings.TrimSpace(string(wanted)))
	slices.Sort(known)
	if diff := gocmp.Diff(found, known); diff != "" || len(found) == 0 {
		t.Errorf("the archives that are there and those that are known (-there +known):\n%s", diff)
	}
}
