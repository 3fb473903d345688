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

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
)

// moreAllowed is how many times the live heap of processes may be that report more
// features, or different ones. With 60 features more a process reports three times as
// many: if each were held for each process, their part would be three times as large.
const moreAllowed = 1.2

// mostMemory is how much more memory kube-apiserver may need with 10,000 reporters, in MiB.
const mostMemory = 150

// addVarietyBudgets compares processes that report something else with those that report
// what real ones do: no memory of kube-apiserver may grow with processes times features.
func addVarietyBudgets(r *result.Result, options Options, real outcome, outcomes []outcome) {
	others := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return o.name == "" || o.past })
	for _, o := range others {
		if options.Compaction == 0 {
			break
		}
		r.Budgets = append(r.Budgets, result.Budget{
			Text: "More memory in kube-apiserver for processes that report " + o.name, Compare: result.Below, Target: mostMemory, Measured: measure.Mebibytes(o.resting.RSS - o.free.RSS), Unit: "MiB", Once: true,
			How: fmt.Sprintf("resident memory at rest with reporters, less that before they reported; those that report what real ones do: %s MiB", result.Format(measure.Mebibytes(real.resting.RSS-real.free.RSS))),
		})
	}
	if len(others) > 0 && real.heap() <= 0 {
		r.Method = append(r.Method, "What processes cost that report something else is not compared with a budget: the live heap with those that report what real ones do was not above that without reporters.")
		return
	}
	for _, o := range others {
		r.Budgets = append(r.Budgets, result.Budget{
			Text: "Live heap for processes that report " + o.name + ", of that for what real ones report", Compare: result.AtMost, Target: moreAllowed, Measured: o.heap() / real.heap(), Unit: "×", Once: true,
			How: fmt.Sprintf("%s MiB more than without reporters, beside %s MiB", result.Format(o.heap()/measure.MiB), result.Format(real.heap()/measure.MiB)),
		})
	}
}

// restingCores is what reporters add to the work of the server at rest, in cores.
func restingCores(o outcome) float64 { return o.after.Usage.Cores() - o.before.Usage.Cores() }

func addBudgets(r *result.Result, options Options, o outcome, peers []outcome) {
	r.Budgets = append(r.Budgets,
		result.Budget{Text: "Writes of processes on nodes at rest", Compare: result.AtMost, Target: 0, Measured: float64(o.after.Reports + o.after.Leases), Once: true, How: "writes of reports, and of Leases of reporters that are no servers, in etcd while at rest with reporters"},
		result.Budget{Text: "Answers 429 that others see while all processes start, and while all are restarted", Compare: result.AtMost, Target: 0, Measured: o.storm.Refused() + o.rolled.Refused(), Once: true, How: "answers to other clients"},
		result.Budget{Text: "Uses right after the last report", Compare: result.AtMost, Target: 5, Measured: max(o.storm.behind, o.rolled.behind), Unit: "s", Once: true, How: "from the answer to the last report until a watch had shown the right count of every feature; the longer of start and restart"},
	)
	p, ok := peerOf(o, peers)
	if ok {
		// Two clusters at rest are not alike, so what was measured in one of them alone counts,
		// too, if it is more.
		with, without := measure.SpreadOf(o.after.cores...), measure.SpreadOf(p.before.cores...)
		own := measure.SpreadOf(o.before.cores...)
		beside := result.Format(without.Median) + " of one with FeatureLifecycle=false beside the same nodes"
		base := "which is less than it used itself before processes reported, " + result.Format(own.Median)
		if own.Median < without.Median {
			beside, base = result.Format(own.Median)+" of itself before processes reported", "which is less than one used with FeatureLifecycle=false beside the same nodes, "+result.Format(without.Median)
			without = own
		}
		r.Budgets = append(r.Budgets, result.Budget{Text: "Leader at rest", Compare: result.Below, Target: 0.10,
			Measured: with.Median - without.Median, Low: with.Low - without.High, High: with.High - without.Low, Unit: "cores",
			How: fmt.Sprintf("all that the system costs a kube-apiserver that looks after all features: %s cores at rest with reporters, less %s, %s; medians of %d looks, and between the lowest less the highest and the highest less the lowest",
				result.Format(with.Median), beside, base, options.Windows)})
	}
	r.Limits = append(r.Limits,
		result.Limit{Text: "One write for each process, which is its report", Limit: float64(o.processes()), Ours: float64(o.storm.Reports + o.storm.Features), Unit: "writes", Cost: true},
	)
	if options.Compaction == 0 {
		// With the past in it, memory says nothing.
		return
	}
	if ok {
		r.Budgets = append(r.Budgets,
			result.Budget{Text: "More memory in kube-apiserver", Compare: result.Below, Target: mostMemory, Measured: measure.Mebibytes(o.resting.RSS - p.free.RSS), Unit: "MiB", Once: true,
				How: fmt.Sprintf("resident memory at rest with reporters, %s MiB, less that of one with FeatureLifecycle=false beside the same nodes, %s MiB, each after a collection; without reporters ours has %s MiB", result.Format(measure.Mebibytes(o.resting.RSS)), result.Format(measure.Mebibytes(p.free.RSS)), result.Format(measure.Mebibytes(o.free.RSS)))},
		)
	}
	r.Limits = append(r.Limits,
		result.Limit{Text: "All reports once in memory, as large as they are stored in etcd", Limit: measure.Mebibytes(o.stored.Bytes), Ours: measure.Mebibytes(o.resting.Heap - o.free.Heap), Unit: "MiB of live heap", Cost: true},
	)
}
