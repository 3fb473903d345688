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

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
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

// TestConfigurationOfProxies: it is read from the ConfigMap that their Pods mount, whatever its name is, and from no
// other one.
func TestConfigurationOfProxies(t *testing.T) {
	run := func(args ...string) corev1.Pod {
		return pod("kube-proxy-x", Proxy, "n1", "example.com/kube-proxy:v1.36.3", append([]string{"kube-proxy"}, args...)...)
	}
	items := configured(run("--config=/etc/proxy/file"), "mine", "/etc/proxy/")
	items.Spec.Volumes[1].ConfigMap.Items = []corev1.KeyToPath{{Key: "config", Path: "file"}}
	subPath := configured(run("--config", "/etc/proxy.yaml"), "mine", "/etc/proxy.yaml")
	subPath.Spec.Containers[0].VolumeMounts[0].SubPath = "config"
	for name, tc := range map[string]struct {
		pod corev1.Pod
		// source is where the gate is from, "" for a gap with a cause.
		source, why string
	}{
		"another ConfigMap":      {configured(run("--config=/var/lib/kube-proxy-config/config"), "mine", "/var/lib/kube-proxy-config"), "the ConfigMap mine", ""},
		"items":                  {items, "the ConfigMap mine", ""},
		"a path in it":           {subPath, "the ConfigMap mine", ""},
		"a key that is missing":  {configured(run("--config=/etc/proxy/config.conf"), "mine", "/etc/proxy"), "", "the ConfigMap mine: it has no key config.conf"},
		"a file of the node":     {configured(run("--config=/etc/proxy-of-node/config"), "mine", "/etc/proxy"), "", "no ConfigMap of its volumes"},
		"a file of the image":    {run("--config=/config.conf"), "", "no ConfigMap of its volumes"},
		"no such ConfigMap":      {configured(run("--config=/etc/proxy/config"), "other", "/etc/proxy"), "", "not served"},
		"flags without the file": {run("--feature-gates=A=true"), "the flags of Pod kube-proxy-x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, config := newFake(t, 1)
			list(f, podsPath, "v1", "PodList", tc.pod)
			f.object(mapsPath+"mine", corev1.ConfigMap{Data: map[string]string{"config": "featureGates: {A: true}"}})
			f.object(mapsPath+"kube-proxy", corev1.ConfigMap{Data: map[string]string{"kubeconfig": "", "config.conf": "featureGates: {A: false}"}})
			c, err := Observe(t.Context(), config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, why := "", ""
			for _, p := range c.Processes {
				if p.Component == Proxy && p.Gates["A"].Enabled {
					got = p.Gates["A"].Source
				}
			}
			for _, g := range c.Gaps {
				if g.Component == Proxy {
					why = g.Why
				}
			}
			if got != tc.source || !strings.Contains(why, tc.why) || (why == "") != (tc.why == "") {
				t.Errorf("the gate is on by %q, want %q; the gap is %q, want %q", got, tc.source, why, tc.why)
			}
		})
	}
}

// TestRefusedBehindTheProxy: a kubelet that refuses the API server is not a permission that the caller lacks, and says
// nothing of other kubelets.
func TestRefusedBehindTheProxy(t *testing.T) {
	f, config := newFake(t, 1)
	bad, good := f.node("bad", "v1.36.3", nil, nil), f.node("good", "v1.36.3", map[string]bool{"A": true}, nil)
	for _, path := range []string{"/metrics", "/configz", "/flagz"} {
		f.answers["/api/v1/nodes/bad/proxy"+path] = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Forbidden (user=kube-apiserver-kubelet-client, verb=get, resource=nodes)", http.StatusForbidden)
		}
	}
	list(f, "/api/v1/nodes", "v1", "NodeList", bad, good)
	c, err := Observe(t.Context(), config, Options{Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	var kubelets, whys []string
	for _, p := range c.Processes {
		if p.Component == Kubelet {
			kubelets = append(kubelets, p.Instance)
		}
	}
	for _, g := range c.Gaps {
		if g.Component == Kubelet {
			whys = append(whys, g.Why+g.Next)
		}
	}
	if diff := cmp.Diff([]string{"good"}, kubelets); diff != "" {
		t.Errorf("kubelets (-want +got):\n%s", diff)
	}
	if len(whys) != 1 || !strings.Contains(whys[0], "user=kube-apiserver-kubelet-client") || strings.Contains(whys[0], "permission to get nodes/proxy") {
		t.Errorf("gaps %q, want one with what the kubelet answered, and no permission of the caller", whys)
	}
}

// TestTimeForTheFirstAnswer: the total time holds for the version and for lists, too.
func TestTimeForTheFirstAnswer(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	f, config := newFake(t, 1)
	f.answers["/api/v1/nodes"] = hang
	f.text("/metrics", metricsOf("v1.36.3", 1, map[string]bool{"A": true}))
	c, err := Observe(t.Context(), config, Options{Timeout: 2e9})
	if err != nil {
		t.Fatal(err)
	}
	if !hasGap(c, Kubelet, "--observe-timeout") {
		t.Errorf("gaps %+v, want one of the kubelets that needs more time", c.Gaps)
	}
	f.answers["/version"] = hang
	if _, err := Observe(t.Context(), config, Options{Timeout: 1e8}); err == nil || !strings.Contains(err.Error(), "--observe-timeout") {
		t.Errorf("got the error %v, want one that names --observe-timeout", err)
	}
}
