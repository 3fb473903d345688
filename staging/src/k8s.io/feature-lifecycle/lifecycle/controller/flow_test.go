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
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// leftovers are what tasks of a test find and remove. They record what was done.
type leftovers struct {
	mu   sync.Mutex
	left map[string]int
	// ran are the tasks that ran to their end, held those that were stopped.
	ran, held []string
	// refuse is why a task cannot go on, by its name.
	refuse map[string]error
	// slow tasks work until they are stopped.
	slow bool
	// first, if set, names the task that is stored as the first.
	first func() string
}

// errNobodys is of clients that do not say whose they are.
var errNobodys = errors.New("a task is not told in which namespace its feature is")

func (l *leftovers) task(name string) task.Task {
	return task.Task{
		Name: name,
		Find: func(_ context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			if clients.Flow == "" {
				return nil, errNobodys
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.left[name] == 0 {
				return nil, nil
			}
			return []v1alpha1.ResourceLeftovers{{Resource: "widgets", Count: int64(l.left[name])}}, nil
		},
		Run: func(ctx context.Context, clients task.Clients, attempt task.Attempt) error {
			if clients.Flow == "" {
				return errNobodys
			}
			if l.first != nil {
				if first := l.first(); first != name {
					return fmt.Errorf("S2, S3: task %s runs while %s is first", name, first)
				}
			}
			attempt.Report(task.Progress{Total: 1})
			if l.slow {
				<-ctx.Done()
				l.mu.Lock()
				defer l.mu.Unlock()
				l.held = append(l.held, name)
				return ctx.Err()
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ran = append(l.ran, name)
			if err := l.refuse[name]; err != nil {
				return err
			}
			l.left[name] = 0
			return nil
		},
	}
}

// declare makes a feature with tasks for each direction.
func (l *leftovers) declare(name string) lifecycle.Feature {
	return lifecycle.Feature{
		Name:      featuregate.Feature(name),
		OnEnable:  lifecycle.Tasks{l.task("Install")},
		OnDisable: lifecycle.Tasks{l.task("ClearA"), l.task("ClearB")},
	}
}

func newLeftovers() *leftovers {
	return &leftovers{left: map[string]int{"ClearA": 1, "ClearB": 1}, refuse: map[string]error{}}
}

// did returns what ran, and forgets it.
func (l *leftovers) did() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ran := l.ran
	l.ran = nil
	return ran
}

func gate(name string, enabled bool) v1alpha1.ReportedFeature {
	return v1alpha1.ReportedFeature{Name: name, Enabled: enabled, Explicit: enabled, Stage: v1alpha1.StageBeta}
}

func asked(f v1alpha1.ReportedFeature) v1alpha1.ReportedFeature {
	f.Queried = true
	return f
}

// TestL3 announces as many features as Kubernetes has, once.
func TestL3AnnouncingWritesEachFeatureOnceAndARestartNothing(t *testing.T) {
	const features = 240
	inWorld(t, func(w *world) {
		var gates []v1alpha1.ReportedFeature
		for i := range features {
			gates = append(gates, gate(fmt.Sprintf("Gate%d", i), false))
		}
		w.report("server", "s1", gates...)
		s1 := w.serve("s1")
		last := fmt.Sprintf("Gate%d", features-1)
		w.until(time.Minute, "announced", func() bool { return w.state(last) == v1alpha1.StateOff })
		w.pass(time.Minute)
		creates := 0
		for _, write := range w.writes {
			if strings.Contains(write, " create ") {
				creates++
			}
		}
		if n := w.written(); creates != features || n != 2*features {
			t.Errorf("%d creates, %d writes; want %d creates and as many states", creates, n, features)
		}
		w.shutDown(s1, time.Second)
		w.pass(time.Second)
		w.serve("s1")
		w.pass(10 * time.Minute)
		if n := w.written(); n != 0 {
			t.Errorf("a restart makes %d writes", n)
		}
	})
}

// TestAnOrderlyRestartOfOneOfTwoServersWritesNothing, whether the server is back
// before its Lease lapses or not.
func TestAnOrderlyRestartOfOneOfTwoServersWritesNothing(t *testing.T) {
	for name, down := range map[string]time.Duration{"briefly": time.Second, "for longer than its Lease": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				for _, id := range []string{"s1", "s2"} {
					w.report("server", id, gate("A", false), gate("B", true))
				}
				w.serve("s1")
				s2 := w.serve("s2")
				w.pass(2 * time.Minute)
				if a, b := w.state("A"), w.state("B"); a != v1alpha1.StateOff || b != v1alpha1.StateOn {
					t.Fatalf("A is %q, B is %q", a, b)
				}
				w.written()
				w.shutDown(s2, 5*time.Second)
				w.pass(down)
				if gone := !w.reported("server.s2"); gone != (down > time.Minute) {
					t.Errorf("its report is gone: %t", gone)
				}
				// A server renews its identity before it reports.
				w.serve("s2")
				w.pass(5 * time.Second)
				w.report("server", "s2", gate("A", false), gate("B", true))
				w.pass(5 * time.Minute)
				if n := len(w.writes); n != 0 {
					t.Errorf("%d writes:\n%s", n, strings.Join(w.writes, "\n"))
				}
			})
		})
	}
}

