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
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// with is a Feature with one condition.
func with(kind, reason, message string) *v1alpha1.Feature {
	return &v1alpha1.Feature{Status: v1alpha1.FeatureStatus{Conditions: []metav1.Condition{{Type: kind, Reason: reason, Message: message}}}}
}

func TestKubeletsAreNamedWhole(t *testing.T) {
	const message = "waiting for 2 users that have the feature off: kubelet/kind-test-worker2, kubelet/kind-test-worker3; of these 1 shows no sign of life"
	feature := &v1alpha1.Feature{Status: v1alpha1.FeatureStatus{Tasks: []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses, Message: message}}}}
	for _, test := range []struct {
		nodes []string
		want  bool
	}{
		{[]string{"kind-test-worker2", "kind-test-worker3"}, true},
		{[]string{"kind-test-worker"}, false},
		{[]string{"kind-test-worker", "kind-test-worker2"}, false},
	} {
		if got := waitsForKubelets(feature, test.nodes); got != test.want {
			t.Errorf("%q: %t, want %t", test.nodes, got, test.want)
		}
	}
	if waitsForKubelets(&v1alpha1.Feature{}, nil) {
		t.Error("a Feature without tasks waits")
	}
}

func TestServersAreNamedWhole(t *testing.T) {
	servers := map[string]string{"a": "server-1", "b": "server-11", "c": "server-2"}
	feature := func(message string) *v1alpha1.Feature {
		return with(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree, message+"; no transition starts")
	}
	for message, want := range map[string]bool{
		"on in server-1, off in server-11, server-2":           true,
		"on in server-11, off in server-1, server-2":           false,
		"on in server-1, server-11, off in server-2":           false,
		"on in server-1, off in server-11":                     false,
		"on in server-1, off in server-1, server-11, server-2": false,
		"on in server-1": false,
	} {
		if got := disagree(feature(message), servers, []string{"a"}); got != want {
			t.Errorf("%s: %t, want %t", message, got, want)
		}
	}
	if disagree(with(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersAgree, "on in server-1, off in server-11, server-2"), servers, []string{"a"}) {
		t.Error("servers that agree disagree")
	}
}

func TestAdviceNeedsSomethingToCheck(t *testing.T) {
	version := func(reason, message string) framework.FeatureVersion {
		return framework.FeatureVersion{StoredFeature: framework.StoredFeature{Feature: with(v1alpha1.ConditionClean, reason, message)}}
	}
	nothing := version(v1alpha1.ReasonNothingLeft, "no stored object holds anything of the feature")
	right := version(v1alpha1.ReasonLeftovers, "9 pods have x; while the feature is being turned on, nothing is to be done; otherwise")
	wrong := version(v1alpha1.ReasonLeftovers, "9 pods have x; create the subresource cleanup of the feature")
	for _, test := range []struct {
		versions []framework.FeatureVersion
		want     string
	}{
		{nil, "never found"},
		{[]framework.FeatureVersion{nothing}, "never found"},
		{[]framework.FeatureVersion{nothing, right}, ""},
		{[]framework.FeatureVersion{right, wrong, wrong}, "create the subresource cleanup"},
	} {
		got := advice(test.versions)
		if test.want == "" && len(got) > 0 || test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)) {
			t.Errorf("%+v: %q, want %q", test.versions, got, test.want)
		}
	}
}

func TestLeaderIsChangedSecond(t *testing.T) {
	nodes := []string{"a", "b", "c"}
	servers := map[string]string{"a": "server-a", "b": "server-b", "c": "server-c"}
	seen := map[string]bool{}
	for _, suffix := range []string{"", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		for _, node := range nodes {
			servers[node] = "server-" + node + suffix
		}
		order := leaderSecond(nodes, servers)
		if leads := leader.Of(gate, []string{servers["a"], servers["b"], servers["c"]}); servers[order[1]] != leads {
			t.Errorf("the order is %q, want %s second", order, leads)
		}
		seen[order[1]] = true
		if slices.Sort(order); !slices.Equal(order, nodes) {
			t.Errorf("the nodes are %q, want %q", order, nodes)
		}
	}
	if len(seen) != len(nodes) {
		t.Errorf("only %v led, so the order was hardly tested", seen)
	}
}
