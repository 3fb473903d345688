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

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// predecessorRetention is the time that the queries of a process are remembered after its
// report was deleted and the grace period has passed, until the next one of the same
// name starts. It is as long as the report of a lost process is kept.
const predecessorRetention = ReportRetention

// maxPredecessors bounds how many earlier processes of one report are remembered.
// Without it the identity that writes a report could make every server remember, and
// search, ever more. When an older one is forgotten, a feature that it alone queried
// seems unused until the present process reports it. That takes as many processes, each
// of which queried something that no later one lists. No two of them may live for as
// long as a report may be late (dropDecided).
const maxPredecessors = 8

// predecessors holds the earlier processes of a report, as far as they queried features
// that the present one does not report. A process reports what it has queried so far,
// and the rest a minute later. Without predecessors, a process that crashes as soon as
// it queries a feature would never seem to use it, and one left out of a canary would
// seem deleted.
type predecessors struct {
	// groups are what earlier processes reported, the last one first, at most
	// maxPredecessors. The first that lists a feature decides whether it was queried. Each
	// decides something (prune).
	groups []*group
	// since is the time at which the present process was first seen or, when there is none, when the
	// report of the last one was deleted.
	since time.Time
	// present is true while there is a report.
	present bool
}

// keepPredecessor records that a process replaced another, either of them nil for none.
// It returns the features that this may change, and the groups of which the report is
// no longer a replacement. It is called before the index changes.
func (x *index) keepPredecessor(name string, old, current *process, now time.Time) (changed []string, left []*group) {
	h, passed := x.predecessors[name], old == nil || current == nil || otherProcess(old.report, current.report)
	if h == nil {
		if old == nil || !passed {
			return nil, nil
		}
		h = &predecessors{}
		x.predecessors[name] = h
	}
	if passed {
		changed = slices.Collect(maps.Keys(x.predecessorGates(name)))
		h.since, h.present = now, current != nil
		if old != nil {
			for i := range old.group.gates {
				if gate := &old.group.gates[i]; gate.Queried {
					changed = append(changed, gate.Name)
				}
			}
			h.groups = append([]*group{old.group}, slices.DeleteFunc(h.groups, func(c *group) bool { return c == old.group })...)
			old.group.replacements[name] = true
		}
	}
	return changed, x.prune(name, h, current)
}

// prune drops the groups that decide nothing, and the oldest if there are too
// many, and returns them.
func (x *index) prune(name string, h *predecessors, current *process) (left []*group) {
	kept := deciding(h.groups, current)
	if len(kept) > maxPredecessors {
		kept = deciding(kept[:maxPredecessors], current)
	}
	for _, c := range h.groups {
		if !slices.Contains(kept, c) {
			delete(c.replacements, name)
			left = append(left, c)
		}
	}
	if h.groups = kept; len(kept) == 0 {
		delete(x.predecessors, name)
	}
	return left
}

// deciding returns the predecessors of a process, nil for none, that are the first to
// list a feature that they queried, or one that they did not query and an older one
// did.
func deciding(groups []*group, current *process) []*group {
	listed := map[string]bool{}
	if current != nil {
		for i := range current.group.gates {
			listed[current.group.gates[i].Name] = true
		}
	}
	queries, hides := make([]bool, len(groups)), make([][]string, len(groups))
	for i, c := range groups {
		for j := range c.gates {
			switch gate := &c.gates[j]; {
			case listed[gate.Name]:
			case gate.Queried:
				queries[i], listed[gate.Name] = true, true
			default:
				hides[i], listed[gate.Name] = append(hides[i], gate.Name), true
			}
		}
	}
	var kept []*group
	for i, c := range slices.Backward(groups) {
		if queries[i] || slices.ContainsFunc(hides[i], func(feature string) bool { return anyQueried(kept, feature) }) {
			kept = append(kept, c)
		}
	}
	slices.Reverse(kept)
	return kept
}

// anyQueried returns true when one of some groups queried a feature.
func anyQueried(groups []*group, feature string) bool {
	return slices.ContainsFunc(groups, func(c *group) bool {
		gate := c.byName[feature]
		return gate != nil && gate.Queried
	})
}

// predecessorGate returns what the predecessors of a report found of a feature and which
// of them, nil for nothing.
func (x *index) predecessorGate(name, feature string) (*v1alpha1.ReportedFeature, *group) {
	h := x.predecessors[name]
	if h == nil {
		return nil, nil
	}
	if p := x.processes[name]; p != nil && p.group.byName[feature] != nil {
		return nil, nil
	}
	for _, c := range h.groups {
		if gate := c.byName[feature]; gate != nil {
			if !gate.Queried {
				return nil, nil
			}
			return gate, c
		}
	}
	return nil, nil
}

