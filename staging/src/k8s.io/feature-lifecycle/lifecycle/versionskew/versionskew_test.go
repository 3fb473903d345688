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
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func feature(state v1alpha1.FeatureState) *v1alpha1.Feature {
	return &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "F"},
		Status:     v1alpha1.FeatureStatus{State: state, Version: "1.36"},
	}
}

// configured returns a feature that is on because of a source.
func configured(source v1alpha1.FeatureValueSource) *v1alpha1.Feature {
	f := feature(v1alpha1.StateOn)
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: true, Source: source}
	if source == v1alpha1.SourceAPI {
		f.Status.Control, f.Spec.Enabled = v1alpha1.ControlDynamic, ptr.To(true)
	}
	return f
}

var (
	absent  = Spec{}
	alpha   = Spec{Known: true, Stage: v1alpha1.StageAlpha}
	betaOff = Spec{Known: true, Stage: v1alpha1.StageBeta}
	beta    = Spec{Known: true, Default: true, Stage: v1alpha1.StageBeta}
	ga      = Spec{Known: true, Default: true, Locked: true, Stage: v1alpha1.StageGA}
	retired = Spec{Known: true, Locked: true, Stage: v1alpha1.StageDeprecated}
	set     = func(value bool) []Setting {
		return []Setting{{Component: "kube-scheduler", Instance: "host-1", Enabled: value}}
	}
	served = func(value bool) []Setting {
		return append(set(!value), Setting{Component: "kube-apiserver", Instance: "a", Enabled: value, Server: true})
	}
)

