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

package reporters

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// describe makes tables, charts and budgets of what was measured. Peers are those of the
// sizes, as far as they were measured.
func describe(options Options, templates map[string]fleet.Template, outcomes, peers []outcome) *result.Result {
	r := &result.Result{
		Question: "What does it cost that every process of a large cluster reports: when all start at once, when all are restarted, and at rest?",
		Peer:     "a ConfigMap in which each process writes the same findings as JSON, with a client as people make it, to a kube-apiserver with FeatureLifecycle=false. That is what people can do without this system; these are neither counted nor deleted, and a process that dies leaves its own behind. What that server does before anybody writes is the baseline: the same nodes, heartbeats and foreground without this system. In the same run.",
		Method: []string{
			fmt.Sprintf("Each node has a kubelet and a kube-proxy. They run the reporter and the follower of values that the real binaries run, with the identity of their node (a kube-proxy's token is bound to it), look which features are set centrally, which none is, and report what a real kubelet and a real kube-proxy reported in the same run: %d and %d features. They share one operating system process, and connections that are open already; real ones have connections anyway.",
				len(templates[fleet.Kubelet].Observations), len(templates[fleet.KubeProxy].Observations)),
			"They share one client certificate, that of a front proxy, which says in each request whose it is: kube-apiserver verifies the certificate with each, as it does for a real kubelet, and checks no token of kube-proxies.",
			"One kube-apiserver, which looks after all features, and one etcd, on the same machine as the processes: what these use of the processors, the server does not get.",
			"Nodes write their status every five minutes, as kubelets do when nothing changes. Leases of nodes, which they renew with or without this system, are left out.",
			fmt.Sprintf("Other clients are played by an ordinary user that sends %v requests a second (GET, LIST and PATCH in turn) all the while.", options.Foreground),
			"At rest, processes look every fifteen minutes whether their report is still there, and every ten minutes less up to a quarter which features are set centrally; these reads are sent in turn at that rate, and nothing else by the processes.",
			fmt.Sprintf("A restart takes the processes of %d nodes at a time, ends them in order and starts them again, as fast as it goes; a real roll-out takes its time. The new ones have a newer version, so that uses are right once they have nothing of the old one. As many write over their ConfigMaps at a time; these are not deleted.", options.Together),
			fmt.Sprintf("At rest the cluster is looked at for %s, with %d nodes %d times.", options.Rest, options.Budget, options.Windows),
			"Writes are counted in etcd itself. The live heap is what is left after two collections.",
			"Memory at rest is measured when the past has been forgotten: watch caches keep a snapshot of their list for each event until etcd is compacted. " + compaction(options),
		},
	}
	var sizes []outcome
	for _, o := range outcomes {
		if o.name == "" {
			sizes = append(sizes, o)
		}
	}
	describeStorm(r, sizes, peers)
	describeArrivals(r, sizes, peers)
	describeRest(r, sizes, peers)
	describeMemory(r, sizes, peers)
	describeGrowth(r, sizes)
	describeCharts(r, sizes, peers)
	describeVarieties(r, options, templates, outcomes)
	describePast(r, options, inTurn(sizes, peers), outcomes)
	grow(r, sizes)
	for _, o := range sizes {
		if o.nodes == options.Budget {
			addBudgets(r, options, o, peers)
			addVarietyBudgets(r, options, o, outcomes)
		}
	}
	return r
}

// compaction returns when the past is forgotten.
func compaction(o Options) string {
	if o.Compaction == 0 {
		return "Here etcd is not compacted, so that it includes the past."
	}
	return fmt.Sprintf("kube-apiserver lets etcd forget it after %s instead of the five minutes that are the default, so that this takes minutes less. At its peak memory has less of the past by that, and so has etcd's file; where the past is kept as by default, a table of its own shows both.", o.Compaction)
}

// inTurn are outcomes of sizes, each followed by its peer.
func inTurn(outcomes, peers []outcome) (all []outcome) {
	for _, o := range outcomes {
		all = append(all, o)
		if p, ok := peerOf(o, peers); ok {
			all = append(all, p)
		}
	}
	return all
}

