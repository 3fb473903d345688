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
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// clearWorkers is the maximum number of concurrent writes.
	clearWorkers = 16
	// fewWriters are so few writes at once that they hardly wait for each other.
	fewWriters = 2
	// leastWaiting and mostWaiting bound the number of writes of one walk that should wait
	// at the server for others. Fewer, and it may be idle. More, and they only delay all
	// other clients: beyond some number of concurrent writes a server does not get faster.
	leastWaiting, mostWaiting = 5, 8
	// firstWriters is the number of concurrent writes while little is known of the server:
	// a small one keeps up with it.
	firstWriters = 8
	// aloneWrites is the number of writes that measure how long one takes without waiting,
	// if there are so many. aloneEvery is the number of others that follow: load and the
	// size of objects change.
	aloneWrites, aloneEvery = 16, 4000
	// roundSize is the minimum number of writes that measure the duration at some pace.
	roundSize = 8
)

// writeLimiter limits the number of concurrent writes of one walk. It finds the number
// with which the server is just busy, in the way of TCP Vegas (Brakmo and Peterson,
// 1995). The share of concurrent writes that wait equals the share by which writes take
// longer than with few at once. It compares means, so that a server whose answers vary
// in duration does not seem busy. A server in trouble gets less work. It is safe for
// concurrent use.
type writeLimiter struct {
	mu      sync.Mutex
	changed sync.Cond
	// allowed are the writes that may be under way, underWay those that are.
	allowed, underWay int
	// round is what ended since the last evaluation. It counts each write once, also one
	// that takes longer than a round: otherwise slow ones would not count.
	round sum
	// probing is true while the duration of a write without waiting is measured. Earlier
	// writes do not count for that, nor do those that begin once it is closed. It ends
	// when no write that counts is pending.
	probing, closed bool
	pending         int
	// alone is the measured duration, 0 for none, and before is the limit that applied
	// before.
	alone  time.Duration
	before int
	// since is the number of writes that have ended since the measurement.
	since int
}

// sum is the total of some calls.
type sum struct {
	calls int
	// writes are the calls that were one write each, which took so long together,
	// and failed those that the server failed.
	writes, failed int
	took           time.Duration
}

func (s *sum) add(o outcome) {
	s.calls++
	switch {
	case o.failed:
		s.failed++
	case o.took > 0:
		s.writes++
		s.took += o.took
	}
}

// mean returns how long a write took, 0 if there was none.
func (s *sum) mean() time.Duration { return s.took / time.Duration(max(s.writes, 1)) }

// outcome is the result of a call. The zero value is for one that was not one
// successful write, without a fault of the server: missing or refused objects take more
// or less time than a write.
type outcome struct {
	// took is the time that its write took.
	took time.Duration
	// failed is true when the server failed: it is overloaded, for example, or does not
	// answer.
	failed bool
}

// outcomeOf returns the result of a call that took so long, 0 if it was not one write.
func outcomeOf(took time.Duration, err error) outcome {
	if err == nil {
		return outcome{took: took}
	}
	// Conflicts with other writers are no trouble.
	others := apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, errWrittenByOthers)
	return outcome{failed: !others && !refuses(err)}
}

func newWriteLimiter() *writeLimiter {
	p := &writeLimiter{allowed: fewWriters, probing: true, before: firstWriters}
	p.changed.L = &p.mu
	return p
}

// each calls do for 0 to n-1, for as many at once as the pace allows, and returns
// when all calls have.
func (p *writeLimiter) each(n int, do func(i int) outcome) {
	inParallel(n, func(i int) {
		began := p.begin()
		p.end(began, do(i))
	})
}

// counted is the measurement in which a call counts, by when it began.
type counted int

const (
	forRound counted = iota
	forProbe
	forNothing
)

// begin waits until one more may be under way.
func (p *writeLimiter) begin() counted {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.underWay >= p.allowed {
		p.changed.Wait()
	}
	p.underWay++
	switch {
	case !p.probing:
		return forRound
	case p.closed:
		return forNothing
	default:
		p.pending++
		return forProbe
	}
}

// end records the result of a call.
func (p *writeLimiter) end(began counted, o outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	p.underWay--
	if o.took > 0 {
		p.since++
	}
	if began == forProbe {
		p.pending--
	}
	if p.probing != (began == forProbe) || began == forNothing {
		return
	}
	p.round.add(o)
	if p.probing {
		p.probedLocked()
		return
	}
	least := max(p.allowed, roundSize)
	switch r := p.round; {
	case r.writes > 0 && (p.alone == 0 || p.since >= aloneEvery):
		p.before = p.allowed
		if p.alone == 0 {
			p.before = firstWriters
		}
		p.probing, p.closed = true, false
		p.allowLocked(fewWriters)
	case r.writes+r.failed >= least, r.writes+r.failed == 0 && r.calls >= least:
		p.allowLocked(p.allowed + p.directionLocked())
	}
}

// probedLocked ends the probe once it has come to enough.
func (p *writeLimiter) probedLocked() {
	r := p.round
	p.closed = p.closed || r.writes >= aloneWrites || r.writes == 0 && r.calls >= 4*aloneWrites || r.calls >= 16*aloneWrites
	if !p.closed || p.pending > 0 {
		return
	}
	if r.writes > 0 {
		p.alone, p.since = r.mean(), 0
	}
	p.probing = false
	p.allowLocked(p.before)
}

// allowLocked begins a round.
func (p *writeLimiter) allowLocked(allowed int) {
	p.allowed = min(max(allowed, fewWriters), clearWorkers)
	p.round = sum{}
}

// directionLocked is 1 when more writes at once would be faster, and below 0 when so
// many fewer would not be slower: all that wait beyond those that should, since most
// rounds have none of the writes that take longer than a round, or the share that
// failed. Calls that write nothing do not keep a server from writing.
func (p *writeLimiter) directionLocked() int {
	mean := p.round.mean()
	switch r := p.round; {
	case r.failed > 0:
		return -max(1, p.allowed*r.failed/(r.writes+r.failed))
	case mean <= p.alone:
		return 1
	}
	waiting := float64(p.allowed) * (1 - float64(p.alone)/float64(mean))
	switch {
	case waiting < leastWaiting:
		return 1
	case waiting > mostWaiting:
		return -max(1, int(waiting-mostWaiting))
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
