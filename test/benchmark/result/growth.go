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

package result

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// clusters are the sizes that costs are extrapolated to, in nodes: the largest that
// Kubernetes is tested with, and larger ones that are in use.
var clusters = []int{5_000, 15_000, 65_000}

// straight is how far measured costs may be off a line, as a part of them, for the line
// to be believed beyond them.
const straight = 0.2

// Growth is what grows with the processes of a cluster, as it was measured in several
// sizes. Larger sizes are extrapolated from it when it is shown.
type Growth struct {
	// PerNode is the number of processes a node has.
	PerNode int `json:"perNode"`
	// Processes are the sizes, from the smallest to the largest.
	Processes []int  `json:"processes"`
	Costs     []Cost `json:"costs"`
}

// Cost is something that grows: what it was in each size.
type Cost struct {
	What    string    `json:"what"`
	Figures []float64 `json:"figures"`
	// Ceiling is the highest figure that can be measured, such as the time after which a
	// client gives up; 0 is none. A figure that reaches it may be higher in truth, and
	// nothing is extrapolated from it.
	Ceiling float64 `json:"ceiling,omitempty"`
}

// shown is a figure as it was measured.
func (c Cost) shown(i int) string {
	if c.capped(i) {
		return "**" + AtLeast + " " + Format(c.Ceiling) + "**"
	}
	return "**" + Format(c.Figures[i]) + "**"
}

func (c Cost) capped(i int) bool { return c.Ceiling > 0 && c.Figures[i] >= c.Ceiling }

// CostOf takes a figure of each size.
func CostOf[T any](what string, sizes []T, figure func(T) float64) Cost {
	c := Cost{What: what}
	for _, size := range sizes {
		c.Figures = append(c.Figures, figure(size))
	}
	return c
}

func (g *Growth) validate() error {
	if g.PerNode < 1 || len(g.Processes) == 0 || len(g.Costs) == 0 {
		return fmt.Errorf("growth: %d processes a node, %d sizes and %d costs; one of each is needed", g.PerNode, len(g.Processes), len(g.Costs))
	}
	for i, n := range g.Processes {
		if n < 1 || i > 0 && n <= g.Processes[i-1] {
			return fmt.Errorf("growth: the sizes %v do not grow", g.Processes)
		}
	}
	for _, c := range g.Costs {
		if c.What == "" || len(c.Figures) != len(g.Processes) {
			return fmt.Errorf("growth: %q has %d figures for %d sizes", c.What, len(c.Figures), len(g.Processes))
		}
		if !finite(c.Ceiling) || c.Ceiling < 0 {
			return fmt.Errorf("growth: the highest that can be measured of %q is %v", c.What, c.Ceiling)
		}
		if i := slices.IndexFunc(c.Figures, func(v float64) bool { return !finite(v) }); i >= 0 {
			return fmt.Errorf("growth: %q is %v with %d processes", c.What, c.Figures[i], g.Processes[i])
		}
	}
	return nil
}

// Table extrapolates to larger clusters, nil if there is one size only. What was
// measured itself stands as it was measured.
func (g *Growth) Table() *Table {
	if g == nil || len(g.Processes) < 2 {
		return nil
	}
	columns := []Column{{Name: "what"}, {Name: "how it grows"}, {Name: "1,000 processes more"}}
	for _, nodes := range clusters {
		columns = append(columns, Column{Name: Format(float64(nodes)) + " nodes"})
	}
	t := &Table{Title: "Extrapolated to larger clusters", Columns: columns}
	t.Note = fmt.Sprintf("%d processes a node; measured with n = %s processes. **Bold** figures were measured, the others are extrapolated. A linear fit has the least squares of relative deviations. "+
		"Where it is off by more than %s %%, the growth between the two largest sizes is carried on, and is what 1,000 processes more cost there.", g.PerNode, and(g.Processes), Format(100*straight))
	for _, cost := range g.Costs {
		how, at, more := cost.model(g.Processes)
		row := []any{cost.What, how, more}
		if at == nil {
			row[2] = ""
		}
		for _, nodes := range clusters {
			n := g.PerNode * nodes
			if i := slices.Index(g.Processes, n); i >= 0 {
				row = append(row, cost.shown(i))
			} else if at != nil {
				row = append(row, at(float64(n)))
			} else {
				row = append(row, "")
			}
		}
		t.AddRow(row...)
	}
	return t
}

// model returns how a cost grows, in words and as a function of the number of processes,
// and what 1,000 more cost. The function is nil if nothing can be said.
func (c Cost) model(processes []int) (how string, at func(float64) float64, more float64) {
	var sizes []float64
	for _, n := range processes {
		sizes = append(sizes, float64(n))
	}
	for i := range c.Figures {
		if c.capped(i) {
			return fmt.Sprintf("cannot be extrapolated: %s is the highest that can be measured", Format(c.Ceiling)), nil, 0
		}
	}
	l, ok := fit(sizes, c.Figures)
	if !ok {
		return "cannot be extrapolated: one of the costs is not above 0", nil, 0
	}
	if l.off <= straight {
		// What is off by less than a billionth is what computing leaves of nothing.
		return fmt.Sprintf("linear, within %s %%", Format(100*math.Round(1e9*l.off)/1e9)), l.at, 1000 * l.slope
	}
	from, to := len(sizes)-2, len(sizes)-1
	x, y := sizes[to], c.Figures[to]
	if power := math.Log(y/c.Figures[from]) / math.Log(x/sizes[from]); power > 1 {
		return fmt.Sprintf("superlinear, ∝ n^%.2f (a linear fit is off by %s %%)", power, Format(100*l.off)),
			func(n float64) float64 { return y * math.Pow(n/x, power) }, 1000 * power * y / x
	}
	// It grows less than processes do. A fall is not reliable.
	slope := max(0, (y-c.Figures[from])/(x-sizes[from]))
	return fmt.Sprintf("sublinear: linear through the two largest sizes (a linear fit of all is off by %s %%)", Format(100*l.off)),
		func(n float64) float64 { return y + slope*(n-x) }, 1000 * slope
}

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

// and is "1,000, 10,000 and 30,000".
func and(all []int) string {
	var texts []string
	for _, n := range all {
		texts = append(texts, Format(float64(n)))
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}
