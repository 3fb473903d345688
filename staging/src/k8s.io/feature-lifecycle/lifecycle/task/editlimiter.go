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
	// editsPerProbe is the number of writes after which one probe follows.
	editsPerProbe = 64
	// slowFactor and slowBy are how much longer than without these writes a probe takes at
	// least if it is slow. Below slowBy other clients notice nothing.
	slowFactor, slowBy = 3, 5 * time.Millisecond
	// baseGrowth is the part by which the shortest probe that is remembered grows with each
	// other one: storage may be slower than when the walk began.
	baseGrowth = 0.02
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
	// base is about the shortest probe, 0 before the first. since are the writes that began
	// after the last one.
	base  time.Duration
	since int
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
		case probeFirst:
			l.measure(ctx)
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
	// probeFirst is before the first write, and probeBeside while others are under way.
	probeFirst
	probeBeside
)

// begin waits until one more may be under way.
func (l *editLimiter) begin() probing {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.underWay >= l.allowed {
		l.changed.Wait()
	}
	l.underWay++
	if l.since++; l.since < editsPerProbe {
		return probeNot
	}
	l.since = 0
	if l.base == 0 {
		return probeFirst
	}
	return probeBeside
}

// measure probes and sets how many may be under way. The first probe is made before any
// write.
func (l *editLimiter) measure(ctx context.Context) {
	took, err := l.probe(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		l.allowLocked(l.allowed / 2)
	case l.base == 0:
		l.base = took
	case took > max(slowFactor*l.base, l.base+slowBy):
		l.allowLocked(l.allowed * 2 / 3)
		l.base += time.Duration(baseGrowth * float64(l.base))
	default:
		l.base = min(took, l.base+time.Duration(baseGrowth*float64(l.base)))
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
