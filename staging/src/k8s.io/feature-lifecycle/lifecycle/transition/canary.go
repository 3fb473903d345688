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
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

const (
	// renewal is the time that a process may have lived after it was last seen: Leases are
	// renewed every 10 seconds and a little. Without it a process that crashes as it takes
	// a value would seem to have failed before.
	renewal = 12 * time.Second
	// noticing is how long after the beginning of a canary an instance may take a dynamic
	// value and crash before it reports it. A running node notices within 10 minutes that
	// a feature has become dynamic (SyncerConfig.ResyncPeriod of package agent).
	noticing = 11 * time.Minute
)

// watchRollout begins, evaluates and ends the canary in the status.
func (s *step) watchRollout() {
	value, active := s.canary()
	current := s.Status.Rollout
	if !active {
		s.endRollout(current)
		return
	}
	wanted := s.wantedRollout()
	switch {
	case current != nil && current.Value == value && equality.Semantic.DeepEqual(current.Observed, *wanted):
		if !current.Halted && s.evaluated(current) {
			s.evaluateRollout(current)
		}
	default:
		s.tellRollout(current, value, wanted)
		s.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: value, Observed: *wanted.DeepCopy(), StartTime: metav1.NewMicroTime(s.now)}
	}
	s.holdMoment(s.Status.Rollout)
	s.awaitMoment(s.Status.Rollout)
}

// tellRollout emits the event for a canary that begins or was changed.
func (s *step) tellRollout(current *v1alpha1.FeatureRolloutStatus, value bool, wanted *v1alpha1.FeatureRollout) {
	switch limits := Audience(wanted); {
	case wanted.At != nil && limits == "":
		s.tellSwitched(current, value, wanted)
	case current == nil || current.Value != value:
		s.event(false, EventRolloutStarted, "the feature is turned %s for %s%s", OnOff(value), limits, s.requested())
	case current.Halted:
		s.event(false, EventRolloutResumed, "the rollout was changed: the feature is %s again for %s%s", OnOff(value), limits, s.requested())
	default:
		s.event(false, EventRolloutChanged, "the rollout was changed: the feature is %s for %s%s", OnOff(value), limits, s.requested())
	}
}

// endRollout drops the canary, if there is one, and emits an event if a user ended it.
func (s *step) endRollout(current *v1alpha1.FeatureRolloutStatus) {
	s.Status.Rollout = nil
	if current == nil {
		return
	}
	requested := s.Status.Configured != nil && s.Status.Configured.Value == current.Value
	removed := !rollout.Limits(s.feature.Spec.Rollout) && !s.momentRequested()
	switch {
	case requested && removed && current.Halted:
		s.event(false, EventRolloutResumed, "the rollout was removed: the feature is %s for all instances, also for those that it was halted for%s", OnOff(current.Value), s.requested())
	case requested && removed:
		s.event(false, EventRolloutChanged, "the rollout was removed: the feature is %s for all instances%s", OnOff(current.Value), s.requested())
	case current.Halted && !requested:
		s.event(false, EventRolloutCalledOff, "the halted rollout of %s was called off%s", OnOff(current.Value), s.requested())
	}
}

// requested names the user that requested what is in the spec, "" when unknown.
func (s *step) requested() string {
	if user := s.feature.Annotations[v1alpha1.AnnotationRequestedBy]; user != "" {
		return fmt.Sprintf(" (requested by %s)", user)
	}
	return ""
}

// wantedRollout returns the instances that shall take the configured value, nil for
// all. A canary that is frozen neither grows nor shrinks, begins nor ends. Its health
// is still evaluated.
func (s *step) wantedRollout() *v1alpha1.FeatureRollout {
	requested, current := s.feature.Spec.Rollout, s.Status.Rollout
	if !s.frozen() {
		if s.momentRequested() && s.Status.Configured != nil {
			return s.untilMoment(requested)
		}
		return requested
	}
	if current == nil {
		return nil
	}
	return s.observedOrCome(current)
}

