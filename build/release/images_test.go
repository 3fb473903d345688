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
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/build"
	"k8s.io/kubernetes-features/build/release/image"
	"k8s.io/kubernetes-features/build/release/rootfs"
	"k8s.io/kubernetes-features/build/release/targets"
)

// checkConfig checks the labels and settings that the image of a binary has; where it is
// may be anything.
func checkConfig(t *testing.T, file string, b targets.Binary, arch string, v targets.Version, revision string, created time.Time) {
	t.Helper()
	img, err := tarball.ImageFromPath(file, nil)
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
	const prefix = "org.opencontainers.image."
	delete(config.Config.Labels, image.SourceLabel)
	want := v1.Config{
		// runAsNonRoot judges numbers only.
		User: "0", WorkingDir: "/", Entrypoint: []string{entrypoint},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			prefix + "title": b.Name, prefix + "description": b.Name + " of Kubernetes with feature lifecycle (KEP-3920)",
			prefix + "version": string(v), prefix + "revision": revision, prefix + "created": created.UTC().Format(time.RFC3339),
			prefix + "url": "https://www.kubernetes.dev/resources/keps/3920/", prefix + "vendor": "The Kubernetes Authors",
			prefix + "documentation": "https://github.com/kubernetes/enhancements/issues/3920",
		},
	}
	if diff := gocmp.Diff(want, config.Config); diff != "" {
		t.Errorf("%s for %s (-want +got):\n%s", b.Name, arch, diff)
	}
	if config.OS != "linux" || config.Architecture != arch || !config.Created.Equal(created) || len(config.RootFS.DiffIDs) != layers {
		t.Errorf("%s is for %s/%s, of %s and has %d layers, want linux/%s, %s and %d",
			b.Name, config.OS, config.Architecture, config.Created, len(config.RootFS.DiffIDs), arch, created, layers)
	}
}

// checkLayers reads what is in the image of a binary: this binary and nothing else
// of the release, the runner, and below them what Debian gives.
func checkLayers(t *testing.T, file string, b targets.Binary, binary, runner string) {
	t.Helper()
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Errorf("the image of %s is not valid: %v", b.Name, err)
	}
	found := filesOf(t, img)
	programs := map[string]string{inImage(b): binary}
	if !b.EntryPoint() {
		programs[image.Runner] = runner
	}
	for name, from := range programs {
		sum, err := archive.Sum(from, sha256.New())
		if err != nil {
			t.Fatal(err)
		}
		got := found[name[1:]]
		if got.sum != sum || got.Mode != 0o755 || got.Uid != 0 || got.Typeflag != tar.TypeReg {
			t.Errorf("the image of %s has %s with the hash %q and the mode %o of user %d, want %s, 755 and 0", b.Name, name, got.sum, got.Mode, got.Uid, sum)
		}
	}
	for name, f := range found {
		dir := path.Dir("/" + name)
		if _, ok := programs["/"+name]; !ok && f.Typeflag != tar.TypeDir && (dir == "/usr/local/bin" || name == image.Runner[1:] || name == "bin/kubectl") {
			t.Errorf("the image of %s has %s", b.Name, name)
		}
		want := ""
		if name == "usr/local/bin/kube-apiserver" {
			want = image.NetBindService()
		}
		if got := f.PAXRecords["SCHILY.xattr."+image.CapabilityAttribute]; got != want {
			t.Errorf("%s in the image of %s has the capabilities %x, want %x", name, b.Name, got, want)
		}
	}
	for name, everywhere := range map[string]bool{
		rootfs.CertificatesFile: true, "etc/passwd": true, "etc/group": true, "etc/os-release": true, "tmp/": true, rootfs.StatusFolder + "/base-files": true,
		"usr/sbin/nft": false, "usr/sbin/iptables": false, "usr/sbin/conntrack": false, "usr/sbin/ipset": false, rootfs.StatusFolder + "/nftables": false,
	} {
		if _, ok := found[name]; ok != (everywhere || b.Name == "kube-proxy") {
			t.Errorf("whether the image of %s has %s is %v", b.Name, name, ok)
		}
	}
	if n := found[rootfs.CertificatesFile].Size; n < 100e3 {
		t.Errorf("the CA certificates in the image of %s have %d bytes", b.Name, n)
	}
}

// inLayer is a file of a layer.
type inLayer struct {
	*tar.Header
	sum string
}

// filesOf reads all layers of an image, by names.
func filesOf(t *testing.T, img v1.Image) map[string]inLayer {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]inLayer{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for tr := tar.NewReader(r); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.New()
			if _, err := io.Copy(sum, tr); err != nil {
				t.Fatal(err)
			}
			if _, ok := found[h.Name]; ok && h.Typeflag != tar.TypeDir {
				t.Errorf("%s is in two layers", h.Name)
			}
			found[h.Name] = inLayer{h, hex.EncodeToString(sum.Sum(nil))}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestImages(t *testing.T) {
	r := made(t)
	for _, b := range targets.Images() {
		file := filepath.Join(r.images("amd64"), b.Name+".tar")
		checkConfig(t, file, b, "amd64", r.version, r.source.Commit, r.source.Time)
		checkLayers(t, file, b, r.binary(b, amd64), r.binary(targets.LogRunner, amd64))
		img, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Config.Labels[image.SourceLabel]; got != "https://example.com/fork" {
			t.Errorf("the source of %s is %q", b.Name, got)
		}
	}
}

// TestRevision makes no image say that it is of a commit which its tree differs from.
func TestRevision(t *testing.T) {
	r := &release{source: build.Source{Commit: "0123abc", Dirty: true}}
	for _, b := range targets.Images() {
		if got := r.spec(b, amd64, base{}).Labels()["org.opencontainers.image.revision"]; got != "0123abc-dirty" {
			t.Errorf("%s of a tree that differs from its commit is of the revision %s", b.Name, got)
		}
	}
}
