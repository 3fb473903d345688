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

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

// smoke are the smallest sizes of each benchmark, with which it takes seconds.
var smoke = map[string][]string{
	"featuregate": {"--repetitions=2", "--time=1ms"},
	"clear":       {"--sizes=300", "--repetitions=1", "--workers=4,16", "--sweep=1", "--counted=300", "--rate=100", "--rest=500ms", "--touch", "--settle=1s"},
	"clear-large": {"--sizes=100", "--repetitions=1", "--workers=4", "--sweep=0", "--rate=100", "--rest=500ms", "--touch", "--settle=1s"},
	"reporters":   {"--nodes=5,10", "--budget-nodes=10", "--rest=2s", "--compaction=0s", "--template=1s", "--together=5", "--windows=2", "--lists=3", "--more=5"},
	"start":       {"--repetitions=1", "--quiet=200ms"},
	"flip":        {"--processes=4", "--changes=2", "--warm=100ms", "--rest=1s", "--window=500ms", "--template=1s", "--settle=1s"},
	"transition":  {"--servers=1", "--settle=1s", "--processes=2", "--objects=3", "--object-processes=2", "--repetitions=2", "--template=1s"},
}

// TestSmoke runs every benchmark with its smallest sizes on real processes and looks
// at what it writes. What it measures does not matter here.
func TestSmoke(t *testing.T) {
	for _, b := range benchmarks {
		t.Run(b.name, func(t *testing.T) {
			args, ok := smoke[b.name]
			if !ok {
				t.Fatal("the benchmark has no smallest sizes; add them to smoke")
			}
			file := filepath.Join(t.TempDir(), "result.json")
			var out bytes.Buffer
			cmd := newCommand(&out)
			cmd.SetArgs(append([]string{b.name, "--root=" + root, "--output=" + file}, args...))
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatalf("%v; it printed:\n%s", err, out.String())
			}
			r, err := result.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			again := filepath.Join(t.TempDir(), "again.json")
			if err := r.Write(again); err != nil {
				t.Fatal(err)
			}
			if same, err := result.Read(again); err != nil {
				t.Error(err)
			} else if diff := cmp.Diff(r, same, cmp.AllowUnexported(result.Cell{})); diff != "" {
				t.Errorf("written and read again the result differs:\n%s", diff)
			}
			for _, table := range r.Tables {
				if !bytes.Contains(out.Bytes(), []byte(table.Title)) {
					t.Errorf("the table %q was not printed", table.Title)
				}
			}
			if e := r.Environment; e.Processor == "" || e.Cores == 0 || e.Memory == 0 || e.Kernel == "" || e.OS == "" || e.Commit == "" || e.Kubernetes == "" || e.Etcd == "" {
				t.Errorf("the environment has gaps: %+v", e)
			}
			saysTheSame(t, b.name, r)
			hasTargets(t, b.name, r)
			t.Log("\n" + out.String())
		})
	}
}

// The beginnings of what is only said with the smallest sizes, and only with those of a
// whole run.
var shorter, longer = []string{forgotten, notCompared}, []string{
	forgotten, "budget: Live heap for processes that report", "budget: live heap flat from", "budget: live heap above that at rest flat from", "budget: resident memory flat from",
	// Without compactions memory says nothing.
	"budget: More memory in kube-apiserver", "limit: All reports once in memory",
	// Few processes, and one repetition.
	"budget: From the last report to the final state, nothing to clean up, very many", "limit: patches of a client that does nothing else",
}

// What is said otherwise of compactions that there are none of, and of the heap for a few
// processes, which is lost in noise.
const (
	notCompared = "What processes cost that report something else is not compared with a budget"
	forgotten   = "Memory at rest is measured when the past has been forgotten"
)

// outdated are the benchmarks that say something else of themselves than when they were run
// last, and that are to be run again.
var outdated = map[string]bool{"flip": true, "reporters": true}

