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

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/intern"
	"k8s.io/feature-lifecycle/lifecycle/safety"
)

// cohort is the processes of one component and version that report the same of all
// features.
type cohort struct {
	key cohortKey
	// gates are what they report; byName finds them.
	gates  []v1alpha1.ReportedFeature
	byName map[string]*v1alpha1.ReportedFeature
	// usual are the processes that are alive because their Node is Ready, and of
	// which there is nothing else to say; others are all others. By report.
	usual, others map[string]*member
	// names are the instances of usual, sorted; nil when they have to be sorted
	// anew. The slice is replaced and not changed.
	names []string
	// heirs are the reports of which an earlier process reported this.
	heirs map[string]bool
}

// cohortKey finds a cohort. Different lists of features may have one hash.
type cohortKey struct {
	component, version string
	gates              uint64
}

// crowd is the usual processes of a cohort, and what they say of a feature.
type crowd struct {
	component, version string
	gate               *v1alpha1.ReportedFeature
	// names are their instances, sorted, at least one. They must not be changed.
	names []string
}

// cohortOf returns the cohort that a report belongs to, a new one if there is none
// yet, which release drops if nobody joins it. It needs the lock.
func (x *index) cohortOf(report *v1alpha1.FeatureReport) *cohort {
	spec := &report.Spec
	key := cohortKey{spec.Component, spec.BinaryVersion, intern.Hash(spec.Features)}
	for _, c := range x.cohorts[key] {
		if slices.Equal(c.gates, spec.Features) {
			return c
		}
	}
	c := &cohort{
		key: key, gates: spec.Features, byName: make(map[string]*v1alpha1.ReportedFeature, len(spec.Features)),
		usual: map[string]*member{}, others: map[string]*member{}, heirs: map[string]bool{},
	}
	for i := range c.gates {
		c.byName[c.gates[i].Name] = &c.gates[i]
	}
	x.cohorts[key] = append(x.cohorts[key], c)
	if stages := safety.Stages(c.gates); stages != nil && len(x.config.dependences) > 0 {
		x.stages[c] = stages
	}
	for name := range c.byName {
		if x.features[name] == nil {
			x.features[name] = map[*cohort]bool{}
		}
		x.features[name][c] = true
	}
	return c
}

// release drops a cohort that has neither processes nor heirs. It needs the lock.
func (x *index) release(c *cohort) {
	if len(c.usual)+len(c.others)+len(c.heirs) > 0 {
		return
	}
	x.cohorts[c.key] = slices.DeleteFunc(x.cohorts[c.key], func(other *cohort) bool { return other == c })
	if len(x.cohorts[c.key]) == 0 {
		delete(x.cohorts, c.key)
	}
	delete(x.stages, c)
	for name := range c.byName {
		if delete(x.features[name], c); len(x.features[name]) == 0 {
			delete(x.features, name)
		}
	}
}

// join adds a process to its cohort. It needs the lock.
func (x *index) join(name string, p *member) {
	spec := &p.report.Spec
	p.usual = spec.Liveness.Lease == nil && spec.NodeName != "" && x.nodes[spec.NodeName].ready && len(p.crashes) == 0 && spec.Component != x.config.servers
	if p.usual {
		p.cohort.usual[name], p.cohort.names = p, nil
	} else {
		p.cohort.others[name] = p
	}
}

// leave needs the lock.
func (x *index) leave(name string, p *member) {
	if p.usual {
		delete(p.cohort.usual, name)
		p.cohort.names = nil
	} else {
		delete(p.cohort.others, name)
	}
}

// sortedNames needs the lock.
func (c *cohort) sortedNames() []string {
	if c.names == nil {
		c.names = make([]string, 0, len(c.usual))
		for _, p := range c.usual {
			c.names = append(c.names, p.report.Spec.Instance)
		}
		slices.Sort(c.names)
	}
	return c.names
}

// of returns who reports a feature: the usual processes of each cohort, which are
// alive, and all others one by one, in no order. Among these are processes that set
// a feature recently and have not asked for it.
func (x *index) of(feature string) (crowds []crowd, others []entry) {
	// Names may have to be sorted.
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.features[feature] {
		gate := c.byName[feature]
		for _, p := range c.others {
			others = append(others, p.entry(gate))
		}
		if len(c.usual) == 0 {
			continue
		}
		names := c.sortedNames()
		if !gate.Queried && len(x.recent) > 0 {
			names = make([]string, 0, len(c.usual))
			for _, p := range c.usual {
				if _, recent := p.recent[feature]; recent {
					others = append(others, p.entry(gate))
				} else {
					names = append(names, p.report.Spec.Instance)
				}
			}
			slices.Sort(names)
		}
		if len(names) > 0 {
			crowds = append(crowds, crowd{c.key.component, c.key.version, gate, names})
		}
	}
	return crowds, others
}

// entry needs the lock.
func (p *member) entry(gate *v1alpha1.ReportedFeature) entry {
	return entry{p.report, gate, p.recent[gate.Name], p.crashes}
}

// says returns what a report says of a feature, false if it does not list it.
func (x *index) says(report, feature string) (entry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p := x.processes[report]
	if p == nil || p.cohort.byName[feature] == nil {
		return entry{}, false
	}
	return p.entry(p.cohort.byName[feature]), true
}

// unusual returns the reports of the processes that are not alive as a matter of
// course, sorted by name.
func (x *index) unusual() []*v1alpha1.FeatureReport {
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[string]*member{}
	for _, cohorts := range x.cohorts {
		for _, c := range cohorts {
			maps.Copy(found, c.others)
		}
	}
	return sortedReports(found)
}
