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

package transition

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/stagger"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

var (
	start    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	settings = DefaultSettings()
	declared = Declared{OnEnable: []string{"Install"}, OnDisable: []string{"ClearA", "ClearB"}, Removes: true}
)

// server returns a live server that has the gate with a value.
func server(id string, enabled bool) tracker.Server {
	return tracker.Server{ID: id, Reported: true, Knows: true, Version: "1.36",
		Gate: v1alpha1.ReportedFeature{Name: "F", Enabled: enabled, Explicit: enabled, Stage: v1alpha1.StageBeta}}
}

func emulating(s tracker.Server, version string) tracker.Server {
	s.Version = version
	return s
}

func user(name string, enabled bool) tracker.Instance {
	return tracker.Instance{Component: "kubelet", Name: name, Reported: true, Enabled: enabled, Alive: true}
}

// feature is in a state, with tasks left of a transition begun at start.
func feature(state v1alpha1.FeatureState, tasks ...string) *v1alpha1.Feature {
	f := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "F"}, Status: v1alpha1.FeatureStatus{State: state, Version: "1.36"}}
	for _, name := range tasks {
		f.Status.Tasks = append(f.Status.Tasks, v1alpha1.FeatureTask{Name: name})
	}
	if len(tasks) > 0 {
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: "t1", StartTime: metav1.NewMicroTime(start), Reason: v1alpha1.TransitionConfiguration}
	}
	return f
}

func paused(f *v1alpha1.Feature) *v1alpha1.Feature {
	f.Spec.Paused = true
	return f
}

// settling returns a feature whose wait for uses saw no contradiction since a time.
func settling(f *v1alpha1.Feature, since time.Time) *v1alpha1.Feature {
	t := metav1.NewMicroTime(since)
	f.Status.Tasks[0].LastAttemptTime = &t
	f.Status.Tasks[0].Attempts = 1
	return f
}

func taskNames(status v1alpha1.FeatureStatus) []string {
	var names []string
	for _, task := range status.Tasks {
		names = append(names, task.Name)
	}
	return names
}

