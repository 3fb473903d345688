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
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Names are those of all benchmarks, in the order in which they run and are shown.
var Names = []string{"featuregate", "clear", "clear-large", "reporters", "start", "flip", "transition"}

// Result is what one run of a benchmark found. Name, Command, Environment, Begun
// and Seconds are set by the program that runs it, the rest by the benchmark.
type Result struct {
	// Name is one of Names.
	Name string `json:"name"`
	// Question is what the benchmark answers, in one or two sentences.
	Question string `json:"question"`
	// Command is what repeats the run.
	Command     string      `json:"command"`
	Environment Environment `json:"environment"`
	// Begun is the time at which the run began, Seconds how long it took.
	Begun   time.Time `json:"begun"`
	Seconds float64   `json:"seconds"`
	// Peer describes what ours is compared with, and that both were in one run.
	Peer string `json:"peer"`
	// Method describes what a reader has to know to trust the figures: how objects were
	// made, what was repeated, what the spread is. One sentence each.
	Method  []string `json:"method,omitempty"`
	Tables  []*Table `json:"tables"`
	Charts  []*Chart `json:"charts"`
	Budgets []Budget `json:"budgets"`
	Limits  []Limit  `json:"limits"`
	// Growth is what grows with clusters, nil if that was not measured.
	Growth *Growth `json:"growth,omitempty"`
}

// Environment is the machine and the software of a run.
type Environment struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	// Memory is in bytes.
	Memory int64  `json:"memory"`
	Kernel string `json:"kernel"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	// Commit is the one that is checked out; Dirty is true when files differ from
	// it, those that benchmarks write aside.
	Commit     string `json:"commit"`
	Dirty      bool   `json:"dirty"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
}

// AddTable adds an empty table and returns it.
func (r *Result) AddTable(title string, columns ...Column) *Table {
	t := &Table{Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	return t
}

// Where results and what is made of them are, below the root. Results, pictures and what
// people write about them are in Folder; Page shows all, and Larger has what is
// extrapolated to larger clusters.
const (
	Folder = "docs/benchmarks"
	Page   = "BENCHMARKS.md"
	Larger = "docs/contributors/scale.md"
)

// AddChart adds an empty chart and returns it. The name is part of the file's.
func (r *Result) AddChart(name, title string, x, y Axis) *Chart {
	c := &Chart{Name: name, Title: title, X: x, Y: y}
	r.Charts = append(r.Charts, c)
	return c
}

// Validate finds what a result must not be: empty, with rows that do not fit their
// columns, or with numbers that JSON cannot have.
func (r *Result) Validate() error {
	var errs []error
	say := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("result of %q: "+format, append([]any{r.Name}, args...)...))
	}
	if r.Name == "" || r.Question == "" || r.Peer == "" {
		say("name, question and peer have to be set")
	}
	if len(r.Tables) == 0 || len(r.Charts) == 0 || len(r.Budgets) == 0 || len(r.Limits) == 0 {
		say("%d tables, %d charts, %d budgets and %d limits; one of each is needed", len(r.Tables), len(r.Charts), len(r.Budgets), len(r.Limits))
	}
	for _, t := range r.Tables {
		if err := t.validate(); err != nil {
			say("%w", err)
		}
	}
	names := map[string]bool{}
	for _, c := range r.Charts {
		if err := c.validate(); err != nil {
			say("%w", err)
		}
		if names[c.Name] {
			say("two charts have the name %q", c.Name)
		}
		names[c.Name] = true
	}
	if r.Growth != nil {
		if err := r.Growth.validate(); err != nil {
			say("%w", err)
		}
	}
	for _, b := range r.Budgets {
		if err := b.validate(); err != nil {
			say("%w", err)
		}
	}
	for _, l := range r.Limits {
		if l.Text == "" || !finite(l.Limit) || !finite(l.Ours) || l.Limit <= 0 || l.Ours <= 0 {
			say("limit %q: %v of %v; both have to be above 0, with a text", l.Text, l.Ours, l.Limit)
		}
	}
	return errors.Join(errs...)
}

// finite is true for numbers that JSON has.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Write stores a valid result as a file. The one before is replaced at once, and
// stays when this one is not valid.
func (r *Result) Write(file string) error {
	if err := r.Validate(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part := file + ".part"
	if err := os.WriteFile(part, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// Read reads what Write stored.
func Read(file string) (*Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w; run the benchmark again", file, err)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("reading %s: %w; run the benchmark again", file, err)
	}
	return r, nil
}
