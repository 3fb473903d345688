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

package catalog

import (
	"fmt"

	_ "k8s.io/apiextensions-apiserver/pkg/features" // the gates
	utilversion "k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	"k8s.io/component-base/version"
	_ "k8s.io/controller-manager/pkg/features/register" // the gates
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	_ "k8s.io/kubernetes-features/pkg/features" // the gates that this fork adds
	_ "k8s.io/kubernetes/pkg/features"          // the gates
)

// EmulatedMinors is the number of minor versions below its own that a binary
// emulates and knows completely. The gates' specs of older ones are removed from
// the source (KEP-4330; apiserver's pkg/util/compatibility).
const EmulatedMinors = 3

// EmulatedVersions returns the versions that a binary of this build can be, the newest
// first.
func EmulatedVersions() ([]*utilversion.Version, error) {
	newest, err := utilversion.ParseMajorMinor(version.DefaultKubeBinaryVersion)
	if err != nil {
		return nil, fmt.Errorf("reading the version of this build: %w", err)
	}
	var versions []*utilversion.Version
	for below := range uint(EmulatedMinors + 1) {
		versions = append(versions, newest.SubtractMinor(below))
	}
	return versions, nil
}

// Open returns whether a gate with the spec can be turned on and off and its feature is
// not finished: alpha or beta, and not locked.
func Open(spec versionskew.Spec) bool {
	return (spec.Stage == v1alpha1.StageAlpha || spec.Stage == v1alpha1.StageBeta) && !spec.Locked
}

// Gates returns the gates of all binaries of Kubernetes, with their values in
// this process. It is a copy, which the caller may change.
func Gates() (featuregate.MutableVersionedFeatureGate, error) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	// Mains add these to their gate; packages add all others when they are
	// initialized.
	for _, add := range []func(featuregate.MutableVersionedFeatureGate) error{logsapi.AddFeatureGates, metricsfeatures.AddFeatureGates} {
		if err := add(gates); err != nil {
			return nil, fmt.Errorf("collecting this build's feature gates: %w", err)
		}
	}
	return gates, nil
}
