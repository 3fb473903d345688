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
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

// VersionTasks are the tasks of one version boundary, under the names that they
// have in a task list.
type VersionTasks struct {
	// At is the minor version above the boundary, for example 1.36: it is passed
	// between 1.35 and 1.36.
	At string
	// OnUpgrade bring what is stored from the form of lower versions to that of
	// At, OnDowngrade back.
	OnUpgrade, OnDowngrade []string
}

// path names the tasks that bring stored objects to a version, when their forms
// are of versions from lowest to highest, in order: down over each boundary above
// the wanted version, the highest first, then up over each that is not above it,
// the lowest first. With lowest equal to highest one of the two is empty; they
// differ when a version transition is replaced that has touched some objects.
func (d Declared) path(lowest, highest, to string) []string {
	if len(d.Versions) == 0 {
		return nil
	}
	for _, v := range []string{lowest, highest, to} {
		if _, ok := parseMinor(v); !ok {
			return nil
		}
	}
	boundaries := slices.SortedFunc(slices.Values(d.Versions), func(a, b VersionTasks) int { return compareMinors(a.At, b.At) })
	var tasks []string
	for _, b := range slices.Backward(boundaries) {
		if compareMinors(to, b.At) < 0 && compareMinors(b.At, highest) <= 0 {
			tasks = append(tasks, b.OnDowngrade...)
		}
	}
	for _, b := range boundaries {
		if compareMinors(lowest, b.At) < 0 && compareMinors(b.At, to) <= 0 {
			tasks = append(tasks, b.OnUpgrade...)
		}
	}
	return tasks
}

// PathTo names the tasks that a version transition to a version would have, for
// plans, without waiting for uses.
func PathTo(status *v1alpha1.FeatureStatus, declared Declared, to string) []string {
	versions := append([]string{status.Version}, status.StoredVersions...)
	return declared.path(slices.MinFunc(versions, compareMinors), slices.MaxFunc(versions, compareMinors), to)
}

// compareMinors returns a negative number when a is below b. What does not parse is
// equal to everything; validation keeps it from being stored.
func compareMinors(a, b string) int {
	va, okA := parseMinor(a)
	vb, okB := parseMinor(b)
	if !okA || !okB {
		return 0
	}
	return slices.Compare(va[:], vb[:])
}

// parseMinor parses a version as Features and declarations have it: 1.36. It is called
// for each boundary at each reconciliation, so it avoids the regular expression of
// apimachinery's util/version.
func parseMinor(version string) (parsed [2]int, ok bool) {
	major, minor, _ := strings.Cut(version, ".")
	var errs [2]error
	parsed[0], errs[0] = strconv.Atoi(major)
	parsed[1], errs[1] = strconv.Atoi(minor)
	return parsed, errs == [2]error{}
}

// parseVersion is utilversion.ParseMajorMinor, without its regular expression for
// the form that servers report: 1.36. It runs for each server at each decision.
func parseVersion(version string) (*utilversion.Version, error) {
	if v, ok := parseMinor(version); ok && v[0] >= 0 && v[1] >= 0 && version == strconv.Itoa(v[0])+"."+strconv.Itoa(v[1]) {
		return utilversion.MajorMinor(uint(v[0]), uint(v[1])), nil
	}
	return utilversion.ParseMajorMinor(version)
}

// OfVersion returns true for the states of a version transition.
func OfVersion(state v1alpha1.FeatureState) bool {
	return state == v1alpha1.StateUpgrading || state == v1alpha1.StateDowngrading
}

// Value returns the value that a feature has or is being brought to. A version
// transition leaves it alone. It is false, false without a state.
func Value(status *v1alpha1.FeatureStatus) (value, ok bool) {
	if OfVersion(status.State) && status.Transition != nil {
		return Goal(status.Transition.FromState)
	}
	return Goal(status.State)
}

// move is a change of the stored version that is due.
type move struct {
	// lowest and highest bound the versions whose forms may be stored now.
	lowest, highest string
	// to is the cluster's version.
	to    string
	tasks []string
}

// down returns true when something stored may be of a higher version than the
// cluster's.
func (m *move) down() bool { return compareMinors(m.to, m.highest) < 0 }

// dueMove returns the change of the stored version on which the servers agree, nil when
// there is none.
func (s *step) dueMove() *move {
	if !s.versionAgreed() {
		return nil
	}
	t := s.Status.Transition
	if OfVersion(s.Status.State) && t != nil && t.ToVersion == s.version && !t.Interrupted {
		return nil
	}
	lowest, highest := s.stored()
	if lowest == s.version && highest == s.version && !OfVersion(s.Status.State) {
		return nil
	}
	return &move{lowest, highest, s.version, s.view.Declared.path(lowest, highest, s.version)}
}

