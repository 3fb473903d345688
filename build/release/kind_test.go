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
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/targets"
)

// kindImages are the images that kind loads into a node image.
var kindImages = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

// buildNodeImage lets kind build a node image of a server archive. Docker is
// a script that records what it is asked, so that everything which is kind's own
// happens: reading the archive and the images, and comparing names with those of
// kubeadm. It returns the calls and the version that kind wrote.
func buildNodeImage(t *testing.T, tar, kubeadm string) (calls, version string) {
	t.Helper()
	kind := os.Getenv("KIND")
	if kind == "" {
		leftout.Skip(t, "KIND names no kind; \"make test-release\" builds and sets it")
	}
	bin, err := filepath.Abs(filepath.Join("testdata", "kind"))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "calls")
	cmd := exec.CommandContext(t.Context(), kind, "build", "node-image", "--type", "file", "--image", "node:test", tar)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DOCKER_CALLS="+log, "KUBEADM="+kubeadm, "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kind does not accept %s: %v: %s", filepath.Base(tar), err, out)
	}
	recorded, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(log + ".version")
	if err != nil {
		t.Fatal(err)
	}
	return string(recorded), string(written)
}

// checkNodeImage checks what kind has to have done with a release.
func checkNodeImage(t *testing.T, calls, written string, version targets.Version, images string) {
	t.Helper()
	if written != string(version) {
		t.Errorf("the node's version is %q, want %s", written, version)
	}
	var want []string
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		want = append(want, fmt.Sprintf("/kubernetes/server/bin/%s kind-build-", name), ":/usr/bin/"+name+"\n")
	}
	for _, name := range kindImages {
		tagged, plain := version.ImageName(name, runtime.GOARCH), plainName(version, name)
		want = append(want, fmt.Sprintf("images tag --force %s %s\n", tagged, plain))
		sum, err := archive.Sum(filepath.Join(images, name+".tar"), sha256.New())
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, "imported "+sum+"\n")
		if strings.Contains(calls, "linux/"+runtime.GOARCH+" "+plain) {
			t.Errorf("kind pulls %s though the release has it", plain)
		}
	}
	want = append(want, "content fetch --platform=linux/"+runtime.GOARCH+" registry.k8s.io/etcd:", "commit ", " node:test\n")
	for _, w := range want {
		if !strings.Contains(calls, w) {
			t.Errorf("kind did not do %q; it did:\n%s", w, calls)
		}
	}
}

func TestKindTakesAStandIn(t *testing.T) {
	if os.Getenv("KIND") == "" {
		leftout.Skip(t, "KIND names no kind; \"make test-release\" builds and sets it")
	}
	p := targets.Platform{OS: "linux", Arch: runtime.GOARCH}
	r := standIn(t, checkout(t), p)
	var lines strings.Builder
	lines.WriteString("#!/bin/sh\n")
	for _, name := range kindImages {
		fmt.Fprintf(&lines, "echo registry.k8s.io/%s:%s\n", name, r.version.ImageTag())
	}
	lines.WriteString("echo registry.k8s.io/etcd:3.6.8-0\necho registry.k8s.io/pause:3.10\n")
	kubeadm := filepath.Join(t.TempDir(), "kubeadm")
	if err := os.WriteFile(kubeadm, []byte(lines.String()), 0o755); err != nil {
		t.Fatal(err)
	}
	calls, version := buildNodeImage(t, filepath.Join(r.tars(), "kubernetes-server-"+p.Tag()+".tar.gz"), kubeadm)
	checkNodeImage(t, calls, version, r.version, r.images(p.Arch))
}

func TestKindTakesTheRelease(t *testing.T) {
	dir, version := server(t)
	bin := filepath.Join(dir, "server", "bin")
	calls, written := buildNodeImage(t,
		filepath.Join(os.Getenv("RELEASE_TARS"), "kubernetes-server-linux-"+runtime.GOARCH+".tar.gz"), filepath.Join(bin, "kubeadm"))
	checkNodeImage(t, calls, written, version, bin)
}

