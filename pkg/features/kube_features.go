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

// Package features has the feature gates that this fork adds to Kubernetes.
// Importing it registers them.
package features

import (
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

const (
	// owner: sig-api-machinery
	// kep: https://kep.k8s.io/3920
	//
	// FeatureLifecycle enables the whole system: the API group features.k8s.io, the
	// server flow in kube-apiserver and the reports of all binaries. Without it the
	// binaries behave as upstream's (S6).
	//
	// The gate is on at every version that this binary can emulate: a cluster that
	// moves between versions needs it on both sides.
	FeatureLifecycle featuregate.Feature = "FeatureLifecycle"
)

func init() {
	runtime.Must(utilfeature.DefaultMutableFeatureGate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{
		FeatureLifecycle: {
			{Version: version.MustParse("1.32"), Default: false, PreRelease: featuregate.Alpha},
			{Version: version.MustParse("1.33"), Default: true, PreRelease: featuregate.Beta},
		},
	}))
}
