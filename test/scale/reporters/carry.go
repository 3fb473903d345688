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

package reporters

import (
	"math"

	"k8s.io/kubernetes-features/test/scale/fleet"
	"k8s.io/kubernetes-features/test/scale/measure"
	"k8s.io/kubernetes-features/test/scale/result"
)

// carriedTo are the sizes of clusters, in nodes, that costs are carried to: the
// largest that Kubernetes is tested with, and larger ones that are in use.
var carriedTo = []int{5_000, 15_000, 65_000}

// line is what something costs that grows with processes.
type line struct {
	// fixed is the cost without any process, slope that of each.
	fixed, slope float64
	// off is how far the measured cost that lies farthest from the line is off it,
	// as a part of it.
	off float64
}

// at is the cost of so many processes.
func (l line) at(processes float64) float64 { return l.fixed + l.slope*processes }

// fit finds the line from which the squares of the relative deviations are least:
// with absolute ones the largest size alone would decide. Two sizes at least are
// needed, and costs above 0.
func fit(processes, costs []float64) (line, bool) {
	var w, wx, wy, wxx, wxy float64
	for i, x := range processes {
		if !(costs[i] > 0) {
			return line{}, false
		}
		weight := 1 / (costs[i] * costs[i])
		w, wx, wy = w+weight, wx+weight*x, wy+weight*costs[i]
		wxx, wxy = wxx+weight*x*x, wxy+weight*x*costs[i]
	}
	scale := w*wxx - wx*wx
	if len(processes) < 2 || scale == 0 {
		return line{}, false
	}
	l := line{slope: (w*wxy - wx*wy) / scale}
	l.fixed = (wy - l.slope*wx) / w
	for i, x := range processes {
		l.off = max(l.off, math.Abs(l.at(x)/costs[i]-1))
	}
	return l, true
}

// describeCarried carries what was measured to larger clusters.
func describeCarried(r *result.Result, outcomes []outcome) {
	columns := []result.Column{{Name: "what"}, {Name: "each 1,000 processes"}, {Name: "off the line at most", Unit: "%"}}
	for _, nodes := range carriedTo {
		columns = append(columns, result.Column{Name: result.Number(float64(nodes)).String() + " nodes"})
	}
	t := result.Table{Title: "Carried to larger clusters", Columns: columns,
		Note: "Two processes a node. A line through what was measured, with the least squares of relative deviations; where the last columns are beyond the sizes measured, nobody has seen them."}
	for _, cost := range []struct {
		what string
		of   func(outcome) float64
	}{
		{"etcd, reports (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.stored.Bytes) }},
		{"live heap of kube-apiserver, more than without (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.resting.Heap - o.free.Heap) }},
		{"resident memory of kube-apiserver, more than without (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.resting.RSS - o.free.RSS) }},
		{"peak of resident memory while all start (MiB)", func(o outcome) float64 { return measure.Mebibytes(o.storm.Usage.RSSPeak) }},
		{"processor of kube-apiserver until all that start are counted (s)", func(o outcome) float64 { return o.storm.Usage.CPU.Seconds() }},
		{"time until all that start are counted (s)", func(o outcome) float64 { return o.storm.Seconds }},
		{"processor of kube-apiserver at rest, more than without (% of a core)", func(o outcome) float64 { return 100 * restingCores(o) }},
		{"writes of reports, start of all", func(o outcome) float64 { return float64(o.storm.Reports) }},
		{"writes of features, start of all", func(o outcome) float64 { return float64(o.storm.Features) }},
	} {
		var processes, costs []float64
		for _, o := range outcomes {
			processes, costs = append(processes, float64(o.processes())), append(costs, cost.of(o))
		}
		l, ok := fit(processes, costs)
		if !ok {
			row := []any{cost.what, "no line: one of the costs is not above 0", ""}
			for range carriedTo {
				row = append(row, "")
			}
			t.AddRow(row...)
			continue
		}
		row := []any{cost.what, 1000 * l.slope, 100 * l.off}
		for _, nodes := range carriedTo {
			row = append(row, l.at(float64(fleet.PerNode*nodes)))
		}
		t.AddRow(row...)
	}
	// Through one size there is no line.
	if len(outcomes) > 1 {
		r.Tables = append(r.Tables, &t)
	}
}
