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

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

// half returns a canary of half of the instances.
func half() *v1alpha1.FeatureRollout {
	percent := int32(50)
	return &v1alpha1.FeatureRollout{Percent: &percent}
}

// nodes are names of so many nodes that half includes, or leaves out.
func nodes(n int, included bool) []string {
	var names []string
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("n%d", i)
		if rollout.Includes(half(), "F", rollout.Instance{Component: "kubelet", Name: name}) == included {
			names = append(names, name)
		}
	}
	return names
}

// group returns instances of which so many have failed at a time.
func group(component string, n, dead int, included bool, at time.Time) []tracker.Instance {
	var instances []tracker.Instance
	for i, name := range nodes(n, included) {
		instance := tracker.Instance{Component: component, Name: name, Reported: true, Enabled: included, Alive: i >= dead}
		if !instance.Alive {
			instance.Since, instance.Failed = at, true
		}
		instances = append(instances, instance)
	}
	return instances
}

// trial is F, which is turned on in half of the instances from start on.
func trial() *v1alpha1.Feature {
	f := enabled(feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses))
	f.Spec.Rollout = half()
	return look(f, start, nil).feature
}

type looked struct {
	feature  *v1alpha1.Feature
	decision Decision
}

// look lets the flow look once and stores what it decides.
func look(f *v1alpha1.Feature, at time.Time, instances []tracker.Instance, lost ...tracker.Instance) looked {
	view := View{Servers: controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlDynamic), Instances: instances, Lost: lost, Declared: declared, NewTransitionID: "t2"}
	d := Next(f, view, settings, at)
	f = f.DeepCopy()
	f.Status = d.Status
	return looked{f, d}
}

// lookTwice looks when news come and again once patience has ended.
func lookTwice(f *v1alpha1.Feature, at time.Time, instances []tracker.Instance, lost ...tracker.Instance) looked {
	first := look(f, at, instances, lost...)
	if rollout := first.feature.Status.Rollout; rollout != nil && rollout.UnhealthySince != nil && first.decision.RequeueAfter > settings.Canary.Patience {
		panic("the flow is not requeued when patience ends")
	}
	return look(first.feature, at.Add(settings.Canary.Patience), instances, lost...)
}

func progress(f *v1alpha1.Feature) (reason, message string) {
	c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
	return c.Reason, c.Message
}