// target runs a target of the Makefile with scripts in the place of docker and
// kind; without a script there is no docker. Settings are further variables. It returns
// what was said and what kind and docker were asked.
func target(t *testing.T, name, docker, kind string, settings ...string) (said, calls string, err error) {
	t.Helper()
	bin, out := t.TempDir(), t.TempDir()
	log := filepath.Join(out, "calls")
	tools := filepath.Join(out, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	path := bin + ":" + os.Getenv("PATH")
	if docker == "" {
		path = withoutDocker(t)
	}
	for file, script := range map[string]string{filepath.Join(bin, "docker"): docker, filepath.Join(tools, "kind"): kind} {
		content := fmt.Sprintf("#!/bin/bash\necho \"${0##*/} $*\" >>%q\n%s\n", log, script)
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	said, err = runMake(t, filepath.Join("..", ".."), []string{"PATH=" + path}, append([]string{name, "OUT=" + out, "VERSION=v1.36.3+feature.9"}, settings...)...)
	recorded, missing := os.ReadFile(log)
	if missing != nil && docker != "" {
		t.Fatal(missing)
	}
	return said, string(recorded), err
}

// runMake runs make in a folder as from a shell, and returns what it says but for its
// own last line.
func runMake(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = dir
	// A variable of the environment would count as one of the command line.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "VERSION", "KUBE_BUILD_PLATFORMS", "FORCE_HOST_GO", "SOURCE_URL", "DOWNLOAD_URL", "PLUGIN", "OUT", "KIND_BASE", "KIND_CONFIG"}, name)
	})
	cmd.Env = append(cmd.Env, env...)
	output, err := cmd.CombinedOutput()
	said, _, _ := strings.Cut(string(output), "\nmake: ")
	return said, err
}

