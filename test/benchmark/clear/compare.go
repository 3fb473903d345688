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

package clear

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// round are the runs of all methods on one collection, one after the other. The rate of
// a machine changes in minutes, so that only those are compared.
type round []run

// of is the run of a method, if there is one.
func (one round) of(name string) (run, bool) {
	i := slices.IndexFunc(one, func(r run) bool { return r.method.name == name })
	if i < 0 {
		return run{}, false
	}
	return one[i], true
}

// best is the plain client at its fastest.
func (one round) best() run {
	return slices.MaxFunc(one, func(a, b run) int {
		if plain, other := a.method.workers > 0, b.method.workers > 0; plain != other {
			if plain {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.steady(), b.steady())
	})
}

// fastest is the number of workers with which the plain client has the highest median
// of rates.
func fastest(rounds []round) int {
	rates := map[int][]float64{}
	for _, one := range slices.Concat(rounds...) {
		if workers := one.method.workers; workers > 0 {
			rates[workers] = append(rates[workers], one.steady())
		}
	}
	best := 0
	for workers, all := range rates {
		if best == 0 || measure.SpreadOf(all...).Median > measure.SpreadOf(rates[best]...).Median {
			best = workers
		}
	}
	return best
}

// collection are the rounds on the same objects.
type collection struct {
	kind    kind
	objects int
	rounds  []round
}

// collections sorts rounds by what they were run on, in the order of the first ones.
func collections(rounds []round) []collection {
	var all []collection
	for _, one := range rounds {
		n := one[0].objects
		i := slices.IndexFunc(all, func(c collection) bool { return c.objects == n })
		if i < 0 {
			i, all = len(all), append(all, collection{kind: one[0].kind, objects: n})
		}
		all[i].rounds = append(all[i].rounds, one)
	}
	return all
}

// of are the runs of a method, one of each round that has it.
func (c collection) of(name string) []run {
	var all []run
	for _, one := range c.rounds {
		if found, ok := one.of(name); ok {
			all = append(all, found)
		}
	}
	return all
}

// byMethod are the runs of each method: ours, the migrator's, and the plain client's
// by workers.
func (c collection) byMethod() [][]run {
	methods := slices.Clone(c.rounds[0])
	slices.SortFunc(methods, func(a, b run) int {
		return cmp.Or(a.method.workers-b.method.workers, -cmp.Compare(a.method.name, b.method.name))
	})
	var all [][]run
	for _, one := range methods {
		all = append(all, c.of(one.method.name))
	}
	return all
}

// ratios is the spread of the ratios of each round, and how that is said.
func ratios(rounds []round, how string, figure func(ours, other run) float64, other func(round) run) (measure.Spread, string) {
	s := measure.SpreadBy(rounds, func(one round) float64 {
		our, _ := one.of(ours.name)
		return figure(our, other(one))
	})
	if len(rounds) == 1 {
		return s, how + "; one run of each"
	}
	return s, fmt.Sprintf("%s; median, lowest and highest of the ratios of %d repetitions", how, len(rounds))
}

// target is what is wanted of ours beside another method of the same round.
type target struct {
	text string
	// compare is "" for what is only shown.
	compare string
	wanted  float64
	other   func(round) (run, bool)
	figure  func(run) float64
	unit    string
	how     string
}

// targets are those of objects of a kind.
func targets(k kind) []target {
	method := func(name string) func(round) (run, bool) {
		return func(one round) (run, bool) { return one.of(name) }
	}
	plain := func(one round) (run, bool) { return one.best(), true }
	return []target{
		{"rate of the plain patch client", result.AtLeast, k.wanted, plain, run.steady, "objects/s", "both while writing, the plain client as it was the fastest"},
		{"rate of guarded etcd writes, one key per transaction", result.AtLeast, 0.3, method(oneKey.name), run.steady, "objects/s", "both while writing"},
		{"rate of guarded etcd writes, many keys per transaction", "", 0, method(manyKeys.name), run.steady, "objects/s", "both while writing"},
		{"rate of clearing through the API", "", 0, method(throughAPI.name), run.steady, "objects/s", "both while writing"},
		{"rate of clearing through the API from the request", "", 0, method(throughAPI.name), run.whole, "objects/s", "both from the request until all is done"},
		{"rate of the migrator", result.AtLeast, 2, method(migrator.name), run.steady, "objects/s", "both while writing"},
		{"rate of the migrator from the request", result.AtLeast, 10, method(migrator.name), run.whole, "objects/s", "both from the request until all is done"},
		{"kube-apiserver's processor time for an object, of that under the plain patch client", result.AtMost, 0.15, plain, run.perObject, "ms", "both while writing, the plain client as it was the fastest"},
		{"p99 of other clients, of that beside the migrator", result.Below, 1, method(migrator.name), run.p99, "ms", "both while writing"},
	}
}

// targetTable has a row for each target and collection, missed ones among them.
func targetTable(r *result.Result) *result.Table {
	t := r.AddTable("Targets",
		result.Column{Name: "what"}, result.Column{Name: "objects"}, result.Column{Name: "ours"}, result.Column{Name: "beside it"}, result.Column{Name: "unit"},
		result.Column{Name: "ratio"}, result.Column{Name: "wanted"}, result.Column{Name: "verdict"})
	t.Note = "Ours and what is beside it are medians, ratios the median of those of each repetition. Rows without a verdict are shown beside."
	return t
}

// compare fills the table of targets and makes budgets and limits.
func compare(r *result.Result, table *result.Table, all []collection) {
	for _, c := range all {
		for _, t := range targets(c.kind) {
			t.with(r, table, c)
		}
		c.heap(table)
		c.limits(r)
	}
	growth(r, table, all)
}

// with compares ours with the other method in each round that has it.
func (t target) with(r *result.Result, table *result.Table, c collection) {
	rounds := slices.DeleteFunc(slices.Clone(c.rounds), func(one round) bool {
		_, found := t.other(one)
		return !found
	})
	if len(rounds) == 0 {
		return
	}
	other := func(one round) run { found, _ := t.other(one); return found }
	s, how := ratios(rounds, t.how, func(ours, other run) float64 { return t.figure(ours) / t.figure(other) }, other)
	our := measure.SpreadBy(rounds, func(one round) float64 { found, _ := one.of(ours.name); return t.figure(found) })
	beside := measure.SpreadBy(rounds, func(one round) float64 { return t.figure(other(one)) })
	wanted, verdict := "", ""
	if t.compare != "" {
		b := result.Budget{Text: fmt.Sprintf("%s, %s", t.text, c), Compare: t.compare, Target: t.wanted, Measured: s.Median, Unit: "×", How: how}
		if b.Once = s.Low == s.High; !b.Once {
			b.Low, b.High = s.Low, s.High
		}
		r.Budgets = append(r.Budgets, b)
		wanted, verdict = fmt.Sprintf("%s %s ×", t.compare, result.Format(t.wanted)), b.Verdict()
	}
	table.AddRow(t.text, c.objects, our.Median, beside.Median, t.unit, s.Median, wanted, verdict)
}

// String is how many objects of which kind there are.
func (c collection) String() string {
	return fmt.Sprintf("%s %s", result.Format(float64(c.objects)), c.kind.name)
}

// heapRow is what the row of the heap is called.
const heapRow = "kube-apiserver's live heap at its highest, of that at rest"

// heap shows it beside that at rest, which is a target only where there are more objects.
func (c collection) heap(table *result.Table) {
	all := c.of(ours.name)
	alive, rested := median(all, run.alive), median(all, run.restedHeap)
	table.AddRow(heapRow, c.objects, alive, rested, "MiB", measure.SpreadBy(all, func(r run) float64 { return r.alive() / r.restedHeap() }).Median, "", "")
}

// limits are what other programs reach that do nothing else.
func (c collection) limits(r *result.Result) {
	medians := ""
	if len(c.rounds) > 1 {
		// Budgets have the median of ratios instead.
		medians = ", medians of both"
	}
	add := func(text string, limit float64) {
		r.Limits = append(r.Limits, result.Limit{Text: fmt.Sprintf("%s, %s%s", text, c, medians), Limit: limit, Ours: median(c.of(ours.name), run.steady), Unit: "objects/s"})
	}
	add("patches of a client that does nothing else", measure.SpreadBy(c.rounds, func(one round) float64 { return one.best().steady() }).Median)
	for _, m := range []method{oneKey, manyKeys} {
		if all := c.of(m.name); len(all) > 0 {
			add("guarded writes of "+m.name, median(all, run.steady))
		}
	}
}

// counting adds what counting leftovers took.
func counting(r *result.Result, table *result.Table, counts []count) {
	const wanted = 0.1
	for _, c := range counts {
		b := result.Budget{
			Text:    fmt.Sprintf("processor time of counting in storage, of that through the API, %s %s", result.Format(float64(c.objects)), c.what),
			Compare: result.AtMost, Target: wanted, Measured: c.storage.Seconds() / c.api.Seconds(), Unit: "×", Once: true,
			How: "kube-apiserver from its start until it is quiet, beyond a start that counts nothing, and beyond the same with one object; one start of each",
		}
		r.Budgets = append(r.Budgets, b)
		table.AddRow("processor time of counting "+c.what+", of that through the API", c.objects, c.storage.Seconds(), c.api.Seconds(), "s", b.Measured,
			fmt.Sprintf("%s %s ×", b.Compare, result.Format(wanted)), b.Verdict())
	}
}

// heapAllowed is by how many MiB kube-apiserver's live heap may grow more with the number of
// objects than it does under the plain client. A small object takes 4.7 kB when it is
// decoded, 100,000 that are held once some 450 MiB, and 30,000 of 20 KiB more: who keeps a
// ninth of them is found.
// residentAllowed is that of resident memory: Go's collector lets as much garbage come as there
// is alive.
const heapAllowed, residentAllowed = 50, 2 * heapAllowed

// growth bounds how much more memory clearing needs because there are more objects.
func growth(r *result.Result, table *result.Table, all []collection) {
	if len(all) < 2 {
		return
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b collection) int { return cmp.Compare(a.objects, b.objects) })
	const plain = "that under the plain client"
	abovePlain := func(figure func(run) float64) func(round) float64 {
		return func(one round) float64 { our, _ := one.of(ours.name); return figure(our) - figure(one.best()) }
	}
	aboveRest := func(one round) float64 { our, _ := one.of(ours.name); return our.aboveRest() }
	flat(r, table, all, flatness{"live heap above that at rest", "that at rest", heapAllowed, all[0].kind.held, aboveRest})
	flat(r, table, all, flatness{"live heap", plain, heapAllowed, all[0].kind.held, abovePlain(run.alive)})
	flat(r, table, all, flatness{"resident memory", plain, residentAllowed, "Go's collector lets as much garbage come as there is alive", abovePlain(run.resident)})
}

