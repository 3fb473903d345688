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

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

// example is a valid result with a chart of each kind.
func example() *result.Result {
	r := &result.Result{
		Name: "clear", Question: "How fast?", Command: "make bench-clear", Peer: "another", Begun: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 61.5,
		Environment: result.Environment{Processor: "One", Cores: 2, Memory: 24 << 30, Commit: "0123456789abcdef"},
		Budgets:     []result.Budget{{Text: "rate", Compare: result.AtLeast, Target: 0.9, Measured: 0.95}},
		Limits:      []result.Limit{{Text: "patches", Limit: 1000, Ours: 950, Unit: "objects/s"}},
	}
	r.AddTable("Rates", result.Column{Name: "method"}).AddRow("ours")
	r.Growth = &result.Growth{PerNode: 2, Processes: []int{1_000, 10_000}, Costs: []result.Cost{{What: "memory", Figures: []float64{2, 20}}}}
	growth := r.AddChart("growth", "Rate by <size>", result.Axis{Label: "objects", Log: true}, result.Axis{Label: "rate", Unit: "objects/s", Log: true})
	bars := r.AddChart("bars", "Start", result.Axis{Label: "start", Categories: []string{"cold", "warm"}}, result.Axis{Label: "time", Unit: "s"})
	for _, series := range []struct {
		name string
		role result.Role
	}{{"ours", result.Ours}, {"the migrator", result.Peer}, {"a patch client", result.Bound}} {
		for i, x := range []float64{1e4, 3e4, 1e5} {
			growth.Add(series.name, series.role, result.Point{X: x, Y: 500 + 10*float64(i), Low: 450, High: 600})
		}
		for i := range 2 {
			bars.Add(series.name, series.role, result.Point{X: float64(i), Y: 4, Low: 3, High: 5})
		}
	}
	return r
}

// repository has the example's file, and is drawn.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := example().Write(filepath.Join(root, folder, "clear.json")); err != nil {
		t.Fatal(err)
	}
	write(t, root, folder+"/clear.md", "# clear\n\n"+resultBegins+resultEnds+"\n## Why\n\nSee [the task](../tasks.md).\n")
	write(t, root, larger, "# Larger\n\n"+beginning+"old\n"+ending+"\nMore.\n")
	if err := run(io.Discard, root, false); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestPageOfLargerClustersHasExtrapolations(t *testing.T) {
	root := repository(t)
	got := read(t, root, larger)
	want := "# Larger\n\n" + beginning + "\nBenchmark [clear](../../BENCHMARKS.md#clear), commit " + fmt.Sprintf("%.12s", example().Environment.Commit) + "\n\n" +
		"| what | how it grows | 1,000 processes more | 5,000 nodes | 15,000 nodes | 65,000 nodes |\n| --- | --- | ---: | --- | ---: | ---: |\n| memory | linear, within 0 % | 2 | **20** | 60 | 260 |\n\n" +
		example().Growth.Table().Note + "\n\n" + ending + "\nMore.\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	write(t, root, larger, "# Larger\n")
	if err := run(io.Discard, root, true); err == nil || !strings.Contains(err.Error(), larger) {
		t.Errorf("a page without the lines: %v", err)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPagesHaveBudgetsChartsAndNotes(t *testing.T) {
	root := repository(t)
	for name, wants := range map[string][]string{
		page: {"\n## clear\n", "| clear | rate | ≥ 0.9 | 0.95 | met |", "![Rate by <size>](docs/benchmarks/clear-growth.svg)", "(docs/benchmarks/clear.md)"},
		folder + "/clear.md": {
			"# clear\n", "![Rate by <size>](clear-growth.svg)", "![Start](clear-bars.svg)", "\nRates\n", "**Beside it:** another", "| patches | 1,000 objects/s |",
			"\n## Why\n\nSee [the task](../tasks.md).\n",
		},
	} {
		got := read(t, root, name)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not have %q:\n%s", name, want, got)
			}
		}
	}
}

