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
)

// setting returns who sets a feature explicitly, as of returns who reports it.
func (x *index) setting(feature string) (crowds []crowd, others []entry) {
	// Names may have to be sorted.
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.features[feature] {
		gate := c.byName[feature]
		if gate == nil || !gate.Explicit {
			continue
		}
		for _, p := range c.others {
			others = append(others, p.entry(gate))
		}
		if len(c.usual) > 0 {
			crowds = append(crowds, crowd{c.key.component, c.key.version, gate, c.sortedNames()})
		}
	}
	return crowds, others
}

// staged is a process that was given AllAlpha or AllBeta.
type staged struct {
	report *v1alpha1.FeatureReport
	stages map[v1alpha1.FeatureStage]bool
}

// staged returns the processes that were given AllAlpha or AllBeta, in no order.
func (x *index) staged() []staged {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []staged
	for c, stages := range x.stages {
		for _, processes := range []map[string]*member{c.usual, c.others} {
			for _, p := range processes {
				all = append(all, staged{p.report, stages})
			}
		}
	}
	return all
}

// addDependences adds the features to some that changed whose safety depends on what a
// process was given for these. Either process may be nil. It needs the lock.
func (x *index) addDependences(changed map[string]bool, old, current *member) {
	if len(x.config.dependences) == 0 {
		return
	}
	// What is added has no say in what else is.
	for _, name := range slices.Collect(maps.Keys(changed)) {
		if !x.given(old, name) && !x.given(current, name) {
			continue
		}
		for _, d := range x.config.dependences[name] {
			changed[d.Name] = true
		}
	}
}

// given says whether a process was given a value for a feature, or may have been. It needs
// the lock.
func (x *index) given(p *member, feature string) bool {
	if p == nil {
		return false
	}
	gate := p.cohort.byName[feature]
	return gate != nil && (gate.Explicit || x.stages[p.cohort] != nil)
}
