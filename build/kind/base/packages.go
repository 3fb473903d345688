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
	"os"
	"path/filepath"
	"strings"

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
		"bash", "bind9-dnsutils", "busybox-static", "curl", "iproute2", "netcat-openbsd", "socat", "util-linux",
	}}
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

// Fetch returns the files of the locked packages, which it fetches where they are
// not there.
func (p Packages) Fetch(ctx context.Context, root string, apt rootfs.Apt) ([]string, error) {
	file := p.LockFile(root)
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lock, err := rootfs.ParseLock(f, apt.Arch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(lock.Packages) == 0 {
		return nil, fmt.Errorf("%s has no packages for %s, there are some for %s", file, apt.Arch, strings.Join(architectures, " and "))
	}
	apt.Renew = "update-kind-lock"
	return apt.Fetch(ctx, lock)
}
