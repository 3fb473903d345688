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
)

// combination is everything that the next step may depend on, apart from times.
type combination struct {
	State     v1alpha1.FeatureState
	Desired   bool
	Agreement string
	Paused    bool
	Mixed     bool
	// Cluster is the version of the servers, unless they are mixed.
	Cluster string
	Tasks   string
	Attempt string
	Settled bool
}

// nextStep is the expected result of a combination.
type nextStep struct {
	State   v1alpha1.FeatureState
	Version string
	// Stored are the versions whose forms may be stored, too.
	Stored []string
	Tasks  []string
	Start  string
	Hold   bool
}

// equal is quicker than a diff, which only a failure needs.
func (n nextStep) equal(other nextStep) bool {
	return n.State == other.State && n.Version == other.Version && n.Start == other.Start && n.Hold == other.Hold &&
		slices.Equal(n.Stored, other.Stored) && slices.Equal(n.Tasks, other.Tasks)
}

const (
	agree    = "all agree"
	disagree = "one disagrees"
	missing  = "a report is missing"
	begins   = "one is starting"
	unknown  = "it is unknown"
)

const (
	up36   = "Upgrade/1.36/Convert"
	up37   = "Upgrade/1.37/Convert"
	down36 = "Downgrade/1.36/Revert"
)

// moving is declared, with tasks at two boundaries, the higher one without any
// for the way down.
var moving = Declared{
	OnEnable: declared.OnEnable, OnDisable: declared.OnDisable, Removes: true,
	Versions: []VersionTasks{{At: "1.37", OnUpgrade: []string{up37}}, {At: "1.36", OnUpgrade: []string{up36}, OnDowngrade: []string{down36}}},
}

// paths are the tasks from forms between two versions to a third.
var paths = map[[3]string][]string{
	{"1.36", "1.37", "1.37"}: {up37},
	{"1.35", "1.36", "1.35"}: {down36},
	{"1.35", "1.36", "1.36"}: {up36},
	{"1.35", "1.37", "1.37"}: {up36, up37},
}

// versions returns the stored version, the goal of a version transition, and the
// versions between which forms may be stored, those of live servers included.
func (c combination) versions() (version, to, lowest, highest string) {
	version, lowest, highest = "1.36", "1.36", "1.36"
	switch c.State {
	case v1alpha1.StateUpgrading:
		version, to, lowest = "1.35", "1.36", "1.35"
	case v1alpha1.StateDowngrading:
		to, lowest = "1.35", "1.35"
	}
	lowest, highest = min(lowest, c.Cluster), max(highest, c.Cluster)
	if c.Mixed {
		lowest = "1.34"
	}
	return version, to, lowest, highest
}

// ends returns the versions, apart from one, whose forms may be stored.
func ends(version, lowest, highest string) []string {
	return slices.DeleteFunc(slices.Compact([]string{lowest, highest}), func(v string) bool { return v == version })
}