// peerOf is the peer of the same size, if it was measured.
func peerOf(o outcome, peers []outcome) (outcome, bool) {
	i := slices.IndexFunc(peers, func(p outcome) bool { return p.nodes == o.nodes })
	if i < 0 {
		return outcome{}, false
	}
	return peers[i], true
}

// writes is what the processes of an outcome write.
func (o outcome) writes() string {
	if o.gates == noSystem {
		return "ConfigMaps"
	}
	return "reports"
}

func describeStorm(r *result.Result, outcomes, peers []outcome) {
	for _, part := range []struct {
		title    string
		of       func(outcome) phase
		outcomes []outcome
	}{
		{"All processes start at once", func(o outcome) phase { return o.storm }, inTurn(outcomes, peers)},
		{"All processes are restarted", func(o outcome) phase { return o.rolled }, inTurn(outcomes, peers)},
	} {
		t := r.AddTable(part.title, result.Column{Name: "processes"}, result.Column{Name: "they write"},
			result.Column{Name: "until all are counted, or written", Unit: "s"},
			result.Column{Name: "uses right after the last report", Unit: "s"},
			result.Column{Name: "writes of reports"}, result.Column{Name: "writes of features"}, result.Column{Name: "all writes"}, result.Column{Name: "writes a second", Unit: "1/s"},
			result.Column{Name: "processor of kube-apiserver", Unit: "s"}, result.Column{Name: "beyond that at rest", Unit: "s"}, result.Column{Name: "of the processes", Unit: "s"}, result.Column{Name: "peak memory", Unit: "MiB"},
			result.Column{Name: "answers 429"}, result.Column{Name: "429 to other clients"}, result.Column{Name: "no answer to other clients"}, result.Column{Name: "other failures of other clients"}, result.Column{Name: "p99 of other clients", Unit: "ms"}, result.Column{Name: "before", Unit: "ms"})
		for _, o := range part.outcomes {
			p := part.of(o)
			behind := any(p.behind)
			if o.gates == noSystem {
				behind = "not counted"
			}
			t.AddRow(o.processes(), o.writes(), p.Seconds, behind, p.Reports, p.Features, p.Writes, float64(p.Writes)/p.Seconds,
				p.Usage.CPU.Seconds(), o.beyondRest(p), p.Own.Seconds(), measure.Mebibytes(p.Usage.RSSPeak), p.TooMany,
				p.Foreground.Refused(), p.Foreground.Unanswered(), p.Foreground.Failed()-p.Foreground.Refused()-p.Foreground.Unanswered(),
				measure.Milliseconds(p.Foreground.All.Percentile(99)), measure.Milliseconds(o.before.Foreground.All.Percentile(99)))
		}
	}
}

// describeArrivals shows when processes that start together have written.
func describeArrivals(r *result.Result, outcomes, peers []outcome) {
	t := r.AddTable("When processes have written that start at once", result.Column{Name: "processes"}, result.Column{Name: "they write"},
		result.Column{Name: "half of them", Unit: "s"}, result.Column{Name: "90 %", Unit: "s"}, result.Column{Name: "99 %", Unit: "s"}, result.Column{Name: "all", Unit: "s"},
		result.Column{Name: "reports left behind in the restart"})
	for _, o := range inTurn(outcomes, peers) {
		left := any(o.left)
		if o.gates == noSystem {
			left = "none is taken away"
		}
		t.AddRow(o.processes(), o.writes(), o.arrivals.Percentile(50).Seconds(), o.arrivals.Percentile(90).Seconds(), o.arrivals.Percentile(99).Seconds(), o.arrivals.Max().Seconds(), left)
	}
}

