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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

func TestPath(t *testing.T) {
	declared := Declared{Versions: []VersionTasks{
		// In no order, and not compared as text.
		{At: "1.10", OnUpgrade: []string{"u10a", "u10b"}, OnDowngrade: []string{"d10"}},
		{At: "1.9", OnUpgrade: []string{"u9"}, OnDowngrade: []string{"d9a", "d9b"}},
		{At: "2.0", OnUpgrade: []string{"u20"}, OnDowngrade: []string{"d20"}},
	}}
	for name, tc := range map[string]struct {
		lowest, highest, to string
		want                []string
	}{
		"nowhere":                            {"1.9", "1.9", "1.9", nil},
		"no boundary between":                {"1.10", "1.10", "1.11", nil},
		"up over one":                        {"1.9", "1.9", "1.10", []string{"u10a", "u10b"}},
		"down over one":                      {"1.10", "1.10", "1.9", []string{"d10"}},
		"up over several, the lowest first":  {"1.8", "1.8", "2.1", []string{"u9", "u10a", "u10b", "u20"}},
		"down over several, highest first":   {"2.0", "2.0", "1.8", []string{"d20", "d10", "d9a", "d9b"}},
		"up, forms of both sides":            {"1.9", "1.10", "1.10", []string{"u10a", "u10b"}},
		"down, forms of both sides":          {"1.9", "1.10", "1.9", []string{"d10"}},
		"to the middle: down, then up":       {"1.8", "1.10", "1.9", []string{"d10", "u9"}},
		"what does not parse passes nothing": {"", "", "1.10", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, declared.path(tc.lowest, tc.highest, tc.to), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("unexpected tasks (-want +got):\n%s", diff)
			}
		})
	}
}

// at are two servers with a value and versions.
func at(value bool, versions ...string) []tracker.Server {
	var servers []tracker.Server
	for i, version := range versions {
		servers = append(servers, emulating(server(fmt.Sprint("s", i), value), version))
	}
	return servers
}

// flow is a feature that looks follow each other on.
type flow struct {
	t       *testing.T
	feature *v1alpha1.Feature
	now     time.Time
	ids     int
	// did are the declared tasks that ran.
	did    []string
	states []string
	events []string
	writes int
}

func newFlow(t *testing.T, state v1alpha1.FeatureState, version string) *flow {
	f := &flow{t: t, feature: feature(state), now: start}
	f.feature.Status.Version = version
	return f
}

// look decides once; a task that starts is done at once. It returns false when
// nothing changed.
func (f *flow) look(servers []tracker.Server) bool {
	f.ids++
	view := View{Servers: servers, Declared: both, NewTransitionID: fmt.Sprint("t", f.ids)}
	if n := len(f.did); n > 0 && f.feature.Status.Transition != nil && len(f.feature.Status.Tasks) > 0 && f.feature.Status.Tasks[0].Name == f.did[n-1] {
		view.Attempt = &Attempt{TransitionID: f.feature.Status.Transition.ID, Task: f.did[n-1], Outcome: Finished}
	}
	d := Next(f.feature, view, settings, f.now)
	if d.Start != "" {
		f.did = append(f.did, d.Start)
	}
	for _, e := range d.Events {
		f.events = append(f.events, e.Reason+": "+e.Message)
	}
	changed := !cmp.Equal(f.feature.Status, d.Status)
	if changed {
		f.writes++
	}
	f.feature.Status = d.Status
	if now := fmt.Sprintf("%s@%s", d.Status.State, d.Status.Version); len(f.states) == 0 || f.states[len(f.states)-1] != now {
		f.states = append(f.states, now)
	}
	f.now = f.now.Add(d.RequeueAfter)
	return changed || d.RequeueAfter > 0 || d.Start != ""
}

// rest looks until nothing changes.
func (f *flow) rest(servers []tracker.Server) {
	f.t.Helper()
	for range 100 {
		if !f.look(servers) {
			return
		}
	}
	f.t.Fatalf("it does not come to rest: %+v", f.feature.Status)
}

