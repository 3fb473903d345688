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

package ahead

import (
	"fmt"
	"maps"
	"slices"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// Change is a gate that differs between two versions.
type Change struct {
	Name string
	// Before and After are its specs. They are not Known in the version that does not have
	// the gate.
	Before, After versionskew.Spec
}

// groups are the settings for all gates of a stage. They are gates to component-base, and
// no version's list has them.
var groups = []featuregate.Feature{"AllAlpha", "AllBeta"}

// Changes returns the gates that differ between this build at a version and the release,
// sorted by name. Build are the specs of this build.
func (r *Release) Changes(build map[featuregate.Feature]featuregate.VersionedSpecs, at *utilversion.Version) ([]Change, error) {
	specs, err := r.Specs(build)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(specs)
	maps.Copy(names, build)
	for _, group := range groups {
		delete(names, group)
	}
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := Change{Name: string(name), Before: versionskew.SpecAt(build[name], at), After: versionskew.SpecAt(specs[name], r.Minor())}
		if c.Before != c.After {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// Describe returns a phrase for a gate's maturity and default.
func Describe(s versionskew.Spec) string {
	if !s.Known {
		return "not there"
	}
	value := "off"
	if s.Default {
		value = "on"
	}
	stage := map[v1alpha1.FeatureStage]string{
		v1alpha1.StageAlpha: "alpha", v1alpha1.StageBeta: "beta", v1alpha1.StageGA: "generally available", v1alpha1.StageDeprecated: "deprecated",
	}[s.Stage]
	if s.Locked {
		return fmt.Sprintf("%s, locked %s", stage, value)
	}
	return fmt.Sprintf("%s, %s by default", stage, value)
}
