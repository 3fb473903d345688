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

// Fetch returns the files of the locked packages, which it fetches where they are
// not there.
func Fetch(ctx context.Context, root string, apt rootfs.Apt) ([]string, error) {
	f, err := os.Open(LockFile(root))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lock, err := rootfs.ParseLock(f, apt.Arch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", LockFile(root), err)
	}
	if len(lock.Packages) == 0 {
		return nil, fmt.Errorf("%s has no packages for %s, there are base images for %s", LockFile(root), apt.Arch, strings.Join(architectures, " and "))
	}
	apt.Renew = "update-kind-lock"
	return apt.Fetch(ctx, lock)
}
