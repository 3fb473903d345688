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

package clear

import (
	"fmt"
	"slices"

	"k8s.io/kubernetes-features/test/scale/measure"
	"k8s.io/kubernetes-features/test/scale/result"
)

// report makes tables, charts and budgets of all runs.
func report(runs []run, o Options) *result.Result {
	r := &result.Result{
		Question: "How fast is a field cleared from all objects of a collection by turning its gate off, what memory does kube-apiserver need for that, and what do other users notice?",
		Peer: "the in-tree storage version migrator, which rewrites all objects of a resource and with which one would build a clean-up otherwise; " +
			"and a client that lists and patches with 16 workers and does nothing else, which is the best that can be reached through the API. All on the same kube-apiserver and etcd, one after the other.",
		Method: []string{
			fmt.Sprintf("Objects are copies of one that was created through the API, each with its own name and uid, written into etcd as the server stored it, but as %s: else the migrator would find nothing to rewrite. "+
				"Every method begins with the same objects, all of which have the field, in a database that was compacted and defragmented, and the order of methods rotates.", oldVersion),
			"The peers begin on a kube-apiserver that has just started with the gate off and become quiet; turning the gate off begins with that restart. A request to the migrator is a StorageVersionMigration, with the controller manager's caches filled.",
			fmt.Sprintf("The rate while writing is that between %.0f %% and %.0f %% of the writes, as etcd's revision shows them; the rate from the request counts all: the restart, waiting for uses, and a last look that nothing has the field.", 100*from, 100*to),
			fmt.Sprintf("Other users send %s requests a second all the time, the same number whatever happens: GET, LIST of 20 ConfigMaps and PATCH in turn. Latency counts from when a request was due.", result.Format(o.Rate)),
			"Afterwards every stored object is read from etcd: none may have the field, or be of the old version.",
		},
	}
	rates(r, runs)
	foreground(r, runs)
	memory(r, runs)
	saturation(r, runs, o)
	compare(r, runs)
	return r
}

// compared are the runs of the methods that are compared, without those that only
// show where the plain client saturates.
func compared(runs []run) []run {
	var all []run
	for _, one := range runs {
		for _, m := range methods() {
			if one.method.name == m.name {
				all = append(all, one)
			}
		}
	}
	return all
}

func rates(r *result.Result, runs []run) {
	table := r.AddTable("Rates",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"},
		result.Column{Name: "while writing", Unit: "objects/s"}, result.Column{Name: "from the request", Unit: "objects/s"},
		result.Column{Name: "from request to done", Unit: "s"}, result.Column{Name: "before writing", Unit: "s"}, result.Column{Name: "of that a restart", Unit: "s"}, result.Column{Name: "writing", Unit: "s"},
		result.Column{Name: "kube-apiserver", Unit: "ms of processor per object"})
	x := result.LogAxis("objects", "")
	writing := r.AddChart("rate", "Small objects written in a second", x, result.Axis{Label: "rate while writing", Unit: "objects/s"})
	whole := r.AddChart("whole", "Small objects in a second, from the request until all is done", x, result.Axis{Label: "rate from the request", Unit: "objects/s"})
	for _, one := range compared(runs) {
		table.AddRow(one.objects, one.bytes, one.method.name, one.steady(), one.whole(), one.total.Seconds(), one.waited.Seconds(), one.unready.Seconds(), one.curve.to.Sub(one.curve.from).Seconds(),
			measure.Milliseconds(one.apiserver.CPU)/float64(one.objects))
		if one.kind.name == kinds[0].name {
			writing.Add(one.method.name, one.method.role, result.Point{X: float64(one.objects), Y: one.steady()})
			whole.Add(one.method.name, one.method.role, result.Point{X: float64(one.objects), Y: one.whole()})
		}
	}
}

func foreground(r *result.Result, runs []run) {
	table := r.AddTable("What other users notice while objects are written",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"},
		result.Column{Name: "p50 at rest", Unit: "ms"}, result.Column{Name: "p99 at rest", Unit: "ms"},
		result.Column{Name: "p50", Unit: "ms"}, result.Column{Name: "p99", Unit: "ms"}, result.Column{Name: "longest", Unit: "ms"},
		result.Column{Name: "requests"}, result.Column{Name: "failed"}, result.Column{Name: "429"})
	chart := r.AddChart("others", "Latency of other users' requests while small objects are written", result.LogAxis("objects", ""), result.Axis{Label: "p99 of latency", Unit: "ms"})
	for _, one := range compared(runs) {
		rest, during := one.rest.All, one.during.All
		table.AddRow(one.objects, one.bytes, one.method.name,
			measure.Milliseconds(rest.Percentile(50)), measure.Milliseconds(rest.Percentile(99)),
			measure.Milliseconds(during.Percentile(50)), measure.Milliseconds(during.Percentile(99)), measure.Milliseconds(during.Max()),
			during.Count(), one.during.Failed(), one.during.Codes["429"])
		if one.kind.name == kinds[0].name {
			chart.Add(one.method.name, one.method.role, result.Point{X: float64(one.objects), Y: measure.Milliseconds(during.Percentile(99))})
		}
	}
}

