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

package controlplane

import (
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/catalog"
)

// TestWhatMayBeSetFromElsewhere, and why something else may not.
func TestWhatMayBeSetFromElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		control Control
		// refusals are parts of the errors, in their order.
		refusals []string
	}{
		"nothing":                               {},
		"a central feature":                     {control: Control{Central: []string{"HostnameOverride"}}},
		"a dynamic feature, also as a central":  {control: Control{Central: []string{"MaxUnavailableStatefulSet"}, Dynamic: []string{"MaxUnavailableStatefulSet"}}},
		"a name twice":                          {control: Control{Central: []string{"HostnameOverride", "HostnameOverride"}}},
		"no such gate":                          {Control{Central: []string{"Nonesuch"}}, []string{`--central-features: no feature gate "Nonesuch" is known at the emulation version 1.36`}},
		"a switch for many":                     {Control{Dynamic: []string{"AllAlpha"}}, []string{"--dynamic-features: feature AllAlpha is not declared"}},
		"a locked gate":                         {Control{Central: []string{"JobPodReplacementPolicy"}}, []string{"JobPodReplacementPolicy is locked to true"}},
		"a gate with flags of its own":          {Control{Central: []string{"UnknownVersionInteroperabilityProxy"}}, []string{"has configuration of its own (--peer-ca-file"}},
		"a gate that nobody has called safe":    {Control{Central: []string{"APIServerIdentity"}}, []string{"is not declared as one whose value may come from elsewhere"}},
		"one that is asked for only at a start": {Control{Dynamic: []string{"HostnameOverride"}}, []string{"name it in --central-features instead"}},
		"two mistakes":                          {Control{Central: []string{"Nonesuch"}, Dynamic: []string{"HostnameOverride"}}, []string{"Nonesuch", "HostnameOverride"}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := tc.control.validate(utilfeature.DefaultMutableFeatureGate, catalog.All())
			if len(errs) != len(tc.refusals) {
				t.Fatalf("%v, want %d", errs, len(tc.refusals))
			}
			for i, err := range errs {
				if !strings.Contains(err.Error(), tc.refusals[i]) {
					t.Errorf("%v, want %q", err, tc.refusals[i])
				}
			}
		})
	}
}

// TestControlIsReported: servers say in their reports who decides.
func TestControlIsReported(t *testing.T) {
	c := Control{Central: []string{"A", "B"}, Dynamic: []string{"B"}}
	for feature, want := range map[string]v1alpha1.FeatureControl{"A": v1alpha1.ControlCentral, "B": v1alpha1.ControlDynamic, "C": v1alpha1.ControlLocal} {
		if got := c.of(feature); got != want {
			t.Errorf("%s is %s, want %s", feature, got, want)
		}
	}
}