// TestS4ServingServerHoldsTransitions: a server that was told to end
// serves for a while, and what it configures counts until it has ended.
func TestS4ServingServerHoldsTransitions(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, id := range []string{"s1", "s2"} {
			w.report("server", id, gate("A", true))
		}
		w.serve("s1")
		s2 := w.serve("s2")
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		w.report("server", "s1", gate("A", false))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.shutDown(s2, 70*time.Second)
		}()
		for range 69 {
			w.pass(time.Second)
			if state := w.state("A"); state != v1alpha1.StateOn {
				t.Fatalf("%s while a server serves that has it on", state)
			}
		}
		<-ended
		w.until(tracker.MaxLeaseTimeout+time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	})
}

// TestS4ServerWithDeletedReportHoldsTransitions: in the middle of a rollout the
// report of the server that has the old value is deleted. The server lives, and does what its
// value says, whatever the others agree on.
func TestS4ServerWithDeletedReportHoldsTransitions(t *testing.T) {
	for name, unidentified := range map[string]bool{"it has an identity": false, "it has the Lease of its report alone": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.unidentified = unidentified
				for _, id := range []string{"s1", "s2"} {
					w.report("server", id, gate("A", true))
				}
				w.serve("s1")
				s2 := w.serve("s2")
				w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
				w.report("server", "s1", gate("A", false))
				w.pass(time.Second)
				on := func(during time.Duration, when string) {
					t.Helper()
					for range during / time.Second {
						w.pass(time.Second)
						if state := w.state("A"); state != v1alpha1.StateOn {
							t.Fatalf("%s %s", state, when)
						}
					}
				}
				w.removeReport("server.s2")
				on(2*time.Minute, "while a server lives that has it on, and has not reported again")
				if c := w.condition("A", v1alpha1.ConditionConsistent); c.Reason != v1alpha1.ReasonReportMissing || !strings.Contains(c.Message, "s2 is alive and has not reported") {
					t.Errorf("Consistent is %+v, want that s2 has not reported", c)
				}
				w.report("server", "s2", gate("A", true))
				on(time.Minute, "while a server reports that it has it on")
				w.removeReport("server.s2")
				w.stop(s2)
				w.until(tracker.MaxLeaseTimeout+time.Minute, "off, when that server is gone", func() bool { return w.state("A") == v1alpha1.StateOff })
			})
		})
	}
}

// TestMissingKubeletHoldsUntilItReports, whatever it reports, and no longer.
func TestMissingKubeletHoldsUntilItReports(t *testing.T) {
	for name, tc := range map[string]struct {
		full bool
		ends func(w *world)
	}{
		"it reports":                     {ends: func(w *world) { w.report("kubelet", "n1", asked(gate("B", false))) }},
		"its Node goes":                  {ends: func(w *world) { w.removeNode("n1") }},
		"it reports, with full coverage": {full: true, ends: func(w *world) { w.report("kubelet", "n1", asked(gate("B", false))) }},
		"its Node goes, likewise":        {full: true, ends: func(w *world) { w.removeNode("n1") }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.settings.RequireFullCoverage = tc.full
				w.report("server", "s1", gate("A", true))
				w.serve("s1")
				w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
				w.node("n1", corev1.ConditionTrue)
				w.report("server", "s1", gate("A", false))
				w.pass(20 * time.Second)
				if state := w.state("A"); state != v1alpha1.StateTurningOff {
					t.Fatalf("%s although a kubelet has not reported", state)
				}
				tc.ends(w)
				w.until(30*time.Second, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
			})
		})
	}
}

