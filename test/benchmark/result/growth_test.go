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
	"math"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	l, ok := fit([]float64{1_000, 10_000, 30_000}, []float64{7, 25, 65})
	if !ok {
		t.Fatal("three sizes have no line")
	}
	near("fixed", l.fixed, 5)
	near("slope", l.slope, 0.002)
	near("off", l.off, 0)
	near("at 130,000", l.at(130_000), 265)

	// A small size weighs as much as a large one.
	l, ok = fit([]float64{1_000, 10_000, 30_000}, []float64{2, 10, 30})
	if !ok || l.off < 0.03 || l.off > 0.05 || l.fixed < 1 || l.fixed > 1.1 {
		t.Errorf("%+v, %t", l, ok)
	}
	for what, test := range map[string]struct{ processes, costs []float64 }{
		"one size":         {[]float64{1_000}, []float64{1}},
		"twice one size":   {[]float64{1_000, 1_000}, []float64{1, 2}},
		"nothing measured": {nil, nil},
		"no cost":          {[]float64{1_000, 10_000}, []float64{0, 1}},
	} {
		if l, ok := fit(test.processes, test.costs); ok {
			t.Errorf("%s has the line %+v", what, l)
		}
	}
}

// TestGrowthIsExtrapolated: 5,000 nodes are 10,000 processes here.
func TestGrowthIsExtrapolated(t *testing.T) {
	for _, test := range []struct {
		what    string
		figures []float64
		// how is part of what is said, more what 1,000 processes more cost.
		how   string
		more  float64
		sizes []string
		// ceiling is the highest that can be measured.
		ceiling float64
	}{
		{"a line", []float64{0.3, 2.1, 20.1}, "linear, ", 2, []string{"**20.1**", "60.1", "260"}, 0},
		{"measured is not computed", []float64{2, 11, 100}, "linear, ", 9.91, []string{"**100**", "299", "1,293"}, 0},
		{"faster than processes", []float64{0.2, 2, 200}, "superlinear, ∝ n^2.00 ", 40, []string{"**200**", "1,800", "33,800"}, 0},
		{"slower than processes", []float64{1, 10, 19}, "sublinear: ", 1, []string{"**19**", "39", "139"}, 0},
		{"it falls", []float64{1, 10, 5}, "sublinear: ", 0, []string{"**5**", "5", "5"}, 0},
		{"clients give up", []float64{1, 10, 30}, "cannot be extrapolated: 30 is the highest", math.NaN(), []string{"**≥ 30**", "", ""}, 30},
		{"clients are served", []float64{1, 10, 29}, "sublinear: ", 2.11, []string{"**29**", "71.2", "282"}, 30},
		{"nothing", []float64{0, 1, 2}, "cannot be extrapolated: ", math.NaN(), []string{"**2**", "", ""}, 0},
	} {
		g := &Growth{PerNode: 2, Processes: []int{100, 1_000, 10_000}, Costs: []Cost{{What: test.what, Figures: test.figures, Ceiling: test.ceiling}}}
		if err := g.validate(); err != nil {
			t.Fatal(err)
		}
		table := g.Table()
		if err := table.validate(); err != nil {
			t.Fatal(err)
		}
		row := table.Rows[0]
		if how := row[1].String(); !strings.HasPrefix(how, test.how) {
			t.Errorf("%s: it is said to grow %q, want %q", test.what, how, test.how)
		}
		if more, ok := row[2].Value(); ok == math.IsNaN(test.more) || ok && math.Abs(more-test.more) > 0.01*test.more {
			t.Errorf("%s: 1,000 processes more are %v, want %v", test.what, row[2], test.more)
		}
		for i, want := range test.sizes {
			if got := row[3+i].String(); got != want {
				t.Errorf("%s: %s: %q, want %q", test.what, table.Columns[3+i].Name, got, want)
			}
		}
		if !strings.Contains(table.Note, "measured with n = 100, 1,000 and 10,000 processes") {
			t.Errorf("the note is %q", table.Note)
		}
	}
	if table := (&Growth{PerNode: 2, Processes: []int{1_000}, Costs: []Cost{{What: "stored", Figures: []float64{2}}}}).Table(); table != nil {
		t.Errorf("one size is extrapolated: %+v", table)
	}
	if table := (*Growth)(nil).Table(); table != nil {
		t.Errorf("nothing is extrapolated: %+v", table)
	}
}

func TestGrowthIsWhole(t *testing.T) {
	for what, g := range map[string]Growth{
		"no processes on nodes":   {Processes: []int{1}, Costs: []Cost{{What: "a", Figures: []float64{1}}}},
		"no size":                 {PerNode: 1, Costs: []Cost{{What: "a", Figures: nil}}},
		"no cost":                 {PerNode: 1, Processes: []int{1}},
		"a size twice":            {PerNode: 1, Processes: []int{1, 1}, Costs: []Cost{{What: "a", Figures: []float64{1, 1}}}},
		"a size of none":          {PerNode: 1, Processes: []int{0}, Costs: []Cost{{What: "a", Figures: []float64{1}}}},
		"a figure is missing":     {PerNode: 1, Processes: []int{1, 2}, Costs: []Cost{{What: "a", Figures: []float64{1}}}},
		"a cost without name":     {PerNode: 1, Processes: []int{1}, Costs: []Cost{{What: "", Figures: []float64{1}}}},
		"what JSON does not have": {PerNode: 1, Processes: []int{1}, Costs: []Cost{{What: "a", Figures: []float64{math.NaN()}}}},
	} {
		if g.validate() == nil {
			t.Errorf("%s: nothing is said", what)
		}
	}
}
