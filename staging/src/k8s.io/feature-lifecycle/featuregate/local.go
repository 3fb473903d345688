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
	"cmp"
	"fmt"
	"slices"

	"k8s.io/component-base/featuregate"
)

// localValues are those set on the process itself: the wrapped gate at one
// moment.
type localValues struct {
	gate         featuregate.MutableVersionedFeatureGate
	values       map[featuregate.Feature]bool
	specs        map[featuregate.Feature]featuregate.FeatureSpec
	dependencies map[featuregate.Feature][]featuregate.Feature
	keepLocal    map[featuregate.Feature]bool
}

// newLocalValues reads a copy of the wrapped gate.
func newLocalValues(gate featuregate.MutableVersionedFeatureGate, keepLocal map[featuregate.Feature]bool) *localValues {
	l := &localValues{
		// The caller then sets values on its copy.
		gate:         gate.DeepCopy(),
		values:       map[featuregate.Feature]bool{},
		specs:        gate.GetAll(),
		dependencies: gate.Dependencies(),
		keepLocal:    keepLocal,
	}
	for f := range gate.GetAllVersioned() {
		l.values[f] = gate.Enabled(f)
	}
	return l
}

// refuses returns why the process cannot take a value for one feature, whatever
// the values of others are; "" if it can.
func (l *localValues) refuses(f featuregate.Feature, value bool) (Reason, string) {
	spec, known := l.specs[f]
	switch {
	case !known:
		return OutcomeUnknown, fmt.Sprintf("this binary has no such gate at version %s", l.gate.EmulationVersion())
	case f == "AllAlpha" || f == "AllBeta" || l.keepLocal[f]:
		return OutcomeKeptLocal, fmt.Sprintf("this binary takes the value from its own command line only; set --feature-gates=%s=%t on it", f, value)
	case l.gate.ExplicitlySet(f):
		return OutcomeExplicitlySet, fmt.Sprintf("%t is set on the process itself, which decides; remove %s from its --feature-gates or configuration", l.values[f], f)
	case spec.LockToDefault && spec.Default != value:
		return OutcomeLocked, fmt.Sprintf("the gate is locked to %t in this binary", spec.Default)
	}
	return "", ""
}

// violates returns which dependency forbids a value.
func (l *localValues) violates(wanted bool, other featuregate.Feature) string {
	switch {
	case other == "":
		return "the values set on the process itself contradict each other"
	case wanted:
		return fmt.Sprintf("it depends on %s, which is off; turn that on too", other)
	default:
		return fmt.Sprintf("%s, which is on, depends on it; turn that off too", other)
	}
}

func compareFeatures(a, b featuregate.Feature) int { return cmp.Compare(a, b) }

// has is true when features is empty or contains one of changed.
func has(features, changed []featuregate.Feature) bool {
	return len(features) == 0 || slices.ContainsFunc(changed, func(f featuregate.Feature) bool { return slices.Contains(features, f) })
}
