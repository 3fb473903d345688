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

package disruption

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes-features/test/utils/localcluster/process"
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

// verdict reports whether memory is flat by its trend: ok is true when, by two standard errors,
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

// fit draws the line of least squares. What is left of neighboring samples is
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
	var squares, neighbors, last float64
	for i := range x {
		left := y[i] - meanY - t.slope*(x[i]-meanX)
		squares += left * left
		neighbors += left * last
		last = left
	}
	t.deviation = math.Sqrt(squares / float64(n-2) / xx)
	if squares > 0 {
		r := min(max(neighbors/squares, 0), 0.99)
		t.deviation *= math.Sqrt((1 + r) / (1 - r))
	}
	return t
}

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
		value         func(hour float64, i int) float64
		slope, within float64
		says          string
	}{
		"a straight line":              {func(hour float64, _ int) float64 { return 100<<20 + 20<<20*hour }, 20 << 20, 1, "grows"},
		"a level":                      {func(float64, int) float64 { return 100 << 20 }, 0, 1, "flat"},
		"noise around a level":         {func(float64, int) float64 { return 100<<20 + random.NormFloat64()*(4<<20) }, 0, 4 << 20, "flat"},
		"noise around a slope":         {func(hour float64, _ int) float64 { return 50<<20*hour + random.NormFloat64()*(5<<20) }, 50 << 20, 5 << 20, "grows"},
		"waves, which are not a slope": {func(float64, int) float64 { wave = 0.95*wave + random.NormFloat64(); return wave * (4 << 20) }, 0, 60 << 20, "inconclusive"},
	} {
		samples := series(test.value)
		got := fit(samples, sample.ofHeap)
		if math.Abs(got.slope-test.slope) > test.within {
			t.Errorf("%s: the slope is %.0f, want %.0f within %.0f", name, got.slope, test.slope, test.within)
		}
		if says, ok := got.verdict(mostHeap); !strings.HasPrefix(says, test.says) || ok != (test.says == "flat") {
			t.Errorf("%s: %q (%t), want %q (%s)", name, says, ok, test.says, got)
		}
	}
}

func TestVerdictsOfMemory(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	noisy := func(slope, noise float64) []sample {
		return series(func(hour float64, _ int) float64 { return 100<<20 + slope*hour + random.NormFloat64()*noise })
	}
	for name, test := range map[string]struct {
		samples []sample
		says    string
	}{
		"flat":                                 {noisy(0, 2<<20), "flat"},
		"growing by less than the limit":       {noisy(mostHeap/2, 2<<20), "flat"},
		"growing by nearly the limit":          {noisy(mostHeap-1<<20, 4<<20), "inconclusive: it may grow by"},
		"shrinking":                            {noisy(-5*mostHeap, 2<<20), "flat"},
		"leaking":                              {noisy(2*mostHeap, 2<<20), "grows"},
		"leaking, of which noise hides little": {noisy(10*mostHeap, 40<<20), "grows"},
		"flat, too noisy to tell":              {noisy(0, 40<<20), "inconclusive: it may grow by"},
		"leaking, too noisy to tell":           {noisy(2*mostHeap, 80<<20), "inconclusive: it may grow by"},
		"too short":                            {noisy(0, 0)[:25], "inconclusive: 12m0s is less"},
		"too short, although it grows":         {noisy(10*mostHeap, 0)[:25], "inconclusive: 12m0s is less"},
		"two samples":                          {noisy(0, 0)[:2], "inconclusive"},
		"nothing":                              {nil, "inconclusive"},
	} {
		got := fit(test.samples, sample.ofHeap)
		if says, ok := got.verdict(mostHeap); !strings.HasPrefix(says, test.says) || ok != (test.says == "flat") {
			t.Errorf("%s: %q (%t), want %q (%s)", name, says, ok, test.says, got)
		}
	}
}

// TestLongLivesAreJudged has lives as a long run has them, and says who is judged by
// which samples.
func TestLongLivesAreJudged(t *testing.T) {
	const kept, other, young = localcluster.APIServer, localcluster.Scheduler, localcluster.ControllerManager
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// Every process grows much until it has settled.
	lived := func(pid int, from, until time.Duration, slope float64) *life {
		l := &life{process: process.Process{PID: pid}}
		for at := from; at <= until; at += 30 * time.Second {
			held := 100<<20 + min((at-from).Hours(), settling.Hours())*(900<<20) + at.Hours()*slope
			l.samples = append(l.samples, sample{at: begin.Add(at), heap: held, resident: held, own: held})
		}
		return l
	}
	w := &world{settings: settings{duration: 2 * time.Hour}, servers: []server{{name: kept}}}
	m := newMemory(w)
	m.since = begin.Add(time.Hour)
	verdicts := func() []string {
		var all []string
		judged, short := m.judged()
		for _, j := range judged {
			says, _ := j.trend.verdict(j.limit)
			all = append(all, j.what+" "+says)
		}
		for _, name := range short {
			all = append(all, name+" has no trend")
		}
		return all
	}
	flat := []string{"the heap of " + kept + " flat", "the own resident memory of " + kept + " flat"}
	m.lives = map[string][]*life{
		// One that was restarted at half time, one of which most was before that, and
		// those that never lived for long.
		kept:  {lived(1, 0, 59*time.Minute, 0), lived(2, 59*time.Minute, 2*time.Hour, 0)},
		other: {lived(3, 0, 70*time.Minute, 90<<20), lived(4, 70*time.Minute, 2*time.Hour, 0)},
		young: {lived(5, 0, time.Hour, 90<<20), lived(6, time.Hour, 89*time.Minute, 90<<20)},
	}
	if got, want := verdicts(), append(slices.Clone(flat), "the heap of "+other+" flat", "the own resident memory of "+other+" flat", young+" has no trend"); !slices.Equal(got, want) {
		t.Errorf("judged are %q, want %q", got, want)
	}
	m.lives[other][1] = lived(4, 70*time.Minute, 2*time.Hour, 90<<20)
	if got, want := verdicts(), append(slices.Clone(flat), "the heap of "+other+" grows", "the own resident memory of "+other+" grows", young+" has no trend"); !slices.Equal(got, want) {
		t.Errorf("judged are %q, want %q", got, want)
	}
	for i := range m.lives[other][1].samples {
		m.lives[other][1].samples[i].heap = 0
	}
	if got, want := verdicts(), append(slices.Clone(flat), "the own resident memory of "+other+" grows", young+" has no trend"); !slices.Equal(got, want) {
		t.Errorf("judged are %q of one that does not tell its heap, want %q", got, want)
	}
	m.lives = map[string][]*life{kept: {lived(1, 0, 65*time.Minute, 0)}}
	if got := verdicts(); len(got) != 2 || !strings.Contains(got[0], "inconclusive") || !strings.Contains(got[1], "inconclusive") {
		t.Errorf("a server without samples is judged: %q", got)
	}
}