func TestNext(t *testing.T) {
	const wait = v1alpha1.TaskWaitForUses
	off, on := []tracker.Server{server("a", false)}, []tracker.Server{server("a", true)}
	attempt := func(outcome Outcome) *Attempt {
		return &Attempt{TransitionID: "t1", Task: "ClearA", Outcome: outcome, Done: 2, Total: 3, Message: "news"}
	}
	type want struct {
		state  v1alpha1.FeatureState
		tasks  []string
		start  string
		hold   bool
		reason string
		again  time.Duration
	}
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		view    View
		after   time.Duration
		want    want
	}{
		"a new feature takes the configured value without a task": {
			feature: feature(""), view: View{Servers: on, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonComplete},
		},
		"a new feature waits while servers disagree": {
			feature: feature(""), view: View{Servers: []tracker.Server{server("a", true), server("b", false)}},
			want: want{reason: v1alpha1.ReasonWaitingForAgreement},
		},
		"nothing happens while state and value agree": {
			feature: feature(v1alpha1.StateOff), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateOff, reason: v1alpha1.ReasonComplete},
		},
		"another value begins a transition with the complete list of tasks": {
			feature: feature(v1alpha1.StateOn), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait, "ClearA", "ClearB"}, hold: true, reason: v1alpha1.ReasonWaitingForUses},
		},
		"turning on has its own tasks": {
			feature: feature(v1alpha1.StateOff), view: View{Servers: on, Declared: declared},
			want: want{state: v1alpha1.StateTurningOn, tasks: []string{wait, "Install"}, hold: true, reason: v1alpha1.ReasonWaitingForUses},
		},
		"S4: no transition starts while servers disagree": {
			feature: feature(v1alpha1.StateOn), view: View{Servers: []tracker.Server{server("a", false), server("b", true)}, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonWaitingForAgreement},
		},
		"S4: no transition starts while a server has not reported": {
			feature: feature(v1alpha1.StateOn), view: View{Servers: []tracker.Server{server("a", false), {ID: "b"}}, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonWaitingForAgreement},
		},
		"S4: nor while a server is starting": {
			feature: feature(v1alpha1.StateOn), view: View{Servers: []tracker.Server{server("a", false), {ID: "b", Starting: true}}, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonComplete},
		},
		"S4: no transition starts while versions are mixed": {
			feature: feature(v1alpha1.StateOn), view: View{Servers: []tracker.Server{server("a", false), emulating(server("b", false), "1.35")}, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonMixedVersions},
		},
		"a pause keeps a transition from starting": {
			feature: paused(feature(v1alpha1.StateOn)), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateOn, reason: v1alpha1.ReasonPaused},
		},
		"a live user with the old value holds": {
			feature: feature(v1alpha1.StateTurningOff, wait, "ClearA"), view: View{Servers: off, Declared: declared, Instances: []tracker.Instance{user("n1", true)}},
			after: time.Hour, want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait, "ClearA"}, reason: v1alpha1.ReasonWaitingForUses},
		},
		"the settle period begins without contradiction": {
			feature: feature(v1alpha1.StateTurningOff, wait, "ClearA"), view: View{Servers: off, Declared: declared, Instances: []tracker.Instance{user("n1", false)}},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait, "ClearA"}, reason: v1alpha1.ReasonWaitingForUses, again: settings.Settle},
		},
		"and has to pass": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait, "ClearA"), start), view: View{Servers: off, Declared: declared},
			after: settings.Settle - 1, want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait, "ClearA"}, reason: v1alpha1.ReasonWaitingForUses, again: time.Millisecond},
		},
		"then the first declared task is next": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait, "ClearA"), start), view: View{Servers: off, Declared: declared},
			after: settings.Settle, want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, reason: v1alpha1.ReasonRunningTask},
		},
		"without declared tasks the feature is off then": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait), start), view: View{Servers: off},
			after: settings.Settle, want: want{state: v1alpha1.StateOff, reason: v1alpha1.ReasonComplete},
		},
		"time in which the server did not watch does not count": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait), start), view: View{Servers: off, WatchingSince: start.Add(time.Hour)},
			after: time.Hour, want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait}, reason: v1alpha1.ReasonWaitingForUses, again: settings.Settle},
		},
		"a contradiction restarts the settle period": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait), start), view: View{Servers: off, Instances: []tracker.Instance{user("n1", true)}},
			after: settings.Settle, want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait}, reason: v1alpha1.ReasonWaitingForUses},
		},
		"a settle period that began in the future begins now": {
			feature: settling(feature(v1alpha1.StateTurningOff, wait), start.Add(time.Hour)), view: View{Servers: off},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{wait}, reason: v1alpha1.ReasonWaitingForUses, again: settings.Settle},
		},
		"a declared task is attempted": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA", "ClearB"), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA", "ClearB"}, start: "ClearA", reason: v1alpha1.ReasonRunningTask},
		},
		"and left alone while it runs": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA", "ClearB"), view: View{Servers: off, Declared: declared, Attempt: attempt("")},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA", "ClearB"}, reason: v1alpha1.ReasonRunningTask},
		},
		"S3: a finished task is removed, the next is first": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA", "ClearB"), view: View{Servers: off, Declared: declared, Attempt: attempt(Finished)},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearB"}, reason: v1alpha1.ReasonRunningTask},
		},
		"S1: the last task takes the state with it": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA"), view: View{Servers: off, Declared: declared, Attempt: attempt(Finished)},
			want: want{state: v1alpha1.StateOff, reason: v1alpha1.ReasonComplete},
		},
		"an attempt of another transition does not count": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA"), view: View{Servers: off, Declared: declared, Attempt: &Attempt{TransitionID: "t0", Task: "ClearA", Outcome: Finished}},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, start: "ClearA", reason: v1alpha1.ReasonRunningTask},
		},
		"a blocked task is tried again after a pause": {
			feature: settling(feature(v1alpha1.StateTurningOff, "ClearA"), start), view: View{Servers: off, Declared: declared, Attempt: attempt(Blocked)},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, reason: v1alpha1.ReasonBlocked, again: settings.MinBackoff},
		},
		"and again when the pause is over": {
			feature: settling(feature(v1alpha1.StateTurningOff, "ClearA"), start), view: View{Servers: off, Declared: declared, Attempt: attempt(Failed)},
			after: settings.MinBackoff, want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, start: "ClearA", reason: v1alpha1.ReasonBlocked},
		},
		"a task that the server does not know is left alone": {
			feature: feature(v1alpha1.StateTurningOff, "ClearC"), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearC"}, hold: true, reason: v1alpha1.ReasonUnknownTask},
		},
		"disagreement holds tasks": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA"), view: View{Servers: []tracker.Server{server("a", false), server("b", true)}, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, hold: true, reason: v1alpha1.ReasonWaitingForAgreement},
		},
		"mixed versions hold tasks": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA"), view: View{Servers: []tracker.Server{server("a", false), emulating(server("b", false), "1.35")}, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, hold: true, reason: v1alpha1.ReasonMixedVersions},
		},
		"a pause holds tasks": {
			feature: paused(feature(v1alpha1.StateTurningOff, "ClearA")), view: View{Servers: off, Declared: declared},
			want: want{state: v1alpha1.StateTurningOff, tasks: []string{"ClearA"}, hold: true, reason: v1alpha1.ReasonPaused},
		},
		"a value that flips back replaces the transition": {
			feature: feature(v1alpha1.StateTurningOff, "ClearA"), view: View{Servers: on, Declared: declared, Attempt: attempt("")},
			want: want{state: v1alpha1.StateTurningOn, tasks: []string{wait, "Install"}, hold: true, reason: v1alpha1.ReasonWaitingForUses},
		},
		"the API's value counts for dynamic features": {
			feature: enabled(feature(v1alpha1.StateOff)), view: View{Servers: controlled(off, v1alpha1.ControlDynamic)},
			want: want{state: v1alpha1.StateTurningOn, tasks: []string{wait}, hold: true, reason: v1alpha1.ReasonWaitingForUses},
		},
		"the API's value counts while servers still follow it": {
			feature: enabled(feature(v1alpha1.StateOff)), view: View{Servers: controlled([]tracker.Server{server("a", true), server("b", false)}, v1alpha1.ControlDynamic)},
			want: want{state: v1alpha1.StateTurningOn, tasks: []string{wait}, hold: true, reason: v1alpha1.ReasonWaitingForUses},
		},
		"servers that differ on the source hold everything": {
			feature: enabled(feature(v1alpha1.StateOff)), view: View{Servers: append(controlled([]tracker.Server{server("a", false)}, v1alpha1.ControlDynamic), server("b", false))},
			want: want{state: v1alpha1.StateOff, reason: v1alpha1.ReasonWaitingForAgreement},
		},
		"and for no other": {
			feature: enabled(feature(v1alpha1.StateOff)), view: View{Servers: off},
			want: want{state: v1alpha1.StateOff, reason: v1alpha1.ReasonComplete},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.feature.DeepCopy()
			tc.view.NewTransitionID = "new"
			d := Next(tc.feature, tc.view, settings, start.Add(tc.after))
			if diff := cmp.Diff(before, tc.feature); diff != "" {
				t.Errorf("Next changed its argument (-before +after):\n%s", diff)
			}
			got := want{state: d.Status.State, tasks: taskNames(d.Status), start: d.Start, hold: d.Hold, again: d.RequeueAfter}
			if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
				got.reason = c.Reason
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected decision (-want +got):\n%s", diff)
			}
			if (d.Status.Transition != nil) != (len(d.Status.Tasks) > 0) {
				t.Errorf("transition %+v with tasks %v", d.Status.Transition, d.Status.Tasks)
			}
		})
	}
}

