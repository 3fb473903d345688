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

package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// processOf returns the report c.1 of one process.
func processOf(process string, gates ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReport {
	r := report("c", "1", gates...)
	r.Spec.Process = process
	return r
}

// TestPredecessorsAreBounded checks one identity that may write one report, and writes
// ever new processes and names.
func TestPredecessorsAreBounded(t *testing.T) {
	const takeovers, names = 300, 20
	x := newIndex(indexConfig{maxCrashes: 3})
	for i := range takeovers {
		var gates []v1alpha1.ReportedFeature
		for j := range names {
			gates = append(gates, queried(gate(fmt.Sprintf("F%d-%d", i, j), true)))
		}
		changed := x.set(processOf(fmt.Sprint(i), gates...), start)
		if most := (maxPredecessors + 3) * names; len(changed) > most {
			t.Fatalf("takeover %d changes %d features, want at most %d", i, len(changed), most)
		}
		if h := x.predecessors["c.1"]; h != nil && len(h.groups) > maxPredecessors {
			t.Fatalf("after takeover %d there are %d predecessors", i, len(h.groups))
		}
		if len(x.groups) > maxPredecessors+1 || len(x.features) > (maxPredecessors+1)*names {
			t.Fatalf("after takeover %d there are %d groups and %d features", i, len(x.groups), len(x.features))
		}
	}
	// The queries of the last of them are remembered, and no more.
	for i, want := range map[int]bool{takeovers - 1: false, takeovers - 2: true, takeovers - 1 - maxPredecessors: true, takeovers - 2 - maxPredecessors: false} {
		if got := len(x.replacementsOf(fmt.Sprintf("F%d-0", i))) == 1; got != want {
			t.Errorf("queries of process %d of %d are remembered: %t, want %t", i, takeovers, got, want)
		}
	}
	if n := len(x.replacing("c.1")); n != maxPredecessors*names {
		t.Errorf("%d features are remembered, want those of %d processes", n, maxPredecessors)
	}
}

// TestLastProcessThatListsAFeatureDecides checks whether the present one takes it over,
// also after one that leaves nothing else.
func TestLastProcessThatListsAFeatureDecides(t *testing.T) {
	explicit := v1alpha1.ReportedFeature{Name: "A", Explicit: true}
	x := newIndex(indexConfig{})
	x.set(processOf("1", queried(gate("A", true)), queried(gate("B", true))), start)
	x.set(processOf("2", explicit), start)
	x.set(processOf("3"), start)
	check := func(what string, wantA, wantB bool) {
		t.Helper()
		for feature, want := range map[string]bool{"A": wantA, "B": wantB} {
			listed := slices.ContainsFunc(x.replacing("c.1"), func(h replacement) bool { return h.gate.Name == feature })
			if got := len(x.replacementsOf(feature)) == 1; got != want || listed != want {
				t.Errorf("%s: %s is remembered: %t, and in the list: %t, want %t", what, feature, got, listed, want)
			}
		}
	}
	check("the second had not queried A", false, true)
	x.set(processOf("4", queried(gate("B", true))), start)
	if len(x.predecessors) > 0 {
		t.Errorf("nothing is remembered, but groups are %v", x.predecessors["c.1"].groups)
	}
	check("the fourth queried B", false, false)
}

// TestPredecessorsDroppedOnceProcessHasLivedLongEnough covers a process with a Lease, which is
// never uniform.
func TestPredecessorsDroppedOnceProcessHasLivedLongEnough(t *testing.T) {
	settings := DefaultSettings()
	tracker := New(Config{Settings: settings})
	now := start
	pass := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(5 * time.Second)
			tracker.SetLease(leaseFor("c", "1", now), now)
			tracker.Advance(now)
		}
	}
	pass(5 * time.Second)
	for process := range 2 {
		r := processOf(fmt.Sprint(process), []v1alpha1.ReportedFeature{queried(gate("A", true))}[process:]...)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: "c.1"}
		tracker.SetReport(r, now)
	}
	replaced := func() int { return len(tracker.index.replacementsOf("A")) }
	pass(settings.ReportPeriod - 10*time.Second)
	if n := replaced(); n != 1 {
		t.Fatalf("%d processes have replaced a user of A, want 1: it may have queried it", n)
	}
	if s := tracker.Snapshot("A", now); len(s.Replaced) != 1 {
		t.Errorf("the replaced user is not shown: %+v", s)
	}
	pass(lastSeenDelay + 20*time.Second)
	if n := replaced(); n != 0 {
		t.Errorf("%d processes have replaced a user of A, want none: it would have reported it", n)
	}
}

// TestPredecessorsForgotten once the feature is reported, or no process comes.
func TestPredecessorsForgotten(t *testing.T) {
	queried := func(process string, names ...string) *v1alpha1.FeatureReport {
		var gates []v1alpha1.ReportedFeature
		for _, name := range names {
			gates = append(gates, v1alpha1.ReportedFeature{Name: name, Queried: true})
		}
		r := report("c", "1", gates...)
		r.Spec.Process = process
		return r
	}
	x := newIndex(indexConfig{maxCrashes: 3})
	check := func(what string, features, changed []string, want ...string) {
		t.Helper()
		var replaced []string
		for _, feature := range []string{"A", "B", "C"} {
			for _, h := range x.replacementsOf(feature) {
				if h.gate.Name != feature || h.report != x.processes["c.1"].report {
					t.Errorf("%s: %s has the gate %s", what, feature, h.gate.Name)
				}
				replaced = append(replaced, feature)
			}
		}
		if !slices.Equal(replaced, want) || !slices.Equal(changed, features) {
			t.Errorf("%s: %v are replaced, want %v; %v changed, want %v", what, replaced, want, changed, features)
		}
	}
	all := []string{"A", "B", "C"}
	check("one process", all, x.set(queried("1", all...), start))
	check("another queried one so far", all, x.set(queried("2", "A"), start), "B", "C")
	check("it queries another", []string{"B"}, x.set(queried("2", "A", "B"), start), "C")
	check("a third queried none", all, x.set(queried("3"), start), all...)
	check("its report goes", all, x.remove("c.1", start))
	x.dropNotReturned(start)
	check("a fourth comes in time", all, x.set(queried("4", "A"), start), "B", "C")
	x.dropNotReturned(start.Add(24 * time.Hour))
	if notReturned := x.notReturnedOf("B"); len(notReturned) > 0 {
		t.Error("a process that did not return is still kept")
	}
	check("while it exists nothing is forgotten", nil, x.set(queried("4", "A"), start), "B", "C")
	x.remove("c.1", start)
	if notReturned := x.notReturnedOf("B"); len(notReturned) != 1 || notReturned[0].report != "c.1" || notReturned[0].gate.Name != "B" || !notReturned[0].at.Equal(start) {
		t.Errorf("not returned: %v", notReturned)
	}
	if got := x.dropNotReturned(start.Add(1)); !slices.Equal(got, all) {
		t.Errorf("%v changed as they were forgotten, want %v", got, all)
	}
	check("a fifth comes too late", []string{"A"}, x.set(queried("5", "A"), start))
	x.remove("c.1", start)
	x.dropNotReturned(start.Add(1))
	if len(x.predecessors)+len(x.groups)+len(x.features) > 0 {
		t.Errorf("%v, %v and %v are left", x.predecessors, x.groups, x.features)
	}
}
