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
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// TestFrom: each component has its sources once, the first few by name.
func TestFrom(t *testing.T) {
	process := func(component, source string) Process {
		return Process{Component: component, Gates: map[string]Value{"A": {Source: source}}}
	}
	c := &Cluster{Processes: []Process{
		process(APIServer, "its metrics"), process(APIServer, "its metrics"), process(APIServer, ""), {Component: Scheduler},
		process(Kubelet, "a"), process(Kubelet, "b"), process(Kubelet, "c"), process(Kubelet, "d"), process(Kubelet, "e"), process(Kubelet, "f"), process(Kubelet, "a"),
	}}
	for want, got := range map[string]string{
		"kube-apiserver: its metrics; kubelet: a, b, c, d, e and 1 more": c.From("A"),
		"kube-apiserver: its metrics":                                    c.From("A", APIServer),
		"":                                                               c.From("B"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestJoining: a gate's own setting decides, and that of its stage where it changes the default.
func TestJoining(t *testing.T) {
	c := &Cluster{Settings: []Setting{
		{APIServer, "A", true, "x"}, {APIServer, "AllBeta", false, "x"}, {Kubelet, "AllBeta", false, "y"}, {Kubelet, "AllAlpha", true, "y"}, {Kubelet, "B", true, "y"},
	}}
	for name, tc := range map[string]struct {
		status v1alpha1.FeatureStatus
		want   []Setting
	}{
		"its own, and that of its stage": {
			v1alpha1.FeatureStatus{Stage: v1alpha1.StageBeta, Default: ptr.To(true)},
			[]Setting{{APIServer, "A", true, "x"}, {Kubelet, "A", false, "AllBeta of y"}},
		},
		"a stage that has its default": {v1alpha1.FeatureStatus{Stage: v1alpha1.StageBeta, Default: ptr.To(false)}, []Setting{{APIServer, "A", true, "x"}}},
		"a default that is not known":  {v1alpha1.FeatureStatus{Stage: v1alpha1.StageAlpha}, []Setting{{APIServer, "A", true, "x"}, {Kubelet, "A", true, "AllAlpha of y"}}},
		"a stage that is not known":    {v1alpha1.FeatureStatus{}, []Setting{{APIServer, "A", true, "x"}}},
		"locked":                       {v1alpha1.FeatureStatus{Stage: v1alpha1.StageBeta, Default: ptr.To(true), LockedToDefault: true}, []Setting{{APIServer, "A", true, "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &v1alpha1.Feature{Status: tc.status}
			f.Name = "A"
			if diff := cmp.Diff(tc.want, c.Joining(f)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}
