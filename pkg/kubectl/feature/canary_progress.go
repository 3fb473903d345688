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

package feature

import (
	"context"
	"fmt"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/ptr"
)

// trial is the progress of a value that spec.rollout gives to a part of the
// instances.
type trial struct {
	value bool
	// chosen are the live users that the value is for, and taken those that have it.
	chosen, taken int64
	// unread has the reason why neither is known, "" when both are.
	unread string
	// failed is the error of this attempt to read; the next may succeed.
	failed error
}

// underWay returns true while instances are to take the value.
func (t *trial) underWay() bool { return t.failed != nil || t.unread == "" && t.taken < t.chosen }

// trial counts the instances with the value, by their reports. A lost process takes
// none, and a process with the gate on its own command line keeps that value
// (package rollout of the library).
func (o *setOptions) trial(ctx context.Context, f *v1alpha1.Feature) *trial {
	t := &trial{value: f.Status.Rollout.Value}
	all, err := gatherReports(ctx, o.client, f.Namespace)
	if err != nil {
		t.failed = err
		return t
	}
	if t.unread = all.unread; t.unread != "" {
		return t
	}
	used, err := all.of(ctx, newSigns(o.core), f)
	if err != nil {
		t.failed = err
		return t
	}
	for _, p := range used.Processes {
		instance := rollout.Instance{Component: p.Component, Name: p.Instance}
		if !ptr.Deref(p.Queried, false) || p.Explicit || p.life().unreachable() || !rollout.Includes(&f.Status.Rollout.Observed, f.Name, instance) {
			continue
		}
		t.chosen++
		if p.Enabled == t.value {
			t.taken++
		}
	}
	return t
}

// progress is part of the message of a timeout.
func (t *trial) progress() string {
	switch {
	case t.failed != nil:
		return fmt.Sprintf("; who has the value is not known: %s", printable(t.failed.Error()))
	case t.chosen > 0:
		return fmt.Sprintf("; %d of %s that it is for have it", t.taken, count(t.chosen, "instance"))
	default:
		return ""
	}
}

// done returns the message when all have the value, with the command that
// gives it to the others.
func (t *trial) done(f *v1alpha1.Feature) string {
	who := fmt.Sprintf("all of %s that it is for have the feature %s", count(t.chosen, "instance"), transition.OnOff(t.value))
	if t.chosen == 0 {
		who = "it is for none of the instances that use the feature"
	}
	return fmt.Sprintf("%s, since spec.rollout limits it to %s; %s", who, printable(transition.Audience(f.Spec.Rollout)), widen(f))
}

// unknown returns why it is not known whether all have the value.
func (t *trial) unknown(f *v1alpha1.Feature) string {
	return fmt.Sprintf("spec.rollout limits it to %s, and whether they have the value is not known: %s; %s",
		printable(transition.Audience(f.Spec.Rollout)), t.unread, widen(f))
}

func widen(f *v1alpha1.Feature) string {
	return fmt.Sprintf("kubectl feature rollout %s --percent=100 --components=%s gives it to all", f.Name, namespaceFlag(f))
}
