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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// now is the time of tests.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func drawOptional(t *rapid.T, label string) *bool {
	return rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, label)
}

func drawRollout(t *rapid.T, label string) *v1alpha1.FeatureRollout {
	if !rapid.Bool().Draw(t, label+" is there") {
		return nil
	}
	r := &v1alpha1.FeatureRollout{
		Attempt:    rapid.Int32Range(0, 2).Draw(t, label+" attempt"),
		Components: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"kubelet", "kube-proxy"}), 0, 2, rapid.ID).Draw(t, label+" components"),
	}
	if rapid.Bool().Draw(t, label+" is limited") {
		r.Percent = ptr.To(rapid.SampledFrom([]int32{0, 1, 50, 99, 100}).Draw(t, label+" percent"))
	}
	if rapid.Bool().Draw(t, label+" has a moment") {
		r.At = ptr.To(metav1.NewTime(now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, label+" at")) * time.Minute)))
	}
	return r
}

func drawFeature(t *rapid.T) *v1alpha1.Feature {
	states := []v1alpha1.FeatureState{"", v1alpha1.StateOn, v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateTurningOff, v1alpha1.StateUpgrading, v1alpha1.StateDowngrading}
	f := &v1alpha1.Feature{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "A", ResourceVersion: "7"},
		Spec:       v1alpha1.FeatureSpec{Enabled: drawOptional(t, "enabled"), Rollout: drawRollout(t, "spec.rollout"), Paused: rapid.Bool().Draw(t, "paused")},
		Status: v1alpha1.FeatureStatus{
			Control: rapid.SampledFrom([]v1alpha1.FeatureControl{"", v1alpha1.ControlLocal, v1alpha1.ControlCentral, v1alpha1.ControlDynamic, v1alpha1.ControlDynamic, "Other"}).Draw(t, "control"),
			State:   rapid.SampledFrom(states).Draw(t, "state"),
		},
	}
	if rapid.IntRange(0, 9).Draw(t, "configured") > 0 {
		f.Status.Configured = &v1alpha1.FeatureConfiguration{
			Value:    rapid.Bool().Draw(t, "value"),
			Previous: drawOptional(t, "previous"),
			Source:   rapid.SampledFrom([]v1alpha1.FeatureValueSource{v1alpha1.SourceDefault, v1alpha1.SourceAPI}).Draw(t, "source"),
		}
	}
	if observed := drawRollout(t, "status.rollout"); observed != nil {
		f.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Observed: *observed, Value: rapid.Bool().Draw(t, "canary"), Halted: rapid.Bool().Draw(t, "halted")}
		f.Status.Rollout.MomentHeld = rapid.Bool().Draw(t, "held moment")
	}
	if rapid.Bool().Draw(t, "in transition") {
		f.Status.Transition = &v1alpha1.FeatureTransition{FromState: rapid.SampledFrom(states[:3]).Draw(t, "from")}
	}
	return f
}

// TestValueIsChosenAsFromFeature: for any Feature and instance, when the value is published
// and later. Without a known value each instance takes from the Feature what it holds.
func TestValueIsChosenAsFromFeature(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		feature := drawFeature(t)
		before := feature.DeepCopy()
		instance := Instance{rapid.SampledFrom([]string{"kubelet", "kube-proxy", "kube-scheduler"}).Draw(t, "component"), rapid.StringMatching(`node-[0-9]{1,3}`).Draw(t, "instance")}
		held := drawOptional(t, "held")
		later := now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "half minutes later")) * 30 * time.Second)
		want := Choose(feature, instance, held, later)
		value, known := ValueOf(feature)
		if diff := cmp.Diff(before, feature); diff != "" {
			t.Fatalf("the feature was changed (-before +after):\n%s", diff)
		}
		if !known {
			if value != nil {
				t.Fatalf("got %+v, which is not known", value)
			}
			if held != nil && (!want.Told || want.Value != *held || !want.Held) {
				t.Fatalf("the value is not known, and an instance with %t takes %+v", *held, want)
			}
			return
		}
		var got Choice
		if value != nil {
			got = ChooseValue(value, instance, later)
			if value.Namespace != "kube-system" || value.Name != "A" || value.FeatureVersion != "7" {
				t.Fatalf("got %+v", value)
			}
			if value.Rollout == nil && value.Previous != nil {
				t.Fatalf("the previous value is for instances outside of a rollout, and there is none: %+v", value)
			}
		}
		// The value of an instance outside of a rollout is no different from that of others if
		// the feature had it before.
		got.Held, want.Held = false, false
		if got != want {
			t.Fatalf("got %+v from %+v, want %+v", got, value, want)
		}
		if !got.SwitchTime.IsZero() && !got.SwitchTime.After(later) {
			t.Fatalf("the instance chooses again at %s, which is not after %s", got.SwitchTime, later)
		}
	})
}

