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
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// inheritedRetention is how long what a process asked for is remembered after its
// report has gone and the grace period has passed: until the next one of the same
// name starts. It is as long as the report of a process that died is kept.
const inheritedRetention = reportRetention

// maxAncestors bounds of how many earlier processes of one report it is remembered
// what they asked for: whoever may write a report could otherwise make every server
// remember, and go through, ever more. An older one is forgotten: a feature that it
// alone asked for seems not to be used until the present process reports it. That
// takes so many processes, each of which asked for something that no later one lists,
// and no two of which live for as long as a report may be late (decided).
const maxAncestors = 8

// inheritance is what the earlier processes of a report asked for and the present
// one does not report. A process reports what it has asked for so far, and what
// follows a minute later: one that crashes as soon as it asks a feature would never
// seem to use it, and one that is left out of a canary would seem to be gone.
type inheritance struct {
	// ancestors are what earlier processes reported, the last one first, at most
	// maxAncestors. The first that lists a feature decides whether it was asked for;
	// each decides something (prune).
	ancestors []*cohort
	// since is when the present process was first seen or, when there is none,
	// when the report of the last one went.
	since time.Time
	// present is true while there is a report.
	present bool
}

// inherit records that a process took the place of another, either of them nil for
// none, and returns the features whose picture changed by it, and the cohorts of
// which the report is no heir any more. It needs the lock, and is called before the
// index changes.
func (x *index) inherit(name string, old, current *member, now time.Time) (changed []string, left []*cohort) {
	h, passed := x.inherited[name], old == nil || current == nil || otherProcess(old.report, current.report)
	if h == nil {
		if old == nil || !passed {
			return nil, nil
		}
		h = &inheritance{}
		x.inherited[name] = h
	}
	if passed {
		changed = slices.Collect(maps.Keys(x.inheritedGates(name)))
		h.since, h.present = now, current != nil
		if old != nil {
			for i := range old.cohort.gates {
				if gate := &old.cohort.gates[i]; gate.Queried {
					changed = append(changed, gate.Name)
				}
			}
			h.ancestors = append([]*cohort{old.cohort}, slices.DeleteFunc(h.ancestors, func(c *cohort) bool { return c == old.cohort })...)
			old.cohort.heirs[name] = true
		}
	}
	return changed, x.prune(name, h, current)
}

// prune drops the ancestors that decide nothing, and the oldest if there are too
// many, and returns them. It needs the lock.
func (x *index) prune(name string, h *inheritance, current *member) (left []*cohort) {
	kept := deciding(h.ancestors, current)
	if len(kept) > maxAncestors {
		kept = deciding(kept[:maxAncestors], current)
	}
	for _, c := range h.ancestors {
		if !slices.Contains(kept, c) {
			delete(c.heirs, name)
			left = append(left, c)
		}
	}
	if h.ancestors = kept; len(kept) == 0 {
		delete(x.inherited, name)
	}
	return left
}

// deciding are the ancestors of a process, nil for none, that are the first to list a
// feature that they asked for, or one that they did not ask for and an older one of
// them did.
func deciding(ancestors []*cohort, current *member) []*cohort {
	listed := map[string]bool{}
	if current != nil {
		for i := range current.cohort.gates {
			listed[current.cohort.gates[i].Name] = true
		}
	}
	asks, hides := make([]bool, len(ancestors)), make([][]string, len(ancestors))
	for i, c := range ancestors {
		for j := range c.gates {
			switch gate := &c.gates[j]; {
			case listed[gate.Name]:
			case gate.Queried:
				asks[i], listed[gate.Name] = true, true
			default:
				hides[i], listed[gate.Name] = append(hides[i], gate.Name), true
			}
		}
	}
	var kept []*cohort
	for i, c := range slices.Backward(ancestors) {
		if asks[i] || slices.ContainsFunc(hides[i], func(feature string) bool { return anyAsked(kept, feature) }) {
			kept = append(kept, c)
		}
	}
	slices.Reverse(kept)
	return kept
}

// anyAsked is true when one of some cohorts asked for a feature.
func anyAsked(cohorts []*cohort, feature string) bool {
	return slices.ContainsFunc(cohorts, func(c *cohort) bool {
		gate := c.byName[feature]
		return gate != nil && gate.Queried
	})
}

