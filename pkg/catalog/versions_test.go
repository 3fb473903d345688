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

package catalog

import (
	"maps"
	"slices"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
)

// TestWhatDiffersBetween135And136 counts the gates that the upgrade moves: in
// stage, default or lock. Those that declare no tasks at the boundary just move.
func TestWhatDiffersBetween135And136(t *testing.T) {
	before, after := utilversion.MustParse("1.35"), utilversion.MustParse("1.36")
	differing, flipped, locked := 0, 0, 0
	all := knownGates(t).GetAllVersioned()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, is := specAt(all[name], before), specAt(all[name], after)
		if was.PreRelease != is.PreRelease || was.Default != is.Default || was.LockToDefault != is.LockToDefault {
			differing++
		}
		if was.Default != is.Default {
			flipped++
		}
		if !was.LockToDefault && is.LockToDefault {
			locked++
		}
	}
	if differing != 76 {
		t.Errorf("%d gates differ, want 76: %d have another default, %d became locked", differing, flipped, locked)
	}
	t.Logf("%d gates differ: %d have another default, %d became locked", differing, flipped, locked)
}

// specAt is a gate's spec at a version; before its first it is off (component-base's
// featuregate, GetAll with an emulated version).
func specAt(specs featuregate.VersionedSpecs, version *utilversion.Version) featuregate.FeatureSpec {
	spec := featuregate.FeatureSpec{PreRelease: featuregate.PreAlpha}
	for _, s := range specs {
		if !s.Version.GreaterThan(version) {
			spec = s
		}
	}
	return spec
}

// TestVersionBoundariesAreWithinReach: a boundary above this binary's version
// would never be passed by it, and one below all that it can emulate by nobody.
func TestVersionBoundariesAreWithinReach(t *testing.T) {
	lowest, highest := utilversion.MustParse("1.33"), utilversion.MustParse("1.36")
	boundaries := 0
	for _, e := range All() {
		for _, v := range e.Versions {
			boundaries++
			at := utilversion.MustParse(v.At)
			if at.GreaterThan(highest) || !at.GreaterThan(lowest) {
				t.Errorf("%s declares the boundary %s; this binary passes those above %s up to %s", e.Name, v.At, lowest, highest)
			}
		}
	}
	if boundaries == 0 {
		t.Error("no entry declares a boundary")
	}
	if problem := lifecycle.Validate(Features()); problem != nil {
		t.Error(problem)
	}
}