func TestCanaryHalted(t *testing.T) {
	later := start.Add(time.Minute)
	both := func(in, out []tracker.Instance) []tracker.Instance { return slices.Concat(in, out) }
	change := func(instances []tracker.Instance, f func(*tracker.Instance)) []tracker.Instance {
		for i := range instances {
			f(&instances[i])
		}
		return instances
	}
	crashing := func(instances []tracker.Instance, times ...time.Duration) []tracker.Instance {
		for _, after := range times {
			instances[0].Crashes = append(instances[0].Crashes, start.Add(after))
			instances[1].Crashes = append(instances[1].Crashes, start.Add(after))
		}
		return instances
	}
	for name, tc := range map[string]struct {
		instances, lost []tracker.Instance
		want            string
	}{
		"none failed":                            {both(group("kubelet", 10, 0, true, later), group("kubelet", 10, 0, false, later)), nil, ""},
		"one of ten is not enough":               {both(group("kubelet", 10, 1, true, later), group("kubelet", 10, 0, false, later)), nil, ""},
		"two of ten":                             {both(group("kubelet", 10, 2, true, later), group("kubelet", 10, 0, false, later)), nil, "2 of 10 kubelet"},
		"two of twenty are ten percent":          {both(group("kubelet", 20, 2, true, later), group("kubelet", 20, 0, false, later)), nil, ""},
		"three of twenty are more":               {both(group("kubelet", 20, 3, true, later), group("kubelet", 20, 0, false, later)), nil, "3 of 20 kubelet"},
		"the only one":                           {both(group("kubelet", 1, 1, true, later), group("kubelet", 10, 0, false, later)), nil, "1 of 1 kubelet"},
		"a general outage":                       {both(group("kubelet", 10, 10, true, later), group("kubelet", 10, 10, false, later)), nil, ""},
		"others fail as often":                   {both(group("kubelet", 10, 4, true, later), group("kubelet", 20, 8, false, later)), nil, ""},
		"exactly twice as often is not more":     {both(group("kubelet", 10, 4, true, later), group("kubelet", 10, 2, false, later)), nil, ""},
		"more than twice as often":               {both(group("kubelet", 10, 5, true, later), group("kubelet", 10, 2, false, later)), nil, "5 of 10 kubelet"},
		"only instances without the value":       {both(group("kubelet", 10, 0, true, later), group("kubelet", 10, 9, false, later)), nil, ""},
		"none to compare with":                   {group("kubelet", 2, 2, true, later), nil, "2 of 2 kubelet"},
		"failed before the canary began":         {both(group("kubelet", 10, 5, true, start.Add(-time.Second)), group("kubelet", 10, 0, false, later)), nil, ""},
		"ended in order, and not yet taken away": {both(change(group("kubelet", 10, 5, true, later), func(i *tracker.Instance) { i.Failed = false }), group("kubelet", 10, 0, false, later)), nil, ""},
		"never reported":                         {both(change(group("kubelet", 10, 5, true, later), func(i *tracker.Instance) { i.Reported = false }), group("kubelet", 10, 0, false, later)), nil, ""},
		"set explicitly, so not on trial":        {both(change(group("kubelet", 10, 5, true, later), func(i *tracker.Instance) { i.Explicit = true }), group("kubelet", 10, 0, false, later)), nil, ""},
		"one scheduler beside many kubelets":     {slices.Concat(group("kubelet", 30, 0, true, later), group("kubelet", 30, 0, false, later), group("kube-scheduler", 1, 1, true, later), group("kube-scheduler", 2, 0, false, later)), nil, "1 of 1 kube-scheduler"},
		"compared with their own component":      {slices.Concat(group("kubelet", 10, 5, true, later), group("kubelet", 10, 5, false, later), group("kube-proxy", 30, 0, false, later)), nil, ""},
		"lost with their reports":                {both(group("kubelet", 10, 0, true, later)[3:], group("kubelet", 10, 0, false, later)), group("kubelet", 3, 3, true, later), "3 of 10 kubelet"},
		"a crash loop":                           {both(crashing(group("kubelet", 10, 0, true, later), 30*time.Second, 40*time.Second, 50*time.Second), group("kubelet", 10, 0, false, later)), nil, "2 of 10 kubelet"},
		"crashes are no loop if they are few":    {both(crashing(group("kubelet", 10, 0, true, later), 30*time.Second, 40*time.Second), group("kubelet", 10, 0, false, later)), nil, ""},
		"nor if they began before":               {both(crashing(group("kubelet", 10, 0, true, later), -time.Second, 40*time.Second, 50*time.Second), group("kubelet", 10, 0, false, later)), nil, ""},
		"all crash":                              {both(crashing(group("kubelet", 2, 0, true, later), 1, 2, 3), crashing(group("kubelet", 2, 0, false, later), 1, 2, 3)), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := lookTwice(trial(), later.Add(time.Second), tc.instances, tc.lost...)
			current := got.feature.Status.Rollout
			if current.Halted != (tc.want != "") || !strings.HasPrefix(current.Message, tc.want) || current.Halted && current.HaltTime == nil {
				t.Fatalf("halted is %t with %q, want %q", current.Halted, current.Message, tc.want)
			}
			if reason, _ := progress(got.feature); (reason == v1alpha1.ReasonRolloutHalted) != current.Halted {
				t.Errorf("Progressing has reason %s", reason)
			}
			halting := slices.ContainsFunc(got.decision.Events, func(e Event) bool { return e.Warning && e.Reason == EventRolloutHalted })
			if halting != current.Halted {
				t.Errorf("events: %+v", got.decision.Events)
			}
		})
	}
}

