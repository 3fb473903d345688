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
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/watchtools"
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
	order := leaderSecond(c.ControlPlanes, servers)

	begun := history.Mark()
	for i, node := range order {
		mark := history.Mark()
		c.SetGate(node, gate, true)
		changed := order[:i+1]
		if len(changed) == len(order) {
			break
		}
		v := history.Wait(t, mark, fmt.Sprintf("on in %q only", changed), func(v framework.FeatureVersion) bool { return disagree(v.Feature, servers, changed) })
		checkDisagreement(t, v.Feature, history.Since(begun))
		if i == 0 {
			waitForSignals(t, c, node)
			continue
		}
		// Now the leader has started again, and looks for leftovers.
		history.Wait(t, mark, "found to have the fields of the kubelet of "+order[0], framework.Because(v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers))
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
	for _, problem := range advice(history.Since(begun)) {
		t.Error(problem)
	}
	checkInvariants(t, history.Since(0))
	createPod(t, c)
}

// leaderSecond orders control planes so that the one whose server leads the gate is the
// second. A server looks for leftovers of a gate that is off when it begins to lead, and
// then every half hour: this one begins again after the change of the first.
func leaderSecond(nodes []string, servers map[string]string) []string {
	leads := leader.Of(gate, slices.Collect(maps.Values(servers)))
	i := slices.IndexFunc(nodes, func(node string) bool { return servers[node] == leads })
	rest := slices.Delete(slices.Clone(nodes), i, i+1)
	return slices.Insert(rest, 1, nodes[i])
}

// waitForSignals waits until the kubelet of a node has reported the gate as on, and has
// written its field into the status of a container.
func waitForSignals(t *testing.T, c *kindcluster.Cluster, node string) {
	t.Helper()
	c.WaitForReports("of the kubelet of "+node+" with the gate on", func(reports []v1alpha1.FeatureReport) bool {
		return slices.ContainsFunc(reports, func(report v1alpha1.FeatureReport) bool {
			return report.Spec.Component == "kubelet" && report.Spec.Instance == node &&
				slices.ContainsFunc(report.Spec.Features, func(f v1alpha1.ReportedFeature) bool { return f.Name == gate && f.Enabled })
		})
	})
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Kube.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", node))
	err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		return ok && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.StopSignal != nil }), nil
	})
	if err != nil {
		t.Fatalf("waiting for the kubelet of %s to write the stop signal of a container: %v", node, err)
	}
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
		if names(on, server) != is || names(off, server) == is {
			return false
		}
	}
	return true
}

// names is true for a message that has a name, and not only one that begins with it.
func names(message, name string) bool {
	words := strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" ,;:", r) })
	return slices.Contains(words, name)
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
	return !slices.ContainsFunc(nodes, func(node string) bool { return !names(feature.Status.Tasks[0].Message, "kubelet/"+node) })
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

// advice returns what is wrong in what a Feature says of fields that kubelets with the gate
// on write while it is still Off: they are found, and are no leftovers to clean up.
func advice(versions []framework.FeatureVersion) (problems []string) {
	found := false
	for _, v := range versions {
		clean := condition(v.Feature, v1alpha1.ConditionClean)
		if clean.Reason != v1alpha1.ReasonLeftovers {
			continue
		}
		found = true
		if strings.Contains(clean.Message, "create the subresource cleanup") || !strings.Contains(clean.Message, "while the feature is being turned on, nothing is to be done") {
			problems = append(problems, fmt.Sprintf("the condition Clean is %q while the gate is turned on", clean.Message))
		}
	}
	if !found {
		problems = append(problems, "the fields that kubelets write were never found, so nothing was checked")
	}
	return slices.Compact(problems)
}
