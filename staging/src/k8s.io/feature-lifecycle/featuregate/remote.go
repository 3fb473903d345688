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

package featuregate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/component-base/featuregate"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"
	"k8s.io/klog/v2"
)

// Remote is a value from outside of the process.
type Remote struct {
	// Value is the value.
	Value bool
	// Dynamic is true when the value may change while the process runs. All
	// others are static: they are taken only until the values are final.
	Dynamic bool
	// SwitchTime is the moment at which whoever gave the value gives the other one; zero
	// for none. The gate only reports it (Observation).
	SwitchTime time.Time
}

// Reason is why a value from outside is in effect or not.
type Reason string

const (
	// OutcomeInEffect means that the process uses the value, whatever set it.
	OutcomeInEffect Reason = "InEffect"
	// OutcomeUnknown means that this binary does not have the gate at its emulation
	// version.
	OutcomeUnknown Reason = "Unknown"
	// OutcomeLocked means that the gate accepts no other value than its default.
	OutcomeLocked Reason = "Locked"
	// OutcomeExplicitlySet means that the other value was set on this process itself.
	OutcomeExplicitlySet Reason = "ExplicitlySet"
	// OutcomeKeptLocal means that the binary takes no value from outside for it.
	OutcomeKeptLocal Reason = "KeptLocal"
	// OutcomeDependencyViolated means that a feature would be on without one that it
	// depends on.
	OutcomeDependencyViolated Reason = "DependencyViolated"
	// OutcomeQueriedBefore means that the process queried the static feature before
	// values from outside were there, as it would after every restart.
	OutcomeQueriedBefore Reason = "QueriedBefore"
	// OutcomeOutdated means that the static value came or changed after the values were
	// final. It is the only reason that a restart of the process ends.
	OutcomeOutdated Reason = "Outdated"
)

// Outcome is what became of one value from outside.
type Outcome struct {
	// Feature is the gate's exact name.
	Feature featuregate.Feature
	// Wanted is the value from outside; for one that was withdrawn, what the
	// process would use without it.
	Wanted bool
	// Enabled is the value in use.
	Enabled bool
	// Dynamic is true for a value that may change while the process runs.
	Dynamic bool
	// Queried is true once the process queried the feature. One that is OutcomeOutdated
	// and was never queried makes no difference yet.
	Queried bool
	// Reason is why Wanted is in use or not.
	Reason Reason
	// Message names cause and next step; it is empty for OutcomeInEffect.
	Message string
}

// remoteValues are the values from outside. Gate.mu guards them.
type remoteValues struct {
	// wanted are those that were given last.
	wanted map[featuregate.Feature]Remote
	// overlay are those in effect.
	overlay map[featuregate.Feature]bool
	// frozen are the static ones among overlay once the values are final.
	frozen map[featuregate.Feature]bool
	// queriedEarly are the features queried before the values were final.
	queriedEarly map[featuregate.Feature]bool
	// keepLocal are the features that take no value from outside.
	keepLocal map[featuregate.Feature]bool
	// refused says which other feature of a dependency is in the way.
	refused map[featuregate.Feature]featuregate.Feature
	// outcomes is what became of wanted, sorted by name.
	outcomes []Outcome
}

// KeepLocal makes the gate take no values from outside for these features:
// those that decide how the process gets such values, or that have configuration
// of their own, which is validated before.
func (g *Gate) KeepLocal(features ...featuregate.Feature) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.remote.keepLocal == nil {
		g.remote.keepLocal = map[featuregate.Feature]bool{}
	}
	for _, f := range features {
		g.remote.keepLocal[f] = true
	}
	g.replaceLocked()
}

