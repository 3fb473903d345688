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

package processes

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

func TestMain(m *testing.M) { os.Exit(framework.Isolate(m)) }

// TestEveryProcessReports starts three servers, two controller managers, two
// schedulers, of which one leads and one stands by, and two nodes with the real
// kubelet and the real kube-proxy.
func TestEveryProcessReports(t *testing.T) {
	t.Parallel()
	// The machine may be busy for longer than a node waits.
	node := []string{"--feature-values-timeout=" + framework.Patience.String()}
	c := framework.Start(t, localcluster.Config{Nodes: 2, RealNodes: true, NodeIP: framework.NodeIP(), Servers: 3, Replicas: 2, ExtraArgs: map[string][]string{
		localcluster.APIServer: centralOff, localcluster.Nth(localcluster.APIServer, 2): centralOff, localcluster.Nth(localcluster.APIServer, 3): centralOff,
		localcluster.Kubelet("node-1"): node, localcluster.Kubelet("node-2"): node,
	}})
	want := map[string]int{
		"kube-apiserver by system:apiserver": 3, "kube-controller-manager by system:kube-controller-manager": 2, "kube-scheduler by system:kube-scheduler": 2,
		"kubelet on node-1 by system:node:node-1": 1, "kubelet on node-2 by system:node:node-2": 1,
		"kube-proxy on node-1 by system:kube-proxy": 1, "kube-proxy on node-2 by system:kube-proxy": 1,
	}
	reports := c.WaitForReports("of every process", func(reports []v1alpha1.FeatureReport) bool {
		// What is asked after the first report follows within a minute or so, and so does
		// the owner of one that came before its Node.
		return cmp.Equal(want, processes(reports)) && centralReported(reports) && !slices.ContainsFunc(reports, func(r v1alpha1.FeatureReport) bool {
			return askedIn(r) < 5 || ownerless(r)
		})
	})
	checkReports(t, c, reports)
}

// ownerless is true for the report of a process on a node until its Node owns it.
func ownerless(r v1alpha1.FeatureReport) bool {
	return r.Spec.NodeName != "" && len(r.OwnerReferences) == 0
}

// checkReports looks at what reports say of their processes themselves.
func checkReports(t *testing.T, c *framework.Cluster, reports []v1alpha1.FeatureReport) {
	t.Helper()
	for _, r := range reports {
		if got, want := r.Spec.BinaryVersion, c.Version(); got != want {
			t.Errorf("%s has version %s, want %s", r.Name, got, want)
		}
		if r.Spec.EmulationVersion != framework.Minor(c.Version()) {
			t.Errorf("%s emulates %q", r.Name, r.Spec.EmulationVersion)
		}
		owned := len(r.OwnerReferences) == 1 && r.OwnerReferences[0].Kind == "Node" && r.OwnerReferences[0].Name == r.Spec.NodeName
		if onNode := r.Spec.NodeName != ""; onNode != owned || onNode == (r.Spec.Liveness.Lease != nil) {
			t.Errorf("%s on node %q has owners %+v and Lease %v", r.Name, r.Spec.NodeName, r.OwnerReferences, r.Spec.Liveness.Lease)
		}
	}
}

// askedIn is the number of features a process has asked for.
func askedIn(r v1alpha1.FeatureReport) int {
	asked := 0
	for _, f := range r.Spec.Features {
		if f.Queried {
			asked++
		}
	}
	return asked
}

// processes counts reports by what they are of.
func processes(reports []v1alpha1.FeatureReport) map[string]int {
	counts := map[string]int{}
	for _, r := range reports {
		what := r.Spec.Component
		if r.Spec.NodeName != "" {
			what += " on " + r.Spec.NodeName
		}
		counts[what+" by "+r.Spec.Username]++
	}
	return counts
}

// TestCrashedProcessDetected by the Lease that it does not renew, or by its
// Node; one that ends in order takes its report away.
func TestCrashedProcessDetected(t *testing.T) {
	t.Parallel()
	c := framework.Start(t, localcluster.Config{
		Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(), Replicas: 2,
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--feature-grace-period=5s"}, localcluster.ControllerManager: {"--node-monitor-grace-period=10s"}},
	})
	c.WaitForReports("of every process", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 7 })
	for _, name := range []string{localcluster.Nth(localcluster.Scheduler, 2), localcluster.Kubelet("node-1")} {
		if err := c.Kill(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Stop(t.Context(), localcluster.Nth(localcluster.ControllerManager, 2), localcluster.Proxy("node-1")); err != nil {
		t.Fatal(err)
	}
	reports := c.WaitForReports("without those that ended in order", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 5 })
	got := processes(reports)
	want := map[string]int{
		"kube-apiserver by system:apiserver": 1, "kube-controller-manager by system:kube-controller-manager": 1, "kube-scheduler by system:kube-scheduler": 2,
		"kubelet on node-1 by system:node:node-1": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected reports (-want +got):\n%s", diff)
	}
	// One scheduler is dead by its Lease, the kubelet by its Node.
	for component, count := range map[string]int32{"kube-scheduler": 1, "kubelet": 0} {
		c.WaitForFeature(askedBy(t, reports, component), "used by a "+component+" that is gone", func(f *v1alpha1.Feature) bool {
			for _, use := range f.Status.Uses {
				if use.Component == component && use.Enabled != nil {
					return use.Count == count && use.Stale == 1
				}
			}
			return false
		})
	}
}

// askedBy is a feature that every process of a component has asked for.
func askedBy(t *testing.T, reports []v1alpha1.FeatureReport, component string) string {
	t.Helper()
	asked, processes := map[string]int{}, 0
	for _, r := range reports {
		if r.Spec.Component != component {
			continue
		}
		processes++
		for _, f := range r.Spec.Features {
			if f.Queried {
				asked[f.Name]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] == processes {
			return name
		}
	}
	t.Fatalf("no feature was asked for by all %d processes of %s", processes, component)
	return ""
}