func (f *flow) want(states, did []string) {
	f.t.Helper()
	if diff := cmp.Diff(states, f.states); diff != "" {
		f.t.Errorf("unexpected states (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(did, f.did, cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("unexpected tasks (-want +got):\n%s", diff)
	}
	if n := len(f.feature.Status.StoredVersions); n != 0 && f.feature.Status.Transition == nil {
		f.t.Errorf("at rest other forms may be stored: %v", f.feature.Status.StoredVersions)
	}
}

const down37 = "Downgrade/1.37/Revert"

func TestVersionTransitions(t *testing.T) {
	for name, tc := range map[string]struct {
		state   v1alpha1.FeatureState
		version string
		then    [][]tracker.Server
		states  []string
		did     []string
	}{
		"an upgrade leaves the value alone": {v1alpha1.StateOn, "1.35", [][]tracker.Server{at(true, "1.36", "1.36")},
			[]string{"Upgrading@1.35", "On@1.36"}, []string{up36}},
		"so does a downgrade": {v1alpha1.StateOff, "1.36", [][]tracker.Server{at(false, "1.35", "1.35")},
			[]string{"Downgrading@1.36", "Off@1.35"}, []string{down36}},
		"over two boundaries, in order": {v1alpha1.StateOff, "1.35", [][]tracker.Server{at(false, "1.37", "1.37"), at(false, "1.35", "1.35")},
			[]string{"Upgrading@1.35", "Off@1.37", "Downgrading@1.37", "Off@1.35"}, []string{up36, up37, down37, down36}},
		"S4: nothing begins while versions are mixed": {v1alpha1.StateOff, "1.35", [][]tracker.Server{at(false, "1.36", "1.35")},
			[]string{"Off@1.35"}, nil},
		"server by server": {v1alpha1.StateOff, "1.35", [][]tracker.Server{at(false, "1.36", "1.35"), at(false, "1.36", "1.36")},
			[]string{"Off@1.35", "Upgrading@1.35", "Off@1.36"}, []string{up36}},
		"a rollout that is given up: what its first server wrote is brought back": {v1alpha1.StateOff, "1.35", [][]tracker.Server{at(false, "1.36", "1.35"), at(false, "1.35", "1.35")},
			[]string{"Off@1.35", "Downgrading@1.35", "Off@1.35"}, []string{down36}},
		"an upgrade and a value: version first": {v1alpha1.StateOff, "1.35", [][]tracker.Server{at(true, "1.36", "1.36")},
			[]string{"Upgrading@1.35", "Off@1.36", "TurningOn@1.36", "On@1.36"}, []string{up36, "Install"}},
		"a downgrade and a value: value first": {v1alpha1.StateOn, "1.36", [][]tracker.Server{at(false, "1.35", "1.35")},
			[]string{"TurningOff@1.36", "Off@1.36", "Downgrading@1.36", "Off@1.35"}, []string{"ClearA", "ClearB", down36}},
		"a patch version is none": {v1alpha1.StateOff, "1.36", [][]tracker.Server{at(false, "1.36.3", "1.36")},
			[]string{"Off@1.36"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t, tc.state, tc.version)
			for _, servers := range tc.then {
				f.rest(servers)
				if len(servers) > 0 && servers[0].Version != servers[1].Version && len(f.feature.Status.StoredVersions) == 0 && f.feature.Status.Version != "1.36" {
					t.Errorf("it is forgotten that a server has %s", servers[0].Version)
				}
			}
			last := tc.then[len(tc.then)-1]
			if last[0].Version != last[1].Version {
				f.feature.Status.StoredVersions = nil
			}
			f.want(tc.states, tc.did)
		})
	}
}

// TestVersionTransitionReversed at each of its steps is replaced by one that
// undoes it, and what was wanted first can be had after all.
func TestVersionTransitionReversed(t *testing.T) {
	for steps := range 4 {
		f := newFlow(t, v1alpha1.StateOn, "1.35")
		upgraded := at(true, "1.36", "1.36")
		for range steps {
			f.look(upgraded)
		}
		if f.feature.Status.State == v1alpha1.StateOn && steps > 0 {
			t.Fatalf("over after %d steps: %v", steps, f.states)
		}
		id := ""
		if tr := f.feature.Status.Transition; tr != nil {
			id = tr.ID
		}
		f.did = nil
		f.look(at(true, "1.35", "1.35"))
		tr := f.feature.Status.Transition
		if steps == 0 {
			if tr != nil {
				t.Errorf("an unwanted transition began: %+v", tr)
			}
			continue
		}
		if tr == nil || tr.ID == id || f.feature.Status.State != v1alpha1.StateDowngrading || tr.FromVersion != "1.36" || tr.ToVersion != "1.35" || tr.FromState != v1alpha1.StateOn {
			t.Fatalf("after %d steps it is not replaced: %+v", steps, f.feature.Status)
		}
		// Halfway back, forward again.
		f.look(at(true, "1.35", "1.35"))
		f.states, f.did = nil, nil
		f.rest(upgraded)
		f.want([]string{"Upgrading@1.35", "On@1.36"}, []string{up36})
	}
}

