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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/utils/ptr"
)

// TestForeseeMatchesTransitions makes a plan at each moment of every path of a feature,
// and then executes it. The transitions and their tasks are the foreseen ones, in the
// same order.
func TestForeseeMatchesTransitions(t *testing.T) {
	plans := 0
	for _, from := range []string{"1.35", "1.36"} {
		for _, state := range []v1alpha1.FeatureState{v1alpha1.StateOn, v1alpha1.StateOff} {
			for _, first := range changes() {
				// looks is the progress of the first change when a second one is planned.
				for looks := 0; ; looks++ {
					more := false
					for _, second := range changes() {
						f := newFlow(t, state, from)
						more = true
						for range looks {
							more = f.look(at(*first.Value, first.To, first.To)) && more
						}
						name := fmt.Sprintf("%s@%s, %d reconciliations of %s, then to %s", state, from, looks, first, second)
						f.foreseen(name, second)
						plans++
					}
					if !more {
						break
					}
				}
			}
		}
	}
	if plans < 200 {
		t.Errorf("%d plans only were compared", plans)
	}
}

// String returns a plan for the name of a test.
func (p Plan) String() string { return fmt.Sprintf("%t@%s", *p.Value, p.To) }

func changes() []Plan {
	var plans []Plan
	for _, to := range []string{"1.35", "1.36"} {
		for _, value := range []bool{true, false} {
			plans = append(plans, Plan{Value: &value, To: to})
		}
	}
	return plans
}

