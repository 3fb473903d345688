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
	"slices"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// undecidedUsers returns, for the plan of a value, the processes that may use the feature and
// have not reported it: those first seen less than the report period ago. Unless the feature is
// dynamic, servers are not among them, since they configure the value. Users of a dynamic
// feature follow by themselves, except those that set the value.
func (c *Controller) undecidedUsers(feature *v1alpha1.Feature, view transition.View, value bool, now time.Time) []string {
	dynamic := feature.Status.Control == v1alpha1.ControlDynamic
	instances := slices.DeleteFunc(slices.Concat(view.Instances, view.Replaced), func(i tracker.Instance) bool {
		return i.Component == c.config.Component && !dynamic
	})
	undecided := tracker.Undecided(instances, value, c.config.Settings.Settings, now)
	if !dynamic {
		undecided = append(undecided, c.tracker.Newcomers(feature.Name, now)...)
		slices.Sort(undecided)
		undecided = slices.Compact(undecided)
	}
	if len(undecided) == 0 {
		return nil
	}
	return []string{transition.UsersUndecided(undecided, c.config.Settings.ReportPeriod)}
}