func memory(r *result.Result, runs []run) {
	table := r.AddTable("Memory, until all is done",
		result.Column{Name: "objects"}, result.Column{Name: "stored", Unit: "bytes each"}, result.Column{Name: "method"},
		result.Column{Name: "kube-apiserver at its highest", Unit: "MiB"}, result.Column{Name: "its heap", Unit: "MiB"}, result.Column{Name: "controller manager at its highest", Unit: "MiB"})
	table.Note = "Resident memory as the kernel keeps its peak; the heap is sampled every 5 s. kube-apiserver keeps all objects in its watch cache, whatever the method."
	chart := r.AddChart("memory", "Peak memory of kube-apiserver, small objects", result.LogAxis("objects", ""), result.Axis{Label: "resident memory at its highest", Unit: "MiB"})
	for _, one := range compared(runs) {
		table.AddRow(one.objects, one.bytes, one.method.name, measure.Mebibytes(one.apiserver.RSSPeak), measure.Mebibytes(one.apiserver.HeapPeak), measure.Mebibytes(one.manager.RSSPeak))
		if one.kind.name == kinds[0].name {
			chart.Add(one.method.name, one.method.role, result.Point{X: float64(one.objects), Y: measure.Mebibytes(one.apiserver.RSSPeak)})
		}
	}
}

// saturation shows what more workers bring.
func saturation(r *result.Result, runs []run, o Options) {
	table := r.AddTable(fmt.Sprintf("Where patches saturate, with %s small objects", result.Format(float64(o.Sizes[0]))),
		result.Column{Name: "workers"}, result.Column{Name: "rate", Unit: "objects/s"}, result.Column{Name: "p99 of others", Unit: "ms"})
	chart := r.AddChart("workers", "Patches in a second by workers", result.LogAxis("concurrent patches", ""), result.Axis{Label: "rate while writing", Unit: "objects/s"})
	for _, workers := range slices.Compact(slices.Sorted(slices.Values(append([]int{clearWorkers}, o.Workers...)))) {
		for _, one := range runs {
			if one.method.name != patching(workers) || one.objects != o.Sizes[0] || one.kind.name != kinds[0].name {
				continue
			}
			table.AddRow(workers, one.steady(), measure.Milliseconds(one.during.All.Percentile(99)))
		}
	}
	for _, row := range table.Rows {
		workers, _ := row[0].Value()
		rate, _ := row[1].Value()
		chart.Add("patch client", result.Bound, result.Point{X: workers, Y: rate})
	}
	for _, one := range compared(runs) {
		if one.method.name == ours && one.objects == o.Sizes[0] && one.kind.name == kinds[0].name {
			chart.Add(ours, result.Ours, result.Point{X: clearWorkers, Y: one.steady()})
		}
	}
}

// trio are the runs of one collection.
type trio struct{ ours, migrator, patches run }

func trios(runs []run) []trio {
	var all []trio
	index := map[string]int{}
	for _, one := range compared(runs) {
		key := fmt.Sprintf("%d %s", one.objects, one.kind.name)
		i, ok := index[key]
		if !ok {
			i, index[key] = len(all), len(all)
			all = append(all, trio{})
		}
		switch one.method.name {
		case ours:
			all[i].ours = one
		case migrator:
			all[i].migrator = one
		default:
			all[i].patches = one
		}
	}
	return all
}

// compare makes budgets and limits.
func compare(r *result.Result, runs []run) {
	budget := func(text, of string, compare string, target, measured float64, how string) {
		r.Budgets = append(r.Budgets, result.Budget{Text: text + ", " + of, Compare: compare, Target: target, Measured: measured, Unit: "×", How: how})
	}
	var first, last *trio
	for _, t := range trios(runs) {
		of := fmt.Sprintf("%s %s", result.Format(float64(t.ours.objects)), t.ours.kind.name)
		budget("rate of the plain patch client", of, result.AtLeast, 0.9, t.ours.steady()/t.patches.steady(), "both while writing")
		budget("rate of the migrator", of, result.AtLeast, 2, t.ours.steady()/t.migrator.steady(), "both while writing")
		budget("rate of the migrator from the request", of, result.AtLeast, 5, t.ours.whole()/t.migrator.whole(), "both from the request until all is done")
		budget("p99 of others under the migrator", of, result.Below, 1, ratioOfP99(t.ours, t.migrator), "both while writing")
		r.Limits = append(r.Limits, result.Limit{Text: "patches of a client that does nothing else, " + of, Limit: t.patches.steady(), Ours: t.ours.steady(), Unit: "objects/s"})
		if t.ours.kind.name == kinds[0].name {
			if first == nil {
				first = &t
			}
			last = &t
		}
	}
	beside := func(t *trio) float64 { return float64(t.ours.apiserver.RSSPeak) / float64(t.patches.apiserver.RSSPeak) }
	budget("memory flat", fmt.Sprintf("from %s to %s objects", result.Format(float64(first.ours.objects)), result.Format(float64(last.ours.objects))), result.AtMost, 1.1, beside(last)/beside(first),
		"kube-apiserver's peak beside its peak under the plain client, with the most objects over the same with the fewest: the watch cache grows with objects under both")
}

func ratioOfP99(ours, peer run) float64 {
	return float64(ours.during.All.Percentile(99)) / float64(peer.during.All.Percentile(99))
}
