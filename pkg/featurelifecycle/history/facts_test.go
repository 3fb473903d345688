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

package history

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/sets"
)

// returned has the gates that were removed and came back.
var returned = sets.New[string]()

// demoted has the gates that went back to a lower stage, with the version and the stage.
var demoted = map[string]string{}

// TestKnownFacts looks up what upstream's sources and release notes have of some gates.
func TestKnownFacts(t *testing.T) {
	on := func(stage string, dependsOn ...string) Spec {
		return Spec{Stage: stage, Default: true, DependsOn: dependsOn}
	}
	off := func(stage string) Spec { return Spec{Stage: stage} }
	locked := func(stage string, value bool) Spec { return Spec{Stage: stage, Default: value, Locked: true} }
	for _, fact := range []struct {
		what, gate, component string
		// at has the specs; versions that it lacks do not know the gate.
		at             map[string]Spec
		added, removed string
	}{
		{
			what: "alpha, beta, GA, removed", gate: "KubeProxyDrainingTerminatingNodes", component: KubeProxy,
			at:    map[string]Spec{"1.29": off("Alpha"), "1.30": on("Beta"), "1.31": locked("GA", true), "1.32": locked("GA", true)},
			added: "1.29", removed: "1.33",
		},
		{
			what: "a beta that became final, and was removed", gate: "SidecarContainers", component: Kubelet,
			at: map[string]Spec{
				"1.29": on("Beta"), "1.30": on("Beta"), "1.31": on("Beta"), "1.32": on("Beta"),
				"1.33": locked("GA", true), "1.34": locked("GA", true), "1.35": locked("GA", true), "1.36": locked("GA", true),
			},
			added: "1.29", removed: "1.37",
		},
		{
			what: "a default that one binary overrides", gate: "WatchListClient", component: KubeControllerManager,
			at: map[string]Spec{
				"1.30": off("Beta"), "1.31": off("Beta"), "1.32": on("Beta"), "1.33": off("Beta"), "1.34": on("Beta"),
				"1.35": on("Beta"), "1.36": on("Beta"), "1.37": on("Beta"), "1.38": on("Beta"),
			},
			added: "1.30",
		},
		{
			what: "the same gate of clients", gate: "WatchListClient", component: ClientGo,
			at: map[string]Spec{
				"1.30": off("Beta"), "1.31": off("Beta"), "1.32": off("Beta"), "1.33": off("Beta"), "1.34": off("Beta"),
				"1.35": on("Beta"), "1.36": on("Beta"), "1.37": on("Beta"), "1.38": on("Beta"),
			},
			added: "1.30",
		},
		{
			what: "dependencies since 1.35", gate: "DRAPartitionableDevices", component: KubeScheduler,
			at: map[string]Spec{
				"1.33": off("Alpha"), "1.34": off("Alpha"), "1.35": {Stage: "Alpha", DependsOn: []string{"DynamicResourceAllocation"}},
				"1.36": on("Beta", "DynamicResourceAllocation"), "1.37": on("Beta", "DynamicResourceAllocation"), "1.38": locked("GA", true),
			},
			added: "1.33",
		},
		{
			what: "a gate of controller managers that other servers link", gate: "ControllerManagerReleaseLeaderElectionLockOnExit", component: Kubelet,
			at: map[string]Spec{"1.36": off("Alpha"), "1.37": off("Alpha")}, added: "1.36", removed: "1.38",
		},
		{what: "a server that does not link it", gate: "ControllerManagerReleaseLeaderElectionLockOnExit", component: KubeScheduler},
		{what: "a component that never knew it", gate: "SidecarContainers", component: Kubeadm},
		{what: "a component that does not exist", gate: "SidecarContainers", component: "kube-dns"},
	} {
		t.Run(fact.what, func(t *testing.T) {
			g, ok := Load().Gate(fact.gate)
			if !ok {
				t.Fatalf("%s is not known", fact.gate)
			}
			got := map[string]Spec{}
			for _, v := range Load().Versions() {
				if spec, ok := g.At(fact.component, v); ok {
					got[v] = spec
				}
			}
			if fact.at == nil {
				fact.at = map[string]Spec{}
			}
			if diff := cmp.Diff(fact.at, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", fact.gate, fact.component, diff)
			}
			if added, removed := g.Added(fact.component), g.Removed(fact.component); added != fact.added || removed != fact.removed {
				t.Errorf("added in %q and removed in %q, want %q and %q", added, removed, fact.added, fact.removed)
			}
			for _, v := range []string{"", "1.0", "1.99", "1.37.2", "v1.37"} {
				if _, ok := g.At(fact.component, v); ok {
					t.Errorf("it is known in %q", v)
				}
			}
		})
	}
}

func TestUnknownGates(t *testing.T) {
	for _, name := range []string{"", "sidecarcontainers", "AllAlpha", "AllBeta", "SidecarContainer", "ZZZ"} {
		if g, ok := Load().Gate(name); ok || len(g.Components()) > 0 || g.Added(Kubelet) != "" || g.Removed(Kubelet) != "" {
			t.Errorf("there is a gate %q: %v", name, g)
		}
	}
}
