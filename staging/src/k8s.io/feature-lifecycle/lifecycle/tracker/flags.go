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

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// Flags holds what live processes set for a gate, and for the gates related to it.
type Flags struct {
	// Explicit are the explicit settings, Controlled the servers that leave the value to
	// others; both sorted by component and instance.
	Explicit   []versionskew.Setting
	Controlled []versionskew.Controlled
	// Dependences are the gates that the gate depends on or that depend on it, with their
	// settings and without specs. Stages is AllAlpha and AllBeta if there are any.
	Dependences []versionskew.Dependence
	Stages      []versionskew.StageSetting
}

// Flags returns what live processes set for a gate at now.
func (t *Tracker) Flags(feature string, now time.Time) Flags {
	t.mu.Lock()
	defer t.mu.Unlock()
	var flags Flags
	uniform, others := t.index.of(feature)
	for _, group := range uniform {
		flags.Explicit = append(flags.Explicit, settingsOf(group)...)
	}
	for _, r := range others {
		if t.live(r.report, now) {
			t.addFlags(&flags, r)
		}
	}
	t.completeFlags(&flags, feature, now)
	return flags
}

// Values returns whether live processes have a feature on, and whether some have it
// off.
func (t *Tracker) Values(feature string, now time.Time) (on, off bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	uniform, others := t.index.of(feature)
	for _, group := range uniform {
		on, off = on || group.gate.Enabled, off || !group.gate.Enabled
	}
	for _, r := range others {
		if t.live(r.report, now) {
			on, off = on || r.gate.Enabled, off || !r.gate.Enabled
		}
	}
	return on, off
}

// live returns true for a process that exists and is alive.
func (t *Tracker) live(report *v1alpha1.FeatureReport, now time.Time) bool {
	alive, _, exists := t.alive(report, now)
	return alive && exists
}

// addFlags adds what a live process sets.
func (t *Tracker) addFlags(flags *Flags, r record) {
	spec := &r.report.Spec
	server := spec.Component == t.config.Servers
	if r.gate.Explicit {
		flags.Explicit = append(flags.Explicit, t.setting(r))
	}
	if server && r.gate.Control != "" && r.gate.Control != v1alpha1.ControlLocal {
		flags.Controlled = append(flags.Controlled, versionskew.Controlled{Component: spec.Component, Instance: spec.Instance, Control: r.gate.Control})
	}
}

// setting returns an explicit setting as a report has it.
func (t *Tracker) setting(r record) versionskew.Setting {
	spec := &r.report.Spec
	return versionskew.Setting{Component: spec.Component, Instance: spec.Instance, Enabled: r.gate.Enabled, Server: spec.Component == t.config.Servers}
}

// settingsOf returns the explicit settings of uniform processes.
func settingsOf(group uniformGroup) []versionskew.Setting {
	if !group.gate.Explicit {
		return nil
	}
	var settings []versionskew.Setting
	for _, name := range group.names {
		settings = append(settings, versionskew.Setting{Component: group.component, Instance: name, Enabled: group.gate.Enabled})
	}
	return settings
}

// completeFlags adds what processes set for the gates that have to do with one, and sorts
// the rest in the order in which messages name processes.
func (t *Tracker) completeFlags(flags *Flags, feature string, now time.Time) {
	slices.SortFunc(flags.Explicit, func(a, b versionskew.Setting) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Instance, b.Instance))
	})
	slices.SortFunc(flags.Controlled, func(a, b versionskew.Controlled) int { return cmp.Compare(a.Instance, b.Instance) })
	flags.Dependences = slices.Clone(t.config.Dependences[feature])
	if len(flags.Dependences) == 0 {
		return
	}
	for i := range flags.Dependences {
		d := &flags.Dependences[i]
		uniform, others := t.index.setting(d.Name)
		for _, group := range uniform {
			d.Explicit = append(d.Explicit, settingsOf(group)...)
		}
		for _, r := range others {
			if t.live(r.report, now) {
				d.Explicit = append(d.Explicit, t.setting(r))
			}
		}
	}
	for _, s := range t.index.staged() {
		if !t.live(s.report, now) {
			continue
		}
		spec := &s.report.Spec
		for stage, value := range s.stages {
			flags.Stages = append(flags.Stages, versionskew.StageSetting{Component: spec.Component, Instance: spec.Instance, Stage: stage, Enabled: value})
		}
	}
}

// setting returns the processes that set a feature explicitly, as of does those that report it.
func (x *index) setting(feature string) (uniform []uniformGroup, others []record) {
	for g := range x.features[feature] {
		gate := g.byName[feature]
		if gate == nil || !gate.Explicit {
			continue
		}
		for _, p := range g.others {
			others = append(others, p.record(gate))
		}
		if len(g.uniform) > 0 {
			uniform = append(uniform, uniformGroup{g.key.component, g.key.version, gate, g.sortedNames()})
		}
	}
	return uniform, others
}

// staged is a process that sets AllAlpha or AllBeta.
type staged struct {
	report *v1alpha1.FeatureReport
	stages map[v1alpha1.FeatureStage]bool
}

// staged returns the processes that set AllAlpha or AllBeta, in no order.
func (x *index) staged() []staged {
	var all []staged
	for g, stages := range x.stages {
		for _, processes := range []map[string]*process{g.uniform, g.others} {
			for _, p := range processes {
				all = append(all, staged{p.report, stages})
			}
		}
	}
	return all
}

// addDependences adds to changed the features whose safety depends on what a process
// sets for them. Either process may be nil.
func (x *index) addDependences(changed map[string]bool, old, current *process) {
	if len(x.config.dependences) == 0 {
		return
	}
	// Added features do not add others.
	for _, name := range slices.Collect(maps.Keys(changed)) {
		if !x.sets(old, name) && !x.sets(current, name) {
			continue
		}
		for _, d := range x.config.dependences[name] {
			changed[d.Name] = true
		}
	}
}

// sets returns true if a process sets a feature, or may set it.
func (x *index) sets(p *process, feature string) bool {
	if p == nil {
		return false
	}
	gate := p.group.byName[feature]
	return gate != nil && (gate.Explicit || x.stages[p.group] != nil)
}
