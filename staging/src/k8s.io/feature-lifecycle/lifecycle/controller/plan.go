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

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// planner answers what a change would do. It changes nothing.
type planner struct{ *observer }

// plan returns what a change of a feature would do: one of its value, or one of the
// cluster's version, which may change the value, too. It reads only; any server can
// answer. The request's spec alone counts: the feature is the one given. An error
// for which apierrors.IsBadRequest is true explains what is wrong with the request.
func (o *planner) plan(ctx context.Context, feature *v1alpha1.Feature, request *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	if request == nil || (request.Spec.Enabled == nil) == (request.Spec.TargetVersion == "") {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a plan for feature %s needs either spec.enabled or spec.targetVersion, and not both", feature.Name))
	}
	now := o.config.Clock.Now()
	view := o.gather(feature.Name, now)
	plan := transition.Plan{To: request.Spec.TargetVersion, Component: o.config.Component}
	result := &v1alpha1.FeaturePlanStatus{}
	if request.Spec.Enabled != nil {
		result.Configured = &v1alpha1.FeatureConfiguration{Value: *request.Spec.Enabled, Source: v1alpha1.SourceCommandLine}
		if feature.Status.Control == v1alpha1.ControlDynamic {
			result.Configured.Source = v1alpha1.SourceAPI
		}
		if others := o.planDependencies(result, feature.Name, func(name string) (on, off bool) { return o.tracker.Values(name, now) }); len(others) > 0 {
			result.Blockers = append(result.Blockers, versionskew.Conflict(feature.Name, result.Configured.Value, others, ""))
		}
	} else if err := o.planVersion(feature, view, plan.To, result, now); err != nil {
		return nil, err
	}
	if result.Configured != nil {
		plan.Value = &result.Configured.Value
	}
	steps := transition.Foresee(&feature.Status, view.Declared, plan)
	result.Blockers = append(result.Blockers, transition.Blockers(feature, view, plan, steps)...)
	if plan.Value != nil && *plan.Value && (request.Spec.Enabled != nil || plan.ChangesValue(steps)) {
		result.Blockers = append(result.Blockers, view.NotServed...)
	}
	if plan.ChangesValue(steps) {
		opposing := slices.DeleteFunc(slices.Clone(view.Instances), func(i tracker.Instance) bool { return i.Reported && i.Enabled == *plan.Value })
		result.Uses = tracker.Aggregate(opposing, o.config.Settings.Settings, now)
	}
	for _, problem := range o.misdeclared(ctx, feature.Name) {
		result.Unknown = append(result.Unknown, "what is stored: "+problem)
	}
	if request.Spec.Enabled != nil && slices.ContainsFunc(steps, func(s transition.Step) bool { return s.State != "" }) {
		result.Unknown = append(result.Unknown, o.undecidedUsers(feature, view, *plan.Value, now)...)
	}
	for _, step := range steps {
		tasks, outlook, err := o.planStep(ctx, feature.Name, plan, step)
		if err != nil {
			return nil, err
		}
		result.Tasks = append(result.Tasks, tasks...)
		result.Blockers, result.Unknown = append(result.Blockers, outlook.Held...), append(result.Unknown, outlook.Unknown...)
	}
	return result, nil
}

