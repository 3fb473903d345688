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
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/modfile"

	"k8s.io/kubernetes-features/hack/release/archive"
	"k8s.io/kubernetes-features/hack/release/rootfs"
	"k8s.io/kubernetes-features/hack/release/targets"
)

// The tests in this file look at a real release in the folder RELEASE_TARS, for
// the platform of this machine.

// extracted unpacks the server's archive as kind's builder does: files only,
// their content only.
var extracted = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return "", err
	}
	f, err := os.Open(filepath.Join(os.Getenv("RELEASE_TARS"), "kubernetes-server-linux-"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		return dir, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return dir, err
	}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return dir, nil
		}
		if err != nil {
			return dir, err
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(h.Name) {
			continue
		}
		if err := writeFile(filepath.Join(dir, h.Name), tr); err != nil {
			return dir, err
		}
	}
})

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
	if os.Getenv("RELEASE_TARS") != "" {
		if dir, err := extracted(); err == nil {
			if err := os.RemoveAll(dir); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(code)
}

// server returns the folder kubernetes of the server's archive and the version
// in it.
func server(t *testing.T) (string, targets.Version) {
	t.Helper()
	if os.Getenv("RELEASE_TARS") == "" {
		t.Skip("RELEASE_TARS names no release; \"make test-release\" sets it after \"make quick-release\"")
	}
	dir, err := extracted()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "kubernetes", "version"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := targets.ParseVersion(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "kubernetes"), version
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

// TestBinariesShowTheVersion asks each binary; those of upstream that have no
// flag for it contain it, and say it to those they talk to.
func TestBinariesShowTheVersion(t *testing.T) {
	dir, version := server(t)
	ask := map[string][]string{
		"kube-apiserver": {"--version"}, "kube-controller-manager": {"--version"}, "kube-scheduler": {"--version"},
		"kube-proxy": {"--version"}, "kubelet": {"--version"}, "kubeadm": {"version", "--output=short"},
		"kubectl": {"version", "--client"}, "kubectl-feature": {"--version"},
	}
	for _, b := range targets.Of(targets.Server) {
		file := filepath.Join(dir, "server", "bin", b.Name)
		if args, ok := ask[b.Name]; ok {
			if got := output(t, file, args...); !strings.Contains(got, string(version)) {
				t.Errorf("%s says it is %q, want %s", b.Name, strings.TrimSpace(got), version)
			}
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte(version)) == nameless[b.Name] {
			t.Errorf("whether %s contains the version %s is %v, want %v", b.Name, version, nameless[b.Name], !nameless[b.Name])
		}
	}
}

func TestBinariesAreStaticAndStripped(t *testing.T) {
	dir, _ := server(t)
	for _, b := range targets.Of(targets.Server) {
		f, err := elf.Open(filepath.Join(dir, "server", "bin", b.Name))
		if err != nil {
			t.Error(err)
			continue
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
}

// TestKubeadmAndKindFindTheImages does what kind does: it takes the
// architecture off the images' names and looks for those that kubeadm asks for.
func TestKubeadmAndKindFindTheImages(t *testing.T) {
	dir, version := server(t)
	wanted := strings.Fields(output(t, filepath.Join(dir, "server", "bin", "kubeadm"),
		"config", "images", "list", "--kubernetes-version", string(version)))
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) {
			return os.Open(filepath.Join(dir, "server", "bin", name+".tar"))
		})
		if err != nil {
			t.Error(err)
			continue
		}
		if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
			t.Errorf("the archive %s.tar names %v, want one image with one name", name, manifest)
			continue
		}
		tag := manifest[0].RepoTags[0]
		if tag != version.ImageName(name, runtime.GOARCH) {
			t.Errorf("the archive %s.tar names %s", name, tag)
		}
		if plain := plainName(version, name); !slices.Contains(wanted, plain) {
			t.Errorf("the image %s is not one that kubeadm wants: %v", tag, wanted)
		}
	}
}

// maxImageSize is what an image may take, in bytes and not compressed;
// docs/release.md names it. The largest, kube-apiserver, took 112 MB on amd64
// when this was written.
const maxImageSize = 125 << 20

func TestImagesAreSmall(t *testing.T) {
	dir, _ := server(t)
	for _, b := range targets.Images() {
		info, err := os.Stat(filepath.Join(dir, "server", "bin", b.Name+".tar"))
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s: %.1f MB", info.Name(), float64(info.Size())/1e6)
		if info.Size() > maxImageSize {
			t.Errorf("%s has %d bytes, more than %d", info.Name(), info.Size(), maxImageSize)
		}
	}
}

