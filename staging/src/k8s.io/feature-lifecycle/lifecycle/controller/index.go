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
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/uses"
)

// index answers which reports list a feature without walking all reports: with
// 10,000 processes of 50 features each, only what changed may cost. Reports in
// it belong to the informer and are not changed. It is safe for concurrent use.
type index struct {
	mu       sync.RWMutex
	reports  map[string]*v1alpha1.FeatureReport
	features map[string]map[string]entry
	// crashes are the last times at which another process took over a report
	// without an orderly end of the one before, by report; no more than mostCrashes.
	crashes     map[string][]time.Time
	mostCrashes int
	// inherited is what earlier processes of a report asked for, by report, and
	// heirs are the reports with such of a feature, by feature.
	inherited map[string]*inheritance
	heirs     map[string]map[string]bool
}

// entry is what one report says of one feature.
type entry struct {
	report *v1alpha1.FeatureReport
	gate   *v1alpha1.ReportedFeature
	// since is when the report was first seen to say this.
	since time.Time
	// crashes are those of the process, oldest first.
	crashes []time.Time
}

// newIndex makes an index that remembers so many crashes of a process.
func newIndex(mostCrashes int) *index {
	return &index{
		reports: map[string]*v1alpha1.FeatureReport{}, features: map[string]map[string]entry{},
		crashes: map[string][]time.Time{}, mostCrashes: mostCrashes,
		inherited: map[string]*inheritance{}, heirs: map[string]map[string]bool{},
	}
}

// set puts a report in the place of the one of the same name and returns the
// features whose picture changed by it, sorted.
func (x *index) set(report *v1alpha1.FeatureReport, now time.Time) []string {
	return x.replace(report.Name, report, now)
}

// remove drops a report and returns the features whose picture changed by it.
func (x *index) remove(name string, now time.Time) []string {
	return x.replace(name, nil, now)
}

func (x *index) replace(name string, report *v1alpha1.FeatureReport, now time.Time) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.reports[name]
	// What counts for every feature of the process changes all of them.
	all := old == nil || report == nil || !sameProcess(&old.Spec, &report.Spec) || crashed(old, report)
	x.countCrash(name, old, report, now)
	changed := map[string]bool{}
	for _, feature := range x.inherit(name, old, report, now) {
		changed[feature] = true
	}
	before := map[string]entry{}
	if old != nil {
		for i := range old.Spec.Features {
			gate := &old.Spec.Features[i]
			changed[gate.Name] = true
			before[gate.Name] = x.features[gate.Name][name]
			delete(x.features[gate.Name], name)
		}
		delete(x.reports, name)
	}
	if report != nil {
		x.reports[name] = report
		for i := range report.Spec.Features {
			gate := &report.Spec.Features[i]
			since := now
			was := before[gate.Name].gate
			same := was != nil && *gate == *was
			if same {
				since = before[gate.Name].since
			}
			if same && !all {
				delete(changed, gate.Name)
			} else {
				changed[gate.Name] = true
			}
			if x.features[gate.Name] == nil {
				x.features[gate.Name] = map[string]entry{}
			}
			x.features[gate.Name][name] = entry{report, gate, since, x.crashes[name]}
		}
	}
	for feature := range changed {
		if len(x.features[feature]) == 0 {
			delete(x.features, feature)
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// countCrash needs the lock.
func (x *index) countCrash(name string, old, report *v1alpha1.FeatureReport, now time.Time) {
	switch {
	case report == nil, old != nil && old.UID != report.UID:
		// The one before took its report away.
		delete(x.crashes, name)
	case old != nil && crashed(old, report):
		// A new slice: entries hold the old one.
		all := append(slices.Clone(x.crashes[name]), now)
		x.crashes[name] = all[max(0, len(all)-x.mostCrashes):]
	}
}

// crashed is true when a report has passed to another process and the one before
// has not ended in order: it would have deleted the report, or said so. A process
// that is replaced while it still runs counts, too.
func crashed(old, report *v1alpha1.FeatureReport) bool {
	return old.UID == report.UID && otherProcess(old, report) && !uses.Ending(old)
}

// otherProcess is true when a report has passed to another process.
func otherProcess(old, report *v1alpha1.FeatureReport) bool {
	before, after := old.Annotations[v1alpha1.AnnotationProcess], report.Annotations[v1alpha1.AnnotationProcess]
	return before != "" && after != "" && before != after
}

func sameProcess(a, b *v1alpha1.FeatureReportSpec) bool {
	return a.BinaryVersion == b.BinaryVersion && a.EmulationVersion == b.EmulationVersion && a.NodeName == b.NodeName &&
		(a.Liveness.Lease == nil) == (b.Liveness.Lease == nil) &&
		(a.Liveness.Lease == nil || *a.Liveness.Lease == *b.Liveness.Lease)
}

// of returns the reports that list a feature, by report name.
func (x *index) of(feature string) map[string]entry {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return maps.Clone(x.features[feature])
}

// has is true when a report is known.
func (x *index) has(report string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.reports[report] != nil
}

// names matches the reports that name a Lease.
func names(key types.NamespacedName) func(*v1alpha1.FeatureReport) bool {
	return func(report *v1alpha1.FeatureReport) bool {
		lease := report.Spec.Liveness.Lease
		return lease != nil && lease.Namespace == key.Namespace && lease.Name == key.Name
	}
}

// named is true when a report names the Lease.
func (x *index) named(key types.NamespacedName) bool { return len(x.matching(names(key))) > 0 }

// ofComponent returns the reports of a component.
func (x *index) ofComponent(component string) []*v1alpha1.FeatureReport {
	return x.matching(func(report *v1alpha1.FeatureReport) bool { return report.Spec.Component == component })
}

// byComponent counts reports.
func (x *index) byComponent() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	counts := map[string]int{}
	for _, report := range x.reports {
		counts[report.Spec.Component]++
	}
	return counts
}

// matching returns the reports that match, sorted by name.
func (x *index) matching(match func(*v1alpha1.FeatureReport) bool) []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var reports []*v1alpha1.FeatureReport
	for _, report := range x.reports {
		if match(report) {
			reports = append(reports, report)
		}
	}
	slices.SortFunc(reports, func(a, b *v1alpha1.FeatureReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}

// where returns the features listed by the reports that match, or by earlier
// processes of them, sorted.
func (x *index) where(match func(*v1alpha1.FeatureReport) bool) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]bool{}
	for _, report := range x.reports {
		if match(report) {
			for i := range report.Spec.Features {
				found[report.Spec.Features[i].Name] = true
			}
			if h := x.inherited[report.Name]; h != nil {
				for feature := range h.gates {
					found[feature] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// all returns every feature that a report lists, sorted.
func (x *index) all() []string {
	return x.where(func(*v1alpha1.FeatureReport) bool { return true })
}
