//go:build linux

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

package disruption

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// disruption is one thing that happens to clusters.
type disruption struct {
	name string
	// alone does it while nothing else happens, and checks what has to hold; nil for what
	// happens among others only.
	alone func(*testing.T, *world, *row)
	// long is true for what needs most of a minute to be worth anything: the short form
	// leaves it out.
	long bool
	// among does it once while all others happen, with a pause between least and most before;
	// nil for what happens alone only. Its context lasts longer than the run, so that what
	// was begun is ended.
	among       func(w *world, ctx context.Context, random *rand.Rand) error
	least, most time.Duration
}

// leaderKilled begins the names of those that have a cluster of their own.
const leaderKilled = "the leader is killed (kill -9) while it clears"

// catalog has all of them.
var catalog = []disruption{
	{
		name:  leaderKilled + "; started again",
		alone: strike{whole: 18, short: 3, part: 0.9, again: true, begin: killLeader, lasts: atOnce}.do,
	}, {
		// Another server waits most of a minute for signs of life.
		name:  leaderKilled + "; it stays dead until another has finished",
		alone: strike{whole: 2, part: 0.9, begin: killLeader}.do, long: true,
	}, {
		name:  "servers restart one by one with another value",
		alone: rollingRestart,
		among: (*world).flipByRestart, least: 5 * time.Second, most: 30 * time.Second,
	}, {
		name:  "etcd is killed (kill -9) and started again",
		alone: strike{whole: 3, short: 1, part: 0.9, begin: restartEtcd, lasts: atOnce, blind: true}.do,
		among: (*world).killEtcd, least: 30 * time.Second, most: 90 * time.Second,
	}, {
		// It is cut off for less than it takes others to notice. What it had sent arrives later.
		name:  "the leader is cut off from etcd for some seconds",
		alone: strike{whole: 2, short: 1, part: 0.5, begin: cutLeader, lasts: seconds, while: "the server that clears is cut off"}.do,
	}, {
		// When it ends, what the first had sent arrives, and it believes to lead for a moment.
		name:  "the leader is cut off from etcd until another has finished",
		alone: strike{whole: 1, part: 0.9, begin: cutLeader, after: "the cut ended", still: 10 * time.Second}.do, long: true,
	}, {
		name:  "a server has another version",
		alone: mixedVersions,
	}, {
		name:  "a transition is paused",
		alone: paused,
	}, {
		// Servers stop to believe that others live within the time of the whole form.
		name:  "etcd has no space left",
		alone: strike{whole: 1, short: 1, part: 0.5, begin: fillEtcd, lasts: spaceless, while: "nothing could be written"}.do,
	}, {
		// So do a virtual machine that migrates and a disk that hangs. Another server takes
		// over; later this one believes to lead and that no time has passed.
		name:  "the leader freezes (SIGSTOP) and continues later",
		alone: strike{whole: 1, part: 0.9, begin: freezeLeader, lasts: aMinute, after: "a server believed to lead", still: 5 * time.Second}.do, long: true,
	}, {
		name:  "a feature is known to no server any more",
		alone: unknown,
	},
	{name: "values change through the API", among: (*world).flipThroughAPI, least: time.Second, most: 8 * time.Second},
	{name: "components crash", among: (*world).crash, least: 5 * time.Second, most: 30 * time.Second},
	{name: "components freeze", among: (*world).freeze, least: 5 * time.Second, most: 30 * time.Second},
	{name: "etcd forgets the past", among: (*world).compact, least: 2 * time.Second, most: 20 * time.Second},
	{name: "etcd is defragmented", among: (*world).defragment, least: 15 * time.Second, most: 60 * time.Second},
	{name: "nodes come and go", among: (*world).churnNodes, least: time.Second, most: 8 * time.Second},
	{name: "reporters come and go", among: (*world).churnReporters, least: 500 * time.Millisecond, most: 4 * time.Second},
	{name: "objects that use features come and go", among: (*world).churnObjects, least: 50 * time.Millisecond, most: 500 * time.Millisecond},
}

// load is what clients do, whatever is under way and also while the cluster recovers.
var load = []disruption{
	{name: "reader", among: (*world).read, least: 20 * time.Millisecond, most: 400 * time.Millisecond},
	{name: "watcher", among: (*world).watch, least: 100 * time.Millisecond, most: time.Second},
	{name: "writer", among: (*world).write, least: 50 * time.Millisecond, most: 500 * time.Millisecond},
}

// TestDisruptionsOneAfterAnother happen to one cluster.
func TestDisruptionsOneAfterAnother(t *testing.T) {
	t.Parallel()
	s := readSettings(t)
	oneAfterAnother(t, s, form(s, 1000, 300), func(d disruption) bool { return !strings.HasPrefix(d.name, leaderKilled) })
}

