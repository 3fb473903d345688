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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
)

// hasGap is true if there is a gap of a component that needs something.
func hasGap(c *Cluster, component, next string) bool {
	return slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Component == component && strings.Contains(g.Next, next) })
}

// TestServersOfLeases: servers behind one address are counted by their Leases, and where
// these may not be listed, their number is not known.
func TestServersOfLeases(t *testing.T) {
	const permission = "permission to list leases in the namespace kube-system"
	for name, tc := range map[string]struct {
		addresses []string
		leases    int
		forbidden bool
		missing   bool
		gap       bool
	}{
		"one":                            {[]string{"192.0.2.1"}, 1, false, false, false},
		"two behind one address":         {[]string{"192.0.2.1"}, 2, false, true, false},
		"two without an address":         {nil, 2, false, true, false},
		"Leases that may not be listed":  {[]string{"192.0.2.1"}, 0, true, false, true},
		"neither addresses nor Leases":   {nil, 0, true, false, true},
		"addresses that tell the number": {[]string{"192.0.2.1", "192.0.2.2"}, 0, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, config := newFake(t, 1)
			list(f, slicesPath, "discovery.k8s.io/v1", "EndpointSliceList", slice(tc.addresses...))
			f.text("/metrics", metricsOf("v1.36.3", 100, map[string]bool{"A": false}))
			f.leases(tc.leases)
			if tc.forbidden {
				f.answers[leasesPath] = forbidden
			}
			c, err := Observe(t.Context(), config, Options{ServersOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			missing := slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Component == APIServer && strings.HasPrefix(g.Why, "1 of 2 did not answer") })
			if gap := hasGap(c, APIServer, permission); missing != tc.missing || gap != tc.gap || len(c.Processes) != 1 {
				t.Errorf("a server is missing: %t, want %t; the number is a gap: %t, want %t; %+v", missing, tc.missing, gap, tc.gap, c.Gaps)
			}
		})
	}
}

// TestConfigMapsOfNodesThatJoin: each is read whatever becomes of the other, and only one
// that does not exist is no gap.
func TestConfigMapsOfNodesThatJoin(t *testing.T) {
	kubelet, kubeadm := Setting{Kubelet, "A", true, "the ConfigMap kubelet-config"}, Setting{Scheduler, "B", false, "the ConfigMap kubeadm-config"}
	data := func(key, text string) func(f *fake, path string) {
		return func(f *fake, path string) { f.object(path, corev1.ConfigMap{Data: map[string]string{key: text}}) }
	}
	refused := func(f *fake, path string) { f.answers[path] = forbidden }
	broken := func(f *fake, path string) {
		f.answers[path] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	}
	missing := func(*fake, string) {}
	kubeletData, kubeadmData := data("kubelet", "featureGates: {A: true}"), data("ClusterConfiguration", "scheduler: {extraArgs: [{name: feature-gates, value: B=false}]}")
	for name, tc := range map[string]struct {
		kubelet, kubeadm func(f *fake, path string)
		settings         []Setting
		gaps             []string
	}{
		"both":                        {kubeletData, kubeadmData, []Setting{kubeadm, kubelet}, nil},
		"neither":                     {missing, missing, nil, nil},
		"kubeadm's alone":             {missing, kubeadmData, []Setting{kubeadm}, nil},
		"the kubelet's is refused":    {refused, kubeadmData, []Setting{kubeadm}, []string{Kubelet}},
		"kubeadm's is refused":        {kubeletData, refused, []Setting{kubelet}, []string{APIServer, ControllerManager, Scheduler}},
		"the kubelet's is broken":     {broken, kubeadmData, []Setting{kubeadm}, []string{Kubelet}},
		"the kubelet's is not read":   {data("kubelet", "featureGates: [A]"), kubeadmData, []Setting{kubeadm}, []string{Kubelet}},
		"the kubelet's has no key":    {data("config", "featureGates: {A: true}"), kubeadmData, []Setting{kubeadm}, []string{Kubelet}},
		"kubeadm's has no key":        {kubeletData, data("ClusterStatus", ""), []Setting{kubelet}, []string{APIServer, ControllerManager, Scheduler}},
		"kubeadm's has a wrong value": {kubeletData, data("ClusterConfiguration", "scheduler: {extraArgs: {feature-gates: A}}"), []Setting{kubelet}, []string{Scheduler}},
	} {
		t.Run(name, func(t *testing.T) {
			f, config := newFake(t, 1)
			tc.kubelet(f, mapsPath+"kubelet-config")
			tc.kubeadm(f, mapsPath+"kubeadm-config")
			c, err := Observe(t.Context(), config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.settings, c.Settings); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			var gaps []string
			for _, g := range c.Gaps {
				if strings.Contains(g.Why, "the ConfigMap ku") {
					gaps = append(gaps, g.Component)
				}
			}
			if diff := cmp.Diff(tc.gaps, gaps); diff != "" {
				t.Errorf("gaps (-want +got):\n%s\n%+v", diff, c.Gaps)
			}
		})
	}
}

// TestPodsOfOtherInstallers: components are found by what they run, whatever their labels
// and names are, also several in one Pod.
func TestPodsOfOtherInstallers(t *testing.T) {
	f, config := newFake(t, 1)
	several := pod("control-plane", "manager", "cp1", "example.com/kube-controller-manager:v1.36.3", "/bin/sh", "-c", "exec /usr/local/bin/kube-controller-manager --feature-gates=A=true")
	several.Labels = map[string]string{"k8s-app": ControllerManager}
	several.Spec.Containers = append(several.Spec.Containers, corev1.Container{Name: "s", Image: "example.com/kube-scheduler:v1.36.4", Command: []string{"kube-scheduler", "--feature-gates=B=true"}})
	ended := pod("ended", Proxy, "n1", "example.com/kube-proxy:v1.36.3", "kube-proxy")
	ended.Status.Phase = corev1.PodFailed
	list(f, podsPath, "v1", "PodList", several, ended, pod("waits", "waits", "n1", "busybox", "nc", "-z", "kube-proxy"))
	c, err := Observe(t.Context(), config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"kube-controller-manager control-plane node=cp1 v1.36.3 emulates= complete=false; A=true set=true by the flags of Pod control-plane",
		"kube-scheduler control-plane node=cp1 v1.36.4 emulates= complete=false; B=true set=true by the flags of Pod control-plane",
	}
	if diff := cmp.Diff(want, summary(c)); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	at := slices.IndexFunc(c.Gaps, func(g Gap) bool { return g.Component == Proxy })
	if at < 0 || c.Gaps[at].Why != "no Pod that runs it was found in kube-system" || hasGap(c, Scheduler, "") || hasGap(c, ControllerManager, "") {
		t.Errorf("gaps: %+v, want one of kube-proxy, which is said not to be found", c.Gaps)
	}
}