// misdeclared returns what of a feature's declaration does not fit the server, or why
// the server could not be queried.
func (o *planner) misdeclared(ctx context.Context, feature string) []string {
	problems, err := task.NewInspection(o.config.Tasks, o.finder.all).Problems(ctx, o.features[feature].AllTasks())
	if err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// planStep returns what the tasks of one transition would handle, and which of them
// would wait for an external action.
func (o *planner) planStep(ctx context.Context, feature string, plan transition.Plan, step transition.Step) (result []v1alpha1.PlannedTask, outlook task.Outlook, err error) {
	state := step.State
	if state == "" {
		state = transition.Turning(*plan.Value)
	}
	for _, name := range step.Tasks {
		p := v1alpha1.PlannedTask{Name: name}
		declared, ok := o.features.task(feature, state, name)
		switch {
		case name == v1alpha1.TaskWaitForUses && transition.OfVersion(state):
			p.Message = "wait until every live server has the version"
		case name == v1alpha1.TaskWaitForUses:
			p.Message = "wait until every live user has the value"
		case !ok:
			p.Message = "this server does not know the task, so what it would handle is unknown"
		default:
			var blocked *task.BlockedError
			p, err = planned(ctx, o.config.Tasks, declared)
			switch {
			case errors.As(err, &blocked):
				p = v1alpha1.PlannedTask{Name: name, Message: declared.Description}
				outlook.Held = append(outlook.Held, fmt.Sprintf("task %s is blocked: %s", name, blocked.Message))
			case err != nil:
				return nil, outlook, apierrors.NewInternalError(fmt.Errorf("planning task %s of feature %s: %w", name, feature, err))
			}
		}
		p.State = step.State
		result = append(result, p)
		if declared.Waits && step.State != "" {
			outlook.Held = append(outlook.Held, waitsFor(p)...)
		}
		if declared.Obstacles != nil && step.State != "" && len(p.Leftovers) > 0 {
			tried, err := o.planObstacles(ctx, declared, &outlook)
			if tried != "" {
				result[len(result)-1].Message += "; " + tried
			}
			if err != nil {
				return nil, outlook, apierrors.NewInternalError(fmt.Errorf("looking for what would hold task %s of feature %s: %w", name, feature, err))
			}
		}
		if declared.BlocksStartup && len(p.Leftovers) > 0 && transition.OfVersion(step.State) && plan.Value != nil && *plan.Value {
			outlook.Held = append(outlook.Held, fmt.Sprintf("servers of %s that have the feature on never become ready while there is what task %s finds; turn the feature off before they move, and on again afterwards", plan.To, name))
		}
	}
	return result, outlook, nil
}

// planObstacles adds the obstacles of a task that has found something, and returns the
// number of objects that it tried, if not all.
func (o *planner) planObstacles(ctx context.Context, t task.Task, outlook *task.Outlook) (tried string, err error) {
	of, err := t.Obstacles(ctx, o.config.Tasks)
	var blocked *task.BlockedError
	if errors.As(err, &blocked) {
		of.Held, err = append(of.Held, blocked.Message), nil
	}
	for _, obstacle := range of.Held {
		outlook.Held = append(outlook.Held, fmt.Sprintf("task %s would wait: %s", t.Name, obstacle))
	}
	for _, unknown := range of.Unknown {
		outlook.Unknown = append(outlook.Unknown, fmt.Sprintf("task %s: %s", t.Name, unknown))
	}
	return of.Tried, err
}

// waitsFor returns the objects that hold a task that removes nothing.
func waitsFor(p v1alpha1.PlannedTask) []string {
	var held []string
	for _, l := range p.Leftovers {
		resource := schema.GroupResource{Group: l.Group, Resource: l.Resource}
		held = append(held, fmt.Sprintf("task %s waits until %s changed or deleted, which nothing does by itself: %s", p.Name,
			phrase.Objects(l.Count, resource, "is", "are"), strings.Join(l.Examples, ", ")))
	}
	return held
}

// planVersion determines which value the feature would have at a version, and why
// binaries would refuse to start there. It uses the specs of this binary: reports of
// others are about the version that they have.
func (o *planner) planVersion(feature *v1alpha1.Feature, view transition.View, to string, result *v1alpha1.FeaturePlanStatus, now time.Time) error {
	there, err := utilversion.ParseMajorMinor(to)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.targetVersion is %q; write a minor version such as 1.36: %v", to, err))
	}
	cluster, mixed := transition.ClusterVersion(view.Servers)
	here, err := utilversion.ParseMajorMinor(cluster)
	if err != nil {
		result.Unknown = append(result.Unknown, fmt.Sprintf("the cluster's version, and so what a move to %s would change: no live server reports it", to))
		return nil
	}
	if there.Major() > here.Major()+1 || here.Major() > there.Major()+1 {
		return apierrors.NewBadRequest(fmt.Sprintf("spec.targetVersion is %s, and the cluster has %s; a plan is for a version of %d.x, or of the major version before or after that", to, cluster, here.Major()))
	}
	if there.EqualTo(here) && !mixed {
		result.Configured = versionskew.Configured(feature)
		return nil
	}
	q, known := o.questionAt(feature, here, there, now)
	result.Blockers, result.Unknown = o.outOfReach(q, known, here, there)
	if len(result.Unknown) > 0 {
		return nil
	}
	if v, refuses := q.Refuses(); refuses {
		result.Blockers = append(result.Blockers, v.Message())
	}
	value := q.Value()
	result.Configured = &value
	others := o.planDependencies(result, feature.Name, func(name string) (on, off bool) { return o.valueAt(name, here, there, now) })
	if why, _ := q.RefusesDependencies(); why == "" && len(others) > 0 {
		// No process would refuse its command line: the value is one of the API.
		result.Blockers = append(result.Blockers, versionskew.Conflict(feature.Name, value.Value, others, " in "+to))
	}
	return nil
}

