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

package versionskew

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// held lists the reasons of the condition Progressing with which a transition does not
// proceed by itself. The messages name the next step.
var held = []string{
	v1alpha1.ReasonPaused, v1alpha1.ReasonRolloutHalted, v1alpha1.ReasonBlocked, v1alpha1.ReasonUnknownTask,
	v1alpha1.ReasonWaitingForAgreement, v1alpha1.ReasonMixedVersions,
}

// atRest is false, with the answer, for a feature that is neither on nor off, or is
// to become the other.
func (q Input) atRest() (Result, bool) {
	state, configured := q.Feature.Status.State, Configured(q.Feature)
	why := fmt.Sprintf("the feature is %s", state)
	switch state {
	case "":
		return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion, Why: "the feature has no state yet", Next: "wait until a kube-apiserver has reconciled it"}, false
	case v1alpha1.StateOn, v1alpha1.StateOff:
		if configured == nil || configured.Value == (state == v1alpha1.StateOn) {
			return Result{}, true
		}
		why = fmt.Sprintf("the feature is %s and configured as %t, and has not begun to change", state, configured.Value)
	}
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInTransition, Why: why, Next: q.wait()}, false
}

// wait describes how a transition completes. Stored objects have to wait for that,
// however long it is held.
func (q Input) wait() string {
	status := &q.Feature.Status
	progress := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
	switch {
	case progress != nil && slices.Contains(held, progress.Reason):
		return "it does not proceed by itself: " + progress.Message
	case status.Rollout != nil && status.Configured != nil:
		return fmt.Sprintf("it does not end by itself, since spec.rollout limits the value to a part of the instances: widen or remove spec.rollout, or call it off by asking for %t, and wait until it is On or Off", !status.Configured.Value)
	default:
		return fmt.Sprintf("wait until it is On or Off (kubectl get features -n %s %s)", q.Feature.Namespace, q.Feature.Name)
	}
}

// settled withdraws the answer that a move is safe while processes contradict the
// feature's recorded state, on which everything else here relies. A user with the
// feature off while it is on does no harm to stored objects: nodes may run a version
// that has it off. It also withdraws the answer for the way up while the search failed for
// what servers of the cluster's version do not read. The version below may read it.
func (q Input) settled(v Result) Result {
	if v.Status != metav1.ConditionTrue {
		return v
	}
	status := &q.Feature.Status
	consistent, clean := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionConsistent), meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionClean)
	switch {
	case consistent != nil && consistent.Status == metav1.ConditionFalse &&
		(consistent.Reason == v1alpha1.ReasonServersDisagree || consistent.Reason == v1alpha1.ReasonReportMissing):
		return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonUnsettled, Why: "the servers do not agree on the value: " + consistent.Message, Next: "wait until the condition Consistent is True"}
	case status.State == v1alpha1.StateOff && meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionUsesMatch):
		return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonUnsettled,
			Why:  "the feature is off, and what processes store that have it on is not known: " + meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUsesMatch).Message,
			Next: "wait until the condition UsesMatch is True"}
	case status.State == v1alpha1.StateOn && !q.Down && clean != nil && clean.Reason == v1alpha1.ReasonNotExamined:
		return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion, Why: clean.Message, Next: "wait until the condition Clean has another reason than " + v1alpha1.ReasonNotExamined}
	default:
		return v
	}
}
