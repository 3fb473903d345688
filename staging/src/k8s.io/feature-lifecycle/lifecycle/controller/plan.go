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
	var forecast versionskew.Forecast
	if request.Spec.Enabled != nil {
		configured := v1alpha1.FeatureConfiguration{Value: *request.Spec.Enabled, Source: v1alpha1.SourceCommandLine}
		if feature.Status.Control == v1alpha1.ControlDynamic {
			configured.Source = v1alpha1.SourceAPI
		}
		forecast = o.binary.ForecastValue(feature.Name, configured, func(name string) (on, off bool) { return o.tracker.Values(name, now) })
	} else {
		var err error
		if forecast, err = o.forecast(feature, view, plan.To, now); err != nil {
			return nil, err
		}
	}
	result := &v1alpha1.FeaturePlanStatus{
		Configured: forecast.Configured, Dependencies: forecast.Dependencies, Dependents: forecast.Dependents,
		Blockers: forecast.Blockers, Unknown: forecast.Unknown,
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
			outlook.Held = append(outlook.Held, fmt.Sprintf("servers of %s that have the feature on may never become ready while there is what task %s finds; turn the feature off before they move, and on again afterwards", plan.To, name))
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

// forecast returns what a move to a version would make of the feature's value.
func (o *planner) forecast(feature *v1alpha1.Feature, view transition.View, to string, now time.Time) (versionskew.Forecast, error) {
	cluster, mixed := transition.ClusterVersion(view.Servers)
	move, err := versionskew.ParseMove(cluster, to)
	if err != nil {
		return versionskew.Forecast{}, apierrors.NewBadRequest(err.Error())
	}
	return o.binary.ForecastMove(feature, move, mixed, func(gate string) versionskew.Input {
		of := feature
		if gate != feature.Name {
			of = o.stored(gate)
		}
		q := o.input(of, o.tracker.Flags(gate, now), o.features.declared(gate), move)
		q.Emulated = true
		return q
	}), nil
}

// stored returns the Feature of a gate. If it has none yet, nothing but the gate's specs
// decides.
func (o *planner) stored(gate string) *v1alpha1.Feature {
	feature, err := o.lister.Get(gate)
	if err != nil {
		return &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: o.config.Namespace, Name: gate}}
	}
	return feature
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
