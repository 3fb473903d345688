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

package demo

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// nodes are the demonstration's nodes before, or after the field is gone.
func nodes(cleared bool) map[string]*corev1.Node {
	result := map[string]*corev1.Node{}
	for _, name := range []string{"node-1", "node-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"demo/owner": "team-a"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		}}
		if name == "node-1" {
			node.ResourceVersion = "9"
			if !cleared {
				node.ResourceVersion = "7"
				node.Spec.PodPreemptionPolicy = &corev1.NodePodPreemptionPolicy{DisableResizePreemption: owners}
			}
		}
		result[name] = node
	}
	return result
}

// TestTheDemonstrationCanFail: it must not claim what does not hold.
func TestTheDemonstrationCanFail(t *testing.T) {
	const used, plain = "node-1", "node-2"
	for name, tc := range map[string]struct {
		change func(after map[string]*corev1.Node)
		says   string
	}{
		"all is well":              {func(map[string]*corev1.Node) {}, ""},
		"the field is still there": {func(after map[string]*corev1.Node) { after[used] = nodes(false)[used] }, "still has"},
		"it is there and empty": {func(after map[string]*corev1.Node) {
			after[used].Spec.PodPreemptionPolicy = &corev1.NodePodPreemptionPolicy{}
		}, "still has"},
		"something else changed": {func(after map[string]*corev1.Node) { after[used].Annotations["demo/owner"] = "team-b" }, "changed elsewhere"},
		"an object is gone":      {func(after map[string]*corev1.Node) { delete(after, used) }, "came or went"},
		"the untouched was touched": {func(after map[string]*corev1.Node) {
			after[plain].ManagedFields = append(after[plain].ManagedFields, metav1.ManagedFieldsEntry{Manager: "feature-lifecycle"})
		}, "was written by feature-lifecycle"},
	} {
		after := nodes(true)
		tc.change(after)
		err := (&story{out: &bytes.Buffer{}}).compare(nodes(false), after)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
	if err := (&story{out: &bytes.Buffer{}}).describeUse(nodes(true)); err == nil || !strings.Contains(err.Error(), "is the gate on?") {
		t.Errorf("nodes without the field count as using it: %v", err)
	}
	if err := (&story{out: &bytes.Buffer{}}).describeUse(nodes(false)); err != nil {
		t.Errorf("nodes with the field: %v", err)
	}
}

func TestAFeatureIsShown(t *testing.T) {
	out := &bytes.Buffer{}
	(&story{out: out}).show(&v1alpha1.Feature{Status: v1alpha1.FeatureStatus{
		State:      v1alpha1.StateTurningOff,
		Configured: &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceCommandLine},
		Uses:       []v1alpha1.FeatureUse{{Component: "kubelet", Count: 2, Enabled: ptr.To(true)}, {Component: "kubelet", Enabled: nil}},
		Tasks:      []v1alpha1.FeatureTask{{Name: "A", Done: 1, Total: 3, Message: "news"}},
	}})
	want := "   TurningOff  configured false by CommandLine; users: 2 kubelet on, 0 kubelet unknown\n               task A 1/3 news\n"
	if out.String() != want {
		t.Errorf("shown as\n%q, want\n%q", out.String(), want)
	}
}
