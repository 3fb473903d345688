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

package transition

import (
	"fmt"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// figures are what the repetitions of one setting gave, in milliseconds.
type figures struct {
	// took is from the last report until the final state, own the part of it that is not
	// the settle period; script is the peer's, cleaning its part in which objects are
	// written.
	took, own, script, cleaning measure.Spread
	// writes is how often the Feature was written.
	writes measure.Spread
	// needed is how often it has to be written at least, limit is what own is at best.
	needed, limit float64
}

func (o outcome) figures() figures {
	settle := measure.Milliseconds(o.settle)
	took := func(e ending) float64 { return measure.Milliseconds(e.took) }
	f := figures{
		took:     measure.SpreadBy(o.ours, took),
		own:      measure.SpreadBy(o.ours, func(e ending) float64 { return took(e) - settle }),
		script:   measure.SpreadBy(o.peer, took),
		cleaning: measure.SpreadBy(o.peer, func(e ending) float64 { return measure.Milliseconds(e.cleaning) }),
		writes:   measure.SpreadBy(o.ours, func(e ending) float64 { return float64(e.writes) }),
	}
	// The final state has to be written, and before anything is cleared that waiting is over.
	f.needed = 1
	if o.objects != none {
		f.needed = 2
	}
	f.limit = f.needed*measure.Milliseconds(o.write) + f.cleaning.Median
	return f
}

// describe makes tables, charts, budgets and limits of what was measured.
func describe(o Options, templates map[string]fleet.Template, outcomes []outcome) *result.Result {
	r := &result.Result{
		Question: "How long does a transition take once the last process reports the wanted value, and how much of that is this system's own, beyond the settle period that is meant to pass?",
		Peer:     "what an administrator would script, on the same cluster in the same run, in turn with ours: list all reports every second until all processes have the value, then clear the field from all objects with 16 workers, look whether it is gone, and write down the state. It waits for no contradiction. Upstream itself has nothing of the kind.",
		Method: []string{
			fmt.Sprintf("%d repetitions; each figure is the median, with the lowest and the highest. Without objects the feature is %s, turned off and on in turn, which has nothing to be cleaned up. With objects (also 0 of them) it is %s, turned off: the field is cleared from so many StatefulSets.", o.Repetitions, plain, clears),
			fmt.Sprintf("Processes are simulated: they run the reporter of real binaries and report what a real kubelet (%d features) or kube-proxy (%d) reported in the same run, and the two features. All but one report the wanted value and are counted; then the last one does, when the turns would be over that so many processes take to report.", len(templates[fleet.Kubelet].Observations), len(templates[fleet.KubeProxy].Observations)),
			"Time begins with the answer to the last report, at its process, and ends when a watch shows the final state without a task left. The script's ends with the answer to its last write.",
			"Three servers have host names of their own; processes and script use the first, and each feature has its leader among all. All run on one machine with etcd and the processes.",
			"The limit counts the writes of the Feature that have to be, one after another: the final state, and before anything is cleared, where there are objects, that waiting is over. Each takes as long as an administrator's write on the same cluster. For objects it counts the time that the script took to list, patch and list them again.",
		},
	}
	describeTimes(r, outcomes)
	describeGrowth(r, o, outcomes)
	promise(r, o, outcomes)
	return r
}

func describeTimes(r *result.Result, outcomes []outcome) {
	t := r.AddTable("From the answer to the last report until the final state",
		result.Column{Name: "servers"}, result.Column{Name: "settle period", Unit: "s"}, result.Column{Name: "processes"}, result.Column{Name: "objects"},
		result.Column{Name: "final state after", Unit: "ms"}, result.Column{Name: "less settle period", Unit: "ms"}, result.Column{Name: "lowest", Unit: "ms"}, result.Column{Name: "highest", Unit: "ms"},
		result.Column{Name: "writes of the feature"}, result.Column{Name: "one write", Unit: "ms"}, result.Column{Name: "limit", Unit: "ms"},
		result.Column{Name: "script", Unit: "ms"}, result.Column{Name: "script, lowest", Unit: "ms"}, result.Column{Name: "script, highest", Unit: "ms"}, result.Column{Name: "of it objects", Unit: "ms"})
	for _, o := range outcomes {
		f := o.figures()
		objects := result.Number(float64(o.objects))
		if o.objects == none {
			objects = result.Text("nothing to clean up")
		}
		t.AddRow(o.servers, o.settle.Seconds(), o.processes, objects, f.took.Median, f.own.Median, f.own.Low, f.own.High,
			f.writes.Median, measure.Milliseconds(o.write), f.limit, f.script.Median, f.script.Low, f.script.High, f.cleaning.Median)
	}
	t.Note = "The last report comes at all phases of the script's second alike. Ours looks at reports up to half a second after they came, so that those that come together are looked at once, and up to 10 s while very many come."
}

// describeGrowth draws what passes beside the settle period, which the script does not
// have, over processes and over objects.
func describeGrowth(r *result.Result, o Options, outcomes []outcome) {
	title := fmt.Sprintf("What passes beside the settle period of %s, ", o.Settle[0])
	processes := result.Chart{Name: "processes", Title: title + "nothing to clean up", X: result.LogAxis("processes", ""), Y: result.LogAxis("time", "ms")}
	objects := result.Chart{Name: "objects", Title: title + "a field is cleared", X: result.Axis{Label: "objects"}, Y: result.Axis{Label: "time", Unit: "ms"}}
	for _, one := range outcomes {
		if one.settle != o.Settle[0] {
			continue
		}
		chart, x := &processes, float64(one.processes)
		if one.objects != none {
			chart, x = &objects, float64(one.objects)
		}
		f := one.figures()
		servers := "1 server"
		if one.servers != 1 {
			servers = fmt.Sprintf("%d servers", one.servers)
		}
		// Both axes of one chart are logarithmic.
		positive := func(v float64) float64 { return max(v, 0.1) }
		chart.Add("ours, less that, "+servers, result.Ours, result.Point{X: x, Y: positive(f.own.Median), Low: positive(f.own.Low), High: positive(f.own.High)})
		chart.Add("script, which has none, "+servers, result.Peer, result.Point{X: x, Y: positive(f.script.Median), Low: positive(f.script.Low), High: positive(f.script.High)})
		chart.Add("writes needed, "+servers, result.Bound, result.Point{X: x, Y: positive(f.limit)})
	}
	for _, chart := range []*result.Chart{&processes, &objects} {
		if len(chart.Series) > 0 {
			r.Charts = append(r.Charts, chart)
		}
	}
}

// many is how many processes are very many, whose reports are folded for long.
const many = 1000

// promise compares the longest with what the KEP says ("What are the reasonable SLOs"), and
// makes limits.
func promise(r *result.Result, o Options, outcomes []outcome) {
	if len(outcomes) == 0 {
		return
	}
	for _, budget := range []struct {
		what    string
		seconds float64
		in      func(outcome) bool
		how     string
	}{
		{"From the last report to the final state, nothing to clean up, few processes", 30, func(one outcome) bool { return one.objects == none && one.processes < many }, "the KEP's objective while few processes report"},
		{"From the last report to the final state, nothing to clean up, very many processes", 40, func(one outcome) bool { return one.objects == none && one.processes >= many }, "the KEP's objective while very many report"},
		{"From the last report to the final state, objects to clean up", 60, func(one outcome) bool { return one.objects != none }, "not promised: a bound that was chosen, what a transition may take after a fault"},
	} {
		longest := 0.0
		for _, one := range outcomes {
			if budget.in(one) {
				longest = max(longest, one.figures().took.High)
			}
		}
		if longest > 0 {
			r.Budgets = append(r.Budgets, result.Budget{
				Text: budget.what, Compare: result.AtMost, Target: budget.seconds, Measured: longest / 1000, Unit: "s",
				How: "the longest of all such settings and repetitions, settle period included; " + budget.how,
			})
		}
	}
	most := outcomes[len(outcomes)-1].processes
	for _, one := range outcomes {
		// The largest without anything to clean up, and the largest with.
		largest := one.objects == none && one.processes == most || one.objects != none && one.objects == o.Objects[len(o.Objects)-1]
		if one.settle != o.Settle[0] || one.servers != o.Servers[0] || !largest {
			continue
		}
		f := one.figures()
		what := fmt.Sprintf("settle period, and the writes of the feature that have to be (%s), %s processes", result.Format(f.needed), result.Format(float64(one.processes)))
		if one.objects != none {
			what += fmt.Sprintf(", %s objects", result.Format(float64(one.objects)))
		}
		settle := measure.Milliseconds(one.settle)
		r.Limits = append(r.Limits, result.Limit{Text: what, Limit: settle + f.limit, Ours: f.took.Median, Unit: "ms", Cost: true})
	}
}
