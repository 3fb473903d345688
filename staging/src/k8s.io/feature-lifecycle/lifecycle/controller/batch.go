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
	"sync"
	"time"
)

const (
	// reportBatch folds reports that arrive together into one look at a feature.
	reportBatch = 500 * time.Millisecond
	// longestBatch is for how long reports are folded when very many arrive. What
	// is stored is written for everybody who watches features, and is still right
	// within 5 s of the last report.
	longestBatch = 4 * time.Second
	// manyReports in one batch make the next one twice as long.
	manyReports = 100
)

// batches are the features that are to be looked at a little later, together with
// what changes meanwhile. When thousands of processes start or follow a value, each
// report changes the same features: then they are looked at less often. It is safe
// for concurrent use.
type batches struct {
	mu sync.Mutex
	of map[string]*batch
}

// batch is what is known of one feature. It goes when it says nothing.
type batch struct {
	// period is for how long its reports are folded.
	period time.Duration
	// changes are how many were folded since it was put off, 0 when it is not put
	// off: it is in the queue, where an earlier time of it wins, until a worker
	// takes it.
	changes int
}

func newBatches() *batches { return &batches{of: map[string]*batch{}} }

// add folds a change of a feature. It returns after which time the feature is to be
// looked at, false when it is put off already.
func (b *batches) add(name string) (after time.Duration, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		known = &batch{period: reportBatch}
		b.of[name] = known
	}
	known.changes++
	return known.period, known.changes == 1
}

// taken says that a feature is about to be looked at.
func (b *batches) taken(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.of[name]
	if known == nil {
		return
	}
	if known.changes > manyReports {
		known.period = min(2*known.period, longestBatch)
	} else {
		known.period = max(known.period/2, reportBatch)
	}
	if known.changes = 0; known.period == reportBatch {
		delete(b.of, name)
	}
}

// enqueue looks at features a little later. Thousands of reports may come before
// that, each with the same features.
func (c *Controller) enqueue(names []string) {
	for _, name := range names {
		if after, first := c.batches.add(name); first {
			c.queue.AddAfter(name, after)
		}
	}
}
