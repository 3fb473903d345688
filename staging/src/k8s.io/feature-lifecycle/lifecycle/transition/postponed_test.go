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

package transition

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/rollout"
)

// overriding returns a server that has off in its own settings and has taken on from
// the API.
func overriding(id string) tracker.Server {
	s := server(id, true)
	s.Gate.Explicit, s.Gate.Overridden, s.Gate.Control = false, true, v1alpha1.ControlDynamic
	return s
}

// settled is F at rest as a server left it.
func settled(value bool, control v1alpha1.FeatureControl) *v1alpha1.Feature {
	f := feature(finalState(value))
	f.Status.Control = control
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceDefault}
	return f
}

// answer lets the flow look once and stores what it decides.
func answer(f *v1alpha1.Feature, view View, at time.Time) *v1alpha1.Feature {
	view.NewTransitionID = "t2"
	f = f.DeepCopy()
	f.Status = Next(f, view, settings, at).Status
	return f
}

// chooses returns the value that a process takes that holds a value, and one that just
// starts. A process without an answer would use its own default: that is an error here.
func chooses(t *testing.T, f *v1alpha1.Feature, instance string, held bool) [2]bool {
	t.Helper()
	kubelet := rollout.Instance{Component: "kubelet", Name: instance}
	holding, starting := rollout.Choose(f, kubelet, &held, start), rollout.Choose(f, kubelet, nil, start)
	if !holding.Told || !starting.Told {
		t.Errorf("the Feature says nothing: %+v, %+v", holding, starting)
	}
	return [2]bool{holding.Value, starting.Value}
}

// TestWithdrawnCanaryTurnsNoInstanceOn checks a server inside the canary, which uses
// the value itself. That is not its own setting, and must not be taken for it.
func TestWithdrawnCanaryTurnsNoInstanceOn(t *testing.T) {
	outside, off := nodes(1, false)[0], [2]bool{}
	view := View{Servers: []tracker.Server{overriding("a")}, Declared: declared}
	f := trial()
	if got := chooses(t, f, outside, false); got != off {
		t.Fatalf("left out, an instance takes %v", got)
	}
	f.Spec.Enabled, f.Spec.Rollout = nil, nil
	if got := chooses(t, f, outside, false); got != off {
		t.Errorf("before the server answers, an instance takes %v", got)
	}
	f = answer(f, view, start.Add(time.Second))
	if diff := cmp.Diff(&v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}, f.Status.Configured); diff != "" {
		t.Errorf("unexpected answer (-want +got):\n%s", diff)
	}
	if f.Status.State != v1alpha1.StateTurningOff {
		t.Errorf("the feature is %s", f.Status.State)
	}
	if got := chooses(t, f, outside, false); got != off {
		t.Errorf("withdrawn, an instance takes %v", got)
	}
}

// TestControlDecidedByServersOnly checks that reports of others about it are ignored.
func TestControlDecidedByServersOnly(t *testing.T) {
	reporter := overriding("scheduler")
	f := answer(feature(""), View{Servers: []tracker.Server{{ID: "a", Reported: true, Version: "1.36"}}, Reporters: []tracker.Server{reporter}}, start)
	if f.Status.Control != v1alpha1.ControlLocal || f.Status.Configured == nil || f.Status.Configured.Value {
		t.Errorf("control %s, configured %+v", f.Status.Control, f.Status.Configured)
	}
}

