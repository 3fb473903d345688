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

package localcluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsOfTheControlPlane(t *testing.T) {
	for name, test := range map[string]struct {
		options      ControlOptions
		featureGates string
		server       []string
		others       []string
	}{
		"nothing":             {},
		"gates":               {options: ControlOptions{FeatureGates: "A=false"}, server: []string{"--feature-gates=A=false"}},
		"features":            {options: ControlOptions{CentralFeatures: []string{"A", "B"}, DynamicFeatures: []string{"C"}}, server: []string{"--central-features=A,B", "--dynamic-features=C"}},
		"APIs":                {options: ControlOptions{RuntimeConfig: []string{"a/v1=true", "b/v2=true"}}, server: []string{"--runtime-config=a/v1=true,b/v2=true"}},
		"an emulated version": {options: ControlOptions{EmulatedVersion: "1.35"}, server: []string{"--emulated-version=1.35"}, others: []string{"--emulated-version=1.35"}},
		"a dynamic feature that gates of all components set is left out": {
			options: ControlOptions{DynamicFeatures: []string{"A", "B"}}, featureGates: "C=false, A=true", server: []string{"--dynamic-features=B"},
		},
		"a dynamic feature that gates of the servers set is left out": {
			options: ControlOptions{FeatureGates: "B=true", DynamicFeatures: []string{"B"}}, server: []string{"--feature-gates=B=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string][]string{APIServer: test.server, ControllerManager: test.others, Scheduler: test.others}
			for _, component := range open(t, nil).components() {
				if diff := cmp.Diff(want[component.name], test.options.args(component, test.featureGates)); diff != "" {
					t.Errorf("unexpected arguments of %s (-want +got):\n%s", component.name, diff)
				}
			}
		})
	}
}

// TestControlIsKept: a restart that says nothing of it changes nothing.
func TestControlIsKept(t *testing.T) {
	c := open(t, nil)
	want := ControlOptions{FeatureGates: "A=true", CentralFeatures: []string{"A"}, DynamicFeatures: []string{"B"}, RuntimeConfig: []string{"a/v1=true"}, EmulatedVersion: "1.35"}
	c.SetControl(want)
	if err := c.state.save(c.config.DataDir); err != nil {
		t.Fatal(err)
	}
	s, err := loadState(c.config.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Control); diff != "" {
		t.Errorf("unexpected options (-want +got):\n%s", diff)
	}
}
