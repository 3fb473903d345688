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

package observe

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRedirectsAreNotFollowed: a kubelet, a Pod or a server that redirects does not get the credentials of the caller.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var visited atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited.Store(true) }))
	defer elsewhere.Close()
	f, config := newFake(t, 1)
	config.BearerToken = "secret"
	list(f, "/api/v1/nodes", "v1", "NodeList", f.node("n1", "v1.36.3", nil, nil))
	list(f, podsPath, "v1", "PodList", pod("s", Scheduler, "cp1", "kube-scheduler:v1.36.3", "kube-scheduler"))
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }
	const node = "/api/v1/nodes/n1/proxy"
	for _, path := range []string{"/metrics", node + "/metrics", node + "/configz", node + "/flagz", podsPath + "/https:s:10259/proxy/metrics"} {
		f.answers[path] = redirect
	}
	c, err := Observe(t.Context(), config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if visited.Load() {
		t.Error("a redirect was followed to another server")
	}
	for _, component := range []string{APIServer, Kubelet} {
		if !slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Component == component && strings.Contains(g.Why, "redirects to") }) {
			t.Errorf("%s: no gap names the redirect: %+v", component, c.Gaps)
		}
	}
}