func TestSettlePeriodRestartsAfterHold(t *testing.T) {
	agreed, disagreed := []tracker.Server{server("a", false)}, []tracker.Server{server("a", false), server("b", true)}
	f := settling(feature(v1alpha1.StateTurningOff, v1alpha1.TaskWaitForUses, "ClearA"), start)
	f.Status = Next(f, View{Servers: disagreed, Declared: declared}, settings, start.Add(time.Second)).Status
	d := Next(f, View{Servers: agreed, Declared: declared}, settings, start.Add(time.Hour))
	if d.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses || d.RequeueAfter != settings.Settle {
		t.Errorf("tasks %v, again after %s; want to wait for the whole settle period", taskNames(d.Status), d.RequeueAfter)
	}
}

// TestSettlePeriodCoversTurnsOfManyDynamicUsers checks users that have just got the
// other value of a request that was withdrawn: they may not have reported it yet.
func TestSettlePeriodCoversTurnsOfManyDynamicUsers(t *testing.T) {
	for _, test := range []struct {
		dynamic bool
		users   int
		want    time.Duration
	}{
		{true, 2, stagger.MaxDelay(2) + settings.Settle},
		{true, 5000, stagger.MaxDelay(5000) + settings.Settle},
		{true, 1_000_000, v1alpha1.MaxReportDelay + settings.Settle},
		{false, 5000, settings.Settle},
	} {
		s := server("a", false)
		if test.dynamic {
			s.Gate.Control = v1alpha1.ControlDynamic
		}
		all := user("n", false)
		all.Group = make([]string, test.users-1)
		f := feature(v1alpha1.StateTurningOff, v1alpha1.TaskWaitForUses, "ClearA")
		d := Next(f, View{Servers: []tracker.Server{s}, Declared: declared, Instances: []tracker.Instance{all}}, settings, start)
		if d.RequeueAfter != test.want || !strings.Contains(d.Status.Tasks[0].Message, "waiting "+test.want.Round(time.Second).String()) {
			t.Errorf("%+v: again after %s, and it says %q", test, d.RequeueAfter, d.Status.Tasks[0].Message)
		}
		f.Status = d.Status
		for _, passed := range []time.Duration{test.want - time.Millisecond, test.want} {
			d = Next(f, View{Servers: []tracker.Server{s}, Declared: declared, Instances: []tracker.Instance{all}}, settings, start.Add(passed))
			if over := d.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses; over != (passed == test.want) {
				t.Errorf("%+v: after %s waiting is over: %t", test, passed, over)
			}
		}
	}
}

