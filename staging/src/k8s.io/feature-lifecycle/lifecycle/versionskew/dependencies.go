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

package versionskew

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
)

// Dependencies maps a gate to the gates that it requires, as component-base's
// featuregate records them.
type Dependencies map[featuregate.Feature][]featuregate.Feature

// Of returns the gates that a gate depends on, directly or through others, sorted. A
// binary refuses to start with the gate on while one of them is off
// (component-base/featuregate, SetFromMap).
func (d Dependencies) Of(name string) []string { return closure(d, name) }

// On returns the gates that depend on a gate, directly or through others, sorted.
func (d Dependencies) On(name string) []string {
	reversed := Dependencies{}
	for dependent, dependencies := range d {
		for _, dependency := range dependencies {
			reversed[dependency] = append(reversed[dependency], dependent)
		}
	}
	return closure(reversed, name)
}

// Opposing returns the gates that would conflict with the value of a gate, because one
// depends on the other: dependencies that are off, or dependents that are on. Values
// returns whether a gate is on or off in some process.
func (d Dependencies) Opposing(name string, value bool, values func(name string) (on, off bool)) (dependencies, dependents []string) {
	if value {
		return slices.DeleteFunc(d.Of(name), func(other string) bool { _, off := values(other); return !off }), nil
	}
	return nil, slices.DeleteFunc(d.On(name), func(other string) bool { on, _ := values(other); return !on })
}

// closure returns what can be reached from a gate, without the gate itself.
func closure(edges Dependencies, name string) []string {
	reached := map[string]bool{name: true}
	for pending := []string{name}; len(pending) > 0; pending = pending[1:] {
		for _, next := range edges[featuregate.Feature(pending[0])] {
			if !reached[string(next)] {
				reached[string(next)] = true
				pending = append(pending, string(next))
			}
		}
	}
	delete(reached, name)
	return slices.Sorted(maps.Keys(reached))
}

// Conflict describes a gate that would be on without one that it depends on, and how to
// avoid that. Value is the value that the gate name would have. Others are the gates
// with the opposite value on which it depends, or which depend on it. Place is where,
// for example " in 1.35"; "" means here and now.
func Conflict(name string, value bool, others []string, place string) string {
	list := strings.Join(others, ", ")
	verb := map[bool]string{true: "are", false: "is"}[len(others) > 1]
	settings := []string{fmt.Sprintf("%s=%t", name, value)}
	for _, other := range others {
		settings = append(settings, fmt.Sprintf("%s=%t", other, value))
	}
	if value {
		return fmt.Sprintf("%s depends on %s, which %s off%s: binaries refuse to start so, and take no such value from the API; turn %s on first, or in the same restart (--feature-gates=%s)",
			name, list, verb, place, list, strings.Join(settings, ","))
	}
	depends := map[bool]string{true: "depend", false: "depends"}[len(others) > 1]
	return fmt.Sprintf("%s %s on%s and %s on %s: binaries refuse to start so, and take no such value from the API; turn %s off first, or in the same restart (--feature-gates=%s)",
		list, verb, place, depends, name, list, strings.Join(settings, ","))
}
