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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/stagger"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

// work moves the first task of the transition under way.
func (s *step) work() {
	if len(s.Status.Tasks) == 0 {
		s.finish()
		return
	}
	if s.wait = s.heldUp(); s.wait != nil {
		s.Hold = true
		s.keepRefusal()
		// Contradictions are not watched meanwhile. A task that was held is attempted at once
		// when it continues: pausing and resuming requests that.
		s.Status.Tasks[0].LastAttemptTime = nil
		if r := s.Status.Rollout; r != nil && r.Observed.At != nil && s.Status.Tasks[0].Name == v1alpha1.TaskWaitForUses {
			// It would still say that the moment counts.
			s.Status.Tasks[0].Message = ""
		}
		return
	}
	task := &s.Status.Tasks[0]
	switch {
	case task.Name == v1alpha1.TaskWaitForUses && OfVersion(s.Status.State):
		s.waitForServers(task)
	case task.Name == v1alpha1.TaskWaitForUses:
		s.waitForUses(task)
	case !s.view.Declared.knows(s.Status.State, task.Name):
		s.Hold = true
		s.wait = &holdup{v1alpha1.ReasonUnknownTask, fmt.Sprintf("this server does not know the task %s and leaves it alone; a server that knows it continues", task.Name)}
	default:
		s.attempt(task)
	}
}

// heldUp returns what holds a transition that began. A server that still has the
// feature on may write again what a task has just cleared, so disagreement holds tasks
// too, not only the start.
func (s *step) heldUp() *holdup {
	switch {
	case s.feature.Spec.Paused:
		return &holdup{v1alpha1.ReasonPaused, "spec.paused holds the transition; set it to false to let it continue"}
	case !OfVersion(s.Status.State) && rollout.Halted(&s.Status):
		return s.rolloutHalted()
	case !s.config.agreed && (!OfVersion(s.Status.State) || !removed(s.config, s.view)):
		return &holdup{v1alpha1.ReasonWaitingForAgreement, orElse(s.config.message, reportAwaited)}
	case s.mixed, OfVersion(s.Status.State) && (s.Status.Transition == nil || s.Status.Transition.ToVersion != s.version):
		return s.mixedVersions()
	default:
		return nil
	}
}

// waitForUses ends once no live user reports the other value and the settle period has
// passed without a contradiction (KEP-3920, "Waiting for uses").
func (s *step) waitForUses(task *v1alpha1.FeatureTask) {
	goal, _ := Goal(s.Status.State)
	var start time.Time
	if s.Status.Transition != nil {
		start = s.Status.Transition.StartTime.Time
	}
	wait := tracker.Waiting(s.view.Instances, goal, start, s.settings.Settings, s.now)
	holding := wait.Holding()
	task.Total = int64(holding)
	for _, i := range s.view.Instances {
		if !i.Potential && i.Reported && i.Enabled == goal && i.SwitchTime == "" {
			task.Total += int64(i.Count())
		}
	}
	task.Done = task.Total - int64(holding)
	if !wait.Over() {
		task.LastAttemptTime = nil
		task.Message = waitMessage(wait, goal)
		if next := s.limitedRollout(); next != "" && len(wait.Opposing) > 0 {
			task.Message += "; " + next
		}
		if !wait.Until.IsZero() {
			s.requeueAt(wait.Until)
		}
		return
	}
	if why := s.canaryHolds(goal); why != "" {
		task.LastAttemptTime = nil
		task.Message = why
		return
	}
	var notBefore time.Time
	if s.Status.Control == v1alpha1.ControlDynamic {
		// Users that have just got the other value, in a transition that this one replaced,
		// report it when it is their turn.
		notBefore = start.Add(stagger.MaxDelay(int(task.Total)) + s.settings.Settle)
	}
	s.settle(task, notBefore, "all users have the feature "+OnOff(goal))
}

func waitMessage(wait tracker.Wait, goal bool) string {
	message := ""
	if len(wait.Opposing) > 0 {
		message = fmt.Sprintf("waiting for %s the feature %s: %s", phrase.Count(len(wait.Opposing), "user that has", "users that have"), OnOff(!goal), list("", wait.Opposing))
	}
	if n := len(wait.Switching); n > 0 {
		if message != "" {
			message += "; "
		}
		message += fmt.Sprintf("waiting for %s at the moment that was called off: %s", phrase.Count(n, "user that still switches", "users that still switch"), list("", wait.Switching))
	}
	if n := len(wait.Away); n > 0 {
		message += fmt.Sprintf("; of these %s no sign of life, and the last of them is waited for until %s: %s", phrase.Count(n, "shows", "show"), moment(wait.AwayUntil), list("", wait.Away))
	}
	if len(wait.Missing) > 0 {
		if message != "" {
			message += "; "
		}
		message += fmt.Sprintf("waiting for %s not: %s", phrase.Count(len(wait.Missing), "that should report and has", "that should report and have"), list("", wait.Missing))
		if !wait.MissingUntil.IsZero() {
			message += fmt.Sprintf("; the last of them is waited for until %s", moment(wait.MissingUntil))
		}
	}
	return message
}