// SetRemote replaces all values from outside of the process at once and returns
// what became of each, sorted by name. Readers see all of them or none. A value
// that cannot be taken leaves the feature as it is; the gate is never left in a
// state that upstream's Validate refuses. Dynamic values that are no longer given
// are withdrawn; static ones stay as they are once the values are final.
func (g *Gate) SetRemote(values map[featuregate.Feature]Remote) []Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !maps.EqualFunc(values, g.remote.wanted, func(a, b Remote) bool { return a.SwitchTime.Equal(b.SwitchTime) }) {
		g.signal()
	}
	g.remote.wanted = maps.Clone(values)
	changed := g.replaceLocked()
	if g.metrics && len(changed) > 0 {
		specs := g.inner.GetAll()
		for _, f := range changed {
			featuremetrics.RecordFeatureInfo(context.Background(), string(f), string(specs[f].PreRelease), g.values.Load().find(f).enabled)
		}
	}
	return g.currentLocked()
}

// RemoteOutcomes returns what became of the values that were given last, as the
// gate is now.
func (g *Gate) RemoteOutcomes() []Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.currentLocked()
}

func (g *Gate) currentLocked() []Outcome {
	outcomes := slices.Clone(g.remote.outcomes)
	values := g.values.Load()
	for i := range outcomes {
		v := values.find(outcomes[i].Feature)
		outcomes[i].Queried = v != nil && v.queried.Load()
	}
	return outcomes
}

// finalLocked makes the values final.
func (g *Gate) finalLocked() {
	r := &g.remote
	r.frozen, r.queriedEarly = map[featuregate.Feature]bool{}, map[featuregate.Feature]bool{}
	for f := range r.overlay {
		if !r.wanted[f].Dynamic {
			r.frozen[f] = true
		}
	}
	for _, v := range g.values.Load().slots {
		if v != nil && v.queried.Load() {
			r.queriedEarly[v.key] = true
		}
	}
	g.final = true
}

// overlayLocked sets the values from outside that can be in effect on a copy of
// the wrapped gate and writes down the outcomes. It returns whether there are
// any.
func (g *Gate) overlayLocked(gate featuregate.MutableVersionedFeatureGate) bool {
	r := &g.remote
	if len(r.wanted) == 0 && len(r.overlay) == 0 {
		r.outcomes, r.refused = nil, nil
		return false
	}
	local := newLocalValues(gate, r.keepLocal)
	// What a process that starts now would take; before the values are final,
	// that is this process.
	wanted := map[featuregate.Feature]bool{}
	for f, v := range r.wanted {
		if reason, _ := local.refuses(f, v.Value); reason != "" {
			continue
		}
		if v.Dynamic || v.Value == g.valueBeforeLocked(local, f) || !g.queriedBeforeLocked(f) {
			wanted[f] = v.Value
		}
	}
	if g.final {
		g.followLocked(local)
		_ = accept(local.values, local.dependencies, wanted)
	} else {
		r.refused = accept(local.values, local.dependencies, wanted)
		r.overlay = maps.Clone(wanted)
	}
	if !setQuietly(gate, r.overlay) {
		// What was set on the process itself is not valid: it complains, and
		// nothing is put on top of it.
		r.overlay = nil
	}
	r.outcomes = g.outcomesLocked(local, wanted)
	return len(r.overlay) > 0
}

// followLocked moves the overlay of a final gate to the dynamic values that are
// wanted now, as far as the dependencies allow.
func (g *Gate) followLocked(local *localValues) {
	r := &g.remote
	overlay := map[featuregate.Feature]bool{}
	for f, v := range r.overlay {
		if reason, _ := local.refuses(f, v); reason == "" {
			overlay[f] = v
		}
	}
	// Nothing is dropped here unless something new was set on the process.
	_ = accept(local.values, local.dependencies, overlay)
	for f := range r.frozen {
		if _, ok := overlay[f]; !ok {
			delete(r.frozen, f)
		}
	}
	now := maps.Clone(local.values)
	maps.Copy(now, overlay)
	changes := map[featuregate.Feature]bool{}
	for f, v := range r.wanted {
		if _, in := overlay[f]; in {
			// A feature may become dynamic, or static, while the process runs.
			if v.Dynamic {
				delete(r.frozen, f)
			} else {
				r.frozen[f] = true
			}
		}
		if reason, _ := local.refuses(f, v.Value); reason == "" && v.Dynamic {
			changes[f] = v.Value
		}
	}
	for f := range overlay {
		if _, ok := r.wanted[f]; !ok && !r.frozen[f] {
			changes[f] = local.values[f]
		}
	}
	r.refused = accept(now, local.dependencies, changes)
	for f, v := range changes {
		if _, ok := r.wanted[f]; ok {
			overlay[f] = v
		} else {
			delete(overlay, f)
		}
	}
	r.overlay = overlay
}

