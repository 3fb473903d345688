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
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
)

// minor is a minor version.
var minor = utilversion.MustParse

var (
	// grown is on by default from 1.36 on, and alpha before.
	grown = featuregate.VersionedSpecs{{Version: minor("1.34"), PreRelease: featuregate.Alpha}, {Version: minor("1.36"), Default: true, PreRelease: featuregate.Beta}}
	// young does not exist before 1.36.
	young = featuregate.VersionedSpecs{{Version: minor("1.36"), Default: true, PreRelease: featuregate.Beta}}
	// locked is locked from 1.36 on.
	locked = featuregate.VersionedSpecs{{Version: minor("1.34"), PreRelease: featuregate.Beta}, {Version: minor("1.36"), Default: true, LockToDefault: true, PreRelease: featuregate.GA}}
)

// plan asks a server for a plan.
func (w *world) plan(s *serverProcess, name string, spec v1alpha1.FeaturePlanSpec) *v1alpha1.FeaturePlanStatus {
	w.t.Helper()
	p, err := s.controller.Plan(w.t.Context(), w.stored(name), &v1alpha1.FeaturePlan{Spec: spec})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// says has what a plan would do, a line for each task.
func says(p *v1alpha1.FeaturePlanStatus) []string {
	var lines []string
	for _, task := range p.Tasks {
		line := strings.TrimSpace(fmt.Sprintf("%s %s", task.State, task.Name))
		for _, l := range task.Leftovers {
			line += fmt.Sprintf(" %d", l.Count)
		}
		lines = append(lines, line)
	}
	return lines
}

// blocked checks that each blocker has the part that is wanted.
func blocked(t *testing.T, p *v1alpha1.FeaturePlanStatus, want ...string) {
	t.Helper()
	if !slices.EqualFunc(p.Blockers, want, strings.Contains) {
		t.Errorf("the blockers are %q, want %q", p.Blockers, want)
	}
}

// TestAPlanOfADowngradeHasTheTasksOfTheValue, which comes first, and counts for both.
func TestAPlanOfADowngradeHasTheTasksOfTheValue(t *testing.T) {
	on := v1alpha1.ReportedFeature{Name: "A", Enabled: true, Default: true, Queried: true, Stage: v1alpha1.StageBeta}
	l := newLeftovers()
	l.left = map[string]int{"ClearA": 3, "Revert": 2}
	inWorld(t, func(w *world) {
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": grown}
		w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
		w.emulate("1.36", []v1alpha1.ReportedFeature{on}, "s1", "s2")
		w.report("scheduler", "host-1", on)
		stop := w.lease("scheduler", "host-1")
		defer stop()
		s1 := w.serve("s1")
		w.serve("s2")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		w.pass(time.Minute)
		w.written()
		p := w.plan(s1, "A", v1alpha1.FeaturePlanSpec{TargetVersion: "1.35"})
		if diff := cmp.Diff([]string{"TurningOff WaitForUses", "TurningOff ClearA 3", "TurningOff ClearB", "Downgrading WaitForUses", "Downgrading Downgrade/1.36/Revert 2"}, says(p)); diff != "" {
			t.Errorf("unexpected plan (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(&v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}, p.Configured); diff != "" {
			t.Errorf("unexpected value (-want +got):\n%s", diff)
		}
		blocked(t, p, "2 live servers have another version and have to be restarted with --emulated-version=1.35", "scheduler/host-1")
		want := []v1alpha1.FeatureUse{
			{Component: "scheduler", Enabled: ptr.To(true), Count: 1, Examples: []string{"host-1"}},
			{Component: "server", Enabled: ptr.To(true), Count: 2, Expected: 2, Examples: []string{"s1", "s2"}},
		}
		if diff := cmp.Diff(want, p.Uses); diff != "" {
			t.Errorf("unexpected uses (-want +got):\n%s", diff)
		}
		if n := w.written(); n != 0 {
			t.Errorf("planning made %d writes", n)
		}
		// It comes about as planned.
		w.report("scheduler", "host-1", v1alpha1.ReportedFeature{Name: "A", Queried: true})
		w.emulate("1.35", []v1alpha1.ReportedFeature{{Name: "A", Queried: true, Stage: v1alpha1.StageAlpha}}, "s1", "s2")
		w.until(time.Minute, "moved", func() bool { return w.rests("A", "1.35") && w.state("A") == v1alpha1.StateOff })
		if diff := cmp.Diff([]string{"ClearA", "ClearB", "Revert"}, l.did()); diff != "" {
			t.Errorf("what ran is not what was planned (-want +got):\n%s", diff)
		}
		// And back: the version first.
		p = w.plan(s1, "A", v1alpha1.FeaturePlanSpec{TargetVersion: "1.36"})
		if diff := cmp.Diff([]string{"Upgrading WaitForUses", "Upgrading Upgrade/1.36/Convert", "Upgrading Upgrade/1.36/Install", "TurningOn WaitForUses", "TurningOn Install"}, says(p)); diff != "" {
			t.Errorf("unexpected plan (-want +got):\n%s", diff)
		}
	}, l.boundary("A"))
}

// TestPlanNamesStartupBlockers: a task that runs too late for
// servers that have the feature on.
func TestPlanNamesStartupBlockers(t *testing.T) {
	for name, tc := range map[string]struct {
		on, found bool
		blockers  []string
		safe      string
	}{
		"on, and it finds something":  {true, true, []string{"--emulated-version=1.36", "servers of 1.36 that have the feature on may never become ready"}, "Unknown NotExamined"},
		"on, and it finds nothing":    {true, false, []string{"--emulated-version=1.36"}, "Unknown NotExamined"},
		"off, and it finds something": {false, true, []string{"--emulated-version=1.36"}, "True Safe"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeftovers()
			l.left = map[string]int{}
			if tc.found {
				l.left["Convert"] = 3
			}
			a := l.boundary("A")
			a.OnDisable, a.Versions[0].OnUpgrade[0].BlocksStartup = nil, true
			inWorld(t, func(w *world) {
				w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": {{Version: minor("1.34"), PreRelease: featuregate.Alpha}}}
				w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
				w.emulate("1.35", []v1alpha1.ReportedFeature{{Name: "A", Enabled: tc.on, Explicit: true, Queried: true, Stage: v1alpha1.StageAlpha}}, "s1")
				s1 := w.serve("s1")
				w.until(time.Minute, "judged", func() bool {
					if !w.rests("A", "1.35") {
						return false
					}
					c := w.condition("A", v1alpha1.ConditionUpgradeSafe)
					return fmt.Sprintf("%s %s", c.Status, c.Reason) == tc.safe
				})
				blocked(t, w.plan(s1, "A", v1alpha1.FeaturePlanSpec{TargetVersion: "1.36"}), tc.blockers...)
			}, a)
		})
	}
}

// TestPlansForVersions: what decides the value there, what holds, and what
// cannot be known.
func TestPlansForVersions(t *testing.T) {
	on := func(name string, explicit bool) v1alpha1.ReportedFeature {
		return v1alpha1.ReportedFeature{Name: name, Enabled: true, Default: true, Explicit: explicit, Stage: v1alpha1.StageBeta}
	}
	dynamic := on("Dynamic", false)
	dynamic.Control = v1alpha1.ControlDynamic
	byDefault := func(value bool) *v1alpha1.FeatureConfiguration {
		return &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceDefault}
	}
	byFlag := &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine}
	move := func(to string) string { return "--emulated-version=" + to }
	for name, tc := range map[string]struct {
		feature, to string
		configured  *v1alpha1.FeatureConfiguration
		tasks       []string
		blockers    []string
		unknown     string
	}{
		"nothing is to be done here":                {"Plain", "1.36", byDefault(true), nil, nil, ""},
		"nothing is declared, and the value goes":   {"Plain", "1.35", byDefault(false), []string{"TurningOff WaitForUses"}, []string{move("1.35")}, ""},
		"what is set stays where the gate exists":   {"Set", "1.35", byFlag, nil, []string{move("1.35")}, ""},
		"what is set where the gate does not exist": {"Young", "1.35", byDefault(false), []string{"TurningOff WaitForUses"}, []string{"1.35 does not have the gate and its binaries would refuse to start: server/s1 sets Young=true; take Young out", move("1.35")}, ""},
		"a flag that names what is not there":       {"Dynamic", "1.35", byDefault(false), []string{"TurningOff WaitForUses"}, []string{"1.35 does not have the gate and its servers would refuse to start with it in --central-features or --dynamic-features: server/s1 has Dynamic as Dynamic; take Dynamic out", move("1.35")}, ""},
		"a version after this binary's": {"Plain", "1.37", nil, nil, []string{move("1.37")},
			"what 1.37 makes of the gate, and which tasks it declares, is not known to binaries of 1.36; the notes of release 1.37 can tell"},
		"a version that is skipped to":                  {"Plain", "1.38", nil, nil, []string{"move to 1.37 first", move("1.38")}, "the notes of release 1.38 can tell"},
		"the next major version":                        {"Plain", "2.0", nil, nil, []string{move("2.0")}, "what 2.0 makes of the gate, and which tasks it declares, is not known to binaries of 1.36"},
		"a version of that which is skipped to":         {"Plain", "2.3", nil, nil, []string{"move to 2.0 first", move("2.3")}, "the notes of release 2.3 can tell"},
		"the major version before":                      {"Plain", "0.9", nil, nil, []string{"can emulate no version below 1.33", move("0.9")}, "this binary knows versions from 1.33 on"},
		"a version that no binary emulates":             {"Plain", "1.32", nil, nil, []string{"can emulate no version below 1.33", move("1.32")}, "this binary knows versions from 1.33 on"},
		"a gate that this server does not have":         {"Foreign", "1.35", nil, nil, []string{move("1.35")}, "this server does not have it"},
		"a gate that is locked and was not, going down": {"Locked", "1.35", byDefault(false), []string{"TurningOff WaitForUses"}, []string{move("1.35")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"Plain": grown, "Set": grown, "Young": young, "Dynamic": young, "Locked": locked}
				w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
				w.emulate("1.36", []v1alpha1.ReportedFeature{on("Plain", false), on("Set", true), on("Young", true), dynamic, on("Locked", false), on("Foreign", false)}, "s1")
				s1 := w.serve("s1")
				w.until(time.Minute, "adopted", func() bool { return w.rests(tc.feature, "1.36") })
				p := w.plan(s1, tc.feature, v1alpha1.FeaturePlanSpec{TargetVersion: tc.to})
				if diff := cmp.Diff(tc.configured, p.Configured); diff != "" {
					t.Errorf("unexpected value (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.tasks, says(p), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("unexpected tasks (-want +got):\n%s", diff)
				}
				blocked(t, p, tc.blockers...)
				if (len(p.Unknown) > 0) != (tc.unknown != "") || !strings.Contains(strings.Join(p.Unknown, "\n"), tc.unknown) {
					t.Errorf("not known is %q, want %q", p.Unknown, tc.unknown)
				}
			})
		})
	}
}

