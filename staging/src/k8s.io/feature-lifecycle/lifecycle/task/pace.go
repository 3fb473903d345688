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

package task

import (
	"sync"
	"time"
)

const (
	// clearWorkers is how many writes are under way at most at once.
	clearWorkers = 16
	// fewWriters are so few writes at once that they hardly wait for each other.
	fewWriters = 2
	// leastWaiting and mostWaiting bound how many writes of one walk should wait at
	// the server for others. Fewer, and it may be idle; more, and they only hold up
	// everybody else: beyond some number of writes at once a server does not get
	// faster.
	leastWaiting, mostWaiting = 2, 4
	// aloneWrites are how many writes tell how long one takes that does not wait, and
	// aloneEvery how many others follow: what others do and the size of objects
	// change.
	aloneWrites, aloneEvery = 16, 4000
	// roundSize is how many writes at least tell how long they take at some pace.
	roundSize = 8
)

// pace is how many writes of one walk are under way at once. It finds the number
// with which the server is just busy, in the way of TCP Vegas (Brakmo and Peterson,
// 1995): of the writes under way as many wait as writes take longer than when there
// are few at once. It compares means, so that a server whose answers take now more
// and now less time does not seem to be busy. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	changed sync.Cond
	// allowed are the writes that may be under way, underWay those that are.
	allowed, underWay int
	// round numbers the times with one value of allowed: a write that began in
	// another one says nothing of this one. calls are those that ended in it, and
	// writes, which took so long together, those of them that were one write each.
	round         int
	calls, writes int
	took          time.Duration
	// probing is true while it is found out how long one takes that does not wait;
	// alone is what was found, 0 for nothing, and before what was allowed before.
	probing bool
	alone   time.Duration
	before  int
	// since is how many writes have ended since that was found.
	since int
}

func newPace() *pace {
	p := &pace{allowed: fewWriters, probing: true, before: mostWaiting}
	p.changed.L = &p.mu
	return p
}

// each calls do for 0 to n-1, for as many at once as the pace allows, and returns
// when all calls have. What do returns is how long its write took, 0 if it was not
// one write that succeeded: other calls take more or less time than writes do.
func (p *pace) each(n int, do func(i int) time.Duration) {
	inParallel(n, func(i int) {
		round := p.begin()
		p.end(round, do(i))
	})
}

// begin waits until one more may be under way.
func (p *pace) begin() (round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.underWay >= p.allowed {
		p.changed.Wait()
	}
	p.underWay++
	return p.round
}

// end is told how long a write took.
func (p *pace) end(round int, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	p.underWay--
	p.since++
	if round != p.round {
		return
	}
	p.calls++
	if took > 0 {
		p.writes++
		p.took += took
	}
	switch {
	case p.probing && (p.writes >= aloneWrites || p.calls >= 4*aloneWrites):
		p.alone, p.probing, p.since = p.meanLocked(), false, 0
		p.allowLocked(p.before)
	case !p.probing && p.since >= aloneEvery:
		p.probing, p.before = true, p.allowed
		p.allowLocked(fewWriters)
	case !p.probing && p.calls >= max(p.allowed, roundSize):
		p.allowLocked(p.allowed + p.directionLocked())
	}
}

// allowLocked begins a round.
func (p *pace) allowLocked(allowed int) {
	p.allowed = min(max(allowed, fewWriters), clearWorkers)
	p.round++
	p.calls, p.writes, p.took = 0, 0, 0
}

// meanLocked is how long a write of this round took, 0 if there was none.
func (p *pace) meanLocked() time.Duration { return p.took / time.Duration(max(p.writes, 1)) }

// directionLocked is 1 when more writes at once would be faster, -1 when fewer would
// not be slower.
func (p *pace) directionLocked() int {
	mean := p.meanLocked()
	if mean <= p.alone || p.alone == 0 {
		return 1
	}
	waiting := float64(p.allowed) * (1 - float64(p.alone)/float64(mean))
	switch {
	case waiting < leastWaiting:
		return 1
	case waiting > mostWaiting:
		return -1
	default:
		return 0
	}
}

// timed calls a function that writes, and returns how long it took if it succeeded.
func timed(write func() error) (took time.Duration, err error) {
	begun := time.Now()
	if err := write(); err != nil {
		return 0, err
	}
	// A clock may not be fine enough.
	return max(time.Since(begun), 1), nil
}