// queriedBeforeLocked is true when the process queried a feature too early to
// take a static value.
func (g *Gate) queriedBeforeLocked(f featuregate.Feature) bool {
	if g.final {
		return g.remote.queriedEarly[f]
	}
	v := g.values.Load().find(f)
	return v != nil && v.queried.Load()
}

// valueBeforeLocked is the value that a static one from outside would replace.
func (g *Gate) valueBeforeLocked(local *localValues, f featuregate.Feature) bool {
	if v := g.values.Load().find(f); v != nil && !g.final {
		return v.enabled
	}
	return local.values[f]
}

// outcomesLocked says what became of each value; after a restart, those in
// startable would be taken.
func (g *Gate) outcomesLocked(local *localValues, startable map[featuregate.Feature]bool) []Outcome {
	r := &g.remote
	value := func(f featuregate.Feature) bool {
		if v, ok := r.overlay[f]; ok {
			return v
		}
		return local.values[f]
	}
	var outcomes []Outcome
	for f, v := range r.wanted {
		o := Outcome{Feature: f, Wanted: v.Value, Enabled: value(f), Dynamic: v.Dynamic, Reason: OutcomeInEffect}
		_, takenAtStart := startable[f]
		reason, message := local.refuses(f, v.Value)
		switch {
		case reason == OutcomeUnknown:
			o.Reason, o.Message = reason, message
		case o.Enabled == o.Wanted:
		case reason != "":
			o.Reason, o.Message = reason, message
		case g.final && !v.Dynamic && takenAtStart:
			o.Reason, o.Message = OutcomeOutdated, fmt.Sprintf("the process started with %t; restart it", o.Enabled)
		case !v.Dynamic && g.queriedBeforeLocked(f):
			o.Reason, o.Message = OutcomeQueriedBefore, fmt.Sprintf("the process queries the feature before values from outside are there; set --feature-gates=%s=%t on it", f, o.Wanted)
		default:
			o.Reason, o.Message = OutcomeDependencyViolated, local.violates(o.Wanted, r.refused[f])
		}
		outcomes = append(outcomes, o)
	}
	for f := range r.frozen {
		if _, ok := r.wanted[f]; !ok && value(f) != local.values[f] {
			outcomes = append(outcomes, Outcome{Feature: f, Wanted: local.values[f], Enabled: value(f), Reason: OutcomeOutdated,
				Message: fmt.Sprintf("the process started with %t, which was withdrawn since; restart it", value(f))})
		}
	}
	slices.SortFunc(outcomes, func(a, b Outcome) int { return compareFeatures(a.Feature, b.Feature) })
	return outcomes
}

// setQuietly sets values without upstream's warnings about GA and deprecated gates:
// they were not set on this process.
func setQuietly(gate featuregate.MutableVersionedFeatureGate, values map[featuregate.Feature]bool) bool {
	if len(values) == 0 {
		return true
	}
	m := make(map[string]bool, len(values))
	for f, v := range values {
		m[string(f)] = v
	}
	if quiet, ok := gate.(featuregate.MutableFeatureGateWithLogger); ok {
		return quiet.SetFromMapWithLogger(klog.Logger{}, m) == nil
	}
	return gate.SetFromMap(m) == nil
}
