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

package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	componentfeaturegate "k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
)

func TestControlFollowsFlags(t *testing.T) {
	var o Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse([]string{"--central-features=A,B", "--dynamic-features=B", "--dynamic-features=D"}); err != nil {
		t.Fatal(err)
	}
	for feature, want := range map[string]v1alpha1.FeatureControl{
		"A": v1alpha1.ControlCentral, "B": v1alpha1.ControlDynamic, "C": v1alpha1.ControlLocal, "D": v1alpha1.ControlDynamic,
	} {
		if got := o.Of(feature); got != want {
			t.Errorf("%s is %s, want %s", feature, got, want)
		}
	}
	if diff := cmp.Diff([]string{"A", "B", "D"}, o.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// observed is a source that always returns the same slice.
type observed []featuregate.Observation

func (o observed) Observations() []featuregate.Observation { return o }
func (observed) News() <-chan struct{}                     { return nil }
func (observed) EmulationVersion() *utilversion.Version    { return utilversion.MajorMinor(1, 36) }

func TestSourceReportsControl(t *testing.T) {
	inner := observed{{Name: "A", Queried: true}, {Name: "B", Enabled: true}, {Name: "C"}}
	source := Options{Central: []string{"A", "B"}, Dynamic: []string{"B"}}.Source(inner)
	want := []featuregate.Observation{{Name: "A", Queried: true, Control: v1alpha1.ControlCentral}, {Name: "B", Enabled: true, Control: v1alpha1.ControlDynamic}, {Name: "C"}}
	if diff := cmp.Diff(want, source.Observations()); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
	if inner[0].Control != "" {
		t.Error("what the gate observed was changed")
	}
	if source.EmulationVersion().String() != "1.36" {
		t.Error("the version is not the gate's")
	}
}

func TestServerFollowsOnlyDynamicValuesOfAPI(t *testing.T) {
	o := Options{Central: []string{"Central"}, Dynamic: []string{"Dynamic"}}
	for name, tc := range map[string]struct {
		feature string
		source  v1alpha1.FeatureValueSource
		follows bool
	}{
		"a dynamic feature that was set through the API":     {"Dynamic", v1alpha1.SourceAPI, true},
		"one that the servers themselves set":                {"Dynamic", v1alpha1.SourceCommandLine, false},
		"one at its default":                                 {"Dynamic", v1alpha1.SourceDefault, false},
		"one without a configured value":                     {"Dynamic", "", false},
		"a central feature":                                  {"Central", v1alpha1.SourceAPI, false},
		"one that is dynamic for a server with other flags":  {"Other", v1alpha1.SourceAPI, false},
		"a central feature that was dynamic until a restart": {"Central", v1alpha1.SourceAPI, false},
	} {
		// The control in the status counts for processes that take values, not for servers.
		f := &v1alpha1.Feature{Status: v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic}}
		f.Name = tc.feature
		if tc.source != "" {
			f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: true, Source: tc.source}
		}
		if got := o.Follows(f); got != tc.follows {
			t.Errorf("%s: follows %t", name, got)
		}
	}
}

func TestNamesAreValidatedAgainstDeclarations(t *testing.T) {
	gate := componentfeaturegate.NewFeatureGate()
	if err := gate.Add(map[componentfeaturegate.Feature]componentfeaturegate.FeatureSpec{
		"Dynamic": {PreRelease: componentfeaturegate.Alpha},
		"Central": {PreRelease: componentfeaturegate.Alpha},
		"Local":   {PreRelease: componentfeaturegate.Alpha},
		"Silent":  {PreRelease: componentfeaturegate.Alpha},
		"Flags":   {PreRelease: componentfeaturegate.Alpha},
		"Set":     {PreRelease: componentfeaturegate.Alpha},
		"Locked":  {PreRelease: componentfeaturegate.GA, Default: true, LockToDefault: true},
	}); err != nil {
		t.Fatal(err)
	}
	if err := gate.Set("Set=true"); err != nil {
		t.Fatal(err)
	}
	rules := Constraints{
		Namespace: "ns",
		Gate:      gate,
		Declared: []lifecycle.Feature{
			{Name: "Dynamic", Control: lifecycle.Dynamic}, {Name: "Central", Control: lifecycle.Central}, {Name: "Local"},
			{Name: "Flags", Control: lifecycle.Dynamic}, {Name: "Set", Control: lifecycle.Dynamic}, {Name: "Locked", Control: lifecycle.Dynamic},
		},
		Refuse: func(feature string) string {
			if feature == "Flags" {
				return "has flags"
			}
			return ""
		},
	}
	for name, tc := range map[string]struct {
		options Options
		// refusals are parts of the errors, in their order.
		refusals []string
	}{
		"nothing":                           {},
		"what is permitted":                 {options: Options{Central: []string{"Central"}, Dynamic: []string{"Dynamic"}}},
		"a dynamic one as central, or both": {options: Options{Central: []string{"Dynamic"}, Dynamic: []string{"Dynamic"}}},
		"a name twice":                      {options: Options{Central: []string{"Central", "Central"}}},
		"a central one that is set here":    {options: Options{Central: []string{"Set"}}},
		"a dynamic one that is set here":    {Options{Dynamic: []string{"Set"}}, []string{"--dynamic-features: feature gate Set is set by --feature-gates of this server, too"}},
		"no such gate":                      {Options{Central: []string{"Nonesuch"}}, []string{`--central-features: no feature gate "Nonesuch" is known`}},
		"a locked one":                      {Options{Dynamic: []string{"Locked"}}, []string{"Locked is locked to true"}},
		"a central one as dynamic":          {Options{Dynamic: []string{"Central"}}, []string{"name it in --central-features instead"}},
		"one that is declared as local":     {Options{Central: []string{"Local"}}, []string{"Local is not declared as one whose value may come from elsewhere"}},
		"one without a declaration":         {Options{Central: []string{"Silent"}}, []string{"Silent is not declared as one whose value may come from elsewhere"}},
		"one that something speaks against": {Options{Dynamic: []string{"Flags"}}, []string{"Flags has flags; set --feature-gates"}},
		"two mistakes":                      {Options{Central: []string{"Nonesuch"}, Dynamic: []string{"Local"}}, []string{"Nonesuch", "Local"}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := tc.options.Validate(rules)
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
