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
	"testing"
	"testing/synctest"
	"time"
)

// busy is a server that does so many writes at a time, each in the time it takes;
// others wait.
type busy struct {
	free chan bool
	took time.Duration

	mu        sync.Mutex
	now, most int
}

func newBusy(atOnce int, took time.Duration) *busy {
	s := &busy{free: make(chan bool, atOnce), took: took}
	for range atOnce {
		s.free <- true
	}
	return s
}

func (s *busy) write(int) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	<-s.free
	<-time.After(s.took)
	s.free <- true
	s.mu.Lock()
	s.now--
	s.mu.Unlock()
}

// TestPaceKeepsAServerJustBusy: with as many writes as it does at a time, and a few
// that wait.
func TestPaceKeepsAServerJustBusy(t *testing.T) {
	for _, test := range []struct {
		atOnce, least, most int
	}{
		{atOnce: 1, least: 3, most: 5},
		{atOnce: 4, least: 6, most: 8},
		{atOnce: 8, least: 10, most: 12},
		{atOnce: 100, least: clearWorkers, most: clearWorkers},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, server := newPace(), newBusy(test.atOnce, 5*time.Millisecond)
			// It begins with a few, and has to find the number first.
			for range 4 {
				p.each(250, server.write)
			}
			server.most = 0
			begun, n := time.Now(), 0
			for range 40 {
				p.each(250, server.write)
				n += 250
			}
			if server.most < test.least || server.most > test.most {
				t.Errorf("%d at a time: %d writes at once, want %d to %d", test.atOnce, server.most, test.least, test.most)
			}
			rate := float64(n) / time.Since(begun).Seconds()
			if possible := float64(min(test.atOnce, clearWorkers)) / server.took.Seconds(); rate < 0.95*possible {
				t.Errorf("%d at a time: %.0f writes/s, %.0f are possible", test.atOnce, rate, possible)
			}
		})
	}
}

// TestPaceFollowsTheServer: others come and go, and objects have different sizes.
func TestPaceFollowsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for _, step := range []struct {
			what        string
			server      *busy
			least, most int
		}{
			{"four at a time", newBusy(4, 5*time.Millisecond), 6, 8},
			{"one at a time", newBusy(1, 5*time.Millisecond), 3, 5},
			{"ten at a time", newBusy(10, 5*time.Millisecond), 12, 14},
			{"four at a time, and slower", newBusy(4, 50*time.Millisecond), 6, 8},
		} {
			// What was the shortest write before is forgotten after two windows.
			for n := 0; n < 4*window; n += 250 {
				p.each(250, step.server.write)
			}
			step.server.most = 0
			p.each(250, step.server.write)
			if most := step.server.most; most < step.least || most > step.most {
				t.Errorf("%s: %d writes at once, want %d to %d", step.what, most, step.least, step.most)
			}
		}
	})
}

// TestPaceCallsEachOnce, also when there is nothing to do.
func TestPaceCallsEachOnce(t *testing.T) {
	p := newPace()
	for _, n := range []int{0, 1, 2, 1000} {
		var mu sync.Mutex
		calls := make([]int, n)
		p.each(n, func(i int) {
			mu.Lock()
			defer mu.Unlock()
			calls[i]++
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
