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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// switchAt is the moment of tests, two minutes after start.
var switchAt = metav1.NewTime(start.Add(2 * time.Minute))

// atMoment is a rollout with a moment.
func atMoment(at metav1.Time) *v1alpha1.FeatureRollout { return &v1alpha1.FeatureRollout{At: &at} }

// together is F, which is turned on in all instances at switchAt.
func together() *v1alpha1.Feature {
	f := enabled(feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses))
	f.Spec.Rollout = atMoment(switchAt)
	f = look(f, start, nil).feature
	// As it is set when a transition begins at rest.
	f.Status.Configured.Previous = new(bool)
	return f
}

// stored describes the rollout in a status: "0%, all at 03:06:05".
func stored(f *v1alpha1.Feature) string {
	current := f.Status.Rollout
	if current == nil {
		return "none"
	}
	text := "all"
	if rollout.Limits(&current.Observed) {
		text = fmt.Sprintf("%d%%", ptr.Deref(current.Observed.Percent, 100))
	}
	if current.Halted {
		text += " halted"
	}
	if current.MomentHeld {
		text += " held"
	}
	if at := current.Observed.At; at != nil {
		text += ", all at " + at.UTC().Format(time.TimeOnly)
	}
	return text
}

// TestMomentOfRolloutIsAwaited: nothing ends before it, and all instances have the value
// after it.
func TestMomentOfRolloutIsAwaited(t *testing.T) {
	off := tracker.Instance{Component: "kubelet", Name: "n1", Reported: true, Alive: true}
	confirmed, explicit, on := off, off, off
	confirmed.SwitchTime, explicit.Explicit, on.Enabled = moment(switchAt.Time), true, true
	other := off
	other.SwitchTime = moment(start.Add(time.Minute))
	text := "all instances switch at " + confirmed.SwitchTime
	for name, tc := range map[string]struct {
		instances []tracker.Instance
		want      string
	}{
		"no user":                       {nil, text},
		"a user that has not confirmed": {[]tracker.Instance{off}, text + ", and 1 user has not confirmed that: kubelet/n1"},
		"one that confirmed another":    {[]tracker.Instance{other}, text + ", and 1 user has not confirmed that: kubelet/n1"},
		"one that has":                  {[]tracker.Instance{confirmed}, text},
		"one that never follows":        {[]tracker.Instance{explicit}, text},
		"one that has the value":        {[]tracker.Instance{on}, text},
	} {
		t.Run(name, func(t *testing.T) {
			got := look(together(), switchAt.Add(-30*time.Second), tc.instances)
			message := got.feature.Status.Tasks[0].Message
			if !strings.HasSuffix(message, tc.want) || got.feature.Status.State != v1alpha1.StateTurningOn {
				t.Errorf("the task says %q, want %q at its end", message, tc.want)
			}
			if want := 30*time.Second + SwitchMargin; got.decision.RequeueAfter != want {
				t.Errorf("the flow is requeued after %s, want %s", got.decision.RequeueAfter, want)
			}
			at := switchAt.Add(SwitchMargin)
			got = look(got.feature, at, tc.instances)
			if want := "RolloutSwitched: the moment of the rollout, " + confirmed.SwitchTime + ", has come: the feature is on for all instances"; rolloutEvents(got.decision) != want || stored(got.feature) != "all, all at 03:06:05" {
				t.Errorf("at the moment: %s, %s", rolloutEvents(got.decision), stored(got.feature))
			}
			if again := look(got.feature, at.Add(time.Second), tc.instances); rolloutEvents(again.decision) != "" || stored(again.feature) != "all, all at 03:06:05" {
				t.Errorf("later: %s, %s", rolloutEvents(again.decision), stored(again.feature))
			}
			if message := got.feature.Status.Tasks[0].Message; strings.Contains(message, "switch at") || strings.Contains(message, "spec.rollout") {
				t.Errorf("the task still says %q", message)
			}
		})
	}
}

// TestStaticUsersConfirmNoMoment: they take the value as they start.
func TestStaticUsersConfirmNoMoment(t *testing.T) {
	f := together()
	f.Spec.Enabled = nil
	view := View{Servers: controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlCentral), Declared: declared,
		Instances: []tracker.Instance{{Component: "kubelet", Name: "n1", Reported: true, Alive: true}}}
	status := Next(f, view, settings, start.Add(time.Minute)).Status
	if message := status.Tasks[0].Message; !strings.HasSuffix(message, "all instances switch at 2026-01-02T03:06:05Z") {
		t.Errorf("the task says %q", message)
	}
}