// TestTaskOfOtherDirectionUnknown: both may have one of the same name.
func TestTaskOfOtherDirectionUnknown(t *testing.T) {
	both := Declared{OnEnable: []string{"Apply"}, OnDisable: []string{"ClearA"}}
	d := Next(feature(v1alpha1.StateTurningOff, "Apply"), View{Servers: []tracker.Server{server("a", false)}, Declared: both}, settings, start)
	if d.Start != "" || !d.Hold {
		t.Errorf("it starts %q, hold %t", d.Start, d.Hold)
	}
}

// TestLeftoversMessageNamesCleanup: what a flow offers for that is its own.
func TestLeftoversMessageNamesCleanup(t *testing.T) {
	left := &Leftovers{Resources: []Finding{{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "widgets", Group: "example.com", Field: "spec.color", Count: 1, Examples: []string{"default/lamp"}}}}}
	view := View{Servers: []tracker.Server{server("a", false)}, Declared: Declared{OnDisable: []string{"ClearA"}, Removes: true}, Leftovers: left}
	own := settings
	own.HowToClean = "call the gardener"
	for want, s := range map[string]Settings{
		"1 widgets.example.com have spec.color (default/lamp); create the subresource cleanup to remove them": settings,
		"1 widgets.example.com have spec.color (default/lamp); call the gardener to remove them":              own,
	} {
		d := Next(feature(v1alpha1.StateOff), view, s, start)
		if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionClean); c == nil || c.Message != want {
			t.Errorf("the condition is %+v, want the message %q", c, want)
		}
	}
}

// controlled are servers that let others decide the value.
func controlled(servers []tracker.Server, control v1alpha1.FeatureControl) []tracker.Server {
	servers = slices.Clone(servers)
	for i := range servers {
		servers[i].Gate.Control = control
	}
	return servers
}

func enabled(f *v1alpha1.Feature) *v1alpha1.Feature {
	on := true
	f.Spec.Enabled = &on
	return f
}