// withoutDocker is a PATH with all commands of this machine but docker.
func withoutDocker(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		files, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, f := range files {
			// The first of two commands with one name counts.
			if link := filepath.Join(bin, f.Name()); f.Name() != "docker" && !exists(link) {
				if err := os.Symlink(filepath.Join(dir, f.Name()), link); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return bin
}

// TestTargetsNameMissingTools runs the targets for kind where there is no
// docker command, or it finds no daemon, no image, and no release, and where there is
// a cluster already, named before a long list of others.
func TestTargetsNameMissingTools(t *testing.T) {
	const noDaemon, noCommand = `kind needs a Docker daemon, and "docker info" finds none`, `kind needs Docker, and there is no docker command here`
	for _, c := range []struct {
		target, docker, kind, want string
	}{
		{"kind-image", "", "", noCommand},
		{"kind-up", "", "", noCommand},
		{"kind-down", "", "", noCommand},
		{"kind-image", "exit 1", "", noDaemon},
		{"kind-up", "exit 1", "", noDaemon},
		{"kind-down", "exit 1", "", noDaemon},
		{"kind-up", `[[ $1 == info ]]`, "", `Docker has no image kindest/node:v1.36.3_feature.9: run "make kind-image" first`},
		{"kind-up", "exit 0", "echo features; seq 100000", `There is a cluster features already: run "make kind-down" first`},
		{"kind-run", "exit 0", "", `kubernetes-server-linux-` + runtime.GOARCH + `.tar.gz is missing: run "make quick-release KUBE_BUILD_PLATFORMS=linux/` + runtime.GOARCH + `" first`},
		{"kind-test", "exit 0", "", `kubernetes-server-linux-` + runtime.GOARCH + `.tar.gz is missing: run "make quick-release KUBE_BUILD_PLATFORMS=linux/` + runtime.GOARCH + `" first`},
		{"kind-image", "exit 0", "", `kubernetes-server-linux-` + runtime.GOARCH + `.tar.gz is missing: run "make quick-release KUBE_BUILD_PLATFORMS=linux/` + runtime.GOARCH + `" first`},
		{"kind-image", `if [[ $1 == version ]]; then echo riscv64; fi`, "", `kubernetes-server-linux-riscv64.tar.gz is missing: run "make quick-release KUBE_BUILD_PLATFORMS=linux/riscv64" first`},
	} {
		said, _, err := target(t, c.target, c.docker, c.kind)
		if err == nil || strings.Contains(said, "\n") || !strings.HasSuffix(said, c.want) {
			t.Errorf("%s with docker as %q: %v: %q; want one line: %s", c.target, c.docker, err, said, c.want)
		}
	}
}

// TestKindUp creates a cluster that has features, and one that has none.
func TestKindUp(t *testing.T) {
	said, calls, err := target(t, "kind-up", "exit 0", "exit 0")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, want := range []string{
		"kind create cluster --name features --image kindest/node:v1.36.3_feature.9 --kubeconfig ",
		"docker exec features-control-plane kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=create",
		"docker exec features-control-plane kubectl --kubeconfig /etc/kubernetes/admin.conf get features -n kube-system\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("no command had %q, but:\n%s", want, calls)
		}
	}
	if _, calls, err := target(t, "kind-up", "exit 0", "exit 0", "KIND_FLAGS=--retain"); err != nil || !strings.Contains(calls, "--wait 5m --retain\n") {
		t.Errorf("with further flags: %v:\n%s", err, calls)
	}
	if said, _, err := target(t, "kind-up", "exit 0", "echo other", "KIND_CLUSTER=other"); err == nil || !strings.Contains(said, `run "make kind-down KIND_CLUSTER=other" first`) {
		t.Errorf("with another cluster that is there already: %v: %s", err, said)
	}
	if said, _, err := target(t, "kind-up", `[[ $* != *" wait "* ]]`, "exit 0"); err == nil {
		t.Errorf("a cluster without features is all right: %s", said)
	}
	_, calls, err = target(t, "kind-down", "exit 0", "exit 0")
	if err != nil || !strings.Contains(calls, "kind delete cluster --name features --kubeconfig ") {
		t.Errorf("kind-down: %v:\n%s", err, calls)
	}
}

// TestKindTestTakesPartsOfNames holds what WHAT makes of the test run against the tests that
// it selects: long ones run, and those of an upgrade get upstream's minor version before.
func TestKindTestTakesPartsOfNames(t *testing.T) {
	for _, c := range []struct{ what, long, wantLong, wantPrevious string }{
		{"", "", "", ""},
		{"", "y", "y", "y"},
		{"TestOneNode", "", "", ""},
		{"TestOneNode|TestGatesOfKubelet", "y", "y", ""},
		{"TestThreeControlPlanes", "", "y", ""},
		{"TestUpgrade", "", "y", "y"},
		{"Upgrade", "", "y", "y"},
		{"TestOneNode|TestUpgrade", "", "y", "y"},
		{"TestUpgrade", "n", "n", ""},
	} {
		env := []string{"WHAT=" + c.what, "LONG=" + c.long}
		if long, previous := ask(t, "kind_long", env...), ask(t, "kind_previous", env...); long != c.wantLong || previous != c.wantPrevious {
			t.Errorf("WHAT=%s LONG=%s: long tests run: %q, want %q; upstream's version before is made: %q, want %q", c.what, c.long, long, c.wantLong, previous, c.wantPrevious)
		}
	}
}

// TestKindImageOfABase has kind build on an image of the caller's, and on its own.
func TestKindImageOfABase(t *testing.T) {
	tar := "SERVER_TAR=" + filepath.Join(t.TempDir(), "server.tar.gz")
	if err := os.WriteFile(strings.TrimPrefix(tar, "SERVER_TAR="), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for base, want := range map[string]string{"": "--type file --image kindest/node:", "own/base:1": "--type file --base-image own/base:1 --image kindest/node:"} {
		said, calls, err := target(t, "kind-image", "exit 0", "exit 0", tar, "KIND_BASE="+base)
		if err != nil || !strings.Contains(calls, "kind build node-image "+want) {
			t.Errorf("with KIND_BASE=%q: %v: %s; want %q among:\n%s", base, err, said, want, calls)
		}
	}
}

// TestKindUpWithAConfiguration creates clusters with and without a configuration, where
// Docker has cgroup v1 and v2. On v1 kubelet needs a setting, which goes to a copy of the
// caller's.
func TestKindUpWithAConfiguration(t *testing.T) {
	dir := t.TempDir()
	with, without := filepath.Join(dir, "with.yaml"), filepath.Join(dir, "without.yaml")
	for file, content := range map[string]string{with: "failCgroupV1: false\n", without: "kind: Cluster\n"} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const permits = "kubeadmConfigPatches:\n  - |\n    kind: KubeletConfiguration\n    failCgroupV1: false\n"
	for _, c := range []struct {
		about, cgroup, config string
		used                  string
		says, saysNot         []string
	}{
		{"v2", "2", "", "create cluster --name ", nil, []string{"cgroup v1", permits}},
		{"v2 with a configuration", "2", without, "create cluster --config " + without + " --name ", nil, []string{"cgroup v1", permits}},
		{"v1", "1", "", "/kind/config.yaml --name ", []string{"that of one node with failCgroupV1: false", permits}, []string{"a copy of"}},
		{"v1 with a configuration", "1", without, "/kind/config.yaml --name ", []string{"a copy of " + without + " with failCgroupV1: false", "kind: Cluster\n" + permits}, nil},
		{"v1 with one that permits it elsewhere", "1", with, "/kind/config.yaml --name ", []string{"a copy of " + with + " with failCgroupV1: false", "failCgroupV1: false\n" + permits}, nil},
	} {
		t.Run(c.about, func(t *testing.T) {
			docker := `case "$*" in *CgroupVersion*) echo ` + c.cgroup + ` ;; esac`
			said, calls, err := target(t, "kind-up", docker, `if [[ $1 == create && $3 == --config && -e $4 ]]; then cat "$4" >&2; fi`, "KIND_CONFIG="+c.config)
			if err != nil || !strings.Contains(calls, c.used) {
				t.Fatalf("%v: %s; want %q among:\n%s", err, said, c.used, calls)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q, but:\n%s", want, said)
				}
			}
			for _, other := range c.saysNot {
				if strings.Contains(said, other) {
					t.Errorf("it says %q:\n%s", other, said)
				}
			}
		})
	}
	for file, content := range map[string]string{with: "failCgroupV1: false\n", without: "kind: Cluster\n"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("%s has become %q, %v", file, got, err)
		}
	}
}
