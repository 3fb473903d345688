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
	"strings"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// TestPlanNamesUnknownUsers: right after the start of a process it is unknown whether
// it uses the feature. What a server configures is known at once.
func TestPlanNamesUnknownUsers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", true))
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		plan := func(value bool) *v1alpha1.FeaturePlanStatus {
			return w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(value)})
		}
		const restart = "1 live server configures the other value and has to be restarted with --feature-gates=A=false: s1"
		known := func(p *v1alpha1.FeaturePlanStatus, want ...string) {
			t.Helper()
			if len(p.Unknown) != len(want) || len(want) > 0 && !strings.Contains(p.Unknown[0], want[0]) {
				t.Errorf("not known is %q, want %q", p.Unknown, want)
			}
		}
		p := plan(false)
		blocked(t, p, restart)
		known(p)
		w.report("manager", "m1")
		w.pass(time.Second)
		p = plan(false)
		blocked(t, p, restart)
		known(p, "1 live process has started lately, and whether it uses the feature is not known before it reports that: manager/m1; check again in 1m10s")
		known(plan(true))
		w.pass(w.settings.ReportPeriod)
		known(plan(false))
		w.report("manager", "m1", asked(gate("A", true)))
		w.pass(time.Second)
		p = plan(false)
		blocked(t, p, "1 live user has the other value and has to be restarted with --feature-gates=A=false: manager/m1", restart)
		known(p)
	})
}