// versionAgreed returns true when every live server has reported the same version, and
// agrees with the others about the feature (S4). Only servers have to. Nodes may be
// three minor versions older, and they never change stored objects except through a
// server.
func (s *step) versionAgreed() bool {
	return s.version != "" && !s.mixed && (s.config.agreed || removed(s.config, s.view))
}

// removed returns true for a gate that is no longer known to any live process, while
// authors still declare what becomes of its stored form. There can be no disagreement
// about its value.
func removed(config configuration, view View) bool {
	return config.gate == nil && len(unreported(view.Servers)) == 0 && len(view.Declared.Versions) > 0
}

// stored returns the bounds of the versions whose forms may be stored.
func (s *step) stored() (lowest, highest string) {
	versions := append([]string{s.Status.Version}, s.Status.StoredVersions...)
	if s.Status.Version == "" {
		// A Feature of a server that did not report it: taken as it is, like an adopted one.
		versions[0] = s.version
	}
	return slices.MinFunc(versions, compareMinors), slices.MaxFunc(versions, compareMinors)
}

// recordVersions records the versions of live servers: each writes in the form of its
// own. Where authors declare nothing between them forms are the same, and nothing is
// recorded.
func (s *step) recordVersions() {
	nothing := len(s.view.Declared.Versions) == 0 && !OfVersion(s.Status.State)
	if s.Status.State == "" || s.Status.Version == "" || nothing {
		return
	}
	lowest, highest := s.stored()
	var wrote []string
	for _, server := range s.view.Servers {
		begun := OfVersion(s.Status.State) && s.Status.Transition != nil && !s.waiting()
		if !server.Reported && !server.Starting && begun {
			// It may be of any version, upstream's own included.
			s.Status.Transition.Interrupted = true
		}
		v, err := parseVersion(server.Version)
		if !server.Reported || err != nil {
			continue
		}
		version := fmt.Sprintf("%d.%d", v.Major(), v.Minor())
		if s.view.Declared.differ(version, lowest) || s.view.Declared.differ(version, highest) {
			wrote = append(wrote, version)
		}
		if begun && version != s.Status.Transition.ToVersion {
			s.Status.Transition.Interrupted = true
		}
	}
	if len(wrote) == 0 {
		return
	}
	wrote = append(wrote, lowest, highest)
	ends := []string{slices.MinFunc(wrote, compareMinors), slices.MaxFunc(wrote, compareMinors)}
	ends = slices.DeleteFunc(slices.Compact(ends), func(v string) bool { return v == s.Status.Version })
	if !slices.Equal(ends, s.Status.StoredVersions) {
		s.Status.StoredVersions = ends
		if t := s.Status.Transition; OfVersion(s.Status.State) && t != nil {
			// Its list of tasks does not know of this form.
			t.Interrupted = true
		}
	}
}

// waiting returns true while waiting for uses is not over, so that no declared task of
// the transition has begun.
func (s *step) waiting() bool {
	return len(s.Status.Tasks) > 0 && s.Status.Tasks[0].Name == v1alpha1.TaskWaitForUses
}

// differ returns true when authors declare a boundary between two versions.
func (d Declared) differ(a, b string) bool {
	return len(d.path(a, a, b)) > 0 || len(d.path(b, b, a)) > 0
}

// follow takes the cluster's version for the stored one where nothing has to be
// done for it: most features declare nothing for a version, and all of them move
// at once, each with the write that it gets anyway.
func (s *step) follow() {
	if s.config.gate == nil {
		// The time that a gate has been unknown is counted from this version.
		return
	}
	if s.move != nil && len(s.move.tasks) == 0 && !OfVersion(s.Status.State) {
		s.Status.Version, s.Status.StoredVersions = s.move.to, nil
		s.move = nil
	} else if s.Status.Version == "" && s.versionAgreed() {
		s.Status.Version = s.version
	}
}

