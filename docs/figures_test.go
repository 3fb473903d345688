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

package docs

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

const (
	kep     = "docs/keps/3920-finish-feature-flags/README.md"
	scale   = "docs/contributors/scale.md"
	changes = "CHANGELOG.md"

	follows   = "followers of a dynamic feature"
	informers = "informers of a ConfigMap"
	clearing  = "turning the gate off"
	migrator  = "storage version migrator"
)

// TestProseMatchesMeasurements: pages quote figures of recorded results. When a benchmark
// is run again, they are to be changed with it.
func TestProseMatchesMeasurements(t *testing.T) {
	measured := results{t: t, known: map[string]*result.Result{}}
	storm := func(writes, column string) float64 {
		return measured.cell("reporters", "All processes start at once", column, "10,000", writes)
	}
	all := func(column string) float64 {
		return measured.cell("reporters", "All processes start at once", column, "30,000", "reports")
	}
	start := func(kind, column string) float64 {
		return measured.cell("start", "From the start of the process", column, kind, "this repository's")
	}
	begin := func(who, column string) float64 {
		return measured.cell("flip", "What watchers cost once they watch", column, "10,000", who)
	}
	change := func(who, column string) float64 {
		return measured.cell("flip", "What a change costs", column, "10,000", who)
	}
	after := func(column string) float64 {
		return measured.cell("flip", "What follows a flip", column, "10,000")
	}
	last := func(processes string) float64 {
		return measured.cell("flip", "From the request until watchers have the value", "last", processes, follows) / 1000
	}
	slowest := func(text string) float64 { return measured.budget("flip", text) }
	const p99 = "p99 of other clients"
	for _, quote := range []struct {
		page, phrase string
		figures      []float64
	}{
		{kep, "all start at once, two minutes | %.1f s | ConfigMaps of the same content: %.0f s", []float64{storm("reports", p99) / 1000, storm("ConfigMaps", p99) / 1000}},
		{kep, "all are restarted, 200 at a time, five minutes | %.1f s", []float64{measured.cell("reporters", "All processes are restarted", p99, "10,000", "reports") / 1000}},
		{kep, "all begin to follow a dynamic feature at once, a minute | %.1f s | informers of a ConfigMap: %.1f s", []float64{begin(follows, p99) / 1000, begin(informers, p99) / 1000}},
		{kep, "a dynamic value changes, 5 s | %.1f s | informers of a ConfigMap, which report nothing: %.1f s", []float64{change(follows, p99) / 1000, change(informers, p99) / 1000}},
		{kep, "they report it, a minute | %.1f s", []float64{after("p99 of other clients from 5s on until the transition ended") / 1000}},
		{kep, "their reports are %.1f MiB in etcd, and decoded and indexed in kube-apiserver %.0f MiB", []float64{measured.cell("reporters", "What a process costs", "etcd, all reports", "10,000"), measured.cell("reporters", "What a process costs", "live heap, a process", "10,000") * 1e4 / (1 << 20)}},
		{kep, "it was %.0f s in the median of six flips and %.0f s in the slowest", []float64{after("the last report is answered"), slowest("The last of 10,000 processes has reported the value")}},
		{kep, "%.0f s in the median of flips of a Dynamic feature with 10,000 users", []float64{after("the transition ended")}},
		{kep, "it is %.0f MiB more at rest than without the system", []float64{measured.budget("reporters", "More memory in kube-apiserver")}},
		{kep, "CPU time at rest is %.2f cores more than that of a cluster without the system, and %.1f %% of a core more than before", []float64{
			measured.budget("reporters", "Leader at rest"), measured.cell("reporters", "What a process costs", "processor at rest", "10,000"),
		}},
		{kep, "while all start, it has %.0f MiB", []float64{storm("reports", "peak memory")}},
		{kep, "%.2f of upstream's time until it is ready, and %.2f of its CPU time until a first start is quiet, %.2f at a later one", []float64{start("cold", "of upstream's"), start("cold", "processor, of upstream's"), start("warm", "processor, of upstream's")}},
		{kep, "was %.0f ms while %.0f objects were cleared a second, %.0f ms beside the storage version migrator's %.0f objects a second", []float64{
			measured.cell("clear", "What other clients notice", "p99", "10,000", clearing), measured.cell("clear", "Rates", "while writing", "10,000", clearing),
			measured.cell("clear", "What other clients notice", "p99", "10,000", migrator), measured.cell("clear", "Rates", "while writing", "10,000", migrator),
		}},
		{scale, "The watch of one is %.0f KiB of heap and stacks", []float64{begin(follows, "live heap, a watcher") + begin(follows, "stacks, a watcher")}},
		{scale, "A flip sends each of 10,000 some %.0f events until all reports are counted, together %.0f MiB", []float64{after("events to each follower"), after("all events")}},
		{scale, "when 10,000 begin to watch in one second they need %.0f s on two cores", []float64{begin(follows, "until all watch, begun at once")}},
		{scale, "the p99 of others is %.1f s meanwhile; informers of a ConfigMap need %.0f s", []float64{begin(follows, p99) / 1000, begin(informers, "until all watch, begun at once")}},
		{scale, "the last of 1,000 processes has it after %.2f s, of 10,000 after %.1f s", []float64{last("1,000"), last("10,000")}},
		{scale, "All of 10,000 processes are counted after %.0f s", []float64{storm("reports", "until all are counted, or written")}},
		{scale, "on two cores others wait for seconds (p99 %.1f s)", []float64{storm("reports", p99) / 1000}},
		{scale, "30,000 need %.0f s", []float64{all("until all are counted, or written")}},
		{changes, "(p99 %.1f s on two cores while all start)", []float64{storm("reports", p99) / 1000}},
		{changes, "Uses are right %.0f seconds after a flip with 10,000 processes in the median, %.0f in the slowest of six", []float64{after("uses are right"), slowest("Uses of 10,000 processes are right")}},
	} {
		var args []any
		for _, figure := range quote.figures {
			args = append(args, figure)
		}
		want := fmt.Sprintf(quote.phrase, args...)
		if !strings.Contains(strings.Join(strings.Fields(page(t, filepath.Join(root, quote.page))), " "), want) {
			t.Errorf("%s does not say %q, which is what recorded results say", quote.page, want)
		}
	}
}

