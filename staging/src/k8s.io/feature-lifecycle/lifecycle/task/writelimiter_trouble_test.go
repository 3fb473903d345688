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

package task

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fails returns the outcome of a slow server that does nothing.
func fails(int) outcome {
	<-time.After(5 * time.Millisecond)
	return outcome{failed: true}
}

// TestPaceLeavesAServerInTroubleAlone: as few writes as there may be, and more again
// when it has recovered.
func TestPaceLeavesAServerInTroubleAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, server := newWriteLimiter(), newBusy(100, constant(5*time.Millisecond))
		check := func(what string, want int) {
			t.Helper()
			if p.allowed != want {
				t.Errorf("%s: %d writes are allowed at once, want %d", what, p.allowed, want)
			}
		}
		rate(p, 1, fails)
		check("it fails from the start", fewWriters)
		rate(p, 4, server.write)
		check("it recovers", clearWorkers)
		rate(p, 1, fails)
		check("all fail", fewWriters)
		rate(p, 4, server.write)
		check("it recovers again", clearWorkers)
		var writes atomic.Int64
		rate(p, 2, func(i int) outcome {
			if writes.Add(1)%8 == 0 {
				return fails(i)
			}
			return server.write(i)
		})
		check("it refuses one of eight", fewWriters)
	})
}

// TestPaceCountsWritesThatTakeLong: those that end when many others have, too.
func TestPaceCountsWritesThatTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		p, quick := newWriteLimiter(), newBusy(100, constant(5*ms))
		rate(p, 4, quick.write)
		if p.allowed != clearWorkers {
			t.Fatalf("%d writes are allowed at once of a server that is not busy", p.allowed)
		}
		// From now on it is, and one of ten has to wait for long.
		var writes, allowed atomic.Int64
		slow := newBusy(100, constant(time.Second))
		write := func(i int) outcome {
			p.mu.Lock()
			allowed.Add(int64(p.allowed))
			p.mu.Unlock()
			if writes.Add(1)%10 == 0 {
				return slow.write(i)
			}
			return quick.write(i)
		}
		rate(p, 2, write)
		writes.Store(0)
		allowed.Store(0)
		rate(p, 4, write)
		if mean := float64(allowed.Load()) / float64(writes.Load()); mean > 13 {
			t.Errorf("%.1f writes are allowed at once", mean)
		}
	})
}

// TestPaceFindsOutHowLongWritesTakeAlone, also if some take longer than many others: it
// waits for those.
func TestPaceFindsOutHowLongWritesTakeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWriteLimiter()
		var begun atomic.Int64
		p.each(40, func(int) outcome {
			took := 5 * time.Millisecond
			if begun.Add(1) == 3 {
				took = time.Second
			}
			<-time.After(took)
			return outcome{took: took}
		})
		if want := (time.Second + 16*5*time.Millisecond) / 17; p.alone < want*9/10 || p.alone > want*11/10 {
			t.Errorf("a write takes %s alone, want about %s", p.alone, want)
		}
	})
}

// TestPaceNeedsEnoughWrites: most of what there is needs none.
func TestPaceNeedsEnoughWrites(t *testing.T) {
	p := newWriteLimiter()
	rate(p, 1, func(int) outcome { return outcome{took: 5} })
	const before = 4
	p.allowed, p.round = before, sum{}
	for i := range roundSize - 1 {
		// Each seems to be quicker than alone.
		for _, o := range []outcome{{took: 1}, {}, {}, {}, {}, {}, {}, {}} {
			p.end(p.begin(), o)
		}
		if p.allowed > before {
			t.Fatalf("after %d writes %d are allowed at once, before %d", i+1, p.allowed, before)
		}
	}
}

// TestPaceWhereNothingIsWritten: calls that write nothing do not wait for each other,
// and what comes after them is found out as ever.
func TestPaceWhereNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, server := newWriteLimiter(), newBusy(4, constant(5*time.Millisecond))
		nothing := func(int) outcome {
			<-time.After(time.Millisecond)
			return outcome{}
		}
		rate(p, 1, nothing)
		if got := rate(p, 4, nothing); p.allowed != clearWorkers || got < 0.9*clearWorkers*1000 {
			t.Errorf("where nothing is written, %d calls are allowed at once, %.0f a second", p.allowed, got)
		}
		rate(p, 4, server.write)
		if p.alone == 0 || p.alone > 6*time.Millisecond || p.allowed < 4+leastWaiting || p.allowed > 6+mostWaiting {
			t.Errorf("a write takes %s alone, and %d are allowed at once", p.alone, p.allowed)
		}
	})
}

// TestServerTroubleClassified of a server, and what is not.
func TestServerTroubleClassified(t *testing.T) {
	widget := schema.GroupResource{Resource: "widgets"}
	for _, test := range []struct {
		err    error
		failed bool
	}{
		{apierrors.NewInternalError(errors.New("out of memory")), true},
		{apierrors.NewTooManyRequests("later", 1), true},
		{apierrors.NewTimeoutError("too slow", 1), true},
		{errors.New("connection refused"), true},
		{apierrors.NewForbidden(widget, "w", errors.New("no")), false},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{fmt.Errorf("clearing: %w", apierrors.NewNotFound(widget, "w")), false},
		{apierrors.NewConflict(widget, "w", errors.New("changed")), false},
		{errWrittenByOthers, false},
	} {
		if got := outcomeOf(time.Second, test.err); got != (outcome{failed: test.failed}) {
			t.Errorf("%v: %+v, want trouble: %t", test.err, got, test.failed)
		}
	}
	if got := outcomeOf(time.Second, nil); got != (outcome{took: time.Second}) {
		t.Errorf("of a write: %+v", got)
	}
}
