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

package controller

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// scripted is a task that does what a test says, attempt by attempt.
type scripted struct {
	mu       sync.Mutex
	attempts []task.Attempt
	run      func(ctx context.Context, n int, attempt task.Attempt) error
	deadline time.Duration
}

func (s *scripted) declare() lifecycle.Feature {
	t := task.Func(task.Own{
		Name: "Scripted", Description: "do as the test says",
		Find: func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) { return nil, nil },
		Run: func(ctx context.Context, _ task.Clients, attempt task.Attempt) error {
			s.mu.Lock()
			s.attempts = append(s.attempts, attempt)
			n := len(s.attempts)
			s.mu.Unlock()
			return s.run(ctx, n, attempt)
		},
	})
	return lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{t.WithDeadline(s.deadline)}}
}

// made returns the attempts so far.
func (s *scripted) made() []task.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]task.Attempt(nil), s.attempts...)
}

// turnOff brings A to On with one server, and configures it off.
func turnOff(w *world) *serverProcess {
	w.t.Helper()
	w.report("server", "s1", gate("A", true))
	s1 := w.serve("s1")
	w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
	w.report("server", "s1", gate("A", false))
	return s1
}

// TestBlockedTaskResumesAtOnce, after hours, and until then costs nothing
// but one attempt in ten minutes.
func TestBlockedTaskResumesAtOnce(t *testing.T) {
	gone := make(chan struct{})
	s := &scripted{run: func(_ context.Context, _ int, _ task.Attempt) error {
		select {
		case <-gone:
			return nil
		default:
			return &task.BlockedError{Message: "waiting for 1 widgets", Until: func(ctx context.Context) error {
				select {
				case <-gone:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
		}
	}}
	inWorld(t, func(w *world) {
		// A channel that a bubble's goroutines wait for has to be made in it.
		gone = make(chan struct{})
		turnOff(w)
		w.until(time.Minute, "blocked", func() bool {
			return w.state("A") == v1alpha1.StateTurningOff && w.condition("A", v1alpha1.ConditionProgressing).Reason == v1alpha1.ReasonBlocked
		})
		w.pass(5 * time.Hour)
		if n := len(s.made()); n > 5*6+12 {
			t.Errorf("%d attempts in five hours, want at most one in ten minutes", n)
		}
		close(gone)
		if took := w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff }); took > 2*time.Second {
			t.Errorf("off %s after nothing blocked any more", took)
		}
	}, s.declare())
}

// TestAttemptResumesFromCheckpointOfOtherServer: the checkpoint is stored.
func TestAttemptResumesFromCheckpointOfOtherServer(t *testing.T) {
	s := &scripted{run: func(ctx context.Context, n int, attempt task.Attempt) error {
		if n > 1 {
			return nil
		}
		attempt.Report(task.Progress{Done: 500, Total: 2000, Checkpoint: "page 3"})
		<-ctx.Done()
		return ctx.Err()
	}}
	inWorld(t, func(w *world) {
		s1 := turnOff(w)
		w.until(time.Minute, "a checkpoint", func() bool {
			tasks := w.stored("A").Status.Tasks
			return len(tasks) > 0 && tasks[0].Checkpoint != ""
		})
		w.stop(s1)
		w.serve("s1")
		w.until(2*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		attempts := s.made()
		want := task.Progress{Done: 500, Total: 2000, Checkpoint: "page 3"}
		if diff := cmp.Diff(want, attempts[len(attempts)-1].Last); diff != "" {
			t.Errorf("the second server begins elsewhere (-want +got):\n%s", diff)
		}
		if a, b := attempts[0].TransitionID, attempts[len(attempts)-1].TransitionID; a == "" || a != b {
			t.Errorf("attempts of one transition belong to %q and %q", a, b)
		}
	}, s.declare())
}

// TestAnAttemptHasADeadline, and the next one continues.
func TestAnAttemptHasADeadline(t *testing.T) {
	s := &scripted{deadline: time.Minute, run: func(ctx context.Context, n int, _ task.Attempt) error {
		if n > 2 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	inWorld(t, func(w *world) {
		turnOff(w)
		w.until(2*time.Minute, "the deadline", func() bool {
			return w.state("A") == v1alpha1.StateTurningOff &&
				strings.Contains(w.condition("A", v1alpha1.ConditionProgressing).Message, "not done within 1m0s")
		})
		w.until(2*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, s.declare())
}

// TestLongMessageShortened: else the status could not be stored, and
// nothing would move any more.
func TestLongMessageShortened(t *testing.T) {
	s := &scripted{run: func(context.Context, int, task.Attempt) error { return errors.New(strings.Repeat("ä", 1<<20)) }}
	inWorld(t, func(w *world) {
		turnOff(w)
		w.until(time.Minute, "it is told", func() bool {
			tasks := w.stored("A").Status.Tasks
			return len(tasks) > 0 && strings.HasPrefix(tasks[0].Message, "ää")
		})
		if n := len(w.stored("A").Status.Tasks[0].Message); n > maxMessage+len("…") {
			t.Errorf("the message has %d bytes", n)
		}
	}, s.declare())
}

// TestDeletedNodeRemovedAtOnce, whatever its kubelet has reported.
func TestDeletedNodeRemovedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.node("n1", corev1.ConditionTrue)
		w.report("kubelet", "n1", asked(gate("A", true)))
		turnOff(w)
		w.pass(time.Minute)
		if state := w.state("A"); state != v1alpha1.StateTurningOff {
			t.Fatalf("%s although a kubelet has it on", state)
		}
		w.removeNode("n1")
		took := w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		if most := w.settings.Settle + 2*time.Second; took > most {
			t.Errorf("off %s after the node was deleted, want the settle period and little more", took)
		}
		if uses := w.stored("A").Status.Uses; len(uses) != 0 {
			t.Errorf("it is still counted: %+v", uses)
		}
	})
}

// TestLateUserReported: it comes back with the old value once nothing waits for it
// any more.
func TestLateUserReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.node("n1", corev1.ConditionUnknown)
		w.report("kubelet", "n1", asked(gate("A", true)))
		turnOff(w)
		w.until(2*w.settings.Grace, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		if uses := w.stored("A").Status.Uses; len(uses) != 1 || uses[0].Stale != 1 || uses[0].Count != 0 {
			t.Errorf("a user that is away is counted as %+v", uses)
		}
		if c := w.condition("A", v1alpha1.ConditionUsesMatch); c.Status != metav1.ConditionTrue {
			t.Errorf("UsesMatch is %+v while it is away", c)
		}
		w.node("n1", corev1.ConditionTrue)
		w.until(time.Minute, "told", func() bool {
			c := w.condition("A", v1alpha1.ConditionUsesMatch)
			return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "kubelet/n1")
		})
		if state := w.state("A"); state != v1alpha1.StateOff {
			t.Errorf("the state is %s", state)
		}
	})
}

