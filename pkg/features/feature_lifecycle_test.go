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

package features

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

func TestFeatureLifecycleExistsAtEveryEmulatedVersion(t *testing.T) {
	for _, v := range []string{"1.33", "1.34", "1.35", "1.36"} {
		gate := utilfeature.DefaultFeatureGate.DeepCopy()
		if err := gate.SetEmulationVersion(version.MustParse(v)); err != nil {
			t.Fatal(err)
		}
		if !gate.Enabled(FeatureLifecycle) {
			t.Errorf("at %s: off by default", v)
		}
		if err := gate.Set("FeatureLifecycle=false"); err != nil || gate.Enabled(FeatureLifecycle) {
			t.Errorf("at %s: cannot be turned off: %v", v, err)
		}
	}
}