// TestProcessWithDeletedReportHolds: it renews its Lease and writes the report
// again soon.
func TestProcessWithDeletedReportHolds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", true))
		w.report("comp", "u1", asked(gate("A", true)))
		w.serve("s1")
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		stop := w.lease("comp", "u1")
		defer stop()
		w.removeReport("comp.u1")
		w.report("server", "s1", gate("A", false))
		w.pass(time.Minute)
		if f := w.stored("A"); f.Status.State != v1alpha1.StateTurningOff || !strings.Contains(f.Status.Tasks[0].Message, "comp/u1") {
			t.Fatalf("it does not hold: %+v", f.Status)
		}
		w.report("comp", "u1", asked(gate("A", false)))
		w.until(30*time.Second, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	})
}

// TestLostProcessHoldsUntilLeaseExpires: its report was
// deleted, and it ended without a word.
func TestLostProcessHoldsUntilLeaseExpires(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", true))
		w.report("comp", "u1", asked(gate("A", true)))
		w.serve("s1")
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		stop := w.lease("comp", "u1")
		w.removeReport("comp.u1")
		w.report("server", "s1", gate("A", false))
		w.pass(20 * time.Second)
		if state := w.state("A"); state != v1alpha1.StateTurningOff {
			t.Fatalf("%s although it lives", state)
		}
		stop()
		w.until(tracker.MaxLeaseTimeout+30*time.Second, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	})
}

// TestStaleProcessDoesNotHoldAfterHandover: a server that takes over has not seen the
// process go, and waits no longer than it takes to see that it does not live.
func TestStaleProcessDoesNotHoldAfterHandover(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", true))
		w.leased = true
		w.report("comp", "u1", asked(gate("A", true)))
		stop := w.lease("comp", "u1")
		w.node("n1", corev1.ConditionTrue)
		w.report(kubelet, "n1", asked(gate("A", true)))
		first := w.serve("s1")
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		stop()
		away := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Now()},
		}}}
		w.put(nodesResource, away, "")
		w.pass(18 * time.Minute)
		w.stop(first)
		w.removeReport("server.s1")
		w.forgetIdentity("s1")
		w.report("server", "s2", gate("A", false))
		w.serve("s2")
		w.until(tracker.MaxLeaseTimeout+30*time.Second, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	})
}

// TestReportsDeletedDespiteMissingServerReport: it runs no server flow.
func TestReportsDeletedDespiteMissingServerReport(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		for i := range 20 {
			w.report("kubelet", fmt.Sprintf("n%d", i), gate("A", false))
		}
		w.serve("s1")
		silent := &serverProcess{id: "s2"}
		for range (tracker.ReportRetention + time.Minute) / (10 * time.Second) {
			w.renew(silent)
			w.pass(10 * time.Second)
		}
		for i := range 20 {
			if name := fmt.Sprintf("kubelet.n%d", i); w.reported(name) {
				t.Errorf("%s is left", name)
			}
		}
	})
}

// TestMissingKubeletShown: it may be starting, or rebooting.
func TestMissingKubeletShown(t *testing.T) {
	for status, after := range map[corev1.ConditionStatus]time.Duration{
		corev1.ConditionTrue:    reportingDelay,
		corev1.ConditionUnknown: transition.DefaultSettings().Grace,
	} {
		t.Run("Ready is "+string(status), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.report("server", "s1", gate("A", false))
				w.serve("s1")
				w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
				w.node("n1", status)
				w.pass(after - 10*time.Second)
				if c := w.condition("A", v1alpha1.ConditionUsesMatch); c.Status != metav1.ConditionTrue {
					t.Errorf("too early: %+v", c)
				}
				w.pass(20 * time.Second)
				if c := w.condition("A", v1alpha1.ConditionUsesMatch); c.Reason != v1alpha1.ReasonUsersUnknown || !strings.Contains(c.Message, "kubelet/n1") {
					t.Errorf("it is not shown: %+v", c)
				}
			})
		})
	}
}

