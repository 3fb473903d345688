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

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsOfServersAlone(t *testing.T) {
	for name, test := range map[string]struct {
		options      ControlOptions
		featureGates string
		want         []string
	}{
		"nothing":     {},
		"gates":       {options: ControlOptions{FeatureGates: "A=false"}, want: []string{"--feature-gates=A=false"}},
		"all of them": {options: ControlOptions{CentralFeatures: []string{"A", "B"}, DynamicFeatures: []string{"C"}, EmulatedVersion: "1.35"}, want: []string{"--central-features=A,B", "--dynamic-features=C", "--emulated-version=1.35"}},
		"a dynamic feature that gates of all components set is left out": {
			options: ControlOptions{DynamicFeatures: []string{"A", "B"}}, featureGates: "C=false, A=true", want: []string{"--dynamic-features=B"},
		},
		"a dynamic feature that gates of the servers set is left out": {
			options: ControlOptions{FeatureGates: "B=true", DynamicFeatures: []string{"B"}}, want: []string{"--feature-gates=B=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, nil)
			c.SetControl(test.options)
			c.state.FeatureGates = ""
			plain := open(t, nil)
			got := c.Control().args(test.featureGates)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("unexpected arguments (-want +got):\n%s", diff)
			}
			for i, component := range c.components() {
				if was := plain.components()[i]; !isServer(component.name) && len(was.args) != len(component.args) {
					t.Errorf("%s is told what is for servers alone: %v", component.name, component.args)
				}
			}
		})
	}
}
