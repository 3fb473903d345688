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
	"k8s.io/feature-lifecycle/lifecycle/safety"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// index answers which processes report a feature. Most processes of a large cluster
// report the same, so it keeps cohorts of them: what it holds grows with processes
// and with kinds of reports, and what a look at a feature costs grows with the cohorts
// and with the processes that are unusual. Only what has changed lately is held for
// each process and feature: after a restart of everything, for as long as a report may
// be late, since when each has a value set that it has not asked for (member.recent).
// Reports in it belong to the informer and are not changed. It is safe for concurrent
// use.
type index struct {
	config indexConfig

	mu        sync.RWMutex
	processes map[string]*member
	cohorts   map[cohortKey][]*cohort
	// features are the cohorts that list a feature, or have heirs that may use it.
	features map[string]map[*cohort]bool
	// byLease, byNode and byComponent are processes by report; those of byNode have
	// no Lease.
	byLease     map[types.NamespacedName]map[string]*member
	byNode      map[string]map[string]*member
	byComponent map[string]map[string]*member
	// stages are the cohorts with AllAlpha or AllBeta (safety.Stages).
	stages map[*cohort]map[v1alpha1.FeatureStage]bool
	// nodes are the nodes that are there.
	nodes map[string]nodeState
	// reportless are the nodes whose kubelet has no report.
	reportless map[string]bool
	// recent are the processes that have something in member.recent, crashed those
	// that have something in member.crashes.
	recent, crashed map[string]*member
	// inherited is what earlier processes of a report asked for, by report.
	inherited map[string]*inheritance
	// generation counts what silent processes depend on.
	generation uint64
}

// indexConfig is what an index has to know. The zero value will do, but remembers
// no crashes.
type indexConfig struct {
	// servers is the component of the servers, which are looked at one by one.
	servers string
	// mostCrashes is how many crashes of a process are remembered, and crashWindow
	// for how long (transition.CanarySettings).
	mostCrashes int
	crashWindow time.Duration
	// settled is for how long it matters since when a process reports a value
	// that it has not asked for (tracker.Settings.ReportPeriod).
	settled time.Duration
	// dependences are the gates whose picture changes with what a process is given
	// for another one (package safety).
	dependences map[string][]safety.Dependence
}

// member is a process that reports, a member of its cohort.
type member struct {
	report *v1alpha1.FeatureReport
	cohort *cohort
	// since is when the process was first seen to report.
	since time.Time
	// crashes are the last times at which another process took over the report
	// without an orderly end of the one before, oldest first, where that is not
	// long ago (indexConfig.crashWindow). The slice is replaced and not changed.
	crashes []time.Time
	// recent is since when the process says what it says of features that it has
	// not asked for, where that is not long ago (indexConfig.settled).
	recent map[string]time.Time
	// usual is true for one that its cohort counts without looking.
	usual bool
}

// nodeState is what matters of a node.
type nodeState struct {
	ready bool
	// kubelet is the version of its kubelet, which nobody else says while that has no
	// report.
	kubelet string
}

// entry is what one report says of one feature.
type entry struct {
	report *v1alpha1.FeatureReport
	gate   *v1alpha1.ReportedFeature
	// since is when the report was first seen to say this; zero when that is long
	// ago or the feature was asked for.
	since time.Time
	// crashes are those of the process, oldest first.
	crashes []time.Time
}

