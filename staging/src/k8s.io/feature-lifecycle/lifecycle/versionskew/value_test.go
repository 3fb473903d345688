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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func TestValue(t *testing.T) {
	value := func(value bool, source v1alpha1.FeatureValueSource) v1alpha1.FeatureConfiguration {
		return v1alpha1.FeatureConfiguration{Value: value, Source: source}
	}
	onByDefault, offByDefault := value(true, v1alpha1.SourceDefault), value(false, v1alpha1.SourceDefault)
	bySpec := configured(v1alpha1.SourceDefault)
	// requested is off, and its request waits for its answer.
	requested := func(control v1alpha1.FeatureControl) *v1alpha1.Feature {
		f := feature(v1alpha1.StateOff)
		f.Spec.Enabled = ptr.To(true)
		f.Status.Control, f.Status.Configured = control, &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}
		return f
	}
	pending, noEffect := requested(v1alpha1.ControlDynamic), requested(v1alpha1.ControlCentral)
	other := configured(v1alpha1.SourceAPI)
	other.Spec.Enabled = ptr.To(false)
	withdrawn := configured(v1alpha1.SourceAPI)
	withdrawn.Spec.Enabled = nil
	for name, tc := range map[string]struct {
		q    Input
		want v1alpha1.FeatureConfiguration
	}{
		"another default there":                                {Input{Feature: bySpec, Down: true, Current: beta, Target: alpha}, offByDefault},
		"the gate is newer than there":                         {Input{Feature: bySpec, Down: true, Current: beta, Target: absent}, offByDefault},
		"on by default there":                                  {Input{Feature: feature(v1alpha1.StateOff), Current: alpha, Target: beta}, onByDefault},
		"a gate that is generally available is removed":        {Input{Feature: bySpec, Current: ga, Target: absent}, onByDefault},
		"a deprecated gate that is locked on is removed":       {Input{Feature: bySpec, Current: Spec{Known: true, Stage: v1alpha1.StageDeprecated, Default: true, Locked: true}, Target: absent}, onByDefault},
		"a deprecated gate that is on is removed":              {Input{Feature: bySpec, Current: Spec{Known: true, Stage: v1alpha1.StageDeprecated, Default: true}, Target: absent}, offByDefault},
		"a gate that is locked on is newer than there":         {Input{Feature: bySpec, Down: true, Current: ga, Target: absent}, offByDefault},
		"servers set it and it exists there":                   {Input{Feature: bySpec, Down: true, Current: beta, Target: alpha, Explicit: served(true)}, value(true, v1alpha1.SourceCommandLine)},
		"servers set it and it does not exist there":           {Input{Feature: bySpec, Down: true, Current: beta, Target: absent, Explicit: served(true)}, offByDefault},
		"servers set it and it is locked there":                {Input{Feature: bySpec, Current: beta, Target: ga, Explicit: served(false)}, onByDefault},
		"what others set does not decide":                      {Input{Feature: bySpec, Down: true, Current: beta, Target: alpha, Explicit: set(true)}, offByDefault},
		"the API asked for it, and older binaries do not read": {Input{Feature: configured(v1alpha1.SourceAPI), Down: true, Current: beta, Target: alpha}, offByDefault},
		"the API asked for it, and these servers do":           {Input{Feature: configured(v1alpha1.SourceAPI), Down: true, Emulated: true, Current: beta, Target: alpha}, value(true, v1alpha1.SourceAPI)},
		"the API asked for a gate that is newer than there":    {Input{Feature: configured(v1alpha1.SourceAPI), Down: true, Emulated: true, Current: beta, Target: absent}, offByDefault},
		"the API asks for it, and there is no answer yet":      {Input{Feature: pending, Current: alpha, Target: betaOff}, value(true, v1alpha1.SourceAPI)},
		"the same, for servers that go down":                   {Input{Feature: pending, Down: true, Emulated: true, Current: betaOff, Target: alpha}, value(true, v1alpha1.SourceAPI)},
		"the same, for older binaries":                         {Input{Feature: pending, Down: true, Current: betaOff, Target: alpha}, offByDefault},
		"the same, for a gate that is locked there":            {Input{Feature: pending, Current: betaOff, Target: retired}, offByDefault},
		"the API asks for something else by now":               {Input{Feature: other, Current: alpha, Target: beta}, value(false, v1alpha1.SourceAPI)},
		"the API asked for it, and asks no more":               {Input{Feature: withdrawn, Current: alpha, Target: betaOff}, offByDefault},
		"the API asks for it, without effect":                  {Input{Feature: noEffect, Current: alpha, Target: betaOff}, offByDefault},
		"AllAlpha set it, and it is alpha there":               {Input{Feature: configured(v1alpha1.SourceCommandLine), Down: true, Current: alpha, Target: alpha}, value(true, v1alpha1.SourceCommandLine)},
		"AllBeta set it, and it is alpha there":                {Input{Feature: configured(v1alpha1.SourceCommandLine), Down: true, Current: beta, Target: alpha}, offByDefault},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.q.Value()); diff != "" {
				t.Errorf("unexpected value (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusesControl: kube-apiserver refuses gates in --central-features and
// --dynamic-features that its emulation version does not have, or has locked,
// whatever the value.
func TestRefusesControl(t *testing.T) {
	dynamic := []Controlled{{"kube-apiserver", "a", v1alpha1.ControlDynamic}}
	for name, tc := range map[string]struct {
		q    Input
		want string
	}{
		"down: not there":           {Input{To: "1.35", Down: true, Controlled: dynamic}, "1.35 does not have the gate and its servers would refuse to start with it in --central-features or --dynamic-features: kube-apiserver/a has F as Dynamic; take F out of"},
		"up: locked there":          {Input{To: "1.37", Target: ga, Controlled: dynamic}, "1.37 has the gate locked"},
		"up: removed":               {Input{To: "1.37", Controlled: dynamic}, "1.37 does not have the gate"},
		"there":                     {Input{To: "1.35", Down: true, Target: alpha, Controlled: dynamic}, ""},
		"no server names it":        {Input{To: "1.35", Down: true}, ""},
		"set by name, and named so": {Input{To: "1.37", Target: ga, Controlled: dynamic, Explicit: set(false)}, "sets F=false; 1.37 has the gate locked and its servers would refuse to start"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.Feature, tc.q.Current = feature(v1alpha1.StateOff), alpha
			v, refuses := tc.q.Refuses()
			if refuses != (tc.want != "") || refuses && !strings.Contains(v.Message(), tc.want) {
				t.Errorf("it says %t, %q, want %q", refuses, v.Message(), tc.want)
			}
			if evaluated := Evaluate(tc.q); refuses != (evaluated.Reason == v1alpha1.ReasonRefusesToStart) {
				t.Errorf("evaluated %+v", evaluated)
			}
		})
	}
}

func TestAhead(t *testing.T) {
	known := utilversion.MajorMinor(1, 36)
	q := Input{Feature: feature(v1alpha1.StateOn), To: "1.37", Current: beta}
	if got := q.Ahead(known); len(got) != 1 || !strings.Contains(got[0], "is not known to binaries of 1.36; kubectl feature upgrade-check --to 1.37") {
		t.Errorf("for a version without specs Ahead = %q", got)
	}
	own := q
	own.Feature = q.Feature.DeepCopy()
	// The plugin knows no feature of an operator.
	own.Feature.Namespace = "widgets"
	if got := own.Ahead(known); len(got) != 1 || !strings.Contains(got[0], "is not known to binaries of 1.36; the notes of release 1.37 can tell") {
		t.Errorf("of an operator's version it says %q", got)
	}
	q.Explicit = set(true)
	if got := q.Ahead(known); len(got) != 2 || !strings.Contains(got[1], "would refuse to start if 1.37 removed it") {
		t.Errorf("for a gate that is set Ahead = %q", got)
	}
	q.Explicit, q.Controlled = nil, []Controlled{{"kube-apiserver", "a", v1alpha1.ControlCentral}}
	if got := q.Ahead(known); len(got) != 2 || !strings.Contains(got[1], "--central-features") {
		t.Errorf("of a feature that a server names in a flag it says %q", got)
	}
}

func TestDependencies(t *testing.T) {
	// D and C depend on B, which depends on A; E stands alone.
	d := Dependencies{"B": {"A"}, "C": {"B"}, "D": {"B", "A"}, "F": {"E"}}
	for name, tc := range map[string]struct{ got, want []string }{
		"what the last depends on":     {d.Of("C"), []string{"A", "B"}},
		"what the first depends on":    {d.Of("A"), nil},
		"what depends on the first":    {d.On("A"), []string{"B", "C", "D"}},
		"what depends on the last":     {d.On("C"), nil},
		"a circle ends":                {Dependencies{"A": {"B"}, "B": {"A"}}.Of("A"), []string{"B"}},
		"an unknown gate":              {d.On("X"), nil},
		"nothing depends on anything":  {Dependencies(nil).On("A"), nil},
		"the one that stands alone":    {d.On("E"), []string{"F"}},
		"several ways lead to the one": {d.Of("D"), []string{"A", "B"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected gates (-want +got):\n%s", diff)
			}
		})
	}
	if want := featuregate.Feature("B"); d["C"][0] != want {
		t.Errorf("the argument changed: %v", d)
	}
}

func TestConflict(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"off":              {Conflict("A", false, []string{"B"}, ""), "B is on and depends on A: binaries refuse to start so, and take no such value from the API; turn B off first, or in the same restart (--feature-gates=A=false,B=false)"},
		"off, of several":  {Conflict("A", false, []string{"B", "C"}, " in 1.35"), "B, C are on in 1.35 and depend on A: binaries refuse to start so, and take no such value from the API; turn B, C off first, or in the same restart (--feature-gates=A=false,B=false,C=false)"},
		"on":               {Conflict("B", true, []string{"A"}, ""), "B depends on A, which is off: binaries refuse to start so, and take no such value from the API; turn A on first, or in the same restart (--feature-gates=B=true,A=true)"},
		"on, several, far": {Conflict("C", true, []string{"A", "B"}, " in 1.35"), "C depends on A, B, which are off in 1.35: binaries refuse to start so, and take no such value from the API; turn A, B on first, or in the same restart (--feature-gates=C=true,A=true,B=true)"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("unexpected text (-want +got):\n%s", diff)
			}
		})
	}
}
