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

package storage

import (
	"errors"
	"testing"
	"time"
)

// TestCounts counts rarely, never gives more room than there is, and looks again
// before it refuses.
func TestCounts(t *testing.T) {
	c, asked, stored := &counts{}, 0, 0
	var failure error
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(what string, after time.Duration, wantCount int, wantRoom bool, wantAsked int) {
		t.Helper()
		n, room, err := c.add(countKey{username: "u"}, 3, begun.Add(after), func() (int, error) {
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
	add("one too many", 20*time.Millisecond, 3, false, 2)
	stored = 1
	add("after two have gone", 30*time.Millisecond, 1, true, 3)
	add("a second later it is counted again", 30*time.Millisecond+countPeriod, 1, true, 4)
	failure = errors.New("etcd")
	add("counting fails", 30*time.Millisecond+2*countPeriod, 0, false, 5)
	if _, _, err := c.add(countKey{username: "v"}, 1, begun.Add(time.Hour), func() (int, error) { return 0, nil }); err != nil {
		t.Fatal(err)
	}
	if len(c.counts) != 1 {
		t.Errorf("%d identities are remembered, want the last alone", len(c.counts))
	}
}
