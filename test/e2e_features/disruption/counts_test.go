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
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// happening is something without which a run says little.
type happening struct {
	what string
	// every is the time in which it has to happen once, on the whole. It is several
	// times what it usually takes, and longer than a short run for what such a
	// run may miss.
	every time.Duration
}

// happenings are what drivers count, each once at least, and transitions.
var happenings = []happening{
	{"crashes of " + localcluster.APIServer, 15 * time.Minute},
	{"crashes of etcd", 5 * time.Minute},
	{"compactions", 2 * time.Minute},
	{"defragmentations", 5 * time.Minute},
	{"flips through the API", time.Minute},
	{"canaries", 5 * time.Minute},
	{"pauses", 5 * time.Minute},
	{"nodes added", 2 * time.Minute},
	{"nodes removed", 5 * time.Minute},
	{"reporters started", time.Minute},
	{"reporters crashed", 5 * time.Minute},
	{"objects created", time.Minute},
	{"objects deleted", time.Minute},
	{observed, 5 * time.Minute},
	{rests, 10 * time.Minute},
	{outcomePrefix + "done", time.Second},
	{frozen, 2 * time.Minute},
	// From a third of a run on servers disagree for a while instead.
	{"flips by command line", 10 * time.Minute},
	{"servers that disagreed for a while", 15 * time.Minute},
	{staticTransitions, 15 * time.Minute},
	{dynamicTransitions, 5 * time.Minute},
	{cleared, 15 * time.Minute},
}

// What is not counted under the name that it has in happenings.
const (
	frozen             = "freezes"
	staticTransitions  = "transitions of the feature of the command line"
	dynamicTransitions = "transitions of each of the others"
	cleared            = "StatefulSets cleared"
)

// idle names what happened too rarely in a run of a length for it to say something: a
// driver that only ever found a reason to do nothing would go unnoticed otherwise.
func idle(duration time.Duration, happened func(what string) int) []string {
	var rare []string
	for _, h := range happenings {
		if least := int(duration / h.every); happened(h.what) < least {
			rare = append(rare, fmt.Sprintf("%s: %d, want %d and more in %s", h.what, happened(h.what), least, duration))
		}
	}
	return rare
}

// happened is how often something of happenings was.
func (w *world) happened(what string) int {
	w.stats.mu.Lock()
	defer w.stats.mu.Unlock()
	switch what {
	case frozen:
		n := 0
		for counted, of := range w.stats.counts {
			if strings.HasPrefix(counted, "freezes of ") {
				n += of
			}
		}
		return n
	case staticTransitions:
		return w.stats.transitions[static]
	case dynamicTransitions:
		least := w.stats.transitions[dynamics[0]]
		for _, name := range dynamics {
			least = min(least, w.stats.transitions[name])
		}
		return least
	case cleared:
		return w.clearings.cleared
	default:
		return w.stats.counts[what]
	}
}

func TestEachKindDealtBeforeRepetition(t *testing.T) {
	random, d := rand.New(rand.NewPCG(5, 6)), deck{}
	for range 10 {
		dealt := map[int]bool{}
		for range 8 {
			dealt[d.deal(random, 8)] = true
		}
		if len(dealt) != 8 {
			t.Errorf("of 8 numbers %d were dealt in a round", len(dealt))
		}
	}
}

func TestL2IsSeldomMissed(t *testing.T) {
	for _, test := range []struct {
		pauses, late int
		want         bool
	}{{0, 0, true}, {3, 1, true}, {3, 2, false}, {25, 5, true}, {25, 6, false}} {
		if says := often(test.pauses, test.late); (says == "") != test.want {
			t.Errorf("%d of %d pauses were late: %q", test.late, test.pauses, says)
		}
	}
}

func TestARunInWhichNothingHappenedFails(t *testing.T) {
	counts := map[string]int{}
	for _, h := range happenings {
		counts[h.what] = int(2 * time.Hour / h.every)
	}
	happened := func(what string) int { return counts[what] }
	if rare := idle(2*time.Hour, happened); len(rare) > 0 {
		t.Errorf("everything happened, and there are complaints: %q", rare)
	}
	for what := range counts {
		counts[what]--
		if rare := idle(2*time.Hour, happened); len(rare) != 1 || !strings.HasPrefix(rare[0], what+": ") {
			t.Errorf("complaints are %q, want one of %s", rare, what)
		}
		counts[what]++
	}
	rare := idle(shortest, func(string) int { return 0 })
	if !slices.ContainsFunc(rare, func(text string) bool { return strings.HasPrefix(text, "crashes of etcd: 0, want 1 ") }) {
		t.Errorf("complaints of a short run are %q, want one of etcd's crashes", rare)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// table is all that happened.
func (w *world) table() string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(what, format string, args ...any) { fmt.Fprintf(out, what+"\t "+format+"\n", args...) }
	row("faults lasted", "%s, SOAK_SEED=%d", w.duration, w.seed)
	s := w.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, what := range sortedKeys(s.counts) {
		row(what, "%d", s.counts[what])
	}
	for _, feature := range sortedKeys(s.transitions) {
		row("transitions of "+feature, "%d", s.transitions[feature])
	}
	row("StatefulSets cleared", "%d, of which %d after the transition had been called off", w.clearings.cleared, w.clearings.late)
	row("versions of Features that a compaction hid", "%d", s.missed.Load())
	row("longest until states were as configured (L2)", "%.1f s", s.longest.Seconds())
	row("longest until uses were right", "%.1f s", s.right.Seconds())
	w.memory.table(row)
	if s.leftovers != nil {
		row("reports of crashed reporters that are kept for an hour", "%d", s.retained)
	}
	switch {
	case s.leftovers == nil:
		row("left over", "not looked: the run failed before")
	case len(s.leftovers) == 0:
		row("left over: goroutines, watches, leases, files, objects", "0, as these are compared:")
	}
	for _, kind := range sortedKeys(s.surplus) {
		row(kind+" in the end", "%s", s.surplus[kind])
	}
	for _, kind := range sortedKeys(s.leftovers) {
		row("left over: "+kind, "%d", len(s.leftovers[kind]))
	}
	_ = out.Flush()
	return text.String()
}