// TestTheLeaderIsKilled kills the server that clears the field at random moments of the
// clearing, once or twice in each transition. Mostly it is started again at once, as a
// supervisor does; sometimes it stays dead until another server has finished.
func TestTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	s := readSettings(t)
	oneAfterAnother(t, s, form(s, 2000, 500), func(d disruption) bool { return strings.HasPrefix(d.name, leaderKilled) })
}

// oneAfterAnother does disruptions to one cluster.
func oneAfterAnother(t *testing.T, s settings, objects int, which func(disruption) bool) {
	t.Helper()
	w := newBare(t, s, servers, objects)
	w.said("%d objects; the same moments again: SOAK_SEED=%d", objects, s.seed)
	for _, d := range catalog {
		if d.alone == nil || d.long && !s.wholeForm || !which(d) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			defer w.repair(t)
			d.alone(t, w, newRow(d.name))
			if err := w.whole(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLeaderKilledMidTransitionConverges is one such kill, of one of two servers, with few
// objects: the state has to become what the servers are configured with, however long it takes.
func TestLeaderKilledMidTransitionConverges(t *testing.T) {
	w := newBare(t, readSettings(t), 2, 500)
	strike{whole: 1, short: 1, part: 0.1, begin: killLeader, lasts: atOnce}.do(t, w, &row{name: t.Name()})
	if err := w.whole(t.Context()); err != nil {
		t.Error(err)
	}
}

// clients is the number of clients of each kind.
const clients = 3

// TestDisruptionsAtOnce is rest, all disruptions at once, rest, and nothing is left.
func TestDisruptionsAtOnce(t *testing.T) {
	s := readSettings(t)
	w := newWhole(t, s)
	w.said("%s of disruptions; the same choices again: SOAK_SEED=%d", s.duration, s.seed)
	defer func() { fmt.Fprintf(t.Output(), "\n%s\n", w.table()) }()
	defer w.keepEvidence()
	w.record()
	defer w.judgeHistory()
	before := w.rest("before the faults", nil)
	w.populate()
	w.memory.follow()
	w.run()
	w.memory.end()
	if t.Failed() {
		return
	}
	for _, what := range idle(s.duration, w.happened) {
		t.Errorf("this happened too rarely: %s", what)
	}
	if says := often(w.happened(rests), w.happened(late)); says != "" {
		t.Error(says)
	}
	w.depopulate()
	if after := w.rest("after the faults", before); after != nil {
		w.memory.judge(before, after)
	}
}

// run lets all drivers drive for as long as the run lasts, and pauses them from
// time to time.
func (w *world) run() {
	ctx, stop := context.WithTimeout(w.t.Context(), w.duration)
	defer stop()
	var running sync.WaitGroup
	for _, d := range catalog {
		if d.among != nil {
			running.Go(func() { w.drive(ctx, stop, d, &w.quiet) })
		}
	}
	for i := range clients {
		for _, d := range load {
			d.name += fmt.Sprint(" ", i)
			running.Go(func() { w.drive(ctx, stop, d, nil) })
		}
	}
	// A process that stays has a sixth of the run to fill its caches before its memory is
	// measured: those of past events, which every kube-apiserver keeps, fill by the number
	// of events.
	stay := time.AfterFunc(w.duration/3, func() {
		// A flip that is under way may still restart the server.
		w.turn.Lock()
		defer w.turn.Unlock()
		w.spares.Store(true)
	})
	defer stay.Stop()
	half := time.AfterFunc(w.duration/2, w.memory.begin)
	defer half.Stop()
	// Every five minutes, and twice in a short run.
	for pause := min(5*time.Minute, w.duration/3); ctx.Err() == nil; {
		hold(ctx, pause)
		if ctx.Err() == nil && !w.converge() {
			stop()
		}
	}
	running.Wait()
	if !w.t.Failed() {
		w.converge()
	}
}

// drive does one thing again and again, but not while quiet is held, nil for what happens
// always. Something that it cannot do ends the run.
func (w *world) drive(ctx context.Context, stop func(), d disruption, quiet *sync.RWMutex) {
	random := w.random(d.name)
	once := func() error {
		if quiet != nil {
			quiet.RLock()
			defer quiet.RUnlock()
			if ctx.Err() != nil {
				return nil
			}
		}
		limited, cancel := context.WithTimeout(w.t.Context(), 2*framework.Patience)
		defer cancel()
		return d.among(w, limited, random)
	}
	for {
		hold(ctx, between(random, d.least, d.most))
		if ctx.Err() != nil {
			return
		}
		if err := once(); err != nil {
			w.t.Errorf("%s: %v", d.name, err)
			stop()
			return
		}
	}
}