// moment formats a time as messages show it, and as it is stored.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// attempt starts an attempt at a declared task when one is due, and records
// what became of it.
func (s *step) attempt(task *v1alpha1.FeatureTask) {
	current := s.view.Attempt
	if current != nil && (s.Status.Transition == nil || current.TransitionID != s.Status.Transition.ID || current.Task != task.Name) {
		current = nil
	}
	if current != nil {
		quiet := s.quiet(current)
		if !quiet {
			task.Done, task.Total = current.Done, current.Total
		}
		task.Checkpoint = current.Checkpoint
		switch current.Outcome {
		case "":
			if !quiet {
				task.Message = current.Message
			}
			return
		case Finished:
			s.complete()
			return
		default:
			if task.Message != current.Message {
				task.Message = current.Message
				s.event(true, EventTaskBlocked, "%s: %s", task.Name, current.Message)
			}
		}
	}
	if task.LastAttemptTime != nil && !task.LastAttemptTime.After(s.now) {
		if due := s.due(task, current); s.now.Before(due) {
			s.requeueAt(due)
			return
		}
	}
	begun := metav1.NewMicroTime(s.now)
	task.LastAttemptTime = &begun
	task.Attempts++
	s.Start = task.Name
}

// due returns when the next attempt at a task begins. The pause counts from the end of
// the previous one and is at least as long as that took, within the limits. A task that
// takes long to fail does not run without a break.
func (s *step) due(task *v1alpha1.FeatureTask, last *Attempt) time.Time {
	begun := task.LastAttemptTime.Time
	if last == nil {
		return begun.Add(s.settings.backoff(task.Attempts, ""))
	}
	pause, most := s.settings.backoff(task.Attempts, last.Outcome), s.settings.longest(last.Outcome)
	if last.Retry {
		pause, most = s.settings.MinBackoff, s.settings.MaxBackoff
	}
	end := last.Ended
	if end.Before(begun) {
		end = begun
	}
	return end.Add(max(pause, min(end.Sub(begun), most)))
}

// quietPeriod is the time that an attempt that follows an unfinished one is not shown. Most
// end the same way at once, and the stored status would flap. One that takes longer
// makes progress.
const quietPeriod = 15 * time.Second

// quiet returns true while an attempt should not be shown. It requests a reconciliation
// when that is over.
func (s *step) quiet(a *Attempt) bool {
	if a.Outcome != "" || a.Previous == "" || s.Status.Tasks[0].LastAttemptTime == nil {
		return false
	}
	end := s.Status.Tasks[0].LastAttemptTime.Add(quietPeriod)
	if !s.now.Before(end) {
		return false
	}
	s.requeueAt(end)
	return true
}

// blocked returns true from when an attempt at the first task did not finish until
// another makes progress.
func (s *step) blocked() bool {
	a := s.view.Attempt
	if a == nil && len(s.Status.Tasks) > 0 && s.Status.Tasks[0].Attempts > 0 {
		return SaysBlocked(s.feature)
	}
	if a == nil || len(s.Status.Tasks) == 0 || a.Task != s.Status.Tasks[0].Name ||
		s.Status.Transition == nil || a.TransitionID != s.Status.Transition.ID {
		return false
	}
	outcome := a.Outcome
	if s.quiet(a) {
		outcome = a.Previous
	}
	return outcome == Blocked || outcome == Failed
}

// behindHoldup separates what holds a transition from what blocks its first task.
const behindHoldup = "; the first task is blocked: "

// longestRefusal is to how many characters what blocks a task is repeated.
const longestRefusal = 2000

// keepRefusal reports, beside what holds a transition, that its first task is still
// blocked: a pause does not remove the need for an external action.
func (s *step) keepRefusal() {
	before := s.feature.Status.Tasks
	if len(before) == 0 || before[0].Name != s.Status.Tasks[0].Name {
		return
	}
	if what := Blocking(&s.feature.Status); what != "" {
		s.wait.message += behindHoldup + Shorten(what, longestRefusal)
	}
}

// Blocking returns what blocks the first task of a transition, "" if nothing does. It
// is returned also while something else holds the transition, such as a pause; then it
// is what was found last.
func Blocking(status *v1alpha1.FeatureStatus) string {
	c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	if c == nil || len(status.Tasks) == 0 {
		return ""
	}
	if c.Reason == v1alpha1.ReasonBlocked {
		return c.Message
	}
	_, what, _ := strings.Cut(c.Message, behindHoldup)
	return what
}

// SaysBlocked returns true when it is stored that a feature is blocked. A server that
// has just taken over keeps what its predecessor stored, until it knows better.
func SaysBlocked(feature *v1alpha1.Feature) bool {
	c := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionProgressing)
	return c != nil && c.Reason == v1alpha1.ReasonBlocked
}
