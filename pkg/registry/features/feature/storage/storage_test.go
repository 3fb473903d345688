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

package storage

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/apis/features"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install" // the kinds that are printed
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/utils/ptr"
)

func TestColumns(t *testing.T) {
	status := func(change func(*features.FeatureStatus)) features.Feature {
		f := features.Feature{ObjectMeta: metav1.ObjectMeta{Name: "F"}, Status: features.FeatureStatus{
			Stage: features.StageBeta, State: features.StateOff, Default: ptr.To(false),
			Configured: &features.FeatureConfiguration{Value: false, Source: features.SourceDefault},
		}}
		change(&f.Status)
		return f
	}
	condition := func(kind, reason string) func(*features.FeatureStatus) {
		return func(s *features.FeatureStatus) {
			s.Conditions = []metav1.Condition{{Type: kind, Reason: reason, Status: metav1.ConditionFalse}}
		}
	}
	generator := printers.NewTableGenerator().With(addPrintHandlers)
	for name, tc := range map[string]struct {
		feature features.Feature
		want    []any
	}{
		"nothing is known": {features.Feature{ObjectMeta: metav1.ObjectMeta{Name: "F"}}, []any{"F", "<none>", "<none>", "<none>", "<none>", int64(0), int64(0), ""}},
		"at rest":          {status(func(*features.FeatureStatus) {}), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), ""}},
		"with users": {status(func(s *features.FeatureStatus) {
			s.Uses = []features.FeatureUse{{Enabled: ptr.To(true), Count: 2, Stale: 9}, {Enabled: ptr.To(false), Count: 3}, {Expected: 7}}
		}), []any{"F", "Beta", "Off", "Off", "Default", int64(2), int64(3), ""}},
		"at work": {status(func(s *features.FeatureStatus) {
			s.Tasks = []features.FeatureTask{{Name: "ClearField/statefulsets.apps/spec.x", Done: 2, Total: 5, Message: strings.Repeat("m", 80)}}
		}), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), "ClearField 2/5: " + strings.Repeat("m", 43) + "…"}},
		"dangling":           {status(condition(v1alpha1.ConditionClean, v1alpha1.ReasonLeftovers)), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), "Leftovers"}},
		"servers disagree":   {status(condition(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree)), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), "ServersDisagree"}},
		"a canary is halted": {status(condition(v1alpha1.ConditionProgressing, v1alpha1.ReasonRolloutHalted)), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), "RolloutHalted"}},
		"nothing is wrong":   {status(condition(v1alpha1.ConditionProgressing, v1alpha1.ReasonComplete)), []any{"F", "Beta", "Off", "Off", "Default", int64(0), int64(0), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := generator.GenerateTable(&features.FeatureList{Items: []features.Feature{tc.feature}}, printers.GenerateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, table.Rows[0].Cells[:len(tc.want)]); diff != "" {
				t.Errorf("unexpected cells (-want +got):\n%s", diff)
			}
		})
	}
}

type flow struct{ ServerFlow }

func TestFlowStartsAfterStorage(t *testing.T) {
	holder := &Flow{}
	if _, err := holder.get(); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("got %v, want it unavailable", err)
	}
	for _, create := range []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := (&PlanREST{flow: holder}).Create(ctx, "F", &features.FeaturePlan{Spec: features.FeaturePlanSpec{Enabled: ptr.To(true)}}, nil, nil)
			return err
		},
		func(ctx context.Context) error {
			_, err := (&CleanREST{flow: holder}).Create(ctx, "F", &features.FeatureCleanup{}, nil, nil)
			return err
		},
	} {
		if err := create(t.Context()); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %v, want it unavailable", err)
		}
	}
	holder.Set(flow{})
	if _, err := holder.get(); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestPlanIsValidated(t *testing.T) {
	plan := &PlanREST{flow: &Flow{}}
	_, err := plan.Create(t.Context(), "F", &features.FeaturePlan{}, nil, nil)
	if !apierrors.IsInvalid(err) {
		t.Errorf("an empty plan: %v", err)
	}
	_, err = plan.Create(t.Context(), "F", &features.FeaturePlan{ObjectMeta: metav1.ObjectMeta{Name: "G"}}, nil, nil)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `"G"`) {
		t.Errorf("a plan of another feature: %v", err)
	}
	_, err = plan.Create(t.Context(), "F", &features.Feature{}, nil, nil)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("another kind: %v", err)
	}
	denied := errors.New("denied")
	_, err = plan.Create(t.Context(), "F", &features.FeaturePlan{Spec: features.FeaturePlanSpec{TargetVersion: "1.37"}}, func(context.Context, runtime.Object) error { return denied }, nil)
	if !errors.Is(err, denied) {
		t.Errorf("admission is not asked: %v", err)
	}
}

func TestCleanable(t *testing.T) {
	feature := func(state v1alpha1.FeatureState, clean metav1.ConditionStatus, paused bool) *v1alpha1.Feature {
		return &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Paused: paused}, Status: v1alpha1.FeatureStatus{State: state, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionClean, Status: clean}}}}
	}
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		says    string
	}{
		"off with leftovers":   {feature(v1alpha1.StateOff, metav1.ConditionFalse, false), ""},
		"off, not yet looked":  {feature(v1alpha1.StateOff, metav1.ConditionUnknown, false), ""},
		"off and clean so far": {feature(v1alpha1.StateOff, metav1.ConditionTrue, false), ""},
		"on":                   {feature(v1alpha1.StateOn, metav1.ConditionTrue, false), "On"},
		"turning off":          {feature(v1alpha1.StateTurningOff, metav1.ConditionTrue, false), "TurningOff"},
		"without a state":      {feature("", metav1.ConditionUnknown, false), "no state yet"},
		"paused":               {feature(v1alpha1.StateOff, metav1.ConditionFalse, true), "spec.paused"},
	} {
		err := transition.Cleanable(tc.feature)
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
}
