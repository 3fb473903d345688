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
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// model is a cluster with one feature: servers that are restarted one after the
// other with other values, users that follow, and a server flow that may lose
// its memory at any write.
type model struct {
	stored  *v1alpha1.Feature
	now     time.Time
	servers []tracker.Server
	user    bool
	attempt *Attempt
	// done are the tasks that finished in the transition under way.
	done  []string
	count int
	// forms are the versions in whose form something is stored: that of every server so
	// far, until tasks have changed it.
	forms map[string]bool
}

// write lets every live server store something in the form of its version.
func (m *model) write() {
	for _, s := range m.servers {
		m.forms[s.Version] = true
	}
}

// convert does what a finished task does to what is stored.
func (m *model) convert(task string) {
	for _, b := range both.Versions {
		for form := range maps.Clone(m.forms) {
			switch {
			case slices.Contains(b.OnUpgrade, task) && form < b.At:
				delete(m.forms, form)
				m.forms[b.At] = true
			case slices.Contains(b.OnDowngrade, task) && form >= b.At:
				delete(m.forms, form)
				m.forms[below[b.At]] = true
			}
		}
	}
}

// below is the version under a boundary.
var below = map[string]string{"1.36": "1.35", "1.37": "1.36"}

// both is moving with tasks for each direction at each boundary.
var both = Declared{OnEnable: declared.OnEnable, OnDisable: declared.OnDisable, Removes: true, Versions: []VersionTasks{
	{At: "1.36", OnUpgrade: []string{up36}, OnDowngrade: []string{down36}},
	{At: "1.37", OnUpgrade: []string{up37}, OnDowngrade: []string{"Downgrade/1.37/Revert"}},
}}

func (m *model) view() View {
	return View{
		Servers: m.servers, Declared: both, Attempt: m.attempt,
		Instances:       []tracker.Instance{user("n1", m.user)},
		NewTransitionID: fmt.Sprintf("t%d", m.count),
	}
}

// step runs one reconciliation. With lost the write does not arrive, and the process
// loses its memory.
func (m *model) step(t *rapid.T, lost bool) {
	view := m.view()
	d := Next(m.stored, view, settings, m.now)
	if lost {
		m.attempt = nil
		return
	}
	before := m.stored.Status
	m.stored.Status = d.Status
	m.check(t, before, view)
	if d.Hold {
		m.attempt = nil
	}
	if d.Start != "" {
		// S2: waiting for uses is over.
		if !slices.Contains(m.done, v1alpha1.TaskWaitForUses) {
			t.Fatalf("S2: task %s starts before waiting for uses ended", d.Start)
		}
		m.convert(d.Start)
		m.attempt = &Attempt{TransitionID: d.Status.Transition.ID, Task: d.Start, Outcome: Finished}
	}
	if d.RequeueAfter > 0 {
		m.now = m.now.Add(d.RequeueAfter)
	}
}

// check holds the invariants over one write.
func (m *model) check(t *rapid.T, before v1alpha1.FeatureStatus, view View) {
	after := m.stored.Status
	if (after.State == v1alpha1.StateOn || after.State == v1alpha1.StateOff) && len(after.Tasks) > 0 {
		t.Fatalf("S1: state %s with tasks %v", after.State, after.Tasks)
	}
	if rest := after.State == v1alpha1.StateOn || after.State == v1alpha1.StateOff; rest && OfVersion(before.State) {
		for form := range m.forms {
			if form != after.Version {
				t.Fatalf("S1: %s at %s and something is stored in the form of %s: %+v", after.State, after.Version, form, before)
			}
		}
	}
	begun := after.Transition != nil && (before.Transition == nil || before.Transition.ID != after.Transition.ID)
	if begun {
		m.count++
		m.done = nil
		if c := configurationOf(m.stored, view); !c.agreed {
			t.Fatalf("S4: a transition started while servers disagree")
		}
		if _, mixed := clusterVersion(view.Servers); mixed {
			t.Fatalf("S4: a transition started while versions are mixed")
		}
		if OfVersion(after.State) && after.Transition.ToVersion != view.Servers[0].Version {
			t.Fatalf("S4: a transition to %s started while the version is %s", after.Transition.ToVersion, view.Servers[0].Version)
		}
		return
	}
	if len(before.Tasks) == len(after.Tasks) {
		return
	}
	// S3: exactly the first task went, and the others stayed as they were.
	var was, is []string
	for _, task := range before.Tasks {
		was = append(was, task.Name)
	}
	for _, task := range after.Tasks {
		is = append(is, task.Name)
	}
	if len(was) != len(is)+1 || !slices.Equal(was[1:], is) {
		t.Fatalf("S3: tasks %v became %v", was, is)
	}
	m.done = append(m.done, was[0])
}

// TestModel runs random schedules: restarts with other values and versions, users that
// follow, lost writes, lost memory, time that passes. S1 to S4 hold at every write.
// Nothing is stored in another version's form when a version transition ends. Once all
// agree the feature comes to rest (L1).
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{stored: feature(v1alpha1.StateOff), now: start, servers: []tracker.Server{server("a", false), server("b", false)}, forms: map[string]bool{"1.36": true}}
		t.Repeat(map[string]func(*rapid.T){
			"look":       func(t *rapid.T) { m.step(t, false) },
			"lose write": func(t *rapid.T) { m.step(t, true) },
			"restart a server": func(t *rapid.T) {
				i := rapid.IntRange(0, 1).Draw(t, "server")
				m.servers[i] = emulating(server(m.servers[i].ID, rapid.Bool().Draw(t, "value")), rapid.SampledFrom([]string{"1.36", "1.36", "1.35", "1.37"}).Draw(t, "version"))
				m.write()
				// The report of a server is seen when it begins to serve.
				m.step(t, false)
			},
			"restart both": func(t *rapid.T) {
				value, version := rapid.Bool().Draw(t, "value"), rapid.SampledFrom([]string{"1.35", "1.36", "1.37"}).Draw(t, "version")
				m.servers = []tracker.Server{emulating(server("a", value), version), emulating(server("b", value), version)}
				m.write()
				m.step(t, false)
			},
			"write":            func(*rapid.T) { m.write() },
			"restart the user": func(t *rapid.T) { m.user = rapid.Bool().Draw(t, "value") },
			"lose memory":      func(*rapid.T) { m.attempt = nil },
			"pass time":        func(t *rapid.T) { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "s")) * time.Second) },
		})
		wanted, version := rapid.Bool().Draw(t, "wanted"), rapid.SampledFrom([]string{"1.35", "1.36", "1.37"}).Draw(t, "version at the end")
		m.servers, m.user = []tracker.Server{emulating(server("a", wanted), version), emulating(server("b", wanted), version)}, wanted
		m.write()
		for range 60 {
			m.step(t, false)
		}
		if status := m.stored.Status; status.State != finalState(wanted) || status.Version != version || len(status.StoredVersions) > 0 {
			t.Fatalf("L1: all have %t at %s and the feature is %+v", wanted, version, status)
		}
		if want := map[string]bool{version: true}; !maps.Equal(m.forms, want) {
			t.Fatalf("L1: at %s these forms are stored: %v", version, m.forms)
		}
	})
}
