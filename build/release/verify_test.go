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
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/sbom"
)

// place writes what a release that is verified needs to have: the bill, hashes and
// the names of archives. It returns the folder that OUT names.
func place(t *testing.T, r sbom.Release, archives ...string) string {
	t.Helper()
	out := t.TempDir()
	tars := filepath.Join(out, tarsFolder)
	if err := os.Mkdir(tars, 0o755); err != nil {
		t.Fatal(err)
	}
	var bill bytes.Buffer
	if err := sbom.Write(&bill, r); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{archive.SHA256Sums: nil, billFile: bill.Bytes()} {
		if err := archive.WriteData(filepath.Join(tars, name), content); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range archives {
		if err := archive.WriteData(filepath.Join(tars, name), nil); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestReadInPlace(t *testing.T) {
	r := made(t)
	got, err := readInPlace(r.out)
	if err != nil {
		t.Fatal(err)
	}
	want := inPlace{
		commit: r.source.String(), version: "v1.36.3+feature.1", platforms: []string{"linux/amd64"}, source: "https://example.com/fork",
		download: "https://example.com/downloads", created: r.source.Time, goVersion: r.source.Go.Version,
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(inPlace{})); diff != "" {
		t.Errorf("a release of linux/amd64 (-want +got):\n%s", diff)
	}
	out := place(t, sbom.Release{Version: "v1.36.3+feature.2", Source: "commit 0123abc, dirty", Go: "go1.26.8", Created: time.Unix(86400, 0)},
		"kubernetes-client-windows-amd64.tar.gz", "kubernetes-node-windows-amd64.tar.gz", "kubernetes-client-linux-arm.tar.gz")
	if got, err = readInPlace(out); err != nil {
		t.Fatal(err)
	}
	want = inPlace{
		commit: "0123abc, dirty", version: "v1.36.3+feature.2", platforms: []string{"linux/arm", "windows/amd64"},
		created: time.Unix(86400, 0).UTC(), goVersion: "go1.26.8",
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(inPlace{})); diff != "" {
		t.Errorf("a release without servers (-want +got):\n%s", diff)
	}
}

// verified runs "release verify" for the release below out with a script in the place
// of make, which gets the hashes of the release in SUMS. It returns what make was asked.
func verified(t *testing.T, root, out, script string, more ...string) (string, error) {
	t.Helper()
	bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	content := fmt.Sprintf("#!/bin/bash\nset -eu\nprintf '%%s\\n' \"$@\" \"MAKEFLAGS=${MAKEFLAGS-none}\" \"SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH\" \"mask $(umask)\" >%q\n"+
		"git rev-parse HEAD >>%q\nmkdir -p _output/release-tars\ncp %q/release-tars/SHA256SUMS _output/release-tars/SHA256SUMS\n%s\n", log, log, out, script)
	if err := os.WriteFile(filepath.Join(bin, "make"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("MAKEFLAGS", "-n -- OUT="+out)
	err := run(t.Context(), append([]string{"verify", "-root", root, "-output", out, "-host-go"}, more...))
	asked, missing := os.ReadFile(log)
	if missing != nil && !os.IsNotExist(missing) {
		t.Fatal(missing)
	}
	return string(asked), err
}

// TestVerify makes a release again as it was made, whatever the defaults are.
func TestVerify(t *testing.T) {
	r := made(t)
	asked, err := verified(t, r.root, r.out, "", "-debian-mirror", "http://mirror/debian")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"quick-release", "OUT=_output", "VERSION=v1.36.3+feature.1", "KUBE_BUILD_PLATFORMS=linux/amd64", "SOURCE_URL=https://example.com/fork", "DOWNLOAD_URL=https://example.com/downloads", "FORCE_HOST_GO=y",
		"DEBIAN_MIRROR=http://mirror/debian", "MAKEFLAGS=none", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.source.Time.Unix()), "mask 0077", r.source.Commit,
	} {
		if !slices.Contains(strings.Split(asked, "\n"), want) {
			t.Errorf("make was not asked for %s, but:\n%s", want, asked)
		}
	}
	for script, want := range map[string]string{
		"sed -i 's/^.\\(.*linux-amd64.*\\)/x\\1/' _output/release-tars/SHA256SUMS": "differ in kubectl-feature-linux-amd64.tar.gz, kubernetes-client-linux-amd64.tar.gz, kubernetes-node-linux-amd64.tar.gz, kubernetes-server-linux-amd64.tar.gz",
		"sed -i /spdx/d _output/release-tars/SHA256SUMS":                           "differ in kubernetes.spdx.json",
		"exit 2": "cannot be made again",
	} {
		if _, err := verified(t, r.root, r.out, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "release-*", "elsewhere"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestVerifyRefuses has releases that are none of the checkout.
func TestVerifyRefuses(t *testing.T) {
	root := copied(t)
	head, err := build.Describe(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if head.Go, err = build.FindGo(t.Context(), root, true); err != nil {
		t.Fatal(err)
	}
	refused := func(r sbom.Release, want string) {
		t.Helper()
		asked, err := verified(t, root, place(t, r), "")
		if err == nil || !strings.Contains(err.Error(), want) || asked != "" {
			t.Errorf("%s of %s: %v, want %q; make was asked %q", r.Source, r.Go, err, want, asked)
		}
	}
	commit := "commit " + head.Commit
	refused(sbom.Release{Source: "commit 0123abc", Go: head.Go.Version}, "the release is of 0123abc, HEAD is "+head.Commit)
	refused(sbom.Release{Source: commit + ", dirty", Go: head.Go.Version}, "the release is of "+head.Commit+", dirty, HEAD is "+head.Commit)
	refused(sbom.Release{Source: commit, Go: other}, "the release was built with "+other+", and would now be with "+head.Go.Version)
	if err := os.WriteFile(filepath.Join(root, "new.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(sbom.Release{Source: commit, Go: head.Go.Version}, "the tree differs from its commit")
	if err := verifyRelease(context.WithoutCancel(t.Context()), flags{root: root, output: t.TempDir()}); err == nil || !strings.Contains(err.Error(), `run "make quick-release" first`) {
		t.Errorf("without a release: %v", err)
	}
}

// TestChecksWithoutARelease runs the targets that look at a release where there is
// none, and where there is one of another commit.
func TestChecksWithoutARelease(t *testing.T) {
	root, out := checkout(t), t.TempDir()
	check := func(target, want string, more ...string) {
		t.Helper()
		said, err := runMake(t, root, nil, append([]string{target, "OUT=" + out, "FORCE_HOST_GO=y"}, more...)...)
		if err == nil || strings.Contains(said, "\n") || !strings.Contains(said, want) {
			t.Errorf("%s: %v: %q; want one line: %s", target, err, said, want)
		}
	}
	check("test-release", `run "make quick-release" first`)
	check("verify-release", `run "make quick-release" first`)
	out = place(t, sbom.Release{Source: "commit 0123abc", Go: "go1.26.8"})
	head, err := build.Describe(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	check("test-release", `plugin/release-tars: run "make plugin-release" first`, "PLUGIN=y")
	check("verify-release", "the release is of 0123abc, HEAD is "+head.Commit)
	// To say what would be done is not to do it.
	if said, err := runMake(t, root, nil, "-n", "verify-release", "OUT="+out, "FORCE_HOST_GO=y"); err != nil || !strings.Contains(said, "release verify -root . ") {
		t.Errorf("make -n verify-release: %v: %s", err, said)
	}
}