// TestMomentCountsAsLeaderStoredIt, whatever is requested later and by which clock.
func TestMomentCountsAsLeaderStoredIt(t *testing.T) {
	type action struct {
		// change is what a user or the health of the canary does, nil for nothing.
		change func(*v1alpha1.Feature)
		// at is the leader's clock, from the moment on.
		at   time.Duration
		want string
		// event is the reason of the event, "" for none.
		event string
	}
	pause := func(f *v1alpha1.Feature) { f.Spec.Paused = true }
	resume := func(f *v1alpha1.Feature) { f.Spec.Paused = false }
	request := func(r *v1alpha1.FeatureRollout) func(*v1alpha1.Feature) {
		return func(f *v1alpha1.Feature) { f.Spec.Rollout = r }
	}
	retry := func(f *v1alpha1.Feature) { f.Spec.Rollout.Attempt++ }
	callOff := func(f *v1alpha1.Feature) { f.Spec.Enabled = ptr.To(false) }
	halt := func(f *v1alpha1.Feature) {
		r := f.Status.Rollout
		r.Halted, r.HaltTime, r.Message, r.UnhealthySince = true, &metav1.Time{Time: start}, "2 failed", nil
	}
	suspect := func(f *v1alpha1.Feature) {
		f.Status.Rollout.UnhealthySince = &metav1.MicroTime{Time: switchAt.Add(-10 * time.Second)}
	}
	later := metav1.NewTime(switchAt.Add(time.Hour))
	const waits, held, switched = "0%, all at 03:06:05", "0% held, all at 03:06:05", "all, all at 03:06:05"
	for name, actions := range map[string][]action{
		"it comes":                         {{nil, -time.Second, waits, ""}, {nil, 0, waits, ""}, {nil, SwitchMargin, switched, EventRolloutSwitched}},
		"another leader's clock is behind": {{nil, SwitchMargin, switched, EventRolloutSwitched}, {nil, -time.Hour, switched, ""}},
		"it had passed when it was requested": {
			{request(atMoment(metav1.NewTime(start))), -time.Minute, "all, all at 03:04:05", EventRolloutSwitched}, {nil, -time.Hour, "all, all at 03:04:05", ""}},
		"paused before it":                {{pause, -time.Second, held, EventRolloutChanged}, {nil, time.Minute, held, ""}, {resume, 2 * time.Minute, switched, EventRolloutSwitched}},
		"paused and resumed before it":    {{pause, -time.Minute, held, EventRolloutChanged}, {resume, -time.Second, waits, EventRolloutChanged}},
		"paused after it":                 {{pause, 0, switched, EventRolloutSwitched}, {resume, time.Second, switched, ""}},
		"paused and called off before it": {{func(f *v1alpha1.Feature) { pause(f); callOff(f) }, -time.Second, held, EventRolloutChanged}, {nil, time.Minute, held, ""}, {resume, time.Hour, "none", ""}},
		"called off before it":            {{callOff, -time.Second, "none", ""}, {nil, time.Minute, "none", ""}},
		"removed":                         {{request(nil), -time.Second, "none", EventRolloutChanged}},
		"postponed":                       {{request(atMoment(later)), -time.Second, "0%, all at 04:06:05", EventRolloutChanged}, {nil, time.Minute, "0%, all at 04:06:05", ""}},
		"postponed after it":              {{nil, SwitchMargin, switched, EventRolloutSwitched}, {request(atMoment(later)), time.Minute, "all, all at 04:06:05", ""}},
		"postponed as it comes":           {{request(atMoment(later)), SwitchMargin / 2, "all, all at 04:06:05", EventRolloutSwitched}},
		"tried again after it":            {{nil, SwitchMargin, switched, EventRolloutSwitched}, {retry, time.Minute, switched, ""}},
		"halted while it is paused": {{pause, -time.Minute, held, EventRolloutChanged}, {halt, -50 * time.Second, "0% halted, all at 03:06:05", ""},
			{resume, -time.Second, "0% halted, all at 03:06:05", ""}, {nil, time.Minute, "0% halted, all at 03:06:05", ""}},
		"a canary gets it":            {{request(half()), -time.Minute, "50%", EventRolloutChanged}, {request(atMoment(switchAt)), -time.Second, "50%, all at 03:06:05", EventRolloutChanged}, {nil, time.Minute, switched, EventRolloutSwitched}},
		"a canary after it":           {{nil, SwitchMargin, switched, EventRolloutSwitched}, {request(half()), time.Minute, "50%", EventRolloutChanged}},
		"halted before it":            {{halt, -time.Second, "0% halted, all at 03:06:05", ""}, {nil, time.Minute, "0% halted, all at 03:06:05", ""}, {retry, time.Hour, switched, EventRolloutResumed}},
		"halted, and tried before it": {{halt, -time.Minute, "0% halted, all at 03:06:05", ""}, {retry, -time.Second, waits, EventRolloutResumed}},
		"halted and postponed":        {{halt, -time.Second, "0% halted, all at 03:06:05", ""}, {request(atMoment(later)), time.Minute, "0%, all at 04:06:05", EventRolloutResumed}},
		// No instance has failed, so that the canary is not suspected after it was looked at.
		"suspected at it": {{suspect, 0, waits, ""}, {nil, time.Minute, switched, EventRolloutSwitched}},
	} {
		t.Run(name, func(t *testing.T) {
			f := together()
			if stored(f) != waits {
				t.Fatalf("the rollout is %s, want %s", stored(f), waits)
			}
			for i, a := range actions {
				if a.change != nil {
					a.change(f)
				}
				got := look(f, switchAt.Add(a.at), nil)
				reason, _, _ := strings.Cut(rolloutEvents(got.decision), ":")
				if stored(got.feature) != a.want || reason != a.event {
					t.Errorf("%d: the rollout is %s with the event %q, want %s with %s", i, stored(got.feature), rolloutEvents(got.decision), a.want, a.event)
				}
				f = got.feature
			}
		})
	}
}