func TestNoWriteWithoutChange(t *testing.T) {
	for name, view := range map[string]View{
		"at rest":             {Servers: []tracker.Server{server("a", false), server("b", false)}, Declared: declared, Instances: []tracker.Instance{user("n1", false)}},
		"with leftovers":      {Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{Resources: []Finding{{ResourceLeftovers: v1alpha1.ResourceLeftovers{Resource: "pods", Count: 3}}}}},
		"waiting for users":   {Servers: []tracker.Server{server("a", true)}, Declared: declared, Instances: []tracker.Instance{user("n1", false)}},
		"servers disagree":    {Servers: []tracker.Server{server("a", false), server("b", true)}},
		"a server is missing": {Servers: []tracker.Server{server("a", false), {ID: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			view.NewTransitionID = "t1"
			f := feature(v1alpha1.StateOff)
			// The picture is complete after a few steps.
			for range 3 {
				f.Status = Next(f, view, settings, start).Status
			}
			again := Next(f, view, settings, start.Add(time.Second)).Status
			if diff := cmp.Diff(f.Status, again); diff != "" {
				t.Errorf("a look a second later would write (-stored +again):\n%s", diff)
			}
		})
	}
}

func TestRestartOfOneServerOfSeveralChangesNothingAtRest(t *testing.T) {
	f := feature(v1alpha1.StateOff)
	f.Status = Next(f, View{Servers: []tracker.Server{server("a", false), server("b", false)}}, settings, start).Status
	for name, servers := range map[string][]tracker.Server{
		"deleted":        {server("a", false)},
		"it is starting": {server("a", false), {ID: "b", Starting: true}},
	} {
		if diff := cmp.Diff(f.Status, Next(f, View{Servers: servers}, settings, start.Add(time.Second)).Status); diff != "" {
			t.Errorf("%s: the status would be written (-stored +decided):\n%s", name, diff)
		}
	}
}

func TestConditions(t *testing.T) {
	leftovers := &Leftovers{Resources: []Finding{{ResourceLeftovers: v1alpha1.ResourceLeftovers{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 2, Examples: []string{"ns/a", "ns/b"}}}}}
	for name, tc := range map[string]struct {
		state        v1alpha1.FeatureState
		view         View
		kind, reason string
		status       metav1.ConditionStatus
		message      string
	}{
		"servers agree":             {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}}, v1alpha1.ConditionConsistent, v1alpha1.ReasonServersAgree, metav1.ConditionTrue, ""},
		"servers disagree":          {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false), server("b", true)}}, v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree, metav1.ConditionFalse, "on in b, off in a"},
		"a server has not reported": {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false), {ID: "b"}}}, v1alpha1.ConditionConsistent, v1alpha1.ReasonReportMissing, metav1.ConditionFalse, "b is alive"},
		"a user differs":            {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Instances: []tracker.Instance{user("n1", true)}}, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersDiffer, metav1.ConditionFalse, "1 live user has the feature on: kubelet/n1; restart them with --feature-gates=F=false"},
		"users differ":              {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Instances: []tracker.Instance{user("n1", true), user("n2", true)}}, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersDiffer, metav1.ConditionFalse, "2 live users have the feature on: kubelet/n1, kubelet/n2; restart"},
		"a report is missing":       {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Instances: []tracker.Instance{{Component: "kubelet", Name: "n1"}}}, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonUsersUnknown, metav1.ConditionUnknown, "kubelet/n1"},
		"users agree":               {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Instances: []tracker.Instance{user("n1", false)}}, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonAllUsersMatch, metav1.ConditionTrue, ""},
		"no users":                  {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}}, v1alpha1.ConditionUsesMatch, v1alpha1.ReasonNoUsers, metav1.ConditionTrue, ""},
		"nothing is declared":       {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}}, v1alpha1.ConditionClean, v1alpha1.ReasonNothingDeclared, metav1.ConditionUnknown, ""},
		"not inspected yet":         {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared}, v1alpha1.ConditionClean, v1alpha1.ReasonNotExamined, metav1.ConditionUnknown, ""},
		"nothing is left":           {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{}}, v1alpha1.ConditionClean, v1alpha1.ReasonNothingLeft, metav1.ConditionTrue, ""},
		"nothing is left, and a user has returned with the value on": {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{}, Instances: []tracker.Instance{user("n1", true)}},
			v1alpha1.ConditionClean, v1alpha1.ReasonStillUsed, metav1.ConditionUnknown, "nothing was found, and 1 live user has the feature on and may store it again: kubelet/n1; restart them"},
		"something is left": {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: leftovers}, v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers, metav1.ConditionFalse, "2 statefulsets.apps have spec.x (ns/a, ns/b); create the subresource cleanup"},
		"something is there while the feature is rolled out": {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", true), server("b", false)}, Declared: declared, Leftovers: leftovers, Instances: []tracker.Instance{user("n1", true), user("n2", false)}},
			v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers, metav1.ConditionFalse, "2 statefulsets.apps have spec.x (ns/a, ns/b); 1 live user has the feature on and may store it again: kubelet/n1; while the feature is being turned on, nothing is to be done; otherwise these come first: restart them with --feature-gates=F=false"},
		"looking failed":                           {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{Err: "no etcd"}}, v1alpha1.ConditionClean, v1alpha1.ReasonNotExamined, metav1.ConditionUnknown, "no etcd"},
		"what is on is in use":                     {v1alpha1.StateOn, View{Servers: []tracker.Server{server("a", true)}, Declared: declared}, v1alpha1.ConditionClean, v1alpha1.ReasonInUse, metav1.ConditionUnknown, "when it is off"},
		"what turns off is in use":                 {v1alpha1.StateTurningOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{}}, v1alpha1.ConditionClean, v1alpha1.ReasonInUse, metav1.ConditionUnknown, "when it is off"},
		"declared for what does not exist, and on": {v1alpha1.StateOn, View{Servers: []tracker.Server{server("a", true)}, Declared: declared, Leftovers: &Leftovers{Misdeclared: []string{"ClearA: no lamps"}}}, v1alpha1.ConditionClean, v1alpha1.ReasonMisdeclared, metav1.ConditionUnknown, "what is stored is unknown, since tasks are declared for what the server does not have: ClearA: no lamps"},
		"declared for what does not exist":         {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{Misdeclared: []string{"ClearA: no lamps"}}}, v1alpha1.ConditionClean, v1alpha1.ReasonMisdeclared, metav1.ConditionUnknown, "ClearA: no lamps"},
		"that, and looking failed":                 {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{Err: "no etcd", Misdeclared: []string{"no lamps"}}}, v1alpha1.ConditionClean, v1alpha1.ReasonMisdeclared, metav1.ConditionUnknown, "no lamps; looking for leftovers failed, too, and is tried again: no etcd"},
		"that, and others find something":          {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Leftovers: &Leftovers{Resources: leftovers.Resources, Misdeclared: []string{"no lamps"}}}, v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers, metav1.ConditionFalse, "to remove them; tasks are declared for what the server does not have: no lamps"},
		"on, and its API is not served":            {v1alpha1.StateOn, View{Servers: []tracker.Server{server("a", true)}, NotServed: []string{"no lamps", "no hues"}}, v1alpha1.ConditionProgressing, v1alpha1.ReasonNotServed, metav1.ConditionFalse, "no lamps; no hues"},
		"off, and its API is not served":           {v1alpha1.StateOff, View{Servers: []tracker.Server{server("a", false)}, NotServed: []string{"no lamps"}}, v1alpha1.ConditionProgressing, v1alpha1.ReasonComplete, metav1.ConditionFalse, "nothing is left to do"},
		"turning off, and its API is not served":   {v1alpha1.StateOn, View{Servers: []tracker.Server{server("a", false)}, NotServed: []string{"no lamps"}}, v1alpha1.ConditionProgressing, v1alpha1.ReasonWaitingForUses, metav1.ConditionTrue, ""},
		"no server knows it":                       {v1alpha1.StateOff, View{Servers: []tracker.Server{{ID: "a", Reported: true, Version: "1.36"}}}, v1alpha1.ConditionKnown, v1alpha1.ReasonNotKnown, metav1.ConditionFalse, "3 minor versions"},
		"only the scheduler knows it":              {v1alpha1.StateOff, View{Servers: []tracker.Server{{ID: "a", Reported: true, Version: "1.36"}}, Reporters: []tracker.Server{server("s", false)}}, v1alpha1.ConditionKnown, v1alpha1.ReasonKnownToReporters, metav1.ConditionTrue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(feature(tc.state), tc.view, settings, start)
			c := meta.FindStatusCondition(d.Status.Conditions, tc.kind)
			if c == nil {
				t.Fatalf("no condition %s", tc.kind)
			}
			if c.Reason != tc.reason || c.Status != tc.status || !strings.Contains(c.Message, tc.message) {
				t.Errorf("got %s %s %q, want %s %s and %q in the message", c.Status, c.Reason, c.Message, tc.status, tc.reason, tc.message)
			}
		})
	}
}

