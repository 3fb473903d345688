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

package storage

import (
	"errors"
	"sync"
	"testing"
	"time"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestCounts checks that counts are rare, that the room is never exceeded, and
// that a refusal follows a new count.
func TestCounts(t *testing.T) {
	c, asked, stored := &counts{}, 0, 0
	var failure error
	add := func(what string, after time.Duration, wantCount int, wantRoom bool, wantAsked int) {
		t.Helper()
		n, room, err := c.add(countKey{username: "u"}, 3*countShare, begun.Add(after), func() (int, error) {
			asked++
			return stored, failure
		})
		if !errors.Is(err, failure) || n != wantCount || room != wantRoom || asked != wantAsked {
			t.Errorf("%s: %d, room %t, counted %d times, %v; want %d, %t, %d, %v", what, n, room, asked, err, wantCount, wantRoom, wantAsked, failure)
		}
	}
	add("the first", 0, 0, true, 1)
	add("one that comes with it", 0, 1, true, 1)
	add("one more", 10*time.Millisecond, 2, true, 1)
	stored = 3
	add("a share of the room is gone", 20*time.Millisecond, 3, true, 2)
	add("there is less room", 20*time.Millisecond, 4, true, 2)
	stored = 3*countShare - 2
	add("nearly no room", 30*time.Millisecond, stored, true, 3)
	stored++
	add("one more, that is counted for", 30*time.Millisecond, stored, true, 4)
	stored++
	add("one too many", 30*time.Millisecond, stored, false, 5)
	add("and another", 30*time.Millisecond, stored, false, 6)
	stored = 1
	add("after most have gone", 40*time.Millisecond, 1, true, 7)
	add("the number is believed again", 40*time.Millisecond, 2, true, 7)
	add("a second later it is counted again", 40*time.Millisecond+countPeriod, 1, true, 8)
	failure = errors.New("etcd")
	add("counting fails", 40*time.Millisecond+2*countPeriod, 0, false, 9)
	add("and again", 40*time.Millisecond+2*countPeriod, 0, false, 10)
	if _, _, err := c.add(countKey{username: "v"}, 1, begun.Add(time.Hour), func() (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	if len(c.counts) != 1 {
		t.Errorf("%d identities are remembered, want the last alone", len(c.counts))
	}
}

// slow is a request whose count does not end before the test supplies its result.
type slow struct {
	counted chan int
	added   chan bool
}

// slowly begins to add a report, and returns when the counting has begun.
func slowly(t *testing.T, c *counts, limit int, now time.Time) *slow {
	s := &slow{make(chan int), make(chan bool, 1)}
	begins := make(chan struct{})
	go func() {
		_, room, err := c.add(countKey{username: "u"}, limit, now, func() (int, error) {
			close(begins)
			select {
			case n := <-s.counted:
				return n, nil
			case <-t.Context().Done():
				return 0, t.Context().Err()
			}
		})
		s.added <- room && err == nil
	}()
	<-begins
	return s
}

// ends ends the count with a number, and returns whether there was room.
func (s *slow) ends(n int) bool {
	s.counted <- n
	return <-s.added
}

// TestSlowCountKeepsReportsCreatedMeanwhile in each order of the counts' starts.
func TestSlowCountKeepsReportsCreatedMeanwhile(t *testing.T) {
	const limit = 100
	for name, began := range map[string]time.Duration{"that began first": -time.Millisecond, "that began last": time.Millisecond, "that began with the others": 0} {
		t.Run(name, func(t *testing.T) {
			c, stored := &counts{}, 0
			late := slowly(t, c, limit, begun.Add(began))
			burst := func() {
				for range 2 * limit {
					if _, room, _ := c.add(countKey{username: "u"}, limit, begun, func() (int, error) { return stored, nil }); room {
						stored++
					}
				}
			}
			burst()
			if stored != limit {
				t.Fatalf("%d of %d are stored before", stored, limit)
			}
			// It counted before the others came.
			if late.ends(0) {
				t.Error("there is room for one more")
			}
			burst()
			if stored != limit {
				t.Errorf("%d of %d are stored afterwards", stored, limit)
			}
		})
	}
}

// TestSlowCountIsDiscardedAfterLaterOne than one that began after it, and saw what other servers let
// come.
func TestSlowCountIsDiscardedAfterLaterOne(t *testing.T) {
	const limit = 100
	var c counts
	late := slowly(t, &c, limit, begun)
	last := slowly(t, &c, limit, begun.Add(time.Millisecond))
	if !last.ends(limit - 1) {
		t.Fatal("there is no room for the last")
	}
	if late.ends(0) {
		t.Error("there is room for one more")
	}
}

// TestConcurrentCountsStartedTogether do not each give away the same room.
func TestConcurrentCountsStartedTogether(t *testing.T) {
	const limit, there = 20, 15
	c, requests, added := &counts{}, make([]*slow, 0, limit), 0
	for range limit {
		requests = append(requests, slowly(t, c, limit, begun))
	}
	for _, request := range requests {
		if request.ends(there) {
			added++
		}
	}
	if want := limit - there; added != want {
		t.Errorf("%d came, want %d", added, want)
	}
	if c.counts[countKey{username: "u"}].counting != 0 {
		t.Error("a count seems to be in progress")
	}
}

// TestEntryIsKeptDuringCount although the number that was known is old.
func TestEntryIsKeptDuringCount(t *testing.T) {
	c, later := &counts{}, begun.Add(time.Hour)
	for range 3 {
		if _, room, err := c.add(countKey{username: "u"}, 100, begun, func() (int, error) { return 0, nil }); !room || err != nil {
			t.Fatalf("room %t, %v", room, err)
		}
	}
	late := slowly(t, c, 100, later)
	if _, _, err := c.add(countKey{username: "v"}, 100, later, func() (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	if !late.ends(99) {
		t.Error("there is no room")
	}
	if got := c.counts[countKey{username: "u"}].count; got != 100 {
		t.Errorf("%d are counted, want 100", got)
	}
}

// TestServersTogetherKeepLimit give away no more than there is: each believes a
// number of its own.
func TestServersTogetherKeepLimit(t *testing.T) {
	const limit = 100
	stored, counted := 0, 0
	var servers [5]counts
	for range 3 * limit {
		for i := range servers {
			_, room, err := servers[i].add(countKey{username: "u"}, limit, begun, func() (int, error) {
				counted++
				return stored, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if room {
				stored++
			} else if stored != limit {
				t.Fatalf("refused with %d of %d", stored, limit)
			}
		}
		if stored == limit {
			break
		}
	}
	if stored != limit || counted > limit {
		t.Errorf("%d are stored after counting %d times, want %d after fewer", stored, counted, limit)
	}
}

// TestConcurrentCounts give away what there is, and for each that is not stored yet one more.
func TestConcurrentCounts(t *testing.T) {
	const limit = 100
	var c counts
	var mu sync.Mutex
	stored := 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range limit {
				_, room, _ := c.add(countKey{username: "u"}, limit, begun, func() (int, error) {
					mu.Lock()
					defer mu.Unlock()
					return stored, nil
				})
				if room {
					mu.Lock()
					stored++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if stored < limit || stored > limit+8 {
		t.Errorf("%d are stored, want %d", stored, limit)
	}
}
