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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for outcome, limits := range map[Outcome]map[int32]time.Duration{
		Failed:  {0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: settings.MaxBackoff, 1000: settings.MaxBackoff},
		"":      {2: 2 * time.Second, 1000: settings.MaxBackoff},
		Blocked: {1: time.Second, 6: 32 * time.Second, 10: 512 * time.Second, 11: settings.MaxBlockedBackoff, 1000: settings.MaxBlockedBackoff},
	} {
		for attempts, want := range limits {
			if got := settings.backoff(attempts, outcome); got != want {
				t.Errorf("after %d attempts, %q: %s, want %s", attempts, outcome, got, want)
			}
		}
	}
	if settings.MaxBackoff >= time.Minute {
		t.Errorf("L2: a task that failed waits up to %s", settings.MaxBackoff)
	}
}

// TestBlockedTaskQuiet: a day of attempts that end alike writes no more than
// that each was made, and people read the same all the time.
func TestBlockedTaskQuiet(t *testing.T) {
	f := feature(v1alpha1.StateTurningOff, "ClearA")
	view := View{Servers: []tracker.Server{server("a", false)}, Declared: declared}
	now := start
	next := func() Decision {
		d := Next(f, view, settings, now)
		f.Status = d.Status
		return d
	}
	var attempts, events int
	progressing := ""
	for end := start.Add(24 * time.Hour); now.Before(end); {
		d := next()
		events += len(d.Events)
		if attempts > 0 {
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
			if progressing == "" {
				progressing = c.Reason + " " + c.Message
			}
			if got := c.Reason + " " + c.Message; got != progressing {
				t.Fatalf("people read %q, then %q", progressing, got)
			}
		}
		if d.Start == "" {
			now = now.Add(d.RequeueAfter)
			continue
		}
		// The attempt runs, reports progress and ends as the one before.
		previous := Outcome("")
		if attempts++; attempts > 1 {
			previous = Blocked
			for _, done := range []int64{0, 1} {
				view.Attempt = &Attempt{TransitionID: "t1", Task: "ClearA", Previous: previous, Done: done, Total: 7, Message: "working"}
				before := f.Status.DeepCopy()
				if next(); !cmp.Equal(*before, f.Status) {
					t.Fatalf("progress is written: %s", cmp.Diff(*before, f.Status))
				}
			}
		}
		now = now.Add(time.Second)
		view.Attempt = &Attempt{TransitionID: "t1", Task: "ClearA", Previous: previous, Outcome: Blocked, Done: 2, Total: 3, Message: "one refuses"}
	}
	if attempts < 100 || attempts > 170 {
		t.Errorf("%d attempts in a day, want one about every ten minutes", attempts)
	}
	if events != 1 {
		t.Errorf("%d events, want one", events)
	}
	if want := "Blocked ClearA: one refuses"; progressing != want {
		t.Errorf("people read %q, want %q", progressing, want)
	}
}

// TestLongAttemptShown although the one before did not finish.
func TestLongAttemptShown(t *testing.T) {
	for _, previous := range []Outcome{Blocked, Failed} {
		f := settling(feature(v1alpha1.StateTurningOff, "ClearA"), start)
		f.Status.Tasks[0].Message = "one refuses"
		view := View{Servers: []tracker.Server{server("a", false)}, Declared: declared,
			Attempt: &Attempt{TransitionID: "t1", Task: "ClearA", Previous: previous, Done: 5, Total: 7, Message: "working"}}
		d := Next(f, view, settings, start.Add(quietPeriod-time.Second))
		if got := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing); got.Reason != v1alpha1.ReasonBlocked || d.Status.Tasks[0].Done != 0 {
			t.Errorf("%s, early: %+v, %+v", previous, got, d.Status.Tasks[0])
		}
		if d.RequeueAfter != time.Second {
			t.Errorf("%s: requeued after %s", previous, d.RequeueAfter)
		}
		d = Next(f, view, settings, start.Add(quietPeriod))
		if got := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing); got.Reason != v1alpha1.ReasonRunningTask || d.Status.Tasks[0].Done != 5 || d.Status.Tasks[0].Message != "working" {
			t.Errorf("%s, later: %+v, %+v", previous, got, d.Status.Tasks[0])
		}
	}
}

