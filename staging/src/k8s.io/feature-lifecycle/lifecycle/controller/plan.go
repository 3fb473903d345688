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

package controller

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/uses"
)

// Plan answers what a change of a feature would do. It reads only; any server
// can answer.
func (c *Controller) Plan(ctx context.Context, feature *v1alpha1.Feature, plan *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error) {
	if plan.Spec.Enabled == nil {
		return c.planVersion(ctx, feature, plan.Spec.TargetVersion)
	}
	wanted := *plan.Spec.Enabled
	view := c.gather(feature.Name, c.config.Clock.Now())
	result := &v1alpha1.FeaturePlanStatus{
		Tasks: []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses, Message: "wait until every live user has the value"}},
	}
	var opposing []uses.Instance
	for _, i := range view.Instances {
		if !i.Reported || i.Enabled != wanted {
			opposing = append(opposing, i)
		}
	}
	result.Uses = uses.Aggregate(opposing, c.config.Settings.Settings, c.config.Clock.Now())
	declared := c.features[feature.Name]
	tasks := declared.OnDisable
	if wanted {
		tasks = declared.OnEnable
	}
	for _, t := range tasks {
		p, err := planned(ctx, c.config.Tasks, t)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("planning task %s of feature %s: %w", t.Name, feature.Name, err))
		}
		result.Tasks = append(result.Tasks, p)
	}
	if names := uses.Differing(view.Instances, wanted); len(names) > 0 {
		result.Blockers = append(result.Blockers, fmt.Sprintf("%d live users have the other value and have to be restarted with --feature-gates=%s=%t", len(names), feature.Name, wanted))
	}
	if feature.Status.LockedToDefault && feature.Status.Default != nil && *feature.Status.Default != wanted {
		result.Blockers = append(result.Blockers, fmt.Sprintf("the gate is locked to %t", *feature.Status.Default))
	}
	if feature.Spec.Paused {
		result.Blockers = append(result.Blockers, "spec.paused holds the feature")
	}
	return result, nil
}

// planVersion answers what a move of the cluster to a minor version would do to
// what the feature stores.
func (c *Controller) planVersion(ctx context.Context, feature *v1alpha1.Feature, to string) (*v1alpha1.FeaturePlanStatus, error) {
	view := c.gather(feature.Name, c.config.Clock.Now())
	result := &v1alpha1.FeaturePlanStatus{}
	var others []string
	for _, server := range view.Servers {
		if server.Version != to {
			others = append(others, server.ID)
		}
	}
	names := transition.PathTo(&feature.Status, view.Declared, to)
	if len(names) == 0 {
		return result, nil
	}
	result.Tasks = []v1alpha1.PlannedTask{{Name: v1alpha1.TaskWaitForUses, Message: "wait until every live server has the version " + to}}
	for _, name := range names {
		t, ok := c.features[feature.Name].Versions.Task(name)
		if !ok {
			// PathTo names what is declared.
			continue
		}
		p, err := planned(ctx, c.config.Tasks, t)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("planning task %s of feature %s: %w", t.Name, feature.Name, err))
		}
		result.Tasks = append(result.Tasks, p)
	}
	if len(others) > 0 {
		result.Blockers = append(result.Blockers, fmt.Sprintf("%d live servers have another version and have to be restarted with --emulated-version=%s, or to be upgraded: %s", len(others), to, strings.Join(others, ", ")))
	}
	if feature.Status.Transition != nil && !transition.OfVersion(feature.Status.State) {
		result.Blockers = append(result.Blockers, fmt.Sprintf("the feature is %s; that is brought to its end first", feature.Status.State))
	}
	if feature.Spec.Paused {
		result.Blockers = append(result.Blockers, "spec.paused holds the feature")
	}
	return result, nil
}

// Clean starts the removal of what a feature that is off left behind, as a
// transition like any other. The resourceVersion of the feature that was read
// goes with it. Any server may start it; the feature's leader goes on.
func (c *Controller) Clean(ctx context.Context, feature *v1alpha1.Feature) (*v1alpha1.FeatureCleanupStatus, error) {
	declared := c.declared(feature.Name)
	if len(declared.OnDisable) == 0 {
		return nil, apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name,
			fmt.Errorf("the feature declares nothing that could be removed"))
	}
	if !declared.Removes {
		return nil, apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name,
			fmt.Errorf("nothing may remove from live objects what the feature leaves; delete or replace those that the condition Clean names"))
	}
	if err := transition.MayClean(feature, c.gather(feature.Name, c.config.Clock.Now())); err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("features"), feature.Name, err)
	}
	update := feature.DeepCopy()
	transition.Begin(&update.Status, false, v1alpha1.TransitionClean, declared, string(uuid.NewUUID()), c.config.Clock.Now())
	stored, err := c.config.Client.FeaturesV1alpha1().Features(feature.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return &v1alpha1.FeatureCleanupStatus{TransitionID: stored.Status.Transition.ID, Tasks: stored.Status.Tasks}, nil
}
