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
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/leftout"
)

// fakeApt puts a script in apt-get's place that writes its calls to a file: it
// downloads a file with the content "package NAME=VERSION" for every package. As
// apt-get it fails while another one runs.
// It returns the calls so far.
func fakeApt(t *testing.T) func() string {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := `#!/bin/bash
set -eu
mkdir ` + dir + `/inside || { echo "E: Could not get lock" >&2; exit 100; }
trap 'rmdir ` + dir + `/inside' EXIT
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
	if [[ $p == gone=* ]] && ! grep -q snapshot/archive "${APT_CONFIG%/*}/sources.list"; then echo "E: Version was not found" >&2; exit 100; fi
	[[ $p != never=* ]] || { echo "E: Version was not found anywhere" >&2; exit 100; }
	printf 'package %s' "$p" >"${p%%=*}.deb"
done
`
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(keyring); err != nil {
		leftout.Skip(t, "Debian's package debian-archive-keyring is not installed")
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

// lockOf is a lock of packages that the script has.
func lockOf(packages ...Package) Lock {
	return Lock{Snapshot: "20261122T050000Z", Packages: packages}
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
	fetch := func() []string {
		t.Helper()
		files, err := apt.Fetch(t.Context(), lockOf(packages...))
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
		return files
	}
	fetch()
	// The second time everything is there already.
	files := fetch()
	if diff := cmp.Diff("update\ndownload kmod=1:2+b1 ipset=1:2+b1\n", calls()); diff != "" {
		t.Errorf("calls of apt-get (-want +got):\n%s", diff)
	}
	// What is in the cache under the right name may be wrong.
	if err := os.WriteFile(files[1], []byte("half a package"), 0o644); err != nil {
		t.Fatal(err)
	}
	fetch()
	if diff := cmp.Diff("update\ndownload kmod=1:2+b1 ipset=1:2+b1\nupdate\ndownload ipset=1:2+b1\n", calls()); diff != "" {
		t.Errorf("calls of apt-get after a file of the cache was changed (-want +got):\n%s", diff)
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

// TestFetchAtOnce has several fetch into one folder, as the packages of tests do
// and two releases of one checkout.
func TestFetchAtOnce(t *testing.T) {
	calls := fakeApt(t)
	apt := Apt{Dir: filepath.Join(t.TempDir(), "debian"), Arch: "arm64"}
	results := make(chan error)
	for range 4 {
		go func() {
			_, err := apt.Fetch(t.Context(), lockOf(locked("kmod"), locked("ipset")))
			results <- err
		}()
	}
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff("update\ndownload kmod=1:2+b1 ipset=1:2+b1\n", calls()); diff != "" {
		t.Errorf("calls of apt-get (-want +got):\n%s", diff)
	}
}

// TestFetchWaits checks that nothing is done in a folder while another process
// works there.
func TestFetchWaits(t *testing.T) {
	apt := Apt{Dir: t.TempDir(), Arch: "arm64"}
	release, err := apt.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if _, err := apt.Fetch(ctx, lockOf(locked("kmod"))); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), apt.Dir) {
		t.Errorf("Fetch: %v, want an error that names the folder", err)
	}
	if _, err := apt.Newest(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Newest: %v", err)
	}
	if _, err := os.Stat(apt.state()); !os.IsNotExist(err) {
		t.Errorf("the other's state was touched: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func TestFetchRefusesOtherContent(t *testing.T) {
	fakeApt(t)
	apt := Apt{Dir: t.TempDir(), Arch: "arm64"}
	other := locked("kmod")
	other.SHA256 = strings.Repeat("00", 32)
	if _, err := apt.Fetch(t.Context(), lockOf(locked("ipset"), other)); err == nil || !strings.Contains(err.Error(), "kmod") {
		t.Errorf("a package with another hash: %v, want an error that names it", err)
	}
	if _, err := os.Stat(filepath.Join(apt.Dir, other.File())); !os.IsNotExist(err) {
		t.Errorf("the package with another hash is in the cache: %v", err)
	}
	if _, err := (Apt{Dir: t.TempDir(), Arch: "mips"}).Fetch(t.Context(), lockOf(locked("kmod"))); err == nil {
		t.Error("an architecture without images was accepted")
	}
	left, err := filepath.Glob(filepath.Join(apt.Dir, "download-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestFetchUsesSnapshotArchive wants versions that mirrors do not have any more.
func TestFetchUsesSnapshotArchive(t *testing.T) {
	fakeApt(t)
	apt := Apt{Dir: t.TempDir(), Arch: "arm64", Snapshot: "http://snapshot"}
	if _, err := apt.Fetch(t.Context(), lockOf(locked("kmod"), locked("gone"))); err != nil {
		t.Errorf("a version that only the snapshot has: %v", err)
	}
	_, err := apt.Fetch(t.Context(), lockOf(locked("never")))
	if err == nil {
		t.Fatal("a version that does not exist was fetched")
	}
	for _, want := range []string{"update-release-lock", "http://snapshot/archive/debian/20261122T050000Z", "http://snapshot/archive/debian-security/20261122T050000Z"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
}

// realApt marks a test that needs apt-get itself.
func realApt(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		leftout.Skip(t, "apt-get is not installed; images cannot be made here either")
	}
	if _, err := os.Stat(keyring); err != nil {
		leftout.Skip(t, "Debian's package debian-archive-keyring is not installed")
	}
}

// TestAddressesOfTheSnapshot has apt-get itself ask servers that have nothing.
func TestAddressesOfTheSnapshot(t *testing.T) {
	realApt(t)
	var lock sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		asked = append(asked, r.URL.Path)
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "all_proxy"} {
		t.Setenv(name, "")
	}
	// A proxy of the machine, which counts elsewhere, cannot know this server.
	direct := filepath.Join(t.TempDir(), "apt.conf")
	if err := os.WriteFile(direct, []byte("Dir::Etc::main \"/dev/null\";\nDir::Etc::parts \"/dev/null\";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", direct)
	apt := Apt{Dir: t.TempDir(), Arch: "arm64", Mirror: server.URL + "/mirror", SecurityMirror: server.URL + "/security", Snapshot: server.URL}
	_, err := apt.Fetch(t.Context(), lockOf(locked("kmod")))
	if err == nil || !strings.Contains(err.Error(), server.URL+"/archive/debian/20261122T050000Z") {
		t.Errorf("without any server: %v, want an error with the snapshot's address", err)
	}
	for _, want := range []string{
		"/mirror/dists/trixie/InRelease", "/security/dists/trixie-security/InRelease",
		"/archive/debian/20261122T050000Z/dists/trixie/InRelease", "/archive/debian-security/20261122T050000Z/dists/trixie-security/InRelease",
	} {
		if !slices.Contains(asked, want) {
			t.Errorf("apt-get did not ask for %s, but for %v", want, asked)
		}
	}
}

// TestAptIsOnItsOwn gives the machine's apt hooks, preferences and a proxy, and
// asks apt what of them counts.
func TestAptIsOnItsOwn(t *testing.T) {
	realApt(t)
	host := filepath.Join(t.TempDir(), "host.conf")
	if err := os.WriteFile(host, []byte(`APT::Update::Post-Invoke { "touch /hooked"; };
DPkg::Post-Invoke { "touch /hooked"; };
APT::Default-Release "sid";
Dir::Etc::preferences "/host/preferences";
Acquire::http::Proxy "http://proxy.example.com:3128";
Acquire::https::mirror.example.com::CaInfo "/etc/ca.pem";
Acquire::http::Timeout "1";
`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APT_CONFIG", host)
	apt := Apt{Dir: t.TempDir(), Arch: "arm64"}
	if err := os.MkdirAll(apt.state(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := apt.configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump, err := apt.run(t.Context(), apt.Dir, "apt-config", "dump")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Acquire::http::Proxy \"http://proxy.example.com:3128\";", "Acquire::https::mirror.example.com::CaInfo \"/etc/ca.pem\";",
		"Dir::Etc::parts \"/dev/null\";", "Dir::Etc::preferences \"/dev/null\";", "APT::Architecture \"arm64\";", "Dir::State \"" + apt.state() + "\";",
	} {
		if !strings.Contains(dump, want+"\n") {
			t.Errorf("apt's settings lack %s", want)
		}
	}
	// The machine's own folder has settings of every Debian.
	for _, other := range []string{"Post-Invoke", "hooked", "Default-Release", "/host/", "Timeout \"1\"", "NeverAutoRemove"} {
		if strings.Contains(dump, other) {
			t.Errorf("apt's settings have %s of the machine", other)
		}
	}
}

func TestNewest(t *testing.T) {
	fakeApt(t)
	packages, err := Apt{Dir: t.TempDir(), Arch: "amd64"}.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := "snapshot 20261122T050000Z\n"
	for _, p := range packages {
		lines += p.String() + "\n"
	}
	read, err := ReadLock(strings.NewReader(lines), "amd64")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lockOf(packages...), read); diff != "" {
		t.Errorf("written and read (-written +read):\n%s", diff)
	}
	if read.Packages[0].Version != "1:2+b1" {
		t.Errorf("the version is %q", read.Packages[0].Version)
	}
}
