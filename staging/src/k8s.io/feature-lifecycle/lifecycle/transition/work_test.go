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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for outcome, limits := range map[Outcome]map[int32]time.Duration{
		Failed:  {0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 6: settings.MaxBackoff, 1000: settings.MaxBackoff},
		"":      {2: 2 * time.Second, 1000: settings.MaxBackoff},
		Blocked: {1: time.Second, 6: 32 * time.Second, 10: 512 * time.Second, 11: settings.MaxBlockedBackoff, 1000: settings.MaxBlockedBackoff},
	} {
		for attempts, want := range limits {
			if got := settings.backoff(attempts, outcome); got != want {
				t.Errorf("after %d attempts, %q: %s, want %s", attempts, outcome, got, want)
			}
		}
	}
	if settings.MaxBackoff >= time.Minute {
		t.Errorf("L2: a task that failed waits up to %s", settings.MaxBackoff)
	}
}

// TestABlockedTaskIsQuiet: a day of attempts that end alike writes no more than
// that each was made, and people read the same all the time.
func TestABlockedTaskIsQuiet(t *testing.T) {
	f := feature(v1alpha1.StateTurningOff, "ClearA")
	view := View{Servers: []Server{server("a", false)}, Declared: declared}
	now := start
	next := func() Decision {
		d := Next(f, view, settings, now)
		f.Status = d.Status
		return d
	}
	var attempts, events int
	progressing := ""
	for end := start.Add(24 * time.Hour); now.Before(end); {
		d := next()
		events += len(d.Events)
		if attempts > 0 {
			c := meta.FindStatusCondition(f.Status.Conditions, v1alpha1.ConditionProgressing)
			if progressing == "" {
				progressing = c.Reason + " " + c.Message
			}
			if got := c.Reason + " " + c.Message; got != progressing {
				t.Fatalf("people read %q, then %q", progressing, got)
			}
		}
		if d.Start == "" {
			now = now.Add(d.RequeueAfter)
			continue
		}
		// The attempt runs, reports progress and ends as the one before.
		previous := Outcome("")
		if attempts++; attempts > 1 {
			previous = Blocked
			for _, done := range []int64{0, 1} {
				view.Attempt = &Attempt{TransitionID: "t1", Task: "ClearA", Previous: previous, Done: done, Total: 7, Message: "working"}
				before := f.Status.DeepCopy()
				if next(); !cmp.Equal(*before, f.Status) {
					t.Fatalf("progress is written: %s", cmp.Diff(*before, f.Status))
				}
			}
		}
		now = now.Add(time.Second)
		view.Attempt = &Attempt{TransitionID: "t1", Task: "ClearA", Previous: previous, Outcome: Blocked, Done: 2, Total: 3, Message: "one refuses"}
	}
	if attempts < 100 || attempts > 170 {
		t.Errorf("%d attempts in a day, want one about every ten minutes", attempts)
	}
	if events != 1 {
		t.Errorf("%d events, want one", events)
	}
	if want := "Blocked ClearA: one refuses"; progressing != want {
		t.Errorf("people read %q, want %q", progressing, want)
	}
}

// TestResumingAttemptsAtOnce: whoever has removed what blocked a task need not
// wait for the end of its pause.
func TestResumingAttemptsAtOnce(t *testing.T) {
	f := settling(feature(v1alpha1.StateTurningOff, "ClearA"), start)
	f.Status.Tasks[0].Attempts = 20
	view := View{Servers: []Server{server("a", false)}, Declared: declared,
		Attempt: &Attempt{TransitionID: "t1", Task: "ClearA", Outcome: Blocked, Message: "one refuses"}}
	now := start.Add(time.Second)
	if d := Next(f, view, settings, now); d.Start != "" {
		t.Fatal("the pause is not kept")
	}
	f.Spec.Paused = true
	d := Next(f, view, settings, now)
	if !d.Hold {
		t.Fatal("a pause does not hold")
	}
	f.Status, f.Spec.Paused = d.Status, false
	// The controller forgets an attempt that is held.
	view.Attempt = nil
	if d := Next(f, view, settings, now); d.Start != "ClearA" {
		t.Errorf("resumed, it starts %q", d.Start)
	}
}
