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

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"k8s.io/kubernetes-features/hack/release/build"
	"k8s.io/kubernetes-features/hack/release/rootfs"
	"k8s.io/kubernetes-features/hack/release/targets"
)

// standIn makes a release in which a program of two modules stands for every
// binary, so that all but the go command's part takes seconds.
func standIn(t *testing.T, out string, platforms ...targets.Platform) *release {
	t.Helper()
	dir := os.Getenv("RELEASE_DEBIAN")
	if dir == "" {
		t.Skip("RELEASE_DEBIAN names no folder for Debian's packages; \"make test-release\" sets it")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		flags: flags{root: root, source: "https://example.com/fork", apt: rootfs.Apt{Dir: dir}}, out: out, version: "v1.36.3+feature.1",
		source: build.Source{Root: root, Commit: "0123abc", Time: time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)},
	}
	r.compile = func(ctx context.Context, p targets.Platform) error {
		first := filepath.Join(r.bin(p), "kube-log-runner")
		if out, err := r.source.Command(ctx, r.version, p, first, targets.LogRunner.Package).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
			return err
		}
		content, err := os.ReadFile(first)
		if err != nil {
			return err
		}
		for _, b := range targets.For(p) {
			if err := os.WriteFile(r.binary(b, p), content, 0o755); err != nil {
				return err
			}
		}
		return nil
	}
	if err := r.make(t.Context(), platforms); err != nil {
		t.Fatal(err)
	}
	return r
}

// contents reads a compressed archive: the content of small files, and the
// names of all.
func contents(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(io.LimitReader(tr, 1<<12))
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(content)
	}
}

// below returns the names in a folder of an archive, sorted.
func below(files map[string]string, dir string) []string {
	var names []string
	for name := range files {
		if rest, ok := strings.CutPrefix(name, dir); ok && rest != "" {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}

var amd64 = targets.Platform{OS: "linux", Arch: "amd64"}

func TestLayout(t *testing.T) {
	r := standIn(t, t.TempDir(), amd64)
	files, err := os.ReadDir(r.tars())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	if diff := cmp.Diff([]string{
		"SHA256SUMS", "SHA512SUMS", "kubernetes-client-linux-amd64.tar.gz", "kubernetes-node-linux-amd64.tar.gz",
		"kubernetes-server-linux-amd64.tar.gz", "kubernetes-src.tar.gz", "kubernetes.spdx.json",
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
		if diff := cmp.Diff(want, below(got, "kubernetes/"+component+"/bin/")); diff != "" {
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
	if !strings.Contains(source["hack/release/release_test.go"], "package main") {
		t.Error("the sources do not have this file")
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

func TestImages(t *testing.T) {
	r := standIn(t, t.TempDir(), amd64)
	for _, b := range targets.Images() {
		img, err := tarball.ImageFromPath(filepath.Join(r.images("amd64"), b.Name+".tar"), nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		entrypoint, layers := "/go-runner", 3
		switch b.Name {
		case "kubectl":
			entrypoint, layers = "/bin/kubectl", 2
		case "kube-proxy":
			layers = 4
		}
		if !slices.Equal(config.Config.Entrypoint, []string{entrypoint}) || len(config.RootFS.DiffIDs) != layers {
			t.Errorf("%s runs %v and has %d layers, want %s and %d", b.Name, config.Config.Entrypoint, len(config.RootFS.DiffIDs), entrypoint, layers)
		}
		// runAsNonRoot judges numbers only.
		if !regexp.MustCompile(`^[0-9]+$`).MatchString(config.Config.User) {
			t.Errorf("%s runs as %q, want a number", b.Name, config.Config.User)
		}
		if got := config.Config.Labels["org.opencontainers.image.source"]; got != "https://example.com/fork" {
			t.Errorf("the source of %s is %q", b.Name, got)
		}
	}
}

func TestTwoReleasesAreEqual(t *testing.T) {
	arm64 := targets.Platform{OS: "linux", Arch: "arm64"}
	one, two := standIn(t, t.TempDir(), amd64, arm64), standIn(t, t.TempDir(), amd64, arm64)
	sums := func(r *release) []byte {
		content, err := os.ReadFile(filepath.Join(r.tars(), "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if diff := cmp.Diff(string(sums(one)), string(sums(two))); diff != "" {
		t.Errorf("two releases in two folders differ:\n%s", diff)
	}
	if n := bytes.Count(sums(one), []byte("linux-arm64")); n != 3 {
		t.Errorf("there are %d archives for arm64, want 3", n)
	}
}

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
