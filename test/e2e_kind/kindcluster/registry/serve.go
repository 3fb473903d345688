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
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"time"
)

// Codes of errors of the distribution API.
const (
	codeUnauthorized    = "UNAUTHORIZED"
	codeUnsupported     = "UNSUPPORTED"
	codeBlobUnknown     = "BLOB_UNKNOWN"
	codeManifestUnknown = "MANIFEST_UNKNOWN"
	codeUnknown         = "UNKNOWN"
)

// namespaceParameter names the registry that a mirror is asked in place of.
const namespaceParameter = "ns"

// digestHeader has the digest of what is sent.
const digestHeader = "Docker-Content-Digest"

// ServeHTTP answers what a runtime asks to pull an image.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "images are only read here")
		return
	}
	rest, ok := strings.CutPrefix(request.URL.Path, "/v2/")
	dir, reference := path.Split(rest)
	name, kind := path.Split(strings.TrimSuffix(dir, "/"))
	name = strings.TrimSuffix(name, "/")
	switch {
	case ok && rest == "":
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	case ok && kind == "manifests":
		r.serveManifest(w, request, name, reference)
	case ok && kind == "blobs":
		r.serveBlob(w, request, reference)
	default:
		refuse(w, http.StatusNotFound, codeUnsupported, "the distribution API has no "+request.URL.Path+" that is served here")
	}
}

// serveManifest sends the manifest of a tag or of a digest.
func (r *Registry) serveManifest(w http.ResponseWriter, request *http.Request, name, reference string) {
	at := reference
	if !strings.Contains(reference, ":") {
		at = r.tags[path.Join(request.URL.Query().Get(namespaceParameter), name)+":"+reference]
	}
	b, ok := r.blobs[at]
	if !ok {
		refuse(w, http.StatusNotFound, codeManifestUnknown, "there is no "+name+" of "+reference)
		return
	}
	m, data, err := b.manifest()
	if err != nil {
		refuse(w, http.StatusInternalServerError, codeUnknown, err.Error())
		return
	}
	w.Header().Set(digestHeader, at)
	w.Header().Set("Content-Type", m.MediaType)
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(data))
}

// serveBlob sends a configuration or a layer, or a range of it.
func (r *Registry) serveBlob(w http.ResponseWriter, request *http.Request, digest string) {
	b, ok := r.blobs[digest]
	if !ok {
		refuse(w, http.StatusNotFound, codeBlobUnknown, "there is no "+digest)
		return
	}
	content, closer, err := b.open()
	if err != nil {
		refuse(w, http.StatusInternalServerError, codeUnknown, err.Error())
		return
	}
	defer func() { _ = closer.Close() }()
	w.Header().Set(digestHeader, digest)
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, request, "", time.Time{}, content)
}

// WithPassword lets only those through who have a user's password.
func WithPassword(handler http.Handler, user, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		u, p, _ := request.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(u), []byte(user))&subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 0 {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			refuse(w, http.StatusUnauthorized, codeUnauthorized, "a user and a password are needed")
			return
		}
		handler.ServeHTTP(w, request)
	})
}

// refuse sends an error in the form of the distribution API.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
}
