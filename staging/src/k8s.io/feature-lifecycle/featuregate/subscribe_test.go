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

package featuregate

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestSubscribersNotifiedOfEachChangeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Wrap(upstream(t))
		var notified []bool
		var calls, others atomic.Int32
		hold := make(chan struct{})
		unsubscribe := g.OnChange(func(s Snapshot) {
			if calls.Add(1) != 1 {
				t.Error("two calls at a time")
			}
			<-hold
			notified = append(notified, s.Enabled("Alpha"))
			calls.Add(-1)
		}, "Alpha", "Locked")
		g.OnChange(func(Snapshot) { others.Add(1) }, "Beta")
		all := atomic.Int32{}
		g.OnChange(func(Snapshot) { all.Add(1) })
		flip := func(value bool) { g.SetRemote(remotes(map[string]bool{"Alpha*": value})) }
		flip(true)
		flip(true)
		flip(false)
		flip(true)
		synctest.Wait()
		if len(notified) != 0 {
			t.Fatal("the first call does not wait")
		}
		close(hold)
		synctest.Wait()
		if diff := cmp.Diff([]bool{true, false, true}, notified); diff != "" {
			t.Errorf("unexpected changes (-want +got):\n%s", diff)
		}
		unsubscribe()
		flip(false)
		unsubscribe()
		synctest.Wait()
		if len(notified) != 3 || others.Load() != 0 || all.Load() != 4 {
			t.Errorf("notified %v, others %d, all %d", notified, others.Load(), all.Load())
		}
	})
}

// TestASubscriberMayUseTheGate: it may even cause the next change, and end its
// subscription.
func TestASubscriberMayUseTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := Wrap(upstream(t))
		var unsubscribe func()
		var calls atomic.Int32
		unsubscribe = g.OnChange(func(Snapshot) {
			if !g.Enabled("Alpha") {
				t.Error("the snapshot was not replaced yet")
			}
			calls.Add(1)
			unsubscribe()
			g.SetRemote(nil)
		})
		g.SetRemote(remotes(map[string]bool{"Alpha*": true}))
		synctest.Wait()
		if calls.Load() != 1 || g.Enabled("Alpha") {
			t.Errorf("%d calls, Alpha is %t", calls.Load(), g.Enabled("Alpha"))
		}
	})
}

func TestOneSnapshotGivesOneAnswer(t *testing.T) {
	g := Wrap(upstream(t))
	s := g.Snapshot()
	g.SetRemote(remotes(map[string]bool{"Alpha*": true}))
	if s.Enabled("Alpha") || !g.Snapshot().Enabled("Alpha") || s.DeepCopy().Enabled("Alpha") {
		t.Error("a snapshot changed")
	}
	if !observation(t, g, "Alpha").Queried || observation(t, g, "Beta").Queried {
		t.Error("a query of the snapshot is not recorded as one of the gate")
	}
	if got, want := panics(func() { s.Enabled("Unknown") }), panics(func() { upstream(t).Enabled("Unknown") }); got != want || got == "" {
		t.Errorf("an unknown feature: %q, want %q", got, want)
	}
	if len(s.KnownFeatures()) == 0 || len(s.Dependencies()) == 0 || s.Validate() != nil {
		t.Error("the snapshot knows less than the gate")
	}
	if n := testing.AllocsPerRun(100, func() { g.Snapshot().Enabled("Alpha") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestTwoValuesChangeTogether is for the race detector, too: a reader never sees
// one of two values without the other.
func TestTwoValuesChangeTogether(t *testing.T) {
	g := Wrap(upstream(t))
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if s := g.Snapshot(); s.Enabled("Alpha") != s.Enabled("Deprecated") {
				t.Error("one value without the other")
				return
			}
		}
	})
	for i := range 100 {
		g.SetRemote(remotes(map[string]bool{"Alpha*": i%2 == 0, "Deprecated*": i%2 == 0}))
	}
	close(stop)
	group.Wait()
}