func TestProfilesAndMetricsAreUnderstood(t *testing.T) {
	const profile = `goroutine profile: total 7
4 @ 0x1 0x2
#	0x1	net/http.(*conn).serve+0x1	/go/src/net/http/server.go:1

2 @ 0x1 0x3
#	0x1	time.Sleep+0x1	/go/src/runtime/time.go:1
#	0x3	k8s.io/feature-lifecycle/agent.(*Reporter).Run+0x3	/src/agent/reporter.go:1

1 @ 0x1 0x4
#	0x4	k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane.start+0x4	/src/cmd/kube-apiserver/controlplane/lifecycle.go:1
`
	origins := map[string]int{}
	if all, ours := countGoroutines(profile, origins); all != 7 || ours != 3 {
		t.Errorf("%d goroutines, %d ours; want 7 and 3", all, ours)
	}
	want := map[string]int{"net/http.(*conn).serve": 4, "k8s.io/feature-lifecycle/agent.(*Reporter).Run": 2, "k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane.start": 1}
	if !maps.Equal(origins, want) {
		t.Errorf("goroutines began with %v, want %v", origins, want)
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

// TestGoroutinesThatStayAreLeftOver: some of one kind more than before, few enough to be
// within what connections may add.
func TestGoroutinesThatStayAreLeftOver(t *testing.T) {
	w := &world{people: &population{}, stats: newStats()}
	look := func(origins map[string]int) *snapshot {
		return &snapshot{features: map[string]int{}, processes: map[string]usage{"server": {goroutines: 1000, origins: origins}}}
	}
	before := look(map[string]int{"net/http.(*conn).serve": 3, "k8s.io/client-go/tools/cache.(*Reflector).Run": 4})
	for what, test := range map[string]struct {
		after map[string]int
		left  int
	}{
		"connections":               {map[string]int{"net/http.(*conn).serve": 40, "k8s.io/client-go/tools/cache.(*Reflector).Run": 4}, 0},
		"requests under way":        {map[string]int{"k8s.io/client-go/tools/cache.(*Reflector).Run": 4 + underWay}, 0},
		"reflectors that were left": {map[string]int{"k8s.io/client-go/tools/cache.(*Reflector).Run": 4 + underWay + 1}, 1},
		"another kind":              {map[string]int{"time.goFunc": underWay + 1}, 1},
	} {
		if left := w.leftovers(before, look(test.after)); len(left["goroutines of one kind"]) != test.left || len(left) != test.left {
			t.Errorf("%s: left over are %q, want %d", what, left, test.left)
		}
	}
}

// TestFeaturesThatGrowAreLeftOver: a Feature says more after it was used, but not ever more.
func TestFeaturesThatGrowAreLeftOver(t *testing.T) {
	w := &world{people: &population{}, stats: newStats()}
	before := &snapshot{features: map[string]int{"A": 3000, "B": 3000}}
	after := &snapshot{features: map[string]int{"A": 3000 + saysMore, "B": 3000 + saysMore + 1}}
	if left := w.leftovers(before, after); len(left) != 1 || len(left["bytes of Features"]) != 1 || !strings.Contains(left["bytes of Features"][0], "B has") {
		t.Errorf("left over are %q, want B", left)
	}
}

// TestResidentMemoryReported of a process that takes some.
func TestResidentMemoryReported(t *testing.T) {
	const taken = 64 << 20
	_, before, err := residentSize(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	held, err := unix.Mmap(-1, 0, taken, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(held); err != nil {
			t.Error(err)
		}
	}()
	for i := range held {
		held[i] = 1
	}
	resident, own, err := residentSize(os.Getpid())
	if err != nil || own-before < taken/2 || own >= resident {
		t.Errorf("with %d bytes more the own memory goes from %.0f to %.0f of %.0f: %v", taken, before, own, resident, err)
	}
}
