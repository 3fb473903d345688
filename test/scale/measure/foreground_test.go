//go:build linux

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

package measure

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestWritesUnderWayAreCountedApart holds back the answers to all PATCHes but the
// first, which finds out whether they are allowed.
func TestWritesUnderWayAreCountedApart(t *testing.T) {
	var patches atomic.Int64
	held, release := make(chan struct{}, 1000), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && patches.Add(1) > 1 {
			held <- struct{}{}
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{}`)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	f, err := StartForeground(t.Context(), kubernetes.NewForConfigOrDie(config), config, 100)
	if err != nil {
		t.Fatal(err)
	}
	const wanted = 3
	for range wanted {
		<-held
	}
	if succeeded, underWay := f.Writes(); succeeded != 0 || underWay < wanted {
		t.Errorf("%d writes succeeded and %d are under way, want 0 and %d or more", succeeded, underWay, wanted)
	}
	close(release)
	for {
		if succeeded, _ := f.Writes(); succeeded >= wanted {
			break
		}
		<-held
	}
	f.Stop()
	if _, underWay := f.Writes(); underWay != 0 {
		t.Errorf("%d writes are under way after the end", underWay)
	}
}