// TestBillOfTheRelease looks up in the bill what the release has: each binary
// and what go says is in it, each image and what is in that, and its hashes.
func TestBillOfTheRelease(t *testing.T) {
	dir, version := server(t)
	f, err := os.Open(filepath.Join(os.Getenv("RELEASE_TARS"), "kubernetes.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var doc v2_3.Document
	if err := spdxjson.ReadInto(f, &doc); err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(&doc); err != nil {
		t.Error(err)
	}
	bill := newBillIndex(&doc)
	for _, b := range targets.Of(targets.Server) {
		file := filepath.Join(dir, "server", "bin", b.Name)
		name := "linux/" + runtime.GOARCH + "/" + b.Name
		bill.hashes(t, name, file)
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range info.Deps {
			v := m.Version
			if m.Path == "k8s.io/feature-lifecycle" {
				v = string(version)
			}
			bill.has(t, name, "STATIC_LINK", m.Path+"@"+v)
		}
	}
	lock, err := os.Open("debian.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	packages, err := rootfs.ReadLock(lock, runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range targets.Images() {
		name := "linux/" + runtime.GOARCH + "/" + b.Name
		bill.hashes(t, name+".tar", filepath.Join(dir, "server", "bin", b.Name+".tar"))
		bill.has(t, name+".tar", "CONTAINS", name+"@"+string(version))
		for _, p := range packages {
			if b.Name == "kube-proxy" || p.Name == "ca-certificates" {
				bill.has(t, name+".tar", "CONTAINS", p.Name+"@"+p.Version)
			}
		}
	}
	bill.licensed(t)
}

// billIndex is a bill by names.
type billIndex struct {
	doc   *v2_3.Document
	files map[string]*v2_3.Package
	// edges are "from RELATIONSHIP to@version".
	edges map[string]bool
}

func newBillIndex(doc *v2_3.Document) billIndex {
	b := billIndex{doc: doc, files: map[string]*v2_3.Package{}, edges: map[string]bool{}}
	byID := map[common.ElementID]*v2_3.Package{}
	for _, p := range doc.Packages {
		byID[p.PackageSPDXIdentifier] = p
		b.files[p.PackageName] = p
	}
	for _, r := range doc.Relationships {
		from, to := byID[r.RefA.ElementRefID], byID[r.RefB.ElementRefID]
		if from != nil && to != nil {
			b.edges[from.PackageName+" "+r.Relationship+" "+to.PackageName+"@"+to.PackageVersion] = true
		}
	}
	return b
}

// hashes says that the bill has the file and its hash.
func (b billIndex) hashes(t *testing.T, name, file string) {
	t.Helper()
	sum, err := archive.Sum(file, sha256.New())
	if err != nil {
		t.Fatal(err)
	}
	p := b.files[name]
	if p == nil || len(p.PackageChecksums) != 1 || p.PackageChecksums[0].Value != sum {
		t.Errorf("%s is not in the bill with the hash %s", name, sum)
	}
}

func (b billIndex) has(t *testing.T, from, relationship, to string) {
	t.Helper()
	if edge := from + " " + relationship + " " + to; !b.edges[edge] {
		t.Errorf("the bill lacks %s", edge)
	}
}

// licensed says that each module declares a licence, and that the text of each
// which is not in SPDX's list is there.
func (b billIndex) licensed(t *testing.T) {
	t.Helper()
	texts := map[string]string{}
	for _, l := range b.doc.OtherLicenses {
		texts[l.LicenseIdentifier] = l.ExtractedText
	}
	modules := 0
	for _, p := range b.doc.Packages {
		if !strings.HasPrefix(string(p.PackageSPDXIdentifier), "Go-") {
			continue
		}
		modules++
		for id := range strings.SplitSeq(p.PackageLicenseDeclared, " AND ") {
			if id != "Apache-2.0" && texts[id] == "" {
				t.Errorf("%s declares the licence %q, which the bill does not have", p.PackageName, id)
			}
		}
	}
	t.Logf("%d modules, %d texts of licences", modules, len(texts))
}

// TestDependenciesAreUpstreams compares the modules in the binaries with those of
// upstream's go.mod, as CHANGELOG.md has it: the library of this fork is the only
// new one, and none has another version.
func TestDependenciesAreUpstreams(t *testing.T) {
	dir, _ := server(t)
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
	for _, b := range targets.Of(targets.Server) {
		info, err := buildinfo.ReadFile(filepath.Join(dir, "server", "bin", b.Name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range info.Deps {
			if m.Path != "k8s.io/kubernetes-features" && versions[m.Path] != m.Version {
				t.Errorf("%s contains %s %s, want %q", b.Name, m.Path, m.Version, versions[m.Path])
			}
		}
	}
}

func TestSumsOfTheRelease(t *testing.T) {
	server(t)
	checkSums(t, os.Getenv("RELEASE_TARS"))
}
