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

// with are the rounds in which a method ran.
func (c collection) with(name string) []round {
	return slices.DeleteFunc(slices.Clone(c.rounds), func(one round) bool {
		_, found := one.of(name)
		return !found
	})
}

// compare makes budgets and limits.
func compare(r *result.Result, all []collection) {
	for _, c := range all {
		of := fmt.Sprintf("%s %s", result.Format(float64(c.objects)), c.kind.name)
		budget := func(text, compare string, target float64, s measure.Spread, how string) {
			b := result.Budget{Text: text + ", " + of, Compare: compare, Target: target, Measured: s.Median, Unit: "×", How: how}
			if b.Once = s.Low == s.High; !b.Once {
				b.Low, b.High = s.Low, s.High
			}
			r.Budgets = append(r.Budgets, b)
		}
		steady := func(ours, other run) float64 { return ours.steady() / other.steady() }
		s, how := ratios(c.rounds, "both while writing, the plain client as it was the fastest", steady, round.best)
		budget("rate of the plain patch client", result.AtLeast, 0.9, s, how)
		if rounds := c.with(migrator.name); len(rounds) > 0 {
			peer := func(one round) run { found, _ := one.of(migrator.name); return found }
			s, how := ratios(rounds, "both while writing", steady, peer)
			budget("rate of the migrator", result.AtLeast, 2, s, how)
			s, how = ratios(rounds, "both from the request until all is done", func(ours, other run) float64 { return ours.whole() / other.whole() }, peer)
			budget("rate of the migrator from the request", result.AtLeast, 5, s, how)
			s, how = ratios(rounds, "both while writing", func(ours, other run) float64 { return ours.p99() / other.p99() }, peer)
			budget("p99 of other clients, of that beside the migrator", result.Below, 1, s, how)
		}
		limit := "patches of a client that does nothing else, " + of
		if len(c.rounds) > 1 {
			// Budgets have the median of ratios instead.
			limit += ", medians of both"
		}
		r.Limits = append(r.Limits, result.Limit{
			Text:  limit,
			Limit: measure.SpreadBy(c.rounds, func(one round) float64 { return one.best().steady() }).Median, Ours: median(c.of(ours.name), run.steady), Unit: "objects/s",
		})
	}
	growth(r, all)
}

// heapAllowed is by how many MiB kube-apiserver's live heap may grow more with the number of
// objects than it does under the plain client. A small object takes 4.7 kB when it is
// decoded, 100,000 that are held once some 450 MiB, and 30,000 of 20 KiB more: who keeps a
// ninth of them is found.
// residentAllowed is that of resident memory: Go's collector lets as much garbage come as there
// is alive.
const heapAllowed, residentAllowed = 50, 2 * heapAllowed

// growth bounds how much more memory clearing needs because there are more objects.
func growth(r *result.Result, all []collection) {
	if len(all) < 2 {
		return
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b collection) int { return cmp.Compare(a.objects, b.objects) })
	flat(r, all, "live heap", heapAllowed, all[0].kind.held, run.alive)
	flat(r, all, "resident memory", residentAllowed, "Go's collector lets as much garbage come as there is alive", run.resident)
}

// flat bounds how much farther a figure of memory is above the plain client's with more objects
// than with the fewest, wherever that is most.
func flat(r *result.Result, all []collection, what string, allowed float64, why string, figure func(run) float64) {
	more := func(c collection) measure.Spread {
		return measure.SpreadBy(c.rounds, func(one round) float64 {
			our, _ := one.of(ours.name)
			return figure(our) - figure(one.best())
		})
	}
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
		Text:    fmt.Sprintf("%s flat from %s to %s %s", what, result.Format(float64(all[0].objects)), result.Format(float64(all[len(all)-1].objects)), all[0].kind.name),
		Compare: result.AtMost, Target: allowed, Measured: most.Median - fewest.Median, Unit: "MiB",
		How: fmt.Sprintf("by how much kube-apiserver's %s at its highest is above that under the plain client: %s; the most with more objects, less that with the fewest. %s", what, strings.Join(said, ", "), why),
	}
	low, high := most.Low-fewest.High, most.High-fewest.Low
	if b.Once = low == high; !b.Once {
		b.Low, b.High = low, high
	}
	r.Budgets = append(r.Budgets, b)
}