// TestLeftoversSearchedAfterDisagreement: a server that has a feature on stores
// what turning it off had removed. People learn that at once, not half an hour later,
// and may have it removed.
func TestLeftoversSearchedAfterDisagreement(t *testing.T) {
	l := newLeftovers()
	l.left = map[string]int{}
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		w.report("server", "s2", gate("A", false))
		w.serve("s1")
		w.serve("s2")
		w.until(time.Minute, "clean", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
		})
		w.report("server", "s2", gate("A", true))
		w.until(time.Minute, "found inconsistent", func() bool {
			return w.condition("A", v1alpha1.ConditionConsistent).Status == metav1.ConditionFalse
		})
		l.mu.Lock()
		l.left["ClearB"] = 3
		l.mu.Unlock()
		w.report("server", "s2", gate("A", false))
		w.until(time.Minute, "dangling", func() bool {
			return w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonLeftovers
		})
		if state, ran := w.state("A"), l.did(); state != v1alpha1.StateOff || len(ran) > 0 {
			t.Errorf("the state is %s and these tasks ran: %v", state, ran)
		}
	}, l.declare("A"))
}

// TestReportsDeleted: when no other client does it.
func TestReportsDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		w.node("n1", corev1.ConditionTrue)
		w.report("kubelet", "n1", gate("A", false))
		w.report("kubelet", "n2", gate("A", false))
		w.serve("s1")
		w.pass(tracker.ReportRetention - time.Minute)
		if !w.reported("kubelet.n2") {
			t.Error("a report went early")
		}
		w.pass(2 * time.Minute)
		if w.reported("kubelet.n2") || !w.reported("kubelet.n1") || !w.reported("server.s1") {
			t.Errorf("n1 %t, n2 %t, server %t", w.reported("kubelet.n1"), w.reported("kubelet.n2"), w.reported("server.s1"))
		}
	})
}

// TestServerWithoutReportNamed: it is live, and what it configures
// is unknown.
func TestServerWithoutReportNamed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		w.serve("s1")
		w.pass(time.Minute)
		w.serve("s2")
		w.pass(startingDelay - 2*time.Second)
		if c := w.condition("A", v1alpha1.ConditionConsistent); c.Status != metav1.ConditionTrue {
			t.Errorf("a server that starts is complained of: %+v", c)
		}
		w.pass(15 * time.Second)
		if c := w.condition("A", v1alpha1.ConditionConsistent); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "s2") {
			t.Errorf("the silent server is not named: %+v", c)
		}
		w.report("server", "s2", gate("A", false))
		w.pass(10 * time.Second)
		if c := w.condition("A", v1alpha1.ConditionConsistent); c.Status != metav1.ConditionTrue {
			t.Errorf("it has reported: %+v", c)
		}
	})
}

// turnedOff is a world of two servers in which A was on and has just been
// configured to be off.
func turnedOff(w *world, l *leftovers, before func(s1, s2 *serverProcess)) {
	w.t.Helper()
	for _, id := range []string{"s1", "s2"} {
		w.report("server", id, gate("A", true))
	}
	w.report("comp", "u1", asked(gate("A", true)))
	l.first = w.firstTask
	s1, s2 := w.serve("s1"), w.serve("s2")
	w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
	w.pass(time.Minute)
	w.written()
	if before != nil {
		before(s1, s2)
	}
	for _, id := range []string{"s1", "s2"} {
		w.report("server", id, gate("A", false))
	}
	w.report("comp", "u1", asked(gate("A", false)))
}