func describeRest(r *result.Result, outcomes, peers []outcome) {
	t := r.AddTable("At rest, without and with processes that have written",
		result.Column{Name: "processes"}, result.Column{Name: "they write"}, result.Column{Name: "have written"},
		result.Column{Name: "writes of reports"}, result.Column{Name: "writes of features"}, result.Column{Name: "all writes a minute", Unit: "1/min"},
		result.Column{Name: "processor of kube-apiserver", Unit: "% of a core"}, result.Column{Name: "lowest", Unit: "% of a core"}, result.Column{Name: "highest", Unit: "% of a core"},
		result.Column{Name: "p99 of other clients", Unit: "ms"})
	for _, o := range inTurn(outcomes, peers) {
		for _, row := range []struct {
			name string
			p    phase
		}{{"no", o.before}, {"yes", o.after}} {
			t.AddRow(o.processes(), o.writes(), row.name, row.p.Reports, row.p.Features, float64(row.p.Writes)/row.p.Seconds*60,
				100*row.p.Usage.Cores(), 100*slices.Min(row.p.cores), 100*slices.Max(row.p.cores), measure.Milliseconds(row.p.Foreground.All.Percentile(99)))
		}
	}
}

func describeMemory(r *result.Result, outcomes, peers []outcome) {
	t := r.AddTable("Memory of kube-apiserver, after collections",
		result.Column{Name: "processes"}, result.Column{Name: "they write"}, result.Column{Name: "when"},
		result.Column{Name: "live heap", Unit: "MiB"}, result.Column{Name: "spans with it", Unit: "MiB"}, result.Column{Name: "free, not returned", Unit: "MiB"},
		result.Column{Name: "stacks", Unit: "MiB"}, result.Column{Name: "resident memory", Unit: "MiB"})
	for _, o := range inTurn(outcomes, peers) {
		for _, row := range []struct {
			when string
			measure.Live
		}{{"at rest before that", o.free}, {"all have started", o.counted}, {"at rest after that", o.resting}} {
			t.AddRow(o.processes(), o.writes(), row.when, measure.Mebibytes(row.Heap), measure.Mebibytes(row.Spans), measure.Mebibytes(row.Kept), measure.Mebibytes(row.Stacks), measure.Mebibytes(row.RSS))
		}
	}
}

// describeGrowth shows what each process adds.
func describeGrowth(r *result.Result, outcomes []outcome) {
	t := r.AddTable("What a process costs", result.Column{Name: "processes"},
		result.Column{Name: "etcd, all reports", Unit: "MiB"}, result.Column{Name: "etcd, a process", Unit: "byte"}, result.Column{Name: "etcd, all features", Unit: "MiB"},
		result.Column{Name: "live heap, a process", Unit: "byte"}, result.Column{Name: "processor at the start beyond that at rest, a process", Unit: "ms"},
		result.Column{Name: "writes of features at the start, a process"}, result.Column{Name: "processor at rest", Unit: "% of a core"},
		result.Column{Name: "etcd's file after the start", Unit: "MiB"}, result.Column{Name: "after the restart", Unit: "MiB"})
	for _, o := range outcomes {
		n, heap := float64(o.processes()), o.heap()
		t.AddRow(o.processes(), measure.Mebibytes(o.stored.Bytes), float64(o.stored.Bytes)/n, measure.Mebibytes(o.features.Bytes), heap/n,
			o.beyondRest(o.storm)*1000/n, float64(o.storm.Features)/n, restingCores(o)*100,
			measure.Mebibytes(o.afterStorm.Size), measure.Mebibytes(o.afterRestart.Size))
	}
}

// p99 is that of other clients, in milliseconds; above 0, so that it can be drawn.
func p99(p phase) float64 {
	return max(measure.Milliseconds(p.Foreground.All.Percentile(99)), 0.1)
}

