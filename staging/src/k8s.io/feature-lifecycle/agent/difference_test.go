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

package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
)

func TestReportHasQueriedAndExplicitFeatures(t *testing.T) {
	observations := []featuregate.Observation{
		{Name: "Queried", Queried: true},
		{Name: "Explicit", Explicit: true, Enabled: true},
		{Name: "Neither", Stage: v1alpha1.StageAlpha},
	}
	for name, tc := range map[string]struct {
		all  bool
		want []string
	}{
		"servers report everything":                   {true, []string{"Queried", "Explicit", "Neither"}},
		"others what was asked for or set explicitly": {false, []string{"Queried", "Explicit"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range features(observations, tc.all) {
				got = append(got, f.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected features (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDifferencesOfSpecsAreClassified(t *testing.T) {
	spec := func(features ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReportSpec {
		return &v1alpha1.FeatureReportSpec{EmulationVersion: "1.36", Features: features}
	}
	a, aOn, b := v1alpha1.ReportedFeature{Name: "A"}, v1alpha1.ReportedFeature{Name: "A", Enabled: true}, v1alpha1.ReportedFeature{Name: "B"}
	aAsked, aOnAsked := v1alpha1.ReportedFeature{Name: "A", Queried: true}, v1alpha1.ReportedFeature{Name: "A", Enabled: true, Queried: true}
	aTaken := v1alpha1.ReportedFeature{Name: "A", Enabled: true, Overridden: true}
	aSoon := v1alpha1.ReportedFeature{Name: "A", SwitchTime: "2026-11-30T12:00:00Z"}
	older := spec(a)
	older.EmulationVersion = "1.35"
	for name, tc := range map[string]struct {
		written, observed *v1alpha1.FeatureReportSpec
		values            string
		other             bool
	}{
		"nothing changed":                        {spec(a, b), spec(a, b), "", false},
		"a value changed":                        {spec(a, b), spec(aOn, b), "A", false},
		"it is not the process's own":            {spec(a), spec(aTaken), "A", false},
		"its own is what was taken":              {spec(aTaken), spec(aOn), "", true},
		"it is to change at a moment":            {spec(a, b), spec(aSoon, b), "A", false},
		"it changed at its moment":               {spec(aSoon), spec(aOn), "A", false},
		"the moment was called off":              {spec(aSoon), spec(a), "A", false},
		"a feature was asked for":                {spec(a), spec(aAsked), "", true},
		"a feature came":                         {spec(a), spec(a, b), "", true},
		"a feature went":                         {spec(a, b), spec(a), "", true},
		"the version changed":                    {older, spec(a), "", true},
		"a value changed and a feature came":     {spec(a), spec(b, aOn), "A", true},
		"a value changed and it was asked for":   {spec(a), spec(aOnAsked), "A", true},
		"two values changed and nothing else":    {spec(a, b), spec(aOn, v1alpha1.ReportedFeature{Name: "B", Enabled: true}), "A B", false},
		"one went while another of them came":    {spec(a), spec(b), "", true},
		"it came with another value than others": {spec(b), spec(b, aOn), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := compare(tc.written, tc.observed)
			if strings.Join(got.values, " ") != tc.values || got.other != tc.other {
				t.Errorf("got %+v, want values %q and other %t", got, tc.values, tc.other)
			}
			if none := tc.values == "" && !tc.other; got.none() != none {
				t.Errorf("none is %t, want %t", got.none(), none)
			}
		})
	}
}
