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
	"sync"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// reportBatch folds reports that arrive together into one look at a feature.
	reportBatch = 500 * time.Millisecond
	// longestBatch is for how long reports are folded when very many arrive. What
	// is stored is written for everybody who watches features, and is still right
	// within 5 s of the last report.
	longestBatch = 4 * time.Second
	// What is written of a dynamic feature is sent to each of its users, who are
	// about to report. Sending must not take what that needs, so that the time grows
	// by this with each of them, until the last has reported.
	batchOfUser = time.Millisecond
	// crowdBatch is the longest time even then.
	crowdBatch = 10 * time.Second
	// manyReports in one batch make the next one twice as long.
	manyReports = 20
)

// batches are the features that are to be looked at a little later, together with
// what changes meanwhile. When thousands of processes start or follow a value, each
// report changes the same features: then they are looked at less often. It is safe
// for concurrent use.
type batches struct {
	// many is manyReports.
	many int

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
}

func newBatches() *batches { return &batches{many: manyReports, of: map[string]*batch{}} }

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
	first, known.waiting = !known.waiting, true
	return known.period, first
}

// taken says that a feature is about to be looked at. Its reports are folded for
// longest at most.
func (b *batches) taken(name string, longest time.Duration, now time.Time) {
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
		known.period = min(2*known.period, longest)
	} else {
		known.period = max(known.period/2, reportBatch)
	}
	if known.changes, known.since = 0, now; known.period == reportBatch {
		delete(b.of, name)
	}
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
		return !known.waiting && now.Sub(known.since) > 2*max(known.period, longestBatch)
	})
}

// longestBatch is for how long reports of a feature are folded at most.
func (c *Controller) longestBatch(name string) time.Duration {
	feature, err := c.lister.Get(name)
	if err != nil || feature.Status.Control != v1alpha1.ControlDynamic {
		return longestBatch
	}
	users := int64(0)
	for _, use := range feature.Status.Uses {
		users += int64(use.Count)
	}
	return min(max(longestBatch, time.Duration(users)*batchOfUser), crowdBatch)
}

// lookAgain looks at a feature when something is due, and not while very many
// reports arrive, of which each may be due at another time.
func (c *Controller) lookAgain(name string, after time.Duration) {
	c.queue.AddAfter(name, max(after, c.batches.least(name)))
}

// enqueueNow looks at features at once.
func (c *Controller) enqueueNow(names []string) {
	for _, name := range names {
		c.queue.Add(name)
	}
}

// enqueue looks at features a little later. Thousands of reports may come before
// that, each with the same features.
func (c *Controller) enqueue(names []string) {
	if len(names) == 0 {
		return
	}
	now := c.config.Clock.Now()
	for _, name := range names {
		after, first := c.batches.add(name, now)
		switch {
		case after > reportBatch && c.lastReported(name):
			// What is counted now will stay. An earlier time wins in the queue.
			c.queue.AddAfter(name, reportBatch)
		case first:
			c.queue.AddAfter(name, after)
		}
	}
}

// lastReported is true when nobody reports a value any more that the stored uses
// have users of: the last one has just followed another value, or gone. There is
// nobody to wait for then, whoever reported before. The stored uses say so only once.
func (c *Controller) lastReported(name string) bool {
	feature, err := c.lister.Get(name)
	if err != nil {
		return false
	}
	counted := map[bool]bool{}
	for _, use := range feature.Status.Uses {
		if use.Enabled != nil && use.Count > 0 {
			counted[*use.Enabled] = true
		}
	}
	for value := range counted {
		if !c.reports.asked(name, value) {
			return true
		}
	}
	return false
}
