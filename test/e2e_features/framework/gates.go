//go:build linux

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

package framework

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// AddGates adds a test's gates to those of its process, as the package of a
// binary's features does: for a test that is kube-apiserver in another process.
// Upstream's hack/verify-test-featuregates.sh has tests leave the process's gate
// alone, since the tests of a package share it.
func AddGates(gates map[featuregate.Feature]featuregate.VersionedSpecs) error {
	return utilfeature.DefaultMutableFeatureGate.AddVersioned(gates)
}
