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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

// Next decides what a server does about a feature. It changes none of its
// arguments.
func Next(feature *v1alpha1.Feature, view View, settings Settings, now time.Time) Decision {
	version, mixed := clusterVersion(view.Servers)
	step := &step{
		feature:  feature,
		view:     view,
		settings: settings,
		now:      now,
		config:   configurationOf(feature, view),
		version:  version,
		mixed:    mixed,
	}
	step.Status = *feature.Status.DeepCopy()
	step.describeGate()
	step.recordVersions()
	step.move = step.dueMove()
	step.configure()
	step.watchRollout()
	step.advance()
	step.describeUses()
	step.describeConditions()
	step.Delete = step.config.gate == nil && len(unreported(view.Servers)) == 0 &&
		minorsBetween(step.Status.Version, version) > settings.KeepUnknownMinors
	return step.Decision
}

// step is one call of Next: its arguments, what they mean, and the decision as
// it grows.
type step struct {
	Decision
	feature  *v1alpha1.Feature
	view     View
	settings Settings
	now      time.Time
	config   configuration
	version  string
	mixed    bool
	// move is the change of the stored version that is due, nil for none.
	move *move
	// began is true once this step has begun a transition.
	began bool
	// wait is the content of the condition Progressing for a transition that is held, nil
	// when it proceeds or there is none.
	wait *holdup
}

// holdup is the reason why a transition is held.
type holdup struct {
	reason, message string
}

// describeGate copies what the deciding servers report of the gate.
func (s *step) describeGate() {
	if gate := s.config.gate; gate != nil {
		s.Status.Stage = gate.Stage
		value := gate.Default
		s.Status.Default = &value
		s.Status.LockedToDefault = gate.LockedToDefault
	}
	if s.config.agreed || s.Status.Control == "" {
		s.Status.Control = s.config.control
	}
}

// configure answers what is requested. Other processes take a value that is
// central or dynamic from the answer, at once if it is dynamic: so it is given
// when its transition may begin, and not before.
func (s *step) configure() {
	if !s.config.agreed || s.postponed() {
		return
	}
	value := s.config.value
	value.Previous = s.previous()
	s.Status.Configured = &value
}

// postponed returns true while no instance may take a requested value yet. The feature
// is paused, servers have different versions (S4), or stored objects are brought to
// another version first.
func (s *step) postponed() bool {
	if s.Status.Control == v1alpha1.ControlLocal || s.Status.State == "" {
		return false
	}
	return s.feature.Spec.Paused || s.mixed || OfVersion(s.Status.State) ||
		s.move != nil && len(s.move.tasks) > 0 && !s.move.down() && s.atRest()
}

// atRest returns true when no transition is under way.
func (s *step) atRest() bool {
	_, ok := Goal(s.Status.State)
	return ok && s.Status.Transition == nil && len(s.Status.Tasks) == 0
}

// previous returns the value of the last state of rest, for instances that a rollout
// leaves out. It is nil where the state shows it or no instance takes values from here.
func (s *step) previous() *bool {
	switch value, ok := Goal(s.Status.State); {
	case s.Status.Control == v1alpha1.ControlLocal || !ok:
		return nil
	case s.Status.State != finalState(value):
		// Under way: it stays, also when the desired value changes again.
		if s.Status.Configured == nil {
			return nil
		}
		return s.Status.Configured.Previous
	case value == s.config.value.Value:
		return nil
	default:
		return &value
	}
}

// advance moves the state machine by at most one step.
func (s *step) advance() {
	if s.Status.State == "" {
		s.adopt()
		return
	}
	s.follow()
	switch {
	case s.shouldMove():
		s.beginMove()
	case s.shouldBegin():
		s.begin(s.config.value.Value)
	case s.Status.Transition != nil || len(s.Status.Tasks) > 0:
		s.work()
	}
}

// adopt takes the configured value as the state of a feature that has none: a
// new one, or a cluster that has just got this system. No task runs (KEP-3920,
// "Fresh or adopted clusters").
func (s *step) adopt() {
	if !s.config.agreed {
		return
	}
	s.Status.State = finalState(s.config.value.Value)
	s.Status.StateSince = s.timestamp()
	s.Status.Version, s.Status.StoredVersions = s.version, nil
	// Startup-blocking leftovers cannot exist: servers with the feature on are running.
	tasks := slices.DeleteFunc(slices.Clone(s.view.Declared.OnEnable), func(name string) bool {
		return slices.Contains(s.view.Declared.StartupBlocking, name)
	})
	if s.config.value.Value && len(tasks) > 0 {
		s.event(true, EventTasksNotRun, "the feature was On when it was seen first, so no transition turned it on, and %s did not run; if what they do is missing, do it by hand (turning the feature off and on again would run them, and first remove what the feature has stored; a plan says what)",
			strings.Join(tasks, ", "))
	}
}

// shouldBegin returns true when the configured value leads elsewhere than the state and
// nothing forbids a transition to start (S4).
func (s *step) shouldBegin() bool {
	goal, ok := Goal(s.Status.State)
	if !ok || !s.config.agreed || goal == s.config.value.Value {
		return false
	}
	if s.feature.Spec.Paused {
		s.wait = &holdup{v1alpha1.ReasonPaused, "spec.paused holds the feature; set it to false to let the transition start"}
		return false
	}
	if s.mixed {
		s.wait = s.mixedVersions()
		return false
	}
	return true
}

