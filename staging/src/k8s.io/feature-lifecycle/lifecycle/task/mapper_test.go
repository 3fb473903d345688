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

package task

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"
)

// discovering returns a mapper of a server that has widgets, and the group
// other.example.com of an aggregated API, which answers unless it is down.
func discovering(t *testing.T, down *atomic.Bool) meta.ResettableRESTMapper {
	t.Helper()
	groupOf := func(name string) metav1.APIGroup {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}
		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	}
	resources := func(name, plural, kind string) metav1.APIResourceList {
		return metav1.APIResourceList{GroupVersion: name + "/v1", APIResources: []metav1.APIResource{{Name: plural, Namespaced: true, Kind: kind, Verbs: []string{"list"}}}}
	}
	answers := map[string]any{
		"/api":                       metav1.APIVersions{},
		"/apis":                      metav1.APIGroupList{Groups: []metav1.APIGroup{groupOf("example.com"), groupOf("other.example.com")}},
		"/apis/example.com/v1":       resources("example.com", "widgets", "Widget"),
		"/apis/other.example.com/v1": resources("other.example.com", "sprockets", "Sprocket"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case down.Load() && strings.HasPrefix(r.URL.Path, "/apis/other."):
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		}
	}))
	t.Cleanup(server.Close)
	return NewMapper(discovery.NewDiscoveryClientForConfigOrDie(&restclient.Config{Host: server.URL}))
}

// TestMapperReportsFailedDiscovery: what an aggregated API that does not answer has
// is not unknown.
func TestMapperReportsFailedDiscovery(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	mapper := discovering(t, &down)
	clients := Clients{Mapper: mapper}
	sprockets := schema.GroupResource{Group: "other.example.com", Resource: "sprockets"}
	sprocket := schema.GroupKind{Group: "other.example.com", Kind: "Sprocket"}
	says := func(err error) {
		t.Helper()
		if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), "the server does not say what other.example.com/v1 has") {
			t.Errorf("of a group whose discovery fails it says: %v", err)
		}
	}
	_, _, err := served(clients, sprockets)
	says(err)
	_, err = mapper.RESTMapping(sprocket, "v1")
	says(err)
	// Other groups are unaffected.
	if found, is, err := served(clients, widgets.GroupResource()); err != nil || !is || found != widgets {
		t.Errorf("widgets are served: %t, as %v, %v", is, found, err)
	}
	if mapping, err := mapper.RESTMapping(widgetKind.GroupKind(), "v1"); err != nil || mapping.Resource != widgets {
		t.Errorf("the kind Widget is mapped to %v, %v", mapping, err)
	}
	if _, is, err := served(clients, schema.GroupResource{Group: "example.com", Resource: "sprockets"}); err != nil || is {
		t.Errorf("an unknown resource is served: %t, %v", is, err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "unknown.example.com", Kind: "Sprocket"}); !meta.IsNoMatchError(err) {
		t.Errorf("of an unknown kind: %v", err)
	}
	down.Store(false)
	if found, is, err := served(clients, sprockets); err != nil || !is || found.Version != "v1" {
		t.Errorf("once the API answers it is served: %t, as %v, %v", is, found, err)
	}
	if mapping, err := mapper.RESTMapping(sprocket, "v1"); err != nil || mapping.Resource.GroupResource() != sprockets {
		t.Errorf("once the API answers the kind is mapped to %v, %v", mapping, err)
	}
}

// TestFailedDiscoveryIsNotAbsence: no task ends because an aggregated API does not
// answer.
func TestFailedDiscoveryIsNotAbsence(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	clients := Clients{Dynamic: finalizing(t, ""), Mapper: discovering(t, &down)}
	clearing := ClearCollection(schema.GroupResource{Group: "other.example.com", Resource: "sprockets"})
	removing := Remove("one", []byte("apiVersion: other.example.com/v1\nkind: Sprocket\nmetadata: {name: a, namespace: ns}\n"))
	for _, of := range []Task{clearing, removing} {
		var blocked *BlockedError
		if err := of.Run(t.Context(), clients, ignored); err == nil || errors.As(err, &blocked) {
			t.Errorf("%s: %v, want an error that passes by itself", of.Name, err)
		}
		if found, err := of.Find(t.Context(), clients); err == nil {
			t.Errorf("%s: found %v without being able to look", of.Name, found)
		}
	}
}