// frozen returns true while spec.rollout is not for the configured value: the feature
// is paused, or another value is requested and not answered yet, to which the rollout
// then belongs. A halt outlasts servers that disagree, since it may not have been
// called off.
func (s *step) frozen() bool {
	if configured := s.Status.Configured; configured != nil && s.config.agreed && !s.feature.Spec.Paused {
		return s.postponed() && configured.Value != s.config.value.Value
	}
	return s.feature.Spec.Paused || rollout.Halted(&s.Status)
}

// canary returns the value that a part of the instances takes. There is no canary once
// all users have agreed: the rest of the transition needs no trial.
func (s *step) canary() (value, active bool) {
	status, wanted := &s.Status, s.wantedRollout()
	if !rollout.Limits(wanted) && (wanted == nil || wanted.At == nil) || status.Configured == nil ||
		status.Control != v1alpha1.ControlCentral && status.Control != v1alpha1.ControlDynamic {
		return false, false
	}
	value = status.Configured.Value
	if status.Rollout == nil && wanted.At != nil && s.calledOff() {
		// The moment belongs to the other value, which servers cannot answer yet.
		return value, false
	}
	if status.State == "" || status.State == finalState(value) {
		return value, false
	}
	// One that leads to the other value is about to be replaced.
	if goal, ok := Goal(status.State); ok && goal == value && len(status.Tasks) > 0 && status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
		return value, false
	}
	before := rollout.Previous(status)
	return value, before != nil && *before != value
}

// evaluateRollout halts a canary in which too many instances have failed for long enough.
func (s *step) evaluateRollout(current *v1alpha1.FeatureRolloutStatus) {
	failed, message := s.tooManyFailed(current)
	if message == "" {
		current.UnhealthySince, current.Message = nil, ""
		return
	}
	if current.UnhealthySince == nil || current.UnhealthySince.After(s.now) {
		since := metav1.NewMicroTime(s.now)
		current.UnhealthySince = &since
	}
	current.Message = message
	if end := current.UnhealthySince.Add(s.canarySettings().Patience); s.now.Before(end) {
		s.requeueAt(end)
		return
	}
	current.Halted, current.HaltTime = true, s.timestamp()
	current.UnhealthySince = nil
	current.FailedInstances = failed[:min(len(failed), v1alpha1.MaxFailedInstances)]
	s.event(true, EventRolloutHalted, "%s: %s; all instances go back to %s", s.feature.Name, message, OnOff(!current.Value))
}

// healthCount counts instances of one component.
type healthCount struct {
	total  int
	failed []string
}

func (t *healthCount) add(instance tracker.Instance, failed bool) {
	t.total++
	if failed {
		t.failed = append(t.failed, instance.Component+"/"+instance.Name)
	}
}

// healthCounts are those of the components.
type healthCounts map[string]*healthCount

func (t healthCounts) of(component string) *healthCount {
	if t[component] == nil {
		t[component] = &healthCount{}
	}
	return t[component]
}