// TestValueIsSameWhileInstancesKeepIt: what a server writes while a transition goes from its
// start to its end reaches no process a second time.
func TestValueIsSameWhileInstancesKeepIt(t *testing.T) {
	first := &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: "A", ResourceVersion: "1"}, Spec: v1alpha1.FeatureSpec{Enabled: ptr.To(true)}}
	first.Status = v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic, State: v1alpha1.StateTurningOn,
		Configured: &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI, Previous: ptr.To(false)}}
	canary := func(f *v1alpha1.Feature, r v1alpha1.FeatureRollout, halted bool) {
		f.Spec.Rollout, f.Status.Rollout = &r, &v1alpha1.FeatureRolloutStatus{Value: true, Observed: r, Halted: halted}
	}
	quarter := v1alpha1.FeatureRollout{Percent: ptr.To[int32](25)}
	moment := func(in time.Duration) v1alpha1.FeatureRollout {
		return v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), At: ptr.To(metav1.NewTime(now.Add(in)))}
	}
	for name, tc := range map[string]struct {
		before, after func(*v1alpha1.Feature)
		same          bool
	}{
		"uses are counted":    {after: func(f *v1alpha1.Feature) { f.Status.Uses = []v1alpha1.FeatureUse{{Component: "kubelet", Count: 3}} }, same: true},
		"the transition ends": {after: func(f *v1alpha1.Feature) { f.Status.State, f.Status.Configured.Previous = v1alpha1.StateOn, nil }, same: true},
		"it is paused":        {after: func(f *v1alpha1.Feature) { f.Spec.Paused = true }, same: true},
		"the next canary is written down": {before: func(f *v1alpha1.Feature) { f.Status.State, f.Status.Configured.Previous = v1alpha1.StateOn, nil },
			after: func(f *v1alpha1.Feature) {
				f.Status.State, f.Status.Configured.Previous, f.Spec.Rollout = v1alpha1.StateOn, nil, &quarter
			}, same: true},
		"a rollout for all is another for all": {after: func(f *v1alpha1.Feature) {
			f.Spec.Rollout = &v1alpha1.FeatureRollout{Percent: ptr.To[int32](100), Attempt: 2}
		}, same: true},
		"another attempt of a canary": {before: func(f *v1alpha1.Feature) { canary(f, quarter, false) },
			after: func(f *v1alpha1.Feature) { r := quarter; r.Attempt++; canary(f, r, false) }, same: true},
		"a canary grows": {before: func(f *v1alpha1.Feature) { canary(f, quarter, false) },
			after: func(f *v1alpha1.Feature) { canary(f, v1alpha1.FeatureRollout{Percent: ptr.To[int32](50)}, false) }},
		"a canary has all": {before: func(f *v1alpha1.Feature) { canary(f, quarter, false) }, after: func(*v1alpha1.Feature) {}},
		"a canary is halted": {before: func(f *v1alpha1.Feature) { canary(f, quarter, false) },
			after: func(f *v1alpha1.Feature) { canary(f, quarter, true) }},
		"a moment":       {after: func(f *v1alpha1.Feature) { canary(f, moment(time.Minute), false) }},
		"another moment": {before: func(f *v1alpha1.Feature) { canary(f, moment(time.Minute), false) }, after: func(f *v1alpha1.Feature) { canary(f, moment(time.Hour), false) }},
		"a canary that gets a moment": {before: func(f *v1alpha1.Feature) { canary(f, quarter, false) },
			after: func(f *v1alpha1.Feature) { r := quarter; r.At = moment(time.Hour).At; canary(f, r, false) }},
		"a moment that is held": {before: func(f *v1alpha1.Feature) { canary(f, moment(time.Minute), false) },
			after: func(f *v1alpha1.Feature) { canary(f, moment(time.Minute), false); f.Status.Rollout.MomentHeld = true }},
		"a moment that has come": {before: func(f *v1alpha1.Feature) { canary(f, moment(0), false) },
			after: func(f *v1alpha1.Feature) { canary(f, v1alpha1.FeatureRollout{At: moment(0).At}, false) }},
		"a moment that has come, and the end": {before: func(f *v1alpha1.Feature) { canary(f, v1alpha1.FeatureRollout{At: moment(0).At}, false) },
			after: func(f *v1alpha1.Feature) { f.Spec.Rollout = &v1alpha1.FeatureRollout{At: moment(0).At} }, same: true},
		"the other value": {after: func(f *v1alpha1.Feature) { f.Status.Configured.Value, f.Spec.Enabled = false, ptr.To(false) }},
		"it is central":   {after: func(f *v1alpha1.Feature) { f.Status.Control = v1alpha1.ControlCentral }},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := first.DeepCopy(), first.DeepCopy()
			if tc.before != nil {
				tc.before(before)
			}
			tc.after(after)
			after.ResourceVersion = "2"
			a, _ := ValueOf(before)
			b, _ := ValueOf(after)
			if a == nil || b == nil {
				t.Fatalf("got %+v and %+v", a, b)
			}
			if got := SameValue(a, b); got != tc.same || SameValue(b, a) != got || !SameValue(a, a) {
				t.Errorf("%+v and %+v are the same: %t, want %t", a, b, got, tc.same)
			}
		})
	}
}