// foreseen compares a plan with what happens.
func (f *flow) foreseen(name string, plan Plan) {
	f.t.Helper()
	var want []string
	for _, step := range Foresee(&f.feature.Status, both, plan) {
		for _, task := range step.Tasks {
			if task != v1alpha1.TaskWaitForUses {
				want = append(want, string(step.State)+" "+task)
			}
		}
	}
	// A task that has been tried and is listed counts: it is not done.
	var got []string
	servers := at(*plan.Value, plan.To, plan.To)
	for range 100 {
		before := f.feature.Status
		more := f.look(servers)
		after := f.feature.Status
		replaced := before.Transition == nil || after.Transition != nil && after.Transition.ID != before.Transition.ID
		if !replaced && len(before.Tasks) > len(after.Tasks) && before.Tasks[0].Name != v1alpha1.TaskWaitForUses {
			got = append(got, string(before.State)+" "+before.Tasks[0].Name)
		}
		if !more {
			break
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("%s: what happens is not what was foreseen (-foreseen +happened):\n%s", name, diff)
	}
}

func TestForesee(t *testing.T) {
	under := func(state v1alpha1.FeatureState, to string, tasks ...string) *v1alpha1.FeatureStatus {
		s := feature(state, tasks...).Status
		s.Version = "1.36"
		s.Transition = &v1alpha1.FeatureTransition{ID: "t", ToVersion: to, FromState: v1alpha1.StateOn}
		return &s
	}
	rest := func(state v1alpha1.FeatureState) *v1alpha1.FeatureStatus {
		return &v1alpha1.FeatureStatus{State: state, Version: "1.36"}
	}
	wait := v1alpha1.TaskWaitForUses
	declared := Declared{OnEnable: []string{"on"}, OnDisable: []string{"off"}, Versions: []VersionTasks{{At: "1.36", OnUpgrade: []string{"up"}, OnDowngrade: []string{"down"}}}}
	for name, tc := range map[string]struct {
		status *v1alpha1.FeatureStatus
		plan   Plan
		want   []Step
	}{
		"off": {rest(v1alpha1.StateOn), Plan{Value: ptr.To(false)}, []Step{{v1alpha1.StateTurningOff, []string{wait, "off"}}}},
		"the value that there is: what would be found is left over": {
			rest(v1alpha1.StateOff), Plan{Value: ptr.To(false)}, []Step{{"", []string{wait, "off"}}}},
		"down, the value stays":   {rest(v1alpha1.StateOn), Plan{Value: ptr.To(true), To: "1.35"}, []Step{{v1alpha1.StateDowngrading, []string{wait, "down"}}}},
		"down, the value goes":    {rest(v1alpha1.StateOn), Plan{Value: ptr.To(false), To: "1.35"}, []Step{{v1alpha1.StateTurningOff, []string{wait, "off"}}, {v1alpha1.StateDowngrading, []string{wait, "down"}}}},
		"the value is not known":  {rest(v1alpha1.StateOn), Plan{To: "1.35"}, []Step{{v1alpha1.StateDowngrading, []string{wait, "down"}}}},
		"nothing declared for it": {rest(v1alpha1.StateOn), Plan{To: "1.37"}, nil},
		"what is under way goes first, also when the value is not known": {
			under(v1alpha1.StateTurningOff, "", "off"), Plan{To: "1.37"}, []Step{{v1alpha1.StateTurningOff, []string{"off"}}}},
		"what is under way is turned back": {
			under(v1alpha1.StateTurningOff, "", "off"), Plan{Value: ptr.To(true)}, []Step{{v1alpha1.StateTurningOn, []string{wait, "on"}}}},
		"a value waits for the version": {
			under(v1alpha1.StateDowngrading, "1.35", "down"), Plan{Value: ptr.To(false)}, []Step{{v1alpha1.StateDowngrading, []string{"down"}}, {v1alpha1.StateTurningOff, []string{wait, "off"}}}},
		"no state yet: what is stored is unknown": {&v1alpha1.FeatureStatus{}, Plan{Value: ptr.To(true)}, []Step{{v1alpha1.StateTurningOn, []string{wait, "on"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Foresee(tc.status, declared, tc.plan), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlockers(t *testing.T) {
	on, off := feature(v1alpha1.StateOn), ptr.To(false)
	binary := func(version string, servers []tracker.Server) []tracker.Server {
		for i := range servers {
			servers[i].Binary = version
		}
		return servers
	}
	node := func(mutate func(*tracker.Instance)) []tracker.Instance {
		i := user("node", true)
		mutate(&i)
		return []tracker.Instance{i}
	}
	asking := node(func(*tracker.Instance) {})
	several := append(asking, user("other", true))
	explicit := slices.Concat(node(func(i *tracker.Instance) { i.Explicit = true }), node(func(i *tracker.Instance) { i.Name, i.Explicit = "other", true }))
	dynamic := controlled(at(true, "1.36"), v1alpha1.ControlDynamic)
	// canary returns a feature whose value is for no kubelet.
	canary := func(f *v1alpha1.Feature, value bool) *v1alpha1.Feature {
		f.Spec.Rollout = &v1alpha1.FeatureRollout{Components: []string{"scheduler"}}
		f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: value, Source: v1alpha1.SourceAPI}
		return f
	}
	turningOff := func(tasks ...string) *v1alpha1.Feature {
		return canary(feature(v1alpha1.StateTurningOff, tasks...), false)
	}
	halted := turningOff(v1alpha1.TaskWaitForUses, "off")
	halted.Status.Rollout = &v1alpha1.FeatureRolloutStatus{Observed: *halted.Spec.Rollout, Halted: true, HaltTime: &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, Message: "2 of 2 died"}
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		view    View
		plan    Plan
		// want has a part of each message.
		want []string
	}{
		"none holds it":              {on, View{Servers: dynamic}, Plan{Value: off}, nil},
		"a user has the other value": {on, View{Servers: at(true, "1.36"), Instances: asking}, Plan{Value: off}, []string{"1 live user has the other value and has to be restarted with --feature-gates=F=false: kubelet/node", "1 live server configures the other value and has to be restarted with --feature-gates=F=false: s0"}},
		"a server decides the value, whether it has queried or not": {on, View{Servers: at(true, "1.36")}, Plan{Value: off}, []string{"1 live server configures the other value and has to be restarted with --feature-gates=F=false: s0"}},
		"a server that has queried is named once": {on, View{Servers: at(true, "1.36"), Instances: []tracker.Instance{{Component: "apiserver", Name: "s0", Reported: true, Alive: true, Enabled: true}}}, Plan{Value: off, Component: "apiserver"},
			[]string{"1 live user has the other value and has to be restarted with --feature-gates=F=false: apiserver/s0"}},
		"servers disagree":            {on, View{Servers: append(at(true, "1.36"), server("other", false))}, Plan{Value: off}, []string{"on in s0, off in other; no transition starts"}},
		"a server has not reported":   {on, View{Servers: append(at(true, "1.36"), tracker.Server{ID: "new", Starting: true})}, Plan{Value: off}, []string{reportAwaited}},
		"paused":                      {paused(feature(v1alpha1.StateOn)), View{Servers: at(true, "1.36")}, Plan{Value: off}, []string{"1 live server configures the other value and has to be restarted with --feature-gates=F=false: s0", "spec.paused"}},
		"users have the other value":  {on, View{Servers: at(true, "1.36"), Instances: several}, Plan{Value: off}, []string{"2 live users have the other value and have to be restarted with --feature-gates=F=false: kubelet/node, kubelet/other", "1 live server configures the other value and has to be restarted with --feature-gates=F=false: s0"}},
		"users set the other value":   {on, View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlDynamic), Instances: explicit}, Plan{Value: off}, []string{"2 live users set the other value themselves, which wins over the API, and have to be restarted without F"}},
		"dynamic: users follow":       {on, View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlDynamic), Instances: asking}, Plan{Value: off}, nil},
		"central: restarts in order":  {on, View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlCentral), Instances: asking}, Plan{Value: off, Component: "apiserver"}, []string{"once all apiserver have --feature-gates=F=false", "1 live server configures the other value"}},
		"dynamic: explicit ones hold": {on, View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlDynamic), Instances: node(func(i *tracker.Instance) { i.Explicit = true })}, Plan{Value: off}, []string{"without F in --feature-gates: kubelet/node"}},
		"locked": {on, View{Servers: []tracker.Server{{ID: "s", Reported: true, Knows: true, Version: "1.36", Gate: v1alpha1.ReportedFeature{Name: "F", Enabled: true, Default: true, LockedToDefault: true}}}},
			Plan{Value: off}, []string{"locked to true"}},
		"down: servers are restarted":                 {on, View{Servers: binary("v1.36.3", at(true, "1.36", "1.35"))}, Plan{To: "1.35"}, []string{"1 live server has another version and has to be restarted with --emulated-version=1.35, or without the flag where the binary is of 1.35: s0"}},
		"up: binaries are replaced":                   {on, View{Servers: binary("v1.36.3+feature.1", at(true, "1.36"))}, Plan{To: "1.37"}, []string{"1 live server has an older binary, and has to be replaced with 1.37 or newer: s0"}},
		"up: binaries are there already":              {on, View{Servers: binary("v1.36.3", at(true, "1.35"))}, Plan{To: "1.36"}, []string{"--emulated-version=1.36"}},
		"all are there":                               {on, View{Servers: at(true, "1.36")}, Plan{To: "1.36"}, nil},
		"down: others that have to follow":            {on, View{Servers: at(true, "1.35"), Instances: asking}, Plan{Value: off, To: "1.35"}, []string{"by --emulated-version=1.35 or --feature-gates=F=false: kubelet/node"}},
		"down: servers follow themselves":             {on, View{Servers: at(true, "1.35"), Instances: node(func(i *tracker.Instance) { i.Component = "apiserver" })}, Plan{Value: off, To: "1.35", Component: "apiserver"}, nil},
		"servers have different versions":             {on, View{Servers: at(true, "1.36", "1.35")}, Plan{Value: off}, []string{"different effective versions; the transition continues when they are the same", "2 live servers configure the other value and have to be restarted with --feature-gates=F=false: s0, s1"}},
		"different versions, and no change":           {on, View{Servers: at(true, "1.36", "1.35")}, Plan{Value: ptr.To(true)}, nil},
		"different versions, and a move ends that":    {on, View{Servers: at(true, "1.36", "1.35")}, Plan{To: "1.35"}, []string{"1 live server has another version"}},
		"a halted canary":                             {halted, View{Servers: dynamic}, Plan{Value: off}, []string{"the rollout was halted at 2026-01-01T00:00:00Z: 2 of 2 died"}},
		"a halted canary holds a move, too":           {halted, View{Servers: dynamic}, Plan{To: "1.36"}, []string{"the rollout was halted"}},
		"a halted canary is called off":               {halted, View{Servers: dynamic}, Plan{Value: ptr.To(true)}, nil},
		"a rollout leaves a user out":                 {canary(feature(v1alpha1.StateOn), true), View{Servers: dynamic, Instances: asking}, Plan{Value: off}, []string{"1 live user would keep the other value, since spec.rollout limits the value to the components scheduler; widen or remove it: kubelet/node"}},
		"a rollout leaves one out, centrally":         {canary(feature(v1alpha1.StateOn), true), View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlCentral), Instances: asking}, Plan{Value: off, Component: "apiserver"}, []string{"1 live user would keep the other value", "1 live server configures the other value"}},
		"a rollout leaves one out of a move":          {canary(feature(v1alpha1.StateOn), true), View{Servers: dynamic, Instances: asking}, Plan{Value: off, To: "1.36"}, []string{"1 live user would keep the other value"}},
		"central servers decide, a rollout or not":    {canary(feature(v1alpha1.StateOn), true), View{Servers: controlled(at(true, "1.36"), v1alpha1.ControlCentral), Instances: asking}, Plan{Value: off, Component: "kubelet"}, []string{"once all kubelet have", "1 live server configures the other value"}},
		"a rollout that includes them":                {canary(feature(v1alpha1.StateOn), true), View{Servers: dynamic, Instances: node(func(i *tracker.Instance) { i.Component = "scheduler" })}, Plan{Value: off}, nil},
		"a rollout without effect":                    {canary(feature(v1alpha1.StateOn), true), View{Servers: at(true, "1.36"), Instances: asking}, Plan{Value: off}, []string{"restarted with --feature-gates=F=false", "1 live server configures the other value"}},
		"a rollout does not limit explicit values":    {canary(feature(v1alpha1.StateOn), true), View{Servers: dynamic, Instances: node(func(i *tracker.Instance) { i.Explicit = true })}, Plan{Value: off}, []string{"1 live user sets the other value itself, which wins over the API, and has to be restarted without F in --feature-gates"}},
		"a canary under way":                          {turningOff(v1alpha1.TaskWaitForUses, "off"), View{Servers: dynamic, Instances: asking}, Plan{Value: off}, []string{"1 live user would keep the other value"}},
		"a canary that all have":                      {turningOff("off"), View{Servers: dynamic, Instances: asking}, Plan{Value: off}, nil},
		"a canary that is called off":                 {turningOff(v1alpha1.TaskWaitForUses, "off"), View{Servers: dynamic, Instances: node(func(i *tracker.Instance) { i.Enabled = false })}, Plan{Value: ptr.To(true)}, nil},
		"a move without tasks is not held by a pause": {paused(feature(v1alpha1.StateOn)), View{Servers: at(true, "1.36")}, Plan{Value: ptr.To(true), To: "1.36"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			steps := Foresee(&tc.feature.Status, both, tc.plan)
			got := Blockers(tc.feature, tc.view, tc.plan, steps)
			matches := slices.EqualFunc(got, tc.want, strings.Contains)
			if !matches {
				t.Errorf("the blockers are %q, want %q", got, tc.want)
			}
		})
	}
}
