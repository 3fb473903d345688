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

package feature

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/kubectl/observe"
	"k8s.io/utils/ptr"
)

// withoutAPI is a cluster whose server answers as upstream's does.
func withoutAPI(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "features"}, "", "404 page not found", 0, true)
	})
	return c
}

// TestObservedByAViewer: a server refuses what it does not serve to who may not read it.
func TestObservedByAViewer(t *testing.T) {
	refuse := func(c *cluster) {
		c.client.PrependReactor("list", "features", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "features"}, "", errors.New("because"))
		})
	}
	for name, c := range map[string]*cluster{"is forbidden": newCluster(t), "was observed of 5 processes": withoutAPI(t)} {
		refuse(c)
		if name == "is forbidden" {
			c.client.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.SchemeGroupVersion.String()}}
		}
		var out bytes.Buffer
		b := c.base(&out)
		b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) {
			return observedCluster(), nil
		}
		b.run(t.Context(), []string{"list", "--server=https://localhost"})
		if !strings.Contains(out.String(), name) {
			t.Errorf("%q is missing in %s", name, out.String())
		}
	}
}

// observedCluster is what is observed of one in which servers agree on A, a kubelet differs,
// and one component shows only what it is told.
func observedCluster() *observe.Cluster {
	yes, no := ptr.To(true), ptr.To(false)
	metrics := func(enabled bool, stage string, explicit *bool) observe.Value {
		return observe.Value{Enabled: enabled, Stage: stage, Explicit: explicit, Source: "its metrics"}
	}
	return &observe.Cluster{
		Version: "v1.36.3", Nodes: 3, Asked: 2,
		Processes: []observe.Process{
			{Component: observe.APIServer, Instance: "192.0.2.1:6443", Version: "v1.36.3", Complete: true, Gates: map[string]observe.Value{
				"A": metrics(true, "ALPHA", yes), "B": metrics(true, "BETA", no), "AllAlpha": metrics(false, "ALPHA", no),
			}},
			{Component: observe.APIServer, Instance: "192.0.2.2:6443", Version: "v1.36.3", Complete: true, Gates: map[string]observe.Value{
				"A": metrics(true, "ALPHA", yes), "B": metrics(false, "BETA", yes),
			}},
			{Component: observe.ControllerManager, Instance: "kcm", Node: "cp1", Version: "", Gates: map[string]observe.Value{
				"A": {Enabled: true, Explicit: yes, Source: "the flags of Pod kcm"},
			}},
			{Component: observe.Kubelet, Instance: "n1", Node: "n1", Version: "v1.36.3", Complete: true, Gates: map[string]observe.Value{"A": metrics(true, "ALPHA", nil)}},
			{Component: observe.Kubelet, Instance: "n2", Node: "n2", Version: "v1.35.4", Complete: true, Gates: map[string]observe.Value{"A": metrics(false, "ALPHA", no)}},
		},
		Settings: []observe.Setting{
			{Component: observe.APIServer, Gate: "A", Enabled: true, Source: "the ConfigMap kubeadm-config"},
			{Component: observe.Kubelet, Gate: "A", Source: "the ConfigMap kubelet-config"},
			{Component: observe.Kubelet, Gate: "AllBeta", Source: "the ConfigMap kubelet-config"},
		},
		Gaps: []observe.Gap{{Component: observe.Scheduler, Why: "not permitted", Next: "permission to list pods in the namespace kube-system"}},
	}
}

// observing runs a command in a cluster without the API.
func runObserving(t *testing.T, command string) string {
	t.Helper()
	c := withoutAPI(t)
	var out bytes.Buffer
	b := c.base(&out)
	b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) {
		return observedCluster(), nil
	}
	code := b.run(t.Context(), append(strings.Fields(command), "--server=https://localhost"))
	return "$ kubectl feature " + command + "\n" + out.String() + "[exit code " + string(rune('0'+code)) + "]\n\n"
}