// TestOldCrashesForgotten: three in weeks are no loop.
func TestOldCrashesForgotten(t *testing.T) {
	one := group("kubelet", 1, 0, true, start)
	one[0].Crashes = []time.Time{start.Add(time.Hour), start.Add(2 * time.Hour), start.Add(3 * time.Hour)}
	if got := lookTwice(trial(), start.Add(3*time.Hour), slices.Concat(one, group("kubelet", 2, 0, false, start))); got.feature.Status.Rollout.Halted {
		t.Errorf("halted: %s", got.feature.Status.Rollout.Message)
	}
}

// TestCanaryNotHaltedAfterOutage checks that processes may return one by one, those of
// the canary last.
func TestCanaryNotHaltedAfterOutage(t *testing.T) {
	at := start.Add(time.Minute)
	late := slices.Concat(group("kubelet", 4, 4, true, at), group("kubelet", 4, 0, false, at))
	got := look(trial(), at, late)
	if got.feature.Status.Rollout.UnhealthySince == nil || got.decision.RequeueAfter != settings.Canary.Patience {
		t.Fatalf("requeued after %s", got.decision.RequeueAfter)
	}
	got = look(got.feature, at.Add(settings.Canary.Patience-time.Millisecond), late)
	got = look(got.feature, at.Add(settings.Canary.Patience), slices.Concat(group("kubelet", 4, 0, true, at), group("kubelet", 4, 0, false, at)))
	if current := got.feature.Status.Rollout; current.Halted || current.UnhealthySince != nil || current.Message != "" {
		t.Errorf("after all returned: %+v", current)
	}
}

// halted is trial, halted.
func halted(t testing.TB) *v1alpha1.Feature {
	t.Helper()
	at := start.Add(time.Minute)
	got := lookTwice(trial(), at, slices.Concat(group("kubelet", 4, 3, true, at), group("kubelet", 4, 0, false, at)))
	if !got.feature.Status.Rollout.Halted {
		t.Fatal("not halted")
	}
	return got.feature
}

// TestHaltedCanaryResumed, and what does not.
func TestHaltedCanaryResumed(t *testing.T) {
	off := false
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Feature)
		// halted is whether it stays so, ended whether there is no canary left.
		halted, ended bool
	}{
		"nothing":             {func(*v1alpha1.Feature) {}, true, false},
		"a pause":             {func(f *v1alpha1.Feature) { f.Spec.Paused = true }, true, false},
		"an annotation":       {func(f *v1alpha1.Feature) { f.Annotations = map[string]string{"a": "b"} }, true, false},
		"another attempt":     {func(f *v1alpha1.Feature) { f.Spec.Rollout.Attempt++ }, false, false},
		"a greater share":     {func(f *v1alpha1.Feature) { *f.Spec.Rollout.Percent = 60 }, false, false},
		"a smaller share":     {func(f *v1alpha1.Feature) { *f.Spec.Rollout.Percent = 1 }, false, false},
		"other components":    {func(f *v1alpha1.Feature) { f.Spec.Rollout.Components = []string{"kubelet"} }, false, false},
		"all":                 {func(f *v1alpha1.Feature) { f.Spec.Rollout = nil }, false, true},
		"it is called off":    {func(f *v1alpha1.Feature) { f.Spec.Enabled = &off }, false, true},
		"it is not requested": {func(f *v1alpha1.Feature) { f.Spec.Enabled = nil }, true, false}, // The server's own value is on.
	} {
		t.Run(name, func(t *testing.T) {
			f := halted(t)
			tc.change(f)
			at := start.Add(time.Hour)
			got := look(f, at, slices.Concat(group("kubelet", 4, 3, true, start.Add(time.Minute)), group("kubelet", 4, 0, false, at)))
			current := got.feature.Status.Rollout
			if (current == nil) != tc.ended || current != nil && current.Halted != tc.halted {
				t.Fatalf("unexpected: %+v", current)
			}
			if current == nil || current.Halted {
				return
			}
			if !slices.ContainsFunc(got.decision.Events, func(e Event) bool { return e.Reason == EventRolloutResumed }) {
				t.Error("no event says that it was resumed")
			}
			// The instances for which it was halted are still failed: that is known.
			got = lookTwice(got.feature, at.Add(time.Minute), slices.Concat(group("kubelet", 4, 3, true, start.Add(time.Minute)), group("kubelet", 4, 0, false, at)))
			if got.feature.Status.Rollout.Halted {
				t.Errorf("halted again for what was known: %s", got.feature.Status.Rollout.Message)
			}
			got = lookTwice(got.feature, at.Add(time.Hour), slices.Concat(group("kubelet", 4, 3, true, at.Add(time.Minute)), group("kubelet", 4, 0, false, at)))
			// One percent includes none of these.
			if want := name != "a smaller share"; got.feature.Status.Rollout.Halted != want {
				t.Errorf("halted again for new losses: %t, want %t", !want, want)
			}
		})
	}
}

