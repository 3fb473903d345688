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
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/kubernetes-features/hack/release/archive"
)

// Suite is the release of Debian that packages are taken from. Upstream's
// distroless-iptables has the same one.
const Suite = "trixie"

// keyring holds the keys that Debian signs its lists with.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Apt fetches packages by apt-get with a configuration of its own: what is
// installed on this machine, and what it is, does not matter. It is not safe
// for concurrent use in one Dir.
type Apt struct {
	// Dir holds lists and packages; it is made when it does not exist.
	Dir string
	// Arch is the architecture as the go command names it.
	Arch string
	// Mirror and SecurityMirror are URLs, by default those of deb.debian.org. A
	// snapshot.debian.org URL has versions that other mirrors do not have any
	// more.
	Mirror, SecurityMirror string
}

// Fetch returns the files of packages in their order, downloading those that
// Dir does not have. A file with another hash is an error.
func (a Apt) Fetch(ctx context.Context, packages []Package) ([]string, error) {
	files := make([]string, len(packages))
	var missing []Package
	for i, p := range packages {
		files[i] = filepath.Join(a.Dir, p.File())
		if _, err := os.Stat(files[i]); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return files, nil
	}
	if err := a.update(ctx); err != nil {
		return nil, err
	}
	return files, a.download(ctx, missing)
}

// download puts packages into Dir under their names, once their hashes are
// right.
func (a Apt) download(ctx context.Context, packages []Package) (err error) {
	dir, err := os.MkdirTemp(a.Dir, "download-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{"download"}
	for _, p := range packages {
		args = append(args, p.Name+"="+p.Version)
	}
	if _, err := a.run(ctx, dir, "apt-get", args...); err != nil {
		return fmt.Errorf("cannot fetch Debian's packages for %s; if mirrors have newer ones only, set DEBIAN_MIRROR to a folder of snapshot.debian.org or run \"make update-release-lock\": %w",
			a.Arch, err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	bySum := map[string]string{}
	for _, file := range found {
		sum, err := archive.Sum(file, sha256.New())
		if err != nil {
			return err
		}
		bySum[sum] = file
	}
	for _, p := range packages {
		file, ok := bySum[p.SHA256]
		if !ok {
			return fmt.Errorf("what was fetched as Debian's %s %s for %s does not have the SHA-256 %s of the lock file: do not use it", p.Name, p.Version, p.For, p.SHA256)
		}
		if err := os.Rename(file, filepath.Join(a.Dir, p.File())); err != nil {
			return err
		}
	}
	return nil
}

// uri is a line of apt-get download --print-uris.
var uri = regexp.MustCompile(`'[^']+' (\S+)_(\S+)_(\S+)\.deb [0-9]+ SHA256:([0-9a-f]{64})`)

// Lock returns the newest versions of Names, for a new lock file.
func (a Apt) Lock(ctx context.Context) ([]Package, error) {
	if err := os.RemoveAll(filepath.Join(a.Dir, "state-"+a.Arch)); err != nil {
		return nil, err
	}
	if err := a.update(ctx); err != nil {
		return nil, err
	}
	out, err := a.run(ctx, a.Dir, "apt-get", append([]string{"download", "--print-uris"}, Names()...)...)
	if err != nil {
		return nil, err
	}
	var packages []Package
	for _, m := range uri.FindAllStringSubmatch(out, -1) {
		version, err := url.PathUnescape(m[2])
		if err != nil {
			return nil, err
		}
		packages = append(packages, Package{For: a.Arch, Name: m[1], Version: version, Arch: m[3], SHA256: m[4]})
	}
	if len(packages) != len(Names()) {
		return nil, fmt.Errorf("apt-get names %d packages for %s, want the %d of Names: %q", len(packages), a.Arch, len(Names()), out)
	}
	return packages, nil
}

// update fetches the lists that apt-get finds packages with.
func (a Apt) update(ctx context.Context) error {
	arch, ok := architectures[a.Arch]
	if !ok {
		return fmt.Errorf("there are no images for the architecture %s", a.Arch)
	}
	for _, dir := range []string{a.state() + "/lists/partial", a.state() + "/cache/archives/partial"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	var sources strings.Builder
	for _, s := range []struct{ mirror, suite string }{
		{cmp.Or(a.Mirror, "http://deb.debian.org/debian"), Suite},
		{cmp.Or(a.SecurityMirror, "http://deb.debian.org/debian-security"), Suite + "-security"},
	} {
		fmt.Fprintf(&sources, "deb [arch=%s signed-by=%s] %s %s main\n", arch.debian, keyring, s.mirror, s.suite)
	}
	if err := os.WriteFile(a.state()+"/sources.list", []byte(sources.String()), 0o644); err != nil {
		return err
	}
	if _, err := a.run(ctx, a.Dir, "apt-get", "--quiet", "update"); err != nil {
		return fmt.Errorf("cannot fetch Debian's lists: %w", err)
	}
	return nil
}

func (a Apt) state() string { return filepath.Join(a.Dir, "state-"+a.Arch) }

func (a Apt) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	state, err := filepath.Abs(a.state())
	if err != nil {
		return "", err
	}
	arch := architectures[a.Arch].debian
	options := []string{
		"-o", "Dir::State=" + state, "-o", "Dir::Cache=" + state + "/cache", "-o", "Dir::State::status=/dev/null",
		"-o", "Dir::Etc::SourceList=" + state + "/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null",
		"-o", "APT::Architecture=" + arch, "-o", "APT::Architectures::=" + arch,
		"-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none",
		// Old lists of a snapshot are what is wanted.
		"-o", "Acquire::Check-Valid-Until=false",
	}
	cmd := exec.CommandContext(ctx, name, append(options, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
