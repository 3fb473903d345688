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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/targets"
)

// inPlace is what a release that is there was made of and with.
type inPlace struct {
	// commit is as build.Source's String.
	commit    string
	version   targets.Version
	platforms []string
	// source is the address in the labels of images, or else in the manifest of the plugin;
	// empty without both, too.
	source string
	// download is the address of archives in the manifest of the plugin; empty without
	// one, too.
	download string
	// created stands for the time of the build, and goVersion built it.
	created   time.Time
	goVersion string
}

// readInPlace reads it from the release below out.
func readInPlace(out string) (inPlace, error) {
	tars := filepath.Join(out, tarsFolder)
	content, err := os.ReadFile(filepath.Join(tars, billFile))
	if err != nil {
		return inPlace{}, fmt.Errorf("there is no release in %s; run \"make quick-release\" first: %w", tars, err)
	}
	var bill struct {
		CreationInfo struct {
			Creators []string
			Created  time.Time
		}
		Packages []struct{ Name, VersionInfo, SourceInfo string }
	}
	if err := json.Unmarshal(content, &bill); err != nil {
		return inPlace{}, fmt.Errorf("cannot read %s: %w", billFile, err)
	}
	r := inPlace{created: bill.CreationInfo.Created}
	for _, p := range bill.Packages {
		if p.Name == "kubernetes" {
			r.commit, r.version = strings.TrimPrefix(p.SourceInfo, "commit "), targets.Version(p.VersionInfo)
		}
	}
	for _, creator := range bill.CreationInfo.Creators {
		if v, ok := strings.CutPrefix(creator, "Tool: go"); ok {
			r.goVersion = "go" + v
		}
	}
	if r.source, r.download, err = addresses(filepath.Join(tars, manifestFile)); err != nil {
		return r, err
	}
	arch := ""
	for _, p := range targets.Platforms() {
		// Clients are made for every platform.
		if exists(filepath.Join(tars, archiveName(targets.Client, p))) {
			r.platforms = append(r.platforms, p.String())
		}
		if exists(filepath.Join(tars, archiveName(targets.Server, p))) {
			arch = p.Arch
		}
	}
	if arch != "" {
		r.source, err = sourceLabel(filepath.Join(out, imagesFolder, arch, targets.Images()[0].Name+".tar"))
	}
	return r, err
}

// sourceLabel reads the address of the repository from an image.
func sourceLabel(file string) (string, error) {
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return "", fmt.Errorf("cannot read the address in the labels of an image: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return "", err
	}
	return config.Config.Labels[image.SourceLabel], nil
}

// verifyRelease makes the release in f.output again from a clone in another folder,
// with an empty build cache and other surroundings, and compares the hashes.
func verifyRelease(ctx context.Context, f flags) (err error) {
	release, err := readInPlace(f.output)
	if err != nil {
		return err
	}
	head, err := build.Describe(ctx, f.root)
	if err != nil {
		return err
	}
	if head.Dirty {
		return fmt.Errorf("the tree differs from its commit: commit first, then run \"make quick-release\"")
	}
	if release.commit != head.Commit {
		return fmt.Errorf("the release is of %s, HEAD is %s: run \"make quick-release\" first", release.commit, head.Commit)
	}
	used, err := build.FindGo(ctx, f.root, f.hostGo)
	if err != nil {
		return err
	}
	if used.Version != release.goVersion {
		return fmt.Errorf("the release was built with %s, and would now be with %s: run \"make quick-release\" first, or set FORCE_HOST_GO as it was", release.goVersion, used.Version)
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	elsewhere := filepath.Join(dir, "elsewhere")
	if out, err := exec.CommandContext(ctx, "git", "clone", "--quiet", f.root, elsewhere).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot clone %s: %w: %s", f.root, err, out)
	}
	cmd, err := release.again(ctx, f, elsewhere, dir)
	if err != nil {
		return err
	}
	fmt.Printf("Making the release %s for %s again in %s\n", release.version, strings.Join(release.platforms, " "), elsewhere)
	mask := syscall.Umask(0o077)
	err = cmd.Run()
	syscall.Umask(mask)
	if err != nil {
		return fmt.Errorf("the release cannot be made again: %w", err)
	}
	if err := sameSums(filepath.Join(f.output, tarsFolder), filepath.Join(elsewhere, "_output", tarsFolder)); err != nil {
		return err
	}
	fmt.Println("Both releases are equal")
	return nil
}

// again is the command that makes the release of the clone, with caches and a home
// below dir.
func (r inPlace) again(ctx context.Context, f flags, clone, dir string) (*exec.Cmd, error) {
	ask := exec.CommandContext(ctx, "go", "env", "GOENV", "GOMODCACHE")
	ask.Dir = f.root
	said, err := ask.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the go command for its settings: %w", err)
	}
	settings := strings.Split(string(said), "\n")
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return nil, err
	}
	host := ""
	if f.hostGo {
		host = "y"
	}
	cmd := exec.CommandContext(ctx, "make", "quick-release", "OUT=_output", "VERSION="+string(r.version),
		"KUBE_BUILD_PLATFORMS="+strings.Join(r.platforms, " "), "SOURCE_URL="+r.source, "DOWNLOAD_URL="+r.download, "FORCE_HOST_GO="+host,
		"DEBIAN_MIRROR="+f.apt.Mirror, "DEBIAN_SECURITY_MIRROR="+f.apt.SecurityMirror)
	cmd.Dir = clone
	// Flags and variables of the make that runs this are for it alone.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}, name)
	})
	cmd.Env = append(cmd.Env, "GOENV="+settings[0], "GOMODCACHE="+settings[1], "GOCACHE="+filepath.Join(dir, "cache"), "GOMAXPROCS=1",
		"HOME="+home, "TZ=Pacific/Auckland", "LC_ALL=C", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.created.Unix()))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd, nil
}

// sameSums compares the hashes of two releases and names the files that differ.
func sameSums(one, two string) error {
	var lines [2][]string
	for i, dir := range []string{one, two} {
		content, err := os.ReadFile(filepath.Join(dir, archive.SHA256Sums))
		if err != nil {
			return err
		}
		lines[i] = strings.Split(strings.TrimSpace(string(content)), "\n")
	}
	var differ []string
	for i, list := range lines {
		for _, line := range list {
			if fields := strings.Fields(line); len(fields) == 2 && !slices.Contains(lines[1-i], line) {
				differ = append(differ, fields[1])
			}
		}
	}
	if len(differ) == 0 {
		return nil
	}
	slices.Sort(differ)
	return fmt.Errorf("the releases differ in %s", strings.Join(slices.Compact(differ), ", "))
}