// TestRequestAnsweredWhenTransitionMayBegin checks that no instance takes the requested
// value until then, also one that starts meanwhile.
func TestRequestAnsweredWhenTransitionMayBegin(t *testing.T) {
	at := func(version string) tracker.Server { return emulating(overriding("a"), version) }
	for name, tc := range map[string]struct {
		servers  []tracker.Server
		declared Declared
		paused   bool
		state    v1alpha1.FeatureState
		released []tracker.Server
	}{
		"paused":              {servers: []tracker.Server{at("1.36")}, paused: true, released: []tracker.Server{at("1.36")}},
		"mixed versions":      {servers: []tracker.Server{at("1.36"), emulating(overriding("b"), "1.35")}, released: []tracker.Server{at("1.36")}},
		"an upgrade is due":   {servers: []tracker.Server{at("1.37")}, declared: moving, released: []tracker.Server{at("1.37")}},
		"under way to 1.37":   {servers: []tracker.Server{at("1.37")}, declared: moving, state: v1alpha1.StateUpgrading, released: []tracker.Server{at("1.37")}},
		"under way to 1.35":   {servers: []tracker.Server{at("1.35")}, declared: moving, state: v1alpha1.StateDowngrading, released: []tracker.Server{at("1.35")}},
		"paused, and upgrade": {servers: []tracker.Server{at("1.37")}, declared: moving, paused: true, released: []tracker.Server{at("1.37")}},
	} {
		for _, control := range []v1alpha1.FeatureControl{v1alpha1.ControlDynamic, v1alpha1.ControlCentral} {
			for _, value := range []bool{false, true} {
				t.Run(name+", "+string(control)+", from "+OnOff(value), func(t *testing.T) {
					f := settled(value, control)
					requested := !value
					turned := func(servers []tracker.Server) []tracker.Server {
						servers = slices.Clone(servers)
						for i := range servers {
							// A dynamic value is requested in spec, a central one is that of the servers.
							servers[i].Gate.Control = control
							servers[i].Gate.Enabled, servers[i].Gate.Overridden = value, false
							if control == v1alpha1.ControlCentral {
								servers[i].Gate.Enabled = requested
							}
						}
						return servers
					}
					if control == v1alpha1.ControlDynamic {
						f.Spec.Enabled = &requested
					}
					if tc.state != "" {
						f.Status.Transition = &v1alpha1.FeatureTransition{ID: "t1", FromVersion: "1.36", ToVersion: tc.servers[0].Version, FromState: f.Status.State}
						f.Status.State, f.Status.Tasks = tc.state, []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses}, {Name: "Convert"}}
					}
					f.Spec.Paused = tc.paused
					f = answer(f, View{Servers: turned(tc.servers), Declared: tc.declared}, start)
					if f.Status.Configured.Value != value {
						t.Errorf("answered: %+v in state %s", f.Status.Configured, f.Status.State)
					}
					if got := chooses(t, f, "n1", value); got != [2]bool{value, value} {
						t.Errorf("instances take %v", got)
					}
					f.Spec.Paused = false
					f.Status.State, f.Status.Transition, f.Status.Tasks, f.Status.Version = finalState(value), nil, nil, tc.released[0].Version
					f = answer(f, View{Servers: turned(tc.released), Declared: tc.declared}, start)
					if want := Turning(requested); f.Status.State != want || f.Status.Configured.Value != requested {
						t.Errorf("the feature is %s, configured %+v, want %s", f.Status.State, f.Status.Configured, want)
					}
					if got := chooses(t, f, "n1", value); got != [2]bool{requested, requested} {
						t.Errorf("instances take %v", got)
					}
				})
			}
		}
	}
}

// TestDowngradeChangesValueFirst, so the request is answered before.
func TestDowngradeChangesValueFirst(t *testing.T) {
	f := enabled(settled(false, v1alpha1.ControlDynamic))
	f = answer(f, View{Servers: controlled([]tracker.Server{emulating(server("a", false), "1.35")}, v1alpha1.ControlDynamic), Declared: moving}, start)
	if f.Status.State != v1alpha1.StateTurningOn || !f.Status.Configured.Value {
		t.Errorf("the feature is %s, configured %+v", f.Status.State, f.Status.Configured)
	}
}

