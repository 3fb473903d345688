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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestRefusesDependencies checks that a process refuses to start with a gate on and a
// dependency of it off, whichever of the two it was given, in every component.
func TestRefusesDependencies(t *testing.T) {
	on, off := feature(v1alpha1.StateOn), feature(v1alpha1.StateOff)
	setting := func(component string, value bool) Setting {
		return Setting{Component: component, Instance: "a", Enabled: value}
	}
	// needs is a gate N that F depends on, has is a gate D that depends on F.
	needs := func(target Spec, explicit ...Setting) Dependence {
		return Dependence{Name: "N", Needed: true, Target: target, Explicit: explicit}
	}
	has := func(name string, target Spec, explicit ...Setting) Dependence {
		return Dependence{Name: name, Target: target, Explicit: explicit}
	}
	allAlpha := []StageSetting{{"kube-scheduler", "a", v1alpha1.StageAlpha, true}}
	allBeta := []StageSetting{{"kube-scheduler", "a", v1alpha1.StageBeta, false}}
	for name, tc := range map[string]struct {
		q    Input
		want string
	}{
		"nothing is set": {Input{Feature: off, Current: alpha, Target: beta, Dependences: []Dependence{needs(beta)}}, ""},
		"up: off is what a gate depends on that becomes on": {
			Input{Feature: off, Current: alpha, Target: beta, Dependences: []Dependence{needs(beta, setting("kube-apiserver", false))}},
			"binaries would refuse to start in 1.37 with F on and N off, on which it depends: kube-apiserver/a sets N=false; " +
				"start them in 1.37 with --feature-gates=F=false,N=false, or with --feature-gates=F=true,N=true"},
		"the same, asked of the other gate, for all that depend on it together": {
			Input{Feature: off, Current: beta, Target: beta, Explicit: []Setting{setting("kubelet", false)}, Dependences: []Dependence{has("D", beta), has("E", beta), has("G", betaOff)}},
			"binaries would refuse to start in 1.37 with D, E on and F off, on which they depend: kubelet/a sets F=false; " +
				"start them in 1.37 with --feature-gates=D=false,E=false,F=false, or with --feature-gates=D=true,E=true,F=true"},
		"processes that set it are told apart from those that do not": {
			Input{Feature: on, Current: beta, Target: beta, Explicit: []Setting{setting("kubelet", true)}, Dependences: []Dependence{needs(beta, setting("kube-scheduler", false))}},
			"with F on and N off, on which it depends: kube-scheduler/a sets N=false;"},
		"down: on is set, and what it depends on is off by default": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Explicit: []Setting{setting("kubelet", true)}, Dependences: []Dependence{needs(alpha)}},
			"binaries would refuse to start in 1.35 with F on and N off, on which it depends: kubelet/a sets F=true; start them in 1.35 with --feature-gates=F=false,N=false, or with --feature-gates=F=true,N=true"},
		"down: what it depends on does not exist there": {
			Input{Feature: on, Down: true, Current: beta, Target: alpha, Explicit: []Setting{setting("kubelet", true)}, Dependences: []Dependence{needs(absent)}},
			"kubelet/a sets F=true; start them in 1.35 with --feature-gates=F=false"},
		"both are set, and agree":         {Input{Feature: off, Current: beta, Target: beta, Explicit: []Setting{setting("kubelet", false)}, Dependences: []Dependence{needs(beta, setting("kubelet", false))}}, ""},
		"on without what depends on it":   {Input{Feature: on, Current: alpha, Target: alpha, Explicit: []Setting{setting("kubelet", true)}, Dependences: []Dependence{has("D", alpha)}}, ""},
		"locked there, whatever they set": {Input{Feature: on, Current: beta, Target: ga, Dependences: []Dependence{needs(ga, setting("kubelet", true))}}, ""},
		"AllAlpha turns it on, and what it depends on is beta and off": {
			Input{Feature: on, Current: alpha, Target: alpha, Stages: allAlpha, Dependences: []Dependence{needs(betaOff)}},
			"with F on and N off, on which it depends: kube-scheduler/a sets AllAlpha=true"},
		"AllAlpha turns both on":  {Input{Feature: on, Current: alpha, Target: alpha, Stages: allAlpha, Dependences: []Dependence{needs(alpha)}}, ""},
		"AllBeta turns both off":  {Input{Feature: off, Current: beta, Target: beta, Stages: allBeta, Dependences: []Dependence{needs(beta)}}, ""},
		"AllBeta turns one off":   {Input{Feature: off, Current: beta, Target: beta, Explicit: []Setting{setting("kube-scheduler", true)}, Stages: allBeta, Dependences: []Dependence{needs(beta)}}, "kube-scheduler/a sets F=true, AllBeta=false"},
		"the value wins over All": {Input{Feature: off, Current: alpha, Target: alpha, Explicit: []Setting{setting("kube-scheduler", false)}, Stages: allAlpha, Dependences: []Dependence{needs(betaOff)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.To = map[bool]string{true: "1.35", false: "1.37"}[tc.q.Down]
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

// TestDependencesAhead checks that the gates of a version without known specs are
// unknown.
func TestDependencesAhead(t *testing.T) {
	setOff := []Dependence{{Name: "N", Needed: true, Target: beta, Explicit: set(false)}}
	setOn := []Dependence{{Name: "N", Needed: true, Target: beta, Explicit: set(true)}}
	for name, tc := range map[string]struct {
		q      Input
		status metav1.ConditionStatus
		says   string
	}{
		"off, and what it depends on is set off": {Input{Feature: feature(v1alpha1.StateOff), Current: alpha, Dependences: setOff}, metav1.ConditionUnknown, "processes set N=false, on which the feature depends, and their binaries would refuse to start if 1.37 turned it on"},
		"off, and what it depends on is set on":  {Input{Feature: feature(v1alpha1.StateOff), Current: alpha, Dependences: setOn}, metav1.ConditionTrue, "no process sets the gate"},
		"set off, and something depends on it":   {Input{Feature: feature(v1alpha1.StateOff), Current: beta, Explicit: set(false)}, metav1.ConditionUnknown, "or turned on what depends on it"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.q.To = "1.37"
			if got := EvaluateAhead(tc.q); got.Status != tc.status || !strings.Contains(got.Message(), tc.says) {
				t.Errorf("got %+v, want %s saying %q", got, tc.status, tc.says)
			}
		})
	}
}

// TestStages checks that a gate without an explicit setting that differs from its
// default shows what set it.
func TestStages(t *testing.T) {
	reported := func(stage v1alpha1.FeatureStage, enabled, byDefault bool) v1alpha1.ReportedFeature {
		return v1alpha1.ReportedFeature{Name: "F", Stage: stage, Enabled: enabled, Default: byDefault}
	}
	explicit, overridden := reported(v1alpha1.StageAlpha, true, false), reported(v1alpha1.StageAlpha, true, false)
	explicit.Explicit, overridden.Overridden = true, true
	got := map[string]map[v1alpha1.FeatureStage]bool{
		"all":    Stages([]v1alpha1.ReportedFeature{reported(v1alpha1.StageAlpha, true, false), reported(v1alpha1.StageBeta, false, true), reported(v1alpha1.StageGA, true, true)}),
		"none":   Stages([]v1alpha1.ReportedFeature{explicit, reported(v1alpha1.StageAlpha, false, false)}),
		"remote": Stages([]v1alpha1.ReportedFeature{overridden}),
	}
	want := map[string]map[v1alpha1.FeatureStage]bool{"all": {v1alpha1.StageAlpha: true, v1alpha1.StageBeta: false}, "none": nil, "remote": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected settings (-want +got):\n%s", diff)
	}
}
