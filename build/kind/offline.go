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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/kubernetes-features/build/kind/base"
	"k8s.io/kubernetes-features/build/kind/e2e"
	"k8s.io/kubernetes-features/build/kind/host"
	"k8s.io/kubernetes-features/build/kind/programs"
	"k8s.io/kubernetes-features/build/kind/upstream"
	"k8s.io/kubernetes-features/build/release/archive"
)

// made is what fetch has made, for a run without any network.
type made struct {
	// Base is the name of the base image, empty where kind pulls it.
	Base string
	// Kind is the directory of kind's module.
	Kind string
	// Debs are files of Debian's packages.
	Debs []string
	// Node are the archives of images of nodes, Host the images of Docker's daemon.
	Node []string
	Host []base.StandIn
	// Previous is the server archive of the minor version before, and Same upstream's
	// of the version that ships; they are empty if they were not asked for.
	Previous, Same string
	// OwnImages are archives of base.OwnImages, and Trials files of base.TrialPackages,
	// if they were asked for.
	OwnImages, Trials []string
	// TestImages are archives of images that upstream's tests run, and NoImages the
	// names of those that are not made. Both are empty where nodes can pull them.
	TestImages, NoImages []string
}

func (o options) record() string { return filepath.Join(o.dir, "made.json") }

// fetch makes all that kind would pull, unless it can pull it.
func (o options) fetch(ctx context.Context) error {
	if o.release == "" || o.kind == "" {
		return errors.New("fetch needs -release, a server archive, and -kind, the directory of kind's module")
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	offline, err := o.isOffline(ctx)
	if err != nil {
		return err
	}
	var m made
	if o.previous {
		if m.Previous, err = o.pack(ctx, upstream.Previous, "previous"); err != nil {
			return err
		}
	}
	if o.own {
		if m.OwnImages, err = o.makeOwn(ctx); err != nil {
			return err
		}
		if m.Trials, err = base.TrialPackages.Fetch(ctx, o.root, o.apt); err != nil {
			return err
		}
	}
	if o.e2e {
		if err := o.makeTests(ctx, offline, &m); err != nil {
			return err
		}
	}
	if offline {
		if err := o.make(ctx, &m); err != nil {
			return err
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return archive.WriteData(o.record(), content)
}

// registry is where kind would pull from.
const registry = "https://registry.k8s.io/v2/"

// registryTimeout is how long a registry may take to answer.
const registryTimeout = 10 * time.Second

// isOffline returns true where kind cannot pull. Whatever was asked for, it fails first
// where no daemon can run the nodes, or not those of tests: all the rest takes most of an
// hour to build.
func (o options) isOffline(ctx context.Context) (bool, error) {
	if !slices.Contains([]string{"yes", "no", "auto"}, o.offline) {
		return false, fmt.Errorf("-offline=%s is none of yes, no and auto", o.offline)
	}
	if o.offline == "no" && !o.previous && !o.own && !o.e2e {
		// Nothing is built.
		return false, nil
	}
	if err := o.builder().Build(ctx, programs.Runtime); err != nil {
		return false, err
	}
	why, err := host.WhyOwn(ctx, o.builder().File(programs.Runtime))
	if tests := o.own || o.e2e; err == nil && why == "" && tests {
		err = host.CheckLocal(ctx)
	}
	if err != nil || o.offline != "auto" {
		return o.offline == "yes", err
	}
	if why == "" {
		why = unreachable(ctx)
	}
	if why != "" {
		log("Making what kind would pull: %s", why)
	}
	return why != "", ctx.Err()
}

// unreachable returns why no image can be pulled, "" where they can.
func unreachable(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, registry, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return registry + ": " + resp.Status
	}
	return ""
}

// make makes what kind would pull.
func (o options) make(ctx context.Context, m *made) error {
	kind := base.Kind(o.kind)
	m.Kind = o.kind
	name, err := kind.Image()
	if err != nil {
		return err
	}
	// Not under kind's own name: it is another image.
	m.Base = "localhost/" + path.Base(name)
	if m.Debs, err = base.NodePackages.Fetch(ctx, o.root, o.apt); err != nil {
		return err
	}
	if err := o.builder().Build(ctx, slices.Collect(maps.Values(programs.Node))...); err != nil {
		return err
	}
	if err := base.CheckLibc(o.root, o.builder()); err != nil {
		return err
	}
	busybox, err := o.busybox(ctx, m.Debs)
	if err != nil {
		return err
	}
	node, err := o.images(ctx, kind, m.Previous)
	if err != nil {
		return err
	}
	balancer, err := kind.Balancer()
	if err != nil {
		return err
	}
	dir := filepath.Join(o.dir, "images")
	for _, name := range node {
		m.Node = append(m.Node, base.ImageFile(dir, name))
	}
	m.Host = []base.StandIn{{Name: balancer, File: base.ImageFile(dir, balancer)}}
	return base.WriteImages(ctx, dir, o.builder(), busybox, append(node, balancer))
}

// makeOwn makes images of this repository's own, also where kind's can be pulled.
func (o options) makeOwn(ctx context.Context) ([]string, error) {
	debs, err := base.NodePackages.Fetch(ctx, o.root, o.apt, busyboxPackage)
	if err != nil {
		return nil, err
	}
	busybox, err := o.busybox(ctx, debs)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.dir, "images")
	var files []string
	for _, name := range base.OwnImages {
		files = append(files, base.ImageFile(dir, name))
	}
	return files, base.WriteImages(ctx, dir, o.builder(), busybox, base.OwnImages)
}

// pack makes the server archive of an unchanged version, unless it is there of the same
// inputs.
func (o options) pack(ctx context.Context, source upstream.Source, name string) (string, error) {
	version, err := source.Version(o.root)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(o.dir, name)
	file := filepath.Join(dir, fmt.Sprintf("kubernetes-server-%s-linux-%s.tar.gz", version, runtime.GOARCH))
	b := o.builder()
	b.Dir = filepath.Join(dir, "programs")
	r := upstream.Release{Source: source, Programs: b, Apt: o.apt, Dir: filepath.Join(dir, "images")}
	from, err := r.Stamp(ctx, version)
	if err != nil {
		return "", err
	}
	stamp := file + ".from"
	if was, err := os.ReadFile(stamp); err == nil && string(was) == from {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	log("Building upstream's %s", version)
	if err := r.Pack(ctx, version, file); err != nil {
		return "", err
	}
	return file, archive.WriteData(stamp, []byte(from))
}

// makeTests makes upstream's tests and the cluster to compare with. Where images
// cannot be pulled, it makes those that the tests of this build ask for.
func (o options) makeTests(ctx context.Context, offline bool, m *made) (err error) {
	if m.Same, err = o.pack(ctx, upstream.Same, "same"); err != nil {
		return err
	}
	version, err := upstream.Same.Version(o.root)
	if err != nil {
		return err
	}
	tests := programs.E2E
	tests.Flags = upstream.VersionFlags(version)
	if err := o.builder().Build(ctx, tests, programs.Ginkgo); err != nil {
		return err
	}
	if !offline {
		return nil
	}
	out, err := exec.CommandContext(ctx, o.builder().File(tests), "--list-images").Output()
	if err != nil {
		return fmt.Errorf("asking upstream's tests for their images: %w", err)
	}
	names := strings.Fields(string(out))
	slices.Sort(names)
	debs, err := base.TestPackages.Fetch(ctx, o.root, o.apt)
	if err != nil {
		return err
	}
	b := e2e.Builder{Programs: o.builder(), Dir: filepath.Join(o.dir, "images"), Debs: debs}
	m.TestImages, m.NoImages, err = b.Images(ctx, slices.Compact(names))
	return err
}

// busyboxPackage is Debian's package of a static busybox.
const busyboxPackage = "busybox-static"

// busybox unpacks Debian's static one.
func (o options) busybox(ctx context.Context, debs []string) (string, error) {
	i := slices.IndexFunc(debs, func(file string) bool { return strings.HasPrefix(filepath.Base(file), busyboxPackage+"_") })
	if i < 0 {
		return "", fmt.Errorf("%s has no %s: run \"make update-kind-lock\"", base.NodePackages.LockFile(o.root), busyboxPackage)
	}
	dir := filepath.Join(o.dir, "busybox")
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", debs[i], dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot unpack %s by dpkg-deb (Debian's package dpkg): %w: %s", debs[i], err, out)
	}
	return filepath.Join(dir, "usr", "bin", "busybox"), nil
}

