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
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// bugsVariable turns TestBugs on.
const bugsVariable = "MODEL_BUGS"

// update has TestBugs keep what it found: short schedules that are missing, and the table of
// the page.
var update = flag.Bool("update", false, "write schedules of the model that are missing, and the table of "+page)

// page shows which bugs are found, and how many states were visited, between lines of these
// names.
const (
	page        = "docs/contributors/proof.md"
	bugTable    = "BUGS"
	statesTable = "STATES"
)

// splitPage returns what the page has before a table, between its lines, and behind it.
func splitPage(t *testing.T, table string) (before, rows, after string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- BEGIN MUNGE: "+table+" -->\n", "<!-- END MUNGE: "+table+" -->\n"
	before, rest, begins := strings.Cut(string(content), begin)
	rows, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	return before + begin, rows, end + after
}

// scriptOf is the schedule of the model that finds a bug.
func scriptOf(b Bug) string {
	return filepath.Join(root, model, "testdata", "schedules", b.Name+".txt")
}

func TestEveryInvariantHasTwoBugs(t *testing.T) {
	count := map[string]int{}
	names := map[string]bool{}
	for _, b := range bugs {
		count[b.Area]++
		if names[b.Name] {
			t.Errorf("two bugs are called %s", b.Name)
		}
		names[b.Name] = true
		if _, err := os.Stat(scriptOf(b)); (err == nil) != (b.Schedules > 0) {
			t.Errorf("%s is found by %d schedules of the model; its script: %v", b.Name, b.Schedules, err)
		}
		if (b.Package == "") != (b.Schedules > 0) || (b.Package == "") != (b.Test == "") {
			t.Errorf("%s is found by the model or by a test of a package, one of them", b.Name)
		}
	}
	for _, invariant := range []string{"S1", "S2", "S3", "S4", "S5", "S6", "S7", "L1", "L2", "L3"} {
		if count[invariant] < 2 {
			t.Errorf("%d bugs break %s, want 2", count[invariant], invariant)
		}
		delete(count, invariant)
	}
	if len(count) > 0 {
		t.Errorf("there are no invariants %v", count)
	}
	scripts, err := filepath.Glob(filepath.Join(root, model, "testdata", "schedules", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		if name := strings.TrimSuffix(filepath.Base(script), ".txt"); !names[name] {
			t.Errorf("%s is of no bug", script)
		}
	}
}

// TestNoBinaryHasABug: bugs are compiled into tests of this package alone, from files
// outside of the checkout.
func TestNoBinaryHasABug(t *testing.T) {
	for _, dir := range []string{"cmd", "pkg", "staging"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			for _, b := range bugs {
				if strings.Contains(string(content), `"`+b.Name+`"`) || strings.Contains(string(content), b.New) && b.New != "" && !strings.Contains(b.Old, b.New) {
					t.Errorf("%s has the bug %s, or knows of it", path, b.Name)
				}
			}
			if strings.Contains(string(content), bugsVariable) {
				t.Errorf("%s can be told to have bugs", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestBugs compiles each bug into the tests that have to find it.
func TestBugs(t *testing.T) {
	if os.Getenv(bugsVariable) != "y" {
		t.Skipf("compiles each bug into tests, which takes minutes; \"make test-model-bugs\" runs it (%s=y)", bugsVariable)
	}
	var rows []string
	for _, b := range bugs {
		t.Run(b.Area+"/"+b.Name, func(t *testing.T) {
			t.Log(b.Wrong)
			overlay := b.overlay(t)
			if b.Schedules == 0 {
				rows = append(rows, b.row("`"+b.findByTest(t, overlay)+"`"))
				return
			}
			binary := filepath.Join(t.TempDir(), "model.test")
			if output, err := command(t, model, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
				t.Fatalf("it does not compile: %v\n%s", err, output)
			}
			after := b.findByModel(t, binary)
			rows = append(rows, b.row(fmt.Sprintf("schedule %s of %d; %s%s", after, b.Schedules, b.findByScript(t, binary), b.findExhaustively(t, binary))))
		})
	}
	if len(rows) == 0 && !t.Failed() {
		t.Fatal("no bug has this name; hack/mutations/bugs.go has them all")
	}
	if *update && !t.Failed() && len(rows) == len(bugs) {
		updatePage(t, bugTable, "| invariant | bug | what is wrong | found by |\n| --- | --- | --- | --- |\n"+strings.Join(rows, ""))
	}
}

// row is the row of the page's table.
func (b Bug) row(found string) string {
	return fmt.Sprintf("%s %s |\n", b.rowBegins(), found)
}

func (b Bug) rowBegins() string { return fmt.Sprintf("| %s | `%s` | %s |", b.Area, b.Name, b.Wrong) }

// updatePage replaces a table of the page.
func updatePage(t *testing.T, table, rows string) {
	t.Helper()
	before, _, after := splitPage(t, table)
	if err := os.WriteFile(filepath.Join(root, page), []byte(before+"\n"+rows+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestThePageHasEveryBug(t *testing.T) {
	_, table, _ := splitPage(t, bugTable)
	for _, b := range bugs {
		if strings.Count(table, b.rowBegins()) != 1 {
			t.Errorf("%s has no row that begins with %q; \"make test-model-bugs UPDATE=y\" writes them", page, b.rowBegins())
		}
	}
	if n := strings.Count(table, "\n| "); n != len(bugs)+2 {
		t.Errorf("%s has %d lines of a table, want %d and a head of two", page, n, len(bugs))
	}
}

// overlay writes what "go test -overlay" reads: the broken file in place of the file.
func (b Bug) overlay(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, b.File))
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), b.Old); n != 1 {
		t.Fatalf("what it replaces is %d times in %s; change its row in bugs.go", n, b.File)
	}
	dir := t.TempDir()
	broken, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{file: broken}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{broken: strings.Replace(string(content), b.Old, b.New, 1), overlay: string(data)} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// command runs in a folder of the checkout.
func command(t *testing.T, dir string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = filepath.Join(root, dir)
	cmd.Env = os.Environ()
	return cmd
}

// limited runs a broken model with 12 GB of memory at most: a bug can have it write for ever,
// and keep what it wrote.
func limited(t *testing.T, binary string, words ...string) *exec.Cmd {
	return command(t, model, append([]string{"sh", "-c", `ulimit -v 12000000 && exec "$0" "$@"`, binary}, words...)...)
}

// failedAfter is what rapid prints.
var failedAfter = regexp.MustCompile(`failed after (\d+) tests?: at \S+: (.*)`)

// findByModel has random schedules find it, and returns how many that took.
func (b Bug) findByModel(t *testing.T, binary string) string {
	t.Helper()
	cmd := limited(t, binary, "-test.run=^TestModel$", "-test.timeout=30m", "-rapid.shrinktime=5s")
	cmd.Env = append(cmd.Env, fmt.Sprintf("MODEL_SCHEDULES=%d", b.Schedules))
	output, err := cmd.CombinedOutput()
	found := failedAfter.FindStringSubmatch(string(output))
	switch {
	case err == nil:
		t.Fatalf("not found in %d schedules", b.Schedules)
	case found == nil:
		t.Fatalf("the model fails, and no schedule does: %v\n%s", err, output)
	case !b.breaks(found[2]):
		t.Fatalf("found after %s schedules as another fault: %s\n%s", found[1], found[2], shortSchedule(output))
	}
	short := shortSchedule(output)
	before, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("schedule %d of %d finds it: %s\nA short one is\n%s", before+1, b.Schedules, found[2], short)
	if _, err := os.Stat(scriptOf(b)); *update && os.IsNotExist(err) {
		if err := os.WriteFile(scriptOf(b), []byte(short), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return strconv.Itoa(before + 1)
}

// breaks returns true for what the model says of the invariant.
func (b Bug) breaks(violation string) bool {
	return strings.HasPrefix(violation, b.Area+":") || strings.HasPrefix(violation, b.Area+", ")
}

// scriptLine is a line of a schedule; a line of a test's output has something before it.
var scriptLine = regexp.MustCompile(`^\s*((?:server|users|begin|end|crowded|[0-9.]+[mµns]*s|0s)\b.*)$`)

// shortSchedule is the shortest schedule that the model has printed.
func shortSchedule(output []byte) string {
	_, text, _ := strings.Cut(string(output), "This schedule does it")
	_, text, _ = strings.Cut(text, "\n")
	var b strings.Builder
	for line := range strings.Lines(text) {
		found := scriptLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			break
		}
		b.WriteString(found[1] + "\n")
	}
	return b.String()
}

// violated is what a schedule of a file prints in its last line but the test's result.
var violated = regexp.MustCompile(`(?m)^ *at \S+: (.*)$`)

// findByScript has the schedule that is kept find it, which finds nothing in the product,
// and returns its length.
func (b Bug) findByScript(t *testing.T, binary string) string {
	t.Helper()
	output, err := limited(t, binary, "-test.run=^TestSchedules$/^"+b.Name+"$", "-test.timeout=10m").CombinedOutput()
	found := violated.FindStringSubmatch(string(output))
	if err == nil || found == nil || !b.breaks(found[1]) {
		t.Fatalf("%s does not find it: %v\n%s", scriptOf(b), err, output)
	}
	content, err := os.ReadFile(scriptOf(b))
	if err != nil {
		t.Fatal(err)
	}
	// One line for each server, and for what it begins with.
	steps := 0
	for line := range strings.Lines(string(content)) {
		if len(strings.Fields(line)) >= 4 && line[0] >= '0' && line[0] <= '9' {
			steps++
		}
	}
	return fmt.Sprintf("%d steps do", steps)
}

// findExhaustively has the short form of what is exhaustive look for it, which needs not find
// it: it has one fault or one delay.
func (b Bug) findExhaustively(t *testing.T, binary string) string {
	t.Helper()
	output, err := limited(t, binary, "-test.run=^TestExhaustive$", "-test.timeout=10m").CombinedOutput()
	for _, found := range violated.FindAllStringSubmatch(string(output), -1) {
		if err != nil && b.breaks(found[1]) {
			t.Logf("the exhaustive test finds it: %s", found[1])
			return "; so does the exhaustive test"
		}
	}
	return ""
}

// findByTest has a test of a package find it, and returns its name.
func (b Bug) findByTest(t *testing.T, overlay string) string {
	t.Helper()
	output, err := command(t, b.Package, "go", "test", "-count=1", "-vet=off", "-failfast", "-overlay", overlay, "-run", "^"+b.Test, ".").CombinedOutput()
	for line := range strings.Lines(string(output)) {
		if name, failed := strings.CutPrefix(line, "--- FAIL: "); failed && err != nil {
			name, _, _ = strings.Cut(name, " ")
			t.Logf("%s finds it", name)
			return name
		}
	}
	t.Fatalf("no test of %s fails: %v\n%s", b.Package, err, output)
	return ""
}

// statesVariable turns TestStates on, and the whole form of what it runs.
const statesVariable = "MODEL_EXHAUSTIVE"

// explored is what the exhaustive test prints of each cluster and budget.
var explored = regexp.MustCompile(`explored ([a-z]+) with (\d+) servers, (\d+) faults, (\d+) delays: (\d+) states, (\d+) choices in them; (\d+) paths to an end, the longest of (\d+) choices`)

// TestStates takes small clusters through all states within whole budgets, and counts them.
func TestStates(t *testing.T) {
	if os.Getenv(statesVariable) != "y" {
		t.Skipf("takes minutes; \"make test-model-exhaustive\" runs it (%s=y)", statesVariable)
	}
	output, err := command(t, model, "go", "test", "-count=1", "-timeout=2h", "-v", "-run", "^TestExhaustive$", ".").CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
	found := explored.FindAllStringSubmatch(string(output), -1)
	if n := strings.Count(string(output), "=== RUN   TestExhaustive/"); len(found) == 0 || n != len(found) {
		t.Fatalf("%d explorations ran, and %d said what they visited", n, len(found))
	}
	sort.Slice(found, func(i, j int) bool {
		return strings.Join(found[i][1:5], " ") < strings.Join(found[j][1:5], " ")
	})
	rows := "| change | servers | faults | delays | states | what was tried in them | paths to an end | steps of the longest |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
	for _, f := range found {
		rows += fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8])
	}
	if *update {
		updatePage(t, statesTable, rows)
	}
}
