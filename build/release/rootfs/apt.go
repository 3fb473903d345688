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
	"slices"
	"strings"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/flock"
)

// Suite is the release of Debian that packages are taken from, and Distro how
// addresses of packages (purl) call it. Upstream's distroless-iptables has the
// same one.
const (
	Suite  = "trixie"
	Distro = "debian-13"
)

// keyring holds the keys that Debian signs its lists with.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Apt fetches packages by apt-get with a configuration of its own: the machine and
// its packages do not matter. Users of one Dir, in this process or another, wait
// for each other.
type Apt struct {
	// Dir holds lists and packages; it is made when it does not exist.
	Dir string
	// Arch is the architecture as the go command names it.
	Arch string
	// Mirror and SecurityMirror are URLs, by default those of deb.debian.org.
	Mirror, SecurityMirror string
	// Snapshot is the URL of an archive of all versions, snapshot.debian.org by
	// default. It is asked for what the mirrors do not have any more.
	Snapshot string
	// Renew is the target of make that writes a new lock file, "update-release-lock"
	// by default, for messages.
	Renew string
}

// The addresses that are asked by default.
const (
	defaultMirror         = "http://deb.debian.org/debian"
	defaultSecurityMirror = "http://deb.debian.org/debian-security"
	defaultSnapshot       = "http://snapshot.debian.org"
)

// Fetch returns the files of the packages in their order, downloading those that
// Dir does not have with the hash of the lock file: from the mirrors, or else from
// the snapshot.
func (a Apt) Fetch(ctx context.Context, lock Lock) (files []string, err error) {
	if _, ok := architectures[a.Arch]; !ok {
		return nil, fmt.Errorf("there are no images for the architecture %s", a.Arch)
	}
	release, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	files = make([]string, len(lock.Packages))
	var missing []Package
	for i, p := range lock.Packages {
		files[i] = filepath.Join(a.Dir, p.File())
		sum, err := archive.Sum(files[i], sha256.New())
		if err == nil && sum == p.SHA256 {
			continue
		}
		if err := os.Remove(files[i]); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		missing = append(missing, p)
	}
	if len(missing) == 0 {
		return files, nil
	}
	err = a.fetch(ctx, missing)
	if err == nil || ctx.Err() != nil {
		return files, err
	}
	snapshot := a
	base := strings.TrimSuffix(cmp.Or(a.Snapshot, defaultSnapshot), "/") + "/archive/"
	snapshot.Mirror, snapshot.SecurityMirror = base+"debian/"+lock.Snapshot, base+"debian-security/"+lock.Snapshot
	if second := snapshot.fetch(ctx, missing); second != nil {
		return nil, fmt.Errorf("cannot fetch Debian's packages for %s; "+
			"\"make %s\" takes those that mirrors have now: %w; nor from %s and %s: %w",
			a.Arch, cmp.Or(a.Renew, "update-release-lock"), err, snapshot.Mirror, snapshot.SecurityMirror, second)
	}
	return files, nil
}

