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
	"context"
	"sync"
	"time"
)

const (
	// mostEdits is the maximum number of concurrent writes to storage. etcd commits what
	// waits together, so that more writes at once cost it little.
	mostEdits = 64
	// firstEdits is the number with which a walk begins.
	firstEdits = 16
	// moreEdits is by how much the number grows after a probe that was not slow.
	moreEdits = 4
	// editsPerProbe is the number of writes after which one probe follows. One of
	// probesPerBase waits until no write is under way: storage may have become slower or
	// faster since the walk began.
	editsPerProbe, probesPerBase = 64, 32
	// baseProbes is how many probes in a row measure how long one takes without writes. The
	// shortest counts.
	baseProbes = 3
	// slowFactor and slowBy are how much longer than without these writes a probe takes at
	// least if it is slow. Below slowBy other clients notice nothing.
	slowFactor, slowBy = 3, 5 * time.Millisecond
)

// editLimiter limits the number of concurrent writes of one walk to storage by what other
// clients feel: from time to time it probes how long a write takes to which nothing is
// changed. While that takes much longer than without these writes there are fewer of
// them. It is safe for concurrent use.
type editLimiter struct {
	probe func(context.Context) (time.Duration, error)

	mu      sync.Mutex
	changed sync.Cond
	// allowed are the writes that may be under way, underWay those that are.
	allowed, underWay int
	// base is how long a probe takes while no write is under way, 0 before the first. since
	// are the writes that began after the last probe, and probes those since the base was
	// measured.
	base          time.Duration
	since, probes int
}

func newEditLimiter(probe func(context.Context) (time.Duration, error)) *editLimiter {
	l := &editLimiter{probe: probe, allowed: firstEdits, since: editsPerProbe}
	l.changed.L = &l.mu
	return l
}

// each calls do for 0, 1 and so on, for as many at once as are allowed, until n or until
// the context ends. It returns the number of calls that began, all of which have ended.
func (l *editLimiter) each(ctx context.Context, n int, do func(i int) error) (begun int) {
	var writers sync.WaitGroup
	defer writers.Wait()
	for i := range n {
		// At least one, or walks that are too slow would never end.
		if i > 0 && ctx.Err() != nil {
			return i
		}
		switch l.begin() {
		case probeAlone:
			l.measureBase(ctx)
		case probeBeside:
			writers.Go(func() { l.measure(ctx) })
		}
		writers.Go(func() { l.end(do(i)) })
	}
	return n
}

// probing is whether to probe when a write begins.
type probing int

const (
	probeNot probing = iota
	// probeAlone is while no write is under way, and probeBeside while others are.
	probeAlone
	probeBeside
)

// begin waits until one more may be under way, and until no other is if that is to be probed.
func (l *editLimiter) begin() probing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.underWay >= l.allowed {
		l.changed.Wait()
	}
	if l.since++; l.since < editsPerProbe {
		l.underWay++
		return probeNot
	}
	l.since = 0
	l.probes++
	kind := probeBeside
	if l.base == 0 || l.probes >= probesPerBase {
		l.probes = 0
		for l.underWay > 0 {
			l.changed.Wait()
		}
		kind = probeAlone
	}
	l.underWay++
	return kind
}

// measureBase measures how long a probe takes without writes.
func (l *editLimiter) measureBase(ctx context.Context) {
	shortest := time.Duration(0)
	for range baseProbes {
		took, err := l.probe(ctx)
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.allowLocked(l.allowed / 2)
			return
		}
		if shortest == 0 || took < shortest {
			shortest = took
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base = shortest
}

// measure probes beside writes and sets how many may be under way.
func (l *editLimiter) measure(ctx context.Context) {
	took, err := l.probe(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.allowLocked(l.allowed / 2)
	case took > max(slowFactor*l.base, l.base+slowBy):
		l.allowLocked(l.allowed * 2 / 3)
	default:
		l.allowLocked(l.allowed + moreEdits)
	}
}

// end records the result of a call.
func (l *editLimiter) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay--
	if outcomeOf(0, err).failed {
		l.allowLocked(l.allowed / 2)
	}
	l.changed.Broadcast()
}

func (l *editLimiter) allowLocked(allowed int) {
	l.allowed = min(max(allowed, 1), mostEdits)
	l.changed.Broadcast()
}