func newIndex(config indexConfig) *index {
	return &index{
		config:    config,
		processes: map[string]*member{}, cohorts: map[cohortKey][]*cohort{}, features: map[string]map[*cohort]bool{},
		byLease: map[types.NamespacedName]map[string]*member{}, byNode: map[string]map[string]*member{}, byComponent: map[string]map[string]*member{},
		nodes: map[string]nodeState{}, reportless: map[string]bool{}, recent: map[string]*member{}, crashed: map[string]*member{},
		inherited: map[string]*inheritance{}, stages: map[*cohort]map[v1alpha1.FeatureStage]bool{},
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
	old := x.processes[name]
	if old == nil && report == nil {
		return nil
	}
	var current *member
	if report != nil {
		current = &member{report: report, cohort: x.cohortOf(report), since: now}
		if old != nil && old.report.UID == report.UID && !otherProcess(old.report, report) {
			current.since = old.since
		}
		current.crashes = x.crashes(old, report, now)
		x.remember(current, old, now)
	}
	changed := changedFeatures(old, current)
	x.addDependences(changed, old, current)
	inherited, left := x.inherit(name, old, current, now)
	for _, feature := range inherited {
		changed[feature] = true
	}
	if old != nil {
		x.take(name, old)
	}
	if current != nil {
		x.put(name, current)
	}
	// Not before the present process is in its cohort, which may be one of them.
	if old != nil {
		left = append(left, old.cohort)
	}
	for _, c := range left {
		x.release(c)
	}
	if (old == nil) != (current == nil) {
		x.generation++
	}
	return slices.Sorted(maps.Keys(changed))
}

// changedFeatures are the features whose picture changes when one process takes
// the place of another; either may be nil.
func changedFeatures(old, current *member) map[string]bool {
	changed := map[string]bool{}
	list := func(p *member) {
		for i := range p.cohort.gates {
			changed[p.cohort.gates[i].Name] = true
		}
	}
	switch {
	case old == nil || current == nil || old.report.UID != current.report.UID || !sameProcess(&old.report.Spec, &current.report.Spec) || crashed(old.report, current.report):
		// What counts for every feature of the process changes all of them.
		for _, p := range []*member{old, current} {
			if p != nil {
				list(p)
			}
		}
	case old.cohort != current.cohort:
		for name, gate := range current.cohort.byName {
			if before, listed := old.cohort.byName[name]; !listed || *before != *gate {
				changed[name] = true
			}
		}
		for name := range old.cohort.byName {
			if _, listed := current.cohort.byName[name]; !listed {
				changed[name] = true
			}
		}
	}
	return changed
}

// crashes needs the lock.
func (x *index) crashes(old *member, report *v1alpha1.FeatureReport, now time.Time) []time.Time {
	switch {
	case old == nil, old.report.UID != report.UID:
		// The one before took its report away.
		return nil
	case crashed(old.report, report):
		all := append(slices.Clone(old.crashes), now)
		return all[max(0, len(all)-x.config.mostCrashes):]
	default:
		return old.crashes
	}
}

// remember notes since when a process says what it says of features that it has
// not asked for. It needs the lock.
func (x *index) remember(current, old *member, now time.Time) {
	for i := range current.cohort.gates {
		gate := &current.cohort.gates[i]
		if gate.Queried {
			continue
		}
		since := now
		if old != nil {
			if before := old.cohort.byName[gate.Name]; before != nil && *before == *gate {
				since = old.recent[gate.Name]
			}
		}
		if since.IsZero() || !now.Before(since.Add(x.config.settled)) {
			continue
		}
		if current.recent == nil {
			current.recent = map[string]time.Time{}
		}
		current.recent[gate.Name] = since
	}
}

// settle drops what is no longer recent. Who has crashed and does not any more is
// like all others again, as after a restart of everything that went wrong.
func (x *index) settle(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, p := range x.recent {
		maps.DeleteFunc(p.recent, func(_ string, since time.Time) bool { return !now.Before(since.Add(x.config.settled)) })
		if len(p.recent) == 0 {
			delete(x.recent, name)
		}
	}
	for name, p := range x.crashed {
		old := 0
		for old < len(p.crashes) && !now.Before(p.crashes[old].Add(x.config.crashWindow)) {
			old++
		}
		if old == 0 {
			continue
		}
		if p.crashes = p.crashes[old:]; len(p.crashes) == 0 {
			p.crashes = nil
			delete(x.crashed, name)
			x.leave(name, p)
			x.join(name, p)
		}
	}
}

// put adds a process to everything that finds it. It needs the lock.
func (x *index) put(name string, p *member) {
	spec := &p.report.Spec
	x.processes[name] = p
	insert(x.byComponent, spec.Component, name, p)
	if lease := spec.Liveness.Lease; lease != nil {
		insert(x.byLease, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, name, p)
	} else if spec.NodeName != "" {
		insert(x.byNode, spec.NodeName, name, p)
	}
	if len(p.recent) > 0 {
		x.recent[name] = p
	}
	if len(p.crashes) > 0 {
		x.crashed[name] = p
	}
	if spec.Component == kubelet {
		x.noteKubelet(spec.Instance)
	}
	x.join(name, p)
}

// take takes a process out of everything that finds it. It needs the lock.
func (x *index) take(name string, p *member) {
	spec := &p.report.Spec
	delete(x.processes, name)
	drop(x.byComponent, spec.Component, name)
	if lease := spec.Liveness.Lease; lease != nil {
		drop(x.byLease, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, name)
	} else if spec.NodeName != "" {
		drop(x.byNode, spec.NodeName, name)
	}
	delete(x.recent, name)
	delete(x.crashed, name)
	if spec.Component == kubelet {
		x.noteKubelet(spec.Instance)
	}
	x.leave(name, p)
}

// insert and drop change a map of maps, which has no empty ones.
func insert[K comparable](of map[K]map[string]*member, key K, name string, p *member) {
	if of[key] == nil {
		of[key] = map[string]*member{}
	}
	of[key][name] = p
}

func drop[K comparable](of map[K]map[string]*member, key K, name string) {
	delete(of[key], name)
	if len(of[key]) == 0 {
		delete(of, key)
	}
}

// node records what a node is, or that it has gone if there is false.
func (x *index) node(name string, there bool, state nodeState) {
	x.mu.Lock()
	defer x.mu.Unlock()
	was, known := x.nodes[name]
	if there {
		x.nodes[name] = state
	} else {
		delete(x.nodes, name)
	}
	if known == there && was.ready == state.ready {
		if was != state && x.reportless[name] {
			x.generation++
		}
		return
	}
	x.generation++
	x.noteKubelet(name)
	for report, p := range x.byNode[name] {
		x.leave(report, p)
		x.join(report, p)
	}
}

// noteKubelet records whether the kubelet of a node lacks a report. It needs the
// lock.
func (x *index) noteKubelet(node string) {
	_, there := x.nodes[node]
	if there && x.processes[kubelet+"."+node] == nil {
		x.reportless[node] = true
	} else {
		delete(x.reportless, node)
	}
}

// crashed is true when a report has passed to another process and the one before
// has not ended in order: it would have deleted the report, or said so. A process
// that is replaced while it still runs counts, too.
func crashed(old, report *v1alpha1.FeatureReport) bool {
	return old.UID == report.UID && otherProcess(old, report) && !tracker.Terminating(old)
}

// otherProcess is true when a report has passed to another process.
func otherProcess(old, report *v1alpha1.FeatureReport) bool {
	before, after := old.Spec.Process, report.Spec.Process
	return before != "" && after != "" && before != after
}

func sameProcess(a, b *v1alpha1.FeatureReportSpec) bool {
	return a.BinaryVersion == b.BinaryVersion && a.EmulationVersion == b.EmulationVersion && a.NodeName == b.NodeName &&
		(a.Liveness.Lease == nil) == (b.Liveness.Lease == nil) &&
		(a.Liveness.Lease == nil || *a.Liveness.Lease == *b.Liveness.Lease)
}

// sortedReports needs the lock.
func sortedReports(processes map[string]*member) []*v1alpha1.FeatureReport {
	reports := make([]*v1alpha1.FeatureReport, 0, len(processes))
	for _, p := range processes {
		reports = append(reports, p.report)
	}
	slices.SortFunc(reports, func(a, b *v1alpha1.FeatureReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}
