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
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// with returns a feature with a condition.
func with(f *v1alpha1.Feature, kind string, status metav1.ConditionStatus, reason, message string) *v1alpha1.Feature {
	f = f.DeepCopy()
	meta.SetStatusCondition(&f.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	return f
}

// due returns a feature that is off and configured to be on.
func due() *v1alpha1.Feature {
	f := feature(v1alpha1.StateOff)
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine}
	return f
}

// pending returns a feature that is off and requested, while the answer is postponed.
func pending() *v1alpha1.Feature {
	f := feature(v1alpha1.StateOff)
	f.Spec.Enabled = ptr.To(true)
	f.Status.Control, f.Status.Configured = v1alpha1.ControlDynamic, &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}
	return f
}

// limited returns a feature in a canary.
func limited(halted bool) *v1alpha1.Feature {
	f := due()
	f.Status.State = v1alpha1.StateTurningOn
	f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Halted: halted, StartTime: metav1.NewMicroTime(time.Unix(0, 0))}
	return f
}

// TestUnsettledFeatureNotSafe: a picture that is about to change is not safe, and one in
// which processes contradict each other is not known.
func TestUnsettledFeatureNotSafe(t *testing.T) {
	on, off := feature(v1alpha1.StateOn), feature(v1alpha1.StateOff)
	progressing := func(f *v1alpha1.Feature, reason, message string) *v1alpha1.Feature {
		return with(f, v1alpha1.ConditionProgressing, metav1.ConditionFalse, reason, message)
	}
	disagree := func(f *v1alpha1.Feature, reason string) *v1alpha1.Feature {
		return with(f, v1alpha1.ConditionConsistent, metav1.ConditionFalse, reason, "on in a, off in b")
	}
	differ := func(f *v1alpha1.Feature) *v1alpha1.Feature {
		return with(f, v1alpha1.ConditionUsesMatch, metav1.ConditionFalse, v1alpha1.ReasonUsersDiffer, "1 live user has the feature on")
	}
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		status  metav1.ConditionStatus
		reason  string
		says    string
	}{
		"off, and configured as on": {due(), metav1.ConditionFalse, v1alpha1.ReasonInTransition, "the feature is Off and configured as true, and has not begun to change; wait until"},
		"off, configured as on, and paused": {progressing(due(), v1alpha1.ReasonPaused, "spec.paused holds the feature; set it to false to let the transition start"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "does not proceed by itself: spec.paused holds the feature; set it to false"},
		"off, asked for, and paused": {progressing(pending(), v1alpha1.ReasonPaused, "spec.paused holds the feature; set it to false to let the transition start"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "configured as true, and has not begun to change; it does not proceed by itself: spec.paused holds the feature"},
		"a canary that was halted": {progressing(limited(true), v1alpha1.ReasonRolloutHalted, "the rollout was halted. Change spec.rollout"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "does not proceed by itself: the rollout was halted. Change spec.rollout"},
		"a canary that goes to a part": {progressing(limited(false), v1alpha1.ReasonWaitingForUses, "waiting for 3 users"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "widen or remove spec.rollout, or call it off by asking for false"},
		"a task that is blocked": {progressing(feature(v1alpha1.StateTurningOff), v1alpha1.ReasonBlocked, "WaitForNone: delete shop/web"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "delete shop/web"},
		"a task that runs": {progressing(feature(v1alpha1.StateTurningOff), v1alpha1.ReasonRunningTask, "ClearField"),
			metav1.ConditionFalse, v1alpha1.ReasonInTransition, "wait until it is On or Off"},
		"off, and servers disagree":            {disagree(off, v1alpha1.ReasonServersDisagree), metav1.ConditionUnknown, v1alpha1.ReasonUnsettled, "on in a, off in b"},
		"on, and a server has not reported":    {disagree(on, v1alpha1.ReasonReportMissing), metav1.ConditionUnknown, v1alpha1.ReasonUnsettled, "Consistent"},
		"a gate that is no longer known":       {disagree(off, v1alpha1.ReasonNotKnown), metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"off, and a user has it on":            {differ(off), metav1.ConditionUnknown, v1alpha1.ReasonUnsettled, "1 live user has the feature on; wait until the condition UsesMatch is True"},
		"on, and a user has it off, as older ": {differ(on), metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, down := range []bool{false, true} {
				got := Evaluate(Input{Feature: tc.feature, To: "1.35", Down: down, Current: beta, Target: beta})
				if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message(), tc.says) {
					t.Errorf("down %t: got %+v, want %s %s saying %q", down, got, tc.status, tc.reason, tc.says)
				}
			}
			if got := EvaluateAhead(Input{Feature: tc.feature, To: "1.37", Current: ga}); got.Status != tc.status || got.Reason != tc.reason {
				t.Errorf("ahead: got %+v, want %s %s", got, tc.status, tc.reason)
			}
		})
	}
	// Servers that cannot search do not know what they would lose on the way up.
	unexamined := feature(v1alpha1.StateOn)
	unexamined.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExamined, Message: "no key"}}
	for name, got := range map[string]Result{
		"up":    Evaluate(Input{Feature: unexamined, To: "1.37", Current: beta, Target: beta}),
		"ahead": EvaluateAhead(Input{Feature: unexamined, To: "1.37", Current: ga}),
	} {
		if got.Status != metav1.ConditionUnknown || got.Reason != v1alpha1.ReasonNotExaminedForVersion || got.Why != "no key" || got.Next == "" {
			t.Errorf("not searched, %s: got %+v", name, got)
		}
	}
	if got := Evaluate(Input{Feature: unexamined, To: "1.35", Down: true, Current: beta, Target: beta}); got.Status != metav1.ConditionTrue {
		t.Errorf("not searched, down: got %+v", got)
	}
	// A problem that exists in any case is reported first.
	if got := Evaluate(Input{Feature: disagree(on, v1alpha1.ReasonServersDisagree), To: "1.35", Down: true, Current: beta, Target: absent, Clears: true}); got.Reason != v1alpha1.ReasonNotInAdjacentVersion {
		t.Errorf("got %+v", got)
	}
}

// TestStartupBlockingLeftovers: tasks of an upgrade run once all servers
// have the version, and these would never serve.
func TestStartupBlockingLeftovers(t *testing.T) {
	on, off := configured(v1alpha1.SourceCommandLine), feature(v1alpha1.StateOff)
	task := []string{"Upgrade/1.37/ClearUnreadable/workloads"}
	for name, tc := range map[string]struct {
		q      Input
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"on, and something is found": {Input{Feature: on, Current: alpha, Target: alpha, Looked: true, Obstacles: "3 workloads"}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks,
			"may never become ready while it finds what Upgrade/1.37/ClearUnreadable/workloads removes: 3 workloads; set --feature-gates=F=false in all components and wait until the feature is Off; turn it on again once status.version is 1.37"},
		"on, and nothing is found":    {Input{Feature: on, Current: alpha, Target: alpha, Looked: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"on, and not inspected":       {Input{Feature: on, Current: alpha, Target: alpha}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "kubectl feature upgrade-check --to 1.37"},
		"on by default from there on": {Input{Feature: off, Current: alpha, Target: beta, Looked: true, Obstacles: "3 workloads"}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "F=false"},
		"off on both sides":           {Input{Feature: off, Current: alpha, Target: alpha, Looked: true, Obstacles: "3 workloads"}, metav1.ConditionTrue, v1alpha1.ReasonSafe, "Upgrade/1.37"},
		"locked on both sides":        {Input{Feature: on, Current: ga, Target: ga, Looked: true, Obstacles: "3 workloads"}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "start the servers of 1.37 with --feature-gates=F=false"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.To, tc.q.Tasks, tc.q.StartupBlocking = "1.37", task, task
			got := Evaluate(tc.q)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message(), tc.says) {
				t.Errorf("got %+v, want %s %s saying %q", got, tc.status, tc.reason, tc.says)
			}
		})
	}
}
