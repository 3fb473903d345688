/*
Copyright 2026 The Kubernetes Authors.

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
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
)

// processOf is the report c.1 of one process.
func processOf(process string, gates ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReport {
	r := report("c", "1", gates...)
	r.Spec.Process = process
	return r
}

// TestWhatIsInheritedIsBounded: one identity that may write one report says ever new
// processes, and ever new names.
func TestWhatIsInheritedIsBounded(t *testing.T) {
	const takeovers, names = 300, 20
	x := newIndex(indexConfig{mostCrashes: 3})
	for i := range takeovers {
		var gates []v1alpha1.ReportedFeature
		for j := range names {
			gates = append(gates, asked(gate(fmt.Sprintf("F%d-%d", i, j), true)))
		}
		changed := x.set(processOf(fmt.Sprint(i), gates...), start)
		if most := (maxAncestors + 3) * names; len(changed) > most {
			t.Fatalf("takeover %d changes %d features, want at most %d", i, len(changed), most)
		}
		if h := x.inherited["c.1"]; h != nil && len(h.ancestors) > maxAncestors {
			t.Fatalf("after takeover %d there are %d ancestors", i, len(h.ancestors))
		}
		if len(x.cohorts) > maxAncestors+1 || len(x.features) > (maxAncestors+1)*names {
			t.Fatalf("after takeover %d there are %d cohorts and %d features", i, len(x.cohorts), len(x.features))
		}
	}
	// What the last of them asked for is remembered, and no more.
	for i, want := range map[int]bool{takeovers - 1: false, takeovers - 2: true, takeovers - 1 - maxAncestors: true, takeovers - 2 - maxAncestors: false} {
		if got := len(x.heirsOf(fmt.Sprintf("F%d-0", i))) == 1; got != want {
			t.Errorf("what process %d of %d asked for is inherited: %t, want %t", i, takeovers, got, want)
		}
	}
	if n := len(x.inheritedBy("c.1")); n != maxAncestors*names {
		t.Errorf("%d features are inherited, want those of %d processes", n, maxAncestors)
	}
}

// TestTheLastProcessThatListsAFeatureDecides whether the present one inherits it, also
// one that leaves nothing else.
func TestTheLastProcessThatListsAFeatureDecides(t *testing.T) {
	explicit := v1alpha1.ReportedFeature{Name: "A", Explicit: true}
	x := newIndex(indexConfig{})
	x.set(processOf("1", asked(gate("A", true)), asked(gate("B", true))), start)
	x.set(processOf("2", explicit), start)
	x.set(processOf("3"), start)
	check := func(what string, wantA, wantB bool) {
		t.Helper()
		for feature, want := range map[string]bool{"A": wantA, "B": wantB} {
			listed := slices.ContainsFunc(x.inheritedBy("c.1"), func(h heir) bool { return h.gate.Name == feature })
			if got := len(x.heirsOf(feature)) == 1; got != want || listed != want {
				t.Errorf("%s: %s is inherited: %t, and in the list: %t, want %t", what, feature, got, listed, want)
			}
		}
	}
	check("the second had not asked for A", false, true)
	x.set(processOf("4", asked(gate("B", true))), start)
	if len(x.inherited) > 0 {
		t.Errorf("nothing is inherited, and remembered are %v", x.inherited["c.1"].ancestors)
	}
	check("the fourth asked for B", false, false)
}

// TestWhoLivesLongEnoughInheritsNothing: also one that has a Lease, of which there is
// always something else to say.
func TestWhoLivesLongEnoughInheritsNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.serve("s1").controller
		w.leased = true
		stop := w.lease("comp", "i1")
		defer stop()
		for process := range 2 {
			w.processName = fmt.Sprint(process)
			w.report("comp", "i1", []v1alpha1.ReportedFeature{asked(gate("A", true))}[process:]...)
			w.pass(time.Second)
		}
		heirs := func() int { synctest.Wait(); return len(c.reports.heirsOf("A")) }
		w.pass(c.config.Settings.ReportPeriod - 10*time.Second)
		if n := heirs(); n != 1 {
			t.Fatalf("%d processes have inherited A, want 1: it may have asked for it", n)
		}
		w.pass(lastSeenDelay + 20*time.Second)
		if n := heirs(); n != 0 {
			t.Errorf("%d processes have inherited A, want none: it would have said so", n)
		}
	}, lifecycle.Feature{Name: "A"})
}
