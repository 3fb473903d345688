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
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/feature-lifecycle/lifecycle/control"
)

// TestTheFirstServerOfAClusterBecomesReadyFirst, unless it waits itself for what the
// server flow writes.
func TestTheFirstServerOfAClusterBecomesReadyFirst(t *testing.T) {
	const feature = `{"metadata":{"namespace":"kube-system","name":"A"}}`
	for name, test := range map[string]struct {
		decides control.Options
		stored  string
		want    int32
	}{
		"it is the first":         {control.Options{}, "", 3},
		"there are Features":      {control.Options{}, feature, 0},
		"some are set centrally":  {control.Options{Central: []string{"A"}}, "", 0},
		"some are dynamic":        {control.Options{Dynamic: []string{"A"}}, "", 0},
		"Features cannot be read": {control.Options{}, "no list", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/apis/features.k8s.io/v1alpha1/namespaces/kube-system/features":
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"kind":"FeatureList","apiVersion":"features.k8s.io/v1alpha1","items":[` + test.stored + `]}`))
				case "/readyz":
					if asked.Add(1) < 3 {
						http.Error(w, "[-]poststarthook/rbac/bootstrap-roles failed: not finished", http.StatusInternalServerError)
					}
				default:
					t.Errorf("unexpected request %s", r.URL)
				}
			}))
			defer server.Close()
			clients, err := newLifecycleClients(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			hooks := &lifecycleHooks{own: clients, control: test.decides}
			hooks.letBecomeReady(t.Context(), time.Minute)
			if n := asked.Load(); n != test.want {
				t.Errorf("the server was asked %d times, want %d", n, test.want)
			}
		})
	}
}
