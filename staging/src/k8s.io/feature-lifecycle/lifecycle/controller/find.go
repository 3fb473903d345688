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
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// has is true when a report is known.
func (x *index) has(report string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.processes[report] != nil
}

// named is true when a report names the Lease.
func (x *index) named(lease types.NamespacedName) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byLease[lease]) > 0
}

// naming returns the reports that name a Lease, sorted by name.
func (x *index) naming(lease types.NamespacedName) []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sortedReports(x.byLease[lease])
}

// onNode returns the reports of processes that are alive while a Node is Ready,
// sorted by name.
func (x *index) onNode(node string) []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sortedReports(x.byNode[node])
}

// ofComponent returns the reports of a component, sorted by name.
func (x *index) ofComponent(component string) []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sortedReports(x.byComponent[component])
}

// gates are what a report says of all features, by name. They must not be changed.
func (x *index) gates(report string) map[string]*v1alpha1.ReportedFeature {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.processes[report]; p != nil {
		return p.cohort.byName
	}
	return nil
}

// counts are the reports by component.
func (x *index) counts() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := map[string]int{}
	for component, processes := range x.byComponent {
		counts[component] = len(processes)
	}
	return counts
}

// silentNodes are the nodes whose kubelet has no report, sorted, and a number that
// changes whenever they may have changed.
func (x *index) silentNodes() (names []string, generation uint64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.reportless)), x.generation
}

// changes is the number of silentNodes.
func (x *index) changes() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.generation
}

// featuresOf returns the features that reports list, or that earlier processes of
// theirs asked for, sorted.
func (x *index) featuresOf(reports []*v1alpha1.FeatureReport) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]bool{}
	for _, report := range reports {
		if p := x.processes[report.Name]; p != nil {
			for name := range p.cohort.byName {
				found[name] = true
			}
			x.addDependences(found, p, nil)
		}
		for name := range x.inheritedGates(report.Name) {
			found[name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// all returns every feature that a report lists, or that an earlier process of one
// asked for, sorted.
func (x *index) all() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.features))
}
