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

package registry

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// client pulls as a runtime does: it asks for the version of the API, answers a challenge
// with its password, resolves a tag, and then reads all by digests.
type client struct {
	t *testing.T
	// server is a URL, and registry, if any, the one that it is a mirror of.
	server, registry string
	// user and password are sent when the server asks for them.
	user, password string
}

// do sends a request, and sends it again with a password if one is wanted.
func (c client) do(method, path string, header http.Header) (status int, got http.Header, body []byte) {
	c.t.Helper()
	send := func(authorized bool) *http.Response {
		url := c.server + "/v2/" + path
		if c.registry != "" {
			url += "?ns=" + c.registry
		}
		request, err := http.NewRequestWithContext(c.t.Context(), method, url, http.NoBody)
		if err != nil {
			c.t.Fatal(err)
		}
		for key := range header {
			request.Header.Set(key, header.Get(key))
		}
		if authorized {
			request.SetBasicAuth(c.user, c.password)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			c.t.Fatal(err)
		}
		return response
	}
	response := send(false)
	if response.StatusCode == http.StatusUnauthorized && strings.HasPrefix(response.Header.Get("WWW-Authenticate"), "Basic ") && c.user != "" {
		if err := response.Body.Close(); err != nil {
			c.t.Fatal(err)
		}
		response = send(true)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.Header, body
}

// blob reads a blob in two ranges, as a pull does that was interrupted.
func (c client) blob(name string, d descriptor) []byte {
	c.t.Helper()
	path := name + "/blobs/" + d.Digest
	const first = 3
	status, _, begin := c.do(http.MethodGet, path, http.Header{"Range": {"bytes=0-2"}})
	if status != http.StatusPartialContent || len(begin) != first {
		c.t.Fatalf("got %d and %d bytes of %s, want %d bytes of it", status, len(begin), path, first)
	}
	status, _, rest := c.do(http.MethodGet, path, http.Header{"Range": {"bytes=3-"}})
	if status != http.StatusPartialContent {
		c.t.Fatalf("got %d for the rest of %s", status, path)
	}
	data := append(begin, rest...)
	if digest(data) != d.Digest || len(data) != d.Size {
		c.t.Errorf("%s has %d bytes with the digest %s, want %d with %s", path, len(data), digest(data), d.Size, d.Digest)
	}
	return data
}

// pull returns the configuration and the files of the layers of an image.
func (c client) pull(name, tag string) (config []byte, files map[string]string) {
	c.t.Helper()
	if status, _, _ := c.do(http.MethodGet, "", nil); status != http.StatusOK {
		c.t.Fatalf("the API's version: got %d", status)
	}
	status, header, body := c.do(http.MethodHead, name+"/manifests/"+tag, http.Header{"Accept": {manifestType}})
	if status != http.StatusOK || len(body) != 0 {
		c.t.Fatalf("resolving %s of %s: got %d and %d bytes", tag, name, status, len(body))
	}
	at := header.Get(digestHeader)
	status, header, body = c.do(http.MethodGet, name+"/manifests/"+at, http.Header{"Accept": {manifestType}})
	if status != http.StatusOK || header.Get("Content-Type") != manifestType || digest(body) != at {
		c.t.Fatalf("the manifest %s of %s: got %d, %q and the digest %s", at, name, status, header.Get("Content-Type"), digest(body))
	}
	var m manifest
	if err := json.Unmarshal(body, &m); err != nil || m.Config == nil {
		c.t.Fatalf("the manifest is %s: %v", body, err)
	}
	files = map[string]string{}
	for _, layer := range m.Layers {
		for r := tar.NewReader(bytes.NewReader(c.blob(name, layer))); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				c.t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				c.t.Fatal(err)
			}
			files[h.Name] = string(data)
		}
	}
	return c.blob(name, *m.Config), files
}

