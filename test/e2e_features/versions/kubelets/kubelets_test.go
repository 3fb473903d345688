//go:build linux

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

package kubelets

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

func TestMain(m *testing.M) { os.Exit(framework.Isolate(m)) }

const (
	// ours is the node whose kubelet is this repository's from the start.
	ours = "node-4"
	// ofKubelets is a feature that our kubelet queries when it starts. It is on by default.
	ofKubelets = string(features.RestartAllContainersOnContainerExits)
	// changed is a feature whose value the test changes through the API. No kubelet queries it,
	// but one that does not report may.
	changed = string(features.HPAScaleToZero)
	grace   = "--feature-grace-period=10s"
)

// older has the nodes whose kubelets are upstream's, with their minor versions: all that a
// server of this version permits.
var older = map[string]string{"node-1": "1.34", "node-2": "1.35", "node-3": "1.36"}

// cluster has a server of ours and four kubelets on fake container runtimes. There is no
// controller manager, no scheduler and no kube-proxy.
type cluster struct {
	*framework.Cluster
	history *framework.History
	// binaries has the files of upstream's kubelets, read at each start.
	binaries map[string]string
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{binaries: map[string]string{}}
	config := localcluster.Config{
		Nodes: len(older) + 1, RealNodes: true, NodeIP: framework.NodeIP(), Binaries: c.binaries,
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs: map[string][]string{localcluster.APIServer: server(), localcluster.Kubelet(ours): patient()},
	}
	for i := range config.Nodes {
		node := localcluster.NodeName(i + 1)
		config.Only = append(config.Only, localcluster.Runtime(node), localcluster.Kubelet(node))
		if minor, ok := older[node]; ok {
			c.binaries[localcluster.Kubelet(node)] = framework.OlderKubelet(t, minor)
		}
	}
	c.Cluster = framework.Start(t, config)
	c.history = framework.RecordFeature(t, c.Etcd(), changed)
	return c
}

// server has the flags of kube-apiserver.
func server(args ...string) []string {
	return append([]string{"--dynamic-features=" + changed, "--feature-settle-period=1s", grace}, args...)
}

// patient are the flags of our kubelet: the machine may be busy for longer than one waits.
func patient() []string {
	return []string{"--feature-values-timeout=" + framework.Patience.String()}
}

// TestOlderKubelets runs kubelets of 1.34, 1.35 and 1.36 as upstream released them beside ours. They
// have no reports: Features, conditions and the plugin show them by the versions of their
// Nodes. A transition waits for them for the grace period; where full coverage is required,
// until the last of them is ours.
func TestOlderKubelets(t *testing.T) {
	c := start(t)
	versions := c.versions(t)
	c.counted(t, versions)
	c.shown(t, versions)
	c.waitsForGrace(t)
	c.waitsForAll(t)
}

// versions are the versions of kubelets by nodes, as Nodes have them.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	list, err := c.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, node := range list.Items {
		version := node.Status.NodeInfo.KubeletVersion
		versions[node.Name] = version
		if want, ok := older[node.Name]; ok && (framework.Minor(version) != want || strings.Contains(version, "+")) {
			t.Errorf("the kubelet of %s is %s, want upstream's of %s", node.Name, version, want)
		}
	}
	if len(versions) != len(older)+1 || versions[ours] != c.Version() {
		t.Fatalf("the kubelets are %v, want %d and the one of %s as the server, %s", versions, len(older)+1, ours, c.Version())
	}
	return versions
}

// counted checks what servers count: our kubelet with its value, the others as expected, with
// the versions of their Nodes and without a value.
func (c *cluster) counted(t *testing.T, versions map[string]string) {
	t.Helper()
	want := map[string]v1alpha1.FeatureUse{}
	for node, version := range versions {
		row := v1alpha1.FeatureUse{Component: "kubelet", Version: version, Expected: 1, Examples: []string{node}}
		if node == ours {
			row.Enabled, row.Count = ptr.To(true), 1
		}
		want[version] = row
	}
	f := c.WaitForFeature(ofKubelets, "used by our kubelet, with three that do not report", func(f *v1alpha1.Feature) bool {
		matches := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
		return cmp.Equal(want, kubelets(f)) && matches != nil && matches.Reason == v1alpha1.ReasonUsersUnknown && strings.Contains(matches.Message, "3 processes")
	})
	matches := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
	if matches.Status != metav1.ConditionUnknown {
		t.Errorf("UsesMatch is %+v, want Unknown", matches)
	}
	for node := range versions {
		if _, silent := older[node]; silent != strings.Contains(matches.Message, "kubelet/"+node) {
			t.Errorf("the kubelet of %s reports: %t, and the message is %q", node, !silent, matches.Message)
		}
	}
	var reports []string
	for _, r := range c.Reports() {
		if r.Spec.Component != localcluster.APIServer {
			reports = append(reports, r.Name)
		}
	}
	if !slices.Equal(reports, []string{"kubelet." + ours}) {
		t.Errorf("there are reports of %q, want one of our kubelet", reports)
	}
}

