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

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/feature-lifecycle/internal/stagger"
)

const (
	// reportBatch folds reports that arrive together into one look at a feature.
	reportBatch = 500 * time.Millisecond
	// longestBatch is for how long reports are folded when very many arrive. What
	// is stored is written for everybody who watches features, and what is stored of a
	// dynamic one is sent to each of its users, who are about to report: that must not
	// take what their reports need.
	longestBatch = 10 * time.Second
	// quietAfter is when reports that are folded for longer are counted all the same,
	// because no other came: that was the last one, and uses are right soon after it.
	// Between reports of thousands there is less time, also while a server sends each of
	// them what it has counted.
	quietAfter = 2 * time.Second
	// counts is how often users are counted while so many report that it would be for
	// less than longestBatch each time.
	counts = 4
	// manyReports in one batch make the next one twice as long. Processes that start
	// have some 50 features, each of which would be written as often: it must not take
	// a fast server to find that they are many, since those writes make it slow.
	manyReports = 5
)

// batches are the features that are to be looked at a little later, together with
// what changes meanwhile. When thousands of processes start or follow a value, each
// report changes the same features: then they are looked at less often. It is safe
// for concurrent use.
type batches struct {
	// many is manyReports.
	many int
	// putOff is sent to when a feature is put off for longer than quietAfter.
	putOff chan struct{}

	mu sync.Mutex
	of map[string]*batch
}

// batch is what is known of one feature. It goes when it says nothing.
type batch struct {
	// waiting is true while the feature is put off: it is in the queue, where an
	// earlier time of it wins, until a worker takes it.
	waiting bool
	// period is for how long its reports are folded. It is judged once in a period,
	// by the changes since.
	period  time.Duration
	changes int
	since   time.Time
	// last is when the last of them came, or when the first of those that are expected
	// comes at the earliest.
	last time.Time
}

// heard says when a change came, or is to come. What was said of later stays.
func (b *batch) heard(at time.Time) {
	if b.last.Before(at) {
		b.last = at
	}
}

func newBatches() *batches {
	return &batches{many: manyReports, putOff: make(chan struct{}, 1), of: map[string]*batch{}}
}

// add folds a change of a feature. It returns after which time the feature is to be
// looked at, false when it is put off already.
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
	first, known.waiting = !known.waiting, true
	if first && known.period > quietAfter {
		select {
		case b.putOff <- struct{}{}:
		default:
		}
	}
	return known.period, first
}

// expect says that so many users of a feature are about to report, in turn: they are
// folded from the first one on for as long as if they had been coming for a while. What
// is counted meanwhile would be sent to all of them, while they still wait for the value.
// Until the first of them has his turn, that none has reported says nothing.
func (b *batches) expect(name string, users int, now time.Time) {
	period := min(stagger.MaxDelay(users)/counts, longestBatch)
	if period <= reportBatch {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		known = &batch{}
		b.of[name] = known
	}
	if known.period < period {
		known.period, known.changes, known.since = period, 0, now
	}
	known.heard(now.Add(stagger.Delay(users, 0)))
}

// taken says that a feature is about to be looked at.
func (b *batches) taken(name string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		return
	}
	known.waiting = false
	if passed := now.Sub(known.since); passed >= 0 && passed < known.period {
		// It is looked at for another reason as well.
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

// quiet returns the features that are put off still although no report has come for
// quietAfter, sorted. They are to be looked at now. Next is after which time others may
// be, 0 when none is put off for so long.
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

// waits is true while a feature is put off: it is looked at in at most its period.
func (b *batches) waits(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	return known != nil && known.waiting
}

// least is how long a feature is left alone while very many reports arrive,
// whatever there is to look at.
func (b *batches) least(name string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.of[name]; known != nil && known.period > reportBatch {
		return known.period
	}
	return 0
}

// forget drops what is known of features whose reports have not changed for a while:
// the next ones may be few.
func (b *batches) forget(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.of, func(_ string, known *batch) bool {
		return !known.waiting && now.Sub(known.since) > 2*longestBatch
	})
}
