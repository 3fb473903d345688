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

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/intern"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// group holds the processes of one component and version that report the same of all
// features. Thousands of kubelets form a few groups, so the cost of a query grows with
// the groups.
type group struct {
	key groupKey
	// gates are what they report; byName finds them.
	gates  []v1alpha1.ReportedFeature
	byName map[string]*v1alpha1.ReportedFeature
	// uniform are the processes that are alive because their Node is Ready and differ in
	// nothing but their names; others are the rest. By report.
	uniform, others map[string]*process
	// names are the instances of uniform, sorted; nil when they have to be sorted
	// again. The slice is replaced and not changed.
	names []string
	// replacements are the reports of which an earlier process reported this.
	replacements map[string]bool
}

// groupKey finds groups. Different lists of features may have one hash.
type groupKey struct {
	component, version string
	gates              uint64
}

// uniformGroup is the uniform processes of a group and what they report of a feature.
type uniformGroup struct {
	component, version string
	gate               *v1alpha1.ReportedFeature
	// names are their instances, sorted, at least one. They must not be changed.
	names []string
}

// groupOf returns the group that a report belongs to, a new one if there is none
// yet, which release drops if no process joins it.
func (x *index) groupOf(report *v1alpha1.FeatureReport) *group {
	spec := &report.Spec
	key := groupKey{spec.Component, spec.BinaryVersion, intern.Hash(spec.Features)}
	for _, c := range x.groups[key] {
		if slices.Equal(c.gates, spec.Features) {
			return c
		}
	}
	c := &group{
		key: key, gates: spec.Features, byName: make(map[string]*v1alpha1.ReportedFeature, len(spec.Features)),
		uniform: map[string]*process{}, others: map[string]*process{}, replacements: map[string]bool{},
	}
	for i := range c.gates {
		c.byName[c.gates[i].Name] = &c.gates[i]
	}
	x.groups[key] = append(x.groups[key], c)
	if stages := versionskew.Stages(c.gates); stages != nil && len(x.config.dependences) > 0 {
		x.stages[c] = stages
	}
	for name := range c.byName {
		if x.features[name] == nil {
			x.features[name] = map[*group]bool{}
		}
		x.features[name][c] = true
	}
	return c
}

// release drops a group that has neither processes nor replacements.
func (x *index) release(c *group) {
	if len(c.uniform)+len(c.others)+len(c.replacements) > 0 {
		return
	}
	x.groups[c.key] = slices.DeleteFunc(x.groups[c.key], func(other *group) bool { return other == c })
	if len(x.groups[c.key]) == 0 {
		delete(x.groups, c.key)
	}
	delete(x.stages, c)
	for name := range c.byName {
		if delete(x.features[name], c); len(x.features[name]) == 0 {
			delete(x.features, name)
		}
	}
}

// join adds a process to its group.
func (x *index) join(name string, p *process) {
	spec := &p.report.Spec
	p.uniform = spec.Liveness.Lease == nil && spec.NodeName != "" && x.nodes[spec.NodeName].ready && len(p.crashes) == 0 && spec.Component != x.config.servers
	if p.uniform {
		p.group.uniform[name], p.group.names = p, nil
	} else {
		p.group.others[name] = p
	}
}

// leave takes a process out of its group.
func (x *index) leave(name string, p *process) {
	if p.uniform {
		delete(p.group.uniform, name)
		p.group.names = nil
	} else {
		delete(p.group.others, name)
	}
}

// sortedNames returns the names of the uniform processes.
func (c *group) sortedNames() []string {
	if c.names == nil {
		c.names = make([]string, 0, len(c.uniform))
		for _, p := range c.uniform {
			c.names = append(c.names, p.report.Spec.Instance)
		}
		slices.Sort(c.names)
	}
	return c.names
}

// of returns the processes that report a feature: the uniform ones of each group, which are
// alive, and all others one by one, in no order. The others include processes that set
// a feature recently and have not queried it.
func (x *index) of(feature string) (uniform []uniformGroup, others []record) {
	for c := range x.features[feature] {
		gate := c.byName[feature]
		for _, p := range c.others {
			others = append(others, p.record(gate))
		}
		if len(c.uniform) == 0 {
			continue
		}
		names := c.sortedNames()
		if !gate.Queried && len(x.recent) > 0 {
			names = make([]string, 0, len(c.uniform))
			for _, p := range c.uniform {
				if _, recent := p.recent[feature]; recent {
					others = append(others, p.record(gate))
				} else {
					names = append(names, p.report.Spec.Instance)
				}
			}
			slices.Sort(names)
		}
		if len(names) > 0 {
			uniform = append(uniform, uniformGroup{c.key.component, c.key.version, gate, names})
		}
	}
	return uniform, others
}

// record returns what a process reports of a feature.
func (p *process) record(gate *v1alpha1.ReportedFeature) record {
	return record{p.report, gate, p.recent[gate.Name], p.crashes}
}

// reported returns what a report has of a feature, false if it does not list it.
func (x *index) reported(report, feature string) (record, bool) {
	p := x.processes[report]
	if p == nil || p.group.byName[feature] == nil {
		return record{}, false
	}
	return p.record(p.group.byName[feature]), true
}

// notUniform returns the reports of the processes that may be unreachable, sorted by name.
func (x *index) notUniform() []*v1alpha1.FeatureReport {
	found := map[string]*process{}
	for _, groups := range x.groups {
		for _, c := range groups {
			maps.Copy(found, c.others)
		}
	}
	return sortedReports(found)
}
