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

package rootfs_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/rootfs/debiantest"
)

// debian returns the packages of the lock file, which "make test-release" has
// fetched or fetches into the folder RELEASE_DEBIAN.
func debian(t *testing.T, arch string) rootfs.Tree {
	t.Helper()
	apt := rootfs.Apt{Dir: debiantest.Dir(t), Arch: arch}
	lock, err := rootfs.ReadLock(strings.NewReader(debiantest.Lock(t, filepath.Join("..", "debian.lock"), apt)), arch)
	if err != nil {
		t.Fatal(err)
	}
	debs, err := apt.Fetch(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := rootfs.Unpack(t.Context(), debs)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestAnOutdatedLock: with a lock file whose packages are no longer available,
// tests take today's.
func TestAnOutdatedLock(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "debian.lock"))
	if err != nil {
		t.Fatal(err)
	}
	var outdated strings.Builder
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 5 && f[1] == "netbase" {
			line = strings.Join([]string{f[0], f[1], "0.1", f[3], strings.Repeat("0", 64)}, " ") + "\n"
		}
		outdated.WriteString(line)
	}
	file := filepath.Join(t.TempDir(), "debian.lock")
	if err := os.WriteFile(file, []byte(outdated.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	// What is left out here is left out on purpose.
	t.Setenv("RELEASE_LEFT_OUT", "")
	// Nothing listens there.
	apt := rootfs.Apt{Dir: debiantest.Dir(t), Snapshot: "http://127.0.0.1:1"}
	if lock := debiantest.Lock(t, file, apt); lock == outdated.String() || !strings.Contains(lock, "\namd64 netbase 6") {
		t.Errorf("tests would take\n%s", lock)
	}
}

// maxProxySize is what Debian's programs may take in the image of kube-proxy,
// in bytes. They took 17 MB on amd64 and 22 MB on arm64 when this was written, the
// largest part being libcrypto, with which kmod checks signatures.
const maxProxySize = 25 << 20

func TestProxyOfDebian(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			tree := debian(t, arch)
			entries, err := rootfs.Proxy(tree, arch)
			if err != nil {
				t.Fatal(err)
			}
			static, err := rootfs.Static(tree)
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for _, e := range entries {
				size += len(e.Data)
			}
			t.Logf("%d files, %.1f MB", len(entries), float64(size)/1e6)
			if size > maxProxySize {
				t.Errorf("Debian's programs take %d bytes, more than %d", size, maxProxySize)
			}
			root := t.TempDir()
			extract(t, root, static)
			extract(t, root, entries)
			for _, name := range rootfs.Names() {
				if fields := read(t, filepath.Join(root, rootfs.StatusFolder, name)); !bytes.Contains(fields, []byte("Version: ")) {
					t.Errorf("scanners find no version of %s: %s", name, fields)
				}
			}
			if license := read(t, filepath.Join(root, "usr/share/common-licenses/GPL-2")); !bytes.Contains(license, []byte("GNU GENERAL PUBLIC LICENSE")) {
				t.Error("the text of the license of iptables is not there")
			}
			if n := bytes.Count(read(t, filepath.Join(root, rootfs.CertificatesFile)), []byte("BEGIN CERTIFICATE")); n < 100 {
				t.Errorf("there are %d CA certificates, want those of Mozilla, more than 100", n)
			}
			if arch != runtime.GOARCH {
				leftout.Note(t, "programs of "+arch+" run only there")
				return
			}
			if os.Getuid() != 0 {
				leftout.Part(t, "chroot needs root, so the programs are not run")
				return
			}
			programsRun(t, root)
		})
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// programsRun runs what kube-proxy runs, with nothing but the image's files.
func programsRun(t *testing.T, root string) {
	for command, want := range map[string]string{
		"nft --version":              "nftables v1.",
		"iptables --version":         "(nf_tables)",
		"ip6tables --version":        "(nf_tables)",
		"iptables-save --version":    "(nf_tables)",
		"iptables-restore --version": "(nf_tables)",
		"iptables-legacy --version":  "(legacy)",
		"conntrack --version":        "conntrack v1.",
		"ipset version":              "ipset v7.",
		"modprobe --version":         "kmod version",
		// A match of an extension is a library of its own.
		"iptables -m comment --help": "comment match options",
	} {
		words := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), "/usr/sbin/"+words[0], words[1:]...)
		cmd.Path = "/usr/sbin/" + words[0]
		cmd.Err = nil
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s in the image: %v: %s; want %q", command, err, out, want)
		}
	}
}

// extract writes entries below dir by way of the archive, as a container runtime
// does.
func extract(t *testing.T, dir string, entries []archive.Entry) {
	t.Helper()
	var layer bytes.Buffer
	if err := archive.Write(&layer, entries, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(&layer)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		default:
			var content []byte
			if content, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(name, content, os.FileMode(h.Mode&0o777))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
