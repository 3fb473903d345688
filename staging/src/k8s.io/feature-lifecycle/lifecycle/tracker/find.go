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

package tracker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// has returns true when a report is known.
func (x *index) has(report string) bool {
	return x.processes[report] != nil
}

// named returns true when a report names the Lease.
func (x *index) named(lease types.NamespacedName) bool {
	return len(x.byLease[lease]) > 0
}

// naming returns the reports that name a Lease, sorted by name.
func (x *index) naming(lease types.NamespacedName) []*v1alpha1.FeatureReport {
	return sortedReports(x.byLease[lease])
}

// onNode returns the reports of processes that are alive while a Node is Ready,
// sorted by name.
func (x *index) onNode(node string) []*v1alpha1.FeatureReport {
	return sortedReports(x.byNode[node])
}

// ofComponent returns the reports of a component, sorted by name.
func (x *index) ofComponent(component string) []*v1alpha1.FeatureReport {
	return sortedReports(x.byComponent[component])
}

// gates returns what a report has of all features, by name. It must not be changed.
func (x *index) gates(report string) map[string]*v1alpha1.ReportedFeature {
	if p := x.processes[report]; p != nil {
		return p.group.byName
	}
	return nil
}

// counts returns the number of reports by component.
func (x *index) counts() map[string]int {
	counts := map[string]int{}
	for component, processes := range x.byComponent {
		counts[component] = len(processes)
	}
	return counts
}

// missingKubelets returns the nodes whose kubelet has no report, sorted. The result is
// the same as long as x.generation is.
func (x *index) missingKubelets() []string {
	return slices.Sorted(maps.Keys(x.reportless))
}

// featuresOf returns the features that reports list, or that earlier processes of
// theirs queried, sorted.
func (x *index) featuresOf(reports []*v1alpha1.FeatureReport) []string {
	found := map[string]bool{}
	for _, report := range reports {
		if p := x.processes[report.Name]; p != nil {
			for name := range p.group.byName {
				found[name] = true
			}
			x.addDependences(found, p, nil)
		}
		for name := range x.predecessorGates(report.Name) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// since returns the reports of processes that were first seen after a time, sorted by name.
func (x *index) since(after time.Time) []*v1alpha1.FeatureReport {
	found := map[string]*process{}
	for name, p := range x.processes {
		if p.since.After(after) {
			found[name] = p
		}
	}
	return sortedReports(found)
}
