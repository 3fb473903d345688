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

package versionskew

import (
	"slices"
	"strings"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestParseMove(t *testing.T) {
	for name, test := range map[string]struct {
		cluster, to string
		says        string
	}{
		"the next minor version":     {cluster: "1.36", to: "1.37"},
		"the next major version":     {cluster: "1.36", to: "2.3"},
		"the version is not known":   {to: "9.0"},
		"what is no version":         {cluster: "1.36", to: "next", says: "spec.targetVersion is \"next\"; write a minor version such as 1.36"},
		"a major version is skipped": {cluster: "1.36", to: "3.0", says: "spec.targetVersion is 3.0, and the cluster has 1.36; a plan is for a version of 1.x"},
	} {
		m, err := ParseMove(test.cluster, test.to)
		if (err == nil) != (test.says == "") || err != nil && !strings.HasPrefix(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
		if err == nil && (m.Target.String() != test.to || (m.Current == nil) != (test.cluster == "")) {
			t.Errorf("%s: got %v", name, m)
		}
	}
}

// grown is the gate F: off in 1.35, on from 1.36 on. Its dependent D has the same.
func grown() Binary {
	specs := featuregate.VersionedSpecs{
		{Version: utilversion.MajorMinor(1, 35), PreRelease: featuregate.Alpha},
		{Version: utilversion.MajorMinor(1, 36), PreRelease: featuregate.Beta, Default: true},
	}
	return Binary{
		Specs: map[featuregate.Feature]featuregate.VersionedSpecs{"F": specs, "D": specs},
		From:  utilversion.MajorMinor(1, 33), UpTo: utilversion.MajorMinor(1, 36),
		Dependencies: Dependencies{"D": {"F"}},
	}
}

func TestForecastMove(t *testing.T) {
	on := configured(v1alpha1.SourceDefault)
	foreign := on.DeepCopy()
	foreign.Name = "Foreign"
	for name, test := range map[string]struct {
		feature           *v1alpha1.Feature
		to                string
		mixed             bool
		value             string
		blockers, unknown string
	}{
		"the version of the cluster":        {on, "1.36", false, "true", "", ""},
		"that version while they are mixed": {on, "1.36", true, "true", "", ""},
		"off by default there":              {on, "1.35", false, "false", "", ""},
		"a version after this binary's":     {on, "1.37", false, "", "", "is not known to binaries of 1.36"},
		"a version that is skipped to":      {on, "1.38", false, "", "move to 1.37 first", "is not known to binaries of 1.36"},
		"the next major version":            {on, "2.0", false, "", "", "is not known to binaries of 1.36"},
		"a version below the lowest":        {on, "1.32", false, "", "can emulate no version below 1.33", "this binary knows versions from 1.33 on"},
		"a gate that it does not have":      {foreign, "1.35", false, "", "", "this server does not have it"},
	} {
		move, err := ParseMove("1.36", test.to)
		if err != nil {
			t.Fatal(err)
		}
		b := grown()
		f := b.ForecastMove(test.feature, move, test.mixed, func(gate string) Input {
			of := test.feature.DeepCopy()
			of.Name = gate
			return b.Complete(Input{Feature: of, Emulated: true}, move)
		})
		value := ""
		if f.Configured != nil {
			value = map[bool]string{true: "true", false: "false"}[f.Configured.Value]
		}
		if value != test.value {
			t.Errorf("%s: the value is %q, want %q", name, value, test.value)
		}
		for _, list := range []struct {
			got  []string
			want string
		}{{f.Blockers, test.blockers}, {f.Unknown, test.unknown}} {
			if (list.want == "") != (len(list.got) == 0) || !strings.Contains(strings.Join(list.got, "; "), list.want) {
				t.Errorf("%s: got %q, want %q", name, list.got, list.want)
			}
		}
		// D has the value of F in each version.
		if len(f.Dependencies)+len(f.Dependents) > 0 {
			t.Errorf("%s: %v and %v have another value", name, f.Dependencies, f.Dependents)
		}
	}
	unknown := grown().ForecastMove(on, Move{Target: utilversion.MajorMinor(1, 35)}, false, nil)
	if want := []string{"the cluster's version, and so what a move to 1.35 would change: no live server reports it"}; !slices.Equal(unknown.Unknown, want) {
		t.Errorf("without a version of the cluster: %q, want %q", unknown.Unknown, want)
	}
}

// TestForecastNamesDependents: D stays on because its own flag is set, and F goes off.
func TestForecastNamesDependents(t *testing.T) {
	b := grown()
	f := b.ForecastValue("F", v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceAPI}, func(string) (on, off bool) { return true, false })
	if !slices.Equal(f.Dependents, []string{"D"}) || len(f.Dependencies) > 0 || len(f.Blockers) != 1 || !strings.HasPrefix(f.Blockers[0], "D is on and depends on F") {
		t.Errorf("a value that a dependent contradicts: %+v", f)
	}
	f = b.ForecastValue("D", v1alpha1.FeatureConfiguration{Value: true}, func(string) (on, off bool) { return true, false })
	if len(f.Dependencies)+len(f.Dependents)+len(f.Blockers) > 0 {
		t.Errorf("a value that nothing contradicts: %+v", f)
	}
}

// TestBinaryEvaluatesAsFarAsItKnows: without specs of the other version the answer is
// that of EvaluateAhead.
func TestBinaryEvaluatesAsFarAsItKnows(t *testing.T) {
	on := configured(v1alpha1.SourceDefault)
	for to, want := range map[string]string{"1.37": v1alpha1.ReasonNotExaminedForVersion, "1.35": v1alpha1.ReasonNotExaminedForVersion} {
		move, err := ParseMove("1.36", to)
		if err != nil {
			t.Fatal(err)
		}
		b := grown()
		q := b.Complete(Input{Feature: on}, move)
		v := b.Evaluate(q, move)
		if v.Reason != want || (to == "1.37") != (v == EvaluateAhead(q)) {
			t.Errorf("to %s: %+v", to, v)
		}
		if q.To != to || q.Down != (to == "1.35") || !q.Current.Default || q.Target.Default == q.Down {
			t.Errorf("to %s: the input is %+v", to, q)
		}
	}
}
