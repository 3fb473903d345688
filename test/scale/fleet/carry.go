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

package fleet

import (
	"fmt"
	"math"
	"strings"

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

// Cost is something that grows with processes: what it was in each size.
type Cost struct {
	What    string
	Figures []float64
}

// CostOf takes a figure of each size.
func CostOf[T any](what string, sizes []T, figure func(T) float64) Cost {
	c := Cost{What: what}
	for _, size := range sizes {
		c.Figures = append(c.Figures, figure(size))
	}
	return c
}

// Carry adds a table that carries what was measured with so many processes to larger
// clusters. Through one size there is no line, and no table.
func Carry(r *result.Result, processes []int, costs ...Cost) {
	if len(processes) < 2 {
		return
	}
	var sizes []float64
	for _, n := range processes {
		sizes = append(sizes, float64(n))
	}
	columns := []result.Column{{Name: "what"}, {Name: "each 1,000 processes"}, {Name: "off the line at most", Unit: "%"}}
	for _, nodes := range carriedTo {
		columns = append(columns, result.Column{Name: result.Number(float64(nodes)).String() + " nodes"})
	}
	t := r.AddTable(result.Carried, columns...)
	t.Note = fmt.Sprintf("Two processes a node. A line through what was measured with %s processes, with the least squares of relative deviations; where the last columns are beyond that, nobody has seen them.", numbers(processes))
	for _, cost := range costs {
		l, ok := fit(sizes, cost.Figures)
		if !ok {
			row := []any{cost.What, "no line: one of the costs is not above 0", ""}
			for range carriedTo {
				row = append(row, "")
			}
			t.AddRow(row...)
			continue
		}
		row := []any{cost.What, 1000 * l.slope, 100 * l.off}
		for _, nodes := range carriedTo {
			row = append(row, l.at(float64(PerNode*nodes)))
		}
		t.AddRow(row...)
	}
}

// numbers is "1,000, 10,000 and 30,000".
func numbers(all []int) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, result.Format(float64(n)))
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}
