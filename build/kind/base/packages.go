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
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/rootfs"
)

// Packages are packages of Debian for one purpose, with a lock file.
type Packages struct {
	// name is that of the lock file, and purpose what is said of it.
	name, purpose string
	// wanted are the packages, beside which there are those that they depend on.
	wanted []string
}

var (
	// NodePackages are in the base image: what services run in, what components of
	// Kubernetes and kind's own scripts call, and the shell of the helper image.
	NodePackages = Packages{"debian.lock", "the base image of kind's nodes", []string{
		"?essential",
		"systemd",
		"conntrack", "e2fsprogs", "ethtool", "iproute2", "iptables", "kmod", "libseccomp2", "mount", "nftables", "util-linux",
		"bash", "ca-certificates", "curl", "jq", "procps",
		"busybox-static",
	}}
	// TestPackages have what upstream's end-to-end tests call in their images.
	TestPackages = Packages{"e2e.lock", "images of upstream's end-to-end tests", []string{
		"base-files",
		"bash", "bind9-dnsutils", "busybox-static", "curl", "iproute2", "libc-bin", "netcat-openbsd", "socat", "util-linux",
	}}
	// TrialPackages are what nodes have neither of kind's base image nor of the one made
	// here, and what gates need that act on it: a bus for logind, and CRIU. Tests install
	// them in a running node, as its owner would.
	TrialPackages = Packages{"trials.lock", "trials of gates in nodes", []string{"criu", "dbus"}}
)

// architectures are those of images.
var architectures = []string{"amd64", "arm64"}

// LockFile returns the lock file of a checkout.
func (p Packages) LockFile(root string) string { return filepath.Join(root, "build", "kind", p.name) }

const lockHeader = `# Debian's packages in %s: the architecture of images,
# name, version, the package's architecture and its SHA-256. Suite: ` + rootfs.Suite + `.
# From the time of the line "snapshot" on, snapshot.debian.org has them for ever.
# Written by "make update-kind-lock".
`

// WriteLock writes the lock file with Debian's newest packages.
func (p Packages) WriteLock(ctx context.Context, root string, apt rootfs.Apt) error {
	text, err := rootfs.LockText(ctx, apt, fmt.Sprintf(lockHeader, p.purpose), architectures, func(a rootfs.Apt, ctx context.Context) ([]rootfs.Package, error) {
		return a.Closure(ctx, p.wanted...)
	})
	if err != nil {
		return err
	}
	return archive.WriteData(p.LockFile(root), []byte(text))
}

// read returns the locked packages for an architecture.
func (p Packages) read(root, arch string) (rootfs.Lock, error) {
	file := p.LockFile(root)
	f, err := os.Open(file)
	if err != nil {
		return rootfs.Lock{}, err
	}
	defer f.Close()
	lock, err := rootfs.ParseLock(f, arch)
	if err != nil {
		return lock, fmt.Errorf("%s: %w", file, err)
	}
	if len(lock.Packages) == 0 {
		return lock, fmt.Errorf("%s has no packages for %s, there are some for %s", file, arch, strings.Join(architectures, " and "))
	}
	return lock, nil
}

// Fetch returns the files of the locked packages, of all or of some names, which it
// fetches where they are not there.
func (p Packages) Fetch(ctx context.Context, root string, apt rootfs.Apt, names ...string) ([]string, error) {
	lock, err := p.read(root, apt.Arch)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		lock.Packages = slices.DeleteFunc(lock.Packages, func(p rootfs.Package) bool { return !slices.Contains(names, p.Name) })
	}
	apt.Renew = "update-kind-lock"
	return apt.Fetch(ctx, lock)
}

// libc is the package of the C library.
const libc = "libc6"

// CheckLibc returns an error when a program of nodes needs a newer C library than that of
// the locked packages: it would not start there.
func CheckLibc(root string, b programs.Builder) error {
	lock, err := NodePackages.read(root, b.Arch)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lock.Packages, func(p rootfs.Package) bool { return p.Name == libc })
	if i < 0 {
		return fmt.Errorf("%s has no %s: run \"make update-kind-lock\"", NodePackages.LockFile(root), libc)
	}
	for _, at := range slices.Sorted(maps.Keys(programs.Node)) {
		if err := programs.RunsWith(b.File(programs.Node[at]), lock.Packages[i].Version); err != nil {
			return fmt.Errorf("%w: run this on a machine whose C library is older (\"ldd --version\"), or have a newer suite in build/release/rootfs and run \"make update-kind-lock\"", err)
		}
	}
	return nil
}
