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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

// Plan is a proposed change: of the value, or of the cluster's version,
// which may change the value, too.
type Plan struct {
	// Value is the value that the feature would have, nil when it is not known.
	Value *bool
	// To is the version that the cluster would have, "" for the one that it has.
	To string
	// Component is that of the servers, for example kube-apiserver.
	Component string
}

// Step is a transition that a plan foresees.
type Step struct {
	// State is the transitional state; "" for a transition that would not happen,
	// since the feature has the wanted value.
	State v1alpha1.FeatureState
	// Tasks are the names of its tasks, in order. Completed tasks of a transition under
	// way are left out.
	Tasks []string
}

// changesValue returns true for a step that is one of the value.
func (s Step) changesValue() bool {
	_, ok := Goal(s.State)
	return ok
}

// ChangesValue returns true when a plan is one of the value, or leads to a change of
// it.
func (p Plan) ChangesValue(steps []Step) bool {
	return p.Value != nil && (p.To == "" || slices.ContainsFunc(steps, Step.changesValue))
}

// Foresee returns the transitions to which a plan would lead, in the order in which
// Next takes them. The one under way comes first. A value is changed while the form of
// the higher version is stored (shouldMove).
func Foresee(status *v1alpha1.FeatureStatus, declared Declared, plan Plan) []Step {
	moving := foreseeMove(status, declared, plan.To)
	underWay := status.Transition != nil
	var turning []Step
	if plan.Value != nil {
		turning = foreseeTurn(status, declared, *plan.Value, plan.To == "")
	} else if underWay && !OfVersion(status.State) {
		turning = []Step{{State: status.State, Tasks: leftOf(status)}}
	}
	switch {
	case underWay && OfVersion(status.State):
		return append(moving, turning...)
	case underWay, plan.To != "" && compareMinors(plan.To, highestStored(status)) < 0:
		return append(turning, moving...)
	default:
		return append(moving, turning...)
	}
}

func highestStored(status *v1alpha1.FeatureStatus) string {
	return slices.MaxFunc(append([]string{status.Version}, status.StoredVersions...), compareMinors)
}

// foreseeTurn returns the change of the value. One to the present value has no step,
// or, when it was requested, one that would not happen.
func foreseeTurn(status *v1alpha1.FeatureStatus, declared Declared, wanted, requested bool) []Step {
	step := Step{State: Turning(wanted), Tasks: append([]string{v1alpha1.TaskWaitForUses}, declared.tasks(wanted)...)}
	if status.State == step.State {
		step.Tasks = leftOf(status)
		return []Step{step}
	}
	if value, ok := Value(status); !ok || value != wanted {
		return []Step{step}
	}
	if !requested {
		return nil
	}
	step.State = ""
	return []Step{step}
}

// foreseeMove returns the change of the stored version, none where nothing is declared
// for it. Without a version it is the rest of the one under way.
func foreseeMove(status *v1alpha1.FeatureStatus, declared Declared, to string) []Step {
	if t := status.Transition; OfVersion(status.State) && t != nil {
		if !t.Interrupted && (to == "" || to == t.ToVersion) {
			return []Step{{State: status.State, Tasks: leftOf(status)}}
		}
		to = cmp.Or(to, t.ToVersion)
	}
	if to == "" {
		return nil
	}
	names := PathTo(status, declared, to)
	if len(names) == 0 {
		return nil
	}
	step := Step{State: v1alpha1.StateUpgrading, Tasks: append([]string{v1alpha1.TaskWaitForUses}, names...)}
	if compareMinors(to, highestStored(status)) < 0 {
		step.State = v1alpha1.StateDowngrading
	}
	return []Step{step}
}

// leftOf names what is left of the transition under way.
func leftOf(status *v1alpha1.FeatureStatus) []string {
	var names []string
	for _, t := range status.Tasks {
		names = append(names, t.Name)
	}
	return names
}

// ClusterVersion returns the lowest effective version of the live servers, "" when none
// has reported one. mixed is true when they have different ones.
func ClusterVersion(servers []tracker.Server) (lowest string, mixed bool) {
	return clusterVersion(servers)
}