// TestARequestThatWaitsCounts: it has no answer yet, and it is in effect
// right after the move that it waits for, or the pause.
func TestARequestThatWaitsCounts(t *testing.T) {
	l := newLeftovers()
	clear(l.left)
	inWorld(t, func(w *world) {
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": {{Version: minor("1.34"), PreRelease: featuregate.Alpha}}}
		w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
		w.emulate("1.35", []v1alpha1.ReportedFeature{{Name: "A", Stage: v1alpha1.StageAlpha, Control: v1alpha1.ControlDynamic}}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "off", func() bool { return w.rests("A", "1.35") })
		safe := func() string {
			c := w.condition("A", v1alpha1.ConditionUpgradeSafe)
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
		w.until(time.Minute, "judged", func() bool { return strings.HasPrefix(safe(), "True Safe") })
		(&trial{world: w}).change(func(spec *v1alpha1.FeatureSpec) { spec.Paused, spec.Enabled = true, ptr.To(true) })
		w.until(time.Minute, "held", func() bool { return w.condition("A", v1alpha1.ConditionProgressing).Reason == v1alpha1.ReasonPaused })
		if f := w.stored("A"); f.Status.Configured.Value {
			t.Fatalf("the request was answered in a pause: %+v", f.Status.Configured)
		}
		want := &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI}
		for to, tasks := range map[string][]string{
			"1.35": {"TurningOn WaitForUses", "TurningOn Install"},
			"1.36": {"Upgrading WaitForUses", "Upgrading Upgrade/1.36/Convert", "Upgrading Upgrade/1.36/Install", "TurningOn WaitForUses", "TurningOn Install"},
		} {
			p := w.plan(s1, "A", v1alpha1.FeaturePlanSpec{TargetVersion: to})
			if diff := cmp.Diff(want, p.Configured); diff != "" {
				t.Errorf("%s: unexpected value (-want +got):\n%s", to, diff)
			}
			if diff := cmp.Diff(tasks, says(p)); diff != "" {
				t.Errorf("%s: unexpected plan (-want +got):\n%s", to, diff)
			}
		}
		if got := safe(); !strings.HasPrefix(got, "False InTransition") || !strings.Contains(got, "configured as true, and has not begun to change") {
			t.Errorf("UpgradeSafe is %s", got)
		}
	}, l.boundary("A"))
}

