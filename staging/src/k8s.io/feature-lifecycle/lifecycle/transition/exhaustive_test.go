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
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// combination is everything that the next step may depend on, apart from times.
type combination struct {
	State     v1alpha1.FeatureState
	Desired   bool
	Agreement string
	Paused    bool
	Mixed     bool
	Tasks     string
	Attempt   string
	Settled   bool
}

// nextStep is what a combination leads to.
type nextStep struct {
	State v1alpha1.FeatureState
	Tasks []string
	Start string
	Hold  bool
}

const (
	agree    = "all agree"
	disagree = "one disagrees"
	silent   = "one is silent"
	begins   = "one is starting"
	nobody   = "nobody knows it"
)

// expected is the table of the design, written down a second time: each rule is
// one that a person could check.
func (c combination) expected(tasks []string) nextStep {
	stays := nextStep{State: c.State, Tasks: tasks}
	held := stays
	held.Hold = true
	agreed := c.Agreement == agree
	if c.State == "" {
		if agreed {
			stays.State = map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[c.Desired]
		}
		return stays
	}
	leadsToOn := c.State == v1alpha1.StateOn || c.State == v1alpha1.StateTurningOn
	ofVersion := c.State == v1alpha1.StateUpgrading || c.State == v1alpha1.StateDowngrading
	atRest := c.State == v1alpha1.StateOn || c.State == v1alpha1.StateOff
	mayMove := agreed && !c.Paused && !c.Mixed
	switch {
	case mayMove && !ofVersion && leadsToOn != c.Desired && c.Desired:
		return nextStep{State: v1alpha1.StateTurningOn, Tasks: append([]string{v1alpha1.TaskWaitForUses}, declared.OnEnable...), Hold: true}
	case mayMove && !ofVersion && leadsToOn != c.Desired:
		return nextStep{State: v1alpha1.StateTurningOff, Tasks: append([]string{v1alpha1.TaskWaitForUses}, declared.OnDisable...), Hold: true}
	case atRest:
		return stays
	case len(tasks) > 0 && !mayMove:
		return held
	}
	final := map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[leadsToOn]
	if ofVersion {
		// It leads back to what is configured.
		final = map[bool]v1alpha1.FeatureState{true: v1alpha1.StateOn, false: v1alpha1.StateOff}[c.Desired && agreed]
	}
	finished := func(left []string) nextStep {
		if len(left) == 0 {
			return nextStep{State: final}
		}
		return nextStep{State: c.State, Tasks: left}
	}
	switch {
	case len(tasks) == 0:
		return finished(nil)
	case tasks[0] == v1alpha1.TaskWaitForUses && (c.Settled || ofVersion):
		return finished(tasks[1:])
	case tasks[0] == v1alpha1.TaskWaitForUses:
		return stays
	case tasks[0] == "Unknown" || c.State == v1alpha1.StateTurningOn:
		// ClearA is a task of the other direction.
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

// TestEveryCombination goes through every state, desired value, agreement, pause,
// mix of versions, list of up to three known and unknown tasks, and attempt.
func TestEveryCombination(t *testing.T) {
	lists := [][]string{nil}
	kinds := []string{v1alpha1.TaskWaitForUses, "ClearA", "Unknown"}
	for first := 0; len(lists[first]) < 3; first++ {
		for _, kind := range kinds {
			lists = append(lists, append(slices.Clone(lists[first]), kind))
		}
	}
	count, failed := 0, 0
	for _, state := range []v1alpha1.FeatureState{"", v1alpha1.StateOn, v1alpha1.StateOff, v1alpha1.StateTurningOn, v1alpha1.StateTurningOff, v1alpha1.StateUpgrading, v1alpha1.StateDowngrading} {
		for _, tasks := range lists {
			if rest := state == "" || state == v1alpha1.StateOn || state == v1alpha1.StateOff; rest && len(tasks) > 0 {
				// S1 keeps these from being stored.
				continue
			}
			for _, desired := range []bool{false, true} {
				for _, agreement := range []string{agree, disagree, silent, begins, nobody} {
					for flags := range 8 {
						for _, attempt := range []string{"none", "running", "finished", "blocked", "failed"} {
							c := combination{state, desired, agreement, flags&1 != 0, flags&2 != 0, fmt.Sprint(tasks), attempt, flags&4 != 0}
							count++
							if diff := cmp.Diff(c.expected(tasks), c.decide(tasks)); diff != "" {
								if failed++; failed <= 3 {
									t.Errorf("%+v: unexpected step (-want +got):\n%s", c, diff)
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d combinations, %d failed", count, failed)
	if want := (3 + 4*len(lists)) * 2 * 5 * 8 * 5; count != want {
		t.Errorf("%d combinations, want %d", count, want)
	}
}

func (c combination) decide(tasks []string) nextStep {
	f := feature(c.State, tasks...)
	f.Spec.Paused = c.Paused
	now := start.Add(time.Hour)
	if c.State != "" && c.State != v1alpha1.StateOn && c.State != v1alpha1.StateOff {
		f.Status.Transition = &v1alpha1.FeatureTransition{ID: "t1", StartTime: metav1.NewMicroTime(start)}
	}
	if len(tasks) > 0 && c.Settled && tasks[0] == v1alpha1.TaskWaitForUses {
		since := metav1.NewMicroTime(now.Add(-settings.Settle))
		f.Status.Tasks[0].LastAttemptTime = &since
	}
	view := View{Declared: declared, NewTransitionID: "t2"}
	view.Servers = []Server{server("a", c.Desired), server("b", c.Desired)}
	switch c.Agreement {
	case disagree:
		view.Servers[1] = server("b", !c.Desired)
	case silent:
		view.Servers = append(view.Servers, Server{ID: "c"})
	case begins:
		view.Servers = append(view.Servers, Server{ID: "c", Starting: true})
	case nobody:
		for i := range view.Servers {
			view.Servers[i].Knows = false
		}
	}
	if c.Mixed {
		view.Servers[1].Version = "1.35"
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
	got := nextStep{State: d.Status.State, Start: d.Start, Hold: d.Hold}
	for _, task := range d.Status.Tasks {
		got.Tasks = append(got.Tasks, task.Name)
	}
	return got
}
