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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// The tests in this file are about mistakes that systems like this one have made:
// each has a test of its own, beside the model that finds any of them by chance.

// inCluster runs a script in the world of the model, in which A is on in so many
// servers. Its invariants hold at every write.
func inCluster(t *testing.T, servers int, script func(c *cluster)) {
	t.Helper()
	s := schedule{Skews: make([]time.Duration, servers), Begin: values{true, false}}
	c := newCluster(t.Context(), s)
	defer c.end()
	c.tracing, c.lag, c.patience = true, 50*time.Millisecond, 0
	c.begin(s)
	c.until("A is on", func() bool { return c.state("A") == v1alpha1.StateOn })
	script(c)
	if c.violation != "" {
		t.Error(c.violation)
	}
	if t.Failed() {
		t.Log(strings.Join(c.trace, "\n"))
	}
}

// until lets time go by until something is so, for a minute at most.
func (c *cluster) until(what string, condition func() bool) {
	for end := c.now + time.Minute; !condition() && c.violation == ""; c.pass(100 * time.Millisecond) {
		if c.now > end {
			c.violate("not within a minute: %s", what)
		}
	}
}

// untilRuns waits for an attempt at a task.
func (c *cluster) untilRuns(name string) *job {
	var found *job
	c.until(name+" runs", func() bool {
		for _, j := range c.jobs {
			if j.task == name {
				found = j
			}
		}
		return found != nil
	})
	return found
}

// finish lets an attempt do all it has to. There is none if the script has failed.
func (c *cluster) finish(j *job) {
	if j == nil {
		return
	}
	for !c.advance(j) {
	}
	c.endJob(j, nil)
	c.settleJobs()
}

func TestTheFinalStateIsNotWrittenBeforeTheLastStepIsDone(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		c.rollOut(values{}, "", time.Second, 0)
		for _, name := range clearing {
			if j := c.untilRuns(name); j != nil {
				c.pass(10 * time.Minute)
				if state := c.state("A"); state != v1alpha1.StateTurningOff {
					t.Fatalf("A is %s while %s runs", state, name)
				}
				c.finish(j)
			}
		}
		c.until("A is off", func() bool { return c.state("A") == v1alpha1.StateOff })
	})
}

func TestARetrySkipsNoStep(t *testing.T) {
	for name, err := range map[string]error{"it failed": errors.New("no"), "its server is gone": nil} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 2, func(c *cluster) {
				c.rollOut(values{}, "", time.Second, 0)
				for range 3 {
					j := c.untilRuns("ClearA")
					if j == nil {
						t.Fatal("no attempt")
					}
					c.advance(j)
					if err != nil {
						c.endJob(j, err)
						c.settleJobs()
						continue
					}
					c.crash(j.server)
					c.serve(j.server, values{}, 0, 0)
					c.settleJobs()
				}
				c.left["ClearA"]++
				c.until("another attempt", func() bool { return len(c.jobs) > 0 })
				if len(c.jobs) != 1 || c.jobs[0].task != "ClearA" {
					t.Fatalf("after a step that was not done %s runs", c.jobs[0].task)
				}
				c.finish(c.jobs[0])
				c.finish(c.untilRuns("ClearB"))
				c.until("A is off", func() bool { return c.state("A") == v1alpha1.StateOff })
			})
		})
	}
}

func TestARollingRestartDoesNotFlap(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		for i, r := range c.servers {
			if state := c.state("A"); state != v1alpha1.StateOn {
				t.Errorf("A is %s while %d servers have it on", state, len(c.servers)-i)
			}
			c.shutDown(r, 10*time.Second)
			c.pass(time.Minute)
			c.serve(r, values{}, 2*time.Second, 0)
			c.pass(time.Minute)
		}
		c.finish(c.untilRuns("ClearA"))
		c.finish(c.untilRuns("ClearB"))
		c.until("A is off", func() bool { return c.state("A") == v1alpha1.StateOff })
		if n := c.counts["transitions begun"]; n != 1 {
			t.Errorf("%d transitions began", n)
		}
	})
}

// TestRevertedRestartBeginsNothing: one server came up with another value,
// and was restarted with the old one.
func TestRevertedRestartBeginsNothing(t *testing.T) {
	inCluster(t, 3, func(c *cluster) {
		c.crash(c.servers[1])
		c.serve(c.servers[1], values{}, time.Second, 0)
		c.pass(10 * time.Minute)
		c.crash(c.servers[1])
		c.serve(c.servers[1], values{true, false}, time.Second, 0)
		c.pass(10 * time.Minute)
		if n, state := c.counts["transitions begun"], c.state("A"); n != 0 || state != v1alpha1.StateOn {
			t.Errorf("%d transitions began, A is %s", n, state)
		}
	})
}

