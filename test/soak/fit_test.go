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

package soak

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// series are samples of an hour with one value each.
func series(value func(hour float64, i int) float64) []sample {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var samples []sample
	for i := range 121 {
		at := begin.Add(time.Duration(i) * 30 * time.Second)
		samples = append(samples, sample{at: at, heap: value(at.Sub(begin).Hours(), i)})
	}
	return samples
}

func TestALineIsFitted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wave := 0.0
	for name, test := range map[string]struct {
		value          func(hour float64, i int) float64
		slope, within  float64
		exceeds, worse bool
	}{
		"a straight line":              {func(hour float64, _ int) float64 { return 100<<20 + 20<<20*hour }, 20 << 20, 1, true, false},
		"a level":                      {func(float64, int) float64 { return 100 << 20 }, 0, 1, false, false},
		"noise around a level":         {func(float64, int) float64 { return 100<<20 + random.NormFloat64()*(10<<20) }, 0, 9 << 20, false, false},
		"noise around a slope":         {func(hour float64, _ int) float64 { return 50<<20*hour + random.NormFloat64()*(5<<20) }, 50 << 20, 5 << 20, true, false},
		"waves, which are not a slope": {func(float64, int) float64 { wave = 0.95*wave + random.NormFloat64(); return wave * (4 << 20) }, 0, 60 << 20, false, true},
	} {
		samples := series(test.value)
		got := fit(samples, sample.ofHeap)
		if math.Abs(got.slope-test.slope) > test.within {
			t.Errorf("%s: the slope is %.0f, want %.0f within %.0f", name, got.slope, test.slope, test.within)
		}
		if got.exceeds(mostHeap) != test.exceeds {
			t.Errorf("%s: exceeds %d: %t, want %t (%s)", name, mostHeap, !test.exceeds, test.exceeds, got)
		}
		if test.worse && got.deviation < 4<<20 {
			t.Errorf("%s: the standard error %.0f does not know that neighbours are alike", name, got.deviation)
		}
	}
	if few := fit(series(func(float64, int) float64 { return 0 })[:2], sample.ofHeap); few.exceeds(-1) {
		t.Errorf("two samples say nothing: %s", few)
	}
}

func TestProfilesAndMetricsAreUnderstood(t *testing.T) {
	const profile = `goroutine profile: total 7
4 @ 0x1 0x2
#	0x1	net/http.(*conn).serve+0x1	/go/src/net/http/server.go:1

2 @ 0x1 0x3
#	0x1	time.Sleep+0x1	/go/src/runtime/time.go:1
#	0x3	k8s.io/feature-lifecycle/report.(*Reporter).Run+0x3	/src/report/reporter.go:1

1 @ 0x1 0x4
#	0x4	k8s.io/kubernetes-features/pkg/controlplane.start+0x4	/src/pkg/controlplane/lifecycle.go:1
`
	if all, ours := countGoroutines(profile); all != 7 || ours != 3 {
		t.Errorf("%d goroutines, %d ours; want 7 and 3", all, ours)
	}
	const metrics = `# TYPE apiserver_longrunning_requests gauge
apiserver_longrunning_requests{component="apiserver",group="",resource="nodes",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_longrunning_requests{component="apiserver",group="features.k8s.io",resource="features",scope="namespace",subresource="",verb="WATCH",version="v1alpha1"} 2
apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="resource",subresource="log",verb="GET",version="v1"} 9
`
	if got := countWatches(metrics); len(got) != 2 || got["nodes"] != 3 || got["features.features.k8s.io"] != 2 {
		t.Errorf("unexpected watches: %v", got)
	}
}