// Blockers returns what would hold the steps of a plan until it is resolved, as far as
// servers, users and the spec hold them. Package versionskew knows why binaries would
// not start.
func Blockers(feature *v1alpha1.Feature, view View, plan Plan, steps []Step) []string {
	var blockers []string
	config := configurationOf(feature, view)
	if !config.agreed && (plan.To == "" || !removed(config, view)) {
		blockers = append(blockers, orElse(config.message, reportAwaited))
	}
	if plan.To != "" {
		blockers = append(blockers, serversElsewhere(view.Servers, plan)...)
	}
	blockers = append(blockers, heldOff(feature, view, plan, steps)...)
	if plan.ChangesValue(steps) {
		blockers = append(blockers, usersElsewhere(feature, view, plan, config)...)
		blockers = append(blockers, serversConfigureOther(feature, view, plan, config)...)
	}
	if gate := config.gate; plan.To == "" && plan.Value != nil && gate != nil && gate.LockedToDefault && gate.Default != *plan.Value {
		blockers = append(blockers, fmt.Sprintf("the gate is locked to %t and cannot be set", gate.Default))
	}
	if len(steps) > 0 && feature.Spec.Paused {
		blockers = append(blockers, "spec.paused holds the feature; set it to false to let the transition start")
	}
	return blockers
}

// serversElsewhere describes what happens to live servers that have another version.
// Those whose binary is older cannot get the version without another binary.
func serversElsewhere(servers []tracker.Server, plan Plan) []string {
	var emulate, replace []string
	for _, s := range servers {
		if s.Reported && compareMinors(s.Version, plan.To) == 0 {
			continue
		}
		binary, err := utilversion.ParseGeneric(s.Binary)
		to, ok := parseMinor(plan.To)
		// An unreleased binary is of version 0: its capabilities are unknown.
		if err == nil && ok && int(binary.Major()) == to[0] && int(binary.Minor()) < to[1] {
			replace = append(replace, s.ID)
		} else {
			emulate = append(emulate, s.ID)
		}
	}
	var blockers []string
	if len(emulate) > 0 {
		blockers = append(blockers, fmt.Sprintf("%s to be restarted with --emulated-version=%s, or without the flag where the binary is of %s: %s",
			phrase.Count(len(emulate), "live server has another version and has", "live servers have another version and have"), plan.To, plan.To, list("", emulate)))
	}
	if len(replace) > 0 {
		blockers = append(blockers, fmt.Sprintf("%s to be replaced with %s or newer: %s", phrase.Count(len(replace), "live server has an older binary, and has", "live servers have older binaries, and have"), plan.To, list("", replace)))
	}
	return blockers
}

// heldOff returns what would hold the steps whatever the users are, as shouldBegin and
// heldUp do. A plan for another version describes what happens to each server.
func heldOff(feature *v1alpha1.Feature, view View, plan Plan, steps []Step) []string {
	s := &step{feature: feature}
	s.Status = *feature.Status.DeepCopy()
	var blockers []string
	if _, mixed := clusterVersion(view.Servers); mixed && plan.To == "" && slices.ContainsFunc(steps, func(s Step) bool { return s.State != "" }) {
		blockers = append(blockers, s.mixedVersions().message)
	}
	// Asking for the other value calls a halted rollout off.
	if rollout.Halted(&s.Status) && slices.ContainsFunc(steps, func(step Step) bool { return step.State == Turning(s.Status.Rollout.Value) }) {
		blockers = append(blockers, s.rolloutHalted().message)
	}
	return blockers
}

// leavesOut returns whether spec.rollout would keep the plan's value from a user, so
// that the transition waits for it without end. That is so where the value of the last
// state of rest is another one (canary), and as long as waiting for uses is not over.
func leavesOut(feature *v1alpha1.Feature, plan Plan, config configuration) func(tracker.Instance) bool {
	status, limited := &feature.Status, feature.Spec.Rollout
	none := func(tracker.Instance) bool { return false }
	if !rollout.Limits(limited) || config.control == v1alpha1.ControlLocal || status.Configured == nil {
		return none
	}
	if before := rollout.Previous(status); before == nil || *before == *plan.Value {
		return none
	}
	if status.State == Turning(*plan.Value) && len(status.Tasks) > 0 && status.Tasks[0].Name != v1alpha1.TaskWaitForUses {
		return none
	}
	return func(i tracker.Instance) bool {
		if i.Explicit || i.Component == plan.Component && config.control == v1alpha1.ControlCentral {
			// It has its own command line's value.
			return false
		}
		return !rollout.Includes(limited, feature.Name, rollout.Instance{Component: i.Component, Name: i.Name})
	}
}

