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
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	podsPath   = "/api/v1/namespaces/kube-system/pods"
	mapsPath   = "/api/v1/namespaces/kube-system/configmaps/"
)

// kubeadmLike is a cluster as kubeadm makes one: three servers of which one has another
// value, two nodes of which one has, and components that listen on loopback addresses.
func kubeadmLike(t *testing.T) (*Cluster, *fake) {
	t.Helper()
	f, config := newFake(t, 3)
	list(f, slicesPath, "discovery.k8s.io/v1", "EndpointSliceList", slice("192.0.2.1", "192.0.2.2", "192.0.2.3"))
	f.answers["/metrics"] = func(w http.ResponseWriter, r *http.Request) {
		n := serverOf(r)
		_, _ = w.Write([]byte(metricsOf("v1.36.3", 100+n, map[string]bool{"A": n == 1, "B": true})))
	}
	f.answers["/flagz"] = forbidden
	list(f, "/api/v1/nodes", "v1", "NodeList",
		f.node("n1", "v1.36.3", map[string]bool{"A": false, "B": true}, nil),
		f.node("n2", "v1.35.4", map[string]bool{"A": true, "B": true}, map[string]bool{"A": true}),
	)
	list(f, podsPath, "v1", "PodList",
		pod("coredns-x", "coredns", "n1", "registry.k8s.io/coredns/coredns:v1.12.1"),
		pod("kube-apiserver-cp1", APIServer, "cp1", "registry.k8s.io/kube-apiserver:v1.36.3", "kube-apiserver"),
		pod("kube-controller-manager-cp1", ControllerManager, "cp1", "registry.k8s.io/kube-controller-manager:v1.36.3", "/go-runner", "kube-controller-manager", "--feature-gates=A=true"),
		pod("kube-scheduler-cp1", Scheduler, "cp1", "registry.k8s.io/kube-scheduler:v1.36.3@sha256:0", "kube-scheduler", "--emulated-version=kube=1.35"),
		configured(pod("kube-proxy-x", Proxy, "n1", "registry.k8s.io/kube-proxy:v1.36.3", "/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"), "kube-proxy", "/var/lib/kube-proxy"),
	)
	for name, data := range map[string]map[string]string{
		"kube-proxy":     {"config.conf": "kind: KubeProxyConfiguration\nfeatureGates: {B: false}\n"},
		"kubelet-config": {"kubelet": "kind: KubeletConfiguration\nfeatureGates:\n  A: true\n"},
		"kubeadm-config": {"ClusterConfiguration": "apiServer:\n  extraArgs:\n  - {name: feature-gates, value: \"A=true\"}\nscheduler:\n  extraArgs: {feature-gates: \"B=false\"}\n"},
	} {
		f.object(mapsPath+name, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data})
	}
	c, err := Observe(t.Context(), config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// summary is a line for each process, with its gates.
func summary(c *Cluster) []string {
	var lines []string
	for _, p := range c.Processes {
		line := fmt.Sprintf("%s %s node=%s %s emulates=%s complete=%t", p.Component, p.Instance, p.Node, p.Version, p.Emulates, p.Complete)
		for _, name := range []string{"A", "B"} {
			if v, ok := p.Gates[name]; ok {
				explicit := "unknown"
				if v.Explicit != nil {
					explicit = fmt.Sprint(*v.Explicit)
				}
				line += fmt.Sprintf("; %s=%t set=%s by %s", name, v.Enabled, explicit, v.Source)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestObserve(t *testing.T) {
	c, _ := kubeadmLike(t)
	// Which server answers first depends on connections.
	for i := range c.Processes {
		if c.Processes[i].Component == APIServer {
			c.Processes[i].Instance = "server"
		}
	}
	got := summary(c)
	slices.Sort(got[:3])
	want := []string{
		"kube-apiserver server node= v1.36.3 emulates= complete=true; A=false set=false by its metrics; B=true set=false by its metrics",
		"kube-apiserver server node= v1.36.3 emulates= complete=true; A=false set=false by its metrics; B=true set=false by its metrics",
		"kube-apiserver server node= v1.36.3 emulates= complete=true; A=true set=false by its metrics; B=true set=false by its metrics",
		"kube-controller-manager kube-controller-manager-cp1 node=cp1 v1.36.3 emulates= complete=false; A=true set=true by the flags of Pod kube-controller-manager-cp1",
		"kube-scheduler kube-scheduler-cp1 node=cp1 v1.36.3 emulates=1.35 complete=false",
		"kubelet n1 node=n1 v1.36.3 emulates= complete=true; A=false set=false by its metrics; B=true set=false by its metrics",
		"kubelet n2 node=n2 v1.35.4 emulates= complete=true; A=true set=true by its metrics; B=true set=false by its metrics",
		"kube-proxy kube-proxy-x node=n1 v1.36.3 emulates= complete=false; B=false set=true by the ConfigMap kube-proxy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	settings := []Setting{
		{APIServer, "A", true, "the ConfigMap kubeadm-config"}, {Scheduler, "B", false, "the ConfigMap kubeadm-config"}, {Kubelet, "A", true, "the ConfigMap kubelet-config"},
	}
	if diff := cmp.Diff(settings, c.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	joins := map[string]string{
		APIServer: "the ConfigMap kubeadm-config", ControllerManager: "the ConfigMap kubeadm-config", Scheduler: "the ConfigMap kubeadm-config",
		Kubelet: "the ConfigMap kubelet-config",
	}
	if diff := cmp.Diff(joins, c.Joins); diff != "" {
		t.Errorf("what joins is configured by (-want +got):\n%s", diff)
	}
	if len(c.Gaps) > 0 || c.Nodes != 2 || c.Asked != 2 || c.Version != "v1.36.3" {
		t.Errorf("%s: %d of %d nodes, gaps %+v", c.Version, c.Asked, c.Nodes, c.Gaps)
	}
}

// TestObserveAsksUntilEachServerAnswered: a balancer may lead to the same server again, which
// counts once, and one that never answers is a gap.
func TestObserveAsksUntilEachServerAnswered(t *testing.T) {
	for _, servers := range []int{2, 3} {
		f, config := newFake(t, 1)
		list(f, slicesPath, "discovery.k8s.io/v1", "EndpointSliceList", slice([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}[:servers]...))
		var asked atomic.Int32
		f.answers["/metrics"] = func(w http.ResponseWriter, _ *http.Request) {
			// The first server, again the first, and then the second.
			n := min(int(asked.Add(1)), 3) / 3
			_, _ = w.Write([]byte(metricsOf("v1.36.3", 100+n, map[string]bool{"A": n == 1})))
		}
		c, err := Observe(t.Context(), config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var on, off int
		for _, p := range c.Processes {
			if p.Gates["A"].Enabled {
				on++
			} else {
				off++
			}
		}
		missing := slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Component == APIServer && strings.HasPrefix(g.Why, "1 of 3 did not answer") })
		if on != 1 || off != 1 || missing != (servers == 3) {
			t.Errorf("of %d servers %d have the gate on and %d off, want one of each; gaps %+v", servers, on, off, c.Gaps)
		}
	}
}

// TestObserveWithoutPermission: what is missing is named by its permission, and each
// kubelet is not asked to be refused again.
func TestObserveWithoutPermission(t *testing.T) {
	f, config := newFake(t, 1)
	for _, path := range []string{slicesPath, leasesPath, "/metrics", "/flagz", podsPath, mapsPath + "kube-proxy", mapsPath + "kubelet-config", mapsPath + "kubeadm-config"} {
		f.answers[path] = forbidden
	}
	var nodes []corev1.Node
	for i := range 50 {
		name := fmt.Sprintf("n%02d", i)
		nodes = append(nodes, f.node(name, "v1.36.3", nil, nil))
		f.answers["/api/v1/nodes/"+name+"/proxy/metrics"], f.answers["/api/v1/nodes/"+name+"/proxy/configz"] = forbidden, forbidden
	}
	list(f, "/api/v1/nodes", "v1", "NodeList", nodes...)
	c, err := Observe(t.Context(), config, Options{Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Processes) > 0 {
		t.Errorf("got %+v", c.Processes)
	}
	var got []string
	for _, g := range c.Gaps {
		got = append(got, fmt.Sprintf("%s (%d): %s: %s", g.Component, len(g.Instances), g.Why, g.Next))
	}
	want := []string{
		"kube-apiserver (0): how many there are behind one address is not known: not permitted: permission to list leases in the namespace kube-system",
		"kube-apiserver (0): how many there are is not known: not permitted: permission to list endpointslices in the namespace default",
		"kube-apiserver (0): not permitted: permission to get the path /metrics of the API server (ClusterRole system:monitoring has it)",
		"kube-apiserver (0): what joins is told by the ConfigMap kubeadm-config, which could not be read: not permitted: permission to get the ConfigMap kubeadm-config in the namespace kube-system",
		"kube-controller-manager (0): not permitted: permission to list pods in the namespace kube-system",
		"kube-controller-manager (0): what joins is told by the ConfigMap kubeadm-config, which could not be read: not permitted: permission to get the ConfigMap kubeadm-config in the namespace kube-system",
		"kube-scheduler (0): not permitted: permission to list pods in the namespace kube-system",
		"kube-scheduler (0): what joins is told by the ConfigMap kubeadm-config, which could not be read: not permitted: permission to get the ConfigMap kubeadm-config in the namespace kube-system",
		"kubelet (50): not permitted: permission to get nodes/proxy",
		"kubelet (0): what joins is told by the ConfigMap kubelet-config, which could not be read: not permitted: permission to get the ConfigMap kubelet-config in the namespace kube-system",
		"kube-proxy (0): not permitted: permission to list pods in the namespace kube-system",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	kubelets := slices.DeleteFunc(f.asked, func(path string) bool { return !strings.Contains(path, "/proxy/metrics") })
	if len(kubelets) > 2 {
		t.Errorf("%d kubelets were asked, want at most one for each of 2 requests at a time", len(kubelets))
	}
}

// TestObserveManyNodes asks some of many, a bounded number at a time.
func TestObserveManyNodes(t *testing.T) {
	f, config := newFake(t, 1)
	var nodes []corev1.Node
	for i := range 300 {
		nodes = append(nodes, f.node(fmt.Sprintf("n%03d", i), "v1.36.3", map[string]bool{"A": i == 200}, nil))
	}
	list(f, "/api/v1/nodes", "v1", "NodeList", nodes...)
	done, all := 0, 0
	c, err := Observe(t.Context(), config, Options{Parallel: 8, Nodes: 150, Progress: func(d, a int) { done, all = d, a }})
	if err != nil {
		t.Fatal(err)
	}
	kubelets := slices.DeleteFunc(slices.Clone(c.Processes), func(p Process) bool { return p.Component != Kubelet })
	if len(kubelets) != 150 || c.Nodes != 300 || c.Asked != 150 {
		t.Errorf("%d kubelets of %d nodes, %d asked", len(kubelets), c.Nodes, c.Asked)
	}
	if !slices.ContainsFunc(kubelets, func(p Process) bool { return p.Instance == "n200" && p.Gates["A"].Enabled }) {
		t.Error("the sample is not spread evenly: n200 is not in it")
	}
	if most := f.most.Load(); most > 8 {
		t.Errorf("%d kubelets were asked at a time, want 8 at most", most)
	}
	if done < 150 || all < done {
		t.Errorf("the progress ended at %d of %d", done, all)
	}
}

// TestObserveEnds: a kubelet that does not answer is a gap, and what others said counts.
func TestObserveEnds(t *testing.T) {
	f, config := newFake(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	quick, slow := f.node("quick", "v1.36.3", map[string]bool{"A": true}, nil), f.node("slow", "v1.36.3", nil, nil)
	f.answers["/api/v1/nodes/slow/proxy/metrics"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	f.answers["/api/v1/nodes/slow/proxy/configz"] = f.answers["/api/v1/nodes/slow/proxy/metrics"]
	list(f, "/api/v1/nodes", "v1", "NodeList", quick, slow)
	c, err := Observe(ctx, config, Options{Timeout: 2e9})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(c.Processes, func(p Process) bool { return p.Instance == "quick" }) {
		t.Errorf("the kubelet that answered is missing: %+v", c.Processes)
	}
	if !slices.ContainsFunc(c.Gaps, func(g Gap) bool {
		return slices.Equal(g.Instances, []string{"slow"}) && strings.Contains(g.Next, "--observe-timeout")
	}) {
		t.Errorf("the kubelet that did not answer is no gap: %+v", c.Gaps)
	}
	cancel()
	if _, err := Observe(ctx, config, Options{}); err == nil {
		t.Error("no error after an interrupt")
	}
}

func TestServerFlagsOfPods(t *testing.T) {
	r := &reader{}
	for _, p := range []corev1.Pod{
		pod("a", APIServer, "cp1", "kube-apiserver:v1.36.3", "kube-apiserver", "--feature-gates=A=true"),
		pod("b", APIServer, "cp2", "kube-apiserver:v1.36.3", "kube-apiserver"),
	} {
		r.serverPods = append(r.serverPods, systemPod{p, commandLines(&p, APIServer)[0]})
	}
	r.serverPods[0].Status.HostIP, r.serverPods[1].Status.HostIP = "192.0.2.1", "192.0.2.2"
	process := func(instance string) Process {
		return Process{Component: APIServer, Instance: instance, Gates: map[string]Value{"A": {Enabled: true}}}
	}
	r.found.Processes = []Process{process("192.0.2.1:6443"), process("192.0.2.2:6443"), process("server")}
	r.serverFlags()
	got := []*bool{}
	for _, p := range r.found.Processes {
		got = append(got, p.Gates["A"].Explicit)
	}
	// Which Pod the last one is cannot be told, and they are told different things.
	if diff := cmp.Diff([]*bool{ptr.To(true), ptr.To(false), nil}, got); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	r.found.Processes = nil
	r.serverFlags()
	if len(r.found.Processes) != 2 || !r.found.Processes[0].Gates["A"].Enabled || r.found.Processes[0].Complete {
		t.Errorf("without metrics the Pods are what is known: %+v", r.found.Processes)
	}
	// What a script with variables tells is not known: neither that a gate is set nor that it is not.
	script := pod("b", APIServer, "cp2", "kube-apiserver:v1.36.3", "sh", "-c", "exec kube-apiserver $FLAGS")
	r.serverPods[1].line = commandLines(&script, APIServer)[0]
	r.found.Processes = []Process{process("192.0.2.2:6443"), process("server")}
	r.serverFlags()
	for _, p := range r.found.Processes {
		if p.Gates["A"].Explicit != nil {
			t.Errorf("%s: the gate is set: %t, want that it is not known", p.Instance, *p.Gates["A"].Explicit)
		}
	}
}