// TestDisagreementStopsARunningTask: a server with the feature on may write again
// what a task has just removed.
func TestDisagreementStopsARunningTask(t *testing.T) {
	l := newLeftovers()
	l.slow = true
	inWorld(t, func(w *world) {
		turnedOff(w, l, nil)
		w.until(time.Minute, "a task runs", func() bool {
			f := w.stored("A")
			return len(f.Status.Tasks) == 2 && f.Status.Tasks[0].Attempts > 0
		})
		w.report("server", "s1", gate("A", true))
		w.pass(5 * time.Second)
		l.mu.Lock()
		held := slices.Clone(l.held)
		l.slow = false
		l.mu.Unlock()
		if diff := cmp.Diff([]string{"ClearA"}, held); diff != "" {
			t.Errorf("unexpected tasks were stopped (-want +got):\n%s", diff)
		}
		if c := w.condition("A", v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonWaitingForAgreement {
			t.Errorf("it says %+v", c)
		}
		w.report("server", "s1", gate("A", false))
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		if diff := cmp.Diff([]string{"ClearA", "ClearB"}, l.did()); diff != "" {
			t.Errorf("unexpected tasks (-want +got):\n%s", diff)
		}
	}, l.declare("A"))
}

// TestBlockedTaskWritesOnceInTenMinutes and continues when it can.
func TestBlockedTaskWritesOnceInTenMinutes(t *testing.T) {
	l := newLeftovers()
	l.refuse["ClearA"] = &task.BlockedError{Message: "one widget refuses"}
	inWorld(t, func(w *world) {
		turnedOff(w, l, nil)
		w.pass(time.Hour)
		if c := w.condition("A", v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonBlocked || !strings.Contains(c.Message, "one widget refuses") {
			t.Errorf("it says %+v", c)
		}
		w.written()
		w.pass(3 * time.Hour)
		if n := w.written(); n < 3*5 || n > 3*6 {
			t.Errorf("%d writes in three hours, want one for each attempt", n)
		}
		l.mu.Lock()
		delete(l.refuse, "ClearA")
		l.mu.Unlock()
		w.until(11*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, l.declare("A"))
}

// TestLeftoversAreCountedAndCleanedOnRequest: an adopted feature that is off has
// left something behind.
func TestLeftoversAreCountedAndCleanedOnRequest(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		s1 := w.serve("s1")
		w.until(time.Minute, "leftovers", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonLeftovers
		})
		if ran := l.did(); len(ran) != 0 {
			t.Errorf("%v ran without being asked for", ran)
		}
		// Its leader counts users meanwhile.
		read := w.stored("A").DeepCopy()
		w.report("other", "o1", asked(gate("A", false)))
		w.until(time.Minute, "counted", func() bool { return w.stored("A").ResourceVersion != read.ResourceVersion })
		if _, err := s1.controller.Clean(t.Context(), read); err != nil {
			t.Fatal(err)
		}
		if state := w.state("A"); state != v1alpha1.StateTurningOff {
			t.Fatalf("the state is %s", state)
		}
		w.until(time.Minute, "clean", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
		})
		if diff := cmp.Diff([]string{"ClearA", "ClearB"}, l.did()); diff != "" {
			t.Errorf("unexpected tasks (-want +got):\n%s", diff)
		}
		if _, err := s1.controller.Clean(t.Context(), w.stored("A")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing is left") {
			t.Errorf("cleaning what is clean: %v", err)
		}
		// A client writes the field although the gate is off, and knows it before it is found.
		l.mu.Lock()
		l.left["ClearB"] = 1
		l.mu.Unlock()
		if _, err := s1.controller.Clean(t.Context(), w.stored("A")); err != nil {
			t.Errorf("cleaning what was not found yet: %v", err)
		}
		begun := w.stored("A")
		if _, err := s1.controller.Clean(t.Context(), begun); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "TurningOff") {
			t.Errorf("cleaning while that is under way: %v", err)
		}
		if id := w.stored("A").Status.Transition.ID; id != begun.Status.Transition.ID {
			t.Errorf("the transition was %s and is %s", begun.Status.Transition.ID, id)
		}
		w.until(time.Minute, "clean again", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
		})
		if diff := cmp.Diff([]string{"ClearA", "ClearB"}, l.did()); diff != "" {
			t.Errorf("unexpected tasks (-want +got):\n%s", diff)
		}
		l.mu.Lock()
		l.left["ClearB"] = 3
		l.mu.Unlock()
		w.until(findPeriod+time.Minute, "found", func() bool { return w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonLeftovers })
	}, l.declare("A"))
}

// TestSettlePeriodCountsWatchedTime: the user contradicts while no server
// looks.
func TestSettlePeriodCountsWatchedTime(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(w *world) {
		turnedOff(w, l, nil)
		w.until(time.Minute, "settling", func() bool { return w.state("A") == v1alpha1.StateTurningOff })
		w.pass(time.Second)
		for _, s := range []*serverProcess{w.servers["s1"], w.servers["s2"]} {
			w.stop(s)
		}
		w.pass(time.Hour)
		begun := time.Now()
		w.serve("s1")
		w.serve("s2")
		synctest.Wait()
		w.until(2*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		if took := time.Since(begun); took < w.servers["s1"].controller.config.Settings.Settle {
			t.Errorf("off %s after the next search", took)
		}
	}, l.declare("A"))
}
