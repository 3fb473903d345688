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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

// This file has the moment at which all instances take a value together (spec.rollout.at).
// It counts once it is in status.rollout, which only the leader of the feature writes, by
// its own clock: that it is still to come, that it was taken back, and that it has come.
// Everything else follows from what is stored (package rollout), so that servers whose
// clocks differ say the same, and a moment that has come stays so for a leader whose clock
// is behind.

// SwitchMargin is how long after the moment the leader takes it to have come. What it then
// stores reaches processes whose clocks are further behind, and those that do not know
// moments.
const SwitchMargin = time.Second

// momentRequested returns true if the spec has a moment.
func (s *step) momentRequested() bool {
	requested := s.feature.Spec.Rollout
	return requested != nil && requested.At != nil
}

// untilMoment returns for whom a value with a requested moment is now: until the moment
// for those that have it, none without a canary; then for all.
func (s *step) untilMoment(requested *v1alpha1.FeatureRollout) *v1alpha1.FeatureRollout {
	current, wanted := s.Status.Rollout, &v1alpha1.FeatureRollout{At: requested.At, Attempt: requested.Attempt}
	come := !s.now.Before(requested.At.Add(SwitchMargin))
	if current == nil || current.Value != s.Status.Configured.Value {
		if !come {
			wanted.Percent = ptr.To[int32](0)
		}
		return wanted
	}
	observed := &current.Observed
	same := observed.At.Equal(requested.At) && observed.Attempt == requested.Attempt
	switch {
	case same && (current.Halted || s.calledOff()):
		// It was not changed, and its moment resumes nothing.
		return s.observedOrCome(current)
	case !same && s.followed(current):
		// Processes have switched at the moment before this one.
	case !come || current.UnhealthySince != nil:
		wanted.Percent, wanted.Components = observed.Percent, observed.Components
	}
	return wanted
}

// observedOrCome returns the rollout as it is stored, and for all where its moment has come:
// processes have switched, also if that is not stored yet.
func (s *step) observedOrCome(current *v1alpha1.FeatureRolloutStatus) *v1alpha1.FeatureRollout {
	if !s.followed(current) {
		return &current.Observed
	}
	return &v1alpha1.FeatureRollout{At: current.Observed.At, Attempt: current.Observed.Attempt}
}

// followed returns true if the moment of a rollout has come, and processes were told it.
func (s *step) followed(current *v1alpha1.FeatureRolloutStatus) bool {
	at := told(current)
	return at != nil && !s.now.Before(at.Time)
}

// told returns the moment of a rollout that processes wait for, nil if there is none: it
// counts, and is not stored as come.
func told(current *v1alpha1.FeatureRolloutStatus) *metav1.Time {
	if current == nil || current.Halted || current.MomentHeld || !rollout.Limits(&current.Observed) {
		return nil
	}
	return current.Observed.At
}

// holdMoment decides whether the moment counts. It does not while the feature is paused or
// another value is requested that no process may take yet. A canary that is suspected holds
// it shortly before it only: until then it is halted or no longer suspected.
func (s *step) holdMoment(current *v1alpha1.FeatureRolloutStatus) {
	if current.Halted {
		current.MomentHeld = false
		return
	}
	held := false
	if at := current.Observed.At; at != nil && rollout.Limits(&current.Observed) {
		suspected := current.UnhealthySince != nil && (current.MomentHeld || !s.now.Before(at.Add(-s.holdBefore())))
		held = suspected || s.frozen() || s.calledOff()
	}
	if held == current.MomentHeld {
		return
	}
	current.MomentHeld = held
	at := moment(current.Observed.At.Time)
	if held {
		s.event(false, EventRolloutChanged, "%s", s.heldMoment(current))
	} else {
		s.event(false, EventRolloutChanged, "the moment of the rollout, %s, counts again: the feature is %s for %s", at, OnOff(current.Value), Audience(&current.Observed))
	}
}

// heldMoment says why a moment does not count.
func (s *step) heldMoment(current *v1alpha1.FeatureRolloutStatus) string {
	why := "while the canary is suspected"
	switch {
	case s.feature.Spec.Paused:
		why = "while spec.paused holds the feature"
	case s.frozen() || s.calledOff():
		why = "while the other value is requested"
	}
	return fmt.Sprintf("the moment of the rollout, %s, does not count %s", moment(current.Observed.At.Time), why)
}

// holdBefore is how long before its moment a canary that is suspected holds it: the time
// after which it is halted, and some to reach all processes.
func (s *step) holdBefore() time.Duration { return s.canarySettings().Patience + 10*time.Second }

// calledOff returns true if the spec no longer requests the value of the rollout, though
// servers do not agree on another one yet.
func (s *step) calledOff() bool { return rollout.Unobserved(&s.feature.Spec, &s.Status) }

// awaitMoment requests a reconciliation at the moment of a rollout. The clock may be set
// meanwhile, so it is read again after half of a long time.
func (s *step) awaitMoment(current *v1alpha1.FeatureRolloutStatus) {
	at := told(current)
	if at == nil {
		return
	}
	due := at.Add(SwitchMargin)
	if current.UnhealthySince != nil {
		due = at.Add(-s.holdBefore())
	}
	left := due.Sub(s.now)
	if left > time.Minute {
		left = max(left/2, time.Minute)
	}
	if left > 0 {
		s.requeueAt(s.now.Add(left))
	}
}

// tellSwitched tells that the value is for all, since a moment has come.
func (s *step) tellSwitched(current *v1alpha1.FeatureRolloutStatus, value bool, wanted *v1alpha1.FeatureRollout) {
	at := moment(wanted.At.Time)
	had := current != nil && current.Value == value
	switch {
	case had && !rollout.Limits(&current.Observed):
		// All have it, and another moment changes nothing.
	case had && current.Halted:
		s.event(false, EventRolloutResumed, "the rollout was changed, and its moment, %s, has passed: the feature is %s for all instances, also for those that it was halted for%s", at, OnOff(value), s.requested())
	case had && s.followed(current):
		s.event(false, EventRolloutSwitched, "the moment of the rollout, %s, has come: the feature is %s for all instances%s", moment(current.Observed.At.Time), OnOff(value), s.requested())
	default:
		s.event(false, EventRolloutSwitched, "the moment of the rollout, %s, has passed: the feature is %s for all instances%s", at, OnOff(value), s.requested())
	}
}

// evaluated returns true while the health of a canary may halt it: not once the value is
// for all, which it is for processes from a moment on that counts, unless the canary was
// suspected before.
func (s *step) evaluated(current *v1alpha1.FeatureRolloutStatus) bool {
	if !rollout.Limits(&current.Observed) {
		return false
	}
	return current.Observed.At == nil || s.now.Before(current.Observed.At.Time) || current.MomentHeld || current.UnhealthySince != nil
}

// awaitedSwitch describes the moment that a transition waits for, and who has not confirmed
// it yet, "" without a moment. Processes whose value is static confirm nothing: they
// restart.
func (s *step) awaitedSwitch(goal bool) string {
	awaited := told(s.Status.Rollout)
	if awaited == nil {
		return ""
	}
	at := moment(awaited.Time)
	message := fmt.Sprintf("all instances switch at %s", at)
	if s.Status.Control != v1alpha1.ControlDynamic {
		return message
	}
	if names := tracker.Unconfirmed(s.view.Instances, goal, at); len(names) > 0 {
		message += fmt.Sprintf(", and %s confirmed that: %s", phrase.Count(len(names), "user has not", "users have not"), list("", names))
	}
	return message
}