// expected is the table of the design, written down a second time: each rule can be
// checked by hand.
func (c combination) expected(tasks []string) nextStep {
	version, to, lowest, highest := c.versions()
	stays := nextStep{State: c.State, Tasks: tasks, Version: version, Stored: ends(version, lowest, highest)}
	if c.State == "" {
		stays.Stored = nil
	}
	held := stays
	held.Hold = true
	agreed := c.Agreement == agree
	if c.State == "" {
		if agreed {
			stays.State = map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[c.Desired]
			stays.Version = c.lowest()
		}
		return stays
	}
	leadsToOn := c.State == v1alpha1.StateOn || c.State == v1alpha1.StateTurningOn || c.State == v1alpha1.StateUpgrading
	ofVersion := c.State == v1alpha1.StateUpgrading || c.State == v1alpha1.StateDowngrading
	atRest := c.State == v1alpha1.StateOn || c.State == v1alpha1.StateOff
	// The value of a gate that is removed cannot be disagreed about.
	mayMove := (agreed || c.Agreement == unknown && ofVersion) && !c.Paused && !c.Mixed
	due := (agreed || c.Agreement == unknown) && !c.Mixed && c.Cluster != version && !ofVersion || ofVersion && c.Cluster != to
	valueFirst := c.Cluster < version && agreed && leadsToOn != c.Desired
	if due && !c.Paused && (atRest && !valueFirst || ofVersion && mayMove) {
		return nextStep{
			State:   map[bool]v1alpha1.FeatureState{true: v1alpha1.StateDowngrading, false: v1alpha1.StateUpgrading}[c.Cluster < highest],
			Tasks:   append([]string{v1alpha1.TaskWaitForUses}, paths[[3]string{lowest, highest, c.Cluster}]...),
			Version: version, Stored: stays.Stored, Hold: true,
		}
	}
	switch {
	case mayMove && !ofVersion && leadsToOn != c.Desired && c.Desired:
		return nextStep{State: v1alpha1.StateTurningOn, Tasks: append([]string{v1alpha1.TaskWaitForUses}, declared.OnEnable...), Hold: true, Version: version, Stored: stays.Stored}
	case mayMove && !ofVersion && leadsToOn != c.Desired:
		return nextStep{State: v1alpha1.StateTurningOff, Tasks: append([]string{v1alpha1.TaskWaitForUses}, declared.OnDisable...), Hold: true, Version: version, Stored: stays.Stored}
	case atRest:
		return stays
	case len(tasks) > 0 && (!mayMove || ofVersion && c.Cluster != to):
		return held
	}
	finished := func(left []string) nextStep {
		if len(left) > 0 {
			return nextStep{State: c.State, Tasks: left, Version: version, Stored: stays.Stored}
		}
		final := nextStep{State: map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[leadsToOn], Version: version, Stored: stays.Stored}
		if ofVersion {
			final.Version, final.Stored = to, nil
		}
		return final
	}
	known := map[string]bool{"ClearA": c.State == v1alpha1.StateTurningOff, up36: ofVersion}
	switch {
	case len(tasks) == 0:
		return finished(nil)
	case tasks[0] == v1alpha1.TaskWaitForUses && c.Settled:
		return finished(tasks[1:])
	case tasks[0] == v1alpha1.TaskWaitForUses:
		return stays
	case !known[tasks[0]]:
		// ClearA is a task of the other direction when turning on.
		return held
	case c.Attempt == "finished":
		return finished(tasks[1:])
	case c.Attempt == "none":
		stays.Start = tasks[0]
		return stays
	default:
		// It runs, or it did not finish and its pause is not over.
		return stays
	}
}

// lowest returns the lowest version of the servers; one of them has 1.34 while they are
// mixed.
func (c combination) lowest() string {
	if c.Mixed {
		return "1.34"
	}
	return c.Cluster
}

// TestEveryCombination goes through every state, desired value, agreement, pause,
// mix of versions, version, list of up to three known and unknown tasks, and
// attempt. Lists of three are left out where the servers have another version.
func TestEveryCombination(t *testing.T) {
	lists := [][]string{nil}
	kinds := []string{v1alpha1.TaskWaitForUses, "ClearA", "Unknown", up36}
	for first := 0; len(lists[first]) < 3; first++ {
		for _, kind := range kinds {
			lists = append(lists, append(slices.Clone(lists[first]), kind))
		}
	}
	short := lists[:slices.IndexFunc(lists, func(list []string) bool { return len(list) == 3 })]
	count, failed := 0, 0
	for _, state := range []v1alpha1.FeatureState{"", v1alpha1.StateOn, v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateTurningOff, v1alpha1.StateUpgrading, v1alpha1.StateDowngrading} {
		for _, cluster := range []string{"1.35", "1.36", "1.37"} {
			of := short
			if cluster == "1.36" {
				of = lists
			}
			for _, tasks := range of {
				if rest := state == "" || state == v1alpha1.StateOn || state == v1alpha1.StateOff; rest && len(tasks) > 0 {
					// S1 keeps these from being stored.
					continue
				}
				forEachView(func(c combination) {
					c.State, c.Cluster, c.Tasks = state, cluster, fmt.Sprint(tasks)
					count++
					want, got := c.expected(tasks), c.decide(tasks)
					if !got.equal(want) {
						if failed++; failed <= 3 {
							t.Errorf("%+v: unexpected step (-want +got):\n%s", c, cmp.Diff(want, got))
						}
					}
				})
			}
		}
	}
	t.Logf("%d combinations, %d failed", count, failed)
	if want := (3*3 + 4*(len(lists)+2*len(short))) * 2 * 5 * 8 * 5; count != want {
		t.Errorf("%d combinations, want %d", count, want)
	}
}