// images returns the names of images that kind loads into node images and which
// releases do not have.
func (o options) images(ctx context.Context, kind base.Kind, previous string) ([]string, error) {
	names, err := kind.InNode()
	if err != nil {
		return nil, err
	}
	for _, release := range []string{o.release, previous} {
		if release == "" {
			continue
		}
		listed, err := o.listed(ctx, release)
		if err != nil {
			return nil, fmt.Errorf("cannot list the images of the release %s: %w", release, err)
		}
		names = append(names, listed...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// inside is the command that run starts where the daemon is.
const inside = "inside"

// read returns what fetch has made.
func (o options) read() (m made, err error) {
	content, err := os.ReadFile(o.record())
	if err != nil {
		return m, fmt.Errorf("what kind needs is not there, run \"kind-build fetch\" first: %w", err)
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return m, fmt.Errorf("%s: %w; run \"kind-build fetch\" again", o.record(), err)
	}
	return m, nil
}

// inside brings into the daemon what fetch has made and runs the command with
// KIND_BASE, the base image.
func (o options) inside(ctx context.Context) error {
	m, err := o.read()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, o.args[0], o.args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KIND_PREVIOUS_RELEASE="+m.Previous, "KIND_SAME_RELEASE="+m.Same,
		"KIND_OWN_IMAGES="+strings.Join(m.OwnImages, ","), "KIND_TRIAL_PACKAGES="+strings.Join(m.Trials, ","),
		"KIND_TEST_IMAGES="+strings.Join(m.TestImages, ","), "KIND_NO_IMAGES="+strings.Join(m.NoImages, ","))
	end := os.Interrupt
	if host.HasTerminal(os.Stdin) {
		// A shell with a terminal ignores all others.
		end = syscall.SIGHUP
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(end) }
	if m.Base == "" {
		return host.CommandError(cmd.Run())
	}
	cmd.Env = append(cmd.Env, "KIND_BASE="+m.Base)
	missing, err := host.Withheld(ctx, os.Environ(), o.builder().File(programs.Runtime))
	if err != nil {
		return err
	}
	b := base.Base{
		Name: m.Base, Debs: m.Debs, Kind: base.Kind(m.Kind), Programs: o.builder(), Images: m.Node,
		RestrictOOMScore: slices.Contains(missing, "CAP_SYS_RESOURCE"), Log: log,
	}
	if err := b.Make(ctx); err != nil {
		return err
	}
	for _, image := range m.Host {
		if err := image.Load(ctx); err != nil {
			return err
		}
	}
	return host.CommandError(cmd.Run())
}