// shouldMove returns true when a version transition has to begin, or to replace the one
// under way, now.
//
// A value is changed while the form of the higher version is stored, since OnEnable and
// OnDisable are written for that. Where both differ, an upgrade precedes the change of
// the value and a downgrade follows it. A change of the value that is under way is
// completed first, or reversed, and so is a version transition: no two lists of tasks
// are ever half done.
func (s *step) shouldMove() bool {
	if s.move == nil {
		s.awaitOneVersion()
		return false
	}
	goal, _ := Goal(s.Status.State)
	atRest := s.atRest()
	switch {
	case !atRest && !OfVersion(s.Status.State):
		return false
	case !OfVersion(s.Status.State) && len(s.move.tasks) == 0:
		return false
	case atRest && s.move.down() && s.config.agreed && goal != s.config.value.Value:
		return false
	case s.feature.Spec.Paused:
		s.wait = &holdup{v1alpha1.ReasonPaused, fmt.Sprintf("spec.paused holds the feature, which is stored in the form of %s; set it to false to let it move to %s", s.Status.Version, s.move.to)}
		return false
	default:
		return true
	}
}

// awaitOneVersion reports that a version transition will begin as soon as the last
// server has followed.
func (s *step) awaitOneVersion() {
	if _, atRest := Goal(s.Status.State); !s.mixed || !atRest {
		return
	}
	for _, server := range s.view.Servers {
		if server.Reported && len(s.view.Declared.path(s.Status.Version, s.Status.Version, server.Version)) > 0 {
			s.wait = s.mixedVersions()
		}
	}
}

// beginMove starts a version transition, replacing one that is under way. As for
// a change of the value, state and complete task list are one update.
func (s *step) beginMove() {
	m := s.move
	s.Hold = true
	from := s.Status.State
	if t := s.Status.Transition; OfVersion(from) {
		if t != nil && t.FromState != "" {
			from = t.FromState
		} else {
			from = finalState(s.Status.Configured != nil && s.Status.Configured.Value)
		}
	}
	s.Status.State = v1alpha1.StateUpgrading
	fromVersion := m.lowest
	if m.down() {
		s.Status.State = v1alpha1.StateDowngrading
		fromVersion = m.highest
	}
	s.Status.StateSince = s.timestamp()
	s.Status.Transition = &v1alpha1.FeatureTransition{
		ID: s.view.NewTransitionID, StartTime: metav1.NewMicroTime(s.now), Reason: v1alpha1.TransitionVersion,
		FromVersion: fromVersion, ToVersion: m.to, FromState: from,
	}
	s.Status.Tasks = nil
	if len(m.tasks) == 0 {
		s.finish()
		return
	}
	s.Status.Tasks = []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}}
	for _, name := range m.tasks {
		s.Status.Tasks = append(s.Status.Tasks, v1alpha1.FeatureTask{Name: name})
	}
	s.event(false, EventTransitionStarted, "%s from %s to %s: the cluster's version is %s; %s", s.Status.State, fromVersion, m.to, m.to, phrase.Count(len(s.Status.Tasks), "task", "tasks"))
}

// waitForServers is waiting for uses of a version. Stored objects are read and written
// by servers alone, so it ends once all live ones have had the version for the settle
// period. Others' versions do not count (KEP-3920, "Upgrade and downgrade").
func (s *step) waitForServers(task *v1alpha1.FeatureTask) {
	task.Total = int64(len(s.view.Servers))
	task.Done = task.Total
	s.settle(task, time.Time{}, "all live servers have the version "+s.version)
}

// settle ends waiting for uses once there was no contradiction for the settle period,
// and not before a time. Its start is stored as the time of the task's last attempt.
// Time in which this server did not watch does not count.
func (s *step) settle(task *v1alpha1.FeatureTask, notBefore time.Time, say string) {
	// A time in the future is from a server whose clock was ahead.
	if task.LastAttemptTime == nil || task.LastAttemptTime.After(s.now) {
		since := metav1.NewMicroTime(s.now)
		task.LastAttemptTime = &since
		task.Attempts++
		task.Message = fmt.Sprintf("%s; waiting %s for a contradiction", say, max(s.settings.Settle, notBefore.Sub(s.now)).Round(time.Second))
	}
	quiet := task.LastAttemptTime.Time
	if quiet.Before(s.view.WatchingSince) {
		quiet = s.view.WatchingSince
	}
	end := quiet.Add(s.settings.Settle)
	if end.Before(notBefore) {
		end = notBefore
	}
	if s.now.Before(end) {
		s.requeueAt(end)
		return
	}
	s.complete()
}

// took returns how long the transition under way has taken, 0 without one.
func (s *step) took() time.Duration {
	if s.Status.Transition == nil {
		return 0
	}
	return s.now.Sub(s.Status.Transition.StartTime.Time).Round(time.Millisecond)
}
