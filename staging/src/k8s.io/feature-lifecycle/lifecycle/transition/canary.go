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

package transition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/uses"
	"k8s.io/feature-lifecycle/values/rollout"
)

// CrashLoop is after how many crashes in a row an instance counts as gone.
const CrashLoop = 3

// A canary is a value that goes to a part of the instances only (spec.rollout).
// It is halted by itself when too many of these are gone, for any of the
// components: at least haltCount of them, or all if they are fewer, and more than
// haltPercent percent, and more than haltFactor times the share that is gone of
// the instances without the value; and that stays so for haltPatience (KEP-3920,
// "Canaries"). An instance is gone when it died or vanished since the canary
// began, or has crashed CrashLoop times within crashWindow.
//
// Halted, nobody takes the value, and who had taken it goes back (package
// rollout); the transition holds. People resume it by changing spec.rollout, or
// call it off by asking for the other value.
const (
	haltCount   = 2
	haltPercent = 10
	haltFactor  = 2
	// haltPatience is twice the period at which processes renew their Leases:
	// after an outage of everything they come back one by one.
	haltPatience = 20 * time.Second
	// crashWindow is three times the longest pause that kubelet makes before it
	// starts a container again.
	crashWindow = 15 * time.Minute
)

// watchRollout begins, judges and ends the canary that the status tells of.
func (s *step) watchRollout() {
	value, active := s.canary()
	if !active {
		s.Status.Rollout = nil
		return
	}
	wanted := s.wantedRollout()
	current := s.Status.Rollout
	if current == nil || current.Value != value || !equality.Semantic.DeepEqual(current.Observed, *wanted) {
		if current != nil && current.Halted && current.Value == value {
			s.event(false, EventRolloutResumed, "the rollout was changed: the feature is %s again for %s", onOff(value), limitsOf(wanted))
		}
		s.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: value, Observed: *wanted.DeepCopy(), StartTime: metav1.NewMicroTime(s.now)}
		return
	}
	if !current.Halted {
		s.judgeRollout(current)
	}
}

// wantedRollout is who shall take the requested value. A canary neither grows nor
// shrinks while the feature is paused; it is judged all the same.
func (s *step) wantedRollout() *v1alpha1.FeatureRollout {
	if current := s.Status.Rollout; s.feature.Spec.Paused && current != nil {
		return &current.Observed
	}
	return s.feature.Spec.Rollout
}

// canary says which value a part of the instances takes. There is no canary once
// all users have agreed: what is left of the transition is no trial.
func (s *step) canary() (value, active bool) {
	status := &s.Status
	if !rollout.Limits(s.wantedRollout()) || status.Configured == nil ||
		status.Control != v1alpha1.ControlCentral && status.Control != v1alpha1.ControlDynamic {
		return false, false
	}
	value = status.Configured.Value
	if status.State == "" || status.State == finalState(value) {
		return value, false
	}
	if !OfVersion(status.State) && len(status.Tasks) > 0 && status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
		return value, false
	}
	before := rollout.Previous(status)
	return value, before != nil && *before != value
}

// judgeRollout halts a canary that has too many instances gone for long enough.
func (s *step) judgeRollout(current *v1alpha1.FeatureRolloutStatus) {
	gone, message := s.tooManyGone(current)
	if message == "" {
		current.SuspectTime, current.Message = nil, ""
		return
	}
	if current.SuspectTime == nil || current.SuspectTime.After(s.now) {
		since := metav1.NewMicroTime(s.now)
		current.SuspectTime = &since
	}
	current.Message = message
	if end := current.SuspectTime.Add(haltPatience); s.now.Before(end) {
		s.lookAgainAt(end)
		return
	}
	current.Halted, current.HaltTime = true, s.timestamp()
	current.SuspectTime = nil
	current.Gone = gone[:min(len(gone), v1alpha1.MaxGone)]
	s.event(true, EventRolloutHalted, "%s: %s; all instances go back to %s", s.feature.Name, message, onOff(!current.Value))
}

// tally counts instances of one component.
type tally struct {
	total int
	gone  []string
}

func (t *tally) add(instance uses.Instance, gone bool) {
	t.total++
	if gone {
		t.gone = append(t.gone, instance.Component+"/"+instance.Name)
	}
}