// TestValueSharesNothingWithFeature: a Feature of a cache is not changed with it.
func TestValueSharesNothingWithFeature(t *testing.T) {
	feature := &v1alpha1.Feature{}
	feature.Status = v1alpha1.FeatureStatus{Control: v1alpha1.ControlCentral, Configured: &v1alpha1.FeatureConfiguration{Value: true, Previous: ptr.To(false)},
		Rollout: &v1alpha1.FeatureRolloutStatus{Value: true, Observed: v1alpha1.FeatureRollout{Percent: ptr.To[int32](1), Components: []string{"kubelet"}, At: ptr.To(metav1.NewTime(now.Add(time.Hour)))}}}
	before := feature.DeepCopy()
	value, known := ValueOf(feature)
	if !known || value.Rollout == nil || value.Rollout.At == nil {
		t.Fatalf("got %+v, %t", value, known)
	}
	*value.Previous, *value.Rollout.Percent, value.Rollout.Components[0], *value.Rollout.At = true, 2, "other", metav1.Time{}
	if diff := cmp.Diff(before, feature); diff != "" {
		t.Errorf("the feature was changed (-before +after):\n%s", diff)
	}
}

// TestPublishedMomentHoldsOthers: a process that does not know moments gives the value to no
// instance before it. Once the moment has come, the value is published without it.
func TestPublishedMomentHoldsOthers(t *testing.T) {
	at := ptr.To(metav1.NewTime(now))
	feature := &v1alpha1.Feature{Spec: v1alpha1.FeatureSpec{Enabled: ptr.To(true), Rollout: &v1alpha1.FeatureRollout{At: at}}}
	feature.Status = v1alpha1.FeatureStatus{Control: v1alpha1.ControlDynamic, State: v1alpha1.StateTurningOn,
		Configured: &v1alpha1.FeatureConfiguration{Value: true, Source: v1alpha1.SourceAPI, Previous: ptr.To(false)},
		Rollout:    &v1alpha1.FeatureRolloutStatus{Value: true, Observed: v1alpha1.FeatureRollout{Percent: ptr.To[int32](0), At: at}}}
	before, _ := ValueOf(feature)
	if r := before.Rollout; r == nil || ptr.Deref(r.Percent, 100) != 0 || !at.Equal(r.At) || ptr.Deref(before.Previous, true) {
		t.Errorf("before the moment %+v is published, want 0 percent, and off for the others", before)
	}
	if share := ShareOf(before, "kubelet"); share != 1 || Share(feature, "kubelet") != 1 {
		t.Errorf("%v of the instances take the value, want all", share)
	}
	feature.Status.Rollout.Observed.Percent = nil
	after, _ := ValueOf(feature)
	if after.Rollout != nil || !after.Value || SameValue(before, after) {
		t.Errorf("after the moment %+v is published, want on for all", after)
	}
}
