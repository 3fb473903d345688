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
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

// This file has what changes of stored Features mean for their reconciliation: whether
// to create one, when to reconcile it again, and what to stop.

// ShouldCreate returns true for a gate that live processes know. If it has no Feature,
// one is created.
func ShouldCreate(view View) bool {
	return len(view.Reporters) > 0 || slices.ContainsFunc(view.Servers, func(s tracker.Server) bool { return s.Knows })
}

// OnlyCounted returns true when nothing is under way, and nothing has changed but the
// counts, and what conditions contain of them. A canary depends on the counts.
func OnlyCounted(before, after *v1alpha1.Feature) bool {
	if before.Status.Transition != nil || after.Status.Transition != nil || after.Spec.Rollout != nil {
		return false
	}
	rest := func(f *v1alpha1.Feature) *v1alpha1.FeatureStatus {
		without := f.Status
		without.Uses, without.Conditions = nil, slices.Clone(f.Status.Conditions)
		for i := range without.Conditions {
			without.Conditions[i].Message = ""
		}
		return &without
	}
	return equality.Semantic.DeepEqual(rest(before), rest(after))
}

// AwaitsUsers returns true while a transition waits for users that have the other
// value: there is nothing to do before they report.
func AwaitsUsers(s *v1alpha1.FeatureStatus) bool {
	// Changes of version wait for servers.
	return s.Transition != nil && !OfVersion(s.State) && len(s.Tasks) > 0 && s.Tasks[0].Name == v1alpha1.TaskWaitForUses &&
		meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionUsesMatch)
}

// Awaited returns how many users are about to report the value that a transition has
// begun to wait for: by the last counts, those that had another one.
func Awaited(before, after *v1alpha1.FeatureStatus) int {
	uses := after.Uses
	if len(uses) == 0 {
		// It has just begun: they are counted again.
		uses = before.Uses
	}
	users := 0
	for _, use := range uses {
		if use.Enabled == nil || after.Configured == nil || *use.Enabled != after.Configured.Value {
			users += int(use.Count)
		}
	}
	return users
}

// Stepped returns true when a transition began, ended or completed a step: there is
// something to do now, or an attempt to stop.
func Stepped(before, after *v1alpha1.FeatureStatus) bool {
	under := func(s *v1alpha1.FeatureStatus) string {
		if s.Transition == nil {
			return ""
		}
		return s.Transition.ID
	}
	return before.State != after.State || under(before) != under(after) || len(before.Tasks) != len(after.Tasks)
}

// Widened returns true when a transition that waits for users goes from a part of them to
// all: those that were left out take the value, and report it.
func Widened(before, after *v1alpha1.FeatureStatus) bool {
	limited := func(s *v1alpha1.FeatureStatus) bool { return s.Rollout != nil && rollout.Limits(&s.Rollout.Observed) }
	return limited(before) && !limited(after) && AwaitsUsers(after)
}

// Differs returns true while a user has another value than the state.
func Differs(status *v1alpha1.FeatureStatus) bool {
	return meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionConsistent) || meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionUsesMatch)
}

// Orphaned returns true when the task of the attempt has been finished or replaced, by
// this server or another one. An older version of the feature does not make
// it true: a list of tasks only gets shorter, and what an attempt began with had its
// transition.
func (a *Attempt) Orphaned(feature *v1alpha1.Feature) bool {
	return feature.Status.Transition == nil || feature.Status.Transition.ID != a.TransitionID ||
		!slices.ContainsFunc(feature.Status.Tasks, func(t v1alpha1.FeatureTask) bool { return t.Name == a.Task })
}
