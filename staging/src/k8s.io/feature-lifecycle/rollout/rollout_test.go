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

package rollout

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func TestChoiceFollowsStatusAndRollout(t *testing.T) {
	const central, dynamic = v1alpha1.ControlCentral, v1alpha1.ControlDynamic
	on := &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceCommandLine}
	onByAPI := &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI}
	off := &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}
	none := &v1alpha1.FeatureRollout{Percent: ptr.To[int32](0)}
	stopped := &v1alpha1.FeatureRolloutStatus{Value: true, Halted: true}
	soon := metav1.NewTime(now.Add(time.Minute))
	moment := &v1alpha1.FeatureRollout{At: &soon}
	accepted := func(change func(*v1alpha1.FeatureRolloutStatus)) *v1alpha1.FeatureRolloutStatus {
		r := &v1alpha1.FeatureRolloutStatus{Value: true, Observed: v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), At: &soon}}
		if change != nil {
			change(r)
		}
		return r
	}
	switches := func(c Choice) Choice { c.SwitchTime = soon.Time; return c }
	value := func(v, dynamic, held bool) Choice { return Choice{Told: true, Value: v, Dynamic: dynamic, Held: held} }
	for name, tc := range map[string]struct {
		control    v1alpha1.FeatureControl
		configured *v1alpha1.FeatureConfiguration
		state      v1alpha1.FeatureState
		from       v1alpha1.FeatureState
		enabled    *bool
		rollout    *v1alpha1.FeatureRollout
		held       *bool
		canary     *v1alpha1.FeatureRolloutStatus
		want       Choice
	}{
		"in a canary":                                     {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, canary: &v1alpha1.FeatureRolloutStatus{Value: true}, want: value(true, true, false)},
		"halted, and had taken it":                        {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, held: ptr.To(true), canary: stopped, want: value(false, true, true)},
		"halted, and upgrading":                           {control: central, configured: on, state: v1alpha1.StateUpgrading, canary: stopped, want: value(false, false, true)},
		"outside of one, and upgrading":                   {control: central, configured: on, state: v1alpha1.StateUpgrading, rollout: none, canary: &v1alpha1.FeatureRolloutStatus{Value: true, Observed: *none}, want: value(false, false, true)},
		"a canary that grows while the feature is paused": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, canary: &v1alpha1.FeatureRolloutStatus{Value: true, Observed: *none}, want: value(false, true, true)},
		"not answered while upgrading":                    {control: dynamic, configured: off, enabled: ptr.To(true), state: v1alpha1.StateUpgrading, from: v1alpha1.StateOff, want: value(false, true, true)},
		"not answered while downgrading, and it is on":    {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateDowngrading, from: v1alpha1.StateOn, want: value(true, true, true)},
		"halted and called off, not answered":             {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateTurningOn, held: ptr.To(false), canary: stopped, want: value(false, true, true)},
		"halted and withdrawn, not answered":              {control: dynamic, configured: onByAPI, state: v1alpha1.StateTurningOn, held: ptr.To(true), canary: stopped, want: value(false, true, true)},
		"a halt of the other value is ignored":            {control: central, configured: off, state: v1alpha1.StateTurningOff, canary: stopped, want: value(false, false, false)},
		"nothing is known":                                {},
		"local says nothing":                              {control: v1alpha1.ControlLocal, configured: on},
		"a control from the future says nothing":          {control: "Other", configured: on},
		"nothing is configured yet":                       {control: central},
		"central":                                         {control: central, configured: on, want: value(true, false, false)},
		"central, off":                                    {control: central, configured: off, state: v1alpha1.StateOn, want: value(false, false, false)},
		"dynamic without a request":                       {control: dynamic, configured: on, want: value(true, true, false)},
		"dynamic, answered":                               {control: dynamic, configured: onByAPI, enabled: ptr.To(true), want: value(true, true, false)},
		"a central feature's leftover request is no news": {control: central, configured: on, enabled: ptr.To(false), want: value(true, false, false)},
		"outside, turning on":                             {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: none, want: value(false, true, true)},
		"outside, before the state follows":               {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateOff, rollout: none, want: value(false, true, true)},
		"outside, turning off":                            {control: central, configured: off, state: v1alpha1.StateTurningOff, rollout: none, want: value(true, false, true)},
		"outside of one that is done":                     {control: central, configured: on, state: v1alpha1.StateOn, rollout: none, want: value(true, false, true)},
		"outside, and the previous value is unknown":      {control: central, configured: on, rollout: none},
		"outside, upgrading":                              {control: central, configured: on, state: v1alpha1.StateUpgrading, rollout: none},
		"previous before state": {control: central, state: v1alpha1.StateTurningOff, rollout: none,
			configured: &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceAPI, Previous: ptr.To(false)}, want: value(false, false, true)},
		"not answered, held": {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateTurningOn, held: ptr.To(true), want: value(true, true, true)},
		"called off and rolled out in one write: left out stays out": {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateTurningOn, held: ptr.To(false), want: value(false, true, true)},
		"not answered, new":                  {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateTurningOn, want: value(false, true, true)},
		"withdrawn, and not answered":        {control: dynamic, configured: onByAPI, state: v1alpha1.StateTurningOn, held: ptr.To(false), want: value(false, true, true)},
		"not answered, and nothing is known": {control: dynamic, configured: onByAPI},
		"another component":                  {control: central, configured: on, state: v1alpha1.StateTurningOn, rollout: &v1alpha1.FeatureRollout{Components: []string{"kube-proxy"}}, want: value(false, false, true)},
		"this component among others":        {control: central, configured: on, state: v1alpha1.StateTurningOn, rollout: &v1alpha1.FeatureRollout{Components: []string{"kube-proxy", "kubelet"}}, want: value(true, false, false)},
		"this component, none of it":         {control: central, configured: on, state: v1alpha1.StateTurningOn, rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), Components: []string{"kubelet"}}, want: value(false, false, true)},
		"before its moment":                  {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment, canary: accepted(nil), want: switches(value(false, true, true))},
		"before its moment, central":         {control: central, configured: on, state: v1alpha1.StateTurningOn, rollout: moment, canary: accepted(nil), want: switches(value(false, false, true))},
		"before its moment, chosen": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment,
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) {
				r.Observed.Percent = ptr.To[int32](100)
				r.Observed.Components = []string{"kubelet"}
			}), want: value(true, true, false)},
		"before its moment, held": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment,
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) { r.MomentHeld = true }), want: value(false, true, true)},
		"at its moment": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment,
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) { r.Observed.At = &metav1.Time{Time: now} }), want: value(true, true, false)},
		"at its moment, called off": {control: dynamic, configured: onByAPI, enabled: ptr.To(false), state: v1alpha1.StateTurningOn, rollout: moment, held: ptr.To(false),
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) { r.Observed.At = &metav1.Time{Time: now} }), want: value(false, true, true)},
		"its moment has come": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment,
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) { r.Observed.Percent = nil }), want: value(true, true, false)},
		"halted, and its moment has passed": {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment,
			canary: accepted(func(r *v1alpha1.FeatureRolloutStatus) { r.Observed.At = &metav1.Time{Time: now}; r.Halted = true }), want: value(false, true, true)},
		// A server that does not know moments leads the feature, or the transition has ended.
		"a moment that is not accepted":            {control: dynamic, configured: onByAPI, enabled: ptr.To(true), state: v1alpha1.StateTurningOn, rollout: moment, want: value(true, true, false)},
		"a rollout that limits nothing is for all": {control: central, configured: on, state: v1alpha1.StateTurningOn, rollout: &v1alpha1.FeatureRollout{}, want: value(true, false, false)},
	} {
		t.Run(name, func(t *testing.T) {
			feature := &v1alpha1.Feature{
				ObjectMeta: metav1.ObjectMeta{Name: "A"},
				Spec:       v1alpha1.FeatureSpec{Enabled: tc.enabled, Rollout: tc.rollout},
				Status:     v1alpha1.FeatureStatus{Control: tc.control, Configured: tc.configured, State: tc.state, Rollout: tc.canary},
			}
			if tc.from != "" {
				feature.Status.Transition = &v1alpha1.FeatureTransition{FromState: tc.from}
			}
			before := feature.DeepCopy()
			if diff := cmp.Diff(tc.want, Choose(feature, Instance{"kubelet", "node-1"}, tc.held, now)); diff != "" {
				t.Errorf("unexpected choice (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, feature); diff != "" {
				t.Errorf("the feature was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestBucketsAreTheSameInAllVersions: another hash would move running canaries.
func TestBucketsAreTheSameInAllVersions(t *testing.T) {
	got := map[string]int32{}
	for _, instance := range []string{"node-1", "node-2", "node-3"} {
		for _, feature := range []string{"A", "MaxUnavailableStatefulSet"} {
			got[feature+" "+instance] = Bucket(feature, instance)
		}
	}
	want := map[string]int32{
		"A node-1": 14, "A node-2": 20, "A node-3": 87,
		"MaxUnavailableStatefulSet node-1": 94, "MaxUnavailableStatefulSet node-2": 52, "MaxUnavailableStatefulSet node-3": 79,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected buckets (-want +got):\n%s", diff)
	}
}

// TestGrowingRolloutKeepsInstances: for any feature and instance, a greater percentage or
// more components never take the requested value away.
func TestGrowingRolloutKeepsInstances(t *testing.T) {
	components := []string{"kube-apiserver", "kube-proxy", "kube-scheduler", "kubelet"}
	rapid.Check(t, func(t *rapid.T) {
		feature := rapid.String().Draw(t, "feature")
		instance := Instance{rapid.SampledFrom(components).Draw(t, "component"), rapid.String().Draw(t, "instance")}
		percent := rapid.Int32Range(0, 100).Draw(t, "percent")
		named := rapid.SliceOfDistinct(rapid.SampledFrom(components), func(c string) string { return c }).Draw(t, "components")
		smaller := &v1alpha1.FeatureRollout{Percent: &percent, Components: named}
		greater := &v1alpha1.FeatureRollout{Percent: ptr.To(rapid.Int32Range(percent, 100).Draw(t, "greater")), Components: named}
		if len(named) > 0 {
			greater.Components = append(append([]string{}, named...), components[0])
		}
		if Includes(smaller, feature, instance) && !Includes(greater, feature, instance) {
			t.Fatalf("%+v takes the value away that %+v gave", greater, smaller)
		}
		all, none := &v1alpha1.FeatureRollout{Percent: ptr.To[int32](100)}, &v1alpha1.FeatureRollout{Percent: ptr.To[int32](0)}
		if !Includes(all, feature, instance) || Includes(none, feature, instance) {
			t.Fatal("0 or 100 percent are not none or all")
		}
	})
}

// TestHaltedValueIsNeverTaken, whatever the rollout, the state and the held value.
func TestHaltedValueIsNeverTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requested := rapid.Bool().Draw(t, "requested")
		feature := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: rapid.String().Draw(t, "feature")}}
		if rapid.Bool().Draw(t, "limited") {
			feature.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: ptr.To(rapid.Int32Range(0, 100).Draw(t, "percent"))}
		}
		optional := func(label string) *bool {
			return rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, label)
		}
		feature.Spec.Enabled = optional("enabled")
		feature.Status = v1alpha1.FeatureStatus{
			Control:    rapid.SampledFrom([]v1alpha1.FeatureControl{v1alpha1.ControlCentral, v1alpha1.ControlDynamic}).Draw(t, "control"),
			State:      rapid.SampledFrom([]v1alpha1.FeatureState{"", v1alpha1.StateOn, v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateTurningOff, v1alpha1.StateUpgrading}).Draw(t, "state"),
			Configured: &v1alpha1.FeatureConfiguration{Value: requested, Previous: optional("previous"), Source: v1alpha1.SourceAPI},
			Rollout:    &v1alpha1.FeatureRolloutStatus{Value: requested, Halted: true},
		}
		got := Choose(feature, Instance{"kubelet", rapid.String().Draw(t, "instance")}, optional("held"), now)
		if want := (Choice{Told: true, Value: !requested, Dynamic: feature.Status.Control == v1alpha1.ControlDynamic, Held: true}); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// TestShareEqualsInstancesThatTakeValue among those that hold the other one.
func TestShareEqualsInstancesThatTakeValue(t *testing.T) {
	const instances = 2000
	for _, limit := range []*v1alpha1.FeatureRollout{
		nil, {}, {Components: []string{"kubelet"}}, {Components: []string{"kube-proxy"}},
		{Percent: ptr.To[int32](0)}, {Percent: ptr.To[int32](25)}, {Components: []string{"kubelet"}, Percent: ptr.To[int32](60)}, {Percent: ptr.To[int32](100)},
	} {
		feature := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Enabled: ptr.To(true), Rollout: limit}}
		feature.Name = "A"
		feature.Status = v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic, State: v1alpha1.StateOff, Configured: &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI}}
		taken := 0
		for i := range instances {
			if Choose(feature, Instance{"kubelet", fmt.Sprintf("node-%d", i)}, nil, now).Value {
				taken++
			}
		}
		if share, is := Share(feature, "kubelet"), float64(taken)/instances; share < is-0.05 || share > is+0.05 {
			t.Errorf("%+v: the share is %v, and %v take the value", limit, share, is)
		}
	}
}

// TestPercentageIncludesThatShareOfInstances: among many instances, about as many as the
// percentage are included, and not always the same.
func TestPercentageIncludesThatShareOfInstances(t *testing.T) {
	const instances = 10000
	for _, percent := range []int32{1, 10, 50, 90} {
		both := 0
		for _, feature := range []string{"A", "B"} {
			included := 0
			for i := range instances {
				name := fmt.Sprintf("node-%d", i)
				if Bucket(feature, name) < percent {
					included++
					if Bucket("A", name) < percent && Bucket("B", name) < percent {
						both++
					}
				}
			}
			if share := float64(included) / instances * 100; share < float64(percent)*0.9-0.5 || share > float64(percent)*1.1+0.5 {
				t.Errorf("%s: %d%% are %.1f%%", feature, percent, share)
			}
		}
		if want := float64(percent) / 100 * float64(percent) / 100 * instances; float64(both)/2 > want*1.2+20 {
			t.Errorf("%d%%: the same instances are first for both features: %d of %d", percent, both/2, instances)
		}
	}
}