// TestProgressDoesNotClaimAgreement that there is not.
func TestProgressDoesNotClaimAgreement(t *testing.T) {
	for name, tc := range map[string]struct {
		servers []tracker.Server
		says    string
	}{
		"servers disagree":    {[]tracker.Server{server("a", true), server("b", false)}, "on in a, off in b"},
		"no process knows it": {[]tracker.Server{{ID: "a", Reported: true, Version: "1.36"}}, "no live process knows"},
		"a report is missing": {[]tracker.Server{server("a", true), {ID: "b"}}, "b is alive"},
	} {
		d := Next(feature(v1alpha1.StateOn), View{Servers: tc.servers}, settings, start)
		got := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
		if got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, tc.says) || strings.Contains(got.Message, "agree, ") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// A server that is starting has not reported yet, and nothing is rewritten.
	f := feature(v1alpha1.StateOn)
	f.Status = Next(f, View{Servers: []tracker.Server{server("a", true)}}, settings, start).Status
	d := Next(f, View{Servers: []tracker.Server{server("a", true), {ID: "b", Starting: true}}}, settings, start.Add(time.Second))
	if diff := cmp.Diff(f.Status, d.Status); diff != "" {
		t.Errorf("a server that starts changes (-was +is):\n%s", diff)
	}
}

// TestBackoffCountsFromEndOfAttempt of an attempt, and is as long as that took at least:
// else one that takes long to fail would run without a break.
func TestBackoffCountsFromEndOfAttempt(t *testing.T) {
	const long = 11 * time.Minute
	for name, tc := range map[string]struct {
		outcome Outcome
		retry   bool
		took    time.Duration
		want    time.Duration
	}{
		"blocked after long":               {Blocked, false, long, settings.MaxBlockedBackoff},
		"blocked after some time":          {Blocked, false, 5 * time.Minute, settings.backoff(50, Blocked)},
		"failed after long":                {Failed, false, long, settings.MaxBackoff},
		"blocked at once, and it may go":   {Blocked, true, 0, settings.MinBackoff},
		"blocked after long, likewise":     {Blocked, true, long, settings.MaxBackoff},
		"blocked after seconds, likewise":  {Blocked, true, 10 * time.Second, 10 * time.Second},
		"a clock that was set back counts": {Failed, false, -time.Hour, settings.MaxBackoff},
	} {
		f := settling(feature(v1alpha1.StateTurningOff, "ClearA"), start)
		f.Status.Tasks[0].Attempts = 50
		ended := start.Add(tc.took)
		view := View{Servers: []tracker.Server{server("a", false)}, Declared: declared, Attempt: &Attempt{
			TransitionID: "t1", Task: "ClearA", Outcome: tc.outcome, Ended: ended, Retry: tc.retry}}
		from := start.Add(max(tc.took, 0))
		if d := Next(f, view, settings, from.Add(tc.want-time.Millisecond)); d.Start != "" {
			t.Errorf("%s: it starts before %s are over", name, tc.want)
		}
		if d := Next(f, view, settings, from.Add(tc.want)); d.Start != "ClearA" {
			t.Errorf("%s: it does not start after %s", name, tc.want)
		}
	}
}

// TestResumedTaskAttemptedAtOnce checks that a task is retried without the rest of its
// pause once its obstacle may be removed.
func TestResumedTaskAttemptedAtOnce(t *testing.T) {
	f := settling(feature(v1alpha1.StateTurningOff, "ClearA"), start)
	f.Status.Tasks[0].Attempts = 20
	view := View{Servers: []tracker.Server{server("a", false)}, Declared: declared,
		Attempt: &Attempt{TransitionID: "t1", Task: "ClearA", Outcome: Blocked, Message: "one refuses"}}
	now := start.Add(time.Second)
	if d := Next(f, view, settings, now); d.Start != "" {
		t.Fatal("the pause is not kept")
	}
	f.Spec.Paused = true
	d := Next(f, view, settings, now)
	if !d.Hold {
		t.Fatal("a pause does not hold")
	}
	f.Status, f.Spec.Paused = d.Status, false
	// The controller forgets an attempt that is held.
	view.Attempt = nil
	if d := Next(f, view, settings, now); d.Start != "ClearA" {
		t.Errorf("resumed, it starts %q", d.Start)
	}
}

