//go:build linux

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

package disruption

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
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

// catalogue has all of them.
var catalogue = []disruption{
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
	for _, d := range catalogue {
		if d.alone == nil || d.long && !s.wholeForm || !which(d) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			defer w.repair(t)
			d.alone(t, w, alone.row(d.name))
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
