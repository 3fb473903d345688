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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// boundary declares a feature with tasks at 1.36.
func (l *leftovers) boundary(name string) lifecycle.Feature {
	f := l.declare(name)
	f.Versions = lifecycle.Versions{{
		At: "1.36", OnUpgrade: lifecycle.Tasks{l.task("Convert"), l.task("Install")}, OnDowngrade: lifecycle.Tasks{l.task("Revert")},
	}}
	return f
}

// emulate lets servers report another version.
func (w *world) emulate(version string, gates []v1alpha1.ReportedFeature, servers ...string) {
	w.emulated = version
	for _, id := range servers {
		w.report("server", id, gates...)
	}
}

// rests is true when a feature is at rest in the form of a version.
func (w *world) rests(name, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.stored(name)
	return f != nil && f.Status.State != "" && f.Status.Transition == nil && f.Status.Version == version && len(f.Status.StoredVersions) == 0
}

// TestACrashAtAnyWriteOfAVersionTransition (S3) loses no task, up and down: the
// server that leads crashes at each of its writes in turn, before or after it
// arrived, and the other one continues.
func TestACrashAtAnyWriteOfAVersionTransition(t *testing.T) {
	gates := []v1alpha1.ReportedFeature{gate("A", true)}
	for to, want := range map[string][]string{"1.36": {"Convert", "Install"}, "1.35": {"Revert"}} {
		from := map[string]string{"1.36": "1.35", "1.35": "1.36"}[to]
		for _, lost := range []bool{true, false} {
			for at := 1; ; at++ {
				crashed := false
				l := newLeftovers()
				inWorld(t, func(w *world) {
					w.emulate(from, gates, "s1", "s2")
					s1, s2 := w.serve("s1"), w.serve("s2")
					w.until(time.Minute, "adopted", func() bool { return w.rests("A", from) })
					w.pass(time.Minute)
					leading := s1
					if s2.controller.leads("A", s2.controller.tracker.Servers("A", time.Now())) {
						leading = s2
					}
					w.mu.Lock()
					leading.crashAt, leading.lost = leading.wrote+at, lost
					w.mu.Unlock()
					w.emulate(to, gates, "s1", "s2")
					name := fmt.Sprintf("to %s, crash at write %d, lost %t", to, at, lost)
					w.until(tracker.MaxLeaseTimeout+time.Minute, name, func() bool { return w.rests("A", to) })
					w.mu.Lock()
					crashed = leading.crashed
					w.mu.Unlock()
					if state := w.state("A"); state != v1alpha1.StateOn {
						t.Errorf("%s: A is %s", name, state)
					}
					// A task may run again, since how it ended is unknown.
					if diff := cmp.Diff(want, slices.Compact(l.did())); diff != "" {
						t.Errorf("%s: unexpected tasks (-want +got):\n%s", name, diff)
					}
				}, l.boundary("A"))
				if !crashed {
					if at < 4 {
						t.Errorf("the transition to %s took %d writes only", to, at-1)
					}
					break
				}
			}
		}
	}
}

// TestAnUpgradeOf240FeaturesIsOneWriteForEach, and none while versions are mixed.
func TestAnUpgradeOf240FeaturesIsOneWriteForEach(t *testing.T) {
	const features = 240
	inWorld(t, func(w *world) {
		var gates []v1alpha1.ReportedFeature
		for i := range features {
			gates = append(gates, gate(fmt.Sprintf("Gate%d", i), i%2 == 0))
		}
		w.emulate("1.35", gates, "s1", "s2")
		w.serve("s1")
		w.serve("s2")
		all := func(version string) func() bool {
			return func() bool {
				for _, g := range gates {
					if !w.rests(g.Name, version) {
						return false
					}
				}
				return true
			}
		}
		w.until(2*time.Minute, "adopted", all("1.35"))
		w.pass(2 * time.Minute)
		w.written()
		w.emulate("1.36", gates, "s1")
		w.pass(2 * time.Minute)
		if n := w.written(); n != 0 {
			t.Errorf("%d writes while versions are mixed", n)
		}
		w.emulate("1.36", gates, "s2")
		took := w.until(time.Minute, "moved", all("1.36"))
		w.pass(10 * time.Minute)
		if n := w.written(); n != features {
			t.Errorf("%d writes for %d features", n, features)
		}
		if took > 5*time.Second {
			t.Errorf("nothing is to be done, and it took %s", took)
		}
	})
}