// TestHaltedCanaryHoldsTransition checks that it does so also when no instance is
// waited for, with the next step in its message.
func TestHaltedCanaryHoldsTransition(t *testing.T) {
	f := halted(t)
	for _, after := range []time.Duration{time.Hour, time.Hour + time.Minute, 2 * time.Hour} {
		got := look(f, start.Add(after), nil)
		f = got.feature
		if f.Status.State != v1alpha1.StateTurningOn || !got.decision.Hold || got.decision.Start != "" {
			t.Fatalf("it proceeds: %s, starts %q", f.Status.State, got.decision.Start)
		}
	}
	reason, message := progress(f)
	want := "the rollout was halted at 2026-01-02T03:05:25Z: 3 of 4 kubelet that have the feature on failed (" + strings.Join(prefixed(nodes(3, true)), ", ") +
		"), of kubelet without it 0 of 4; all instances have the feature off. Change spec.rollout (percent, components, at, or attempt to change nothing else) to resume it, or call it off by asking for false"
	if diff := cmp.Diff(want, message); reason != v1alpha1.ReasonRolloutHalted || diff != "" {
		t.Errorf("it says %s (-want +got):\n%s", reason, diff)
	}
}

func prefixed(names []string) []string {
	var result []string
	for _, name := range names {
		result = append(result, "kubelet/"+name)
	}
	slices.Sort(result)
	return result
}

// TestCanaryContinuesWhileOthersUnreachable checks that the transition does not end
// without them: they would return and take the value.
func TestCanaryContinuesWhileOthersUnreachable(t *testing.T) {
	f := trial()
	for _, after := range []time.Duration{time.Minute, time.Hour, 2 * time.Hour} {
		got := look(f, start.Add(after), slices.Concat(group("kubelet", 2, 0, true, start), group("kubelet", 2, 2, false, start)))
		f = got.feature
	}
	task := f.Status.Tasks[0]
	if want := "waiting for 2 users that the rollout leaves out and that cannot be reached"; task.Name != v1alpha1.TaskWaitForUses || !strings.HasPrefix(task.Message, want) {
		t.Errorf("%s says %q, want %q", task.Name, task.Message, want)
	}
}

// TestCanaryOnlyWhileValuesDiffer.
func TestCanaryOnlyWhileValuesDiffer(t *testing.T) {
	all := int32(100)
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		control v1alpha1.FeatureControl
		rollout *v1alpha1.FeatureRollout
		want    bool
	}{
		"turning on":                     {feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses), v1alpha1.ControlDynamic, half(), true},
		"a central value":                {feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses), v1alpha1.ControlCentral, half(), true},
		"held before it began":           {paused(feature(v1alpha1.StateOff)), v1alpha1.ControlCentral, half(), false},
		"it is on":                       {feature(v1alpha1.StateOn), v1alpha1.ControlDynamic, half(), false},
		"all users have agreed":          {feature(v1alpha1.StateTurningOn, "Install"), v1alpha1.ControlDynamic, half(), false},
		"for all":                        {feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses), v1alpha1.ControlDynamic, &v1alpha1.FeatureRollout{Percent: &all}, false},
		"no rollout":                     {feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses), v1alpha1.ControlDynamic, nil, false},
		"none follows":                   {feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses), v1alpha1.ControlLocal, half(), false},
		"a new feature starts as it is":  {feature(""), v1alpha1.ControlDynamic, half(), false},
		"back to the value of last rest": {enabledBefore(feature(v1alpha1.StateTurningOff, v1alpha1.TaskWaitForUses), true), v1alpha1.ControlDynamic, half(), false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.feature.Spec.Rollout = tc.rollout
			d := Next(tc.feature, View{Servers: controlled([]tracker.Server{server("a", true)}, tc.control), Instances: group("kubelet", 2, 0, false, start), Declared: declared}, settings, start)
			if got := d.Status.Rollout != nil; got != tc.want {
				t.Errorf("there is a canary: %t, want %t", got, tc.want)
			}
		})
	}
}