// TestACrashAtAnyWriteLosesNoStep (S3) crashes the server that leads the feature at
// each of its writes in turn, once before and once after the write arrived. The
// other takes over within a minute of noticing, and no task is skipped: there is no step
// after the final state that a crash could lose, since that is written last.
func TestACrashAtAnyWriteLosesNoStep(t *testing.T) {
	for _, lost := range []bool{true, false} {
		for at := 1; ; at++ {
			crashed := false
			l := newLeftovers()
			inWorld(t, func(w *world) {
				var leading *serverProcess
				turnedOff(w, l, func(s1, s2 *serverProcess) {
					leading = s1
					if s2.controller.leads("A", s2.controller.tracker.Servers("A", time.Now())) {
						leading = s2
					}
					w.mu.Lock()
					leading.crashAt, leading.lost = leading.wrote+at, lost
					w.mu.Unlock()
				})
				name := fmt.Sprintf("crash at write %d, lost %t", at, lost)
				took := w.until(tracker.MaxLeaseTimeout+time.Minute, name, func() bool {
					return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
				})
				w.pass(10 * time.Second)
				w.mu.Lock()
				crashed = leading.crashed
				w.mu.Unlock()
				// A task may run again, since how it ended is unknown.
				ran := slices.Compact(l.did())
				if diff := cmp.Diff([]string{"ClearA", "ClearB"}, ran); diff != "" {
					t.Errorf("%s: after %s unexpected tasks (-want +got):\n%s", name, took, diff)
				}
			}, l.declare("A"))
			if !crashed {
				if at < 5 {
					t.Errorf("the transition took %d writes only", at-1)
				}
				break
			}
		}
	}
}

// alternating is a client whose writes of statuses take two durations in turn. When two
// write at once, one is faster the first time and the other the next, whether or
// not its conflict delays it: no two writes end at the same time.
type alternating struct {
	versioned.Interface
	first  bool
	writes *atomic.Int32
}

// IsWatchListSemanticsUnSupported: the fake behind it does not support them.
func (alternating) IsWatchListSemanticsUnSupported() bool { return true }

type alternatingGroup struct {
	clients.FeaturesV1alpha1Interface
	client alternating
}

type alternatingFeatures struct {
	clients.FeatureInterface
	client alternating
}

func (c alternating) FeaturesV1alpha1() clients.FeaturesV1alpha1Interface {
	return alternatingGroup{c.Interface.FeaturesV1alpha1(), c}
}

func (c alternatingGroup) Features(namespace string) clients.FeatureInterface {
	return alternatingFeatures{c.FeaturesV1alpha1Interface.Features(namespace), c.client}
}

func (c alternatingFeatures) UpdateStatus(ctx context.Context, feature *v1alpha1.Feature, options metav1.UpdateOptions) (*v1alpha1.Feature, error) {
	turns := [2]time.Duration{3 * time.Millisecond, time.Millisecond}
	if c.client.first {
		turns = [2]time.Duration{2 * time.Millisecond, 5 * time.Millisecond}
	}
	takes := turns[(c.client.writes.Add(1)-1)%2]
	<-time.After(takes)
	return c.FeatureInterface.UpdateStatus(ctx, feature, options)
}

// TestTwoCoordinatorsDoNoHarm: two processes with one identity, as after a
// pause of the machine. Every write carries what was read.
func TestTwoCoordinatorsDoNoHarm(t *testing.T) {
	l := newLeftovers()
	inWorld(t, func(w *world) {
		first := true
		w.client = func(inner versioned.Interface) versioned.Interface {
			defer func() { first = false }()
			return alternating{inner, first, new(atomic.Int32)}
		}
		w.report("server", "s1", gate("A", true))
		w.serve("s1")
		w.mu.Lock()
		w.servers["twin"] = w.servers["s1"]
		w.servers["twin"].label = "twin"
		w.mu.Unlock()
		w.serve("s1")
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		w.report("server", "s1", gate("A", false))
		w.until(time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
		// Both may have run each, but the second began after the first was done.
		ran := l.did()
		if a, b := slices.Index(ran, "ClearA"), slices.Index(ran, "ClearB"); a < 0 || b < a {
			t.Errorf("ran %v", ran)
		}
		w.mu.Lock()
		var wrote [2]bool
		for _, write := range w.writes {
			wrote[0] = wrote[0] || strings.HasPrefix(write, "s1 ")
			wrote[1] = wrote[1] || strings.HasPrefix(write, "twin ")
		}
		conflicts := w.conflicts
		w.mu.Unlock()
		if wrote != [2]bool{true, true} || conflicts == 0 {
			t.Errorf("both wrote: %v; %d conflicts", wrote, conflicts)
		}
		w.pass(time.Minute)
		w.written()
		w.pass(time.Hour)
		if n := len(w.writes); n != 0 {
			t.Errorf("at rest they write:\n%s", strings.Join(w.writes, "\n"))
		}
	}, l.declare("A"))
}

// TestReportWithUnobservedLeaseKept: a server had ended in order, its Lease
// is deleted, and its report not. It starts again and is told to end at once. Another server
// hears of the report, and not of the new Lease.
func TestReportWithUnobservedLeaseKept(t *testing.T) {
	inCluster(t, 2, func(c *cluster) {
		s0, s1 := c.servers[0], c.servers[1]
		lease := func() bool { return c.etcd.objects[leaseKind]["leases/server.s0"] != nil }
		report := func() bool { return c.etcd.report("server.s0") != nil }
		c.shutDown(s0, 0)
		c.until("s0 has ended", func() bool { return !s0.up })
		s1.fate, s1.fateIn = lost, 2
		c.until("its Lease is deleted", func() bool { return !lease() })
		if !report() {
			t.Fatal("the report was to stay")
		}
		c.pass(time.Second)
		c.lag = 4 * time.Second
		c.serve(s0, values{true, false}, 0, 0)
		c.until("s0 has reported", func() bool { return s0.reported })
		c.shutDown(s0, 10*time.Second)
		c.take(s1, reportKind, 10, true)
		c.tick(s1)
		if !report() {
			t.Error("the report of s0 is deleted while it serves")
		}
		c.until("s0 has ended again", func() bool { return !s0.up })
		c.until("its report is deleted", func() bool { return !report() })
	})
}
