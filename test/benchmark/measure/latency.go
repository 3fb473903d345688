//go:build linux

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

package measure

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Latencies keeps every duration that it is given, so that percentiles are exact.
// It is safe for concurrent use; the zero value is ready.
type Latencies struct {
	mu   sync.Mutex
	kept []time.Duration
}

// Record keeps one duration.
func (l *Latencies) Record(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, d)
}

// Take returns what was recorded since the last Take.
func (l *Latencies) Take() Distribution {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.kept
	l.kept = nil
	return distribution(taken)
}

func distribution(durations []time.Duration) Distribution {
	slices.Sort(durations)
	return Distribution{sorted: durations}
}

// Distribution is a set of durations.
type Distribution struct{ sorted []time.Duration }

// Together is the durations of all.
func Together(all ...Distribution) Distribution {
	var durations []time.Duration
	for _, d := range all {
		durations = append(durations, d.sorted...)
	}
	return distribution(durations)
}

// Count is the number of durations.
func (d Distribution) Count() int { return len(d.sorted) }

// Percentile is the smallest duration that at least p percent of all do not
// exceed, 0 without any (the nearest-rank method).
func (d Distribution) Percentile(p float64) time.Duration {
	if len(d.sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(d.sorted))))
	return d.sorted[min(max(rank, 1), len(d.sorted))-1]
}

// Max is the longest duration, 0 without any.
func (d Distribution) Max() time.Duration { return d.Percentile(100) }

// Milliseconds is a duration as a figure for tables.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Bytes in the units of tables.
const (
	KiB = 1 << 10
	MiB = 1 << 20
)

// Mebibytes is a number of bytes in the unit of tables.
func Mebibytes(bytes int64) float64 { return float64(bytes) / MiB }

// Spread is the middle of some figures and how far they reach.
type Spread struct{ Median, Low, High float64 }

// SpreadOf returns the median, the lowest and the highest of figures; zeros
// without any.
func SpreadOf(figures ...float64) Spread {
	if len(figures) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1]}
}

// SpreadBy is the spread of a figure of all.
func SpreadBy[T any](all []T, figure func(T) float64) Spread {
	var figures []float64
	for _, one := range all {
		figures = append(figures, figure(one))
	}
	return SpreadOf(figures...)
}

// MedianRange is where the true median lies with a probability of at least 95 %, as
// far as figures of independent repetitions tell: between two of them, in their
// order, outside of which a fair coin seldom puts that many. With fewer than six,
// these are the lowest and the highest, which say less.
func MedianRange(figures ...float64) (low, high float64) {
	n := len(figures)
	if n == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	// below is how probable it is that at most k figures are below the median.
	k, below, choose := 0, 0.0, 1.0
	for i := 0; i < n/2; i++ {
		if below += choose / math.Pow(2, float64(n)); below > 0.025 {
			break
		}
		k, choose = i, choose*float64(n-i)/float64(i+1)
	}
	return sorted[k], sorted[n-1-k]
}
