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
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// example is a valid result.
func example() *Result {
	r := &Result{
		Name: "clear", Question: "How fast?", Command: "make bench-clear", Peer: "another", Begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 61.5,
		Environment: Environment{Processor: "One", Cores: 2, Memory: 24 << 30, Kernel: "6.1", OS: "Debian", Go: "go1.26", Commit: "0123456789abcdef", Dirty: true, Kubernetes: "v1.36.3", Etcd: "v3.6.8"},
		Method:      []string{"Once."},
		Budgets:     []Budget{{Text: "rate", Compare: AtLeast, Target: 0.9, Measured: 0.95, How: "ours / limit"}, {Text: "memory", Compare: AtMost, Target: 1, Measured: 2, Unit: "×"}},
		Limits:      []Limit{{Text: "patches", Limit: 1000, Ours: 950, Unit: "objects/s"}, {Text: "load", Limit: 2, Ours: 5, Unit: "ns", Cost: true}},
	}
	table := r.AddTable("Rates", Column{Name: "method"}, Column{Name: "rate", Unit: "objects/s"})
	table.AddRow("ours | theirs", 1234.6)
	table.AddRow("peer", 7)
	chart := r.AddChart("rate", "Rate", Axis{Label: "objects", Log: true}, Axis{Label: "rate", Unit: "objects/s"})
	chart.Add("ours", Ours, Point{X: 1, Y: 2})
	chart.Add("ours", Ours, Point{X: 10, Y: 3, Low: 2, High: 4})
	chart.Add("peer", Peer, Point{X: 1, Y: 1})
	return r
}

func TestAResultIsReadAsItWasWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "folder", "clear.json")
	want := example()
	if err := want.Write(file); err != nil {
		t.Fatal(err)
	}
	got, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Cell{})); diff != "" {
		t.Error(diff)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"met": true`)) || !bytes.Contains(data, []byte(`"met": false`)) {
		t.Errorf("the file does not say which budgets are met:\n%s", data)
	}
}

func TestWhetherABudgetIsMetIsComputed(t *testing.T) {
	for _, tc := range []struct {
		compare       string
		below, at, up bool
	}{{AtMost, true, true, false}, {AtLeast, false, true, true}, {Below, true, false, false}, {Above, false, false, true}, {"about", false, false, false}} {
		for measured, want := range map[float64]bool{1: tc.below, 2: tc.at, 3: tc.up} {
			if got := (Budget{Compare: tc.compare, Target: 2, Measured: measured}).Met(); got != want {
				t.Errorf("%v %s 2 is %t", measured, tc.compare, got)
			}
		}
	}
	// What a file claims does not count.
	file := filepath.Join(t.TempDir(), "clear.json")
	if err := example().Write(file); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte(`"met": false`), []byte(`"met": true`)), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if r.Budgets[1].Met() {
		t.Error("a budget is met since its file says so")
	}
}

func TestAnInvalidResultIsNotWritten(t *testing.T) {
	for what, spoil := range map[string]func(*Result){
		"without a peer":                           func(r *Result) { r.Peer = "" },
		"without tables":                           func(r *Result) { r.Tables = nil },
		"without charts":                           func(r *Result) { r.Charts = nil },
		"without budgets":                          func(r *Result) { r.Budgets = nil },
		"without limits":                           func(r *Result) { r.Limits = nil },
		"with an empty table":                      func(r *Result) { r.Tables[0].Rows = nil },
		"with a short row":                         func(r *Result) { r.Tables[0].AddRow("alone") },
		"with a figure that is none":               func(r *Result) { r.Tables[0].AddRow("x", math.NaN()) },
		"with an empty series":                     func(r *Result) { r.Charts[0].Series[0].Points = nil },
		"with an unknown role":                     func(r *Result) { r.Charts[0].Series[0].Role = "theirs" },
		"with 0 on a logarithmic axis":             func(r *Result) { r.Charts[0].Series[0].Points[0].X = 0 },
		"with a place that has no name":            func(r *Result) { r.Charts[0].X.Categories = []string{"a"} },
		"with a chart of ours alone":               func(r *Result) { r.Charts[0].Series = r.Charts[0].Series[:1] },
		"with two charts of one name":              func(r *Result) { r.Charts = append(r.Charts, r.Charts[0]) },
		"with a budget that compares with nothing": func(r *Result) { r.Budgets[0].Compare = "" },
		"with a budget that was not measured":      func(r *Result) { r.Budgets[0].Measured = math.Inf(1) },
		"with a limit of 0":                        func(r *Result) { r.Limits[0].Limit = 0 },
	} {
		r := example()
		spoil(r)
		file := filepath.Join(t.TempDir(), "clear.json")
		if err := r.Write(file); err == nil {
			t.Errorf("a result %s was written", what)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("a result %s left a file", what)
		}
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 7: "7", -1234: "-1,234", 1234567: "1,234,567", 123456.7: "123,457", 12.345: "12.3", 1.2345: "1.23", 0.012345: "0.0123"} {
		if got := Format(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

func TestMarkdownAndTextHaveAllThatWasFound(t *testing.T) {
	markdown := example().Markdown([]string{"docs/benchmarks/clear-rate.svg"})
	var text strings.Builder
	example().WriteText(&text)
	for _, want := range []string{"ours \\| theirs", "1,235", "![Rate](docs/benchmarks/clear-rate.svg)", "with changes that are not committed", "0123456789ab ", "24 GiB", "2026-01-02 03:04 UTC",
		"| rate | ≥ 0.9 | 0.95 | met | ours / limit |", "| memory | ≤ 1 × | 2 × | **missed** |", "95 % of the limit", "2.50 × the limit", "* Once."} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the Markdown does not have %q:\n%s", want, markdown)
		}
	}
	for _, want := range []string{"Rates", "rate (objects/s)", "1,235", "met          rate: 0.95, wanted ≥ 0.9", "missed       memory: 2 ×, wanted ≤ 1 ×"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not have %q:\n%s", want, text.String())
		}
	}
}

// TestVerdicts: repetitions on both sides of the target decide nothing.
func TestVerdicts(t *testing.T) {
	for want, budgets := range map[string][]Budget{
		"met":          {{Compare: AtMost, Target: 1, Measured: 1}, {Compare: AtMost, Target: 1, Measured: 0.5, Low: 0.4, High: 1}},
		"missed":       {{Compare: AtMost, Target: 1, Measured: 2}, {Compare: AtLeast, Target: 1, Measured: 0.5, Low: 0.4, High: 0.9}},
		"met once":     {{Compare: AtMost, Target: 1, Measured: 1, Once: true}},
		"missed once":  {{Compare: AtMost, Target: 1, Measured: 2, Once: true}},
		"inconclusive": {{Compare: AtMost, Target: 1, Measured: 0.9, Low: 0.8, High: 1.1}, {Compare: AtMost, Target: 1, Measured: 1.1, Low: 0.9, High: 1.2}},
	} {
		for _, b := range budgets {
			if got := b.Verdict(); got != want {
				t.Errorf("%+v is %s, want %s", b, got, want)
			}
		}
	}
}