// TestPlanNamesDependents, and what it depends on, now and at another
// version.
func TestPlanNamesDependents(t *testing.T) {
	inWorld(t, func(w *world) {
		// C depends on B, which depends on A. At 1.35 A is off by default, and B
		// exists and is set.
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": grown, "B": grown, "C": young}
		w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
		w.dependencies = map[featuregate.Feature][]featuregate.Feature{"B": {"A"}, "C": {"B"}}
		on := func(name string, explicit bool) v1alpha1.ReportedFeature {
			return v1alpha1.ReportedFeature{Name: name, Enabled: true, Default: true, Explicit: explicit, Stage: v1alpha1.StageBeta}
		}
		w.emulate("1.36", []v1alpha1.ReportedFeature{on("A", false), on("B", true), on("C", false)}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") && w.rests("B", "1.36") && w.rests("C", "1.36") })
		check := func(what string, p *v1alpha1.FeaturePlanStatus, dependents, dependencies []string, blockers ...string) {
			t.Helper()
			if diff := cmp.Diff([][]string{dependents, dependencies}, [][]string{p.Dependents, p.Dependencies}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: unexpected dependents and dependencies (-want +got):\n%s", what, diff)
			}
			blocked(t, p, blockers...)
		}
		off, wanted := v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}, v1alpha1.FeaturePlanSpec{Enabled: ptr.To(true)}
		down := v1alpha1.FeaturePlanSpec{TargetVersion: "1.35"}
		check("A off", w.plan(s1, "A", off), []string{"B", "C"}, nil, "turn B, C off first, or in the same restart (--feature-gates=A=false,B=false,C=false)", "with --feature-gates=A=false: s1")
		check("C off", w.plan(s1, "C", off), nil, nil, "with --feature-gates=C=false: s1")
		check("A at 1.35", w.plan(s1, "A", down), []string{"B"}, nil, "with B on and A off, on which it depends: server/s1 sets B=true; start them in 1.35 with --feature-gates=B=false,A=false, or", "--emulated-version=1.35")
		check("B at 1.35", w.plan(s1, "B", down), nil, []string{"A"}, "with B on and A off, on which it depends: server/s1 sets B=true; start them in 1.35 with --feature-gates=B=false,A=false, or", "--emulated-version=1.35")
		// The conditions of both say the same.
		for _, name := range []string{"A", "B"} {
			if c := w.condition(name, v1alpha1.ConditionDowngradeSafe); c.Reason != v1alpha1.ReasonRefusesToStart || !strings.Contains(c.Message, "server/s1 sets B=true; start them in 1.35") {
				t.Errorf("DowngradeSafe of %s: %+v", name, c)
			}
		}

		w.emulate("1.36", []v1alpha1.ReportedFeature{{Name: "A", Default: true}, {Name: "B", Default: true}, {Name: "C", Default: true}}, "s1")
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff && w.state("C") == v1alpha1.StateOff })
		check("C on", w.plan(s1, "C", wanted), nil, []string{"A", "B"}, "turn A, B on first, or in the same restart", "with --feature-gates=C=true: s1")
		check("A on", w.plan(s1, "A", wanted), nil, nil, "with --feature-gates=A=true: s1")
	})
}