func TestConfiguredValueAndItsSource(t *testing.T) {
	byDefault := tracker.Server{ID: "a", Reported: true, Knows: true, Version: "1.36", Gate: v1alpha1.ReportedFeature{Name: "F", Enabled: true, Default: true}}
	byAllAlpha := tracker.Server{ID: "a", Reported: true, Knows: true, Version: "1.36", Gate: v1alpha1.ReportedFeature{Name: "F", Enabled: true}}
	for name, tc := range map[string]struct {
		server tracker.Server
		want   v1alpha1.FeatureConfiguration
	}{
		"default":                           {byDefault, v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceDefault}},
		"set explicitly":                    {server("a", true), v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine}},
		"not the default, by AllAlpha, say": {byAllAlpha, v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Next(feature(""), View{Servers: []tracker.Server{tc.server}}, settings, start)
			if diff := cmp.Diff(&tc.want, d.Status.Configured); diff != "" {
				t.Errorf("unexpected configuration (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEventsNameWriterOfSpec, if that is why a transition begins.
func TestEventsNameWriterOfSpec(t *testing.T) {
	dynamic := func(value bool) []tracker.Server {
		return controlled([]tracker.Server{server("a", value)}, v1alpha1.ControlDynamic)
	}
	by := func(f *v1alpha1.Feature) *v1alpha1.Feature {
		f.Annotations = map[string]string{v1alpha1.AnnotationRequestedBy: "alice"}
		return f
	}
	resumed := by(paused(feature(v1alpha1.StateOn)))
	resumed.Status = Next(resumed, View{Servers: []tracker.Server{server("a", false)}}, settings, start).Status
	resumed.Spec.Paused = false
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		servers []tracker.Server
		says    string
	}{
		"a request":                            {by(enabled(feature(v1alpha1.StateOff))), dynamic(false), "on by API (requested by alice); 1 task"},
		"a request by an unknown user":         {enabled(feature(v1alpha1.StateOff)), dynamic(false), "on by API; 1 task"},
		"a request that was taken back":        {by(feature(v1alpha1.StateOn)), dynamic(false), "off by Default (nothing is requested; spec last changed by alice); 1 task"},
		"a pause that ended":                   {resumed, []tracker.Server{server("a", false)}, "off by Default (resumed by alice); 1 task"},
		"the servers' flags":                   {by(feature(v1alpha1.StateOff)), []tracker.Server{server("a", true)}, "on by CommandLine; 1 task"},
		"their flags, of a central feature":    {by(feature(v1alpha1.StateOff)), controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlCentral), "on by CommandLine; 1 task"},
		"their flags, and a request left over": {by(enabled(feature(v1alpha1.StateOn))), []tracker.Server{server("a", false)}, "off by Default; 1 task"},
	} {
		events := Next(tc.feature, View{Servers: tc.servers, NewTransitionID: "t2"}, settings, start).Events
		if len(events) != 1 || events[0].Reason != EventTransitionStarted || !strings.HasSuffix(events[0].Message, "configured value is "+tc.says) {
			t.Errorf("%s: %+v, want %q", name, events, tc.says)
		}
	}
}

// TestFeatureOnFromStart checks a feature that no transition turned on. That is
// reported once, and only if there would have been tasks.
func TestFeatureOnFromStart(t *testing.T) {
	for name, tc := range map[string]struct {
		on       bool
		declared Declared
		want     string
	}{
		"with something to install":                          {true, declared, "Install did not run"},
		"with nothing to install":                            {true, Declared{OnDisable: []string{"ClearA"}}, ""},
		"one that is off":                                    {false, declared, ""},
		"with what blocks the startup of servers, which run": {true, Declared{OnEnable: []string{"ClearUnreadable"}, StartupBlocking: []string{"ClearUnreadable"}}, ""},
	} {
		f := feature("")
		view := View{Servers: []tracker.Server{server("a", tc.on)}, Declared: tc.declared}
		decision := Next(f, view, settings, start)
		said := ""
		for _, event := range decision.Events {
			if event.Reason == EventTasksNotRun && event.Warning {
				said += event.Message
			}
		}
		if !strings.Contains(said, tc.want) || (tc.want == "") != (said == "") {
			t.Errorf("%s: it says %q, want %q", name, said, tc.want)
		}
		f.Status = decision.Status
		if events := Next(f, view, settings, start.Add(time.Minute)).Events; len(events) != 0 {
			t.Errorf("%s: a minute later it says %+v", name, events)
		}
	}
}

// TestMisdeclarationReportedOnce checks that it is one event, and stays in the
// condition until the declaration is inspected again.
func TestMisdeclarationReportedOnce(t *testing.T) {
	f, now := feature(v1alpha1.StateOn), start
	next := func(on, inspected bool, found *Leftovers) (reason string, said []string) {
		t.Helper()
		d := Next(f, View{Servers: []tracker.Server{server("a", on)}, Declared: declared, Leftovers: found, Inspected: inspected}, settings, now)
		f.Status = d.Status
		now = now.Add(time.Minute)
		for _, event := range d.Events {
			if event.Reason == EventMisdeclared {
				if !event.Warning {
					t.Errorf("%q is no warning", event.Message)
				}
				said = append(said, event.Message)
			}
		}
		return meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionClean).Reason, said
	}
	lamps, hues := &Leftovers{Misdeclared: []string{"no lamps"}}, &Leftovers{Misdeclared: []string{"no hue"}}
	for _, step := range []struct {
		what      string
		on        bool
		inspected bool
		found     *Leftovers
		reason    string
		events    int
	}{
		{"not inspected", true, true, nil, v1alpha1.ReasonInUse, 0},
		{"it is wrong", true, true, lamps, v1alpha1.ReasonMisdeclared, 1},
		{"it still is", true, true, lamps, v1alpha1.ReasonMisdeclared, 0},
		{"it is turned off", false, true, nil, v1alpha1.ReasonMisdeclared, 0},
		{"it is wrong in another way", false, true, hues, v1alpha1.ReasonMisdeclared, 1},
		{"a server inspects nothing", false, false, nil, v1alpha1.ReasonInUse, 0},
	} {
		if reason, said := next(step.on, step.inspected, step.found); reason != step.reason || len(said) != step.events {
			t.Errorf("%s: got %s and the events %q, want %s and %d", step.what, reason, said, step.reason, step.events)
		}
	}
}

