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
	"fmt"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// report makes tables, charts and budgets of all runs.
func report(f *found, o Options) *result.Result {
	r := &result.Result{
		Question: fmt.Sprintf("How fast is a field cleared from all %s of a collection by turning its gate off, what memory does kube-apiserver need for that, and what do other clients notice?", o.kind.name),
		Peer: fmt.Sprintf("the in-tree storage version migrator, which rewrites all objects of a resource and with which one would build a clean-up otherwise; "+
			"a client that lists and patches with %s workers and does nothing else, of which the fastest counts: the best that is reached through the API; "+
			"and a program that does nothing but write the same bytes into etcd, guarded by their revisions: the best that storage takes. All on the same kube-apiserver and etcd, one after the other.", either(o.Workers)),
		Method: described(o),
	}
	all := collections(f.rounds)
	table := targetTable(r)
	rates(r, all)
	others(r, all)
	memory(r, all)
	saturation(r, all[0], f.sweep)
	compare(r, table, all)
	counting(r, table, f.counts)
	return r
}

// either is "4 or 16".
func either(numbers []int) string {
	var all []string
	for _, n := range numbers {
		all = append(all, result.Format(float64(n)))
	}
	return strings.Join(all, " or ")
}

// described returns how all was measured.
func described(o Options) []string {
	all := []string{
		fmt.Sprintf("Objects are copies of one that was created through the API, each with its own name and uid, written into etcd as the server stored it, but as %s: else the migrator would find nothing to rewrite. "+
			"Every method begins with the same objects, all of which have the field, in a database that was compacted and defragmented.", oldVersion),
		fmt.Sprintf("Repetitions of all methods with %s objects: %d, in an order that rotates; what is compared are runs of the same repetition, and figures are medians. "+
			"With other numbers each runs once, since the migrator alone takes many minutes, and the plain client with the number of workers that was the fastest with the fewest.", result.Format(float64(o.Sizes[0])), o.Repetitions),
		"All write with a kube-apiserver that has just started with the gate off. For turning the gate off this start is a part of what is measured; the others begin when the server has become quiet. A request to the migrator is a StorageVersionMigration, with a controller manager that was started again, too, and has its caches filled.",
		fmt.Sprintf("The rate while writing is that between %.0f %% and %.0f %% of the objects, as a watch of etcd shows their writes, and so is kube-apiserver's processor time for an object, beyond what it uses at rest with the requests of other clients; the rate from the request counts all: the restart, waiting for uses, and a last look that nothing has the field.", 100*from, 100*to),
		fmt.Sprintf("Other clients send %s requests a second all the time, the same number whatever happens: GET, LIST of 20 ConfigMaps and PATCH in turn. Latency counts from when a request was due.", result.Format(o.Rate)),
		"Patches, the plain client's and those of clearing, ask for the metadata of objects alone. Afterwards every stored object is read from etcd: none may have the field, or be of the old version.",
	}
	all = append(all,
		fmt.Sprintf("Guarded writes of etcd alone read pages of %d objects and write each as it is, with transactions that compare the revisions they were read at: %d under way with one key each, or %d with up to %d keys, as many as fit into a request. Kube-apiserver and its watch cache follow, as they do when it writes itself.",
			plainPage, keysUnderWay, transactionsUnderWay, mostKeys),
		"Turning the gate off clears in storage, which is kube-apiserver's default, and once more with --feature-clear-through=API by patches.",
		"The heap at rest is that before the request, after a collection of garbage; for turning the gate off that is before the restart.")
	if o.Counted > 0 {
		all = append(all, "Counting leftovers is what kube-apiserver does after a start with the gate off, for all features that are off together. Its processor time until it is quiet is less that of a start without the server flow, and less that difference with one object. "+
			"The controller manager does not run. Less than a tick of 10 ms is a tick.")
	}
	if o.Touch {
		all = append(all, "A StatefulSet of another namespace is written every second, as users of a busy cluster do: without that the migrator waits up to a minute and a half before its first write, until a bookmark comes.")
	}
	if o.kind.bytes > 0 {
		all = append(all, "100,000 objects of 20 KiB do not fit into 24 GiB: kube-apiserver and the controller manager keep all of them decoded, and the former what they were before, too. "+
			"In runs with 4,000 of them each took 0.22 and 0.09 MiB of their resident memory.")
	}
	return all
}

