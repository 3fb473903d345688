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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

func TestShouldCreate(t *testing.T) {
	plain := tracker.Server{ID: "a", Reported: true}
	for name, test := range map[string]struct {
		view View
		want bool
	}{
		"no process":                     {View{}, false},
		"no server knows the gate":       {View{Servers: []tracker.Server{plain}}, false},
		"a server knows the gate":        {View{Servers: []tracker.Server{plain, server("b", false)}}, true},
		"another component reports it":   {View{Servers: []tracker.Server{plain}, Reporters: []tracker.Server{server("c", true)}}, true},
		"a user that cannot announce it": {View{Instances: []tracker.Instance{{Name: "n"}}}, false},
	} {
		if got := ShouldCreate(test.view); got != test.want {
			t.Errorf("%s: it is created: %t", name, got)
		}
	}
}

// waitsForUses returns a feature whose transition waits for users with the other value.
func waitsForUses() *v1alpha1.Feature {
	f := feature(v1alpha1.StateTurningOn, v1alpha1.TaskWaitForUses, "Apply")
	f.Status.Transition = &v1alpha1.FeatureTransition{ID: "1"}
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: true}
	f.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUsesMatch, Status: metav1.ConditionFalse, Message: "3 live users"}}
	f.Status.Uses = []v1alpha1.FeatureUse{
		{Component: "kubelet", Enabled: new(false), Count: 5},
		{Component: "kubelet", Enabled: new(true), Count: 7},
		{Component: "kubelet", Count: 1},
	}
	return f
}

// changed returns what a change makes of a feature that waits for users.
func changed(change func(*v1alpha1.Feature)) *v1alpha1.Feature {
	f := waitsForUses()
	change(f)
	return f
}

func TestChangesOfStoredFeature(t *testing.T) {
	before := waitsForUses()
	for name, test := range map[string]struct {
		after           *v1alpha1.Feature
		stepped, awaits bool
		awaited         int
	}{
		"nothing":            {before, false, true, 6},
		"it counts again":    {changed(func(f *v1alpha1.Feature) { f.Status.Uses = nil }), false, true, 6},
		"nothing configured": {changed(func(f *v1alpha1.Feature) { f.Status.Configured = nil }), false, true, 13},
		"a task is done":     {changed(func(f *v1alpha1.Feature) { f.Status.Tasks = f.Status.Tasks[1:] }), true, false, 6},
		"another transition": {changed(func(f *v1alpha1.Feature) { f.Status.Transition.ID = "2" }), true, true, 6},
		"it ends": {changed(func(f *v1alpha1.Feature) {
			f.Status.State, f.Status.Transition, f.Status.Tasks = v1alpha1.StateOn, nil, nil
		}), true, false, 6},
		"a change of version": {changed(func(f *v1alpha1.Feature) { f.Status.State = v1alpha1.StateUpgrading }), true, false, 6},
		"all users have it":   {changed(func(f *v1alpha1.Feature) { f.Status.Conditions[0].Status = metav1.ConditionTrue }), false, false, 6},
	} {
		if got := Stepped(&before.Status, &test.after.Status); got != test.stepped {
			t.Errorf("%s: it stepped: %t", name, got)
		}
		if got := AwaitsUsers(&test.after.Status); got != test.awaits {
			t.Errorf("%s: it awaits users: %t", name, got)
		}
		if got := Awaited(&before.Status, &test.after.Status); got != test.awaited {
			t.Errorf("%s: %d users are awaited, want %d", name, got, test.awaited)
		}
	}
}

// TestWidened: the end of a canary is when those report that it left out.
func TestWidened(t *testing.T) {
	canary := changed(func(f *v1alpha1.Feature) {
		f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Observed: *half()}
	})
	switched := changed(func(f *v1alpha1.Feature) {
		f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Value: true, Observed: v1alpha1.FeatureRollout{At: &metav1.Time{Time: start}}}
	})
	all := waitsForUses()
	for name, test := range map[string]struct {
		before, after *v1alpha1.Feature
		want          bool
	}{
		"it ends":          {canary, all, true},
		"it begins":        {all, canary, false},
		"it is under way":  {canary, canary, false},
		"its moment comes": {canary, switched, true},
		"and it ends":      {switched, all, false},
		"there is none":    {all, all, false},
		"all users agreed": {canary, changed(func(f *v1alpha1.Feature) { f.Status.Tasks = f.Status.Tasks[1:] }), false},
	} {
		if got := Widened(&test.before.Status, &test.after.Status); got != test.want {
			t.Errorf("%s: it was widened: %t", name, got)
		}
	}
}

func TestOnlyCounted(t *testing.T) {
	rests := func(change func(*v1alpha1.Feature)) *v1alpha1.Feature {
		return changed(func(f *v1alpha1.Feature) {
			f.Status.State, f.Status.Transition, f.Status.Tasks = v1alpha1.StateOn, nil, nil
			change(f)
		})
	}
	before := rests(func(*v1alpha1.Feature) {})
	for name, test := range map[string]struct {
		after *v1alpha1.Feature
		want  bool
	}{
		"uses":                  {rests(func(f *v1alpha1.Feature) { f.Status.Uses = nil }), true},
		"a message":             {rests(func(f *v1alpha1.Feature) { f.Status.Conditions[0].Message = "2 live users" }), true},
		"a condition":           {rests(func(f *v1alpha1.Feature) { f.Status.Conditions[0].Status = metav1.ConditionTrue }), false},
		"what is stored":        {rests(func(f *v1alpha1.Feature) { f.Status.StoredVersions = []string{"1.36"} }), false},
		"a rollout":             {rests(func(f *v1alpha1.Feature) { f.Spec.Rollout = &v1alpha1.FeatureRollout{} }), false},
		"a transition is there": {waitsForUses(), false},
	} {
		if got := OnlyCounted(before, test.after); got != test.want {
			t.Errorf("%s: only counts changed: %t", name, got)
		}
	}
}

func TestDiffers(t *testing.T) {
	for kind, want := range map[string]bool{v1alpha1.ConditionConsistent: true, v1alpha1.ConditionUsesMatch: true, v1alpha1.ConditionClean: false} {
		for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse} {
			got := Differs(&v1alpha1.FeatureStatus{Conditions: []metav1.Condition{{Type: kind, Status: status}}})
			if got != (want && status == metav1.ConditionFalse) {
				t.Errorf("%s is %s: it differs: %t", kind, status, got)
			}
		}
	}
}

func TestOrphanedAttempt(t *testing.T) {
	attempt := &Attempt{TransitionID: "1", Task: "Apply"}
	for name, test := range map[string]struct {
		feature *v1alpha1.Feature
		want    bool
	}{
		"its task is the first":    {changed(func(f *v1alpha1.Feature) { f.Status.Tasks = f.Status.Tasks[1:] }), false},
		"an older version":         {waitsForUses(), false},
		"its task is done":         {changed(func(f *v1alpha1.Feature) { f.Status.Tasks = f.Status.Tasks[:1] }), true},
		"another transition":       {changed(func(f *v1alpha1.Feature) { f.Status.Transition.ID = "2" }), true},
		"the transition has ended": {changed(func(f *v1alpha1.Feature) { f.Status.Transition = nil }), true},
	} {
		if got := attempt.Orphaned(test.feature); got != test.want {
			t.Errorf("%s: orphaned: %t", name, got)
		}
	}
}
