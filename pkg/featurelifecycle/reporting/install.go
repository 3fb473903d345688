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
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	basecompatibility "k8s.io/component-base/compatibility"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
)

// Install puts the layer over the process's default feature gate and returns it. It has to
// run in main, before a command is built: commands and libraries read the variables that it
// replaces. Later calls return the same gate.
var Install = sync.OnceValue(func() *featuregate.Gate {
	gate := featuregate.Wrap(processGate())
	utilfeature.DefaultMutableFeatureGate = gate
	utilfeature.DefaultFeatureGate = gate
	clientfeatures.ReplaceFeatureGates(clientGates{gate})
	reregister(gate)
	return gate
})

// processGate returns the gate that commands set and add to. It equals
// utilfeature.DefaultFeatureGate, and is a variable of its own, which the layer has to
// replace as well.
func processGate() componentfeaturegate.MutableVersionedFeatureGate {
	return utilfeature.DefaultMutableFeatureGate
}

// reregister gives the layer to the registry that parses --feature-gates and
// --emulated-version. The registry captured the wrapped gate when its package was
// initialized (k8s.io/apiserver/pkg/util/compatibility/registry.go).
func reregister(gate *featuregate.Gate) {
	registry := compatibility.DefaultComponentGlobalsRegistry
	effective, ok := registry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).(basecompatibility.MutableEffectiveVersion)
	if !ok {
		// Programmer error: upstream registers a mutable version.
		panic(fmt.Sprintf("effective version of %s is not mutable", basecompatibility.DefaultKubeComponent))
	}
	registry.Reset()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, effective, gate); err != nil {
		panic(fmt.Sprintf("registering the feature gate layer: %v", err))
	}
}

// clientGates lets client-go query the layer.
type clientGates struct {
	gate *featuregate.Gate
}

// Enabled implements client-go's Gates.
func (g clientGates) Enabled(key clientfeatures.Feature) bool {
	return g.gate.Enabled(componentfeaturegate.Feature(key))
}
