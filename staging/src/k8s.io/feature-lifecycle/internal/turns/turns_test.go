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

package turns

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLongest(t *testing.T) {
	for users, want := range map[int]time.Duration{
		math.MinInt: 0, -1: 0, 0: 0,
		2: 9 * time.Millisecond, 200: 900 * time.Millisecond, 2000: 9 * time.Second,
		8750: Most, 10_000: Most, 1_000_000: Most, math.MaxInt: Most,
	} {
		if got := Longest(users); got != want {
			t.Errorf("the last of %d users waits %s, want %s", users, got, want)
		}
	}
}

// TestTurnsAreSpread over the time for all, and begin after the head start.
func TestTurnsAreSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.IntRange(1, 20_000).Draw(t, "users")
		a, b := rapid.Float64Range(0, 1).Draw(t, "a place"), rapid.Float64Range(0, 1).Draw(t, "another")
		first, last := Of(users, 0), Longest(users)
		if at := Of(users, a); at < first || at > last || last > Most || first <= 0 {
			t.Fatalf("the turn at %v is after %s, the first after %s and the last after %s", a, at, first, last)
		}
		if a < b && Of(users, a) > Of(users, b) {
			t.Fatalf("the turn at %v is after the one at %v", a, b)
		}
	})
}
