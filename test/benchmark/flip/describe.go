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

package flip

import (
	"fmt"
	"time"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

const (
	ours  = "followers of a dynamic feature"
	peer  = "informers of a ConfigMap"
	bound = "plain watches, the smallest event"
)

// kind is one kind of watchers in one size.
type kind struct {
	name    string
	role    result.Role
	opened  measure.Part
	memory  measure.Live
	changes []changed
}

// held is what the server keeps in memory for the watchers, in bytes.
func (k kind) held() int64 { return k.memory.Heap + k.memory.Stacks }

// kinds are all of a size, ours first.
func (o *outcome) kinds() []kind {
	k := kind{name: ours, role: result.Ours, opened: o.started, memory: o.memory}
	for _, f := range o.flips {
		k.changes = append(k.changes, f.changed)
	}
	return []kind{k,
		{peer, result.Peer, o.peer.opened, o.peer.memory, o.peer.changes},
		{bound, result.Bound, o.bound.opened, o.bound.memory, o.bound.changes},
	}
}

// last is the time at which the last watcher had a change, in milliseconds.
func last(c changed) float64 { return measure.Milliseconds(c.times.Max()) }

func at(percentile float64) func(changed) float64 {
	return func(c changed) float64 { return measure.Milliseconds(c.times.Percentile(percentile)) }
}

// describe makes tables, charts, budgets and limits of what was measured.
func describe(o Options, templates map[string]fleet.Template, apply measure.Distribution, outcomes []*outcome) *result.Result {
	r := &result.Result{
		Question: "How long does it take until thousands of processes have a value that changes while they run, and what does that cost kube-apiserver?",
		Peer:     "as many informers of one ConfigMap that has the value, in the same processes, with clients as people make them, which is what people use without this system; in the same run.",
		Method: []string{
			"Each process has the library's own Syncer (package agent) with its own watch, its own identity and a gate of its own: the layer on upstream's gate. That gate knows the one feature alone, and " +
				fmt.Sprintf("a process has the value when code that subscribes is called. On a gate with all of Kubernetes' gates a change takes %.2f ms (median of %d), which a real process spends on its own machine.", measure.Milliseconds(apply.Percentile(50)), apply.Count()),
			fmt.Sprintf("Each also runs the reporter of real binaries, with what a real kubelet (%d features) or kube-proxy (%d) reported in the same run, and the feature.", len(templates[fleet.Kubelet].Observations), len(templates[fleet.KubeProxy].Observations)),
			"All share one operating system process, connections of 50 each (the library's clients and plain ones have their own), and the machine with the one kube-apiserver and etcd: CPU time that they use, the server does not get. What a connection costs is not in the figures; real processes have one anyway.",
			fmt.Sprintf("A value is changed %d times by an administrator, off and on in turn; times begin with the request. Figures are medians of the changes, with the lowest and the highest where there is room; a p99 of other clients is that of their requests in all changes together.", o.Changes),
			"The feature has nothing to be cleaned up. A follower's event is a FeatureValue, which comes once for a change. Processes confirm a value without sending their report again.",
			"At rest, processes look at the list of Features every ten minutes less up to a quarter; these lists are sent in turn at that rate.",
			"Plain watches are measured first, then informers, then followers, in one server: what is resident at its highest has what those before left behind. Memory for watchers is counted after collections of garbage, as the difference.",
			"kube-apiserver has the reports of all processes while the peers are measured, too. Its memory for watchers is what is alive more once all watch.",
			fmt.Sprintf("Other clients are an ordinary user that sends %v requests a second (GET, LIST and PATCH in turn) all the while.", o.Foreground),
		},
	}
	describeTimes(r, outcomes)
	describeFlips(r, o, outcomes)
	describeBefore(r, outcomes)
	describeLoad(r, o, outcomes)
	describeRest(r, outcomes)
	grow(r, outcomes)
	for _, found := range outcomes {
		if found.processes == promised {
			r.Budgets = append(r.Budgets, within(found, "from the request; the median of the flips. docs/central-and-dynamic.md promises it"), saidBy(found), confirmedBy(found))
		}
		if found.processes == o.Budget || len(outcomes) == 1 {
			promise(r, found)
		}
	}
	return r
}

// p99 is that of other clients' requests in all these parts together, in milliseconds: one
// window has too few of them for its own.
func p99[T any](all []T, part func(T) measure.Part) float64 {
	var requests []measure.Distribution
	for _, one := range all {
		requests = append(requests, part(one).Foreground.All)
	}
	return measure.Milliseconds(measure.Together(requests...).Percentile(99))
}

func describeTimes(r *result.Result, outcomes []*outcome) {
	t := r.AddTable("From the request until watchers have the value",
		result.Column{Name: "watchers"}, result.Column{Name: "kind"}, result.Column{Name: "answer to the request", Unit: "ms"},
		result.Column{Name: "first", Unit: "ms"}, result.Column{Name: "median", Unit: "ms"}, result.Column{Name: "p99", Unit: "ms"},
		result.Column{Name: "last", Unit: "ms"}, result.Column{Name: "lowest last", Unit: "ms"}, result.Column{Name: "highest last", Unit: "ms"})
	chart := r.AddChart("last", "Until the last watcher has the value", result.LogAxis("watchers", ""), result.LogAxis("time", "ms"))
	for _, o := range outcomes {
		for _, k := range o.kinds() {
			end := measure.SpreadBy(k.changes, last)
			t.AddRow(o.processes, k.name, measure.SpreadBy(k.changes, func(c changed) float64 { return measure.Milliseconds(c.answered) }).Median,
				measure.SpreadBy(k.changes, at(0)).Median, measure.SpreadBy(k.changes, at(50)).Median, measure.SpreadBy(k.changes, at(99)).Median, end.Median, end.Low, end.High)
			chart.Add(k.name, k.role, result.Point{X: float64(o.processes), Y: end.Median, Low: end.Low, High: end.High})
		}
	}
}

func describeFlips(r *result.Result, o Options, outcomes []*outcome) {
	t := r.AddTable("What follows a flip: reports, uses, the end of the transition",
		result.Column{Name: "processes"}, result.Column{Name: "the last has the value", Unit: "s"}, result.Column{Name: "the last report is answered", Unit: "s"}, result.Column{Name: "uses are right", Unit: "s"},
		result.Column{Name: "highest", Unit: "s"}, result.Column{Name: "the transition ended", Unit: "s"},
		result.Column{Name: "writes of reports"}, result.Column{Name: "writes of features"}, result.Column{Name: "CPU time of kube-apiserver", Unit: "s"}, result.Column{Name: "answers 429"},
		result.Column{Name: "events to each follower"}, result.Column{Name: "size of one", Unit: "KiB"}, result.Column{Name: "all events", Unit: "MiB"}, result.Column{Name: fmt.Sprintf("p99 of other clients from %s on until the transition ended", o.Window), Unit: "ms"})
	chart := r.AddChart("uses", "Until uses are right after a flip", result.LogAxis("processes", ""), result.LogAxis("time", "s"))
	for _, o := range outcomes {
		n := float64(o.processes)
		uses := measure.SpreadBy(o.flips, func(f flipped) float64 { return f.counted.Seconds() })
		events := func(f flipped) float64 { return f.load.Events + f.settling.Events }
		bytes := func(f flipped) float64 { return f.load.Bytes + f.settling.Bytes }
		median := func(of func(flipped) float64) float64 { return measure.SpreadBy(o.flips, of).Median }
		t.AddRow(o.processes, median(func(f flipped) float64 { return last(f.changed) / 1000 }), median(func(f flipped) float64 { return f.reported.Seconds() }), uses.Median, uses.High,
			median(func(f flipped) float64 { return f.ended.Seconds() }),
			median(func(f flipped) float64 { return float64(f.load.Reports + f.settling.Reports) }),
			median(func(f flipped) float64 { return float64(f.load.Features + f.settling.Features) }),
			median(func(f flipped) float64 { return (f.load.Usage.CPU + f.settling.Usage.CPU).Seconds() }),
			median(func(f flipped) float64 { return f.load.TooMany + f.settling.TooMany }),
			median(events)/n, median(func(f flipped) float64 { return bytes(f) / max(events(f), 1) })/measure.KiB, median(bytes)/measure.MiB,
			p99(o.flips, func(f flipped) measure.Part { return f.settling }))
		chart.Add("uses are right", result.Ours, result.Point{X: n, Y: uses.Median, Low: uses.Low, High: uses.High})
		informed := measure.SpreadBy(o.peer.changes, func(c changed) float64 { return last(c) / 1000 })
		chart.Add("the last informer of a ConfigMap has the value, without a count", result.Peer, result.Point{X: n, Y: informed.Median, Low: informed.Low, High: informed.High})
	}
}

// comparison is one figure of the build and of the one before.
type comparison struct {
	what string
	of   func(*outcome) float64
	// atMost is the share of what it was that is wanted, 0 for none.
	atMost float64
}

var comparisons = []comparison{
	{"the last has the value (s)", func(o *outcome) float64 {
		return measure.SpreadBy(o.flips, func(f flipped) float64 { return last(f.changed) / 1000 }).Median
	}, 0},
	{"events of a flip (MiB)", func(o *outcome) float64 {
		return measure.SpreadBy(o.flips, func(f flipped) float64 { return f.load.Bytes + f.settling.Bytes }).Median / measure.MiB
	}, 0.15},
	{"uses are right (s)", func(o *outcome) float64 {
		return measure.SpreadBy(o.flips, func(f flipped) float64 { return f.counted.Seconds() }).Median
	}, 0.25},
	{"CPU time of kube-apiserver for a flip, beyond that at rest (s)", func(o *outcome) float64 { return measure.SpreadBy(o.flips, o.work).Median }, 0.35},
	{"p99 of other clients until the transition ended (ms)", func(o *outcome) float64 {
		return p99(o.flips, func(f flipped) measure.Part { return measure.Sum(f.load, f.settling) })
	}, 0},
	{"answers 429", func(o *outcome) float64 {
		return measure.SpreadBy(o.flips, func(f flipped) float64 { return f.load.TooMany + f.settling.TooMany }).Median
	}, 0},
}

// describeBefore compares a flip with that of the kube-apiserver of an earlier commit.
func describeBefore(r *result.Result, outcomes []*outcome) {
	t := &result.Table{}
	for _, o := range outcomes {
		if o.before == nil {
			continue
		}
		if len(t.Columns) == 0 {
			t = r.AddTable("A flip beside kube-apiserver as it was before, with the same processes in the same run",
				result.Column{Name: "processes"}, result.Column{Name: "what"}, result.Column{Name: "before"}, result.Column{Name: "now"}, result.Column{Name: "now is so many times that before"})
		}
		for _, c := range comparisons {
			was, is := c.of(o.before), c.of(o)
			ratio := is / max(was, 1e-6)
			t.AddRow(o.processes, c.what, was, is, ratio)
			if c.atMost > 0 {
				r.Budgets = append(r.Budgets, result.Budget{Text: o.who() + ": " + c.what, Compare: result.AtMost, Target: c.atMost, Measured: ratio, Unit: "× that before", How: "medians of the flips, beside kube-apiserver as it was before in the same run"})
			}
		}
	}
}

// beyondRest is the processor time of kube-apiserver in a part that it would not have
// used at rest without followers, in seconds.
func (o *outcome) beyondRest(parts ...measure.Part) (seconds float64) {
	for _, p := range parts {
		seconds += p.Usage.CPU.Seconds() - o.alone.Usage.Cores()*p.Seconds
	}
	return max(seconds, 0)
}

// work is that for a flip.
func (o *outcome) work(f flipped) float64 { return o.beyondRest(f.load, f.settling) }

func describeLoad(r *result.Result, o Options, outcomes []*outcome) {
	t := r.AddTable(fmt.Sprintf("What a change costs within %s: the value, and those reports that come in that time", o.Window),
		result.Column{Name: "watchers"}, result.Column{Name: "kind"}, result.Column{Name: "CPU time of kube-apiserver", Unit: "s"}, result.Column{Name: "beyond that at rest", Unit: "s"},
		result.Column{Name: "CPU time of the watchers", Unit: "s"}, result.Column{Name: "resident memory at its highest", Unit: "MiB"}, result.Column{Name: "events"}, result.Column{Name: "sent", Unit: "MiB"},
		result.Column{Name: "p99 of other clients", Unit: "ms"}, result.Column{Name: "their answers 429"})
	chart := r.AddChart("work", fmt.Sprintf("CPU time of kube-apiserver for a change, beyond that at rest, within %s", o.Window), result.LogAxis("watchers", ""), result.LogAxis("CPU time", "s"))
	for _, o := range outcomes {
		for _, k := range o.kinds() {
			median := func(of func(measure.Part) float64) float64 {
				return measure.SpreadBy(k.changes, func(c changed) float64 { return of(c.load) }).Median
			}
			cpu := median(func(l measure.Part) float64 { return l.Usage.CPU.Seconds() })
			beyond := measure.SpreadBy(k.changes, func(c changed) float64 { return o.beyondRest(c.load) })
			t.AddRow(o.processes, k.name, cpu, beyond.Median, median(func(l measure.Part) float64 { return l.Own.Seconds() }), median(func(l measure.Part) float64 { return measure.Mebibytes(l.Usage.RSSPeak) }),
				median(func(l measure.Part) float64 { return l.Events }), median(func(l measure.Part) float64 { return l.Bytes / measure.MiB }),
				p99(k.changes, func(c changed) measure.Part { return c.load }), measure.SpreadBy(k.changes, func(c changed) float64 { return c.load.Refused() }).High)
			add := func(name string, seconds measure.Spread) {
				// The processor time of a process counts in steps of 10 ms.
				chart.Add(name, k.role, result.Point{X: float64(o.processes), Y: max(seconds.Median, 0.01)})
			}
			add(k.name, beyond)
			if k.role == result.Ours {
				add(k.name+", until all have reported and the transition ended", measure.SpreadBy(o.flips, o.work))
			}
		}
	}
}

func describeRest(r *result.Result, outcomes []*outcome) {
	t := r.AddTable("What watchers cost once they watch, and to begin",
		result.Column{Name: "watchers"}, result.Column{Name: "kind"}, result.Column{Name: "live heap, a watcher", Unit: "KiB"}, result.Column{Name: "stacks, a watcher", Unit: "KiB"},
		result.Column{Name: "until all watch, begun at once", Unit: "s"}, result.Column{Name: "lists"}, result.Column{Name: "CPU time of kube-apiserver", Unit: "s"},
		result.Column{Name: "answers 429"}, result.Column{Name: "p99 of other clients", Unit: "ms"})
	t.Note = fmt.Sprintf("Plain watches do not begin at once, as followers and informers do: they are opened %d at a time, so what they take says what single requests take, and nothing of a crowd.", openers)
	chart := r.AddChart("memory", "Live heap and stacks of kube-apiserver for watchers", result.LogAxis("watchers", ""), result.LogAxis("live heap and stacks", "MiB"))
	rest := r.AddTable("At rest, all processes report",
		result.Column{Name: "processes"}, result.Column{Name: "followers"}, result.Column{Name: "CPU time of kube-apiserver", Unit: "% of a core"},
		result.Column{Name: "lists a minute", Unit: "1/min"}, result.Column{Name: "writes of features"}, result.Column{Name: "p99 of other clients", Unit: "ms"})
	for _, o := range outcomes {
		n := float64(o.processes)
		for _, k := range o.kinds() {
			t.AddRow(o.processes, k.name, float64(k.memory.Heap)/n/measure.KiB, float64(k.memory.Stacks)/n/measure.KiB, k.opened.Seconds, k.opened.Lists, k.opened.Usage.CPU.Seconds(),
				k.opened.TooMany, measure.Milliseconds(k.opened.Foreground.All.Percentile(99)))
			chart.Add(k.name, k.role, result.Point{X: n, Y: max(measure.Mebibytes(k.held()), 0.01)})
		}
		for _, row := range []struct {
			name string
			l    measure.Part
		}{{"without", o.alone}, {"with", o.followed}} {
			rest.AddRow(o.processes, row.name, 100*row.l.Usage.Cores(), row.l.Lists/row.l.Seconds*60, row.l.Features, measure.Milliseconds(row.l.Foreground.All.Percentile(99)))
		}
	}
}

// grow returns what grows with processes.
func grow(r *result.Result, outcomes []*outcome) {
	var processes []int
	for _, o := range outcomes {
		processes = append(processes, o.processes)
	}
	cost := func(what string, of func(*outcome) float64) result.Cost { return result.CostOf(what, outcomes, of) }
	flips := func(what string, of func(flipped) float64) result.Cost {
		return cost(what, func(o *outcome) float64 { return measure.SpreadBy(o.flips, of).Median })
	}
	r.Growth = &result.Growth{PerNode: fleet.PerNode, Processes: processes, Costs: []result.Cost{
		cost("live heap and stacks of kube-apiserver for followers (MiB)", func(o *outcome) float64 { return measure.Mebibytes(o.memory.Heap + o.memory.Stacks) }),
		cost("CPU time of kube-apiserver until all follow that begin at once (s)", func(o *outcome) float64 { return o.started.Usage.CPU.Seconds() }),
		flips("time until the last has a new value (s)", func(f flipped) float64 { return last(f.changed) / 1000 }),
		cost("CPU time of kube-apiserver for a flip, beyond that at rest (s)", func(o *outcome) float64 { return measure.SpreadBy(o.flips, o.work).Median }),
		flips("events of a flip (MiB)", func(f flipped) float64 { return (f.load.Bytes + f.settling.Bytes) / measure.MiB }),
	}}
}

const (
	// promised is how many processes follow a value within a second, as
	// docs/central-and-dynamic.md says.
	promised = 1000
	// reportBase and reportEach are in which time reports follow a value, and how much
	// longer for each user: the objective that the KEP sets (docs/keps, "What are the
	// reasonable SLOs").
	reportBase, reportEach = 2 * time.Second, 5 * time.Millisecond
	// over is in which time a transition of very many users ends, settle period included,
	// by another objective of the KEP.
	over = 70 * time.Second
)

// who is all processes of a size.
func (o *outcome) who() string { return result.Format(float64(o.processes)) + " processes" }

// within reports whether all have the value within a second.
func within(o *outcome, how string) result.Budget {
	took := measure.SpreadBy(o.kinds()[0].changes, last)
	return result.Budget{Text: "The last of " + o.who() + " has the value", Compare: result.AtMost, Target: 1, Measured: took.Median / 1000, Low: took.Low / 1000, High: took.High / 1000, Unit: "s", How: how}
}

// saidBy returns how soon after the value reports follow, whatever the number of processes.
func saidBy(o *outcome) result.Budget {
	said := measure.SpreadBy(o.flips, func(f flipped) float64 { return max(f.reported-f.times.Max(), 0).Seconds() })
	return result.Budget{Text: "The last of " + o.who() + " has reported the value, after the last one had it", Compare: result.AtMost, Target: 1, Measured: said.Median, Low: said.Low, High: said.High, Unit: "s", How: "the median of the flips. The design wants reports within a second, whatever the number of processes; processes that get a value together take turns instead (KEP: 2 s and 5 ms for each user)"}
}

// confirmedBy returns how soon all are counted with the value.
func confirmedBy(o *outcome) result.Budget {
	counted := measure.SpreadBy(o.flips, func(f flipped) float64 { return f.counted.Seconds() })
	return result.Budget{Text: "Uses of " + o.who() + " are right", Compare: result.AtMost, Target: 1, Measured: counted.Median, Low: counted.Low, High: counted.High, Unit: "s", How: "from the request; the median of the flips. A bound that was chosen"}
}

// promise compares one size with what the design and the KEP say, and with bounds that
// were chosen.
func promise(r *result.Result, o *outcome) {
	kinds := o.kinds()
	end := func(k kind) float64 { return measure.SpreadBy(k.changes, last).Median }
	who := o.who()
	r.Budgets = append(r.Budgets,
		within(o, "from the request; the median of the flips. Not promised: a bound that was chosen, what a thousand are promised"),
		result.Budget{Text: "The last of " + who + " has reported the value", Compare: result.AtMost, Target: (reportBase + time.Duration(o.processes)*reportEach).Seconds(), Measured: measure.SpreadBy(o.flips, func(f flipped) float64 { return f.reported.Seconds() }).High, Unit: "s", How: "from the request; the longest of the flips. The KEP's objective, 2 s and 5 ms for each user"},
		saidBy(o),
		result.Budget{Text: "Uses of " + who + " are right", Compare: result.AtMost, Target: time.Minute.Seconds(), Measured: measure.SpreadBy(o.flips, func(f flipped) float64 { return f.counted.Seconds() }).High, Unit: "s", How: "from the request; the longest of the flips. A bound that was chosen: what follows a fault has a minute to converge, and this is held against the same"},
		result.Budget{Text: "Uses of " + who + " are right after the last report", Compare: result.AtMost, Target: 5, Measured: measure.SpreadBy(o.flips, func(f flipped) float64 { return max(f.counted-f.reported, 0).Seconds() }).High, Unit: "s", How: "from the answer to the last report, which a count may precede; the longest of the flips. The design wants it of reporters at their start"},
		result.Budget{Text: "The transition of " + who + " has ended", Compare: result.AtMost, Target: over.Seconds(), Measured: measure.SpreadBy(o.flips, func(f flipped) float64 { return f.ended.Seconds() }).High, Unit: "s", How: "from the request, settle period included; the longest of the flips. The KEP's objective for a Dynamic feature with more than 2,000 users"},
		result.Budget{Text: "Answers 429 that others see in a flip", Compare: result.AtMost, Target: 0, Measured: measure.SpreadBy(o.flips, func(f flipped) float64 { return f.load.Refused() + f.settling.Refused() }).High, How: "answers to other clients until the transition ended, the most of the flips"},
	)
	besideRest := p99(o.flips, func(f flipped) measure.Part { return measure.Sum(f.load, f.settling) }) / measure.Milliseconds(max(o.followed.Foreground.All.Percentile(99), time.Microsecond))
	r.Budgets = append(r.Budgets,
		result.Budget{Text: "The last of " + who + " has the value, beside the smallest event to as many plain watches", Compare: result.AtMost, Target: 1.5, Measured: end(kinds[0]) / max(end(kinds[2]), 1e-3), Unit: "× that time", How: "the medians of the changes, in the same run. A bound that was chosen"},
		result.Budget{Text: "The p99 of other clients until the transition of " + who + " ended", Compare: result.AtMost, Target: 3, Measured: besideRest, Unit: "× that at rest", How: "of all requests in all flips, beside those of the minute at rest with followers. A bound that was chosen"},
	)
	sent := func(k kind) float64 {
		return measure.SpreadBy(k.changes, func(c changed) float64 { return c.load.Bytes }).Median / measure.MiB
	}
	each := func(k kind) float64 { return max(float64(k.held())/float64(o.processes), 1) / measure.KiB }
	r.Limits = append(r.Limits,
		result.Limit{Text: "kube-apiserver sends the smallest event to as many plain watches, which do not look at it", Limit: end(kinds[2]), Ours: end(kinds[0]), Unit: "ms until the last", Cost: true},
		result.Limit{Text: "bytes that have to be sent: the smallest event, once to each", Limit: max(sent(kinds[2]), 1e-6), Ours: max(sent(kinds[0]), 1e-6), Unit: "MiB", Cost: true},
		result.Limit{Text: "memory of a plain watch", Limit: each(kinds[2]), Ours: each(kinds[0]), Unit: "KiB of live heap and stacks", Cost: true},
	)
}
