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
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// schedule is everything that happens in one run of the model; the rest follows
// from it.
type schedule struct {
	// Skews are how far the clocks of the servers are off. There is one server
	// for each.
	Skews []time.Duration
	// Users is how many processes use features.
	Users int
	// Begin are the values that all begin with, End those that all have once
	// faults have ended.
	Begin, End values
	// Version is what all servers have once faults have ended.
	Version string
	// Crowded makes each report one of very many.
	Crowded bool
	Steps   []step
}

// step is one thing that happens, after a while. What Who and What mean depends on
// what it is.
type step struct {
	After time.Duration
	Do    op
	Who   int
	What  int
}

func (s step) String() string { return fmt.Sprintf("%s %s %d %d", s.After, s.Do, s.Who, s.What) }

type op int

const (
	toWait op = iota
	toDeliver
	toWork
	toLook
	toCrash
	toFail
	toRestart
	toShutDown
	toRelist
	toRollout
	toRestartUser
	toLoseUser
	toPause
	toAttempt
	toDirty
	toDeleteReport
	toMove
)

func (o op) String() string {
	return [...]string{"wait", "deliver", "work", "look", "crash", "fail", "restart", "shut down", "relist", "roll out",
		"restart user", "lose user", "pause", "attempt", "dirty", "delete report", "move"}[o]
}

// ops has what happens often more than once.
var ops = []op{toWait, toWait, toDeliver, toDeliver, toDeliver, toWork, toWork, toLook, toCrash, toFail, toFail, toRestart, toRestart, toShutDown, toRelist,
	toRollout, toRollout, toRestartUser, toRestartUser, toLoseUser, toPause, toAttempt, toAttempt, toAttempt, toAttempt, toDirty, toDirty, toDeleteReport, toMove}

var (
	pauses = []time.Duration{0, 0, 50 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 12 * time.Second, 45 * time.Second}
	skews  = []time.Duration{0, 0, time.Second, -time.Second, 4 * time.Second, -4 * time.Second, 40 * time.Second, -40 * time.Second}
	steps  = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			After: rapid.SampledFrom(pauses).Draw(t, "after"),
			Do:    rapid.SampledFrom(ops).Draw(t, "do"),
			Who:   rapid.IntRange(0, 3).Draw(t, "who"),
			What:  rapid.IntRange(0, 63).Draw(t, "what"),
		}
	}), 10, 60)
	skewsOfServers = rapid.SliceOfN(rapid.SampledFrom(skews), 2, 4)
)

func drawSchedule(t *rapid.T) schedule {
	both := func(label string) values {
		n := rapid.IntRange(0, 3).Draw(t, label)
		return values{n&1 != 0, n&2 != 0}
	}
	return schedule{
		Skews:   skewsOfServers.Draw(t, "skews"),
		Users:   rapid.IntRange(0, 3).Draw(t, "users"),
		Begin:   both("begin"),
		End:     both("end"),
		Version: rapid.SampledFrom([]string{"1.36", "1.36", "1.35"}).Draw(t, "version"),
		Crowded: rapid.IntRange(0, 3).Draw(t, "crowded") == 3,
		Steps:   steps.Draw(t, "steps"),
	}
}

// runSchedule runs the model. The violation is "" when everything holds.
func runSchedule(ctx context.Context, s schedule, tracing bool) *cluster {
	c := newCluster(ctx, s)
	c.tracing = tracing
	defer c.end()
	c.begin(s)
	for _, step := range s.Steps {
		c.pass(step.After)
		if c.violation != "" {
			return c
		}
		c.tracef("* %s", step)
		c.do(step)
		c.settleJobs()
	}
	c.recover(s.End, s.Version)
	return c
}

// begin starts everything.
func (c *cluster) begin(s schedule) {
	for _, task := range clearing {
		c.left[task] = 2
	}
	for _, r := range c.servers {
		c.serve(r, s.Begin, 0, 0)
	}
	for _, u := range c.users {
		c.come(u, s.Begin, 0)
	}
	c.pass(5 * time.Second)
	if !s.Begin[0] {
		// An adopted feature that is off may have leftovers: no request asked
		// to remove them.
		clear(c.left)
	}
}

// do does one step of the schedule.
func (c *cluster) do(s step) {
	r := c.servers[s.Who%len(c.servers)]
	v := values{s.What&1 != 0, s.What&2 != 0}
	seconds := time.Duration(s.What/4%4) * time.Second
	switch s.Do {
	case toDeliver:
		if r.up {
			c.take(r, kind(s.What%int(kinds)), 1+s.What/4%4, s.What/16%2 == 0)
		}
	case toWork:
		if name := featureNames[s.What%2]; r.works() && r.queue.due(name) {
			c.sync(r, name)
		}
	case toLook:
		if r.works() {
			c.tick(r)
		}
	case toCrash:
		c.crash(r)
	case toFail:
		r.fate, r.fateIn = 1+fate(s.What)%(fates-1), 1+s.What/8%3
	case toRestart:
		c.crash(r)
		r.version = "1.36"
		if s.What/16 == 3 {
			r.version = "1.35"
		}
		c.serve(r, v, seconds, min(seconds, c.lag))
	case toShutDown:
		c.shutDown(r, 2*seconds)
	case toRelist:
		if r.up {
			k := kind(s.What % int(kinds))
			r.informers[k].relist(r.informers[k].newest(c.now - min(seconds, c.lag)))
			c.take(r, k, 0, s.What/16%2 == 0)
		}
	case toRollout:
		c.rollOut(v, "", time.Duration(s.What/4%4)*400*time.Millisecond, s.What/16)
	case toMove:
		c.rollOut(v, []string{"1.35", "1.36"}[s.What/16%2], seconds, 3)
	case toPause:
		name := featureNames[s.What%2]
		if f := c.etcd.feature(name); f != nil {
			c.pause(name, !f.Spec.Paused)
		}
	case toAttempt:
		if len(c.jobs) > 0 {
			c.stepJob(c.jobs[s.Who%len(c.jobs)], s.What%7)
		}
	case toDirty:
		c.dirty(c.processes()[s.What/2%len(c.processes())], clearing[s.What%2])
	default:
		c.doUser(s, v, seconds)
	}
}