// kubelets has the rows of kubelets by their versions.
func kubelets(f *v1alpha1.Feature) map[string]v1alpha1.FeatureUse {
	rows := map[string]v1alpha1.FeatureUse{}
	for _, use := range f.Status.Uses {
		if use.Component == "kubelet" {
			rows[use.Version] = use
		}
	}
	return rows
}

// shown checks what the plugin prints about them.
func (c *cluster) shown(t *testing.T, versions map[string]string) {
	t.Helper()
	uses := c.Kubectl("").Output(t, "feature", "uses", ofKubelets)
	checked, code := c.UpgradeCheck("--to=" + framework.Minor(c.Version()))
	left, _ := c.UpgradeCheck("--to="+framework.Minor(c.Version()), "--allow-missing")
	if code != 2 {
		t.Errorf("exit code %d, want 2: what older kubelets set is unknown", code)
	}
	for node, version := range versions {
		_, silent := older[node]
		if line := fmt.Sprintf("Not reported: 1 of kubelet %s, for example %s\n", version, node); strings.Contains(uses, line) != silent {
			t.Errorf("kubectl feature uses has %q: %t:\n%s", line, !silent, uses)
		}
		line := fmt.Sprintf("Not known: 1 kubelet %s did not report, and what they set is not known: %s\n", version, node)
		if strings.Contains(checked, line) != silent {
			t.Errorf("kubectl feature upgrade-check has %q: %t:\n%s", line, !silent, checked)
		}
		if strings.Contains(left, line) {
			t.Errorf("kubectl feature upgrade-check --allow-missing has %q", line)
		}
	}
}

// waitsForGrace turns a feature off: kubelets that do not report hold that for the grace
// period, and stay named.
func (c *cluster) waitsForGrace(t *testing.T) {
	t.Helper()
	mark := c.history.Mark()
	c.Request(changed, `{"enabled":false}`)
	c.history.Wait(t, mark, "waiting for three kubelets, with a limit", func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateTurningOff && waitsFor(v, slices.Collect(maps.Keys(older))...) && strings.Contains(v.Status.Tasks[0].Message, "waited for until")
	})
	c.history.Wait(t, mark, "Off", framework.In(v1alpha1.StateOff))
	c.WaitForFeature(changed, "Off, with the kubelets named", func(f *v1alpha1.Feature) bool {
		matches := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
		return f.Status.State == v1alpha1.StateOff && matches != nil && matches.Reason == v1alpha1.ReasonUsersUnknown && strings.Contains(matches.Message, "kubelet/node-1")
	})
}

// waitsFor is true while a Feature waits for exactly these kubelets.
func waitsFor(v framework.FeatureVersion, nodes ...string) bool {
	if len(v.Status.Tasks) == 0 || v.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
		return false
	}
	for node := range older {
		if strings.Contains(v.Status.Tasks[0].Message, "kubelet/"+node) != slices.Contains(nodes, node) {
			return false
		}
	}
	return len(nodes) > 0 && !strings.Contains(v.Status.Tasks[0].Message, "kubelet/"+ours)
}

// waitsForAll turns the feature on where full coverage is required: that has no limit, and ends
// when the last kubelet was replaced by ours.
func (c *cluster) waitsForAll(t *testing.T) {
	t.Helper()
	c.SetArgs(localcluster.APIServer, server("--feature-require-full-coverage")...)
	c.MustRestart(localcluster.APIServer)
	mark := c.history.Mark()
	c.Request(changed, `{"enabled":true}`)
	waiting := slices.Sorted(maps.Keys(older))
	for len(waiting) > 0 {
		c.history.Wait(t, mark, fmt.Sprintf("waiting for %q without a limit", waiting), func(v framework.FeatureVersion) bool {
			return v.Status.State == v1alpha1.StateTurningOn && waitsFor(v, waiting...) && !strings.Contains(v.Status.Tasks[0].Message, "waited for until")
		})
		if v := c.history.Last(); v.Status.State != v1alpha1.StateTurningOn {
			t.Fatalf("it is %s while these do not report: %q", v.Status.State, waiting)
		}
		kubelet := localcluster.Kubelet(waiting[0])
		c.MustStop(kubelet)
		delete(c.binaries, kubelet)
		c.SetArgs(kubelet, patient()...)
		c.MustStart(kubelet)
		waiting = waiting[1:]
	}
	c.history.Wait(t, mark, "On", framework.In(v1alpha1.StateOn))
	if problem := framework.LostTask(c.history.Since(mark)); problem != "" {
		t.Error(problem)
	}
	c.WaitForFeature(ofKubelets, "used by four kubelets of one version", func(f *v1alpha1.Feature) bool {
		row, ok := kubelets(f)[c.Version()]
		return ok && len(kubelets(f)) == 1 && row.Count == int32(len(older)+1) && row.Expected == row.Count && meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionUsesMatch)
	})
}