// enabledBefore returns a feature with a value of its last rest.
func enabledBefore(f *v1alpha1.Feature, previous bool) *v1alpha1.Feature {
	f.Status.Control = v1alpha1.ControlDynamic
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: !previous, Previous: &previous, Source: v1alpha1.SourceAPI}
	return f
}

// TestHaltingMatchesRules over random populations and times.
func TestHaltingMatchesRules(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		at := start.Add(time.Minute)
		size, others := rapid.IntRange(1, 30).Draw(t, "canary"), rapid.IntRange(1, 30).Draw(t, "others")
		failed, otherFailed := rapid.IntRange(0, size).Draw(t, "failed"), rapid.IntRange(0, others).Draw(t, "others failed")
		population := func(failed, otherFailed int) []tracker.Instance {
			return slices.Concat(group("kubelet", size, failed, true, at), group("kubelet", others, otherFailed, false, at))
		}
		isHalted := func(failed, otherFailed int) bool {
			return lookTwice(trial(), at, population(failed, otherFailed)).feature.Status.Rollout.Halted
		}
		share, otherShare := float64(failed)/float64(size), float64(otherFailed)/float64(others)
		// A naive twin, away from the edges of floating point.
		want := failed >= min(2, size) && share > 0.1+1e-9 && share > 2*otherShare+1e-9
		got := isHalted(failed, otherFailed)
		if got != want {
			t.Fatalf("%d of %d failed, of others %d of %d: halted %t, want %t", failed, size, otherFailed, others, got, want)
		}
		// More failures in the canary never make a halt less likely, more among others never
		// more likely.
		if got && failed < size && !isHalted(failed+1, otherFailed) {
			t.Fatal("another loss made it safe")
		}
		if !got && otherFailed < others && isHalted(failed, otherFailed+1) {
			t.Fatal("a loss among others made it suspect")
		}
		// A halt is stable whatever becomes of the instances and however often
		// the flow looks.
		f := halted(tb)
		before := f.Status.Rollout.DeepCopy()
		for range rapid.IntRange(1, 4).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pause")))
			f.Spec.Paused = rapid.Bool().Draw(t, "paused")
			f = look(f, at, population(rapid.IntRange(0, size).Draw(t, "then"), rapid.IntRange(0, others).Draw(t, "others then"))).feature
		}
		if diff := cmp.Diff(before, f.Status.Rollout); diff != "" {
			t.Fatalf("the halt changed (-before +after):\n%s", diff)
		}
	})
}