// tooManyFailed evaluates each component of the canary separately, so that one
// scheduler counts beside a thousand kubelets. It compares with the instances of the
// same component that do not have the value or, if there are none, with all others. The
// message is empty when not too many have failed.
func (s *step) tooManyFailed(current *v1alpha1.FeatureRolloutStatus) (failed []string, message string) {
	in, out, others, chosen := healthCounts{}, healthCounts{}, &healthCount{}, map[string]int{}
	for instance := range tracker.Each(slices.Concat(s.view.Instances, s.view.Replaced, s.view.Lost)) {
		// An instance with an explicit value is neither on trial nor without it.
		if !counts(instance, current.StartTime.Time) || instance.Explicit && instance.Enabled == current.Value {
			continue
		}
		side := out
		if !instance.Explicit && s.includes(instance) {
			chosen[instance.Component]++
			if s.onTrial(instance) {
				side = in
			}
		}
		side.of(instance.Component).add(instance, s.hasFailed(instance))
	}
	for _, t := range out {
		others.total += t.total
		others.failed = append(others.failed, t.failed...)
	}
	var parts []string
	for _, component := range slices.Sorted(maps.Keys(in)) {
		compared, named := out[component], component
		if compared == nil {
			compared, named = others, "others"
		}
		if !s.canarySettings().exceeds(in[component], compared, chosen[component]) {
			continue
		}
		names := slices.Sorted(slices.Values(in[component].failed))
		failed = append(failed, names...)
		part := fmt.Sprintf("%d of %d %s that have the feature %s failed (%s)",
			len(names), in[component].total, component, OnOff(current.Value), list("", names))
		if compared.total > 0 {
			part += fmt.Sprintf(", of %s without it %d of %d", named, len(compared.failed), compared.total)
		}
		parts = append(parts, part)
	}
	return failed, strings.Join(parts[:min(len(parts), maxNamed)], "; ")
}

// exceeds compares shares without dividing. Chosen is the size of the canary, whether
// its instances have taken the value or not: the first of many that takes it and fails
// is no more than one. Without instances to compare with, the canary is the cause.
func (c CanarySettings) exceeds(in, compared *healthCount, chosen int) bool {
	failed := len(in.failed)
	return failed > 0 && failed >= min(c.Count, chosen) &&
		failed*100 > c.Percent*in.total &&
		failed*max(compared.total, 1) > c.Factor*len(compared.failed)*in.total
}

// includes returns true for an instance that the canary has chosen.
func (s *step) includes(i tracker.Instance) bool {
	return rollout.Includes(&s.Status.Rollout.Observed, s.feature.Name, rollout.Instance{Component: i.Component, Name: i.Name})
}

// onTrial returns true for an instance that the canary has chosen and that has its
// value, or has failed of it, as far as known. Those that wait for their restart do not
// have a central value yet.
func (s *step) onTrial(i tracker.Instance) bool {
	current, dynamic := s.Status.Rollout, s.Status.Control == v1alpha1.ControlDynamic
	switch {
	case i.Enabled == current.Value:
		return true
	case !i.ReplacedAt.IsZero():
		// It takes the value when it starts, before it reports its queries.
		return dynamic || !i.ReplacedAt.Before(current.StartTime.Time)
	default:
		return dynamic && !i.Alive && failedBy(i).Before(current.StartTime.Add(noticing))
	}
}

// counts returns false for instances that say nothing about a canary: processes that
// never reported, and those that had failed already when it began.
func counts(instance tracker.Instance, began time.Time) bool {
	return instance.Reported && (instance.Alive || instance.Failed && !failedBy(instance).Before(began))
}

// failedBy returns the latest time at which an instance that is not alive may have
// failed.
func failedBy(i tracker.Instance) time.Time {
	if end := i.LastSeen.Add(renewal); !i.LastSeen.IsZero() && end.Before(i.Since) {
		return end
	}
	return i.Since
}

// hasFailed returns true for an instance that failed or was lost since a canary began,
// or keeps crashing.
func (s *step) hasFailed(i tracker.Instance) bool {
	return !i.Alive || len(s.recent(i.Crashes)) >= s.canarySettings().CrashLoop
}

// recent returns the crashes since the canary began, within the window.
func (s *step) recent(crashes []time.Time) []time.Time {
	var result []time.Time
	for _, at := range crashes {
		if !at.Before(s.Status.Rollout.StartTime.Time) && s.now.Sub(at) < s.canarySettings().CrashWindow {
			result = append(result, at)
		}
	}
	return result
}

