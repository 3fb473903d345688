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

package stagger

import (
	"math"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"pgregory.net/rapid"
)

func TestMaxDelayGrowsWithCountUpToLimit(t *testing.T) {
	const limit = v1alpha1.MaxReportDelay
	for n, want := range map[int]time.Duration{
		math.MinInt: 0, -1: 0, 0: 0,
		2: 9 * time.Millisecond, 200: 900 * time.Millisecond, 2000: 9 * time.Second,
		8750: limit, 10_000: limit, 1_000_000: limit, math.MaxInt: limit,
	} {
		if got := MaxDelay(n); got != want {
			t.Errorf("the last of %d processes waits %s, want %s", n, got, want)
		}
	}
}

// TestDelaysAreSpreadAfterHeadStart: they grow with the fraction, and none is zero.
func TestDelaysAreSpreadAfterHeadStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20_000).Draw(t, "n")
		a, b := rapid.Float64Range(0, 1).Draw(t, "fraction"), rapid.Float64Range(0, 1).Draw(t, "another")
		first, last := Delay(n, 0), MaxDelay(n)
		if at := Delay(n, a); at < first || at > last || last > v1alpha1.MaxReportDelay || first <= 0 {
			t.Fatalf("the delay at %v is %s, the first is %s and the last %s", a, at, first, last)
		}
		if a < b && Delay(n, a) > Delay(n, b) {
			t.Fatalf("the delay at %v is longer than the one at %v", a, b)
		}
	})
}

func TestSecondsAreSpreadOfCount(t *testing.T) {
	const longest = int32(v1alpha1.MaxReportSpread / time.Second)
	for n, want := range map[int]int32{math.MinInt: 0, -1: 0, 0: 0, 499: 0, 500: 1, 1499: 1, 1500: 2, 2000: 2, 2199: 2, 2200: 3, 4000: 7, 10_000: 22, 15_000: 35, 35_000: longest, 1_000_000: longest, math.MaxInt: longest} {
		if got := Seconds(n); got != want {
			t.Errorf("%d processes spread their reports over %d s, want %d s", n, got, want)
		}
	}
	for seconds, want := range map[int32]int{math.MinInt32: 0, -1: 0, 0: 0, 1: 250, 10: 2500, longest: 8750, longest + 1: 8750, math.MaxInt32: 8750} {
		if got := Count(seconds); got != want {
			t.Errorf("%d processes spread their reports over %d s, want %d", got, seconds, want)
		}
	}
	for seconds := range longest + 1 {
		if got := Count(seconds); Delay(got, 1)-Delay(got, 0) != time.Duration(seconds)*time.Second {
			t.Errorf("%d processes spread their reports over %s, want %d s", got, Delay(got, 1)-Delay(got, 0), seconds)
		}
	}
}

func TestConfirming(t *testing.T) {
	for n, want := range map[int][2]time.Duration{0: {}, 499: {}, 1000: {125 * time.Millisecond, 1125 * time.Millisecond}, 10_000: {2750 * time.Millisecond, 24750 * time.Millisecond}} {
		if first, last := Confirming(n); first != want[0] || last != want[1] {
			t.Errorf("%d processes confirm from %s to %s, want from %s to %s", n, first, last, want[0], want[1])
		}
	}
}

// TestPacingOfProtocolIsUnchanged: processes and servers of other versions have these.
func TestPacingOfProtocolIsUnchanged(t *testing.T) {
	if want := 315 * time.Second / 8; v1alpha1.MaxReportDelay != want {
		t.Errorf("all processes have reported after %s, want %s", v1alpha1.MaxReportDelay, want)
	}
	if got, want := Delay(1, 1), 4500*time.Microsecond; got != want {
		t.Errorf("one process waits for %s, want %s", got, want)
	}
}