// TestCentralCanaryCountsInstancesWithValue: most wait for their restart, and
// what becomes of them is not its doing.
func TestCentralCanaryCountsInstancesWithValue(t *testing.T) {
	at := start.Add(time.Hour)
	// canary are so many instances, of which so many have the value; of these, and
	// of the others, so many are dead.
	canary := func(component string, n, took, dead, othersDead int) []tracker.Instance {
		instances := group(component, n, 0, true, at)
		for i := range instances {
			instances[i].Enabled = i < took
			if i < dead || i >= took && i < took+othersDead {
				instances[i].Alive, instances[i].Failed, instances[i].Since = false, true, at
			}
		}
		return instances
	}
	replaced := func(instances []tracker.Instance, after time.Duration) []tracker.Instance {
		for i := range instances {
			instances[i].ReplacedAt = start.Add(after)
		}
		return instances
	}
	for name, tc := range map[string]struct {
		control             v1alpha1.FeatureControl
		instances, replaced []tracker.Instance
		want                string
	}{
		"nine of a hundred took it and failed": {v1alpha1.ControlCentral, canary("kubelet", 100, 9, 9, 0), nil,
			"9 of 9 kubelet that have the feature on failed"},
		"the first of a hundred":  {v1alpha1.ControlCentral, canary("kubelet", 100, 1, 1, 0), nil, ""},
		"the only one":            {v1alpha1.ControlCentral, canary("kubelet", 1, 1, 1, 0), nil, "1 of 1 kubelet"},
		"none took it":            {v1alpha1.ControlCentral, canary("kube-scheduler", 1, 0, 0, 1), nil, ""},
		"those that did not fail": {v1alpha1.ControlCentral, canary("kubelet", 20, 10, 0, 10), nil, ""},
		"both alike":              {v1alpha1.ControlCentral, canary("kubelet", 20, 10, 5, 5), nil, ""},
		"its successor has not reported yet and fails": {v1alpha1.ControlCentral, nil,
			replaced(canary("kube-scheduler", 1, 0, 0, 1), time.Minute), "1 of 1 kube-scheduler"},
		"nor one that took the value": {v1alpha1.ControlCentral, nil,
			replaced(canary("kube-scheduler", 1, 1, 1, 0), -time.Minute), "1 of 1 kube-scheduler"},
		"a successor from before the canary began does not have it": {v1alpha1.ControlCentral, nil,
			replaced(canary("kube-scheduler", 1, 0, 0, 1), -time.Minute), ""},
		"a dynamic value comes also to that one": {v1alpha1.ControlDynamic, nil,
			replaced(canary("kube-scheduler", 1, 0, 0, 1), -time.Minute), "1 of 1 kube-scheduler"},
		"a dynamic value that is not taken in an hour is refused": {v1alpha1.ControlDynamic, canary("kube-scheduler", 1, 0, 0, 1), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := trial()
			view := View{Servers: controlled([]tracker.Server{server("a", true)}, tc.control), Instances: slices.Concat(tc.instances, group("kube-proxy", 100, 0, false, at)), Replaced: tc.replaced, Declared: declared}
			for _, after := range []time.Duration{time.Minute, time.Minute + settings.Canary.Patience} {
				f.Status = Next(f, view, settings, at.Add(after)).Status
			}
			current := f.Status.Rollout
			if current.Halted != (tc.want != "") || !strings.HasPrefix(current.Message, tc.want) {
				t.Errorf("halted is %t with %q, want %q", current.Halted, current.Message, tc.want)
			}
		})
	}
}

// TestInstanceLastSeenBeforeCanaryNotCounted checks also instances that may have failed
// since.
func TestInstanceLastSeenBeforeCanaryNotCounted(t *testing.T) {
	at := start.Add(time.Minute)
	for seen, want := range map[time.Duration]bool{-15 * time.Second: false, -10 * time.Second: true, time.Second: true} {
		dead := group("kubelet", 2, 2, true, start.Add(30*time.Second))
		for i := range dead {
			dead[i].LastSeen = start.Add(seen)
		}
		if got := lookTwice(trial(), at, slices.Concat(dead, group("kubelet", 2, 0, false, at))).feature.Status.Rollout.Halted; got != want {
			t.Errorf("last seen %s after the canary began: halted %t, want %t", seen, got, want)
		}
	}
}

// TestFailureBeforeReportCountsWhileNodesNotice checks an instance that has not
// reported the value. It took the value when it noticed it, which takes a node ten
// minutes, and may have failed of it.
func TestFailureBeforeReportCountsWhileNodesNotice(t *testing.T) {
	for after, want := range map[time.Duration]bool{10 * time.Minute: true, noticing: false} {
		at := start.Add(after)
		dead := group("kubelet", 2, 2, true, at)
		for i := range dead {
			dead[i].Enabled = false
		}
		if got := lookTwice(trial(), at.Add(time.Second), slices.Concat(dead, group("kubelet", 2, 0, false, at))).feature.Status.Rollout.Halted; got != want {
			t.Errorf("dead %s after the canary began: halted %t, want %t", after, got, want)
		}
	}
}

