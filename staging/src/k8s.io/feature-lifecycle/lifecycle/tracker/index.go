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
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// index finds the processes that report a feature. Most processes of a large cluster
// report the same, so it keeps groups of them. Its size grows with processes and with
// kinds of reports. The cost of a query grows with the groups and with the processes
// that are not uniform.
//
// Only recent changes are held for each process and feature (process.recent). After a
// restart of everything, all values that are set and not queried are recent, for as
// long as a report may be late. Reports belong to the informer and are not changed. The
// lock of Tracker guards the index.
type index struct {
	config indexConfig

	processes map[string]*process
	groups    map[groupKey][]*group
	// features are the groups that list a feature, or have replacements that may use it.
	features map[string]map[*group]bool
	// byLease, byNode and byComponent are processes by report; those of byNode have
	// no Lease.
	byLease     map[types.NamespacedName]map[string]*process
	byNode      map[string]map[string]*process
	byComponent map[string]map[string]*process
	// stages are the groups with AllAlpha or AllBeta (versionskew.Stages).
	stages map[*group]map[v1alpha1.FeatureStage]bool
	// nodes are the Nodes that exist.
	nodes map[string]nodeState
	// reportless are the nodes whose kubelet has no report.
	reportless map[string]bool
	// recent are the processes with something in process.recent, crashed those with
	// something in process.crashes.
	recent, crashed map[string]*process
	// predecessors are the earlier processes of reports, by report.
	predecessors map[string]*predecessors
	// generation counts changes that missing reports depend on.
	generation uint64
}

// indexConfig configures an index. The zero value remembers no crashes.
type indexConfig struct {
	// servers is the component of the servers, which are never uniform.
	servers string
	// maxCrashes is the number of crashes of a process that are remembered, and
	// crashWindow for how long (transition.CanarySettings).
	maxCrashes  int
	crashWindow time.Duration
	// settled is for how long it matters since when a process reports a value
	// that it has not queried (Settings.ReportPeriod).
	settled time.Duration
	// dependences maps a gate to the gates whose safety changes with what a process sets
	// for it (Config.Dependences).
	dependences map[string][]versionskew.Dependence
}

// process is a process that reports.
type process struct {
	report *v1alpha1.FeatureReport
	group  *group
	// since is the time at which the process was first seen to report.
	since time.Time
	// crashes are the last times at which another process took over the report without a
	// graceful end of its predecessor, oldest first. Those outside indexConfig.crashWindow
	// are dropped. The slice is replaced and not changed.
	crashes []time.Time
	// recent is since when the process reports what it reports of features that it has
	// not queried, where that is not long ago (indexConfig.settled).
	recent map[string]time.Time
	// uniform is true for a process of group.uniform.
	uniform bool
}

// record holds what one report has of one feature.
type record struct {
	report *v1alpha1.FeatureReport
	gate   *v1alpha1.ReportedFeature
	// since is the time at which the report was first seen to have this. It is zero when that is long
	// ago or the feature was queried.
	since time.Time
	// crashes are those of the process, oldest first.
	crashes []time.Time
}

func newIndex(config indexConfig) *index {
	return &index{
		config:    config,
		processes: map[string]*process{}, groups: map[groupKey][]*group{}, features: map[string]map[*group]bool{},
		byLease: map[types.NamespacedName]map[string]*process{}, byNode: map[string]map[string]*process{}, byComponent: map[string]map[string]*process{},
		nodes: map[string]nodeState{}, reportless: map[string]bool{}, recent: map[string]*process{}, crashed: map[string]*process{},
		predecessors: map[string]*predecessors{}, stages: map[*group]map[v1alpha1.FeatureStage]bool{},
	}
}

// set replaces the report of the same name and returns the features that this may
// change, sorted.
func (x *index) set(report *v1alpha1.FeatureReport, now time.Time) []string {
	return x.replace(report.Name, report, now)
}

// remove drops a report and returns the features that this may change.
func (x *index) remove(name string, now time.Time) []string {
	return x.replace(name, nil, now)
}

func (x *index) replace(name string, report *v1alpha1.FeatureReport, now time.Time) []string {
	old := x.processes[name]
	if old == nil && report == nil {
		return nil
	}
	var current *process
	if report != nil {
		current = &process{report: report, group: x.groupOf(report), since: now}
		if old != nil && old.report.UID == report.UID && !otherProcess(old.report, report) {
			current.since = old.since
		}
		current.crashes = x.crashes(old, report, now)
		x.remember(current, old, now)
	}
	changed := changedFeatures(old, current)
	x.addDependences(changed, old, current)
	features, left := x.keepPredecessor(name, old, current, now)
	for _, feature := range features {
		changed[feature] = true
	}
	x.exchange(name, old, current, left)
	if (old == nil) != (current == nil) {
		x.generation++
	}
	return slices.Sorted(maps.Keys(changed))
}

// exchange removes one process from every map and adds another; either may be nil. Groups
// that this leaves without processes, and those of left without one, are dropped.
func (x *index) exchange(name string, old, current *process, left []*group) {
	if old != nil {
		x.take(name, old)
		left = append(left, old.group)
	}
	if current != nil {
		// It may join one of the groups that were left.
		x.put(name, current)
	}
	for _, c := range left {
		x.release(c)
	}
}