// doUser does one step about a user.
func (c *cluster) doUser(s step, v values, seconds time.Duration) {
	if len(c.users) == 0 {
		return
	}
	u := c.users[s.Who%len(c.users)]
	switch s.Do {
	case toRestartUser:
		c.leave(u)
		u.potential = s.What/16 == 3
		c.come(u, v, seconds)
	case toLoseUser:
		c.leave(u)
		switch {
		case s.What%2 == 0:
			// It has crashed: what it stored stays.
		case u.onNode():
			c.etcd.remove(nodeKind, u.instance, c.now)
			c.removeReport(u)
		default:
			c.etcd.remove(leaseKind, "leases/"+u.reportName(), c.now)
			c.removeReport(u)
		}
	case toDeleteReport:
		c.removeReport(u)
		if u.up {
			// Reporters notice and write again.
			u.reportAt = c.now + 5*seconds
		}
	}
}

// rollOut restarts all servers with other values, and another version if one is
// given, one after the other, and then users.
func (c *cluster) rollOut(v values, version string, gap time.Duration, users int) {
	for _, r := range c.servers {
		if !r.up {
			continue
		}
		c.crash(r)
		r.version = cmp.Or(version, r.version)
		c.serve(r, v, gap, 0)
		c.pass(gap)
	}
	for i, u := range c.users {
		if i < users && u.up {
			c.leave(u)
			c.come(u, v, gap)
		}
	}
}

// dirty lets a process that has A on leave something behind.
func (c *cluster) dirty(p *process, task string) {
	if !p.lives() || !p.values[0] || p.potential {
		return
	}
	c.tracef("%s makes work for %s", p.reportName(), task)
	c.left[task]++
	if t := c.truths["A"]; t.waited > 0 {
		t.dirtied = true
	}
}

// checkRepeats runs a schedule twice and compares all that happens.
func checkRepeats(t *rapid.T, s schedule) {
	one, other := runSchedule(t.Context(), s, true), runSchedule(t.Context(), s, true)
	if diff := gocmp.Diff(one.trace, other.trace); diff != "" {
		t.Errorf("the schedule does not repeat (-one +other):\n%s", diff)
	}
}

// schedulesFlag is the environment variable that says how many schedules are run.
const schedulesFlag = "MODEL_SCHEDULES"

// TestModel runs random schedules of several servers: crashes before and after any
// write, watches that lag, reorder and lose, restarts with other values and versions, clocks
// that differ, users that come and go, attempts that fail and block. S1 to S5
// hold at every write, and L1 and L2 once faults have ended. A failure names its
// seed: with -rapid.seed it comes again. MODEL_SCHEDULES says how many there are:
// few without it, for the race detector; thousands run apart from it.
func TestModel(t *testing.T) {
	checks := 100
	if n, err := strconv.Atoi(os.Getenv(schedulesFlag)); err == nil {
		checks = n
	}
	seed := flag.Lookup("rapid.seed").Value.String()
	if seed == "0" {
		seed = strconv.FormatUint(rand.Uint64N(1<<32)+1, 10)
	}
	t.Logf("%d schedules; -rapid.seed=%s repeats them", checks, seed)
	for name, value := range map[string]string{"rapid.seed": seed, "rapid.checks": strconv.Itoa(checks), "rapid.nofailfile": "true"} {
		old := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, old) }()
	}
	counts, run := map[string]int{}, 0
	var failed *schedule
	defer func() {
		if failed != nil {
			short := shortest(t.Context(), *failed)
			t.Logf("%s\nThis schedule does it, as files of %s have it:\n%s", runSchedule(t.Context(), short, false).violation, schedulesDir, short.script())
		}
	}()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSchedule(rt)
		c := runSchedule(t.Context(), s, false)
		run++
		for name, n := range c.counts {
			counts[name] += n
		}
		if run%500 == 1 {
			checkRepeats(rt, s)
		}
		if c.violation != "" {
			again := runSchedule(t.Context(), s, true)
			rt.Logf("%s", strings.Join(again.trace, "\n"))
			if again.violation != c.violation {
				rt.Errorf("the schedule does not repeat: %q and %q", c.violation, again.violation)
			}
			failed = &s
			rt.Fatal(c.violation)
		}
	})
	t.Logf("in %d schedules: %v", run, counts)
}
