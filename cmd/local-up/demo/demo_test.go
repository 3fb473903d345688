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

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// sets are the demonstration's StatefulSets before, or after the field is gone.
func sets(cleared bool) map[string]*appsv1.StatefulSet {
	result := map[string]*appsv1.StatefulSet{}
	for _, name := range names {
		strategy := appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		if name != untouched {
			strategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)}}
			if !cleared {
				strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(2))
			}
		}
		set := statefulSet(name, strategy)
		set.Generation = 1
		if cleared && name != untouched {
			set.Generation, set.ResourceVersion = 2, "9"
		}
		result[name] = set
	}
	return result
}

// TestTheDemonstrationCanFail: it must not claim what does not hold.
func TestTheDemonstrationCanFail(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(after map[string]*appsv1.StatefulSet)
		says   string
	}{
		"all is well":               {func(map[string]*appsv1.StatefulSet) {}, ""},
		"the field is still there":  {func(after map[string]*appsv1.StatefulSet) { after["web"] = sets(false)["web"] }, "still has"},
		"something else changed":    {func(after map[string]*appsv1.StatefulSet) { after["web"].Annotations["demo/owner"] = "team-b" }, "changed elsewhere"},
		"an object is gone":         {func(after map[string]*appsv1.StatefulSet) { delete(after, "web") }, "came or went"},
		"the untouched was touched": {func(after map[string]*appsv1.StatefulSet) { after[untouched].Generation = 2 }, "was written"},
		"or written by a client": {func(after map[string]*appsv1.StatefulSet) {
			after[untouched].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "feature-lifecycle"}}
		}, "was written"},
	} {
		after := sets(true)
		tc.change(after)
		err := (&story{out: &bytes.Buffer{}}).compare(sets(false), after)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
	if err := (&story{out: &bytes.Buffer{}}).describeUse(sets(true)); err == nil || !strings.Contains(err.Error(), "is the gate on?") {
		t.Errorf("StatefulSets without the field count as using it: %v", err)
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