// canaryHolds returns why a transition may not proceed although no reachable instance
// holds it: all instances would then get the value.
func (s *step) canaryHolds(goal bool) string {
	current := s.Status.Rollout
	if current == nil {
		return ""
	}
	if current.UnhealthySince != nil {
		return "waiting for instances of the canary to return: " + current.Message
	}
	if why := s.awaitedSwitch(goal); why != "" {
		return why
	}
	leftOut := func(i tracker.Instance) bool {
		return i.Reported && !i.Potential && i.Enabled != goal && !s.includes(i)
	}
	var away, missing []string
	for i := range tracker.Each(s.view.Instances) {
		if leftOut(i) {
			away = append(away, i.Component+"/"+i.Name)
		}
	}
	for i := range tracker.Each(s.view.Replaced) {
		if leftOut(i) {
			missing = append(missing, i.Component+"/"+i.Name)
			if i.Alive {
				s.requeueAt(i.ReplacedAt.Add(s.settings.ReportPeriod))
			}
		}
	}
	var waits []string
	wait := func(names []string, one, many string) {
		if len(names) > 0 {
			slices.Sort(names)
			waits = append(waits, fmt.Sprintf("waiting for %s: %s", phrase.Count(len(names), "user that the rollout leaves out and that "+one, "users that the rollout leaves out and that "+many), list("", names)))
		}
	}
	wait(away, "cannot be reached", "cannot be reached")
	wait(missing, "has not reported since it restarted", "have not reported since they restarted")
	if len(waits) == 0 {
		return ""
	}
	slices.Sort(waits)
	return strings.Join(append(waits, s.limitedRollout()), "; ")
}

// rolloutHalted returns why the transition is held and the next step.
func (s *step) rolloutHalted() *holdup {
	current, all := s.Status.Rollout, ""
	if at := current.Observed.At; at != nil {
		all = fmt.Sprintf("; one that keeps its moment is for all instances from %s on", moment(at.Time))
	}
	return &holdup{v1alpha1.ReasonRolloutHalted, fmt.Sprintf(
		"the rollout was halted at %s: %s; all instances have the feature %s. Change spec.rollout (percent, components, at, or attempt to change nothing else) to resume it%s, or call it off by asking for %t",
		current.HaltTime.UTC().Format(time.RFC3339), current.Message, OnOff(!current.Value), all, !current.Value)}
}

// limitedRollout returns the next step that lets a transition proceed whose value is
// limited to a part of the instances, "" when it is for all.
func (s *step) limitedRollout() string {
	if s.Status.Control == v1alpha1.ControlLocal {
		return ""
	}
	if goal, ok := Goal(s.Status.State); ok {
		if next := s.awaitedSwitch(goal); next != "" {
			return next
		}
	}
	if r := s.Status.Rollout; r != nil && r.MomentHeld {
		return s.heldMoment(r)
	}
	limits := Audience(s.feature.Spec.Rollout)
	if limits == "" {
		return ""
	}
	return fmt.Sprintf("spec.rollout limits the value to %s; widen or remove it to continue", limits)
}

// Audience describes the instances to which a rollout gives the requested value, as
// used by events, conditions and tools: "10 percent of the instances of the components
// kubelet", or "all instances from 2026-11-30T12:00:00Z on". It is "" when the value is for
// all (rollout.Limits), as for nil.
func Audience(limited *v1alpha1.FeatureRollout) string {
	if !rollout.Limits(limited) {
		return ""
	}
	var audience []string
	if limited.Percent != nil && *limited.Percent < 100 {
		audience = append(audience, fmt.Sprintf("%d percent of the instances", *limited.Percent))
	}
	if len(limited.Components) > 0 {
		audience = append(audience, "the components "+list("", limited.Components))
	}
	text := strings.Join(audience, " of ")
	switch at := limited.At; {
	case at == nil:
		return text
	case limited.Percent != nil && *limited.Percent == 0:
		return fmt.Sprintf("all instances from %s on", moment(at.Time))
	default:
		return fmt.Sprintf("%s, and for all from %s on", text, moment(at.Time))
	}
}