// TestIneffectiveSpecReported checks the condition about the source of the value.
func TestIneffectiveSpecReported(t *testing.T) {
	rolling := func(f *v1alpha1.Feature) *v1alpha1.Feature {
		f.Spec.Rollout = half()
		return f
	}
	const agree = "all live servers configure the same value"
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		control v1alpha1.FeatureControl
		says    []string
	}{
		"a request of a dynamic feature":     {rolling(enabled(feature(v1alpha1.StateOn))), v1alpha1.ControlDynamic, nil},
		"one left over in a central feature": {rolling(enabled(feature(v1alpha1.StateOn))), v1alpha1.ControlCentral, []string{"spec.enabled"}},
		"one left over in a local feature":   {enabled(feature(v1alpha1.StateOn)), v1alpha1.ControlLocal, []string{"spec.enabled"}},
		"a rollout of a local feature":       {rolling(feature(v1alpha1.StateOn)), v1alpha1.ControlLocal, []string{"spec.rollout"}},
		"both":                               {rolling(enabled(feature(v1alpha1.StateOn))), v1alpha1.ControlLocal, []string{"spec.enabled", "spec.rollout"}},
		"a rollout of a central feature":     {rolling(feature(v1alpha1.StateOn)), v1alpha1.ControlCentral, nil},
		"nothing is requested":               {feature(v1alpha1.StateOn), v1alpha1.ControlLocal, nil},
	} {
		status := Next(tc.feature, View{Servers: controlled([]tracker.Server{server("a", true)}, tc.control)}, settings, start).Status
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConsistent)
		parts := strings.Split(c.Message, "; ")
		if c.Status != metav1.ConditionTrue || parts[0] != agree || len(parts) != 1+len(tc.says) {
			t.Errorf("%s: %s %q", name, c.Status, c.Message)
			continue
		}
		for i, says := range tc.says {
			if !strings.HasPrefix(parts[i+1], says+" has no effect") {
				t.Errorf("%s: %q does not say that %s has no effect", name, c.Message, says)
			}
		}
	}
}