// describeCharts draws how costs grow.
func describeCharts(r *result.Result, outcomes, peers []outcome) {
	storage := result.Chart{Name: "storage", Title: "What reports take", X: result.LogAxis("processes", ""), Y: result.LogAxis("storage", "MiB")}
	work := result.Chart{Name: "work", Title: "Processor time of kube-apiserver until all are counted, beyond that at rest", X: result.LogAxis("processes", ""), Y: result.LogAxis("processor time", "s")}
	times := result.Chart{Name: "time", Title: "Time until all are counted, or written", X: result.LogAxis("processes", ""), Y: result.LogAxis("time", "s")}
	others := result.Chart{Name: "others", Title: "p99 of other clients while all start", X: result.LogAxis("processes", ""), Y: result.LogAxis("p99", "ms")}
	writes := result.Chart{Name: "writes", Title: "Writes until all are counted", X: result.LogAxis("processes", ""), Y: result.LogAxis("writes", "")}
	for _, o := range outcomes {
		n := float64(o.processes())
		storage.Add("etcd, reports", result.Ours, result.Point{X: n, Y: measure.Mebibytes(o.stored.Bytes)})
		storage.Add("etcd, features", result.Ours, result.Point{X: n, Y: measure.Mebibytes(o.features.Bytes)})
		storage.Add("live heap of kube-apiserver, more than without", result.Ours, result.Point{X: n, Y: max(o.heap(), 1) / measure.MiB})
		work.Add("start of all", result.Ours, result.Point{X: n, Y: max(o.beyondRest(o.storm), 0.01)})
		work.Add("restart of all", result.Ours, result.Point{X: n, Y: max(o.beyondRest(o.rolled), 0.01)})
		times.Add("start of all", result.Ours, result.Point{X: n, Y: o.storm.Seconds})
		times.Add("restart of all", result.Ours, result.Point{X: n, Y: o.rolled.Seconds})
		others.Add("reports", result.Ours, result.Point{X: n, Y: p99(o.storm)})
		writes.Add("reports, start of all", result.Ours, result.Point{X: n, Y: float64(max(o.storm.Reports, 1))})
		writes.Add("features, start of all", result.Ours, result.Point{X: n, Y: float64(max(o.storm.Features, 1))})
		writes.Add("one write a process", result.Bound, result.Point{X: n, Y: n})
	}
	for _, p := range peers {
		n := float64(p.processes())
		storage.Add("etcd, ConfigMaps", result.Peer, result.Point{X: n, Y: measure.Mebibytes(p.stored.Bytes)})
		storage.Add("live heap for ConfigMaps", result.Peer, result.Point{X: n, Y: max(p.heap(), 1) / measure.MiB})
		for _, part := range []struct {
			of phase
			as string
		}{{p.storm, "ConfigMaps of all, without a count"}, {p.rolled, "ConfigMaps of all that are restarted"}} {
			work.Add(part.as, result.Peer, result.Point{X: n, Y: max(p.beyondRest(part.of), 0.01)})
			times.Add(part.as, result.Peer, result.Point{X: n, Y: max(part.of.Seconds, 0.01)})
		}
		others.Add("ConfigMaps", result.Peer, result.Point{X: n, Y: p99(p.storm)})
		writes.Add("ConfigMaps, start of all", result.Peer, result.Point{X: n, Y: float64(max(p.storm.Writes, 1))})
	}
	r.Charts = append(r.Charts, &storage, &work, &times, &others, &writes)
}