// TestRolloutChangesEmitEvents checks events with the user that made the change.
func TestRolloutChangesEmitEvents(t *testing.T) {
	sixty, all, off := int32(60), int32(100), false
	for name, tc := range map[string]struct {
		halted bool
		change func(*v1alpha1.Feature)
		want   string
	}{
		"nothing":                  {false, func(*v1alpha1.Feature) {}, ""},
		"nothing of a halted one":  {true, func(*v1alpha1.Feature) {}, ""},
		"widened":                  {false, func(f *v1alpha1.Feature) { f.Spec.Rollout.Percent = &sixty }, "RolloutChanged: the rollout was changed: the feature is on for 60 percent of the instances (requested by jane)"},
		"another attempt":          {false, func(f *v1alpha1.Feature) { f.Spec.Rollout.Attempt++ }, "RolloutChanged: the rollout was changed: the feature is on for 50 percent of the instances (requested by jane)"},
		"removed":                  {false, func(f *v1alpha1.Feature) { f.Spec.Rollout = nil }, "RolloutChanged: the rollout was removed: the feature is on for all instances (requested by jane)"},
		"for all":                  {false, func(f *v1alpha1.Feature) { f.Spec.Rollout.Percent = &all }, "RolloutChanged: the rollout was removed: the feature is on for all instances (requested by jane)"},
		"halted, resumed":          {true, func(f *v1alpha1.Feature) { f.Spec.Rollout.Attempt++ }, "RolloutResumed: the rollout was changed: the feature is on again for 50 percent of the instances (requested by jane)"},
		"halted, removed":          {true, func(f *v1alpha1.Feature) { f.Spec.Rollout = nil }, "RolloutResumed: the rollout was removed: the feature is on for all instances, also for those that it was halted for (requested by jane)"},
		"halted, called off":       {true, func(f *v1alpha1.Feature) { f.Spec.Enabled = &off }, "RolloutCalledOff: the halted rollout of on was called off (requested by jane)"},
		"called off":               {false, func(f *v1alpha1.Feature) { f.Spec.Enabled = &off }, ""},
		"halted, off and for all":  {true, func(f *v1alpha1.Feature) { f.Spec.Enabled, f.Spec.Rollout = &off, nil }, "RolloutCalledOff: the halted rollout of on was called off (requested by jane)"},
		"called off and for all":   {false, func(f *v1alpha1.Feature) { f.Spec.Enabled, f.Spec.Rollout = &off, nil }, ""},
		"by an unknown user":       {false, func(f *v1alpha1.Feature) { f.Spec.Rollout, f.Annotations = nil, nil }, "RolloutChanged: the rollout was removed: the feature is on for all instances"},
		"there was none":           {false, func(f *v1alpha1.Feature) { f.Status.Rollout = nil }, "RolloutStarted: the feature is turned on for 50 percent of the instances (requested by jane)"},
		"it was one of the other":  {false, func(f *v1alpha1.Feature) { f.Status.Rollout.Value = false }, "RolloutStarted: the feature is turned on for 50 percent of the instances (requested by jane)"},
		"its transition continues": {false, func(f *v1alpha1.Feature) { f.Status.Tasks = feature("", "Install").Status.Tasks }, ""},
		"and so does a halted one": {true, func(f *v1alpha1.Feature) { f.Spec.Paused = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := trial()
			if tc.halted {
				f = halted(t)
			}
			f.Annotations = map[string]string{v1alpha1.AnnotationRequestedBy: "jane"}
			// As it is set when a transition begins at rest.
			f.Status.Configured.Previous = new(bool)
			tc.change(f)
			at := start.Add(2 * time.Minute)
			got := look(f, at, slices.Concat(group("kubelet", 4, 0, true, at), group("kubelet", 4, 0, false, at)))
			if diff := cmp.Diff(tc.want, rolloutEvents(got.decision)); diff != "" {
				t.Errorf("unexpected events (-want +got):\n%s", diff)
			}
			again := look(got.feature, at, slices.Concat(group("kubelet", 4, 0, true, at), group("kubelet", 4, 0, false, at)))
			if events := rolloutEvents(again.decision); events != "" {
				t.Errorf("events again: %s", events)
			}
		})
	}
}

// rolloutEvents returns those about canaries.
func rolloutEvents(d Decision) string {
	var events []string
	for _, e := range d.Events {
		if strings.HasPrefix(e.Reason, "Rollout") {
			events = append(events, e.Reason+": "+e.Message)
		}
	}
	return strings.Join(events, "\n")
}

