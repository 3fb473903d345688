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

package feature

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/ahead"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	_ "k8s.io/kubernetes-features/pkg/features" // the gates
)

// gates has the data of a build: its gates' specs by version and the authors'
// declarations.
type gates struct {
	// specs are complete from version lowest to highest.
	specs           map[featuregate.Feature]featuregate.VersionedSpecs
	lowest, highest *utilversion.Version
	// catalog has the declarations by gate.
	catalog map[featuregate.Feature]catalog.Entry
	// dependences are the gates that have to do with each gate.
	dependences map[string][]versionskew.Dependence
	// next is the version after highest, nil when nothing is known of it.
	next *nextGates
}

// nextGates has the gates of the version after this build's, as a published version of it
// lists them. Tasks and the form of what is stored are not known.
type nextGates struct {
	release     *ahead.Release
	specs       map[featuregate.Feature]featuregate.VersionedSpecs
	dependences map[string][]versionskew.Dependence
}

// buildGates are the gates of all binaries of this build's version.
func buildGates() (gates, error) {
	all, err := catalog.Gates()
	if err != nil {
		return gates{}, err
	}
	highest, err := utilversion.ParseMajorMinor(version.DefaultKubeBinaryVersion)
	if err != nil {
		return gates{}, fmt.Errorf("this build's version: %w", err)
	}
	known := gates{
		specs: all.GetAllVersioned(), lowest: highest.SubtractMinor(catalog.EmulatedMinors), highest: highest,
		catalog: map[featuregate.Feature]catalog.Entry{}, dependences: versionskew.Dependencies(all.Dependencies()).Dependences(),
	}
	for _, e := range catalog.All() {
		known.catalog[e.Name] = e
	}
	release, err := ahead.Next()
	if err != nil {
		return gates{}, err
	}
	if !release.Minor().EqualTo(highest.AddMinor(1)) {
		return known, nil
	}
	specs, err := release.Specs(known.specs)
	if err != nil {
		return gates{}, fmt.Errorf("gates of %s: %w", release.Version(), err)
	}
	known.next = &nextGates{release: release, specs: specs, dependences: release.Dependencies().Dependences()}
	return known, nil
}

// ahead returns what is known of a version after this build's, nil for versions that the
// build has itself.
func (g gates) ahead(v *utilversion.Version) *nextGates {
	if g.next == nil || !v.GreaterThan(g.highest) || !v.EqualTo(g.next.release.Minor()) {
		return nil
	}
	return g.next
}

// specAt returns the spec of a gate at a version.
func (g gates) specAt(name string, v *utilversion.Version) versionskew.Spec {
	specs := g.specs
	if next := g.ahead(v); next != nil {
		specs = next.specs
	}
	return versionskew.SpecAt(specs[featuregate.Feature(name)], v)
}

// dependencesAt returns the gates that have to do with a gate at a version.
func (g gates) dependencesAt(name string, v *utilversion.Version) []versionskew.Dependence {
	if next := g.ahead(v); next != nil {
		return next.dependences[name]
	}
	return g.dependences[name]
}

// reaches fails for a version to move to that neither this build nor what it knows of the
// next version has.
func (g gates) reaches(v *utilversion.Version) error {
	switch {
	case g.ahead(v) != nil:
		return nil
	case g.next != nil && v.GreaterThan(g.next.release.Minor()):
		return fmt.Errorf("this plugin knows versions up to %s, and the gates of %s; use kubectl-feature of %s", g.highest, g.next.release.Version(), v)
	default:
		return g.covers(v)
	}
}

// minorVersion reads a value of --to. Servers take nothing else, and a patch version
// or a letter that is dropped silently would make it look as if it counted.
func minorVersion(to, example string) (*utilversion.Version, error) {
	version, err := utilversion.ParseMajorMinor(to)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--to=%s is no minor version; write it like %s", to, example)
	case version.String() != to:
		return nil, fmt.Errorf("--to=%s is no minor version; write --to=%s", to, version)
	default:
		return version, nil
	}
}

// covers fails for a version that this build does not know.
func (g gates) covers(v *utilversion.Version) error {
	switch {
	case v.GreaterThan(g.highest):
		return fmt.Errorf("this plugin knows versions up to %s; use kubectl-feature of %s", g.highest, v)
	case v.LessThan(g.lowest):
		return fmt.Errorf("this plugin knows versions from %s on; use kubectl-feature of %s", g.lowest, v.AddMinor(1))
	default:
		return nil
	}
}
