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
	"fmt"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// modelSettings are shorter where the defaults take minutes: so more happens in a
// schedule.
var modelSettings = transition.Settings{
	Settings:          tracker.Settings{Grace: 40 * time.Second, ReportPeriod: 20 * time.Second},
	Settle:            10 * time.Second,
	MinBackoff:        time.Second,
	MaxBackoff:        30 * time.Second,
	MaxBlockedBackoff: 40 * time.Second,
	KeepUnknownMinors: 3,
}

const (
	// handlerLag is how much later than the cache handlers hear of something.
	handlerLag = 200 * time.Millisecond
	// slack covers what happens at the same time.
	slack = 10 * time.Millisecond
)

// cluster is a world in which nothing happens by itself: several servers with the
// real controller, the API that they write to, and the processes that use
// features. One goroutine runs it, so that a schedule always ends alike.
type cluster struct {
	ctx     context.Context
	now     time.Duration
	etcd    *etcd
	servers []*replica
	users   []*process
	// left are the leftovers of A, by the task that clears them.
	left map[string]int
	jobs []*job
	// begun gets every job that begins, told a word for whatever the runner of
	// a server has recorded.
	begun chan *job
	told  chan struct{}
	// lag is how old what a server has taken of etcd's log may be, patience how
	// long it may leave a feature in its queue.
	lag, patience time.Duration
	// crowded makes each report one of very many.
	crowded bool
	// ailing is what both were before healing, at healedAt: what happened before
	// may have been heard of as late as that.
	ailing   struct{ lag, patience time.Duration }
	healedAt time.Duration
	healthy  bool

	truths map[string]*truth
	// succeeded are the attempts that did their task.
	succeeded map[success]bool
	// failedWrite is when a write failed last.
	failedWrite  time.Duration
	statusWrites int
	violation    string
	tracing      bool
	trace        []string
	counts       map[string]int
}

// success names an attempt that did its task.
type success struct {
	server           string
	life             int
	transition, task string
}

func newCluster(ctx context.Context, s schedule) *cluster {
	c := &cluster{
		ctx: ctx, etcd: newEtcd(), left: map[string]int{}, begun: make(chan *job), told: make(chan struct{}),
		crowded: s.Crowded,
		lag:     3 * time.Second, patience: 300 * time.Millisecond, failedWrite: -never,
		truths: map[string]*truth{}, succeeded: map[success]bool{}, counts: map[string]int{},
	}
	for _, name := range featureNames {
		c.truths[name] = &truth{goalSince: -never, pausedSince: never}
	}
	for i, skew := range s.Skews {
		id := fmt.Sprintf("s%d", i)
		c.servers = append(c.servers, &replica{
			process: process{component: "server", instance: id, version: "1.36"},
			id:      id, c: c, skew: skew,
		})
	}
	for i := range s.Users {
		u := &process{component: kubelet, instance: fmt.Sprintf("n%d", i), version: "1.36"}
		if i == 1 {
			u = &process{component: "comp", instance: "p", version: "1.36"}
		}
		c.users = append(c.users, u)
	}
	for _, p := range c.processes() {
		p.reportAt, p.renewAt, p.stopAt = never, never, never
	}
	return c
}

// violate records that an invariant does not hold. The first counts.
func (c *cluster) violate(format string, args ...any) {
	if c.violation == "" {
		c.violation = fmt.Sprintf("at %s: %s", c.now, fmt.Sprintf(format, args...))
		c.tracef("violated: %s", c.violation)
	}
}

func (c *cluster) tracef(format string, args ...any) {
	if c.tracing {
		c.trace = append(c.trace, fmt.Sprintf("%10s  %s", c.now, fmt.Sprintf(format, args...)))
	}
}

// pass lets time go by. What has to happen by then happens.
func (c *cluster) pass(d time.Duration) {
	end := c.now + d
	for turns := 0; c.violation == ""; turns++ {
		next := c.nextForced()
		if next > end {
			break
		}
		c.now = max(c.now, next)
		c.force()
		if turns > 100000 {
			c.violate("something is done again and again")
		}
	}
	c.now = end
}

// nextForced is when something has to happen that the schedule may only bring
// forward.
func (c *cluster) nextForced() time.Duration {
	next := never
	for _, r := range c.servers {
		next = min(next, r.reportAt, r.renewAt, r.stopAt)
		if !r.up {
			continue
		}
		if r.works() {
			_, at := r.queue.first()
			next = min(next, r.nextTick, at+c.patience)
		}
		for k, i := range r.informers {
			next = min(next, i.due(c.lag), r.tellAt[k])
		}
	}
	for _, u := range c.users {
		next = min(next, u.reportAt, u.renewAt)
	}
	for _, j := range c.jobs {
		next = min(next, j.canceled+c.lag)
		if c.healthy && j.next > 0 {
			next = min(next, j.next)
		}
	}
	return next
}

// force does what has to be done by now.
func (c *cluster) force() {
	for _, p := range c.processes() {
		if p.reportAt <= c.now {
			c.storeReport(p)
		}
		if p.renewAt <= c.now {
			c.renew(p)
		}
	}
	for _, r := range c.servers {
		if r.stopAt <= c.now {
			c.crash(r)
		}
		if r.up {
			c.forceServer(r)
		}
	}
	c.settleJobs()
	if c.healthy {
		c.healthyJobs()
		c.settleJobs()
	}
}