// TestSuspectedCanaryIsNotForAllAtMoment, for as long as it is suspected.
func TestSuspectedCanaryIsNotForAllAtMoment(t *testing.T) {
	f := trial()
	f.Spec.Rollout = atMoment(switchAt)
	f = look(f, start.Add(time.Second), nil).feature
	failing := slices.Concat(group("kubelet", 10, 5, true, start.Add(time.Minute)), group("kubelet", 10, 0, false, start))
	at := switchAt.Add(-5 * time.Second)
	f = look(f, at, failing).feature
	if f.Status.Rollout.UnhealthySince == nil {
		t.Fatal("the canary is not suspected")
	}
	outside := rollout.Instance{Component: "kubelet", Name: nodes(1, false)[0]}
	for _, after := range []time.Duration{6 * time.Second, 19 * time.Second} {
		f = look(f, at.Add(after), failing).feature
		if stored(f) != "50% held, all at 03:06:05" {
			t.Errorf("%s later the rollout is %s", after, stored(f))
		}
		if choice := rollout.Choose(f, outside, nil, at.Add(after)); choice.Value || !choice.SwitchTime.IsZero() {
			t.Errorf("%s later an instance that is left out takes %+v", after, choice)
		}
	}
	f = look(f, at.Add(settings.Canary.Patience), failing).feature
	if stored(f) != "50% halted, all at 03:06:05" {
		t.Errorf("the rollout is %s, want it halted", stored(f))
	}
	if _, message := progress(f); !strings.Contains(message, "one that keeps its moment is for all instances from 2026-01-02T03:06:05Z on") {
		t.Errorf("it says %q", message)
	}
}

// TestSuspectedCanaryHoldsMomentLate: while there is time to halt it, nothing is told to
// processes.
func TestSuspectedCanaryHoldsMomentLate(t *testing.T) {
	f := trial()
	f.Spec.Rollout = atMoment(metav1.NewTime(start.Add(time.Hour)))
	f = look(f, start.Add(time.Second), nil).feature
	failing := slices.Concat(group("kubelet", 10, 5, true, start.Add(time.Minute)), group("kubelet", 10, 0, false, start))
	got := look(f, start.Add(time.Minute), failing)
	if r := got.feature.Status.Rollout; r.UnhealthySince == nil || r.MomentHeld || rolloutEvents(got.decision) != "" {
		t.Errorf("the rollout is %+v, with %q", r, rolloutEvents(got.decision))
	}
}

// TestPauseForgetsNoSuspicion: a canary with a moment that is paused is evaluated as before.
func TestPauseForgetsNoSuspicion(t *testing.T) {
	f := trial()
	f.Spec.Rollout = atMoment(switchAt)
	f = look(f, start.Add(time.Second), nil).feature
	failing := slices.Concat(group("kubelet", 10, 5, true, start.Add(time.Minute)), group("kubelet", 10, 0, false, start))
	f = look(f, start.Add(61*time.Second), failing).feature
	began := f.Status.Rollout.StartTime
	f.Spec.Paused = true
	f = look(f, start.Add(65*time.Second), failing).feature
	f.Spec.Paused = false
	f = look(f, start.Add(70*time.Second), failing).feature
	if r := f.Status.Rollout; r.UnhealthySince == nil || !r.StartTime.Equal(&began) {
		t.Errorf("the rollout is %+v", r)
	}
	if f = look(f, start.Add(61*time.Second+settings.Canary.Patience), failing).feature; !f.Status.Rollout.Halted {
		t.Errorf("the rollout is %s, want it halted", stored(f))
	}
}

