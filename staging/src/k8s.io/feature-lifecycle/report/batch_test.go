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

package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"
)

func TestFeaturesReported(t *testing.T) {
	observations := []featuregate.Observation{
		{Name: "Asked", Asked: true},
		{Name: "Explicit", Explicit: true, Enabled: true},
		{Name: "Neither", Stage: v1alpha1.StageAlpha},
	}
	for name, tc := range map[string]struct {
		all  bool
		want []string
	}{
		"servers report everything":                   {true, []string{"Asked", "Explicit", "Neither"}},
		"others what was asked for or set explicitly": {false, []string{"Asked", "Explicit"}},
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

func TestUrgency(t *testing.T) {
	spec := func(features ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReportSpec {
		return &v1alpha1.FeatureReportSpec{EmulationVersion: "1.36", Features: features}
	}
	a, aOn, b := v1alpha1.ReportedFeature{Name: "A"}, v1alpha1.ReportedFeature{Name: "A", Enabled: true}, v1alpha1.ReportedFeature{Name: "B"}
	aAsked := v1alpha1.ReportedFeature{Name: "A", Asked: true}
	older := spec(a)
	older.EmulationVersion = "1.35"
	for name, tc := range map[string]struct {
		written, observed *v1alpha1.FeatureReportSpec
		want              urgency
	}{
		"nothing was written yet":             {nil, spec(a), immediate},
		"nothing changed":                     {spec(a, b), spec(a, b), unchanged},
		"a value changed":                     {spec(a, b), spec(aOn, b), immediate},
		"a feature was asked for":             {spec(a), spec(aAsked), batched},
		"a feature came":                      {spec(a), spec(a, b), batched},
		"a feature went":                      {spec(a, b), spec(a), batched},
		"the version changed":                 {older, spec(a), batched},
		"a value changed and a feature came":  {spec(a), spec(b, aOn), immediate},
		"one went while another of them came": {spec(a), spec(b), batched},
	} {
		t.Run(name, func(t *testing.T) {
			if got := compare(tc.written, tc.observed); got != tc.want {
				t.Errorf("urgency %d, want %d", got, tc.want)
			}
		})
	}
}

func TestDue(t *testing.T) {
	last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := due(immediate, last, Period); got.After(last) {
		t.Errorf("a changed value waits until %s", got)
	}
	if got, want := due(batched, last, Period), last.Add(time.Minute); !got.Equal(want) {
		t.Errorf("a question is written at %s, want %s", got, want)
	}
}
