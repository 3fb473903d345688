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
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes-features/hack/apispec"
)

// TestWrite: the directory has the new files only, and the old ones when a new one
// cannot be written.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, map[string]apispec.Document{"discovery/old.json": {"a": "b"}, "openapi-spec/v3/old.json": {}}); err != nil {
		t.Fatal(err)
	}
	if err := write(dir, map[string]apispec.Document{"discovery/new.json": {"a": make(chan int)}}); err == nil {
		t.Error("a document with a channel: no error")
	}
	old := filepath.Join(dir, "discovery", "old.json")
	if data, err := os.ReadFile(old); err != nil || string(data) != "{\n  \"a\": \"b\"\n}\n" {
		t.Errorf("after the failure the old file is %q, %v", data, err)
	}
	if err := write(dir, map[string]apispec.Document{"discovery/new.json": {}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old file is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "discovery", "new.json")); err != nil {
		t.Error(err)
	}
}

// serving is a server that answers with these documents.
func serving(t *testing.T, documents map[string]string) server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if strings.Contains(r.Header.Get("Accept"), "APIGroupDiscoveryList") {
			path += " aggregated"
		}
		document, ok := documents[path]
		if !ok {
			http.NotFound(w, r)
		}
		_, _ = w.Write([]byte(document))
	}))
	t.Cleanup(s.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return server{client.Discovery().RESTClient()}
}

// TestAllGroups: each document of the index has its files, named as upstream's.
func TestAllGroups(t *testing.T) {
	documents := map[string]string{
		"/openapi/v3":         `{"paths": {"api": {}, "apis/apps/v1": {}, "version": {}}}`,
		"/openapi/v2":         `{"info": {"version": "v1.36.3"}}`,
		"/apis aggregated":    `{"items": []}`,
		"/openapi/v3/api":     `{}`,
		"/openapi/v3/version": `{}`, "/openapi/v3/apis/apps/v1": `{"info": {"version": "v1.36.3"}}`,
		"/api": `{"serverAddressByClientCIDRs": [{"serverAddress": "127.0.0.1:1"}]}`, "/apis/apps/v1": `{"resources": []}`,
	}
	files, err := serving(t, documents).allGroups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"openapi-spec/swagger.json":                   "unversioned",
		"openapi-spec/v3/api_openapi.json":            "{}",
		"openapi-spec/v3/apis__apps__v1_openapi.json": "unversioned",
		"openapi-spec/v3/version_openapi.json":        "{}",
		"discovery/aggregated_v2.json":                "items",
		"discovery/api.json":                          "10.10.10.10:8050",
		"discovery/apis__apps__v1.json":               "resources",
	} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	if len(files) != 7 {
		t.Errorf("there are %d files", len(files))
	}
	delete(documents, "/openapi/v3/version")
	if _, err := serving(t, documents).allGroups(t.Context()); err == nil || !strings.Contains(err.Error(), "GET /openapi/v3/version") {
		t.Errorf("without one of the documents: %v", err)
	}
	if _, err := serving(t, map[string]string{"/openapi/v3": "{}"}).allGroups(t.Context()); err == nil || !strings.Contains(err.Error(), "names no documents") {
		t.Errorf("without an index: %v", err)
	}
}
