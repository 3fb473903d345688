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

package image

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"k8s.io/kubernetes-features/build/release/archive"
	"k8s.io/kubernetes-features/build/release/leftout"
)

const ref = "registry.k8s.io/kube-apiserver-amd64:v1.36.3_feature.1"

var created = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

func apiserver(t *testing.T) Spec {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kube-apiserver", "kube-log-runner"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+" content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base := Layer{Comment: "base", Entries: []archive.Entry{
		{Name: "etc/passwd", Data: []byte("root:x:0:0::/root:/sbin/nologin\n")},
		{Name: "tmp", Dir: true, Mode: 0o1777},
	}}
	return Spec{
		Name: "kube-apiserver", Arch: "amd64", Version: "v1.36.3+feature.1", Revision: "0123abc",
		User: 0, Entrypoint: []string{Runner}, Created: created,
		Layers: append([]Layer{base}, Component("kube-apiserver", filepath.Join(dir, "kube-apiserver"), filepath.Join(dir, "kube-log-runner"),
			map[string]string{CapabilityAttribute: NetBindService()})...),
	}
}

func save(t *testing.T, s Spec) string {
	t.Helper()
	img, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img, validate.Fast); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	file := filepath.Join(t.TempDir(), s.Name+".tar")
	if err := Save(t.Context(), file, img, ref, created); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestConfig(t *testing.T) {
	img, err := tarball.ImageFromPath(save(t, apiserver(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "org.opencontainers.image."
	want := v1.Config{
		User: "0", WorkingDir: "/", Entrypoint: []string{"/go-runner"},
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
		},
		Labels: map[string]string{
			prefix + "title": "kube-apiserver", prefix + "version": "v1.36.3+feature.1", prefix + "revision": "0123abc",
			prefix + "created": "2026-11-21T01:02:03Z", prefix + "vendor": "The Kubernetes Authors",
			prefix + "url": "https://www.kubernetes.dev/resources/keps/3920/", prefix + "documentation": "https://github.com/kubernetes/enhancements/issues/3920",
			prefix + "description": "kube-apiserver of Kubernetes with feature lifecycle (KEP-3920)",
		},
	}
	if diff := cmp.Diff(want, got.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if got.OS != "linux" || got.Architecture != "amd64" || !got.Created.Equal(created) {
		t.Errorf("the image is of %s/%s, made at %s", got.OS, got.Architecture, got.Created)
	}
	if len(got.History) != 3 || len(got.RootFS.DiffIDs) != 3 {
		t.Errorf("the image has %d layers and a history of %d, want 3", len(got.RootFS.DiffIDs), len(got.History))
	}
}

// headers returns what is in the layers of an image, the last of a name.
func headers(t *testing.T, img v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*tar.Header{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		tr := tar.NewReader(r)
		for {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			found[h.Name] = h
		}
		r.Close()
	}
	return found
}

func TestLayers(t *testing.T) {
	img, err := tarball.ImageFromPath(save(t, apiserver(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	found := headers(t, img)
	for name, mode := range map[string]int64{"usr/local/bin/kube-apiserver": 0o755, "go-runner": 0o755, "etc/passwd": 0o644, "tmp/": 0o1777} {
		h, ok := found[name]
		if !ok {
			t.Errorf("%s is not in the image", name)
			continue
		}
		if h.Mode != mode {
			t.Errorf("%s has the mode %o, want %o", name, h.Mode, mode)
		}
	}
	if got := found["usr/local/bin/kube-apiserver"].PAXRecords["SCHILY.xattr.security.capability"]; got != NetBindService() {
		t.Errorf("the capability of kube-apiserver is %q", got)
	}
	if got := found["go-runner"].PAXRecords["SCHILY.xattr.security.capability"]; got != "" {
		t.Errorf("the runner has the capability %q", got)
	}
}

func TestCapability(t *testing.T) {
	// What setcap cap_net_bind_service=+ep writes, as getfattr shows it.
	want := fmt.Sprintf("%x", "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	if got := fmt.Sprintf("%x", NetBindService()); got != want {
		t.Errorf("the attribute is %s, want %s", got, want)
	}
	if flags := binary.LittleEndian.Uint32([]byte(NetBindService())); flags&1 == 0 {
		t.Error("the capability is not effective")
	}
}

// TestCapabilityOfLinux gives the attribute to a file and has libcap read it.
func TestCapabilityOfLinux(t *testing.T) {
	getcap, err := exec.LookPath("getcap")
	if err != nil || os.Getuid() != 0 {
		leftout.Skip(t, "needs root and getcap (Debian's libcap2-bin)")
	}
	file := filepath.Join(t.TempDir(), "kube-apiserver")
	if err := os.WriteFile(file, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setxattr(file, CapabilityAttribute, []byte(NetBindService()), 0); err != nil {
		if errors.Is(err, syscall.ENOTSUP) {
			leftout.Skip(t, "this file system has no attributes: "+err.Error())
		}
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), getcap, file).CombinedOutput()
	if want := file + " cap_net_bind_service=ep\n"; err != nil || string(out) != want {
		t.Errorf("the file has %q: %v; want %q", out, err, want)
	}
}

func TestBytesAreTheSame(t *testing.T) {
	var all [2][]byte
	for i := range all {
		content, err := os.ReadFile(save(t, apiserver(t)))
		if err != nil {
			t.Fatal(err)
		}
		all[i] = content
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("two archives of one image differ")
	}
}

// TestNamesThatReadersFind reads an archive as kind, Docker and containerd do.
func TestNamesThatReadersFind(t *testing.T) {
	f, err := os.Open(save(t, apiserver(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	var order []string
	tr := tar.NewReader(f)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		order = append(order, h.Name)
	}
	// kind stops at the first of the two.
	if slices.Index(order, "manifest.json") > slices.Index(order, "repositories") {
		t.Errorf("repositories comes before manifest.json: %v", order)
	}
	var manifests []dockerManifest
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil || len(manifests) != 1 {
		t.Fatalf("manifest.json has %d images: %v", len(manifests), err)
	}
	if !slices.Equal(manifests[0].RepoTags, []string{ref}) {
		t.Errorf("the image is called %v", manifests[0].RepoTags)
	}
	for _, name := range append(manifests[0].Layers, manifests[0].Config) {
		if _, ok := files[name]; !ok {
			t.Errorf("manifest.json names %s, which is not there", name)
		}
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json has %d images: %v", len(index.Manifests), err)
	}
	m := index.Manifests[0]
	if m.Annotations["io.containerd.image.name"] != ref || m.Platform.Architecture != "amd64" {
		t.Errorf("containerd finds the name %q for %s", m.Annotations["io.containerd.image.name"], m.Platform.Architecture)
	}
	var manifest v1.Manifest
	if err := json.Unmarshal(files["blobs/sha256/"+m.Digest.Hex], &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1.36.3+feature.1" {
		t.Errorf("the manifest's annotations are %v", manifest.Annotations)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || len(manifest.Layers) != 3 {
		t.Errorf("the manifest is a %s with a config of %s and %d layers", manifest.MediaType, manifest.Config.MediaType, len(manifest.Layers))
	}
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	var repositories map[string]map[string]string
	if err := json.Unmarshal(files["repositories"], &repositories); err != nil || repositories["registry.k8s.io/kube-apiserver-amd64"]["v1.36.3_feature.1"] == "" {
		t.Errorf("repositories is %s: %v", files["repositories"], err)
	}
}

func TestSaveWithoutTag(t *testing.T) {
	img, err := Build(apiserver(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(t.Context(), filepath.Join(t.TempDir(), "a.tar"), img, "localhost:5000/kubectl", created); err == nil {
		t.Error("an image without a tag was saved")
	}
}

func TestBuildWithoutBinary(t *testing.T) {
	s := apiserver(t)
	s.Layers = Component("kubectl", filepath.Join(t.TempDir(), "missing"), "", nil)
	if _, err := Build(s); err == nil {
		t.Error("an image was made of a binary that is missing")
	}
}