// TestLimitedRolloutHoldsTransition checks the hold and its next step.
func TestLimitedRolloutHoldsTransition(t *testing.T) {
	percent := func(p int32) *v1alpha1.FeatureRollout { return &v1alpha1.FeatureRollout{Percent: &p} }
	for name, tc := range map[string]struct {
		control v1alpha1.FeatureControl
		rollout *v1alpha1.FeatureRollout
		want    string
	}{
		"no rollout":         {v1alpha1.ControlDynamic, nil, ""},
		"all of them":        {v1alpha1.ControlDynamic, percent(100), ""},
		"a part":             {v1alpha1.ControlDynamic, percent(10), "spec.rollout limits the value to 10 percent of the instances; widen or remove it to continue"},
		"some components":    {v1alpha1.ControlCentral, &v1alpha1.FeatureRollout{Components: []string{"kubelet"}}, "spec.rollout limits the value to the components kubelet; widen or remove it to continue"},
		"where none follows": {v1alpha1.ControlLocal, percent(10), ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := enabled(feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses))
			f.Spec.Rollout = tc.rollout
			on := []tracker.Server{server("a", true)}
			d := Next(f, View{Servers: controlled(on, tc.control), Instances: []tracker.Instance{user("x", true), user("y", false)}, Declared: declared}, settings, start)
			message := d.Status.Tasks[0].Message
			if _, next, _ := strings.Cut(message, "; "); next != tc.want || !strings.Contains(message, "waiting for 1 user") {
				t.Errorf("it says %q, want %q", message, tc.want)
			}
		})
	}
}

// TestHeldTransitionShowsBlockedTask checks that a needed external action is shown,
// whatever else a transition waits for. It is shown until the task is attempted again
// or another one is first.
func TestHeldTransitionShowsBlockedTask(t *testing.T) {
	const refusal = "ClearA: shop/web refuses"
	off := View{Servers: []tracker.Server{server("a", false)}, Declared: declared}
	disagreeing := View{Servers: []tracker.Server{server("a", false), server("b", true)}, Declared: declared}
	f := feature(v1alpha1.StateTurningOff, "ClearA", "ClearB")
	f.Status.Tasks[0].Attempts = 1
	f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBlocked, Message: refusal}}
	next := func(view View) metav1.Condition {
		f.Status = Next(f, view, settings, start.Add(time.Hour)).Status
		return *meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
	}
	f.Spec.Paused = true
	for _, view := range []View{off, off, disagreeing, off} {
		if c := next(view); c.Reason != v1alpha1.ReasonPaused || Blocking(&f.Status) != refusal || strings.Count(c.Message, refusal) != 1 {
			t.Errorf("paused: %+v", c)
		}
	}
	f.Spec.Paused = false
	if c := next(disagreeing); c.Reason != v1alpha1.ReasonWaitingForAgreement || Blocking(&f.Status) != refusal {
		t.Errorf("servers disagree: %+v", c)
	}
	if c := next(off); c.Reason == v1alpha1.ReasonPaused || Blocking(&f.Status) != "" {
		t.Errorf("it is tried again: %+v", c)
	}
	f.Spec.Paused = true
	if c := next(off); Blocking(&f.Status) != "" {
		t.Errorf("what was not blocked is paused: %+v", c)
	}
}

// TestWaitMessageNamesEndTime for users that show no sign of life or never reported.
func TestWaitMessageNamesEndTime(t *testing.T) {
	away, missing := user("away", true), tracker.Instance{Component: "kubelet", Name: "missing", Since: start}
	away.Alive, away.Since = false, start.Add(time.Minute)
	view := View{Servers: []tracker.Server{server("a", false)}, Instances: []tracker.Instance{away, user("here", true), missing}, Declared: declared}
	f := feature(v1alpha1.StateTurningOff, v1alpha1.TaskWaitForUses)
	f.Status.Transition = &v1alpha1.FeatureTransition{ID: "t", StartTime: metav1.NewMicroTime(start)}
	at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339) }
	want := "waiting for 2 users that have the feature on: kubelet/away, kubelet/here; of these 1 shows no sign of life, and the last of them is waited for until " +
		at(time.Minute+settings.Grace) + ": kubelet/away; waiting for 1 that should report and has not: kubelet/missing; the last of them is waited for until " + at(settings.Grace)
	if got := Next(f, view, settings, start.Add(2*time.Minute)).Status.Tasks[0].Message; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
