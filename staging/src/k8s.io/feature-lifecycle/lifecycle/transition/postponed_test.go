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

package transition

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/values/rollout"
)

// overriding is a server that is set to off by itself and has taken on from the
// API.
func overriding(id string) Server {
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

// chooses is what a process that holds a value takes, and one that just starts.
func chooses(f *v1alpha1.Feature, instance string, held bool) [2]bool {
	who := rollout.Instance{Component: "kubelet", Name: instance}
	return [2]bool{rollout.Choose(f, who, &held).Value, rollout.Choose(f, who, nil).Value}
}

// TestWithdrawingACanaryTurnsNobodyOn: a server inside the canary uses the value
// itself. That is not what it is set to, and nobody may take it for that.
func TestWithdrawingACanaryTurnsNobodyOn(t *testing.T) {
	outside, off := nodes(1, false)[0], [2]bool{}
	view := View{Servers: []Server{overriding("a")}, Declared: declared}
	f := trial()
	if got := chooses(f, outside, false); got != off {
		t.Fatalf("left out, an instance takes %v", got)
	}
	f.Spec.Enabled, f.Spec.Rollout = nil, nil
	if got := chooses(f, outside, false); got != off {
		t.Errorf("before the server answers, an instance takes %v", got)
	}
	f = answer(f, view, start.Add(time.Second))
	if diff := cmp.Diff(&v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceDefault}, f.Status.Configured); diff != "" {
		t.Errorf("unexpected answer (-want +got):\n%s", diff)
	}
	if f.Status.State != v1alpha1.StateTurningOff {
		t.Errorf("the feature is %s", f.Status.State)
	}
	if got := chooses(f, outside, false); got != off {
		t.Errorf("withdrawn, an instance takes %v", got)
	}
}

// TestOnlyServersSayWhoDecides: what others report about it is not believed.
func TestOnlyServersSayWhoDecides(t *testing.T) {
	reporter := overriding("scheduler")
	f := answer(feature(""), View{Servers: []Server{{ID: "a", Reported: true, Version: "1.36"}}, Reporters: []Server{reporter}}, start)
	if f.Status.Control != v1alpha1.ControlLocal || f.Status.Configured == nil || f.Status.Configured.Value {
		t.Errorf("control %s, configured %+v", f.Status.Control, f.Status.Configured)
	}
}

// TestARequestIsAnsweredWhenItMayBegin: until then nobody takes the value that is
// requested, whoever starts meanwhile.
func TestARequestIsAnsweredWhenItMayBegin(t *testing.T) {
	at := func(version string) Server { return emulating(overriding("a"), version) }
	for name, tc := range map[string]struct {
		servers  []Server
		declared Declared
		paused   bool
		state    v1alpha1.FeatureState
		released []Server
	}{
		"paused":              {servers: []Server{at("1.36")}, paused: true, released: []Server{at("1.36")}},
		"mixed versions":      {servers: []Server{at("1.36"), emulating(overriding("b"), "1.35")}, released: []Server{at("1.36")}},
		"an upgrade is due":   {servers: []Server{at("1.37")}, declared: moving, released: []Server{at("1.37")}},
		"under way to 1.37":   {servers: []Server{at("1.37")}, declared: moving, state: v1alpha1.StateUpgrading, released: []Server{at("1.37")}},
		"under way to 1.35":   {servers: []Server{at("1.35")}, declared: moving, state: v1alpha1.StateDowngrading, released: []Server{at("1.35")}},
		"paused, and upgrade": {servers: []Server{at("1.37")}, declared: moving, paused: true, released: []Server{at("1.37")}},
	} {
		for _, control := range []v1alpha1.FeatureControl{v1alpha1.ControlDynamic, v1alpha1.ControlCentral} {
			for _, value := range []bool{false, true} {
				t.Run(name+", "+string(control)+", from "+onOff(value), func(t *testing.T) {
					f := settled(value, control)
					requested := !value
					turned := func(servers []Server) []Server {
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
					if got := chooses(f, "n1", value); got != [2]bool{value, value} {
						t.Errorf("instances take %v", got)
					}
					f.Spec.Paused = false
					f.Status.State, f.Status.Transition, f.Status.Tasks, f.Status.Version = finalState(value), nil, nil, tc.released[0].Version
					f = answer(f, View{Servers: turned(tc.released), Declared: tc.declared}, start)
					if want := Turning(requested); f.Status.State != want || f.Status.Configured.Value != requested {
						t.Errorf("the feature is %s, configured %+v, want %s", f.Status.State, f.Status.Configured, want)
					}
					if got := chooses(f, "n1", value); got != [2]bool{requested, requested} {
						t.Errorf("instances take %v", got)
					}
				})
			}
		}
	}
}

// TestADowngradeChangesTheValueFirst, so the request is answered before.
func TestADowngradeChangesTheValueFirst(t *testing.T) {
	f := enabled(settled(false, v1alpha1.ControlDynamic))
	f = answer(f, View{Servers: controlled([]Server{emulating(server("a", false), "1.35")}, v1alpha1.ControlDynamic), Declared: moving}, start)
	if f.Status.State != v1alpha1.StateTurningOn || !f.Status.Configured.Value {
		t.Errorf("the feature is %s, configured %+v", f.Status.State, f.Status.Configured)
	}
}

// TestAPausedCanaryStaysAsItIs, whatever becomes of spec.rollout.
func TestAPausedCanaryStaysAsItIs(t *testing.T) {
	outside, inside := nodes(1, false)[0], nodes(1, true)[0]
	for name, changed := range map[string]*v1alpha1.FeatureRollout{
		"removed": nil, "for nobody": {Percent: new(int32)}, "for others": {Components: []string{"kube-proxy"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := paused(trial())
			f.Spec.Rollout = changed
			for range 2 {
				f = answer(f, View{Servers: []Server{overriding("a")}, Declared: declared}, start.Add(time.Second))
				if f.Status.Rollout == nil || !cmp.Equal(&f.Status.Rollout.Observed, half()) {
					t.Fatalf("the canary is %+v", f.Status.Rollout)
				}
				if got := chooses(f, outside, false); got != [2]bool{} {
					t.Errorf("left out, an instance takes %v", got)
				}
				if got := chooses(f, inside, true); got != [2]bool{true, true} {
					t.Errorf("in the canary, an instance takes %v", got)
				}
			}
			f.Spec.Paused = false
			f = answer(f, View{Servers: []Server{overriding("a")}, Declared: declared}, start.Add(time.Second))
			if f.Status.Rollout != nil && cmp.Equal(&f.Status.Rollout.Observed, half()) {
				t.Error("released, the canary is as before")
			}
		})
	}
}
