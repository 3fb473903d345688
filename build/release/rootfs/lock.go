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
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/kubernetes-features/build/release/targets"
)

// Package is a Debian package of exactly one content.
type Package struct {
	// For is the architecture of images that it is for, as the go command names
	// it.
	For string
	// Name, Version and Arch are Debian's. Arch is "all" for packages without
	// machine code.
	Name, Version, Arch string
	// SHA256 is the hash of the .deb file in hexadecimal digits.
	SHA256 string
}

// String returns the package's line in the lock file.
func (p Package) String() string {
	return strings.Join([]string{p.For, p.Name, p.Version, p.Arch, p.SHA256}, " ")
}

// File is the name of the package in the cache. It contains the hash, so that a
// cache may serve many lock files.
func (p Package) File() string { return p.Name + "_" + p.SHA256 + ".deb" }

// Debian's names for the architectures that images exist for, and the folders
// in which their libraries are.
var architectures = map[string]struct{ debian, triplet string }{
	"amd64":   {"amd64", "x86_64-linux-gnu"},
	"arm64":   {"arm64", "aarch64-linux-gnu"},
	"ppc64le": {"ppc64el", "powerpc64le-linux-gnu"},
	"s390x":   {"s390x", "s390x-linux-gnu"},
}

// Names are the packages of the lock file. kmod opens the three libraries of
// compression by name, therefore they are not among its dependencies: modules
// of Debian are compressed by xz, those of Ubuntu by zstd.
func Names() []string {
	return []string{
		"base-files", "ca-certificates", "netbase",
		"conntrack", "ipset", "iptables", "kmod", "nftables",
		"libbsd0", "libc6", "libedit2", "libgmp10", "libip4tc2", "libip6tc2", "libipset13t64",
		"libjansson4", "libkmod2", "liblzma5", "libmd0", "libmnl0", "libnetfilter-conntrack3",
		"libnfnetlink0", "libnftables1", "libnftnl11", "libssl3t64", "libtinfo6", "libxtables12",
		"libzstd1", "zlib1g",
	}
}

var sha256Digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Lock is what the lock file has for one architecture.
type Lock struct {
	// Snapshot is a time in the form SnapshotTime at which snapshot.debian.org has
	// all packages.
	Snapshot string
	// Packages are those of Names.
	Packages []Package
}

// SnapshotTime is the form of times in addresses of snapshot.debian.org.
const SnapshotTime = "20060102T150405Z"

// ReadLock returns the packages for arch, all of Names.
func ReadLock(r io.Reader, arch string) (Lock, error) {
	lock, err := ParseLock(r, arch)
	if err != nil {
		return lock, err
	}
	for _, name := range Names() {
		if !slices.ContainsFunc(lock.Packages, func(p Package) bool { return p.Name == name }) {
			err := fmt.Errorf("the lock file has no package %s for %s", name, arch)
			if slices.Contains(targets.ImageArchitectures(), arch) {
				err = fmt.Errorf("%w; rewrite it with \"make update-release-lock\"", err)
			}
			return lock, err
		}
	}
	return lock, nil
}

// ParseLock returns the packages for arch, whichever they are. Lines that are
// empty or begin with "#" are comments.
func ParseLock(r io.Reader, arch string) (Lock, error) {
	var lock Lock
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == "snapshot" {
			if _, err := time.Parse(SnapshotTime, f[1]); err != nil {
				return lock, fmt.Errorf("line %d of the lock file has no time of a snapshot: %w", n, err)
			}
			lock.Snapshot = f[1]
			continue
		}
		if len(f) != 5 || !sha256Digits.MatchString(f[4]) {
			return lock, fmt.Errorf("line %d of the lock file is not \"for name version arch sha256\": %q", n, line)
		}
		if f[0] == arch {
			lock.Packages = append(lock.Packages, Package{For: f[0], Name: f[1], Version: f[2], Arch: f[3], SHA256: f[4]})
		}
	}
	if err := lines.Err(); err != nil {
		return lock, err
	}
	if lock.Snapshot == "" {
		return lock, fmt.Errorf("the lock file has no line \"snapshot\"; rewrite it with \"make update-release-lock\"")
	}
	return lock, nil
}

// lockHeader is what a reader of the lock file needs to know.
const lockHeader = `# Debian's packages below the binaries of images: the architecture of images,
# name, version, the package's architecture and its SHA-256. Suite: ` + Suite + `.
# From the time of the line "snapshot" on, snapshot.debian.org has them for ever.
# Written by "make update-release-lock".
`

// snapshotDelay is the time that snapshot.debian.org, which looks four times a day,
// takes to have what mirrors have.
const snapshotDelay = 6 * time.Hour

// NewLock returns the text of a lock file with the newest versions of Names for
// targets.ImageArchitectures. Apt's Arch does not matter.
func NewLock(ctx context.Context, apt Apt) (string, error) {
	return LockText(ctx, apt, lockHeader, targets.ImageArchitectures(), Apt.Newest)
}

// LockText returns the text of a lock file with what list returns for each
// architecture. Apt's Arch does not matter.
func LockText(ctx context.Context, apt Apt, header string, architectures []string, list func(Apt, context.Context) ([]Package, error)) (string, error) {
	var lines strings.Builder
	lines.WriteString(header)
	fmt.Fprintln(&lines, "snapshot", time.Now().Add(snapshotDelay).UTC().Format(SnapshotTime))
	for _, arch := range architectures {
		apt.Arch = arch
		packages, err := list(apt, ctx)
		if err != nil {
			return "", err
		}
		for _, p := range packages {
			fmt.Fprintln(&lines, p)
		}
	}
	return lines.String(), nil
}
