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

package reporting

import (
	"os"
	"os/exec"
	"testing"

	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/feature-lifecycle/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"
)

func asked(gate *featuregate.Gate, name string) bool {
	for _, o := range gate.Observations() {
		if o.Name == name {
			return o.Queried
		}
	}
	return false
}

// TestInstallCoversAllQueries queries the gate in each way that code does. A
// process records queries for its whole life, so the test runs in one of its
// own.
func TestInstallCoversAllQueries(t *testing.T) {
	const inside = "INSTALL_TEST_PROCESS"
	if os.Getenv(inside) == "" {
		test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		test.Env = append(os.Environ(), inside+"=true")
		if output, err := test.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	gate := Install()
	if Install() != gate {
		t.Error("a second layer was installed")
	}
	for name, ask := range map[string]func() bool{
		string(kubefeatures.MaxUnavailableStatefulSet): func() bool { return utilfeature.DefaultFeatureGate.Enabled(kubefeatures.MaxUnavailableStatefulSet) },
		string(kubefeatures.GenericWorkload):           func() bool { return processGate().Enabled(kubefeatures.GenericWorkload) },
		string(clientfeatures.ClientsAllowCBOR):        func() bool { return clientfeatures.FeatureGates().Enabled(clientfeatures.ClientsAllowCBOR) },
		string(kubefeatures.PodLevelResources): func() bool {
			return compatibility.DefaultComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent).Enabled(kubefeatures.PodLevelResources)
		},
	} {
		if asked(gate, name) {
			t.Errorf("%s was asked before this test", name)
		}
		ask()
		if !asked(gate, name) {
			t.Errorf("%s: the question went past the layer", name)
		}
	}
	if v := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent); v == nil || v.EmulationVersion().Minor() != gate.EmulationVersion().Minor() {
		t.Errorf("the registry's effective version is %v, the gate's %v", v, gate.EmulationVersion())
	}
}