// usersElsewhere returns the users that would hold the change of the value, and what
// resolves that. Servers that are restarted for another version take its value with it.
func usersElsewhere(feature *v1alpha1.Feature, view View, plan Plan, config configuration) []string {
	name, leftOut := feature.Name, leavesOut(feature, plan, config)
	follows := config.control == v1alpha1.ControlDynamic && plan.To == ""
	var differing, explicit, left []tracker.Instance
	for i := range tracker.Each(view.Instances) {
		switch {
		case leftOut(i):
			left = append(left, i)
		case plan.To != "" && i.Component == plan.Component:
		case follows && i.Explicit:
			explicit = append(explicit, i)
		case !follows:
			differing = append(differing, i)
		}
	}
	var blockers []string
	if names := tracker.Differing(explicit, *plan.Value); len(names) > 0 {
		subject := phrase.Count(len(names), "live user sets the other value itself, which wins over the API, and has", "live users set the other value themselves, which wins over the API, and have")
		blockers = append(blockers, fmt.Sprintf("%s to be restarted without %s in --feature-gates: %s", subject, name, list("", names)))
	}
	if names := tracker.Differing(left, *plan.Value); len(names) > 0 {
		blockers = append(blockers, fmt.Sprintf("%s would keep the other value, since spec.rollout limits the value to %s; widen or remove it: %s", phrase.Count(len(names), "live user", "live users"), Audience(feature.Spec.Rollout), list("", names)))
	}
	names := tracker.Differing(differing, *plan.Value)
	if len(names) == 0 {
		return blockers
	}
	how := fmt.Sprintf("with --feature-gates=%s=%t", name, *plan.Value)
	switch {
	case plan.To != "":
		how = fmt.Sprintf("with the value of %s, by --emulated-version=%s or %s", plan.To, plan.To, strings.TrimPrefix(how, "with "))
	case config.control == v1alpha1.ControlCentral:
		how = fmt.Sprintf("once all %s have --feature-gates=%s=%t", plan.Component, name, *plan.Value)
	}
	subject := phrase.Count(len(names), "live user has the other value and has", "live users have the other value and have")
	return append(blockers, fmt.Sprintf("%s to be restarted %s: %s", subject, how, list("", names)))
}

// serversConfigureOther returns the live servers that configure another value than a
// plan's, and have not queried the gate yet: as users they would be named only then. A
// server decides the value unless the API does.
func serversConfigureOther(feature *v1alpha1.Feature, view View, plan Plan, config configuration) []string {
	if plan.To != "" || plan.Value == nil || !config.agreed || config.control == v1alpha1.ControlDynamic || config.gate == nil || config.gate.LockedToDefault {
		return nil
	}
	users := tracker.Differing(view.Instances, *plan.Value)
	var names []string
	for _, s := range view.Servers {
		if s.Knows && s.Own() != *plan.Value && !slices.Contains(users, plan.Component+"/"+s.ID) {
			names = append(names, s.ID)
		}
	}
	if len(names) == 0 {
		return nil
	}
	subject := phrase.Count(len(names), "live server configures the other value and has", "live servers configure the other value and have")
	return []string{fmt.Sprintf("%s to be restarted with --feature-gates=%s=%t: %s", subject, feature.Name, *plan.Value, list("", names))}
}

// UsersUndecided reports, for a plan, processes that may use the feature and have not
// reported that, and when it is known. Period is how late they may report it.
func UsersUndecided(names []string, period time.Duration) string {
	return fmt.Sprintf("%s: %s; check again in %s", phrase.Count(len(names), "live process has started lately, and whether it uses the feature is not known before it reports that",
		"live processes have started lately, and whether they use the feature is not known before they report that"), list("", names), period)
}
