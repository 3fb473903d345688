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
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	var got strings.Builder
	r := &runner{out: "_output", stdout: &got, builds: []row{{name: "make all", result: "built", seconds: 71 * time.Second}}}
	ok := r.report([]*outcome{
		{shard: Shard{Name: "api"}, result: passedResult, duration: 41400 * time.Millisecond, figures: figures{Passed: 12}},
		{shard: Shard{Name: "model"}, result: passedResult, duration: 10 * time.Minute, figures: figures{Passed: 1, Seeds: []string{"-rapid.seed=7"}}},
		{shard: Shard{Name: "processes"}, result: skippedResult, notes: []string{"needs root"}},
		{shard: Shard{Name: "tasks"}, result: failedResult, duration: time.Second, figures: figures{Passed: 3, Failed: 1, Skipped: 2},
			failures: []failure{{pkg: "p", test: "TestA", output: []string{"    a_test.go:1: no"}}}},
		{shard: Shard{Name: "values"}, result: unchangedResult, duration: 232 * time.Second, figures: figures{Passed: 8}, notes: []string{"passed 2026-11-28 00:42"}},
	})
	want := `
=== WHY p.TestA FAILED
    a_test.go:1: no

SHARD       RESULT      SECONDS   TESTS                          SEEDS, NOTES
make all    built       71
api         passed      41        12 tests
model       passed      600       1 test                         -rapid.seed=7
processes   skipped     -                                        needs root
tasks       failed      1         6 tests, 1 failed, 2 skipped
values      unchanged   232       8 tests                        passed 2026-11-28 00:42
over nine minutes: model (600 s)
8 tests of unchanged shards were not run again; FORCE=1 runs them
whole output: _output/shards/NAME.log; "make test-all ONLY=failed" repeats what failed
16 passed, 1 failed, 2 skipped
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if ok {
		t.Error("a run with a failure passed")
	}
}

func TestSeeds(t *testing.T) {
	r := newResults(nil, nil)
	for _, line := range []string{
		"    model_test.go:309: 5000 schedules; -rapid.seed=17 repeats them", "again: SOAK_SEED=42", "the same moments again: FAULTS_SEED=43",
		"    x_test.go:1: seed of the StatefulSets: 44", "=== RUN   FuzzX/seed#0", "[rapid] OK, passed 5 tests", "again: SOAK_SEED=42",
	} {
		r.addSeeds(line)
	}
	if diff := cmp.Diff([]string{"-rapid.seed=17", "SOAK_SEED=42", "FAULTS_SEED=43", "seed=44"}, r.Seeds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSelects(t *testing.T) {
	for name, tc := range map[string]struct {
		run, skip        string
		selected, partly bool
	}{
		"no pattern":                {"", "", true, false},
		"its name":                  {"^TestA$", "", true, false},
		"another name":              {"^TestB$", "", false, true},
		"one of two":                {"TestB|TestA", "", true, false},
		"one of two in groups":      {"^Test(A|B)$", "", true, false},
		"subtests":                  {"^TestA$/x", "", true, true},
		"all and subtests":          {"^TestA$/x|TestA", "", true, false},
		"a slash in brackets":       {"^Test[A/]$", "", true, false},
		"skipped":                   {"", "^TestA$", false, false},
		"subtests that are skipped": {"", "^TestA$/x", true, true},
		"another that is skipped":   {"", "^TestB$/x|TestC", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			selected, partly := Shard{Run: tc.run, Skip: tc.skip}.selects("TestA")
			if selected != tc.selected || selected && partly != tc.partly {
				t.Errorf("selected %t, partly %t", selected, partly)
			}
		})
	}
}

func TestMistakesInARow(t *testing.T) {
	valid := Shard{Name: "a", Covers: "x", Packages: []string{"./..."}}
	for says, change := range map[string]func(s *Shard){
		"name is empty":                 func(s *Shard) { s.Name = "a*" },
		"Covers is empty":               func(s *Shard) { s.Covers = "" },
		"Packages is empty":             func(s *Shard) { s.Packages = nil },
		`does not begin with "./"`:      func(s *Shard) { s.Packages = []string{"x"} },
		"Schedules needs one package":   func(s *Shard) { s.Schedules = 1 },
		"missing closing ]":             func(s *Shard) { s.Run = "[" },
		`what "x" is built from is not`: func(s *Shard) { s.Needs = []string{"x"} },
	} {
		s := valid
		change(&s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := valid.check(); err != nil {
		t.Error(err)
	}
}

// TestSchedulesAreShared runs a test once a core, each time with a seed of its own.
func TestSchedulesAreShared(t *testing.T) {
	s := newSmall(t)
	s.write("many/many_test.go", "package many\n\nimport (\n\t\"flag\"\n\t\"os\"\n\t\"testing\"\n)\n\nvar seed = flag.Int(\"rapid.seed\", 0, \"\")\n\n"+
		"func TestMany(t *testing.T) {\n\tif _, err := os.Stat(\"many_test.go\"); err != nil {\n\t\tt.Fatal(err)\n\t}\n\tt.Logf(\"%s schedules; -rapid.seed=%d\", os.Getenv(\"MODEL_SCHEDULES\"), *seed)\n}\n")
	code, printed := s.run([]Shard{{Name: "many", Covers: "x", Packages: []string{"./many"}, Run: "^TestMany$", Schedules: 1000}}, "-seed=5")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	has(t, printed, "-rapid.seed=5")
	cores := runtime.GOMAXPROCS(0)
	has(t, printed, fmt.Sprintf("\n%d passed, 0 failed, 0 skipped\n", cores))
	log, err := os.ReadFile(filepath.Join(s.dir, "_output/shards/many.log"))
	if err != nil {
		t.Fatal(err)
	}
	has(t, string(log), fmt.Sprintf("%d schedules; -rapid.seed=5", (1000+cores-1)/cores))
}