func (c *cluster) forceServer(r *replica) {
	for k := range r.informers {
		i := r.informers[k]
		if i.due(c.lag) <= c.now {
			c.take(r, kind(k), i.newest(c.now-c.lag)-i.next, true)
		} else if r.tellAt[k] <= c.now {
			c.take(r, kind(k), 0, true)
		}
	}
	if r.works() && r.nextTick <= c.now {
		c.tick(r)
	}
	if r.works() {
		// The controller looks at the moment; here it is looked when something happens, so at
		// some of those moments.
		names, _ := r.controller.queue.batches.quiet(r.controller.config.Clock.Now())
		r.controller.queue.addNow(names...)
	}
	for r.works() {
		name, at := r.queue.first()
		if at+c.patience > c.now {
			return
		}
		c.sync(r, name)
	}
}

// take lets a server take changes from etcd's log. Its handlers hear of them now
// or a little later.
func (c *cluster) take(r *replica, k kind, n int, tell bool) {
	i := r.informers[k]
	i.take(n)
	if tell {
		i.tell()
		r.tellAt[k] = never
	} else if len(i.pending) > 0 && r.tellAt[k] == never {
		r.tellAt[k] = c.now + handlerLag
	}
}

// pause sets or clears spec.paused, as an administrator does.
func (c *cluster) pause(name string, paused bool) {
	f := c.etcd.feature(name)
	if f == nil || f.Spec.Paused == paused {
		return
	}
	c.tracef("%s paused: %t", name, paused)
	f = f.DeepCopy()
	f.Spec.Paused = paused
	// As the registry does for each change of spec.
	f.Generation++
	c.etcd.put(featureKind, f, c.now)
	c.truths[name].pausedSince = never
	if paused {
		c.truths[name].pausedSince = c.now
	}
}

// state is the stored state of a feature.
func (c *cluster) state(name string) v1alpha1.FeatureState {
	if f := c.etcd.feature(name); f != nil {
		return f.Status.State
	}
	return ""
}

// heal ends all faults: every server and every user that there is runs with the
// values wanted, servers with the version, and everything is prompt.
func (c *cluster) heal(wanted values, version string) {
	c.tracef("heal: %v at %s", wanted, version)
	c.ailing.lag, c.ailing.patience, c.healedAt = c.lag, c.patience, c.now
	c.lag, c.patience, c.healthy = 50*time.Millisecond, 0, true
	for _, name := range featureNames {
		c.pause(name, false)
	}
	for _, r := range c.servers {
		r.fateIn = 0
		if !r.up || r.ending || r.values != wanted || r.version != version || !r.reported {
			c.crash(r)
			r.version = version
			c.serve(r, wanted, time.Second, 0)
		}
	}
	for _, u := range c.users {
		gone := c.etcd.objects[nodeKind][u.instance] == nil && c.etcd.objects[leaseKind]["leases/"+u.reportName()] == nil
		if !u.up && u.stored == nil && gone {
			continue
		}
		c.leave(u)
		u.potential = false
		c.come(u, wanted, 500*time.Millisecond)
	}
}

// finished says whether every feature is in the state wanted, stored in the form
// of the version, with nothing left to do.
func (c *cluster) finished(wanted values, version string) bool {
	for f, name := range featureNames {
		state := v1alpha1.StateOff
		if wanted[f] {
			state = v1alpha1.StateOn
		}
		if c.state(name) != state {
			return false
		}
		if status := c.etcd.feature(name).Status; len(status.Tasks) > 0 || status.Version != version || len(status.StoredVersions) > 0 {
			return false
		}
	}
	return c.published()
}

// soon is how long after faults ended everything is at rest (L2), eventually how long a
// transition may take that ends at all (L1).
const soon, eventually = time.Minute + 4*time.Second, time.Hour

// judgeLate tells what comes late from what never comes.
func (c *cluster) judgeLate(took time.Duration, wanted values, version string) {
	late := fmt.Sprintf("not at rest %s after faults ended: %s, %s, wanted %v", took, c.describe("A"), c.describe("B"), wanted)
	for end := c.now + eventually; c.violation == "" && c.now < end && !c.finished(wanted, version); {
		c.pass(10 * time.Second)
	}
	if c.finished(wanted, version) {
		c.violate("L2: %s", late)
	}
	c.violate("L1: %s, nor in an hour", late)
}

// recover checks L1 and L2: once faults have ended everything comes to rest soon,
// and then nothing is written.
func (c *cluster) recover(wanted values, version string) {
	c.heal(wanted, version)
	healed := c.now
	for c.violation == "" && !c.finished(wanted, version) {
		c.pass(time.Second)
		if took := c.now - healed; took > soon {
			c.judgeLate(took, wanted, version)
		}
	}
	c.counts["seconds to heal"] = int((c.now - healed) / time.Second)
	c.pass(time.Minute)
	writes := c.statusWrites
	c.pass(90 * time.Second)
	if n := c.statusWrites - writes; n != 0 && c.violation == "" {
		c.violate("%d writes at rest", n)
	}
	if !c.finished(wanted, version) {
		c.violate("L1: it did not last: %s, %s, wanted %v", c.describe("A"), c.describe("B"), wanted)
	}
}

func (c *cluster) describe(name string) string {
	if f := c.etcd.feature(name); f != nil {
		return described{f}.String()
	}
	return name + " is not there"
}

// end lets every goroutine end.
func (c *cluster) end() {
	for _, r := range c.servers {
		c.crash(r)
	}
}
