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
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// busy is a server that does so many writes at a time; others wait.
type busy struct {
	free chan bool
	// takes is the time that a write takes once it is its turn.
	takes func() time.Duration

	mu        sync.Mutex
	now, most int
}

func newBusy(atOnce int, takes func() time.Duration) *busy {
	s := &busy{free: make(chan bool, atOnce), takes: takes}
	for range atOnce {
		s.free <- true
	}
	return s
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// uneven takes a fixed time, and another one that differs widely, as the answers of
// servers do that are far away.
func uneven(fixed, mean time.Duration) func() time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return fixed + time.Duration(random.ExpFloat64()*float64(mean))
	}
}

func (s *busy) write(int) outcome {
	begun := time.Now()
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	<-s.free
	<-time.After(s.takes())
	s.free <- true
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
	return outcome{took: time.Since(begun)}
}

// rate lets a pace write pages, and returns how many writes a second that were.
func rate(p *writeLimiter, pages int, write func(i int) outcome) float64 {
	const page = 250
	begun := time.Now()
	for range pages {
		p.each(page, write)
	}
	return float64(pages*page) / time.Since(begun).Seconds()
}

// TestPaceKeepsAServerJustBusy: with as many writes as it does at a time, and a few
// that wait; at the end of a page, when there are fewer, it tries one or two more.
func TestPaceKeepsAServerJustBusy(t *testing.T) {
	const ms, most = time.Millisecond, mostWaiting + 2
	for _, test := range []struct {
		what        string
		atOnce      int
		takes       func() time.Duration
		least, most int
		// possible is how many writes a second there can be.
		possible float64
	}{
		{"one at a time", 1, constant(5 * ms), 1 + leastWaiting, 1 + most, 200},
		{"four at a time", 4, constant(5 * ms), 4 + leastWaiting, 4 + most, 800},
		{"eight at a time", 8, constant(5 * ms), 8 + leastWaiting, clearWorkers, 1600},
		{"all at a time", 100, constant(5 * ms), clearWorkers, clearWorkers, 3200},
		{"all at a time, unevenly", 100, uneven(3*ms, 5*ms), clearWorkers, clearWorkers, 2000},
		{"four at a time, unevenly", 4, uneven(3*ms, 5*ms), 3 + leastWaiting, 6 + most, 500},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, server := newWriteLimiter(), newBusy(test.atOnce, test.takes)
			// It has to find the number first.
			rate(p, 4, server.write)
			server.most = 0
			if got := rate(p, 100, server.write); got < 0.85*test.possible {
				t.Errorf("%s: %.0f writes/s, %.0f are possible", test.what, got, test.possible)
			}
			if server.most < test.least || server.most > test.most {
				t.Errorf("%s: %d writes at once, want %d to %d", test.what, server.most, test.least, test.most)
			}
		})
	}
}

// TestPaceFollowsTheServer: others come and go, and objects have different sizes.
func TestPaceFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newWriteLimiter()
		for _, step := range []struct {
			what        string
			server      *busy
			least, most int
		}{
			{"four at a time", newBusy(4, constant(5*time.Millisecond)), 4 + leastWaiting, 6 + mostWaiting},
			{"one at a time", newBusy(1, constant(5*time.Millisecond)), 1 + leastWaiting, 3 + mostWaiting},
			{"ten at a time", newBusy(10, constant(5*time.Millisecond)), 10 + leastWaiting, clearWorkers},
			{"four at a time, and slower", newBusy(4, constant(50*time.Millisecond)), 4 + leastWaiting, 6 + mostWaiting},
		} {
			rate(p, 2*aloneEvery/250, step.server.write)
			step.server.most = 0
			rate(p, 10, step.server.write)
			if most := step.server.most; most < step.least || most > step.most {
				t.Errorf("%s: %d writes at once, want %d to %d", step.what, most, step.least, step.most)
			}
		}
	})
}

// TestPaceMeasuresWritesOnly checks that missing, refused or repeated objects take
// another time than a write.
func TestPaceMeasuresWritesOnly(t *testing.T) {
	for what, other := range map[string]time.Duration{"shorter": 100 * time.Microsecond, "longer": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p, server := newWriteLimiter(), newBusy(4, constant(5*time.Millisecond))
			write := func(i int) outcome {
				if i%5 == 0 {
					<-time.After(other)
					return outcome{}
				}
				return server.write(i)
			}
			rate(p, 8, write)
			if p.probing || p.allowed < 4+leastWaiting {
				t.Errorf("%s: %d writes are allowed at once, probing %t", what, p.allowed, p.probing)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		// What comes first is no write, and does not seem to be one that takes no time.
		p, server := newWriteLimiter(), newBusy(4, constant(5*time.Millisecond))
		rate(p, 1, func(i int) outcome {
			if i < 2*aloneWrites {
				return outcome{}
			}
			return server.write(i)
		})
		rate(p, 2, server.write)
		if p.alone < 5*time.Millisecond || p.allowed > 6+mostWaiting {
			t.Errorf("a write takes %s alone, and %d are allowed at once", p.alone, p.allowed)
		}
	})
}

// TestPaceCallsEachOnce, also when there is nothing to do.
func TestPaceCallsEachOnce(t *testing.T) {
	p := newWriteLimiter()
	for _, n := range []int{0, 1, 2, 1000} {
		var mu sync.Mutex
		calls := make([]int, n)
		p.each(n, func(i int) outcome {
			mu.Lock()
			defer mu.Unlock()
			calls[i]++
			return outcome{took: 1}
		})
		for i, times := range calls {
			if times != 1 {
				t.Errorf("of %d, %d was called %d times", n, i, times)
			}
		}
	}
	if p.underWay != 0 {
		t.Errorf("%d are under way", p.underWay)
	}
}