// TestDependentsOfAGateThatAKubeletSetsAreNotSafe: B, which the kubelet does not report,
// becomes on in the next version, and A, which it depends on, is set off. Once the kubelet
// has dropped that, or its Node has gone, all is well.
func TestDependentsOfAGateThatAKubeletSetsAreNotSafe(t *testing.T) {
	inWorld(t, func(w *world) {
		w.specs = map[featuregate.Feature]featuregate.VersionedSpecs{"A": grown, "B": grown}
		w.specsUpTo, w.specsFrom = minor("1.36"), minor("1.33")
		w.dependencies = map[featuregate.Feature][]featuregate.Feature{"B": {"A"}}
		alpha := func(name string, explicit bool) v1alpha1.ReportedFeature {
			return v1alpha1.ReportedFeature{Name: name, Explicit: explicit, Stage: v1alpha1.StageAlpha}
		}
		w.emulate("1.35", []v1alpha1.ReportedFeature{alpha("A", false), alpha("B", false)}, "s1")
		s1 := w.serve("s1")
		safe := func(status metav1.ConditionStatus, reason, says string) func() bool {
			return func() bool {
				return !slices.ContainsFunc([]string{"A", "B"}, func(name string) bool {
					c := w.condition(name, v1alpha1.ConditionUpgradeSafe)
					return c.Status != status || c.Reason != reason || !strings.Contains(c.Message, says)
				})
			}
		}
		w.until(time.Minute, "safe", func() bool {
			return w.rests("A", "1.35") && w.rests("B", "1.35") && safe(metav1.ConditionTrue, v1alpha1.ReasonSafe, "")()
		})
		const says = "binaries would refuse to start in 1.36 with B on and A off, on which it depends: kubelet/n1 sets A=false; start them in 1.36 with --feature-gates="
		refuses := safe(metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart, says)
		w.node("n1", corev1.ConditionTrue)
		w.report("kubelet", "n1", alpha("A", true))
		w.until(time.Minute, "refused", refuses)
		for _, name := range []string{"A", "B"} {
			if p := w.plan(s1, name, v1alpha1.FeaturePlanSpec{TargetVersion: "1.36"}); !slices.ContainsFunc(p.Blockers, func(b string) bool { return strings.HasPrefix(b, says) }) {
				t.Errorf("the plan for %s has the blockers %q", name, p.Blockers)
			}
		}
		w.report("kubelet", "n1", alpha("A", false))
		w.until(time.Minute, "safe again", safe(metav1.ConditionTrue, v1alpha1.ReasonSafe, ""))
		w.report("kubelet", "n1", alpha("A", true))
		w.until(time.Minute, "refused again", refuses)
		w.removeNode("n1")
		w.until(time.Minute, "safe without the node", safe(metav1.ConditionTrue, v1alpha1.ReasonSafe, ""))
	})
}

