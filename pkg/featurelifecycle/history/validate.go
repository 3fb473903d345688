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

package history

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// stages are those that a gate can have.
var stages = []string{"Alpha", "Beta", "GA", "Deprecated"}

// components are those that can have gates, sorted by name.
var components = []string{
	ClientGo, CloudControllerManager, KubeAPIServer, KubeControllerManager, KubeProxy, KubeScheduler, Kubeadm, Kubelet,
}

// minor returns the minor number of a version of the form 1.37, -1 for others.
func minor(version string) int {
	text, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(n) != text {
		return -1
	}
	return n
}

func compareVersions(a, b string) int { return cmp.Compare(minor(a), minor(b)) }

// validate returns what is wrong with a history.
func (h *History) validate() error {
	if len(h.versions) == 0 || len(h.gates) == 0 {
		return fmt.Errorf("%d versions and %d gates; there has to be one of each at least", len(h.versions), len(h.gates))
	}
	var problems []error
	for i, g := range h.gates {
		if i > 0 && h.gates[i-1].Name >= g.Name {
			problems = append(problems, fmt.Errorf("gate %s comes after %s; sort them by name", g.Name, h.gates[i-1].Name))
		}
	}
	for _, g := range h.gates {
		if err := h.validateGate(g); err != nil {
			problems = append(problems, fmt.Errorf("gate %s: %w", g.Name, err))
		}
	}
	return errors.Join(problems...)
}

func (h *History) validateGate(g Gate) error {
	if len(g.Tracks) == 0 {
		return errors.New("no component has it")
	}
	all := g.Components()
	if distinct := slices.Compact(slices.Clone(all)); len(distinct) != len(all) {
		return fmt.Errorf("a component is in two tracks: %s", strings.Join(all, ", "))
	}
	for _, t := range g.Tracks {
		if len(t.Components) == 0 || !slices.IsSorted(t.Components) {
			return fmt.Errorf("components %q are none, or not sorted", t.Components)
		}
		for _, c := range t.Components {
			if !slices.Contains(components, c) {
				return fmt.Errorf("component %q is none of %s", c, strings.Join(components, ", "))
			}
		}
		if len(t.Changes) == 0 || t.Changes[0].Removed {
			return fmt.Errorf("in %s it is removed before it is there", t.Components[0])
		}
		for i, c := range t.Changes {
			if err := h.validateChange(c, t.Changes[:i]); err != nil {
				return fmt.Errorf("in %s at %s: %w", t.Components[0], c.Version, err)
			}
		}
		if err := h.validateDependencies(g, t); err != nil {
			return err
		}
	}
	return nil
}

// validateChange returns what is wrong with a change after those before it.
func (h *History) validateChange(c Change, before []Change) error {
	switch {
	case !slices.Contains(h.versions, c.Version):
		return fmt.Errorf("no source has this version")
	case c.Removed != (c.Spec == nil):
		return errors.New("it is either removed, or has a stage")
	case c.Spec != nil && !slices.Contains(stages, c.Stage):
		return fmt.Errorf("stage %q is none of %s", c.Stage, strings.Join(stages, ", "))
	case c.Spec != nil && !slices.IsSorted(c.DependsOn):
		return fmt.Errorf("dependencies %s are not sorted", strings.Join(c.DependsOn, ", "))
	case len(before) == 0:
		return nil
	}
	last := before[len(before)-1]
	switch {
	case compareVersions(last.Version, c.Version) >= 0:
		return fmt.Errorf("it comes after %s; sort changes by version", last.Version)
	case reflect.DeepEqual(last.Spec, c.Spec):
		return errors.New("nothing changes")
	}
	return nil
}

// validateDependencies returns a dependency that a component does not know.
func (h *History) validateDependencies(g Gate, t Track) error {
	for _, component := range t.Components {
		for _, version := range h.versions {
			spec, _ := g.At(component, version)
			for _, name := range spec.DependsOn {
				other, ok := h.Gate(name)
				if ok {
					_, ok = other.At(component, version)
				}
				if !ok {
					return fmt.Errorf("%s of %s does not know %s, on which it depends", component, version, name)
				}
			}
		}
	}
	return nil
}