// TestObservedCluster covers the commands that read.
func TestObservedCluster(t *testing.T) {
	var all strings.Builder
	for _, command := range []string{
		"list", "list -o wide", "list -o json --stage=Alpha", "list -o name --mismatched", "list -A --stage=Beta", "list --state=On", "list --dangling",
		"describe A", "describe B", "uses A", "uses B", "uses A --mismatched -o wide", "uses A --mismatched -o json", "uses A -o name",
		"describe C", "list -n other", "list --nodes=-1", "list --observe-timeout=0s",
	} {
		all.WriteString(runObserving(t, command))
	}
	golden(t, "observed.txt", all.String())
}

// observedReport is the page of an observed cluster, in which a name would be markup.
func observedReport(t *testing.T, c *observe.Cluster) string {
	t.Helper()
	var out, complaints bytes.Buffer
	inBubble(t, func(t *testing.T) {
		b := withoutAPI(t).base(&out)
		b.ErrOut = &complaints
		b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) { return c, nil }
		if code := b.run(t.Context(), []string{"report", "-o", "html", "--server=https://localhost"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, complaints.String())
		}
	})
	return out.String()
}

// TestObservedPage has the page of such a cluster: values and who differs by kube-apiserver,
// where they were observed, what was not, and nothing that only servers with the API know.
func TestObservedPage(t *testing.T) {
	c := observedCluster()
	hostile := observe.Process{Component: observe.Kubelet, Instance: `n3<script>alert("x")</script>`, Version: "v1.36.3", Complete: true}
	hostile.Gates = map[string]observe.Value{
		"A": {Enabled: true, Stage: "ALPHA", Source: `<b>"metrics"</b>`}, "C": {Enabled: true, Stage: "BETA", Source: "its metrics"},
	}
	c.Processes = append(c.Processes, hostile)
	c.Processes[0].Gates["D"], c.Processes[1].Gates["D"] = observe.Value{Stage: "ALPHA", Source: "its metrics"}, observe.Value{Stage: "ALPHA", Source: "its metrics"}
	page := observedReport(t, c)
	golden(t, "report_observed.html", page)
	if strings.Count(page, "<script>") != 1 {
		t.Error("what comes from the cluster is not escaped")
	}
	// Only a server with the API could say so.
	for _, claim := range []string{"every feature is where it is to be", "no feature is blocked", ">Reports<", "only=moving", "only=blocked", "only=dangling", "only=paused", "for &lt;unknown&gt;"} {
		if strings.Contains(page, claim) {
			t.Errorf("the page has %q", claim)
		}
	}
}

// TestObservedPageWithoutServers: of a cluster whose kube-apiservers do not show their values,
// nothing is said to agree with them.
func TestObservedPageWithoutServers(t *testing.T) {
	c := observedCluster()
	c.Processes = c.Processes[3:4]
	c.Gaps = append(c.Gaps, observe.Gap{Component: observe.APIServer, Why: "not permitted", Next: "permission to get the path /metrics"})
	page := observedReport(t, c)
	for _, text := range []string{
		"Not known: which processes differ", "</span> kube-apiserver: not permitted; needed is permission to get the path /metrics", "<dd>1 process: 1 kubelet v1.36.3</dd>", "<b>1</b> <span><span aria-hidden=\"true\">?</span> not known",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
	if strings.Contains(page, "No process that was observed") {
		t.Error("the page says that no process differs")
	}
}

func TestObservedOptions(t *testing.T) {
	c := withoutAPI(t)
	b := c.base(&bytes.Buffer{})
	var got observe.Options
	b.observe = func(_ context.Context, _ *rest.Config, o observe.Options) (*observe.Cluster, error) {
		got = o
		return observedCluster(), nil
	}
	b.run(t.Context(), strings.Fields("list --nodes=20 --observe-timeout=7s --server=https://localhost"))
	if got.Nodes != 20 || got.Timeout.String() != "7s" {
		t.Errorf("observed with %+v", got)
	}
}

// TestNothingObserved: a server without the API whose components cannot be asked either.
func TestNothingObserved(t *testing.T) {
	c := withoutAPI(t)
	var out bytes.Buffer
	b := c.base(&out)
	b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) {
		return nil, errors.New("no route to host")
	}
	if code := b.run(t.Context(), []string{"list", "--server=https://localhost"}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	b.observe = func(context.Context, *rest.Config, observe.Options) (*observe.Cluster, error) {
		return &observe.Cluster{Gaps: []observe.Gap{{Component: observe.Kubelet, Instances: []string{"n1", "n2"}, Why: "not permitted", Next: "permission to get nodes/proxy"}}}, nil
	}
	if code := b.run(t.Context(), []string{"uses", "A", "--server=https://localhost"}); code != ExitFailed {
		t.Errorf("exit code %d", code)
	}
	for _, text := range []string{
		"has no API features.k8s.io/v1alpha1", "could not be read either: no route to host",
		"could be observed either: kubelet n1, n2: not permitted; needed is permission to get nodes/proxy",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is missing in %s", text, out.String())
		}
	}
}