// chart adds a chart of a figure against the number of objects.
func chart(r *result.Result, name, title string, y result.Axis, all []collection, figure func(run) float64) {
	drawn := r.AddChart(name, title+", "+all[0].kind.name, result.LogAxis("objects", ""), y)
	for _, series := range []struct {
		name string
		role result.Role
		pick func(round) (run, bool)
	}{
		{ours.name, result.Ours, func(one round) (run, bool) { return one.of(ours.name) }},
		{migrator.name, result.Peer, func(one round) (run, bool) { return one.of(migrator.name) }},
		{"patch client at its fastest", result.Bound, func(one round) (run, bool) { return one.best(), true }},
	} {
		for _, c := range all {
			var figures []float64
			for _, one := range c.rounds {
				if picked, ok := series.pick(one); ok {
					figures = append(figures, figure(picked))
				}
			}
			if len(figures) > 0 {
				drawn.Add(series.name, series.role, point(float64(c.objects), figures))
			}
		}
	}
}

// point shows how far figures reach when there are several.
func point(x float64, figures []float64) result.Point {
	s := measure.SpreadOf(figures...)
	p := result.Point{X: x, Y: s.Median}
	if len(figures) > 1 {
		p.Low, p.High = s.Low, s.High
	}
	return p
}

// median is that of a figure of runs.
func median(runs []run, figure func(run) float64) float64 {
	return measure.SpreadBy(runs, figure).Median
}

func rates(r *result.Result, all []collection) {
	table := r.AddTable("Rates",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"}, result.Column{Name: "runs"},
		result.Column{Name: "while writing", Unit: "objects/s"}, result.Column{Name: "lowest", Unit: "objects/s"}, result.Column{Name: "highest", Unit: "objects/s"},
		result.Column{Name: "from the request", Unit: "objects/s"},
		result.Column{Name: "from request to done", Unit: "s"}, result.Column{Name: "before writing", Unit: "s"}, result.Column{Name: "of that a restart", Unit: "s"}, result.Column{Name: "writing", Unit: "s"},
		result.Column{Name: "kube-apiserver while writing", Unit: "ms of processor per object"}, result.Column{Name: "and from request to done", Unit: "ms of processor per object"})
	table.Note = "Medians, with the lowest and the highest rate while writing."
	for _, c := range all {
		for _, runs := range c.byMethod() {
			steady := measure.SpreadBy(runs, run.steady)
			table.AddRow(c.objects, runs[0].bytes, runs[0].method.name, len(runs), steady.Median, steady.Low, steady.High, median(runs, run.whole),
				median(runs, func(r run) float64 { return r.total.Seconds() }), median(runs, func(r run) float64 { return r.waited.Seconds() }),
				median(runs, func(r run) float64 { return r.unready.Seconds() }), median(runs, func(r run) float64 { return r.curve.to.Sub(r.curve.from).Seconds() }),
				median(runs, run.perObject), median(runs, run.wholePerObject))
		}
	}
	chart(r, "rate", "Objects written in a second", result.Axis{Label: "rate while writing", Unit: "objects/s"}, all, run.steady)
	chart(r, "whole", "Objects in a second from the request until all is done", result.Axis{Label: "rate from the request", Unit: "objects/s"}, all, run.whole)
}

func others(r *result.Result, all []collection) {
	table := r.AddTable("What other clients notice while objects are written",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"},
		result.Column{Name: "p50 at rest", Unit: "ms"}, result.Column{Name: "p99 at rest", Unit: "ms"},
		result.Column{Name: "p50", Unit: "ms"}, result.Column{Name: "p99", Unit: "ms"}, result.Column{Name: "lowest p99", Unit: "ms"}, result.Column{Name: "highest p99", Unit: "ms"}, result.Column{Name: "longest", Unit: "ms"},
		result.Column{Name: "requests"}, result.Column{Name: "failed"}, result.Column{Name: "429"},
		result.Column{Name: "p99 from request to done", Unit: "ms"}, result.Column{Name: "failed in that time"})
	table.Note = "Medians of the percentiles of each run; the longest and the counts are of all runs together. From the request to done there is also, for turning the gate off, the restart of the only kube-apiserver, in which requests fail or wait; one that fails counts as having waited for 30 s, so that with more than 1 % of them that is the p99. And there are " +
		"the look for what is to be cleared and the look that nothing is left; for the migrator, its wait before the first write."
	for _, c := range all {
		for _, runs := range c.byMethod() {
			p99 := measure.SpreadBy(runs, run.p99)
			requests, failed, refused, failedInAll := 0, 0, 0, 0
			for _, one := range runs {
				requests, failed, refused = requests+one.during.All.Count(), failed+one.during.Failed(), refused+one.during.Codes["429"]
				failedInAll += one.all.Failed()
			}
			table.AddRow(c.objects, runs[0].bytes, runs[0].method.name,
				median(runs, func(r run) float64 { return measure.Milliseconds(r.rest.All.Percentile(50)) }), median(runs, func(r run) float64 { return measure.Milliseconds(r.rest.All.Percentile(99)) }),
				median(runs, func(r run) float64 { return measure.Milliseconds(r.during.All.Percentile(50)) }), p99.Median, p99.Low, p99.High,
				measure.SpreadBy(runs, func(r run) float64 { return measure.Milliseconds(r.during.All.Max()) }).High, requests, failed, refused,
				median(runs, func(r run) float64 { return measure.Milliseconds(r.all.All.Percentile(99)) }), failedInAll)
		}
	}
	chart(r, "others", "Latency of other clients' requests while objects are written", result.Axis{Label: "p99 of latency", Unit: "ms"}, all, run.p99)
}