// TestCentralMomentIgnoresRequest: spec.enabled has no effect on a feature that is central.
func TestCentralMomentIgnoresRequest(t *testing.T) {
	f := together()
	f.Spec.Enabled, f.Status.Rollout = ptr.To(false), nil
	view := View{Servers: controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlCentral), Declared: declared}
	for at, want := range map[time.Duration]string{0: "0%, all at 03:06:05", time.Hour: "all, all at 03:06:05"} {
		f := f.DeepCopy()
		for range 3 {
			f.Status = Next(f, view, settings, start.Add(at)).Status
			if f.Status.State == v1alpha1.StateTurningOn && stored(f) != want {
				t.Errorf("%s after the start the rollout is %s, want %s", at, stored(f), want)
			}
		}
	}
}

// TestCalledOffMomentIsWaitedFor: users that would still take the value by themselves oppose
// the transition to the other one.
func TestCalledOffMomentIsWaitedFor(t *testing.T) {
	f := together()
	waits := tracker.Instance{Component: "kubelet", Name: "n1", Reported: true, Alive: true, SwitchTime: moment(switchAt.Time)}
	f.Spec.Enabled = ptr.To(false)
	for _, after := range []time.Duration{time.Second, time.Minute, time.Hour} {
		f = look(f, start.Add(after), []tracker.Instance{waits}).feature
		if f.Status.State != v1alpha1.StateTurningOff || f.Status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
			t.Fatalf("%s later the feature is %s with %q", after, f.Status.State, taskNames(f.Status))
		}
	}
	task := f.Status.Tasks[0]
	if task.Message != "waiting for 1 user that still switches at the moment that was called off: kubelet/n1" || task.Done != 0 || task.Total != 1 {
		t.Errorf("the task is %+v", task)
	}
}

// TestMomentCalledOffWhileServersDisagree does not come: no process waits for it any more.
func TestMomentCalledOffWhileServersDisagree(t *testing.T) {
	f := together()
	f.Spec.Enabled = ptr.To(false)
	// One of them has not been restarted with the feature among the dynamic ones.
	servers := append(controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlDynamic), controlled([]tracker.Server{server("b", true)}, v1alpha1.ControlLocal)...)
	for _, after := range []time.Duration{time.Minute, time.Hour} {
		f = answer(f, View{Servers: servers, Declared: declared}, start.Add(after))
		if stored(f) != "0% held, all at 03:06:05" {
			t.Errorf("%s later the rollout is %s", after, stored(f))
		}
	}
}

// TestMomentOfReversedTransition: tasks of the transition that is replaced do not make the
// value one for all.
func TestMomentOfReversedTransition(t *testing.T) {
	f := enabled(feature(v1alpha1.StateTurningOff, "ClearA"))
	f.Spec.Rollout = atMoment(switchAt)
	f.Status.Control = v1alpha1.ControlDynamic
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceAPI, Previous: new(bool)}
	got := look(f, start, nil).feature
	if stored(got) != "0%, all at 03:06:05" || got.Status.State != v1alpha1.StateTurningOn {
		t.Errorf("the rollout is %s in %s", stored(got), got.Status.State)
	}
	if choice := rollout.Choose(got, rollout.Instance{Component: "kubelet", Name: "n1"}, nil, start); choice.Value || choice.SwitchTime.IsZero() {
		t.Errorf("an instance takes %+v", choice)
	}
}

// TestMomentWithAnyClocks: leaders whose clocks differ, pauses and other requests in any
// order. A moment that has come is never taken back while it is requested, and none is told
// while another value is.
func TestMomentWithAnyClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, now := together(), start
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				f.Spec.Paused = !f.Spec.Paused
			case 1:
				f.Spec.Enabled = ptr.To(!*f.Spec.Enabled)
			case 2:
				f.Spec.Rollout = atMoment(metav1.NewTime(now.Add(time.Duration(rapid.IntRange(-60, 300).Draw(t, "in")) * time.Second)))
			case 3:
				f.Spec.Rollout = half()
			}
			before := f
			clock := now.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "skew")) * time.Second)
			f = look(f, clock, nil).feature
			r, was := f.Status.Rollout, before.Status.Rollout
			if r == nil || was == nil || r.Value != was.Value {
				continue
			}
			if again := look(f, clock, nil); r.Observed.At != nil && rollout.Limits(&r.Observed) && (stored(again.feature) != stored(f) || rolloutEvents(again.decision) != "") {
				t.Fatalf("%s became %s by itself, with %q", stored(f), stored(again.feature), rolloutEvents(again.decision))
			}
			if had := was.Observed; had.At != nil && !rollout.Limits(&had) && had.At.Equal(f.Spec.Rollout.At) && rollout.Limits(&r.Observed) {
				t.Fatalf("%s became %s", stored(before), stored(f))
			}
			told := rollout.Limits(&r.Observed) && r.Observed.At != nil && !r.Halted && !r.MomentHeld
			if told && (f.Spec.Paused || *f.Spec.Enabled != r.Value || !r.Observed.At.Equal(f.Spec.Rollout.At)) {
				t.Fatalf("%s is told, and the spec is %+v", stored(f), f.Spec)
			}
		}
	})
}