func TestPlanOfPresentValueCountsLeftovers(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(w *world) {
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", false)}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		p := w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)})
		if diff := cmp.Diff([]string{"WaitForUses", "ClearA 1", "ClearB 1"}, says(p)); diff != "" {
			t.Errorf("tasks that would not run have no state (-want +got):\n%s", diff)
		}
		_, err := s1.controller.Plan(t.Context(), w.stored("A"), &v1alpha1.FeaturePlan{Spec: v1alpha1.FeaturePlanSpec{TargetVersion: "9.0"}})
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "the cluster has 1.36; a plan is for a version of 1.x, or of the major version before or after that") {
			t.Errorf("a version of a far major version is planned: %v", err)
		}
	}, l.declare("A"))
}

// TestPlanNamesManualRemovals: a task that waits holds the transition, and
// what it finds of a feature that is off already holds nothing.
func TestPlanNamesManualRemovals(t *testing.T) {
	l := newLeftovers()
	waiting := l.declare("A")
	waiting.OnDisable[1].Waits = true
	inWorld(t, func(w *world) {
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		off := v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}
		blocked(t, w.plan(s1, "A", off), "1 live server configures the other value and has to be restarted with --feature-gates=A=false: s1", "task ClearB waits until 1 object of widgets is changed or deleted")
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", false)}, "s1")
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		l.mu.Lock()
		l.left["ClearB"] = 1
		l.mu.Unlock()
		blocked(t, w.plan(s1, "A", off))
	}, waiting)
}

// TestPlanNamesBlockedFinder: it does not fail for it.
func TestPlanNamesBlockedFinder(t *testing.T) {
	declared := newLeftovers().declare("A")
	declared.OnDisable[1].Find = func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
		return nil, &task.BlockedError{Message: "the definition has a default"}
	}
	inWorld(t, func(w *world) {
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		s1 := w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		blocked(t, w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)}),
			"1 live server configures the other value and has to be restarted with --feature-gates=A=false: s1",
			"task ClearB is blocked: the definition has a default")
	}, declared)
}