// TestAVersionTransitionIsHeldAndStopped while a server has another version: the
// attempt that is running ends, and nothing else begins.
func TestAVersionTransitionIsHeldAndStopped(t *testing.T) {
	gates := []v1alpha1.ReportedFeature{gate("A", false)}
	l := newLeftovers()
	l.slow = true
	inWorld(t, func(w *world) {
		w.emulate("1.35", gates, "s1", "s2")
		w.serve("s1")
		w.serve("s2")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.35") })
		w.emulate("1.36", gates, "s1", "s2")
		w.until(time.Minute, "the first task", func() bool { return w.taskOfFeature("A") == "Upgrade/1.36/Convert" })
		w.pass(5 * time.Second)
		w.emulate("1.35", gates, "s1")
		w.pass(5 * time.Second)
		l.mu.Lock()
		held := slices.Clone(l.held)
		l.slow = false
		l.mu.Unlock()
		if diff := cmp.Diff([]string{"Convert"}, held); diff != "" {
			t.Errorf("attempts that were stopped (-want +got):\n%s", diff)
		}
		if c := w.condition("A", v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonMixedVersions {
			t.Errorf("Progressing is %+v", c)
		}
		// The other one follows: everything goes back.
		w.emulate("1.35", gates, "s2")
		w.until(time.Minute, "back", func() bool { return w.rests("A", "1.35") })
		if diff := cmp.Diff([]string{"Revert"}, l.did()); diff != "" {
			t.Errorf("unexpected tasks (-want +got):\n%s", diff)
		}
	}, l.boundary("A"))
}

// taskOfFeature is the first of the tasks that are stored for a feature, "" for none.
func (w *world) taskOfFeature(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tasks := taskNames(w.stored(name).Status); len(tasks) > 0 {
		return tasks[0]
	}
	return ""
}

// TestDowngradeSafe says what stands in the way, by name, and follows at once.
func TestDowngradeSafe(t *testing.T) {
	newIn136 := featuregate.VersionedSpecs{{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta, Default: true}}
	old := featuregate.VersionedSpecs{{Version: utilversion.MustParse("1.30"), PreRelease: featuregate.Beta, Default: true}}
	l := newLeftovers()
	inWorld(t, func(w *world) {
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": newIn136, "B": old, "C": newIn136}
		is := func(name string) string {
			if w.state(name) == "" {
				return ""
			}
			c := w.condition(name, v1alpha1.ConditionDowngradeSafe)
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
		on := func(name string, explicit bool) v1alpha1.ReportedFeature {
			return v1alpha1.ReportedFeature{Name: name, Enabled: true, Default: true, Explicit: explicit, Queried: true}
		}
		w.report("server", "s1", on("A", false), on("B", false), on("C", false), gate("D", false))
		w.serve("s1")
		w.until(time.Minute, "judged", func() bool {
			return is("A") == "False NotInAdjacentVersion" && is("B") == "True Safe" && is("C") == "Unknown NotExamined" && is("D") == " "
		})
		// A process sets what 1.35 does not have.
		w.report("scheduler", "host-1", on("C", true))
		stop := w.lease("scheduler", "host-1")
		defer stop()
		w.until(time.Minute, "named", func() bool {
			c := w.condition("C", v1alpha1.ConditionDowngradeSafe)
			return c.Reason == v1alpha1.ReasonRefusesToStart && strings.Contains(c.Message, "scheduler/host-1 sets C=true")
		})
		w.report("scheduler", "host-1", on("C", false))
		w.until(time.Minute, "taken back", func() bool { return is("C") == "Unknown NotExamined" })
		// Or names it in a flag that a server of 1.35 refuses.
		named := on("C", false)
		named.Control = v1alpha1.ControlDynamic
		w.report("server", "s1", on("A", false), on("B", false), named, gate("D", false))
		w.until(time.Minute, "refused", func() bool {
			c := w.condition("C", v1alpha1.ConditionDowngradeSafe)
			return c.Reason == v1alpha1.ReasonRefusesToStart && strings.Contains(c.Message, "server/s1 has C as Dynamic")
		})
		w.report("server", "s1", on("A", false), on("B", false), on("C", false), gate("D", false))
		w.until(time.Minute, "no longer", func() bool { return is("C") == "Unknown NotExamined" })
		// Turned off, nothing is left, and with the write that says Off.
		w.report("server", "s1", gate("A", false), on("B", false), on("C", false), gate("D", false))
		l.mu.Lock()
		clear(l.left)
		l.mu.Unlock()
		w.until(time.Minute, "turning off", func() bool { return is("A") == "False InTransition" })
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		if got := is("A"); got != "True Safe" {
			t.Errorf("A is off, and DowngradeSafe is %s", got)
		}
	}, l.declare("A"))
}

// TestUpgradeSafe: of the version after the binary's own a server says what it
// can, and one that emulates a lower version knows the next.
func TestUpgradeSafe(t *testing.T) {
	v := utilversion.MustParse
	growing := featuregate.VersionedSpecs{
		{Version: v("1.34"), PreRelease: featuregate.Beta},
		{Version: v("1.36"), PreRelease: featuregate.GA, Default: true, LockToDefault: true},
	}
	l := newLeftovers()
	clear(l.left)
	inWorld(t, func(w *world) {
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": {{Version: v("1.34"), Default: true, PreRelease: featuregate.Beta}}, "B": growing}
		w.specsUpTo = v("1.36")
		is := func(name string) string {
			if w.state(name) == "" {
				return ""
			}
			c := w.condition(name, v1alpha1.ConditionUpgradeSafe)
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
		w.emulate("1.35", []v1alpha1.ReportedFeature{gate("A", true), {Name: "B", Explicit: true}}, "s1")
		w.serve("s1")
		w.until(time.Minute, "judged", func() bool { return is("A") == "True Safe" && is("B") == "False RefusesToStart" })
		w.until(time.Minute, "settled", func() bool { return w.rests("A", "1.35") })
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true), {Name: "B"}}, "s1")
		w.until(time.Minute, "judged at its own version", func() bool { return is("A") == "Unknown NotExamined" && is("B") == "True Safe" })
		if c := w.condition("A", v1alpha1.ConditionUpgradeSafe); !strings.Contains(c.Message, "the notes of release 1.37 can tell") {
			t.Errorf("it does not name a source: %s", c.Message)
		}
		w.pass(2 * time.Minute)
		w.written()
		w.pass(10 * time.Minute)
		if n := w.written(); n != 0 {
			t.Errorf("%d writes while nothing changes", n)
		}
	}, l.declare("B"))
}
