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

package feature

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	"k8s.io/component-base/version"
	_ "k8s.io/controller-manager/pkg/features/register" // the gates
	"k8s.io/kubernetes-features/pkg/catalog"
	_ "k8s.io/kubernetes-features/pkg/features" // the gates
	_ "k8s.io/kubernetes/pkg/features"          // the gates
)

// emulated is how many minor versions below its own a binary knows completely
// (KEP-4330): the specs of older ones are removed from the source.
const emulated = 3

// gates is what a build knows: its gates' specs by version and the authors'
// declarations.
type gates struct {
	// specs are complete from version lowest to highest.
	specs           map[featuregate.Feature]featuregate.VersionedSpecs
	lowest, highest *utilversion.Version
	// catalog has the declarations by gate.
	catalog map[featuregate.Feature]catalog.Entry
}

// buildGates are the gates of all binaries of this build's version.
func buildGates() (gates, error) {
	all := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	// Mains add these to the gate; packages add all others when they are
	// initialised.
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{logsapi.AddFeatureGates, metricsfeatures.AddFeatureGates} {
		if err := add(all); err != nil {
			return gates{}, fmt.Errorf("collecting this build's feature gates: %w", err)
		}
	}
	highest, err := utilversion.ParseMajorMinor(version.DefaultKubeBinaryVersion)
	if err != nil {
		return gates{}, fmt.Errorf("this build's version: %w", err)
	}
	known := gates{specs: all.GetAllVersioned(), lowest: highest.SubtractMinor(emulated), highest: highest, catalog: map[featuregate.Feature]catalog.Entry{}}
	for _, e := range catalog.All() {
		known.catalog[e.Name] = e
	}
	return known, nil
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