// lock waits until no other user works in Dir.
func (a Apt) lock(ctx context.Context) (release func() error, err error) {
	release, err = flock.Wait(ctx, filepath.Join(a.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot fetch Debian's packages into %s, one at a time: %w", a.Dir, err)
	}
	return release, nil
}

func (a Apt) fetch(ctx context.Context, packages []Package) error {
	if err := a.update(ctx); err != nil {
		return err
	}
	return a.download(ctx, packages)
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
		return err
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

// Newest returns the newest versions of Names, for a new lock file.
func (a Apt) Newest(ctx context.Context) ([]Package, error) {
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	return a.find(ctx, Names())
}

// installed is a line of apt-get install --simulate.
var installed = regexp.MustCompile(`(?m)^Inst (\S+) `)

// Closure returns the newest versions of packages and of all that they depend on.
// Names may be patterns of apt, such as ?essential. What packages only recommend is
// left out.
func (a Apt) Closure(ctx context.Context, names ...string) ([]Package, error) {
	if err := a.refresh(ctx); err != nil {
		return nil, err
	}
	out, err := a.run(ctx, a.Dir, "apt-get", append([]string{"install", "--simulate", "--no-install-recommends"}, names...)...)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range installed.FindAllStringSubmatch(out, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return a.find(ctx, all)
}

// refresh fetches the newest lists.
func (a Apt) refresh(ctx context.Context) (err error) {
	release, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := os.RemoveAll(filepath.Join(a.Dir, "state-"+a.Arch)); err != nil {
		return err
	}
	return a.update(ctx)
}

// find returns the newest versions of packages by the lists. Only "download" prints
// hashes of all of them.
func (a Apt) find(ctx context.Context, names []string) (packages []Package, err error) {
	out, err := a.run(ctx, a.Dir, "apt-get", append([]string{"download", "--print-uris"}, names...)...)
	if err != nil {
		return nil, err
	}
	for _, m := range uri.FindAllStringSubmatch(out, -1) {
		version, err := url.PathUnescape(m[2])
		if err != nil {
			return nil, err
		}
		packages = append(packages, Package{For: a.Arch, Name: m[1], Version: version, Arch: m[3], SHA256: m[4]})
	}
	if len(packages) != len(names) {
		return nil, fmt.Errorf("apt-get names %d packages for %s, want %d: %q", len(packages), a.Arch, len(names), out)
	}
	return packages, nil
}

// update fetches the lists that apt-get finds packages with.
func (a Apt) update(ctx context.Context) error {
	arch, ok := architectures[a.Arch]
	if !ok {
		return fmt.Errorf("there are no images for the architecture %s", a.Arch)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("a release fetches Debian's packages by apt-get (Debian's package apt): %w", err)
	}
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("a release needs the keys of Debian (Debian's package debian-archive-keyring): %w", err)
	}
	for _, dir := range []string{a.state() + "/lists/partial", a.state() + "/cache/archives/partial"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := a.configure(ctx); err != nil {
		return err
	}
	var sources strings.Builder
	for _, s := range []struct{ mirror, suite string }{
		{cmp.Or(a.Mirror, defaultMirror), Suite}, {cmp.Or(a.SecurityMirror, defaultSecurityMirror), Suite + "-security"},
	} {
		fmt.Fprintf(&sources, "deb [arch=%s signed-by=%s] %s %s main\n", arch.debian, keyring, s.mirror, s.suite)
	}
	if err := os.WriteFile(a.state()+"/sources.list", []byte(sources.String()), 0o644); err != nil {
		return err
	}
	// Lists that could not be fetched are an error, too.
	if _, err := a.run(ctx, a.Dir, "apt-get", "--quiet", "--error-on=any", "update"); err != nil {
		return fmt.Errorf("cannot fetch Debian's lists: %w", err)
	}
	return nil
}

func (a Apt) state() string { return filepath.Join(a.Dir, "state-"+a.Arch) }

// configuration is all that apt-get is configured by: it reads the file that
// APT_CONFIG names before any other and by it learns that there is none. So no
// hook of this machine runs, and none of its preferences counts.
const configuration = `Dir::State "%[1]s";
Dir::State::status "/dev/null";
Dir::Cache "%[1]s/cache";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::trusted "/dev/null";
Dir::Etc::trustedparts "/dev/null";
APT::Architecture "%[2]s";
APT::Architectures:: "%[2]s";
APT::Sandbox::User "root";
Acquire::Languages "none";
// Old lists of a snapshot are what is wanted.
Acquire::Check-Valid-Until "false";
Acquire::Retries "3";
`

// ofMachine matches the settings that are taken over: how this machine gets at
// others.
var ofMachine = regexp.MustCompile(`(?i)^Acquire::([^ ]*::)?(Proxy|Proxy-Auto-Detect|ProxyAutoDetect|CaInfo|CaPath|CrlFile|SslCert|SslKey|Verify-Peer|Verify-Host)(::[^ ]*)? "`)

// configure writes the configuration.
func (a Apt) configure(ctx context.Context) error {
	state, err := filepath.Abs(a.state())
	if err != nil {
		return err
	}
	content := fmt.Sprintf(configuration, state, architectures[a.Arch].debian)
	dump, err := exec.CommandContext(ctx, "apt-config", "dump", "Acquire").Output()
	if err != nil {
		return fmt.Errorf("cannot ask apt-config (Debian's package apt) how this machine gets at mirrors: %w", err)
	}
	for line := range strings.Lines(string(dump)) {
		if ofMachine.MatchString(line) {
			content += line
		}
	}
	return os.WriteFile(a.config(), []byte(content), 0o600)
}

func (a Apt) config() string { return filepath.Join(a.state(), "apt.conf") }

func (a Apt) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	config, err := filepath.Abs(a.config())
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C.UTF-8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