// TestInterruptedVersionTransitionRestarts: a server of another version has
// lived after tasks had begun, and may have undone what they did.
func TestInterruptedVersionTransitionRestarts(t *testing.T) {
	f := newFlow(t, v1alpha1.StateOff, "1.35")
	upgraded := at(false, "1.37", "1.37")
	for len(f.did) < 2 {
		f.look(upgraded)
	}
	id := f.feature.Status.Transition.ID
	f.look(at(false, "1.37", "1.35"))
	if s := f.feature.Status; !s.Transition.Interrupted || s.Transition.ID != id || s.State != v1alpha1.StateUpgrading {
		t.Fatalf("it is not noted, or something began while versions are mixed: %+v", s)
	}
	f.did, f.states = nil, nil
	f.rest(upgraded)
	f.want([]string{"Upgrading@1.35", "Off@1.37"}, []string{up36, up37})
	// While it waits nothing has been done that could be undone.
	f = newFlow(t, v1alpha1.StateOff, "1.35")
	f.look(upgraded)
	id = f.feature.Status.Transition.ID
	f.look(at(false, "1.37", "1.35"))
	if tr := f.feature.Status.Transition; tr.Interrupted || tr.ID != id {
		t.Errorf("a transition that waits is interrupted: %+v", tr)
	}
	// But it waits for the whole settle period again.
	before := f.now
	f.look(upgraded)
	if f.now.Sub(before) != settings.Settle || f.feature.Status.Transition.ID != id {
		t.Errorf("it continues after %s", f.now.Sub(before))
	}
}

// TestMissingReportInterruptsVersionTransition: it may be of any version. One that
// is only starting has not written anything yet.
func TestMissingReportInterruptsVersionTransition(t *testing.T) {
	for _, starting := range []bool{true, false} {
		f := newFlow(t, v1alpha1.StateOff, "1.35")
		upgraded := at(false, "1.37", "1.37")
		for len(f.did) < 2 {
			f.look(upgraded)
		}
		f.look(append(upgraded, tracker.Server{ID: "missing", Starting: starting}))
		if tr := f.feature.Status.Transition; tr == nil || tr.Interrupted == starting {
			t.Errorf("starting: %t, the transition is %+v", starting, tr)
		}
	}
}

// TestVersionTransitionRestartsForAnotherForm checks that its list of tasks is computed
// again, since the old one does not cover that form.
func TestVersionTransitionRestartsForAnotherForm(t *testing.T) {
	f := newFlow(t, v1alpha1.StateOff, "1.37")
	f.look(at(false, "1.36", "1.36"))
	if got := taskNames(f.feature.Status); len(got) != 2 || got[1] != down37 {
		t.Fatalf("tasks %v", got)
	}
	f.look(at(false, "1.36", "1.35"))
	f.rest(at(false, "1.36", "1.36"))
	f.want([]string{"Downgrading@1.37", "Off@1.36"}, []string{down37, up36})
}

// TestVersionsOfOtherUsersDoNotHold: kubelets may be three minor versions older, and
// may even have another value.
func TestVersionsOfOtherUsersDoNotHold(t *testing.T) {
	f := feature(v1alpha1.StateOn)
	f.Status.Version = "1.35"
	kubelet := user("n1", false)
	kubelet.Version = "v1.33.0"
	view := View{Servers: at(true, "1.36", "1.36"), Declared: both, NewTransitionID: "t1", Instances: []tracker.Instance{kubelet}}
	f.Status = Next(f, view, settings, start).Status
	f.Status = Next(f, view, settings, start).Status
	d := Next(f, view, settings, start.Add(settings.Settle))
	if got := taskNames(d.Status); len(got) != 1 || got[0] != up36 {
		t.Errorf("tasks %v, want waiting to be over", got)
	}
	if c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionUsesMatch); c == nil || c.Reason != v1alpha1.ReasonUsersDiffer {
		t.Errorf("a difference is not reported during an upgrade: %+v", c)
	}
}

func TestVersionWithoutTasksMovesAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		feature *v1alpha1.Feature
		value   bool
	}{
		"at rest":             {feature(v1alpha1.StateOff), false},
		"paused":              {paused(feature(v1alpha1.StateOff)), false},
		"turning off":         {feature(v1alpha1.StateTurningOff, "ClearA"), false},
		"value to be changed": {feature(v1alpha1.StateOff), true},
	} {
		t.Run(name, func(t *testing.T) {
			was := tc.feature.Status.State
			d := Next(tc.feature, View{Servers: at(tc.value, "1.37", "1.37"), Declared: declared, NewTransitionID: "t2"}, settings, start)
			if d.Status.Version != "1.37" || len(d.Status.StoredVersions) > 0 || OfVersion(d.Status.State) {
				t.Errorf("%+v", d.Status)
			}
			if tc.value && d.Status.State != v1alpha1.StateTurningOn || !tc.value && d.Status.State != was {
				t.Errorf("%s became %s", was, d.Status.State)
			}
			mixed := Next(tc.feature, View{Servers: at(false, "1.37", "1.36"), Declared: declared}, settings, start)
			if mixed.Status.Version != "1.36" || len(mixed.Status.StoredVersions) > 0 {
				t.Errorf("while versions are mixed: %+v", mixed.Status)
			}
		})
	}
}