// predecessorGates returns what the predecessors of a report found, by feature.
func (x *index) predecessorGates(name string) map[string]*v1alpha1.ReportedFeature {
	h := x.predecessors[name]
	if h == nil {
		return nil
	}
	var present map[string]*v1alpha1.ReportedFeature
	if p := x.processes[name]; p != nil {
		present = p.group.byName
	}
	gates, seen := map[string]*v1alpha1.ReportedFeature{}, map[string]bool{}
	for _, c := range h.groups {
		for feature, gate := range c.byName {
			if seen[feature] || present[feature] != nil {
				continue
			}
			seen[feature] = true
			if gate.Queried {
				gates[feature] = gate
			}
		}
	}
	return gates
}

// replacement is a process that replaced another, and what that one found of a feature that
// it does not report.
type replacement struct {
	record
	// replacedAt is the time at which the process was first seen.
	replacedAt time.Time
}

// replacementsOf returns the reports of which an earlier process had queried a feature
// and the present one has not reported it.
func (x *index) replacementsOf(feature string) []replacement {
	var replacements []replacement
	for c := range x.features[feature] {
		for name := range c.replacements {
			if h := x.predecessors[name]; !h.present {
				continue
			}
			if gate, from := x.predecessorGate(name, feature); gate != nil && from == c {
				replacements = append(replacements, x.replacement(name, gate))
			}
		}
	}
	return replacements
}

// notReturned is a report that was deleted, and what its last process found of a feature.
type notReturned struct {
	report string
	gate   *v1alpha1.ReportedFeature
	// at is the time at which the report was deleted.
	at time.Time
}

// notReturnedOf returns the reports that were deleted not long ago and whose last
// process had queried a feature.
func (x *index) notReturnedOf(feature string) []notReturned {
	var found []notReturned
	for c := range x.features[feature] {
		for name := range c.replacements {
			h := x.predecessors[name]
			if h.present {
				continue
			}
			if gate, from := x.predecessorGate(name, feature); gate != nil && from == c {
				found = append(found, notReturned{name, gate, h.since})
			}
		}
	}
	return found
}

// replacing returns what the predecessors of a report found of all features.
func (x *index) replacing(name string) []replacement {
	if h := x.predecessors[name]; h == nil || !h.present {
		return nil
	}
	var replacements []replacement
	for _, gate := range x.predecessorGates(name) {
		replacements = append(replacements, x.replacement(name, gate))
	}
	return replacements
}

// replacement returns the process of a report as a replacement.
func (x *index) replacement(name string, before *v1alpha1.ReportedFeature) replacement {
	gate, p, h := *before, x.processes[name], x.predecessors[name]
	// The present process would report what is set explicitly on it.
	gate.Explicit = false
	return replacement{record{p.report, &gate, h.since, p.crashes}, h.since}
}

// dropNotReturned drops the predecessors of reports that were deleted before a time,
// and returns the features that this may change, sorted.
func (x *index) dropNotReturned(before time.Time) []string {
	changed := map[string]bool{}
	for name, h := range x.predecessors {
		if h.present || !h.since.Before(before) {
			continue
		}
		for feature := range x.predecessorGates(name) {
			changed[feature] = true
		}
		x.dropPredecessors(name, h)
	}
	return slices.Sorted(maps.Keys(changed))
}

// dropDecided drops the predecessors of processes that were seen before a time and are
// alive, which a function answers for those that are not uniform. They have lived long
// enough to report what they use, and the picture of no feature changes by it.
func (x *index) dropDecided(before time.Time, alive func(*v1alpha1.FeatureReport) bool) {
	for name, h := range x.predecessors {
		if p := x.processes[name]; h.present && h.since.Before(before) && p != nil && (p.uniform || alive(p.report)) {
			x.dropPredecessors(name, h)
		}
	}
}

// dropPredecessors drops all predecessors of a report.
func (x *index) dropPredecessors(name string, h *predecessors) {
	for _, c := range h.groups {
		delete(c.replacements, name)
		x.release(c)
	}
	delete(x.predecessors, name)
}

// dropPredecessors drops the queries of earlier processes once they no longer matter:
// no process has replaced them, or the replacement has lived long enough to report what
// it uses. It returns the features that this may change.
func (t *Tracker) dropPredecessors(now time.Time) []string {
	changed := t.index.dropNotReturned(now.Add(-predecessorRetention - t.config.Settings.Grace))
	// A dead process's last-seen time is known only after lastSeenDelay.
	t.index.dropDecided(now.Add(-t.config.Settings.ReportPeriod-lastSeenDelay), func(report *v1alpha1.FeatureReport) bool {
		alive, _, exists := t.alive(report, now)
		return alive && exists
	})
	return changed
}