func TestAPageWithoutAPlaceForItsResultIsRefused(t *testing.T) {
	root := repository(t)
	write(t, root, folder+"/clear.md", "# clear\n")
	if err := run(io.Discard, root, false); err == nil || !strings.Contains(err.Error(), "BEGIN MUNGE: RESULT") {
		t.Errorf("a page without the lines: %v", err)
	}
	if err := os.Remove(filepath.Join(root, folder, "clear.md")); err != nil {
		t.Fatal(err)
	}
	if err := run(io.Discard, root, false); err != nil {
		t.Fatal(err)
	}
	if got := read(t, root, folder+"/clear.md"); !strings.HasPrefix(got, "# clear\n\n"+resultBegins) {
		t.Errorf("the page that was created is\n%s", got)
	}
}

func TestPicturesAreWholeAndSaySoInWords(t *testing.T) {
	root := repository(t)
	for name, wants := range map[string][]string{
		"clear-growth.svg": {"ours", "the migrator", "a patch client", "objects", "rate (objects/s)", "Rate by &lt;size&gt;", "10 k", "100 k"},
		"clear-bars.svg":   {"cold", "warm", "time (s)", "the migrator"},
	} {
		svg := read(t, root, folder+"/"+name)
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s is no XML: %v", name, err)
			}
		}
		for _, want := range wants {
			if !strings.Contains(svg, ">"+want+"<") {
				t.Errorf("%s does not say %q", name, want)
			}
		}
		for _, colors := range shades {
			hex := "#" + strings.ToUpper(hexOf(colors[0].R, colors[0].G, colors[0].B))
			if !strings.Contains(svg, hex) {
				t.Errorf("%s has nothing in %s", name, hex)
			}
		}
	}
}

func hexOf(parts ...byte) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte(digits[part>>4])
		b.WriteByte(digits[part&15])
	}
	return b.String()
}

func TestTheSameResultsGiveTheSameBytes(t *testing.T) {
	root := repository(t)
	first, err := render([]*result.Result{example()}, root)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := render([]*result.Result{example()}, root)
		if err != nil {
			t.Fatal(err)
		}
		for name := range first {
			if !bytes.Equal(first[name], again[name]) {
				t.Fatalf("%s differs", name)
			}
		}
	}
}

func TestCheckFindsOutdatedFiles(t *testing.T) {
	for _, tc := range []struct {
		what  string
		spoil func(root string)
	}{
		{"", func(string) {}},
		{page, func(root string) { write(t, root, page, "mine") }},
		{folder + "/clear.md", func(root string) { write(t, root, folder+"/clear.md", resultBegins+resultEnds) }},
		{larger, func(root string) { write(t, root, larger, beginning+ending) }},
		{folder + "/clear-bars.svg", func(root string) { write(t, root, folder+"/clear-bars.svg", "<svg/>") }},
		{folder + "/clear-old.svg", func(root string) { write(t, root, folder+"/clear-old.svg", "<svg/>") }},
		{folder + "/clear-growth.svg", func(root string) { _ = os.Remove(filepath.Join(root, folder, "clear-growth.svg")) }},
	} {
		root := repository(t)
		tc.spoil(root)
		err := run(io.Discard, root, true)
		if tc.what == "" && err != nil {
			t.Errorf("what is fresh is not: %v", err)
		}
		if tc.what != "" && (err == nil || !strings.Contains(err.Error(), tc.what)) {
			t.Errorf("%s is not fresh, and the check says %v", tc.what, err)
		}
		if err := run(io.Discard, root, false); err != nil {
			t.Fatal(err)
		}
		if err := run(io.Discard, root, true); err != nil {
			t.Errorf("after drawing again: %v", err)
		}
	}
}

func TestAResultOfAnotherNameIsRefused(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, larger, beginning+ending)
	for _, name := range []string{"start", "other"} {
		file := filepath.Join(root, folder, name+".json")
		if err := example().Write(file); err != nil {
			t.Fatal(err)
		}
		if err := run(io.Discard, root, false); err == nil {
			t.Errorf("%s was drawn", file)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []string) string { return strings.Join(ticks, ",") }
	for _, tc := range []struct {
		low, high float64
		want      string
	}{{8e3, 125e3, "10 k,20 k,50 k,100 k"}, {0.8, 1e6, "1,10,100,1000,10 k,100 k,1 M"}, {0.05, 2, "0.05,0.1,0.2,0.5,1,2"}} {
		var got []string
		for _, tick := range (logTicks{}).Ticks(tc.low, tc.high) {
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		if diff := cmp.Diff(tc.want, labels(got)); diff != "" {
			t.Errorf("%v to %v: %s", tc.low, tc.high, diff)
		}
	}
}