func TestUpgradeWithoutTasksNeedsOneWrite(t *testing.T) {
	f := newFlow(t, v1alpha1.StateOff, "1.35")
	view := View{Servers: at(false, "1.35", "1.35"), Declared: declared}
	f.feature.Status = Next(f.feature, view, settings, start).Status
	for writes, servers := range [][]tracker.Server{at(false, "1.36", "1.35"), at(false, "1.36", "1.36")} {
		view.Servers = servers
		d := Next(f.feature, view, settings, start)
		if changed := !cmp.Equal(f.feature.Status, d.Status); changed != (writes == 1) {
			t.Errorf("with %s and %s: written: %t\n%s", servers[0].Version, servers[1].Version, changed, cmp.Diff(f.feature.Status, d.Status))
		}
		f.feature.Status = d.Status
	}
	if diff := cmp.Diff(f.feature.Status, Next(f.feature, view, settings, start.Add(time.Hour)).Status); diff != "" {
		t.Errorf("an hour later it is written again: %s", diff)
	}
}

// TestRemovedGate keeps its version, unless tasks are declared for what it
// stored.
func TestRemovedGate(t *testing.T) {
	removed := []tracker.Server{{ID: "a", Reported: true, Version: "1.37"}}
	if d := Next(feature(v1alpha1.StateOn), View{Servers: removed, Declared: declared}, settings, start); d.Status.Version != "1.36" {
		t.Errorf("since when the gate is unknown is not stored: version %s", d.Status.Version)
	}
	f := newFlow(t, v1alpha1.StateOn, "1.36")
	f.rest(removed)
	f.want([]string{"Upgrading@1.36", "On@1.37"}, []string{up37})
}

func TestAdoptedFeatureHasClusterVersion(t *testing.T) {
	f := newFlow(t, "", "")
	f.rest(at(true, "1.36", "1.36"))
	f.want([]string{"On@1.36"}, nil)
	// A Feature whose server did not report a version is taken as it is, too.
	f = newFlow(t, v1alpha1.StateOn, "")
	f.rest(at(true, "1.36", "1.36"))
	f.want([]string{"On@1.36"}, nil)
}

func TestVersionTransitionMessages(t *testing.T) {
	progressing := func(f *v1alpha1.Feature, servers []tracker.Server) string {
		d := Next(f, View{Servers: servers, Declared: both, NewTransitionID: "t2"}, settings, start)
		c := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing)
		return c.Reason + ": " + c.Message
	}
	upgrading := func() *v1alpha1.Feature {
		f := feature(v1alpha1.StateUpgrading, up36)
		f.Status.Version, f.Status.Transition.FromVersion, f.Status.Transition.ToVersion = "1.35", "1.35", "1.36"
		f.Status.Transition.FromState, f.Status.StoredVersions = v1alpha1.StateOff, []string{"1.36"}
		return f
	}
	atRest := feature(v1alpha1.StateOff)
	atRest.Status.Version = "1.35"
	for name, tc := range map[string]struct{ got, want string }{
		"mixed at rest":         {progressing(atRest, at(false, "1.36", "1.35")), "MixedVersions"},
		"paused at rest":        {progressing(paused(atRest.DeepCopy()), at(false, "1.36", "1.36")), "Paused: spec.paused holds the feature, which is stored in the form of 1.35; set it to false to let it move to 1.36"},
		"mixed under way":       {progressing(upgrading(), at(false, "1.36", "1.35")), "MixedVersions"},
		"paused under way":      {progressing(paused(upgrading()), at(false, "1.36", "1.36")), "Paused"},
		"paused and turned":     {progressing(paused(upgrading()), at(false, "1.35", "1.35")), "Paused"},
		"disagreement":          {progressing(upgrading(), append(at(false, "1.36"), at(true, "1.36")...)), "WaitingForAgreement"},
		"a task runs":           {progressing(upgrading(), at(false, "1.36", "1.36")), "RunningTask: " + up36},
		"nothing else is mixed": {progressing(feature(v1alpha1.StateOff), at(false, "1.36", "1.36")), "Complete"},
	} {
		if !strings.HasPrefix(tc.got, tc.want) {
			t.Errorf("%s: %q, want it to begin with %q", name, tc.got, tc.want)
		}
	}
	f := newFlow(t, v1alpha1.StateOff, "1.35")
	f.rest(at(false, "1.36", "1.36"))
	want := []string{
		"TransitionStarted: Upgrading from 1.35 to 1.36: the cluster's version is 1.36; 2 tasks",
		"TaskCompleted: WaitForUses done, 1 task left",
		"TransitionCompleted: Off in the form of 1.36 after 10s",
	}
	if diff := cmp.Diff(want, f.events); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}
}