// changedFeatures returns the features that may change when one process replaces
// another; either may be nil.
func changedFeatures(old, current *process) map[string]bool {
	changed := map[string]bool{}
	list := func(p *process) {
		for i := range p.group.gates {
			changed[p.group.gates[i].Name] = true
		}
	}
	switch {
	case old == nil || current == nil || old.report.UID != current.report.UID || !sameProcess(&old.report.Spec, &current.report.Spec) || crashed(old.report, current.report):
		// Every feature of the process depends on this.
		for _, p := range []*process{old, current} {
			if p != nil {
				list(p)
			}
		}
	case old.group != current.group:
		for name, gate := range current.group.byName {
			if before, listed := old.group.byName[name]; !listed || *before != *gate {
				changed[name] = true
			}
		}
		for name := range old.group.byName {
			if _, listed := current.group.byName[name]; !listed {
				changed[name] = true
			}
		}
	}
	return changed
}

// crashes returns the crashes of the process that writes a report after another.
func (x *index) crashes(old *process, report *v1alpha1.FeatureReport, now time.Time) []time.Time {
	switch {
	case old == nil, old.report.UID != report.UID:
		// The process before deleted its report.
		return nil
	case crashed(old.report, report):
		all := append(slices.Clone(old.crashes), now)
		return all[max(0, len(all)-x.config.maxCrashes):]
	default:
		return old.crashes
	}
}

// remember records since when a process has what it reports of features that it has
// not queried.
func (x *index) remember(current, old *process, now time.Time) {
	for i := range current.group.gates {
		gate := &current.group.gates[i]
		if gate.Queried {
			continue
		}
		since := now
		if old != nil {
			if before := old.group.byName[gate.Name]; before != nil && *before == *gate {
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

// settle drops what is no longer recent. A process whose crashes are long ago becomes
// uniform again, as after an outage of everything.
func (x *index) settle(now time.Time) {
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

// put adds a process to every map.
func (x *index) put(name string, p *process) {
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

// take removes a process from every map.
func (x *index) take(name string, p *process) {
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

// insert adds to a map of maps.
func insert[K comparable](of map[K]map[string]*process, key K, name string, p *process) {
	if of[key] == nil {
		of[key] = map[string]*process{}
	}
	of[key][name] = p
}

// drop removes from a map of maps, and leaves no empty map in it.
func drop[K comparable](of map[K]map[string]*process, key K, name string) {
	delete(of[key], name)
	if len(of[key]) == 0 {
		delete(of, key)
	}
}

// setNode records a node, and returns whether it is new or became ready, or not ready.
func (x *index) setNode(name string, state nodeState) (changed bool) {
	was, known := x.nodes[name]
	x.nodes[name] = state
	if known && was.ready == state.ready {
		if was.kubelet != state.kubelet && x.reportless[name] {
			x.generation++
		}
		return false
	}
	x.nodeChanged(name)
	return true
}

// deleteNode drops a node.
func (x *index) deleteNode(name string) {
	if _, known := x.nodes[name]; known {
		delete(x.nodes, name)
		x.nodeChanged(name)
	}
}

// nodeChanged brings what depends on a node up to date.
func (x *index) nodeChanged(name string) {
	x.generation++
	x.noteKubelet(name)
	for report, p := range x.byNode[name] {
		x.leave(report, p)
		x.join(report, p)
	}
}

// noteKubelet records whether the kubelet of a node lacks a report.
func (x *index) noteKubelet(node string) {
	_, exists := x.nodes[node]
	if exists && x.processes[kubelet+"."+node] == nil {
		x.reportless[node] = true
	} else {
		delete(x.reportless, node)
	}
}

// crashed returns true when a report has passed to another process without a graceful
// end of its predecessor, which would have deleted the report, or annotated it. A
// process that is replaced while it still runs counts, too.
func crashed(old, report *v1alpha1.FeatureReport) bool {
	return old.UID == report.UID && otherProcess(old, report) && !Terminating(old)
}

// otherProcess returns true when a report has passed to another process.
func otherProcess(old, report *v1alpha1.FeatureReport) bool {
	before, after := old.Spec.Process, report.Spec.Process
	return before != "" && after != "" && before != after
}

func sameProcess(a, b *v1alpha1.FeatureReportSpec) bool {
	return a.BinaryVersion == b.BinaryVersion && a.EmulationVersion == b.EmulationVersion && a.NodeName == b.NodeName &&
		(a.Liveness.Lease == nil) == (b.Liveness.Lease == nil) &&
		(a.Liveness.Lease == nil || *a.Liveness.Lease == *b.Liveness.Lease)
}

// sortedReports returns the reports of processes, sorted by name.
func sortedReports(processes map[string]*process) []*v1alpha1.FeatureReport {
	reports := make([]*v1alpha1.FeatureReport, 0, len(processes))
	for _, p := range processes {
		reports = append(reports, p.report)
	}
	slices.SortFunc(reports, func(a, b *v1alpha1.FeatureReport) int { return cmp.Compare(a.Name, b.Name) })
	return reports
}