// TestFrozenCanaryUnchanged, whatever becomes of spec.rollout: while the feature
// is paused, and while another value is requested and not answered yet.
func TestFrozenCanaryUnchanged(t *testing.T) {
	outside, inside := nodes(1, false)[0], nodes(1, true)[0]
	one, mixed := []tracker.Server{overriding("a")}, []tracker.Server{overriding("a"), emulating(overriding("b"), "1.35")}
	off := false
	for frozen, tc := range map[string]struct {
		servers []tracker.Server
		freeze  func(*v1alpha1.Feature)
	}{
		"paused":                    {one, func(f *v1alpha1.Feature) { paused(f) }},
		"called off, not answered":  {mixed, func(f *v1alpha1.Feature) { f.Spec.Enabled = &off }},
		"withdrawn, not answered":   {mixed, func(f *v1alpha1.Feature) { f.Spec.Enabled = nil }},
		"paused, and mixed as well": {mixed, func(f *v1alpha1.Feature) { paused(f) }},
	} {
		for name, changed := range map[string]*v1alpha1.FeatureRollout{
			"removed": nil, "for none": {Percent: new(int32)}, "for others": {Components: []string{"kube-proxy"}}, "tried again": {Percent: half().Percent, Attempt: 1},
		} {
			for _, halted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, halted %t", frozen, name, halted), func(t *testing.T) {
					f := trial()
					if halted {
						since := metav1.NewTime(start)
						f.Status.Rollout.Halted, f.Status.Rollout.HaltTime, f.Status.Rollout.Message = true, &since, "2 of 2 died"
					}
					f.Spec.Rollout = changed
					tc.freeze(f)
					for range 2 {
						d := Next(f, View{Servers: tc.servers, Declared: declared}, settings, start.Add(time.Second))
						for _, e := range d.Events {
							t.Errorf("event: %s %s", e.Reason, e.Message)
						}
						f.Status = d.Status
						if r := f.Status.Rollout; r == nil || !cmp.Equal(&r.Observed, half()) || r.Halted != halted {
							t.Fatalf("the canary is %+v", f.Status.Rollout)
						}
						if got := chooses(t, f, outside, false); got != [2]bool{} {
							t.Errorf("left out, an instance takes %v", got)
						}
						if got := chooses(t, f, inside, !halted); got[0] != !halted {
							t.Errorf("in the canary, an instance takes %v", got)
						}
					}
					on := true
					f.Spec.Paused, f.Spec.Enabled = false, &on
					f = answer(f, View{Servers: one, Declared: declared}, start.Add(time.Second))
					if f.Status.Rollout != nil && cmp.Equal(&f.Status.Rollout.Observed, half()) {
						t.Error("released, the canary is as before")
					}
				})
			}
		}
	}
}

// TestNoCanaryBeginsWhileFrozen: all have the value, and keep it.
func TestNoCanaryBeginsWhileFrozen(t *testing.T) {
	outside, off := nodes(1, false)[0], false
	for name, tc := range map[string]struct {
		servers []tracker.Server
		freeze  func(*v1alpha1.Feature)
	}{
		"paused":                   {[]tracker.Server{overriding("a")}, func(f *v1alpha1.Feature) { paused(f) }},
		"called off, not answered": {[]tracker.Server{overriding("a"), emulating(overriding("b"), "1.35")}, func(f *v1alpha1.Feature) { f.Spec.Enabled = &off }},
	} {
		t.Run(name, func(t *testing.T) {
			f := trial()
			f.Spec.Rollout = nil
			f = answer(f, View{Servers: []tracker.Server{overriding("a")}, Declared: declared}, start.Add(time.Second))
			if got := rollout.Choose(f, rollout.Instance{Component: "kubelet", Name: outside}, nil, start); !got.Value {
				t.Fatalf("for all, an instance takes %+v", got)
			}
			f.Spec.Rollout = half()
			tc.freeze(f)
			held := true
			for range 2 {
				if got := rollout.Choose(f, rollout.Instance{Component: "kubelet", Name: outside}, &held, start); !got.Told || !got.Value {
					t.Errorf("an instance that has it takes %+v", got)
				}
				f = answer(f, View{Servers: tc.servers, Declared: declared}, start.Add(time.Second))
				if f.Status.Rollout != nil {
					t.Fatalf("a canary begins: %+v", f.Status.Rollout)
				}
			}
		})
	}
}

// TestHaltOutlastsDisagreement checks a halt that may not have been called off.
func TestHaltOutlastsDisagreement(t *testing.T) {
	since := metav1.NewTime(start)
	f := trial()
	f.Spec.Enabled, f.Spec.Rollout = nil, nil
	f.Status.Control, f.Status.Configured.Source = v1alpha1.ControlCentral, v1alpha1.SourceCommandLine
	f.Status.Rollout.Halted, f.Status.Rollout.HaltTime, f.Status.Rollout.Message = true, &since, "2 of 2 died"
	for _, servers := range [][]tracker.Server{
		{server("a", false), server("b", true)},
		{server("a", false), emulating(server("b", false), "1.35")},
	} {
		f = answer(f, View{Servers: controlled(servers, v1alpha1.ControlCentral), Declared: declared}, start.Add(time.Second))
		if f.Status.Rollout == nil || !f.Status.Rollout.Halted {
			t.Fatalf("the halt was dropped: %+v", f.Status.Rollout)
		}
		if got := chooses(t, f, nodes(1, false)[0], false); got != [2]bool{} {
			t.Errorf("an instance takes %v", got)
		}
	}
}
