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

package main

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
)

// join makes a history of the gates of each version. Source has the release of each.
func join(source map[string]string, known map[string]facts) (*history.History, error) {
	versions := slices.SortedFunc(maps.Keys(source), func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	names, components := map[string]bool{}, map[string]bool{}
	for _, version := range versions {
		for component, gates := range known[version] {
			components[component] = true
			for name := range gates {
				names[name] = true
			}
		}
	}
	var gates []history.Gate
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g := history.Gate{Name: name}
		for _, component := range slices.Sorted(maps.Keys(components)) {
			changes := changesOf(name, component, versions, known)
			if len(changes) == 0 {
				continue
			}
			same := func(t history.Track) bool { return reflect.DeepEqual(t.Changes, changes) }
			if i := slices.IndexFunc(g.Tracks, same); i >= 0 {
				g.Tracks[i].Components = append(g.Tracks[i].Components, component)
				continue
			}
			g.Tracks = append(g.Tracks, history.Track{Components: []string{component}, Changes: changes})
		}
		gates = append(gates, g)
	}
	return history.New(source, gates)
}

// changesOf returns the changes of a gate in a component.
func changesOf(name, component string, versions []string, known map[string]facts) []history.Change {
	var changes []history.Change
	for _, version := range versions {
		var spec *history.Spec
		if s, ok := known[version][component][name]; ok {
			spec = &s
		}
		var last *history.Spec
		if len(changes) > 0 {
			last = changes[len(changes)-1].Spec
		}
		if !reflect.DeepEqual(last, spec) {
			changes = append(changes, history.Change{Version: version, Removed: spec == nil, Spec: spec})
		}
	}
	return changes
}

// factsOf returns the gates of each version of a history.
func factsOf(h *history.History) map[string]facts {
	all := map[string]facts{}
	for _, version := range h.Versions() {
		all[version] = facts{}
		for _, g := range h.Gates() {
			for _, component := range g.Components() {
				spec, ok := g.At(component, version)
				if !ok {
					continue
				}
				if all[version][component] == nil {
					all[version][component] = map[string]history.Spec{}
				}
				all[version][component][g.Name] = spec
			}
		}
	}
	return all
}

// number returns 37 of 1.37.
func number(version string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(version, "1."))
	return n
}