// codes are those of the errors in a body.
func codes(t *testing.T, body []byte) (codes []string) {
	t.Helper()
	var refused struct {
		Errors []struct{ Code, Message string }
	}
	if err := json.Unmarshal(body, &refused); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, e := range refused.Errors {
		codes = append(codes, e.Code)
		if e.Message == "" {
			t.Errorf("the error %s says nothing", e.Code)
		}
	}
	return codes
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// archive writes an archive of images in OCI's layout: of blobs of another registry, with
// an index. Files without content are directories.
func archive(t *testing.T, files map[string][]byte) string {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for name, data := range files {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg}
		if data == nil {
			h = &tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeDir}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// saved are the files of an archive of one image with this name.
func saved(t *testing.T, name string) map[string][]byte {
	t.Helper()
	other := New()
	if err := other.AddFiles("x:1", map[string]string{"etc/passwd": "root", "file": strings.Repeat("x", 5000)}); err != nil {
		t.Fatal(err)
	}
	index, err := json.Marshal(manifest{SchemaVersion: 2, MediaType: indexType, Manifests: []descriptor{
		{MediaType: manifestType, Digest: other.tags["x:1"], Annotations: map[string]string{nameAnnotation: name}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"blobs/": nil, "blobs/sha256/": nil, "index.json": index, "oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	for d, b := range other.blobs {
		files["blobs/sha256/"+strings.TrimPrefix(d, "sha256:")] = b.data
	}
	return files
}

func TestPullFromMirror(t *testing.T) {
	r := New()
	if err := r.AddArchive(archive(t, saved(t, "registry.k8s.io/e2e/busybox:1.37"))); err != nil {
		t.Fatal(err)
	}
	if got := r.Registries(); !slices.Equal(got, []string{"registry.k8s.io"}) {
		t.Errorf("the registry has images of %q", got)
	}
	c := client{t: t, server: serve(t, r), registry: "registry.k8s.io"}
	config, files := c.pull("e2e/busybox", "1.37")
	if !bytes.Contains(config, []byte(runtime.GOARCH)) {
		t.Errorf("the configuration is %s", config)
	}
	if diff := cmp.Diff(map[string]string{"etc/passwd": "root", "file": strings.Repeat("x", 5000)}, files); diff != "" {
		t.Errorf("the files of the image (-want +got)\n%s", diff)
	}
	// The same name of another registry is another image.
	c.registry = "docker.io"
	if status, _, body := c.do(http.MethodGet, "e2e/busybox/manifests/1.37", nil); status != http.StatusNotFound || !slices.Equal(codes(t, body), []string{codeManifestUnknown}) {
		t.Errorf("got %d: %s", status, body)
	}
}

func TestPullWithPassword(t *testing.T) {
	r := New()
	if err := r.AddFiles("private:v1", map[string]string{"file": "content"}); err != nil {
		t.Fatal(err)
	}
	c := client{t: t, server: serve(t, WithPassword(r, "kind", "secret")), user: "kind", password: "secret"}
	if _, files := c.pull("private", "v1"); files["file"] != "content" {
		t.Errorf("the image has %q", files)
	}
	if got := r.Registries(); len(got) > 0 {
		t.Errorf("an image without a registry is one of %q", got)
	}
	for _, refused := range []client{{t: t, server: c.server}, {t: t, server: c.server, user: "kind", password: "other"}, {t: t, server: c.server, user: "other", password: "secret"}} {
		status, _, body := refused.do(http.MethodGet, "private/manifests/v1", nil)
		if status != http.StatusUnauthorized || !slices.Equal(codes(t, body), []string{codeUnauthorized}) {
			t.Errorf("as %q: got %d: %s", refused.user, status, body)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := client{t: t, server: serve(t, New())}
	for _, test := range []struct {
		method, path, code string
		status             int
	}{
		{http.MethodGet, "a/manifests/v1", codeManifestUnknown, http.StatusNotFound},
		{http.MethodGet, "a/manifests/sha256:00", codeManifestUnknown, http.StatusNotFound},
		{http.MethodGet, "a/b/blobs/sha256:00", codeBlobUnknown, http.StatusNotFound},
		{http.MethodGet, "a/tags/list", codeUnsupported, http.StatusNotFound},
		{http.MethodGet, "a", codeUnsupported, http.StatusNotFound},
		{http.MethodPost, "a/blobs/uploads/", codeUnsupported, http.StatusMethodNotAllowed},
	} {
		status, _, body := c.do(test.method, test.path, nil)
		if status != test.status || !slices.Equal(codes(t, body), []string{test.code}) {
			t.Errorf("%s of %s: got %d, %s; want %d with %s", test.method, test.path, status, body, test.status, test.code)
		}
	}
}

func TestArchivesThatCannotBeServed(t *testing.T) {
	const name = "registry.k8s.io/a:1"
	for complaint, change := range map[string]func(map[string][]byte){
		"no index.json": func(files map[string][]byte) { delete(files, "index.json") },
		"invalid":       func(files map[string][]byte) { files["index.json"] = []byte("no JSON") },
		"has no image":  func(files map[string][]byte) { files["index.json"] = []byte("{}") },
		"not say the name": func(files map[string][]byte) {
			files["index.json"] = bytes.ReplaceAll(files["index.json"], []byte(name), nil)
		},
		"there is no": func(files map[string][]byte) {
			for file, data := range files {
				// The configuration.
				if bytes.Contains(data, []byte("rootfs")) {
					delete(files, file)
				}
			}
		},
	} {
		files := saved(t, name)
		change(files)
		r := New()
		if err := r.AddArchive(archive(t, files)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("got the error %v, want one with %q", err, complaint)
		}
		if len(r.tags)+len(r.blobs) > 0 {
			t.Errorf("%q: the registry has %v", complaint, r.tags)
		}
	}
	if err := New().AddArchive(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got the error %v for a missing archive", err)
	}
}

// TestArchiveThatIsLost removes the archive after it was added.
func TestArchiveThatIsLost(t *testing.T) {
	r := New()
	file := archive(t, saved(t, "registry.k8s.io/a:1"))
	if err := r.AddArchive(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c := client{t: t, server: serve(t, r), registry: "registry.k8s.io"}
	if status, _, body := c.do(http.MethodGet, "a/manifests/1", nil); status != http.StatusInternalServerError || !slices.Equal(codes(t, body), []string{codeUnknown}) {
		t.Errorf("got %d: %s", status, body)
	}
}

// TestIndex serves an index of two machines under its own type.
func TestIndex(t *testing.T) {
	r := New()
	if err := r.AddFiles("x:1", map[string]string{"file": ""}); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(manifest{SchemaVersion: 2, Manifests: []descriptor{{MediaType: manifestType, Digest: r.tags["x:1"]}}})
	if err != nil {
		t.Fatal(err)
	}
	r.tags["x:2"] = r.addData(indexType, data).Digest
	if err := complete(r.blobs, r.tags["x:2"]); err != nil {
		t.Error(err)
	}
	c := client{t: t, server: serve(t, r)}
	if _, header, _ := c.do(http.MethodGet, "x/manifests/2", nil); header.Get("Content-Type") != indexType {
		t.Errorf("the index is sent as %q", header.Get("Content-Type"))
	}
	delete(r.blobs, r.tags["x:1"])
	if err := complete(r.blobs, r.tags["x:2"]); err == nil || !strings.Contains(err.Error(), "no manifest "+r.tags["x:1"]) {
		t.Errorf("got the error %v", err)
	}
}
