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

package e2ekind

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/utils/ptr"
)

// TestThreeControlPlanes turns a gate on node by node. Servers that disagree are named,
// and nothing starts before the last of them has the gate; then the kubelets of the other
// nodes are waited for.
func TestThreeControlPlanes(t *testing.T) {
	kindcluster.RequireLong(t)
	c := kindcluster.Create(t, kindcluster.Config{ControlPlanes: 3, Workers: 2})
	history := framework.RecordFeature(t, c.Etcd(), gate)
	history.Wait(t, 0, "Off", framework.In(v1alpha1.StateOff))
	servers := c.Servers()

	begun := history.Mark()
	for i, node := range c.ControlPlanes {
		mark := history.Mark()
		c.SetGate(node, gate, true)
		if changed := c.ControlPlanes[:i+1]; len(changed) < len(c.ControlPlanes) {
			v := history.Wait(t, mark, fmt.Sprintf("on in %q only", changed), func(v framework.FeatureVersion) bool { return disagree(v.Feature, servers, changed) })
			checkDisagreement(t, v.Feature, history.Since(begun))
		}
	}
	history.Wait(t, begun, fmt.Sprintf("TurningOn, waiting for the kubelets of %q", c.Workers), func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateTurningOn && waitsForKubelets(v.Feature, c.Workers)
	})
	for _, node := range c.Workers {
		c.SetGate(node, gate, true)
	}
	c.SetGateOfKubeProxies(gate, true)
	history.Wait(t, begun, "On", framework.In(v1alpha1.StateOn))
	checkRolledOut(t, c, history.Since(begun))
	checkNoAdvice(t, history.Since(begun))
	checkInvariants(t, history.Since(0))
	createPod(t, c)
}

// disagree is true for a Feature that names exactly these nodes' servers as those that
// have it on, and all others as those that have it off.
func disagree(feature *v1alpha1.Feature, servers map[string]string, changed []string) bool {
	consistent := condition(feature, v1alpha1.ConditionConsistent)
	on, off, found := strings.Cut(consistent.Message, ", off in ")
	if consistent.Reason != v1alpha1.ReasonServersDisagree || !found {
		return false
	}
	for node, server := range servers {
		is := slices.Contains(changed, node)
		if strings.Contains(on, server) != is || strings.Contains(off, server) == is {
			return false
		}
	}
	return true
}

// checkDisagreement checks a Feature of servers that disagree: no transition starts.
func checkDisagreement(t *testing.T, feature *v1alpha1.Feature, versions []framework.FeatureVersion) {
	t.Helper()
	const why = "no transition starts until --feature-gates is the same everywhere"
	checkCondition(t, feature, v1alpha1.ConditionConsistent, metav1.ConditionFalse, v1alpha1.ReasonServersDisagree, why)
	if states := framework.States(versions); !slices.Equal(states, []v1alpha1.FeatureState{v1alpha1.StateOff}) {
		t.Errorf("the states are %q while servers disagree, want Off alone", states)
	}
	if transitions := framework.Transitions(versions); len(transitions) > 0 {
		t.Errorf("the transitions %q started while servers disagree", transitions)
	}
}

// waitsForKubelets is true while a Feature waits for the kubelets of all these nodes.
func waitsForKubelets(feature *v1alpha1.Feature, nodes []string) bool {
	if len(feature.Status.Tasks) == 0 || feature.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
		return false
	}
	return !slices.ContainsFunc(nodes, func(node string) bool { return !strings.Contains(feature.Status.Tasks[0].Message, "kubelet/"+node) })
}

// checkRolledOut checks the end of a rolling change: one transition, and a count of every
// process that queries the gate.
func checkRolledOut(t *testing.T, c *kindcluster.Cluster, versions []framework.FeatureVersion) {
	t.Helper()
	if transitions := framework.Transitions(versions); len(transitions) != 1 {
		t.Errorf("the transitions were %q, want one", transitions)
	}
	want := []v1alpha1.FeatureState{v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateOn}
	if diff := cmp.Diff(want, framework.States(versions)); diff != "" {
		t.Errorf("the states (-want +got)\n%s", diff)
	}
	users := map[string]int32{kindcluster.APIServer: 3, kindcluster.ControllerManager: 3, kindcluster.Scheduler: 3, "kubelet": 5}
	f := c.WaitForFeature(gate, fmt.Sprintf("used by %v", users), func(f *v1alpha1.Feature) bool {
		counts := map[string]int32{}
		for _, use := range f.Status.Uses {
			if _, ok := users[use.Component]; ok && ptr.Deref(use.Enabled, false) {
				counts[use.Component] += use.Count
			}
		}
		return cmp.Equal(users, counts) && condition(f, v1alpha1.ConditionUsesMatch).Status == metav1.ConditionTrue
	})
	checkCondition(t, f, v1alpha1.ConditionUsesMatch, metav1.ConditionTrue, v1alpha1.ReasonAllUsersMatch, "all live users have the feature on")
	waitForReports(c, true)
}

// checkNoAdvice checks what a Feature says of fields that kubelets with the gate on write
// while it is still Off: they are no leftovers to clean up.
func checkNoAdvice(t *testing.T, versions []framework.FeatureVersion) {
	t.Helper()
	seen := map[string]bool{}
	for _, v := range versions {
		clean := condition(v.Feature, v1alpha1.ConditionClean)
		if clean.Reason != v1alpha1.ReasonLeftovers || seen[clean.Message] {
			continue
		}
		seen[clean.Message] = true
		if strings.Contains(clean.Message, "create the subresource cleanup") || !strings.Contains(clean.Message, "while the feature is being turned on, nothing is to be done") {
			t.Errorf("the condition Clean is %q while the gate is turned on", clean.Message)
		}
	}
	t.Logf("kubelets' fields were found before the Feature was TurningOn: %t", len(seen) > 0)
}
