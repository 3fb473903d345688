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
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// undecidedUsers says of a plan for a value which processes may use the feature and have not
// said so: those that report for less than a report may be late. Unless the feature is
// dynamic, servers are none of them, since they configure the value. Users of a dynamic
// feature follow by themselves, but for those that set the value.
func (c *Controller) undecidedUsers(feature *v1alpha1.Feature, view transition.View, value bool, now time.Time) []string {
	dynamic := feature.Status.Control == v1alpha1.ControlDynamic
	instances := slices.DeleteFunc(slices.Concat(view.Instances, view.Replaced), func(i tracker.Instance) bool {
		return i.Component == c.config.Component && !dynamic
	})
	undecided := tracker.Undecided(instances, value, c.config.Settings.Settings, now)
	if !dynamic {
		for _, report := range c.reports.newcomers(now.Add(-c.config.Settings.ReportPeriod)) {
			name := report.Spec.Component + "/" + report.Spec.Instance
			alive, _, exists := c.alive(report, now)
			said, listed := c.reports.says(report.Name, feature.Name)
			if alive && exists && report.Spec.Component != c.config.Component && (!listed || !said.gate.Queried) {
				undecided = append(undecided, name)
			}
		}
		slices.Sort(undecided)
		undecided = slices.Compact(undecided)
	}
	if len(undecided) == 0 {
		return nil
	}
	return []string{transition.UsersUndecided(undecided, c.config.Settings.ReportPeriod)}
}

// newcomers are the reports of processes that were first seen after a time, sorted by name.
func (x *index) newcomers(after time.Time) []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]*member{}
	for name, p := range x.processes {
		if p.since.After(after) {
			found[name] = p
		}
	}
	return sortedReports(found)
}
