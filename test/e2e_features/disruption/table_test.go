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
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

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
