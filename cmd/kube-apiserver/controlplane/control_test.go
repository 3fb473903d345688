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

package controlplane

import (
	"maps"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	componentfeaturegate "k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/component-base/version"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/features"
)

// says compares errors with parts of them, in their order.
func says(t *testing.T, errs []error, parts ...string) {
	t.Helper()
	if len(errs) != len(parts) {
		t.Fatalf("%v, want %d", errs, len(parts))
	}
	for i, err := range errs {
		if !strings.Contains(err.Error(), parts[i]) {
			t.Errorf("%v, want %q", err, parts[i])
		}
	}
}

// atStart is a gate that binaries query only when they start. It is new in 1.37.
const atStart = "EmptyDirVolumeMode"

// lockedGate returns a gate that is locked to true. Upstream removes those that have been
// for some minor versions.
func lockedGate(t *testing.T) string {
	t.Helper()
	all := utilfeature.DefaultFeatureGate.DeepCopy().GetAll()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if spec := all[name]; spec.LockToDefault && spec.Default {
			return string(name)
		}
	}
	t.Fatal("no gate is locked to true")
	return ""
}

// TestRemotelySettableGates covers the features of Kubernetes, and why something
// else may not.
func TestRemotelySettableGates(t *testing.T) {
	locked := lockedGate(t)
	for name, tc := range map[string]struct {
		control  control.Options
		refusals []string
	}{
		"nothing":                               {},
		"a central feature":                     {control: control.Options{Central: []string{atStart}}},
		"a dynamic feature, also as a central":  {control: control.Options{Central: []string{"MaxUnavailableStatefulSet"}, Dynamic: []string{"MaxUnavailableStatefulSet"}}},
		"a name twice":                          {control: control.Options{Central: []string{atStart, atStart}}},
		"no such gate":                          {control.Options{Central: []string{"Nonesuch"}}, []string{`--central-features: no feature gate "Nonesuch" is known at the emulation version ` + version.DefaultKubeBinaryVersion + `; names are exact, kubectl get features -n kube-system`}},
		"a switch for many":                     {control.Options{Dynamic: []string{"AllAlpha"}}, []string{"--dynamic-features: feature AllAlpha is not declared"}},
		"a locked gate":                         {control.Options{Central: []string{locked}}, []string{locked + " is locked to true"}},
		"a gate with flags of its own":          {control.Options{Central: []string{"UnknownVersionInteroperabilityProxy"}}, []string{"has configuration of its own (--peer-ca-file"}},
		"a gate that is not declared safe":      {control.Options{Central: []string{"APIServerIdentity"}}, []string{"is not declared as one whose value may come from elsewhere"}},
		"one that is asked for only at a start": {control.Options{Dynamic: []string{atStart}}, []string{"name it in --central-features instead"}},
		"two mistakes":                          {control.Options{Central: []string{"Nonesuch"}, Dynamic: []string{atStart}}, []string{"Nonesuch", atStart}},
	} {
		t.Run(name, func(t *testing.T) {
			options := CompletedOptions{Control: tc.control, Features: catalog.Features()}
			says(t, options.validateControl(utilfeature.DefaultFeatureGate.DeepCopy(), true, nil), tc.refusals...)
		})
	}
}

// TestDistributionFeaturesMayBeCentral checks that a distribution's
// declarations count, for Kubernetes' features, too. The catalog's objections
// cannot be overridden.
func TestDistributionFeaturesMayBeCentral(t *testing.T) {
	gate := componentfeaturegate.NewFeatureGate()
	specs := map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{}
	for _, name := range []componentfeaturegate.Feature{"Acme", "AcmeAtStart", "HostnameOverride", "UnknownVersionInteroperabilityProxy"} {
		specs[name] = componentfeaturegate.FeatureSpec{PreRelease: componentfeaturegate.Alpha}
	}
	if err := gate.Add(specs); err != nil {
		t.Fatal(err)
	}
	options := CompletedOptions{
		Control: control.Options{Central: []string{"AcmeAtStart"}, Dynamic: []string{"Acme", "AcmeAtStart", "HostnameOverride", "UnknownVersionInteroperabilityProxy"}},
		Features: []lifecycle.Feature{
			{Name: "Acme", Control: lifecycle.Dynamic}, {Name: "AcmeAtStart", Control: lifecycle.Central}, {Name: "UnknownVersionInteroperabilityProxy", Control: lifecycle.Dynamic},
		},
	}
	says(t, options.validateControl(gate, true, nil),
		"--dynamic-features: feature AcmeAtStart is declared as one that binaries query only when they start",
		"--dynamic-features: feature HostnameOverride is not declared",
		"--dynamic-features: feature UnknownVersionInteroperabilityProxy has configuration of its own")
}

