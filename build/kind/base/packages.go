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

// wanted are the packages of the base image, beside which it has those that they
// depend on: what services run in, what components of Kubernetes and kind's own
// scripts call, and the shell of the helper image.
var wanted = []string{
	"?essential",
	"systemd",
	"conntrack", "e2fsprogs", "ethtool", "iproute2", "iptables", "kmod", "libseccomp2", "mount", "nftables", "util-linux",
	"bash", "ca-certificates", "curl", "jq", "procps",
	"busybox-static",
}

// architectures are those of base images.
var architectures = []string{"amd64", "arm64"}

// LockFile returns the lock file of a checkout.
func LockFile(root string) string { return filepath.Join(root, "build", "kind", "debian.lock") }

const lockHeader = `# Debian's packages in the base image of kind's nodes: the architecture of images,
# name, version, the package's architecture and its SHA-256. Suite: ` + rootfs.Suite + `.
# From the time of the line "snapshot" on, snapshot.debian.org has them for ever.
# Written by "make update-kind-lock".
`

// WriteLock writes the lock file with Debian's newest packages.
func WriteLock(ctx context.Context, root string, apt rootfs.Apt) error {
	text, err := rootfs.LockText(ctx, apt, lockHeader, architectures, func(a rootfs.Apt, ctx context.Context) ([]rootfs.Package, error) {
		return a.Closure(ctx, wanted...)
	})
	if err != nil {
		return err
	}
	return archive.WriteData(LockFile(root), []byte(text))
}

// readLock returns the locked packages for an architecture.
func readLock(root, arch string) (rootfs.Lock, error) {
	f, err := os.Open(LockFile(root))
	if err != nil {
		return rootfs.Lock{}, err
	}
	defer f.Close()
	lock, err := rootfs.ParseLock(f, arch)
	if err != nil {
		return lock, fmt.Errorf("%s: %w", LockFile(root), err)
	}
	if len(lock.Packages) == 0 {
		return lock, fmt.Errorf("%s has no packages for %s, there are base images for %s", LockFile(root), arch, strings.Join(architectures, " and "))
	}
	return lock, nil
}

// Fetch returns the files of the locked packages, which it fetches where they are
// not there.
func Fetch(ctx context.Context, root string, apt rootfs.Apt) ([]string, error) {
	lock, err := readLock(root, apt.Arch)
	if err != nil {
		return nil, err
	}
	apt.Renew = "update-kind-lock"
	return apt.Fetch(ctx, lock)
}

// libc is the package of the C library.
const libc = "libc6"

// CheckLibc returns an error when a program of nodes needs a newer C library than that of
// the locked packages: it would not start there.
func CheckLibc(root string, b programs.Builder) error {
	lock, err := readLock(root, b.Arch)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(lock.Packages, func(p rootfs.Package) bool { return p.Name == libc })
	if i < 0 {
		return fmt.Errorf("%s has no %s: run \"make update-kind-lock\"", LockFile(root), libc)
	}
	for _, at := range slices.Sorted(maps.Keys(programs.Node)) {
		if err := programs.RunsWith(b.File(programs.Node[at]), lock.Packages[i].Version); err != nil {
			return fmt.Errorf("%w: run this on a machine whose C library is older (\"ldd --version\"), or have a newer suite in build/release/rootfs and run \"make update-kind-lock\"", err)
		}
	}
	return nil
}
