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
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/targets"
)

func TestLayout(t *testing.T) {
	r := made(t)
	files, err := os.ReadDir(r.tars())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if diff := gocmp.Diff([]string{
		"SHA256SUMS", "SHA512SUMS", "feature.yaml", "gates.json", "gates.schema.json", "kubectl-feature-linux-amd64.tar.gz",
		"kubernetes-client-linux-amd64.tar.gz", "kubernetes-node-linux-amd64.tar.gz", "kubernetes-server-linux-amd64.tar.gz", "kubernetes-src.tar.gz", "kubernetes.spdx.json",
	}, names); diff != "" {
		t.Errorf("release-tars (-want +got):\n%s", diff)
	}
	clients := []string{"kubectl", "kubectl-convert", "kubectl-feature", "kubectl_complete-feature"}
	nodes := slices.Concat(clients, []string{"kube-log-runner", "kube-proxy", "kubeadm", "kubelet"})
	servers := slices.Concat(nodes, []string{"apiextensions-apiserver", "kube-aggregator", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "mounter"})
	for _, image := range []string{"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl"} {
		servers = append(servers, image+".tar", image+".docker_tag")
	}
	for component, want := range map[string][]string{"client": clients, "node": nodes, "server": servers} {
		got := contents(t, filepath.Join(r.tars(), "kubernetes-"+component+"-linux-amd64.tar.gz"))
		slices.Sort(want)
		if diff := gocmp.Diff(want, below(got, "kubernetes/"+component+"/bin/")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", component, diff)
		}
		if component == "client" {
			continue
		}
		if got["kubernetes/version"] != "v1.36.3+feature.1\n" {
			t.Errorf("%s: the version is %q", component, got["kubernetes/version"])
		}
		for _, name := range []string{
			"kubernetes/kubernetes-src.tar.gz", "kubernetes/LICENSES/LICENSE",
			"kubernetes/LICENSES/vendor/k8s.io/component-base/LICENSE", "kubernetes/LICENSES/vendor/stdlib/LICENSE",
		} {
			if got[name] == "" {
				t.Errorf("%s has no %s", component, name)
			}
		}
	}
	server := contents(t, filepath.Join(r.tars(), "kubernetes-server-linux-amd64.tar.gz"))
	if _, ok := server["kubernetes/addons/"]; !ok {
		t.Error("the server has no folder for addons")
	}
	if got := server["kubernetes/server/bin/kube-apiserver.docker_tag"]; got != "v1.36.3_feature.1\n" {
		t.Errorf("the image's tag is %q", got)
	}
	source := contents(t, filepath.Join(r.tars(), sourceArchive))
	if !strings.Contains(source["build/release/release_test.go"], "package main") {
		t.Error("the sources do not have this file")
	}
	for name, from := range dataSources {
		got, err := os.ReadFile(filepath.Join(r.tars(), name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || !json.Valid(got) {
			t.Errorf("%s is not what the sources have in %s", name, from)
		}
	}
	checkSums(t, r.tars())
}

func checkSums(t *testing.T, dir string) {
	t.Helper()
	for _, sums := range []string{"sha256sum", "sha512sum"} {
		cmd := exec.CommandContext(t.Context(), sums, "--check", "--strict", "--quiet", strings.ToUpper(sums)+"S")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", sums, err, out)
		}
	}
}

// TestTwoReleasesAreEqual makes a release of two checkouts in different folders,
// the second time with other settings. What the go command does is tested in
// package build.
func TestTwoReleasesAreEqual(t *testing.T) {
	sums := func(r *release) string {
		content, err := os.ReadFile(filepath.Join(r.tars(), "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	one := sums(standIn(t, checkout(t), amd64, arm64))
	t.Setenv("TZ", "Pacific/Auckland")
	t.Setenv("LC_ALL", "C")
	t.Setenv("GOMAXPROCS", "1")
	defer syscall.Umask(syscall.Umask(0o077))
	two := sums(standIn(t, copied(t), amd64, arm64))
	if diff := gocmp.Diff(one, two); diff != "" {
		t.Errorf("two releases in two folders differ:\n%s", diff)
	}
	if n := strings.Count(one, "linux-arm64"); n != 4 {
		t.Errorf("there are %d archives for arm64, want 4", n)
	}
}

// TestBillOfArchives looks up in the bill what is published.
func TestBillOfArchives(t *testing.T) {
	r := made(t)
	bill := readBill(t, r.tars())
	for file, parts := range map[string][]string{
		"kubernetes-src.tar.gz":                nil,
		"kubectl-feature-linux-amd64.tar.gz":   {"linux/amd64/kubectl-feature", "kubectl_complete-feature"},
		"kubernetes-client-linux-amd64.tar.gz": {"linux/amd64/kubectl", "kubectl_complete-feature"},
		"kubernetes-node-linux-amd64.tar.gz":   {"linux/amd64/kubelet", "kubernetes-src.tar.gz"},
		"kubernetes-server-linux-amd64.tar.gz": {"linux/amd64/kube-apiserver", "linux/amd64/kube-apiserver.tar"},
	} {
		bill.hashes(t, file, filepath.Join(r.tars(), file))
		for _, part := range parts {
			bill.has(t, file, "CONTAINS", part+"@"+string(r.version))
		}
	}
	bill.hashes(t, completion, filepath.Join(r.root, completionSource))
	for _, name := range slices.Concat(slices.Collect(maps.Keys(dataSources)), []string{manifestFile}) {
		bill.hashes(t, name, filepath.Join(r.tars(), name))
	}
	if got := bill.source(t); got.String() != r.source.String() || !got.Time.Equal(r.source.Time) {
		t.Errorf("the bill is of %s at %s, want %s at %s", got, got.Time, r.source, r.source.Time)
	}
}

// TestPlatformWithoutPackagesRefused asks for a platform without packages.
func TestPlatformWithoutPackagesRefused(t *testing.T) {
	r := inTheMaking(t, checkout(t))
	r.compile = func(_ context.Context, p targets.Platform) error {
		t.Errorf("the binaries for %s are built though there can be no images", p)
		return nil
	}
	err := r.make(t.Context(), []targets.Platform{amd64, {OS: "linux", Arch: "s390x"}})
	if err == nil || !strings.Contains(err.Error(), "there are no images for linux/s390x") || !strings.Contains(err.Error(), "linux/amd64 and linux/arm64") {
		t.Errorf("linux/s390x: %v, want an error that names what there is", err)
	}
}

// TestTreeThatChanges edits a file while binaries are built.
func TestTreeThatChanges(t *testing.T) {
	r := inTheMaking(t, copied(t))
	compile := r.compile
	r.compile = func(ctx context.Context, p targets.Platform) error {
		if err := os.WriteFile(filepath.Join(r.root, "README.md"), []byte("changed"), 0o644); err != nil {
			return err
		}
		return compile(ctx, p)
	}
	if err := r.make(t.Context(), []targets.Platform{amd64}); err == nil || !strings.Contains(err.Error(), "changed while its release was made") {
		t.Errorf("a tree that changes: %v", err)
	}
}

// TestSourcesAreTheCommits: of a clean tree, what archives have of this fork is read
// from git, so that nothing which happens on disk while a release is made matters.
func TestSourcesAreTheCommits(t *testing.T) {
	root := checkout(t)
	source, err := build.Describe(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{flags: flags{root: root}, source: source, modules: map[targets.Platform]map[string]module{amd64: {"ours": {dir: root, main: true}}}}
	if err := r.readSources(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries := r.binaries(targets.Client, amd64)
	licenses, err := r.licensesOf("ours", amd64)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range append(entries, licenses...) {
		if name := filepath.Base(e.Name); name != completion && name != "LICENSE" {
			continue
		}
		found++
		if e.Path != "" || len(e.Data) == 0 {
			t.Errorf("%s has %d bytes of git and is read from %q", e.Name, len(e.Data), e.Path)
		}
	}
	if found != 2 {
		t.Errorf("there are %d files of this fork, want the completion and its license: %v", found, licenses)
	}
}

// TestLicenseOfAModule has a third party's module below the checkout, as with
// GOMODCACHE there.
func TestLicenseOfAModule(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "mod", "vendor")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	license := archive.Entry{Name: "LICENSE", Data: []byte("ours")}
	r := &release{flags: flags{root: root}, sources: map[string]archive.Entry{license.Name: license}, modules: map[targets.Platform]map[string]module{amd64: {"theirs": {dir: dir}, "staging": {dir: dir, main: true}}}}
	if found, err := r.licensesOf("theirs", amd64); err == nil || !strings.Contains(err.Error(), "theirs has no license") {
		t.Errorf("a module without a license has %v: %v", found, err)
	}
	if found, err := r.licensesOf("staging", amd64); err != nil || len(found) != 1 || found[0].Name != "kubernetes/LICENSES/vendor/staging/LICENSE" || string(found[0].Data) != "ours" {
		t.Errorf("a module of this tree has %v: %v", found, err)
	}
	r.sources["mod/vendor/COPYING"] = archive.Entry{Name: "mod/vendor/COPYING", Data: []byte("its own")}
	if found, err := r.licensesOf("staging", amd64); err != nil || len(found) != 1 || string(found[0].Data) != "its own" {
		t.Errorf("a module of this tree with a license of its own has %v: %v", found, err)
	}
	if _, err := r.licensesOf("other", amd64); err == nil {
		t.Error("an unknown module has a license")
	}
}

// TestBuiltBy: another Go compresses in another way.
func TestBuiltBy(t *testing.T) {
	for version, want := range map[string]string{
		"go1.26.8": "", "go1.27.0": "was built by go1.27.0 and the release would be by go1.26.8", "go1.26.8-X:jsonv2": "go env -u GOEXPERIMENT",
	} {
		err := builtBy(version, build.Go{Version: "go1.26.8"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", version, err, want)
		}
	}
	root := copied(t)
	if err := os.WriteFile(filepath.Join(root, build.VersionFile), []byte(strings.TrimPrefix(other, "go")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A go command of the version that the file names, as GOTOOLCHAIN would fetch it.
	bin := t.TempDir()
	script := "#!/bin/sh\n[ \"$*\" = 'env GOVERSION' ] && exec echo " + other + "\nexec go.real \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(bin, "go.real")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := run(t.Context(), []string{"-root", root, "-version", "v1.36.3"}); err == nil || !strings.Contains(err.Error(), "would be by "+other) {
		t.Errorf("a release by another Go than this program's: %v", err)
	}
}

// other is a version of Go that does not exist.
const other = "go1.26.999"

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-version", "1.36.3"},
		{"-version", "v1.36.3", "-platforms", "plan9/amd64"},
		{"-version", "v1.36.3", "-root", t.TempDir()},
		{"-version", "v1.36.3", "make"},
	} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}