// TestADeletedFeatureStopsItsAttempt: no transition is stored that wants it.
func TestADeletedFeatureStopsItsAttempt(t *testing.T) {
	stopped := make(chan struct{})
	s := &scripted{run: func(ctx context.Context, n int, _ task.Attempt) error {
		if n == 1 {
			<-ctx.Done()
			close(stopped)
		}
		return ctx.Err()
	}}
	inWorld(t, func(w *world) {
		stopped = make(chan struct{})
		turnOff(w)
		w.until(time.Minute, "an attempt", func() bool { return len(s.made()) == 1 })
		if err := w.tracker.Delete(featuresResource, "ns", "A"); err != nil {
			t.Fatal(err)
		}
		w.until(time.Minute, "it stops", func() bool {
			select {
			case <-stopped:
				return true
			default:
				return false
			}
		})
		// It is announced again, as a cluster that was adopted.
		w.until(time.Minute, "adopted", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, s.declare())
}

// TestAttemptChecksTransition: pausing and replacing are seen even by a
// process that has not heard of them.
func TestAttemptChecksTransition(t *testing.T) {
	ask, answers := make(chan struct{}), make(chan error)
	s := &scripted{run: func(ctx context.Context, _ int, attempt task.Attempt) error {
		for {
			select {
			case <-ask:
				answers <- attempt.Check(ctx)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}}
	inWorld(t, func(w *world) {
		ask, answers = make(chan struct{}), make(chan error)
		s1 := turnOff(w)
		w.until(time.Minute, "an attempt", func() bool { return len(s.made()) == 1 })
		ask <- struct{}{}
		if err := <-answers; err != nil {
			t.Errorf("what is wanted is refused: %v", err)
		}
		id := w.stored("A").Status.Transition.ID
		if err := s1.controller.reconciler.stillWanted(t.Context(), "A", id); err != nil {
			t.Errorf("the transition under way: %v", err)
		}
		if err := s1.controller.reconciler.stillWanted(t.Context(), "A", "another"); err == nil {
			t.Error("a transition that was replaced is wanted")
		}
		if err := s1.controller.reconciler.stillWanted(t.Context(), "B", id); err == nil {
			t.Error("a transition of a feature that is gone is wanted")
		}
	}, s.declare())
}

// TestAnAttemptStopsWhenItsTransitionIsReplaced by another server that leads, too.
func TestAnAttemptStopsWhenItsTransitionIsReplaced(t *testing.T) {
	stopped := make(chan struct{})
	s := &scripted{run: func(ctx context.Context, n int, _ task.Attempt) error {
		<-ctx.Done()
		if n == 1 {
			close(stopped)
		}
		return ctx.Err()
	}}
	inWorld(t, func(w *world) {
		stopped = make(chan struct{})
		turnOff(w)
		w.until(time.Minute, "an attempt", func() bool { return len(s.made()) == 1 })
		w.mu.Lock()
		w.drain()
		replaced := w.stored("A").DeepCopy()
		w.version++
		replaced.ResourceVersion = strconv.Itoa(w.version)
		replaced.Status.Transition.ID = "another"
		err := w.tracker.Update(featuresResource, replaced, "ns")
		w.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-stopped:
		case <-time.After(time.Minute):
			t.Error("it continues")
		}
	}, s.declare())
}

// TestTaskReportsStorable, whatever it is.
func TestTaskReportsStorable(t *testing.T) {
	s := &scripted{run: func(ctx context.Context, _ int, attempt task.Attempt) error {
		attempt.Report(task.Progress{Done: -1, Total: -1, Message: "told", Checkpoint: strings.Repeat("x", v1alpha1.MaxCheckpointLength+1)})
		<-ctx.Done()
		return ctx.Err()
	}}
	inWorld(t, func(w *world) {
		turnOff(w)
		w.until(time.Minute, "it is told", func() bool {
			tasks := w.stored("A").Status.Tasks
			return len(tasks) > 0 && tasks[0].Message == "told"
		})
		if first := w.stored("A").Status.Tasks[0]; first.Checkpoint != "" || first.Done != 0 || first.Total != 0 {
			t.Errorf("stored are a checkpoint of %d characters, done %d of %d", len(first.Checkpoint), first.Done, first.Total)
		}
	}, s.declare())
}
