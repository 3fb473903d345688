//go:build linux

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

package disruption

import (
	"fmt"
	"math"
	"time"
)

// trend is a line through samples.
type trend struct {
	// slope is in bytes an hour, as is its standard error.
	slope, deviation float64
	samples          int
	over             time.Duration
}

func (t trend) String() string {
	return fmt.Sprintf("%+.2f ± %.2f MiB/h (%d samples in %s)", t.slope/(1<<20), t.deviation/(1<<20), t.samples, t.over.Round(time.Second))
}

// verdict says whether memory is flat by its trend: ok is true when, by two standard errors,
// it surely does not grow by more than a limit. Noise is no excuse: what cannot be told from
// growth is not accepted either.
func (t trend) verdict(limit float64) (says string, ok bool) {
	switch {
	case t.samples < 3 || t.over < leastJudged:
		return fmt.Sprintf("inconclusive: %s is less than %s", t.over.Round(time.Second), leastJudged), false
	case t.slope-2*t.deviation > limit:
		return "grows", false
	case t.slope+2*t.deviation > limit:
		return fmt.Sprintf("inconclusive: it may grow by %s/h", mib(t.slope+2*t.deviation)), false
	default:
		return "flat", true
	}
}

// fit draws the line of least squares. What is left of neighbouring samples is
// alike, since memory goes up and down in waves, so they say less than as many
// independent ones: the standard error is widened by their correlation at distance
// one, as for a first-order autoregressive process.
func fit(samples []sample, value func(sample) float64) trend {
	n := len(samples)
	if n < 3 {
		return trend{samples: n, deviation: math.Inf(1)}
	}
	x, y := make([]float64, n), make([]float64, n)
	var meanX, meanY float64
	for i, s := range samples {
		x[i], y[i] = s.at.Sub(samples[0].at).Hours(), value(s)
		meanX, meanY = meanX+x[i]/float64(n), meanY+y[i]/float64(n)
	}
	var xx, xy float64
	for i := range x {
		xx += (x[i] - meanX) * (x[i] - meanX)
		xy += (x[i] - meanX) * (y[i] - meanY)
	}
	t := trend{slope: xy / xx, samples: n, over: samples[n-1].at.Sub(samples[0].at)}
	var squares, neighbours, last float64
	for i := range x {
		left := y[i] - meanY - t.slope*(x[i]-meanX)
		squares += left * left
		neighbours += left * last
		last = left
	}
	t.deviation = math.Sqrt(squares / float64(n-2) / xx)
	if squares > 0 {
		r := min(max(neighbours/squares, 0), 0.99)
		t.deviation *= math.Sqrt((1 + r) / (1 - r))
	}
	return t
}
