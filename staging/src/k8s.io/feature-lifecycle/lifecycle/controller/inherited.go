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

// inheritance is what the earlier processes of a report asked for and the present
// one does not report. A process reports what it has asked for so far, and what
// follows a minute later: one that crashes as soon as it asks a feature would never
// seem to use it, and one that is left out of a canary would seem to be gone.
type inheritance struct {
	// gates are what the last process that reported a feature said of it.
	gates map[string]*v1alpha1.ReportedFeature
	// since is when the present process was first seen or, when there is none,
	// when the report of the last one went.
	since time.Time
	// present is true while there is a report.
	present bool
}

// inherit records that a report took the place of another, either of them nil for
// none, and returns the features whose picture changed by it. It needs the lock.
func (x *index) inherit(name string, old, report *v1alpha1.FeatureReport, now time.Time) []string {
	h, passed := x.inherited[name], old == nil || report == nil || otherProcess(old, report)
	if h == nil {
		if old == nil || !passed {
			return nil
		}
		h = &inheritance{gates: map[string]*v1alpha1.ReportedFeature{}}
		x.inherited[name] = h
	}
	var changed []string
	if passed {
		h.since, h.present = now, report != nil
		for feature := range h.gates {
			changed = append(changed, feature)
		}
		if old != nil {
			for i := range old.Spec.Features {
				if gate := &old.Spec.Features[i]; gate.Asked {
					x.bequeath(h, name, gate)
					changed = append(changed, gate.Name)
				}
			}
		}
	}
	if report != nil {
		for i := range report.Spec.Features {
			x.disinherit(h, name, report.Spec.Features[i].Name)
		}
	}
	if len(h.gates) == 0 {
		delete(x.inherited, name)
	}
	return changed
}

// bequeath needs the lock.
func (x *index) bequeath(h *inheritance, name string, gate *v1alpha1.ReportedFeature) {
	h.gates[gate.Name] = gate
	if x.heirs[gate.Name] == nil {
		x.heirs[gate.Name] = map[string]bool{}
	}
	x.heirs[gate.Name][name] = true
}

// disinherit needs the lock.
func (x *index) disinherit(h *inheritance, name, feature string) {
	delete(h.gates, feature)
	if heirs := x.heirs[feature]; heirs[name] {
		delete(heirs, name)
		if len(heirs) == 0 {
			delete(x.heirs, feature)
		}
	}
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
	for name := range x.heirs[feature] {
		if h := x.inherited[name]; h.present {
			heirs = append(heirs, x.heir(name, feature, h))
		}
	}
	return heirs
}

// departed returns what the last process of a report had found of a feature when
// the report went, and when that was. It is nil for one that never asked, that is
// long gone, or that is there.
func (x *index) departed(feature, name string) (gate *v1alpha1.ReportedFeature, at time.Time) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	h := x.inherited[name]
	if h == nil || h.present {
		return nil, time.Time{}
	}
	return h.gates[feature], h.since
}

// inheritedBy returns what the process of a report has inherited.
func (x *index) inheritedBy(name string) []heir {
	x.mu.RLock()
	defer x.mu.RUnlock()
	h := x.inherited[name]
	if h == nil || !h.present {
		return nil
	}
	var heirs []heir
	for feature := range h.gates {
		heirs = append(heirs, x.heir(name, feature, h))
	}
	return heirs
}

// heir needs the lock.
func (x *index) heir(name, feature string, h *inheritance) heir {
	gate := *h.gates[feature]
	// The present process would report what is set explicitly on it.
	gate.Explicit = false
	return heir{entry{x.reports[name], &gate, h.since, x.crashes[name]}, h.since}
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
		for feature := range h.gates {
			changed[feature] = true
			x.disinherit(h, name, feature)
		}
		delete(x.inherited, name)
	}
	return slices.Sorted(maps.Keys(changed))
}