// results are those in docs/benchmarks, read when they are asked for.
type results struct {
	t     *testing.T
	known map[string]*result.Result
}

func (r results) of(name string) *result.Result {
	r.t.Helper()
	if r.known[name] == nil {
		found, err := result.Read(filepath.Join("benchmarks", name+".json"))
		if err != nil {
			r.t.Fatal(err)
		}
		r.known[name] = found
	}
	return r.known[name]
}

// cell is the figure in a column of the first row that begins with, or has further on,
// what is in keys, in their order.
func (r results) cell(name, title, column string, keys ...string) float64 {
	r.t.Helper()
	for _, table := range r.of(name).Tables {
		if !strings.HasPrefix(table.Title, title) {
			continue
		}
		for _, row := range table.Rows {
			left := keys
			for _, cell := range row {
				if len(left) > 0 && cell.String() == left[0] {
					left = left[1:]
				}
			}
			for i, c := range table.Columns {
				if v, ok := row[i].Value(); ok && c.Name == column && len(left) == 0 {
					return v
				}
			}
		}
	}
	r.t.Fatalf("the recorded result of %s has no figure %q of %v in a table %q", name, column, keys, title)
	return 0
}

// budget is what was measured of one.
func (r results) budget(name, text string) float64 {
	r.t.Helper()
	for _, b := range r.of(name).Budgets {
		if b.Text == text {
			return b.Measured
		}
	}
	r.t.Fatalf("the recorded result of %s has no budget %q", name, text)
	return 0
}
