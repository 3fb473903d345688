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
	"compress/gzip"
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
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/google/go-containerregistry/pkg/v1/tarball"

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

func TestBinariesShowTheVersion(t *testing.T) {
	dir, version := server(t)
	for name, args := range map[string][]string{
		"kube-apiserver": {"--version"}, "kube-controller-manager": {"--version"}, "kube-scheduler": {"--version"},
		"kube-proxy": {"--version"}, "kubelet": {"--version"}, "kubeadm": {"version", "--output=short"},
		"kubectl": {"version", "--client"},
	} {
		if got := output(t, filepath.Join(dir, "server", "bin", name), args...); !strings.Contains(got, string(version)) {
			t.Errorf("%s says it is %q, want %s", name, strings.TrimSpace(got), version)
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

// maxImageSize is what an image may take, in bytes and not compressed:
// kube-apiserver with all symbols took 154 MB before it was stripped.
const maxImageSize = 150 << 20

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

func TestBillOfTheRelease(t *testing.T) {
	_, version := server(t)
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
	found := map[string]string{}
	for _, p := range doc.Packages {
		found[p.PackageName] = p.PackageVersion
	}
	if found["k8s.io/feature-lifecycle"] != string(version) {
		t.Errorf("the library of this fork has the version %q in the bill, want %s", found["k8s.io/feature-lifecycle"], version)
	}
	for _, name := range []string{"k8s.io/kubernetes", "go.etcd.io/etcd/client/v3", "libc6"} {
		if found[name] == "" {
			t.Errorf("%s is not in the bill", name)
		}
	}
}

func TestSumsOfTheRelease(t *testing.T) {
	server(t)
	checkSums(t, os.Getenv("RELEASE_TARS"))
}