// tooManyGone judges each component of the canary by itself, so that one
// scheduler counts beside a thousand kubelets. It compares with the instances of
// the same component that are left out or, if there are none, with all others.
// The message is empty when not too many are gone.
func (s *step) tooManyGone(current *v1alpha1.FeatureRolloutStatus) (gone []string, message string) {
	in, out, others := map[string]*tally{}, map[string]*tally{}, &tally{}
	for _, instance := range slices.Concat(s.view.Instances, s.view.Vanished) {
		since := current.StartTime.Time
		// Who has the value by itself is neither on trial nor without it.
		if !counts(instance, since) || instance.Explicit && instance.Enabled == current.Value {
			continue
		}
		side := out
		if !instance.Explicit && rollout.Includes(&current.Observed, s.feature.Name, rollout.Instance{Component: instance.Component, Name: instance.Name}) {
			side = in
		}
		if side[instance.Component] == nil {
			side[instance.Component] = &tally{}
		}
		side[instance.Component].add(instance, isGone(instance, since, s.now))
	}
	for _, t := range out {
		others.total += t.total
		others.gone = append(others.gone, t.gone...)
	}
	var parts []string
	for _, component := range slices.Sorted(maps.Keys(in)) {
		compared, named := out[component], component
		if compared == nil {
			compared, named = others, "others"
		}
		if !exceeds(in[component], compared) {
			continue
		}
		names := slices.Sorted(slices.Values(in[component].gone))
		gone = append(gone, names...)
		part := fmt.Sprintf("%d of %d %s that have the feature %s died or vanished (%s)",
			len(names), in[component].total, component, onOff(current.Value), list("", names))
		if compared.total > 0 {
			part += fmt.Sprintf(", of %s without it %d of %d", named, len(compared.gone), compared.total)
		}
		parts = append(parts, part)
	}
	return gone, strings.Join(parts[:min(len(parts), maxNamed)], "; ")
}

// exceeds compares shares without dividing. With nobody to compare with, the
// canary is to blame.
func exceeds(in, compared *tally) bool {
	gone := len(in.gone)
	return gone > 0 && gone >= min(haltCount, in.total) &&
		gone*100 > haltPercent*in.total &&
		gone*max(compared.total, 1) > haltFactor*len(compared.gone)*in.total
}

// counts is false for what says nothing about a canary: processes that never
// reported, and those that were gone already when it began.
func counts(instance uses.Instance, began time.Time) bool {
	return instance.Reported && (instance.Alive || !instance.Since.Before(began) && instance.Lost)
}

// isGone is true for an instance that died or vanished since a canary began, or
// keeps crashing.
func isGone(instance uses.Instance, began, now time.Time) bool {
	if !instance.Alive {
		return true
	}
	return len(recent(instance.Crashes, began, now)) >= CrashLoop
}

// recent are the crashes since a canary began, within the window.
func recent(crashes []time.Time, began, now time.Time) []time.Time {
	var result []time.Time
	for _, at := range crashes {
		if !at.Before(began) && now.Sub(at) < crashWindow {
			result = append(result, at)
		}
	}
	return result
}

// canaryHolds says why a transition may not go on although nobody who can be
// reached holds it: the value would then go to all.
func (s *step) canaryHolds(goal bool) string {
	current := s.Status.Rollout
	if current == nil {
		return ""
	}
	if current.SuspectTime != nil {
		return "waiting for instances of the canary to come back: " + current.Message
	}
	var left []string
	for _, i := range s.view.Instances {
		if i.Reported && !i.Potential && i.Enabled != goal &&
			!rollout.Includes(&current.Observed, s.feature.Name, rollout.Instance{Component: i.Component, Name: i.Name}) {
			left = append(left, i.Component+"/"+i.Name)
		}
	}
	if len(left) == 0 {
		return ""
	}
	slices.Sort(left)
	return fmt.Sprintf("waiting for %d users that the rollout leaves out and that cannot be reached: %s; %s", len(left), list("", left), s.limitedRollout())
}

// rolloutHalted says why the transition holds and what to do.
func (s *step) rolloutHalted() *holdup {
	current := s.Status.Rollout
	return &holdup{v1alpha1.ReasonRolloutHalted, fmt.Sprintf(
		"the rollout was halted at %s: %s; all instances have the feature %s. Change spec.rollout (percent, components, or attempt to change nothing else) to resume it, or call it off by asking for %t",
		current.HaltTime.UTC().Format(time.RFC3339), current.Message, onOff(!current.Value), !current.Value)}
}

// limitedRollout says what people have to do for a transition to go on whose
// value goes to a part of the instances only, "" when it goes to all.
func (s *step) limitedRollout() string {
	if s.Status.Control == v1alpha1.ControlLocal {
		return ""
	}
	limits := limitsOf(s.feature.Spec.Rollout)
	if limits == "" {
		return ""
	}
	return fmt.Sprintf("spec.rollout limits the value to %s; widen or remove it to go on", limits)
}

// limitsOf says in words whom a rollout is for, "" when it is for all.
func limitsOf(limited *v1alpha1.FeatureRollout) string {
	if !rollout.Limits(limited) {
		return ""
	}
	var limits []string
	if limited.Percent != nil && *limited.Percent < 100 {
		limits = append(limits, fmt.Sprintf("%d percent of the instances", *limited.Percent))
	}
	if len(limited.Components) > 0 {
		limits = append(limits, "the components "+list("", limited.Components))
	}
	return strings.Join(limits, " and ")
}