func (s *step) mixedVersions() *holdup {
	return &holdup{v1alpha1.ReasonMixedVersions, "live servers have different effective versions; the transition continues when they are the same"}
}

// begin starts a transition to the goal, replacing one that is under way. The
// transitional state and the complete task list are one update, so that a crash
// leaves either none or all of it.
func (s *step) begin(goal bool) {
	Begin(&s.Status, goal, v1alpha1.TransitionConfiguration, s.view.Declared, s.view.NewTransitionID, s.now)
	s.Hold, s.began = true, true
	s.event(false, EventTransitionStarted, "%s: configured value is %s by %s; %s", s.Status.State, OnOff(goal), s.source(), phrase.Count(len(s.Status.Tasks), "task", "tasks"))
}

// source returns the source of the configured value, for users: who requested it, or
// ended the pause that held it. Without a request the value is that of the servers.
// Whether it is new since a request was withdrawn or since their flags changed is
// unknown, so the name is that of the last writer of the spec. The servers' own value
// of a feature that cannot be requested has no name in it.
func (s *step) source() string {
	source := string(s.config.value.Source)
	user := s.feature.Annotations[v1alpha1.AnnotationRequestedBy]
	progressing := meta.FindStatusCondition(s.feature.Status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case user == "":
		return source
	case progressing != nil && progressing.Reason == v1alpha1.ReasonPaused:
		return fmt.Sprintf("%s (resumed by %s)", source, user)
	case s.config.value.Source == v1alpha1.SourceAPI:
		return source + s.requested()
	case s.config.control == v1alpha1.ControlDynamic:
		return fmt.Sprintf("%s (nothing is requested; spec last changed by %s)", source, user)
	}
	return source
}

// Begin writes the start of a transition into a status: transitional state,
// complete task list, no uses.
func Begin(status *v1alpha1.FeatureStatus, goal bool, reason v1alpha1.FeatureTransitionReason, declared Declared, id string, now time.Time) {
	status.State = Turning(goal)
	since := metav1.NewTime(now)
	status.StateSince = &since
	status.Transition = &v1alpha1.FeatureTransition{ID: id, StartTime: metav1.NewMicroTime(now), Reason: reason}
	status.Uses = nil
	status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}
	for _, name := range declared.tasks(goal) {
		status.Tasks = append(status.Tasks, v1alpha1.FeatureTask{Name: name})
	}
}

// complete removes the first task. With the last one it writes the final state
// in the same update (S1, S3).
func (s *step) complete() {
	name := s.Status.Tasks[0].Name
	s.Status.Tasks = s.Status.Tasks[1:]
	if len(s.Status.Tasks) > 0 {
		s.event(false, EventTaskCompleted, "%s done, %s left", name, phrase.Count(len(s.Status.Tasks), "task", "tasks"))
		return
	}
	s.finish()
}

// finish writes the state that a transition leads to.
func (s *step) finish() {
	goal, ok := Value(&s.Status)
	if !ok {
		goal = s.Status.Configured != nil && s.Status.Configured.Value
	}
	took := s.took()
	message := ""
	if t := s.Status.Transition; t != nil && t.ToVersion != "" {
		s.Status.Version, s.Status.StoredVersions = t.ToVersion, nil
		message = " in the form of " + t.ToVersion
	}
	s.Status.State = finalState(goal)
	s.Status.StateSince = s.timestamp()
	s.Status.Transition = nil
	s.Status.Tasks = nil
	if s.Status.Configured != nil {
		s.Status.Configured.Previous = nil
	}
	s.event(false, EventTransitionCompleted, "%s%s after %s", s.Status.State, message, took)
}

func (s *step) event(warning bool, reason, format string, args ...any) {
	s.Events = append(s.Events, Event{Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (s *step) timestamp() *metav1.Time {
	t := metav1.NewTime(s.now)
	return &t
}

// requeueAt requests a reconciliation at a time, or earlier.
func (s *step) requeueAt(t time.Time) {
	// A time that has passed still needs a moment, or the queue spins.
	after := max(t.Sub(s.now), time.Millisecond)
	if s.RequeueAfter == 0 || after < s.RequeueAfter {
		s.RequeueAfter = after
	}
}

// Goal returns the value that a state has or leads to. It is false for the states of
// the version flow, which leave the value alone, and for none.
func Goal(state v1alpha1.FeatureState) (value, ok bool) {
	switch state {
	case v1alpha1.StateOn, v1alpha1.StateTurningOn:
		return true, true
	case v1alpha1.StateOff, v1alpha1.StateTurningOff:
		return false, true
	default:
		return false, false
	}
}

// Turning returns the state that leads to a value.
func Turning(goal bool) v1alpha1.FeatureState {
	if goal {
		return v1alpha1.StateTurningOn
	}
	return v1alpha1.StateTurningOff
}

func finalState(value bool) v1alpha1.FeatureState {
	if value {
		return v1alpha1.StateOn
	}
	return v1alpha1.StateOff
}

// OnOff returns the word for a value in a sentence: on or off.
func OnOff(value bool) string {
	if value {
		return "on"
	}
	return "off"
}