func memory(r *result.Result, all []collection) {
	table := r.AddTable("Memory, from kube-apiserver's start until all is done",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"},
		result.Column{Name: "kube-apiserver's heap alive at its highest", Unit: "MiB"}, result.Column{Name: "lowest", Unit: "MiB"}, result.Column{Name: "highest", Unit: "MiB"},
		result.Column{Name: "its resident memory at its highest", Unit: "MiB"},
		result.Column{Name: "past events that its watch cache has room for"}, result.Column{Name: "controller manager at its highest", Unit: "MiB"}, result.Column{Name: "etcd's file", Unit: "MiB"})
	table.Note = "Medians. The window is the same for all: kube-apiserver has just started again with the gate off, fills its caches, and writes. The heap is what a collection of garbage found alive, " +
		"asked every 5 s: between two of them the heap grows to twice that, and resident memory, whose peak the kernel keeps, with it, by when they happen to come. " +
		"kube-apiserver keeps all objects in its watch cache, whatever the method, and past events with the objects before them: room for them doubles when it fills within 75 s, so that the faster writer may need more."
	for _, c := range all {
		for _, runs := range c.byMethod() {
			alive := measure.SpreadBy(runs, run.alive)
			table.AddRow(c.objects, runs[0].bytes, runs[0].method.name, alive.Median, alive.Low, alive.High,
				median(runs, run.resident), median(runs, func(r run) float64 { return r.history }),
				median(runs, func(r run) float64 { return measure.Mebibytes(r.manager.RSSPeak) }), median(runs, func(r run) float64 { return measure.Mebibytes(r.database) }))
		}
	}
	chart(r, "memory", "Heap of kube-apiserver", result.Axis{Label: "alive at its highest", Unit: "MiB"}, all, run.alive)
}

// saturation shows what more workers bring, with the first collection.
func saturation(r *result.Result, c collection, sweep []run) {
	table := r.AddTable(fmt.Sprintf("Where patches saturate, with %s %s", result.Format(float64(c.objects)), c.kind.name),
		result.Column{Name: "workers"}, result.Column{Name: "runs"}, result.Column{Name: "rate", Unit: "objects/s"}, result.Column{Name: "p99 of others", Unit: "ms"})
	drawn := r.AddChart("workers", "Patches in a second by workers", result.LogAxis("concurrent patches", ""), result.Axis{Label: "rate while writing", Unit: "objects/s"})
	groups := c.byMethod()
	for _, one := range sweep {
		groups = append(groups, []run{one})
	}
	slices.SortStableFunc(groups, func(a, b []run) int { return a[0].method.workers - b[0].method.workers })
	rates := func(runs []run) (all []float64) {
		for _, one := range runs {
			all = append(all, one.steady())
		}
		return all
	}
	for _, runs := range groups {
		if workers := runs[0].method.workers; workers > 0 {
			table.AddRow(workers, len(runs), median(runs, run.steady), median(runs, run.p99))
			drawn.Add("patch client", result.Bound, point(float64(workers), rates(runs)))
		}
	}
	// Clearing finds the number itself; it is shown beside the fastest client.
	drawn.Add(ours.name, result.Ours, point(float64(fastest(c.rounds)), rates(c.of(ours.name))))
}