const observedContexts = `apiVersion: v1
kind: Config
current-context: served
contexts:
- {name: served, context: {cluster: served}}
- {name: observed, context: {cluster: observed}}
- {name: other, context: {cluster: other}}
- {name: nodes, context: {cluster: nodes}}
clusters:
- {name: served, cluster: {server: "https://served"}}
- {name: observed, cluster: {server: "https://observed"}}
- {name: other, cluster: {server: "https://other"}}
- {name: nodes, cluster: {server: "https://nodes"}}
`

// observedClusters are one with the API, and three without it: the usual one, another of one
// server, and one of which only a kubelet was observed.
func observedClusters(t *testing.T) *clusters {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", "contexts.conf")
	c := &clusters{t: t, dir: dir, as: map[string]rest.ImpersonationConfig{}, byHost: map[string]*cluster{
		"https://served": newCluster(t, sample("A", v1alpha1.StageAlpha, false, false), sample("B", v1alpha1.StageBeta, true, true), sample("Newer", v1alpha1.StageAlpha, false, false)),
	}}
	c.observed = map[string]func() *observe.Cluster{
		"https://observed": observedCluster,
		"https://other": func() *observe.Cluster {
			other := observedCluster()
			other.Version, other.Processes = "v1.35.4", other.Processes[1:2]
			other.Processes[0].Gates["A"] = observe.Value{Stage: "ALPHA", Explicit: ptr.To(true), Source: "the flags of Pod kas"}
			other.Processes[0].Gates["E"] = observe.Value{Stage: "ALPHA", Explicit: ptr.To(false), Source: "its metrics"}
			return other
		},
		"https://nodes": func() *observe.Cluster {
			nodes := observedCluster()
			nodes.Processes = nodes.Processes[3:4]
			return nodes
		},
	}
	for host := range c.observed {
		c.byHost[host] = withoutAPI(t)
	}
	c.write("contexts.conf", observedContexts)
	return c
}

// TestObservedDiff compares observed clusters with each other, with one that has the API, and
// with files. What cannot be observed is not said to differ.
func TestObservedDiff(t *testing.T) {
	c := observedClusters(t)
	for _, name := range []string{"served", "observed"} {
		out, code := c.run("", "list", "-o", "json", "--context="+name)
		if code != 0 {
			t.Fatal(out)
		}
		// Lines about what was observed are on the error stream, which is the same here.
		c.write(name+".json", out[strings.Index(out, "{\n"):])
	}
	golden(t, "diff_observed.txt", c.session(
		"diff --context=served --context=observed",
		"diff --context=observed --context=other",
		"diff --context=observed --context=other -o json",
		"diff --context=nodes --context=observed",
		"diff observed.json --context=observed",
		"diff observed.json --context=other -o name",
		"diff observed.json --context=served -o yaml",
		"diff served.json --context=observed",
		"diff observed.json served.json",
	))
}