func TestEvaluate(t *testing.T) {
	on, off := feature(v1alpha1.StateOn), feature(v1alpha1.StateOff)
	for name, tc := range map[string]struct {
		q      Input
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"down: a gate that is set and the lower version does not have": {
			Input{Feature: off, Down: true, Current: beta, Target: absent, Explicit: set(false)},
			metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart, "1.35 does not have the gate and its binaries would refuse to start: kube-scheduler/host-1 sets F=false; take F out of --feature-gates"},
		"up: a gate that is set to what the next version locks the other way": {
			Input{Feature: off, Current: beta, Target: ga, Explicit: set(false)},
			metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart, "locked to true"},
		"up: a gate that is set and removed": {
			Input{Feature: on, Current: ga, Target: absent, Explicit: set(true)},
			metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart, "refuse to start"},
		"up: set to the value that the next version locks": {
			Input{Feature: on, Current: beta, Target: ga, Explicit: set(true)}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"a refusal is reported first, even in a transition": {
			Input{Feature: feature(v1alpha1.StateTurningOff), Down: true, Current: beta, Target: absent, Explicit: set(false)},
			metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart, ""},
		"in transition": {
			Input{Feature: feature(v1alpha1.StateUpgrading), Current: beta, Target: beta}, metav1.ConditionFalse, v1alpha1.ReasonInTransition, "kubectl get features -n kube-system F"},
		"no state": {
			Input{Feature: feature(""), Current: beta, Target: beta}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, ""},
		"down: tasks are declared and have not run": {
			Input{Feature: on, Down: true, Current: beta, Target: beta, Tasks: []string{"Downgrade/1.36/X"}},
			metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "Downgrade/1.36/X; restart all kube-apiservers of this version with --emulated-version=1.35"},
		"up: tasks run afterwards": {
			Input{Feature: on, Current: beta, Target: ga, Tasks: []string{"Upgrade/1.37/X"}}, metav1.ConditionTrue, v1alpha1.ReasonSafe, "1.37 brings what is stored to its form: Upgrade/1.37/X"},
		"down: on, stores something, off by default there": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Clears: true},
			metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "is off in 1.35"},
		"down: on, stores something, not there": {
			Input{Feature: on, Down: true, Current: beta, Target: absent, Clears: true},
			metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "is not in 1.35"},
		"down: on, off there, and nothing is declared": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "does not declare"},
		"down: on by the command line on both sides": {
			Input{Feature: on, Down: true, Current: alpha, Target: alpha, Explicit: served(true), Clears: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"down: on by default, and only a client sets it": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Explicit: set(true), Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, ""},
		"up: AllAlpha turned it on, and it is beta and off there": {
			Input{Feature: configured(v1alpha1.SourceCommandLine), Current: alpha, Target: betaOff, Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "is off in 1.37"},
		"up: AllAlpha turned it on, and does so there": {
			Input{Feature: configured(v1alpha1.SourceCommandLine), Current: alpha, Target: alpha, Clears: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"up: spec.enabled stays": {
			Input{Feature: configured(v1alpha1.SourceAPI), Current: alpha, Target: betaOff, Clears: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"down: spec.enabled may not be read, and has to be false before": {
			Input{Feature: configured(v1alpha1.SourceAPI), Down: true, Current: betaOff, Target: alpha, Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion,
			`kubectl patch features -n kube-system F --type=merge -p '{"spec":{"enabled":false}}'`},
		"down: on, off there, and objects use it": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Clears: true, Examined: true, Used: "1 pods"}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "what uses it (1 pods)"},
		"down: on, off there, and no object uses it": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Clears: true, Examined: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, "no stored object uses it now"},
		"down: a gate that is locked here can only be turned off by emulation": {
			Input{Feature: on, Down: true, Current: ga, Target: alpha, Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion,
			"deletions; restart all kube-apiservers of this version with --emulated-version=1.35 and wait until the feature is Off"},
		"down: on, off there, and it stores nothing": {
			Input{Feature: on, Down: true, Current: beta, Target: absent, Harmless: "it stores nothing"}, metav1.ConditionTrue, v1alpha1.ReasonSafe, "stores nothing"},
		"down: off, with leftovers that validation may stand in the way of": {
			Input{Feature: off, Down: true, Current: alpha, Target: alpha, Clears: true, Leftovers: "2 pods"},
			metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "2 pods"},
		"down: off and clean": {
			Input{Feature: off, Down: true, Current: alpha, Target: absent, Clears: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"up: GA, and the gate is removed": {
			Input{Feature: on, Current: ga, Target: absent, Clears: true}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"up: a feature that is given up": {
			Input{Feature: on, Current: beta, Target: retired, Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "--feature-gates=F=false"},
		"up: on, and the version here does not read what is stored": {
			Input{Feature: on, Current: beta, Target: beta, Unread: "2 lamps of 1.35"}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "2 lamps of 1.35"},
		"down: on, and the version there may read what this one does not": {
			Input{Feature: on, Down: true, Current: beta, Target: beta, Unread: "2 lamps of 1.35"}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"up: on, and the version there loses fields": {
			Input{Feature: on, Current: beta, Target: beta, Lost: "2 lamps have spec.hue"}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion,
			"1.37 loses what stored objects have of it: 2 lamps have spec.hue; set --feature-gates=F=false in all components and wait until the feature is Off, before any binary is replaced"},
		"up: off, and the version there would lose fields": {
			Input{Feature: off, Current: alpha, Target: alpha, Lost: "2 lamps have spec.hue"}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"up: a feature that is removed before it was GA": {
			Input{Feature: on, Current: beta, Target: absent, Clears: true}, metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, "is not in"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.To = "1.37"
			if tc.q.Down {
				tc.q.To = "1.35"
			}
			got := Evaluate(tc.q)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message(), tc.says) {
				t.Errorf("got %+v, want %s %s saying %q", got, tc.status, tc.reason, tc.says)
			}
		})
	}
}

// TestEvaluateAhead checks what a server reports about the next version, and the source
// that it names for the rest.
func TestEvaluateAhead(t *testing.T) {
	on, off := feature(v1alpha1.StateOn), feature(v1alpha1.StateOff)
	for name, tc := range map[string]struct {
		q      Input
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"off and clean, and not set":          {Input{Feature: off, Current: alpha}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"off and set":                         {Input{Feature: off, Current: alpha, Explicit: set(false)}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "kubectl feature upgrade-check --to 1.37"},
		"off and not clean":                   {Input{Feature: off, Current: alpha, Leftovers: "2 pods", Explicit: set(false)}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "2 pods"},
		"on, and not all of it is read here":  {Input{Feature: on, Current: ga, Unread: "2 lamps of 1.35"}, metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, "2 lamps of 1.35"},
		"on and GA":                           {Input{Feature: on, Current: ga}, metav1.ConditionTrue, v1alpha1.ReasonSafe, ""},
		"on and GA, and set to the very same": {Input{Feature: on, Current: ga, Explicit: set(true)}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "removed it"},
		"on and alpha":                        {Input{Feature: configured(v1alpha1.SourceCommandLine), Current: alpha, Clears: true}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "with the plugin of 1.37"},
		"on and beta":                         {Input{Feature: on, Current: beta}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, ""},
		"in transition":                       {Input{Feature: feature(v1alpha1.StateTurningOn), Current: alpha}, metav1.ConditionFalse, v1alpha1.ReasonInTransition, ""},
		"no state":                            {Input{Feature: feature(""), Current: alpha}, metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "no state"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.To = "1.37"
			got := EvaluateAhead(tc.q)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message(), tc.says) {
				t.Errorf("got %+v, want %s %s saying %q", got, tc.status, tc.reason, tc.says)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	q := Input{Feature: feature(v1alpha1.StateOn), To: "1.37", Current: beta}
	for i := range 5000 {
		q.Explicit = append(q.Explicit, Setting{Component: "kubelet", Instance: fmt.Sprint("node-", i), Enabled: true})
	}
	if message := Evaluate(q).Message(); len(message) > 600 || !strings.Contains(message, "4995 more") {
		t.Errorf("%d characters: %.300s", len(message), message)
	}
	if q.Explicit[5].Instance != "node-5" {
		t.Error("the input was changed")
	}
}

func TestSpecAt(t *testing.T) {
	specs := featuregate.VersionedSpecs{
		{Version: utilversion.MustParse("1.34"), PreRelease: featuregate.Alpha},
		{Version: utilversion.MustParse("1.35"), PreRelease: featuregate.Beta, Default: true},
		{Version: utilversion.MustParse("1.37"), PreRelease: featuregate.GA, Default: true, LockToDefault: true},
	}
	for version, want := range map[string]Spec{"1.33": absent, "1.34": alpha, "1.35": beta, "1.36": beta, "1.37": ga, "1.40": ga} {
		if got := SpecAt(specs, utilversion.MustParse(version)); got != want {
			t.Errorf("at %s: got %+v, want %+v", version, got, want)
		}
	}
}

// TestSpecAtWithMinCompatibilityVersion: a default for clusters that will not return to the
// version before holds from the next version on.
func TestSpecAtWithMinCompatibilityVersion(t *testing.T) {
	specs := featuregate.VersionedSpecs{
		{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta},
		{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta, Default: true, MinCompatibilityVersion: utilversion.MustParse("1.36")},
	}
	for version, want := range map[string]Spec{
		"1.35": {},
		"1.36": {Known: true, Stage: v1alpha1.StageBeta},
		"1.37": {Known: true, Stage: v1alpha1.StageBeta, Default: true},
	} {
		if got := SpecAt(specs, utilversion.MustParse(version)); got != want {
			t.Errorf("at %s: got %+v, want %+v", version, got, want)
		}
	}
}

// TestSpecOfFollowsReportedDefault: what servers report shows which of the specs that
// require a compatibility version hold.
func TestSpecOfFollowsReportedDefault(t *testing.T) {
	strict := featuregate.VersionedSpecs{
		{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta},
		{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta, Default: true, MinCompatibilityVersion: utilversion.MustParse("1.36")},
	}
	plain := featuregate.VersionedSpecs{{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta}}
	for name, tc := range map[string]struct {
		specs    featuregate.VersionedSpecs
		version  string
		reported *bool
		want     Spec
	}{
		"no report":                             {strict, "1.36", nil, betaOff},
		"without the flag":                      {strict, "1.36", ptr.To(false), betaOff},
		"compatible with no version before":     {strict, "1.36", ptr.To(true), beta},
		"the next version without the flag":     {strict, "1.37", ptr.To(true), beta},
		"the next one, compatible with 1.35":    {strict, "1.37", ptr.To(false), betaOff},
		"a gate that does not depend on that":   {plain, "1.36", ptr.To(true), betaOff},
		"a gate that the version does not have": {strict, "1.35", ptr.To(true), absent},
		"a gate that this binary does not know": {nil, "1.36", ptr.To(true), absent},
	} {
		f := feature(v1alpha1.StateOn)
		f.Status.Default = tc.reported
		version := utilversion.MustParse(tc.version)
		if got := SpecOf(f, tc.specs, version); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
		completed := Binary{Specs: map[featuregate.Feature]featuregate.VersionedSpecs{"F": tc.specs}}.Complete(Input{Feature: f}, Move{Current: version, Target: version.AddMinor(1)})
		if completed.Current != tc.want {
			t.Errorf("%s: Complete has %+v, want %+v", name, completed.Current, tc.want)
		}
	}
}