// TestControlNeedsTheAPI: without it the flags would do nothing, in silence.
func TestControlNeedsTheAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		runtimeConfig cliflag.ConfigurationMap
		refusals      []string
	}{
		"nothing is said":         {},
		"other groups are off":    {runtimeConfig: cliflag.ConfigurationMap{"apps/v1": "false"}},
		"the group is off":        {cliflag.ConfigurationMap{"features.k8s.io/v1alpha1": "false"}, []string{"switches off features and featurereports of features.k8s.io/v1alpha1"}},
		"one resource is off":     {cliflag.ConfigurationMap{"features.k8s.io/v1alpha1/featurereports": "false"}, []string{"switches off featurereports of"}},
		"alpha versions are off":  {cliflag.ConfigurationMap{"api/alpha": "false"}, []string{"features and featurereports"}},
		"but not this one":        {runtimeConfig: cliflag.ConfigurationMap{"api/alpha": "false", "features.k8s.io/v1alpha1": "true"}},
		"a word that is no truth": {cliflag.ConfigurationMap{"features.k8s.io/v1alpha1": "perhaps"}, []string{"--runtime-config: "}},
		"everything is off":       {cliflag.ConfigurationMap{"api/all": "false", "v1": "true"}, []string{"features and featurereports"}},
	} {
		t.Run(name, func(t *testing.T) {
			options := CompletedOptions{Control: control.Options{Central: []string{atStart}}, Features: catalog.Features()}
			says(t, options.validateControl(utilfeature.DefaultFeatureGate.DeepCopy(), true, tc.runtimeConfig), tc.refusals...)
			options.Control = control.Options{}
			if errs := options.validateControl(utilfeature.DefaultFeatureGate.DeepCopy(), true, tc.runtimeConfig); len(errs) > 0 {
				t.Errorf("nothing is named: %v", errs)
			}
		})
	}
}

// TestValidateChecksControl: the errors of the server's own options are there with
// and without the flags, and those of the flags besides.
func TestValidateChecksControl(t *testing.T) {
	opts := NewOptions()
	opts.SecureServing.ServerCert.CertDirectory = t.TempDir()
	completed, err := opts.Complete(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	others := map[string]bool{}
	for _, err := range completed.Validate() {
		others[err.Error()] = true
	}
	validate := func() []error {
		var errs []error
		for _, err := range completed.Validate() {
			if !others[err.Error()] {
				errs = append(errs, err)
			}
		}
		return errs
	}
	completed.Control = control.Options{Dynamic: []string{"MaxUnavailableStatefulSet"}}
	says(t, validate())
	completed.Control.Dynamic = []string{"Nonesuch"}
	says(t, validate(), "Nonesuch")
	completed.Control.Dynamic = []string{"MaxUnavailableStatefulSet"}
	if err := completed.APIEnablement.RuntimeConfig.Set("features.k8s.io/v1alpha1=false"); err != nil {
		t.Fatal(err)
	}
	says(t, validate(), "features and featurereports")
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.FeatureLifecycle, false)
	says(t, validate(), "--central-features and --dynamic-features need --feature-gates=FeatureLifecycle=true")
	completed.Control = control.Options{Central: []string{"Nonesuch"}}
	says(t, validate(), "--central-features and --dynamic-features need --feature-gates=FeatureLifecycle=true")
	completed.Control = control.Options{}
	says(t, validate())
}