// saysTheSame holds what the result in the repository says of itself against what the
// code says today, numbers aside: a benchmark that was changed is run again.
func saysTheSame(t *testing.T, name string, now *result.Result) {
	t.Helper()
	before, err := result.Read(recorded(root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return // TestEveryBenchmarkHasAResult says so, unless it is outdated
	}
	if err != nil {
		t.Fatal(err)
	}
	said := func(r *result.Result) (whole, parts []string) {
		whole = append(whole, r.Question, r.Peer)
		for _, c := range r.Charts {
			whole = append(whole, fmt.Sprintf("chart %s: %s (%s, %s)", c.Name, c.Title, c.X.Label, c.Y.Label))
		}
		parts = append(parts, r.Method...)
		for _, b := range r.Budgets {
			parts = append(parts, "budget: "+b.Text)
		}
		for _, l := range r.Limits {
			parts = append(parts, "limit: "+l.Text)
		}
		return withoutNumbers(whole), withoutNumbers(parts)
	}
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	whole, parts := said(now)
	recordedWhole, recordedParts := said(before)
	if diff := cmp.Diff(recordedWhole, whole); diff != "" {
		problem("what the recorded result says is not what the benchmark says today; run make bench-%s:\n%s", name, diff)
	}
	for _, side := range []struct {
		says                string
		parts, others, only []string
	}{
		{"the recorded result does not say what the benchmark says today", parts, recordedParts, shorter},
		{"the recorded result says what the benchmark does not say today", recordedParts, parts, longer},
	} {
		for _, part := range side.parts {
			only := slices.ContainsFunc(side.only, func(begin string) bool { return strings.HasPrefix(part, begin) })
			if !only && !slices.Contains(side.others, part) {
				problem("%s; run make bench-%s: %q is not among\n%s", side.says, name, part, strings.Join(side.others, "\n"))
			}
		}
	}
	switch {
	case outdated[name] && len(problems) == 0:
		t.Errorf("the recorded result of %s says what the benchmark says today; it is not outdated any more", name)
	case outdated[name]:
		t.Logf("the recorded result is outdated: %s", strings.Join(problems, "\n"))
	case len(problems) > 0:
		t.Error(strings.Join(problems, "\n"))
	}
}

// clearTargets are the targets of clearing, each a row of its table; countTargets those of
// counting, which is not done with large objects.
var (
	clearTargets = []string{
		"rate of the plain patch client", "rate of guarded etcd writes, one key per transaction", "rate of guarded etcd writes, many keys per transaction",
		"rate of clearing through the API", "rate of clearing through the API from the request", "rate of the migrator", "rate of the migrator from the request",
		"kube-apiserver's processor time for an object, of that under the plain patch client", "p99 of other clients, of that beside the migrator",
		"kube-apiserver's live heap at its highest, of that at rest",
	}
	countTargets = []string{
		"processor time of counting StatefulSets with the field, of that through the API", "processor time of counting Pods with one of all their fields, of that through the API",
	}
)

// hasTargets finds targets of clearing that have no row, or one whose figures are not above 0.
func hasTargets(t *testing.T, name string, r *result.Result) {
	t.Helper()
	want, ok := map[string][]string{"clear": slices.Concat(clearTargets, countTargets), "clear-large": clearTargets}[name]
	if !ok {
		return
	}
	i := slices.IndexFunc(r.Tables, func(t *result.Table) bool { return t.Title == "Targets" })
	if i < 0 {
		t.Fatal("there is no table of targets")
	}
	var rows []string
	for _, row := range r.Tables[i].Rows {
		rows = append(rows, row[0].String())
		for j, column := range r.Tables[i].Columns {
			// A process has no live heap before its first collection of garbage, which may
			// come after so few objects.
			if v, figure := row[j].Value(); figure && v <= 0 && !strings.Contains(rows[len(rows)-1], "live heap") {
				t.Errorf("%s: %s is %v", row[0], column.Name, v)
			}
		}
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the table of targets has other rows:\n%s", diff)
	}
}

var numbers = regexp.MustCompile(`\d[\d,.]*(?:(?:(?:ms|s|m)[\d.]*)+\b)?`)

// withoutNumbers has a mark in the place of each number and duration: sizes of a smoke test differ.
func withoutNumbers(texts []string) []string {
	for i := range texts {
		texts[i] = numbers.ReplaceAllString(texts[i], "#")
	}
	return texts
}
