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
	"maps"
	"slices"

	"k8s.io/component-base/featuregate"
)

// accept decides which changes of values can be made together so that no feature
// is on while one that it depends on is off; upstream refuses that
// (component-base/featuregate/feature_gate.go, Validate). Values are those
// before, which agree with the dependencies. What cannot be made is removed from
// changes and returned with the other feature of the dependency.
//
// A feature that is on and stays on holds what it depends on; of two changes that
// contradict each other, the one that turns something on is refused.
func accept(values map[featuregate.Feature]bool, dependencies map[featuregate.Feature][]featuregate.Feature, changes map[featuregate.Feature]bool) map[featuregate.Feature]featuregate.Feature {
	refused := map[featuregate.Feature]featuregate.Feature{}
	value := func(f featuregate.Feature) bool {
		if v, ok := changes[f]; ok {
			return v
		}
		return values[f]
	}
	turned := func(f featuregate.Feature, to bool) bool {
		v, ok := changes[f]
		return ok && v == to && values[f] != to
	}
	drop := func(f, because featuregate.Feature) {
		delete(changes, f)
		refused[f] = because
	}
	dependents := slices.Sorted(maps.Keys(dependencies))
	// each calls visit for every dependency that is violated and says whether
	// visit changed something.
	each := func(visit func(dependent, dependency featuregate.Feature) bool) (changed bool) {
		for _, f := range dependents {
			for _, d := range dependencies[f] {
				if value(f) && !value(d) && visit(f, d) {
					changed = true
				}
			}
		}
		return changed
	}
	for {
		held := each(func(f, d featuregate.Feature) bool {
			if !turned(d, false) || turned(f, true) {
				return false
			}
			drop(d, f)
			return true
		})
		if held {
			continue
		}
		if !each(func(f, d featuregate.Feature) bool {
			if !turned(f, true) {
				return false
			}
			drop(f, d)
			return true
		}) {
			return refused
		}
	}
}
