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

package controller

import (
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/utils/ptr"
)

// TestAFeatureWhoseAPIIsNotServed: a plan says it before the feature is on, and the condition
// Progressing from then on, until it is off; nothing is held by it.
func TestAFeatureWhoseAPIIsNotServed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.notServed = map[string][]string{"A": {"no lamps"}}
		off, on := v1alpha1.ReportedFeature{Name: "A", Queried: true}, v1alpha1.ReportedFeature{Name: "A", Enabled: true, Explicit: true, Queried: true}
		reason := func(want string) func() bool {
			return func() bool {
				return w.rests("A", "1.36") && w.condition("A", v1alpha1.ConditionProgressing).Reason == want
			}
		}
		w.emulate("1.36", []v1alpha1.ReportedFeature{off}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted as off", reason(v1alpha1.ReasonComplete))
		blocked(t, w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}), "restarted with --feature-gates=A=true", "no lamps")
		blocked(t, w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}))
		w.emulate("1.36", []v1alpha1.ReportedFeature{on}, "s1")
		w.until(time.Minute, "on, and said to do little", reason(v1alpha1.ReasonNotServed))
		if state := w.state("A"); state != v1alpha1.StateOn {
			t.Errorf("the feature is %s, want On", state)
		}
		w.emulate("1.36", []v1alpha1.ReportedFeature{off}, "s1")
		w.until(time.Minute, "off", reason(v1alpha1.ReasonComplete))
	}, lifecycle.Feature{Name: "A"})
}