// forEachView goes through everything that a server may have gathered, versions
// apart.
func forEachView(do func(combination)) {
	for _, desired := range []bool{false, true} {
		for _, agreement := range []string{agree, disagree, missing, begins, unknown} {
			for flags := range 8 {
				for _, attempt := range []string{"none", "running", "finished", "blocked", "failed"} {
					do(combination{Desired: desired, Agreement: agreement, Paused: flags&1 != 0, Mixed: flags&2 != 0, Settled: flags&4 != 0, Attempt: attempt})
				}
			}
		}
	}
}

func (c combination) decide(tasks []string) nextStep {
	f := feature(c.State, tasks...)
	f.Spec.Paused = c.Paused
	now := start.Add(time.Hour)
	if c.State != "" && c.State != v1alpha1.StateOn && c.State != v1alpha1.StateOff {
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: "t1", StartTime: metav1.NewMicroTime(start)}
	}
	switch c.State {
	case v1alpha1.StateUpgrading:
		t := f.Status.Transition
		t.FromVersion, t.ToVersion, t.FromState, f.Status.Version = "1.35", "1.36", v1alpha1.StateOn, "1.35"
		f.Status.StoredVersions = []string{"1.36"}
	case v1alpha1.StateDowngrading:
		t := f.Status.Transition
		t.FromVersion, t.ToVersion, t.FromState = "1.36", "1.35", v1alpha1.StateOff
		f.Status.StoredVersions = []string{"1.35"}
	}
	if len(tasks) > 0 && c.Settled && tasks[0] == v1alpha1.TaskWaitForUses {
		since := metav1.NewMicroTime(now.Add(-settings.Settle))
		f.Status.Tasks[0].LastAttemptTime = &since
	}
	view := View{Declared: moving, NewTransitionID: "t2"}
	view.Servers = []tracker.Server{emulating(server("a", c.Desired), c.Cluster), emulating(server("b", c.Desired), c.Cluster)}
	switch c.Agreement {
	case disagree:
		view.Servers[1] = emulating(server("b", !c.Desired), c.Cluster)
	case missing:
		view.Servers = append(view.Servers, tracker.Server{ID: "c"})
	case begins:
		view.Servers = append(view.Servers, tracker.Server{ID: "c", Starting: true})
	case unknown:
		for i := range view.Servers {
			view.Servers[i].Knows = false
		}
	}
	if c.Mixed {
		view.Servers[1].Version = "1.34"
	}
	if c.Attempt != "none" && len(tasks) > 0 {
		begun := metav1.NewMicroTime(now)
		if tasks[0] != v1alpha1.TaskWaitForUses {
			f.Status.Tasks[0].LastAttemptTime = &begun
			f.Status.Tasks[0].Attempts = 1
		}
		view.Attempt = &Attempt{TransitionID: "t1", Task: tasks[0], Outcome: map[string]Outcome{"running": "", "finished": Finished, "blocked": Blocked, "failed": Failed}[c.Attempt]}
	}
	d := Next(f, view, settings, now)
	got := nextStep{State: d.Status.State, Version: d.Status.Version, Stored: d.Status.StoredVersions, Start: d.Start, Hold: d.Hold}
	for _, task := range d.Status.Tasks {
		got.Tasks = append(got.Tasks, task.Name)
	}
	return got
}
