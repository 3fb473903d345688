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
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/modfile"

	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/leftout"
	"k8s.io/kubernetes-features/build/release/targets"
)

// The tests in this file look at a real release in the folder RELEASE_TARS.

// unpacked are the server's archives that have been unpacked, by architecture.
var unpacked = map[string]string{}

// extracted unpacks the server's archive for arch as kind's builder does: files
// only, their content only.
func extracted(t *testing.T, arch string) string {
	t.Helper()
	if dir, ok := unpacked[arch]; ok {
		return dir
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		t.Fatal(err)
	}
	copies = append(copies, dir)
	f, err := os.Open(filepath.Join(os.Getenv("RELEASE_TARS"), "kubernetes-server-linux-"+arch+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			unpacked[arch] = dir
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		if err := writeFile(filepath.Join(dir, h.Name), tr); err != nil {
			t.Fatal(err)
		}
	}
}

func writeFile(name string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range copies {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Println("Cannot remove what tests have made:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// tree is a server's archive.
type tree struct {
	// dir is its folder kubernetes, unpacked.
	dir     string
	arch    string
	version targets.Version
}

func (r tree) bin(name string) string { return filepath.Join(r.dir, "server", "bin", name) }

// open unpacks the archive for arch.
func open(t *testing.T, arch string) tree {
	t.Helper()
	dir := filepath.Join(extracted(t, arch), "kubernetes")
	content, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := targets.ParseVersion(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return tree{dir: dir, arch: arch, version: version}
}

// server returns the folder kubernetes of the archive for this machine, and the
// version in it.
func server(t *testing.T) (string, targets.Version) {
	t.Helper()
	leftout.Long(t)
	if !slices.Contains(released(t), runtime.GOARCH) {
		leftout.Skip(t, "the release has nothing for linux/"+runtime.GOARCH+", which this machine runs")
	}
	r := open(t, runtime.GOARCH)
	return r.dir, r.version
}

// released are the architectures that the release has an archive of the server
// for.
func released(t *testing.T) []string {
	t.Helper()
	const prefix, suffix = "kubernetes-server-linux-", ".tar.gz"
	found, err := filepath.Glob(filepath.Join(os.Getenv("RELEASE_TARS"), prefix+"*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		leftout.Skip(t, "the release has no archive of the server, only of clients or of nodes on Windows")
	}
	for i, file := range found {
		found[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), prefix), suffix)
	}
	return found
}

// each runs check for each server's archive.
func each(t *testing.T, check func(t *testing.T, r tree)) {
	t.Helper()
	leftout.Long(t)
	for _, arch := range released(t) {
		t.Run(arch, func(t *testing.T) { check(t, open(t, arch)) })
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v: %s", filepath.Base(name), args, err, out)
	}
	return string(out)
}

// nameless are the binaries that have no version, as upstream's.
var nameless = map[string]bool{"kube-log-runner": true, "mounter": true}

// TestBinariesShowTheVersion asks each binary that runs here. All contain the version
// and the commit, which those that have no flag for it say to those they talk to.
func TestBinariesShowTheVersion(t *testing.T) {
	ask := map[string][]string{
		"kube-apiserver": {"--version"}, "kube-controller-manager": {"--version"}, "kube-scheduler": {"--version"},
		"kube-proxy": {"--version"}, "kubelet": {"--version"}, "kubeadm": {"version", "--output=short"},
		"kubectl": {"version", "--client"}, "kubectl-feature": {"--version"},
	}
	each(t, func(t *testing.T, r tree) {
		commit := readBill(t, os.Getenv("RELEASE_TARS")).source(t).Commit
		for _, b := range targets.Of(targets.Server) {
			if args, ok := ask[b.Name]; ok && r.arch == runtime.GOARCH {
				if got := output(t, r.bin(b.Name), args...); !strings.Contains(got, string(r.version)) {
					t.Errorf("%s says it is %q, want %s", b.Name, strings.TrimSpace(got), r.version)
				}
			}
			content, err := os.ReadFile(r.bin(b.Name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(r.version)) == nameless[b.Name] {
				t.Errorf("whether %s contains the version %s is %v, want %v", b.Name, r.version, nameless[b.Name], !nameless[b.Name])
			}
			if bytes.Contains(content, []byte(commit)) == nameless[b.Name] {
				t.Errorf("whether %s contains the commit %s is %v, want %v", b.Name, commit, nameless[b.Name], !nameless[b.Name])
			}
		}
	})
}

// machines are what ELF files of an architecture name.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func TestBinariesAreStaticAndStripped(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		for _, b := range targets.Of(targets.Server) {
			f, err := elf.Open(r.bin(b.Name))
			if err != nil {
				t.Error(err)
				continue
			}
			if f.Machine != machines[r.arch] {
				t.Errorf("%s is for %s", b.Name, f.Machine)
			}
			for _, p := range f.Progs {
				if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
					t.Errorf("%s is linked dynamically", b.Name)
				}
			}
			for _, s := range f.Sections {
				if s.Name == ".symtab" || strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
					t.Errorf("%s has a section %s", b.Name, s.Name)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestImagesOfTheRelease looks at configs, layers, names and sizes.
func TestImagesOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		source := readBill(t, os.Getenv("RELEASE_TARS")).source(t)
		for _, b := range targets.Images() {
			file := r.bin(b.Name + ".tar")
			checkConfig(t, file, b, r.arch, r.version, source.Revision(), source.Time)
			checkLayers(t, file, b, r.bin(b.Name), r.bin(targets.LogRunner.Name))
			if got, want := nameOf(t, file), r.version.ImageName(b.Name, r.arch); got != want {
				t.Errorf("the archive %s.tar names %s, want %s", b.Name, got, want)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %.1f MB", info.Name(), float64(info.Size())/1e6)
			if limit := maxImageSizes[b.Name]; info.Size() > limit {
				t.Errorf("%s has %d bytes, more than %d", info.Name(), info.Size(), limit)
			}
		}
	})
}

// maxImageSizes are what images may take, in bytes and not compressed, a tenth
// more than they took on amd64 when this was written; docs/contributors/release.md has both.
var maxImageSizes = map[string]int64{
	"kube-apiserver": 105e6, "kube-controller-manager": 87e6, "kube-scheduler": 59e6, "kube-proxy": 75e6, "kubectl": 66e6,
}

// nameOf is the name that the archive of an image has for it.
func nameOf(t *testing.T, file string) string {
	t.Helper()
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		t.Fatalf("the archive %s names %v, want one image with one name", filepath.Base(file), manifest)
	}
	return manifest[0].RepoTags[0]
}

// TestKubeadmAndKindFindTheImages does what kind does: it takes the
// architecture off the images' names and looks for those that kubeadm asks for.
func TestKubeadmAndKindFindTheImages(t *testing.T) {
	dir, version := server(t)
	wanted := strings.Fields(output(t, filepath.Join(dir, "server", "bin", "kubeadm"),
		"config", "images", "list", "--kubernetes-version", string(version)))
	for _, name := range kindImages {
		if plain := plainName(version, name); !slices.Contains(wanted, plain) {
			t.Errorf("the image %s is not one that kubeadm wants: %v", plain, wanted)
		}
	}
}

// TestDependenciesAreUpstreams compares the modules in the binaries with those of
// upstream's go.mod, as CHANGELOG.md has it: the library of this fork is the only
// new one, and none has another version.
func TestDependenciesAreUpstreams(t *testing.T) {
	leftout.Long(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}} {{.Version}}", "k8s.io/kubernetes")
	list.Dir = filepath.Join("..", "..")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	name, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := modfile.ParseLax("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"k8s.io/kubernetes": version, "k8s.io/feature-lifecycle": "(devel)"}
	for _, r := range upstream.Require {
		versions[r.Mod.Path] = r.Mod.Version
		if r.Mod.Version == "v0.0.0" {
			// A staging module: v1.36.3 publishes it as v0.36.3.
			versions[r.Mod.Path] = "v0" + strings.TrimPrefix(version, "v1")
		}
	}
	each(t, func(t *testing.T, r tree) {
		for _, b := range targets.Of(targets.Server) {
			info, err := buildinfo.ReadFile(r.bin(b.Name))
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range info.Deps {
				if m.Path != "k8s.io/kubernetes-features" && versions[m.Path] != m.Version {
					t.Errorf("%s contains %s %s, want %q", b.Name, m.Path, m.Version, versions[m.Path])
				}
			}
		}
	})
}

// TestCommitOfTheRelease checks that the release is of no other commit than these tests
// and the lock file, which is no error.
func TestCommitOfTheRelease(t *testing.T) {
	leftout.Long(t)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	head, err := build.Describe(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if why := otherCommit(readBill(t, os.Getenv("RELEASE_TARS")).source(t), head); why != "" {
		leftout.Part(t, why)
	}
}

// otherCommit returns a message that a release is not of the checkout as it is, or nothing.
func otherCommit(release, head build.Source) string {
	if release.String() == head.String() {
		return ""
	}
	return fmt.Sprintf("the release is of %s, HEAD is %s: \"make quick-release\" makes one of it", release, head)
}

func TestOtherCommit(t *testing.T) {
	one, two, dirty := build.Source{Commit: "1"}, build.Source{Commit: "2"}, build.Source{Commit: "1", Dirty: true}
	if why := otherCommit(one, one); why != "" {
		t.Errorf("a release of this commit: %s", why)
	}
	for _, head := range []build.Source{two, dirty} {
		if why := otherCommit(one, head); !strings.Contains(why, "the release is of 1, HEAD is "+head.String()+": ") {
			t.Errorf("a release of 1 where HEAD is %s: %q", head, why)
		}
	}
}

func TestSumsOfTheRelease(t *testing.T) {
	leftout.Long(t)
	checkSums(t, os.Getenv("RELEASE_TARS"))
}
