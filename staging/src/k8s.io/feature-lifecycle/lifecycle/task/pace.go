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
	// leastWaiting and mostWaiting bound how many writes of one walk should wait at
	// the server for others. Fewer, and it may be idle; more, and they only hold up
	// everybody else: beyond some number of writes at once a server does not get
	// faster.
	leastWaiting, mostWaiting = 2, 4
	// window is for how many writes the shortest one is remembered: what others do
	// and the size of objects change.
	window = 1000
)

// pace is how many writes of one walk are under way at once. It finds the number
// with which the server is just busy, as TCP Vegas finds how much a network takes
// (Brakmo and Peterson, 1995): of the writes under way as many wait as writes take
// longer than the shortest of them. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	changed sync.Cond
	// allowed are the writes that may be under way, underWay those that are.
	allowed, underWay int
	// shortest are the shortest writes of the present window and of the one before,
	// 0 if there was none; seen is how many the present one has.
	shortest [2]time.Duration
	seen     int
	// took is how long the writes took since allowed was looked at, ended how many
	// they are.
	took  time.Duration
	ended int
}

func newPace() *pace {
	p := &pace{allowed: mostWaiting}
	p.changed.L = &p.mu
	return p
}

// each calls do for 0 to n-1, for as many at once as the pace allows, and returns
// when all calls have.
func (p *pace) each(n int, do func(i int)) {
	indexes := make(chan int)
	var workers sync.WaitGroup
	for range min(n, clearWorkers) {
		workers.Go(func() {
			for i := range indexes {
				p.begin()
				begun := time.Now()
				do(i)
				p.end(time.Since(begun))
			}
		})
	}
	for i := range n {
		indexes <- i
	}
	close(indexes)
	workers.Wait()
}

// begin waits until one more may be under way.
func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.underWay >= p.allowed {
		p.changed.Wait()
	}
	p.underWay++
}

// end is told how long a write took.
func (p *pace) end(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
	p.took += took
	p.ended++
	if p.seen++; p.seen > window {
		p.shortest, p.seen = [2]time.Duration{1: p.shortest[0]}, 1
	}
	if p.seen == 1 || took < p.shortest[0] {
		p.shortest[0] = took
	}
	// Each number is tried with as many writes: those under way before say
	// something of the number before.
	if p.ended >= p.allowed {
		p.allowed = min(max(p.allowed+p.direction(), leastWaiting), clearWorkers)
		p.took, p.ended = 0, 0
	}
	p.changed.Broadcast()
}

// direction is 1 when more writes at once would be faster, -1 when fewer would not
// be slower. It needs the lock.
func (p *pace) direction() int {
	shortest := p.shortest[0]
	if before := p.shortest[1]; before > 0 {
		shortest = min(shortest, before)
	}
	if p.took <= 0 {
		return 1
	}
	mean := p.took / time.Duration(p.ended)
	waiting := float64(p.allowed) * (1 - float64(shortest)/float64(mean))
	switch {
	case waiting < leastWaiting:
		return 1
	case waiting > mostWaiting:
		return -1
	default:
		return 0
	}
}