// flatness is a figure of memory that does not grow with the number of objects.
type flatness struct {
	// what is above what.
	what, above string
	allowed     float64
	why         string
	// more is by how much, in MiB.
	more func(round) float64
}

// flat bounds how much farther a figure of memory is above another with more objects than
// with the fewest, wherever that is most.
func flat(r *result.Result, table *result.Table, all []collection, f flatness) {
	more := func(c collection) measure.Spread { return measure.SpreadBy(c.rounds, f.more) }
	fewest := more(all[0])
	most, said := measure.Spread{Median: math.Inf(-1)}, []string(nil)
	for _, c := range all {
		s := more(c)
		said = append(said, fmt.Sprintf("%s MiB with %s", result.Format(s.Median), result.Format(float64(c.objects))))
		if c.objects > all[0].objects && s.Median > most.Median {
			most = s
		}
	}
	b := result.Budget{
		Text:    fmt.Sprintf("%s flat from %s to %s %s", f.what, result.Format(float64(all[0].objects)), result.Format(float64(all[len(all)-1].objects)), all[0].kind.name),
		Compare: result.AtMost, Target: f.allowed, Measured: most.Median - fewest.Median, Unit: "MiB",
		How: fmt.Sprintf("by how much that of kube-apiserver at its highest is above %s: %s; the most with more objects, less that with the fewest. %s", f.above, strings.Join(said, ", "), f.why),
	}
	low, high := most.Low-fewest.High, most.High-fewest.Low
	if b.Once = low == high; !b.Once {
		b.Low, b.High = low, high
	}
	r.Budgets = append(r.Budgets, b)
	ratio := any("")
	if fewest.Median > 0 {
		ratio = most.Median / fewest.Median
	}
	table.AddRow(b.Text, all[len(all)-1].objects, most.Median, fewest.Median, "MiB", ratio, fmt.Sprintf("%s %s MiB more", b.Compare, result.Format(b.Target)), b.Verdict())
}