// inheritedGate is what a report has inherited of a feature and from which cohort,
// nil for nothing. It needs the lock.
func (x *index) inheritedGate(name, feature string) (*v1alpha1.ReportedFeature, *cohort) {
	h := x.inherited[name]
	if h == nil {
		return nil, nil
	}
	if p := x.processes[name]; p != nil && p.cohort.byName[feature] != nil {
		return nil, nil
	}
	for _, c := range h.ancestors {
		if gate := c.byName[feature]; gate != nil {
			if !gate.Queried {
				return nil, nil
			}
			return gate, c
		}
	}
	return nil, nil
}

// inheritedGates are those that a report has inherited, by feature. It needs the
// lock.
func (x *index) inheritedGates(name string) map[string]*v1alpha1.ReportedFeature {
	h := x.inherited[name]
	if h == nil {
		return nil
	}
	var present map[string]*v1alpha1.ReportedFeature
	if p := x.processes[name]; p != nil {
		present = p.cohort.byName
	}
	gates, seen := map[string]*v1alpha1.ReportedFeature{}, map[string]bool{}
	for _, c := range h.ancestors {
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

// heir is a process, and what the one before it found of a feature that it does
// not report.
type heir struct {
	entry
	// takenOver is when it was first seen.
	takenOver time.Time
}

// heirsOf returns the reports of which an earlier process had asked for a feature
// and the present one has not reported it.
func (x *index) heirsOf(feature string) []heir {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var heirs []heir
	for c := range x.features[feature] {
		for name := range c.heirs {
			if h := x.inherited[name]; !h.present {
				continue
			}
			if gate, from := x.inheritedGate(name, feature); gate != nil && from == c {
				heirs = append(heirs, x.heir(name, gate))
			}
		}
	}
	return heirs
}

// departed is a report that has gone, and what its last process found of a feature.
type departed struct {
	report string
	gate   *v1alpha1.ReportedFeature
	// at is when it went.
	at time.Time
}

// departedOf returns the reports that have gone of which a process had asked for a
// feature, and that are not long gone.
func (x *index) departedOf(feature string) []departed {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var gone []departed
	for c := range x.features[feature] {
		for name := range c.heirs {
			h := x.inherited[name]
			if h.present {
				continue
			}
			if gate, from := x.inheritedGate(name, feature); gate != nil && from == c {
				gone = append(gone, departed{name, gate, h.since})
			}
		}
	}
	return gone
}

// inheritedBy returns what the process of a report has inherited.
func (x *index) inheritedBy(name string) []heir {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if h := x.inherited[name]; h == nil || !h.present {
		return nil
	}
	var heirs []heir
	for _, gate := range x.inheritedGates(name) {
		heirs = append(heirs, x.heir(name, gate))
	}
	return heirs
}

// heir needs the lock.
func (x *index) heir(name string, inherited *v1alpha1.ReportedFeature) heir {
	gate, p, h := *inherited, x.processes[name], x.inherited[name]
	// The present process would report what is set explicitly on it.
	gate.Explicit = false
	return heir{entry{p.report, &gate, h.since, p.crashes}, h.since}
}

// forgetInherited drops what processes asked for whose reports went before a time,
// and returns the features whose picture changed by it, sorted.
func (x *index) forgetInherited(before time.Time) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	changed := map[string]bool{}
	for name, h := range x.inherited {
		if h.present || !h.since.Before(before) {
			continue
		}
		for feature := range x.inheritedGates(name) {
			changed[feature] = true
		}
		x.disinherit(name, h)
	}
	return slices.Sorted(maps.Keys(changed))
}

// decided drops what processes inherited that were there before a time and are
// alive, which a function says of those that are not usual: they have lived long
// enough to say what they use, and the picture of no feature changes by it.
func (x *index) decided(before time.Time, alive func(*v1alpha1.FeatureReport) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, h := range x.inherited {
		if p := x.processes[name]; h.present && h.since.Before(before) && p != nil && (p.usual || alive(p.report)) {
			x.disinherit(name, h)
		}
	}
}

// disinherit needs the lock.
func (x *index) disinherit(name string, h *inheritance) {
	for _, c := range h.ancestors {
		delete(c.heirs, name)
		x.release(c)
	}
	delete(x.inherited, name)
}