// grow returns what grows with processes.
func grow(r *result.Result, outcomes []outcome) {
	var processes []int
	for _, o := range outcomes {
		processes = append(processes, o.processes())
	}
	cost := func(what string, of func(outcome) float64) result.Cost { return result.CostOf(what, outcomes, of) }
	others := cost("p99 of other clients while all start (ms)", func(o outcome) float64 { return measure.Milliseconds(o.storm.Foreground.All.Percentile(99)) })
	others.Ceiling = measure.Milliseconds(measure.ForegroundTimeout)
	r.Growth = &result.Growth{PerNode: fleet.PerNode, Processes: processes, Costs: []result.Cost{
		cost("etcd, reports (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.stored.Bytes) }),
		cost("live heap of kube-apiserver, more than without (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.resting.Heap - o.free.Heap) }),
		cost("resident memory of kube-apiserver, more than without (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.resting.RSS - o.free.RSS) }),
		cost("peak of resident memory while all start (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.storm.Usage.RSSPeak) }),
		cost("processor of kube-apiserver until all that start are counted, beyond that at rest (s)", func(o outcome) float64 { return o.beyondRest(o.storm) }),
		cost("time until all that start are counted (s)", func(o outcome) float64 { return o.storm.Seconds }),
		others,
		cost("processor of kube-apiserver until all that are restarted are counted, beyond that at rest (s)", func(o outcome) float64 { return o.beyondRest(o.rolled) }),
		cost("processor of kube-apiserver at rest, more than without (% of a core)", func(o outcome) float64 { return 100 * restingCores(o) }),
		cost("writes of reports, start of all", func(o outcome) float64 { return float64(o.storm.Reports) }),
		cost("writes of features, start of all", func(o outcome) float64 { return float64(o.storm.Features) }),
	}}
}

// describeVarieties shows what other lists of features cost: whether there are as many
// processes or as many features of each that counts.
func describeVarieties(r *result.Result, options Options, templates map[string]fleet.Template, outcomes []outcome) {
	t := result.Table{Title: "Processes that report something else",
		Columns: []result.Column{{Name: "processes"}, {Name: "what they report"}, {Name: "features of a kubelet"}, {Name: "features of a kube-proxy"},
			{Name: "etcd, a process", Unit: "byte"}, {Name: "live heap, a process", Unit: "byte"}, {Name: "more resident memory", Unit: "MiB"},
			{Name: "until all are counted", Unit: "s"}, {Name: "uses right after the last report", Unit: "s"},
			{Name: "writes of features"}, {Name: "processor beyond that at rest, a process", Unit: "ms"}},
		Note: "Those with other lists differ in which of their features they have asked for so far, as processes do on nodes that run different Pods."}
	for _, o := range outcomes {
		if o.nodes != options.Budget || o.past {
			continue
		}
		what, n := o.name, float64(o.processes())
		if what == "" {
			what = "what real ones do"
		}
		t.AddRow(o.processes(), what, len(templates[fleet.Kubelet].Observations)+o.more, len(templates[fleet.KubeProxy].Observations)+o.more,
			float64(o.stored.Bytes)/n, o.heap()/n, measure.Mebibytes(o.resting.RSS-o.free.RSS),
			o.storm.Seconds, o.storm.behind, o.storm.Features, o.beyondRest(o.storm)*1000/n)
	}
	if len(t.Rows) > 1 {
		r.Tables = append(r.Tables, &t)
	}
}

// beyondRest is the processor time of kube-apiserver in a phase that it would not have used
// at rest before any process wrote, in seconds.
func (o outcome) beyondRest(p phase) float64 {
	return max(p.Usage.CPU.Seconds()-o.before.Usage.Cores()*p.Seconds, 0)
}

// heap is how much more live heap kube-apiserver has at rest with reporters, in bytes.
func (o outcome) heap() float64 { return float64(o.resting.Heap - o.free.Heap) }

// describePast shows what a start of all takes that depends on how much of the past is kept.
func describePast(r *result.Result, options Options, sizes, outcomes []outcome) {
	t := result.Table{Title: "What a start of all takes, by how long the past is kept",
		Columns: []result.Column{{Name: "processes"}, {Name: "they write"}, {Name: "the past is kept for"}, {Name: "until all are counted, or written", Unit: "s"},
			{Name: "resident memory before", Unit: "MiB"}, {Name: "peak memory", Unit: "MiB"}, {Name: "etcd's file after the start", Unit: "MiB"}},
		Note: "Five minutes are kube-apiserver's default. Watch caches keep a snapshot of their list for each event until etcd is compacted."}
	add := func(o outcome, kept time.Duration) {
		t.AddRow(o.processes(), o.writes(), kept.String(), o.storm.Seconds, measure.Mebibytes(o.free.RSS), measure.Mebibytes(o.storm.Usage.RSSPeak), measure.Mebibytes(o.afterStorm.Size))
	}
	for _, o := range sizes {
		if o.nodes == options.Budget {
			add(o, options.Compaction)
		}
	}
	short := len(t.Rows)
	for _, o := range outcomes {
		if o.past {
			add(o, defaultCompaction)
		}
	}
	if len(t.Rows) > short {
		r.Tables = append(r.Tables, &t)
	}
}