// TestCanarySettingsDecideHalt; without any the defaults hold.
func TestCanarySettingsDecideHalt(t *testing.T) {
	at := start.Add(time.Minute)
	instances := slices.Concat(group("kubelet", 10, 2, true, at), group("kubelet", 10, 0, false, at))
	crashed := []time.Time{at}
	for name, tc := range map[string]struct {
		change func(*CanarySettings)
		want   bool
	}{
		"the defaults":         {func(*CanarySettings) {}, true},
		"none":                 {func(s *CanarySettings) { *s = CanarySettings{} }, true},
		"a greater count":      {func(s *CanarySettings) { s.Count = 3 }, false},
		"a count alone":        {func(s *CanarySettings) { *s = CanarySettings{Count: 3} }, false},
		"patience alone":       {func(s *CanarySettings) { *s = CanarySettings{Patience: 19 * time.Second} }, true},
		"a greater share":      {func(s *CanarySettings) { s.Percent = 20 }, false},
		"more patience":        {func(s *CanarySettings) { s.Patience = 21 * time.Second }, false},
		"one crash is enough":  {func(s *CanarySettings) { s.Count, s.CrashLoop = 3, 1 }, true},
		"in too long a window": {func(s *CanarySettings) { s.Count, s.CrashLoop, s.CrashWindow = 3, 1, 15*time.Second }, false},
		"a greater factor":     {func(s *CanarySettings) { s.Factor = 20 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			settings := DefaultSettings()
			tc.change(&settings.Canary)
			f, view := trial(), View{Servers: controlled([]tracker.Server{server("a", true)}, v1alpha1.ControlDynamic), Instances: slices.Clone(instances), Declared: declared}
			view.Instances[5].Crashes = crashed
			for _, after := range []time.Duration{0, 20 * time.Second} {
				f.Status = Next(f, view, settings, at.Add(after)).Status
			}
			if got := f.Status.Rollout.Halted; got != tc.want {
				t.Errorf("halted %t, want %t", got, tc.want)
			}
		})
	}
}

func TestAudience(t *testing.T) {
	percent := func(p int32) *int32 { return &p }
	moment := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	many := []string{"a", "b", "c", "d", "e", "f"}
	for name, test := range map[string]struct {
		rollout *v1alpha1.FeatureRollout
		want    string
	}{
		"no rollout":             {nil, ""},
		"one without limits":     {&v1alpha1.FeatureRollout{Percent: percent(100), Attempt: 2}, ""},
		"none":                   {&v1alpha1.FeatureRollout{Percent: percent(0)}, "0 percent of the instances"},
		"a part":                 {&v1alpha1.FeatureRollout{Percent: percent(10)}, "10 percent of the instances"},
		"all of some components": {&v1alpha1.FeatureRollout{Percent: percent(100), Components: []string{"kubelet", "kube-proxy"}}, "the components kubelet, kube-proxy"},
		"a part of a component":  {&v1alpha1.FeatureRollout{Percent: percent(10), Components: []string{"kubelet"}}, "10 percent of the instances of the components kubelet"},
		"all at a moment":        {&v1alpha1.FeatureRollout{Percent: percent(0), At: &moment}, "all instances from 2026-11-30T12:00:00Z on"},
		"a moment alone":         {&v1alpha1.FeatureRollout{At: &moment}, ""},
		"a part before it":       {&v1alpha1.FeatureRollout{Percent: percent(10), At: &moment}, "10 percent of the instances, and for all from 2026-11-30T12:00:00Z on"},
		"a component before it":  {&v1alpha1.FeatureRollout{Percent: percent(100), Components: []string{"kubelet"}, At: &moment}, "the components kubelet, and for all from 2026-11-30T12:00:00Z on"},
		"many components":        {&v1alpha1.FeatureRollout{Components: many}, "the components a, b, c, d, e and 1 more"},
	} {
		if got := Audience(test.rollout); got != test.want {
			t.Errorf("%s: Audience is %q, want %q", name, got, test.want)
		}
	}
}
