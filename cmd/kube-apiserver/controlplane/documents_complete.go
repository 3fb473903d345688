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

package controlplane

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/handler3"
)

const (
	documentsRoot = "/openapi/v3"
	groupVersions = documentsRoot + "/"
)

// withCompleteDocuments serves the server itself the complete documents of OpenAPI
// v3. MutatingAdmissionPolicies, which run in the server, merge their apply
// configurations into objects by them (apiserver's mutating/patch,
// NewTypeConverterManager): an object with a field that is in no document would be
// refused, although it was stored while the field's gate was on.
//
// Their client asks at documentsRoot for the addresses of documents, which have a
// hash of what is there, so both answers are replaced.
func withCompleteDocuments(next http.Handler, complete *handler3.OpenAPIService) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, documentsRoot) || !fromThisServer(r) {
			next.ServeHTTP(w, r)
			return
		}
		addresses := addressesOf(http.HandlerFunc(complete.HandleDiscovery), r)
		if _, ok := addresses[strings.TrimPrefix(r.URL.Path, groupVersions)]; ok {
			complete.HandleGroupVersion(w, r)
			return
		}
		if r.URL.Path != documentsRoot || len(addresses) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		published := addressesOf(next, r)
		for name, address := range addresses {
			// A group that the aggregator does not publish is none.
			if _, ok := published[name]; ok {
				published[name] = address
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(handler3.OpenAPIV3Discovery{Paths: published}); err != nil {
			klog.FromContext(r.Context()).Error(err, "Answering this server with the addresses of the complete OpenAPI documents")
		}
	})
}

// fromThisServer is true for requests over the server's own loopback connection.
func fromThisServer(r *http.Request) bool {
	requester, ok := genericapirequest.UserFrom(r.Context())
	return ok && requester.GetName() == user.APIServerUser
}

// addressesOf are the addresses of documents that a handler answers with, none if it
// does not.
func addressesOf(handler http.Handler, r *http.Request) map[string]handler3.OpenAPIV3DiscoveryGroupVersion {
	r = r.Clone(r.Context())
	r.URL.Path = documentsRoot
	// The whole answer is needed, in plain text.
	for _, header := range []string{"Accept-Encoding", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since", "Range", "If-Range"} {
		r.Header.Del(header)
	}
	w := &answer{header: http.Header{}}
	handler.ServeHTTP(w, r)
	var discovery handler3.OpenAPIV3Discovery
	if w.failed || json.Unmarshal(w.body.Bytes(), &discovery) != nil {
		return nil
	}
	return discovery.Paths
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	body   bytes.Buffer
	failed bool
}

func (a *answer) Header() http.Header            { return a.header }
func (a *answer) Write(data []byte) (int, error) { return a.body.Write(data) }
func (a *answer) WriteHeader(code int)           { a.failed = code != http.StatusOK }
