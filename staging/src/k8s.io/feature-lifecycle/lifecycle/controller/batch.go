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
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/feature-lifecycle/internal/stagger"
)

const (
	// reportBatch folds reports that arrive together into one reconciliation of a feature.
	reportBatch = 500 * time.Millisecond
	// longestBatch is how long reports are folded when very many arrive. Users are counted
	// for each write, which is sent to all that watch Features: that must not use up what
	// the reports need that are to come.
	longestBatch = 10 * time.Second
	// quietAfter is when reports with a longer batch are counted anyway, because no other
	// arrived: that was the last one, and uses are right soon after it. Reports of
	// thousands arrive faster, also while a server sends each of them what it has counted.
	// Where it is known how many are to come, the last one is counted at once.
	quietAfter = 2 * time.Second
	// counts is how often users are counted while so many report that each batch would be
	// shorter than longestBatch.
	counts = 4
	// manyReports in one batch make the next one twice as long. Processes that start
	// have some 50 features, each of which would be written as often: it must not take
	// a fast server to find that they are many, since those writes make it slow.
	manyReports = 5
)

// batches holds the features whose reconciliation is delayed, together with further
// changes. When thousands of processes start or follow a value, each report changes the
// same features: these are then reconciled less often. It is safe for concurrent use.
type batches struct {
	// many is manyReports.
	many int
	// putOff is sent to when a feature is put off for longer than quietAfter.
	putOff chan struct{}

	mu sync.Mutex
	of map[string]*batch
}

// batch is what is known of one feature. It is dropped when it holds nothing.
type batch struct {
	// waiting is true while the feature is put off: it is in the queue, where an
	// earlier time of it wins, until a worker takes it.
	waiting bool
	// period is how long its reports are folded. It is set once in a period, by the
	// changes since.
	period  time.Duration
	changes int
	since   time.Time
	// last is when the last of them arrived, or when the first of those that are expected
	// arrives at the earliest.
	last time.Time
	// awaited is how many changes have yet to arrive of those that are expected, 0 when
	// none are.
	awaited int
}

// heard records when a change arrived, or is to arrive. A later time stays.
func (b *batch) heard(at time.Time) {
	if b.last.Before(at) {
		b.last = at
	}
}

func newBatches() *batches {
	return &batches{many: manyReports, putOff: make(chan struct{}, 1), of: map[string]*batch{}}
}

// add folds a change of a feature. It returns the delay after which the feature is to
// be reconciled, false when it is delayed already. The delay is 0 for the last change that
// is expected. A process that reports twice takes the place of another one, whose report
// is counted like those of few.
func (b *batches) add(name string, now time.Time) (after time.Duration, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		known = &batch{period: reportBatch, since: now}
		b.of[name] = known
	}
	known.changes++
	known.heard(now)
	if known.awaited > 0 {
		if known.awaited--; known.awaited == 0 {
			// All have come that were expected. Others are folded as usual.
			known.period, known.changes, known.since = reportBatch, 0, now
			known.waiting = false
			return 0, true
		}
	}
	first, known.waiting = !known.waiting, true
	if first && known.period > quietAfter {
		select {
		case b.putOff <- struct{}{}:
		default:
		}
	}
	return known.period, first
}

// expect records that so many users of a feature are about to report, in turn. Few are
// counted down alone. Many are folded from the first one on as if they had been reporting for a while. Counts
// meanwhile would be sent to those of them that watch Features, while they still wait for
// the value. Before the turn of the first of them, the absence of reports has no meaning.
// The caller adds the feature next.
func (b *batches) expect(name string, users int, now time.Time) {
	if users <= 0 {
		return
	}
	earliest, latest := stagger.Confirming(users)
	period := min(latest/counts, longestBatch)
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		known = &batch{period: reportBatch, since: now}
		b.of[name] = known
	}
	if known.period < period {
		known.period, known.changes, known.since = period, 0, now
	}
	known.heard(now.Add(earliest))
	// The caller's is a change, too.
	known.awaited = users + 1
}

// taken records that a feature is about to be reconciled.
func (b *batches) taken(name string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		return
	}
	known.waiting = false
	if passed := now.Sub(known.since); passed >= 0 && passed < known.period {
		// It is reconciled for another reason as well.
		return
	}
	if known.changes > b.many {
		known.period = min(2*known.period, longestBatch)
	} else {
		known.period = max(known.period/2, reportBatch)
	}
	if known.changes, known.since = 0, now; known.period == reportBatch {
		delete(b.of, name)
	}
}

// quiet returns the features that are still delayed although no report has arrived for
// quietAfter, sorted. They are to be reconciled now. Next is after which time others
// may be, 0 when none is delayed for so long.
func (b *batches) quiet(now time.Time) (names []string, next time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, known := range b.of {
		if !known.waiting || known.period <= quietAfter {
			continue
		}
		switch left := known.last.Add(quietAfter).Sub(now); {
		case left <= 0:
			known.waiting = false
			names = append(names, name)
		case next == 0 || left < next:
			next = left
		}
	}
	slices.Sort(names)
	return names, next
}

// waits returns true while a feature is delayed: it is reconciled in at most its
// period.
func (b *batches) waits(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	return known != nil && known.waiting
}

// least returns the minimum interval between reconciliations of a feature while very
// many reports arrive.
func (b *batches) least(name string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.of[name]; known != nil && known.period > reportBatch {
		return known.period
	}
	return 0
}

// forget drops the batches of features whose reports have not changed for a while: the
// next ones may be few.
func (b *batches) forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.of, func(_ string, known *batch) bool {
		return !known.waiting && now.Sub(known.since) > 2*longestBatch
	})
}
