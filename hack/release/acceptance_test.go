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
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/mod/modfile"

	"k8s.io/kubernetes-features/hack/release/archive"
	"k8s.io/kubernetes-features/hack/release/leftout"
	"k8s.io/kubernetes-features/hack/release/rootfs"
	"k8s.io/kubernetes-features/hack/release/targets"
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
	if err != nil || len(found) == 0 {
		t.Fatalf("%s has no archive of the server: %v", os.Getenv("RELEASE_TARS"), err)
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

// TestBinariesShowTheVersion asks each binary that runs here; others, and those of
// upstream that have no flag for it, contain it, and say it to those they talk to.
func TestBinariesShowTheVersion(t *testing.T) {
	ask := map[string][]string{
		"kube-apiserver": {"--version"}, "kube-controller-manager": {"--version"}, "kube-scheduler": {"--version"},
		"kube-proxy": {"--version"}, "kubelet": {"--version"}, "kubeadm": {"version", "--output=short"},
		"kubectl": {"version", "--client"}, "kubectl-feature": {"--version"},
	}
	each(t, func(t *testing.T, r tree) {
		for _, b := range targets.Of(targets.Server) {
			if args, ok := ask[b.Name]; ok && r.arch == runtime.GOARCH {
				if got := output(t, r.bin(b.Name), args...); !strings.Contains(got, string(r.version)) {
					t.Errorf("%s says it is %q, want %s", b.Name, strings.TrimSpace(got), r.version)
				}
				continue
			}
			content, err := os.ReadFile(r.bin(b.Name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte(r.version)) == nameless[b.Name] {
				t.Errorf("whether %s contains the version %s is %v, want %v", b.Name, r.version, nameless[b.Name], !nameless[b.Name])
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

// TestHowBinariesWereBuilt reads what the go command wrote into them: upstream's
// tags, and by them no golang.org/x/net/trace, which keeps each request.
func TestHowBinariesWereBuilt(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		wanted, err := os.ReadFile("go-version")
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range targets.Of(targets.Server) {
			info, err := buildinfo.ReadFile(r.bin(b.Name))
			if err != nil {
				t.Fatal(err)
			}
			settings := map[string]string{}
			for _, s := range info.Settings {
				settings[s.Key] = s.Value
			}
			for name, want := range map[string]string{"-tags": targets.Tags, "-trimpath": "true", "CGO_ENABLED": "0", "GOARCH": r.arch, "GOOS": "linux"} {
				if settings[name] != want {
					t.Errorf("%s was built with %s=%q, want %q", b.Name, name, settings[name], want)
				}
			}
			if want := "go" + strings.TrimSpace(string(wanted)); info.GoVersion != want {
				t.Errorf("%s was built with %s, want %s", b.Name, info.GoVersion, want)
			}
			content, err := os.ReadFile(r.bin(b.Name))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, []byte("golang.org/x/net/trace.")) {
				t.Errorf("%s has golang.org/x/net/trace", b.Name)
			}
		}
	})
}

// TestImagesOfTheRelease looks at configs, names and sizes.
func TestImagesOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		commit, created := readBill(t, os.Getenv("RELEASE_TARS")).commit(t)
		for _, b := range targets.Images() {
			file := r.bin(b.Name + ".tar")
			checkConfig(t, file, b, r.arch, r.version, commit, created)
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

// maxImageSizes are what images may take, in bytes and not compressed;
// docs/release.md names them.
var maxImageSizes = map[string]int64{
	"kube-apiserver": 120e6, "kube-controller-manager": 110e6, "kube-scheduler": 85e6, "kube-proxy": 105e6, "kubectl": 70e6,
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

// readBill reads the bill in a folder and checks its form.
func readBill(t *testing.T, dir string) billIndex {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, billFile))
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
	return newBillIndex(&doc)
}

// TestBillOfTheRelease looks up in the bill what the release has: each archive,
// each binary and what go says is in it, each image and what is in that, and its
// hashes.
func TestBillOfTheRelease(t *testing.T) {
	each(t, func(t *testing.T, r tree) {
		dir := os.Getenv("RELEASE_TARS")
		bill := readBill(t, dir)
		archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archives {
			bill.hashes(t, filepath.Base(file), file)
		}
		for _, b := range targets.Of(targets.Server) {
			checkBinary(t, bill, b, r)
		}
		lock, err := os.Open("debian.lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		locked, err := rootfs.ReadLock(lock, r.arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range targets.Images() {
			name := "linux/" + r.arch + "/" + b.Name
			bill.hashes(t, name+".tar", r.bin(b.Name+".tar"))
			bill.has(t, name+".tar", "CONTAINS", name+"@"+string(r.version))
			for _, p := range locked.Packages {
				if b.Name == "kube-proxy" || rootfs.InStatic(p.Name) {
					bill.has(t, name+".tar", "CONTAINS", p.Name+"@"+p.Version)
				}
			}
		}
		bill.licensed(t)
	})
}

// checkBinary says that the bill has a binary, and the modules in it.
func checkBinary(t *testing.T, bill billIndex, b targets.Binary, r tree) {
	t.Helper()
	name := "linux/" + r.arch + "/" + b.Name
	bill.hashes(t, name, r.bin(b.Name))
	bill.has(t, "kubernetes-server-linux-"+r.arch+".tar.gz", "CONTAINS", name+"@"+string(r.version))
	info, err := buildinfo.ReadFile(r.bin(b.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		v := m.Version
		if m.Path == "k8s.io/feature-lifecycle" {
			v = string(r.version)
		}
		bill.has(t, name, "STATIC_LINK", m.Path+"@"+v)
	}
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

// commit returns which commit the release is of, and its time.
func (b billIndex) commit(t *testing.T) (string, time.Time) {
	t.Helper()
	created, err := time.Parse(time.RFC3339, b.doc.CreationInfo.Created)
	if err != nil {
		t.Fatal(err)
	}
	commit, _ := strings.CutPrefix(b.files["kubernetes"].PackageSourceInfo, "commit ")
	commit, _, _ = strings.Cut(commit, ",")
	return commit, created
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

// licensed says that each module and each package of Debian declares a licence, and
// that the text of each which is not in SPDX's list is there.
func (b billIndex) licensed(t *testing.T) {
	t.Helper()
	texts := map[string]string{}
	for _, l := range b.doc.OtherLicenses {
		texts[l.LicenseIdentifier] = l.ExtractedText
	}
	declared := map[string]int{}
	for _, p := range b.doc.Packages {
		id := string(p.PackageSPDXIdentifier)
		if !strings.HasPrefix(id, "Go-") && !strings.HasPrefix(id, "Debian-") {
			continue
		}
		for license := range strings.SplitSeq(p.PackageLicenseDeclared, " AND ") {
			switch {
			case texts[license] != "":
				declared["by its text"]++
			case slices.Contains([]string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}, license):
				declared[license]++
			default:
				t.Errorf("%s declares the licence %q, which the bill does not have", p.PackageName, license)
			}
		}
	}
	t.Logf("licences: %v", declared)
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

func TestSumsOfTheRelease(t *testing.T) {
	leftout.Long(t)
	checkSums(t, os.Getenv("RELEASE_TARS"))
}