// questionAt returns what is known of a feature for a move of these servers. known is
// false when this server does not have the gate.
func (o *planner) questionAt(feature *v1alpha1.Feature, here, there *utilversion.Version, now time.Time) (q versionskew.Input, known bool) {
	_, known = o.config.Specs[featuregate.Feature(feature.Name)]
	q = o.question(feature, o.tracker.Flags(feature.Name, now), o.features.declared(feature.Name), here, there)
	q.Emulated = true
	return q, known
}

// outOfReach returns what this server cannot know of a version, and what no server can
// do about it.
func (o *planner) outOfReach(q versionskew.Input, known bool, here, there *utilversion.Version) (blockers, unknown []string) {
	highest := here
	if o.config.SpecsUpTo != nil {
		highest = o.config.SpecsUpTo
	}
	switch lowest := o.config.SpecsFrom; {
	case there.GreaterThan(highest):
		// Whether the next minor version is one of this major version or the first of the
		// next one is unknown.
		next := highest.AddMinor(1)
		if there.Major() > highest.Major() {
			next = utilversion.MajorMinor(highest.Major()+1, 0)
		}
		if there.GreaterThan(next) {
			blockers = append(blockers, fmt.Sprintf("servers may not skip a minor version (Kubernetes' version skew policy); move to %s first", next))
		}
		return blockers, q.Ahead(highest)
	case lowest != nil && there.LessThan(lowest):
		blockers = append(blockers, fmt.Sprintf("servers of %d.%d can emulate no version below %s, so nothing would bring what is stored to the form of %s; move to %s first, and on with binaries of it", highest.Major(), highest.Minor(), lowest, there, lowest))
		return blockers, []string{fmt.Sprintf("what %s makes of the gate: this binary knows versions from %s on", there, lowest)}
	case !known:
		return nil, []string{fmt.Sprintf("what %s makes of the gate: this server does not have it", there)}
	default:
		return nil, nil
	}
}

// planDependencies adds the gates that would conflict with the value of this one,
// because one depends on the other, and returns them.
func (o *planner) planDependencies(result *v1alpha1.FeaturePlanStatus, name string, values func(name string) (on, off bool)) []string {
	value := result.Configured.Value
	dependencies := versionskew.Dependencies(o.config.Dependencies)
	if value {
		result.Dependencies = slices.DeleteFunc(dependencies.Of(name), func(other string) bool { _, off := values(other); return !off })
	} else {
		result.Dependents = slices.DeleteFunc(dependencies.On(name), func(other string) bool { on, _ := values(other); return !on })
	}
	return slices.Concat(result.Dependencies, result.Dependents)
}

// valueAt returns whether a gate would be on or off at a version; neither when that is
// unknown.
func (o *planner) valueAt(name string, here, there *utilversion.Version, now time.Time) (on, off bool) {
	feature, err := o.lister.Get(name)
	if err != nil {
		// It has no Feature yet: nothing but the gate's specs decides.
		feature = &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: o.config.Namespace, Name: name}}
	}
	q, known := o.questionAt(feature, here, there, now)
	if !known {
		return false, false
	}
	value := q.Value().Value
	return value, !value
}

// undecidedUsers returns, for the plan of a value, the processes that may use the feature and
// have not reported it: those first seen less than the report period ago. Unless the feature is
// dynamic, servers are not among them, since they configure the value. Users of a dynamic
// feature follow by themselves, except those that set the value.
func (o *planner) undecidedUsers(feature *v1alpha1.Feature, view transition.View, value bool, now time.Time) []string {
	dynamic := feature.Status.Control == v1alpha1.ControlDynamic
	instances := slices.DeleteFunc(slices.Concat(view.Instances, view.Replaced), func(i tracker.Instance) bool {
		return i.Component == o.config.Component && !dynamic
	})
	undecided := tracker.Undecided(instances, value, o.config.Settings.Settings, now)
	if !dynamic {
		undecided = append(undecided, o.tracker.Newcomers(feature.Name, now)...)
		slices.Sort(undecided)
		undecided = slices.Compact(undecided)
	}
	if len(undecided) == 0 {
		return nil
	}
	return []string{transition.UsersUndecided(undecided, o.config.Settings.ReportPeriod)}
}