func TestUnknownFeatureKeptForThreeMinors(t *testing.T) {
	for _, tc := range []struct {
		known, version string
		want           bool
	}{
		{"1.36", "1.36", false}, {"1.36", "1.39", false}, {"1.36", "1.40", true}, {"1.36", "1.30", false},
		// A major version may follow at once, and is one step.
		{"0.9", "1.0", false}, {"0.9", "1.2", false}, {"0.9", "1.3", true},
		{"1.12", "2.0", false}, {"1.12", "2.3", true}, {"1.12", "4.0", false}, {"1.12", "5.0", true},
		// Back again.
		{"2.0", "1.12", false},
	} {
		version, want := tc.version, tc.want
		f := feature(v1alpha1.StateOff)
		f.Status.Version = tc.known
		d := Next(f, View{Servers: []tracker.Server{{ID: "a", Reported: true, Version: version}}}, settings, start)
		if d.Delete != want {
			t.Errorf("known to %s, at %s: delete %t, want %t", tc.known, version, d.Delete, want)
		}
		d = Next(f, View{Servers: []tracker.Server{emulating(server("a", false), version)}}, settings, start)
		if d.Delete {
			t.Errorf("at %s: a known feature would be deleted", version)
		}
	}
}

// TestPreviousValueFromLastRest, for instances that a rollout leaves
// out, however often the desired value changes meanwhile.
func TestPreviousValueFromLastRest(t *testing.T) {
	f := feature(v1alpha1.StateOff)
	view := View{Servers: controlled([]tracker.Server{server("a", false)}, v1alpha1.ControlDynamic), NewTransitionID: "t"}
	step := func(want bool, previous *bool, state v1alpha1.FeatureState) {
		t.Helper()
		f.Spec.Enabled = &want
		f.Status = Next(f, view, settings, start).Status
		if f.Status.State != state {
			t.Fatalf("%s, want %s", f.Status.State, state)
		}
		if diff := cmp.Diff(previous, f.Status.Configured.Previous); diff != "" {
			t.Errorf("wanted %t in %s: previous (-want +got):\n%s", want, state, diff)
		}
	}
	off := false
	step(true, &off, v1alpha1.StateTurningOn)
	step(true, &off, v1alpha1.StateTurningOn)
	step(false, &off, v1alpha1.StateTurningOff)
	step(true, &off, v1alpha1.StateTurningOn)
	f.Status.Tasks = nil
	step(true, nil, v1alpha1.StateOn)
	step(true, nil, v1alpha1.StateOn)
}
