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
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/result"
)

// root is the repository's.
var root = filepath.Join("..", "..")

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestEveryBenchmarkCanBeFound holds the table against the list of names, the
// Makefile and BENCHMARKS.md.
func TestEveryBenchmarkCanBeFound(t *testing.T) {
	var names []string
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	if diff := cmp.Diff(result.Names, names); diff != "" {
		t.Errorf("the table's names are not those of result.Names in their order:\n%s", diff)
	}
	makefile := read(t, "Makefile")
	all := regexp.MustCompile(`(?m)^BENCHMARKS := (.*)$`).FindStringSubmatch(makefile)
	if all == nil || all[1] != strings.Join(names, " ") {
		t.Errorf("BENCHMARKS in the Makefile is %q, want %q", all, strings.Join(names, " "))
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^bench-` + name + `:.* ## `).MatchString(makefile) {
			t.Errorf("the Makefile has no target bench-%s with help", name)
		}
		if !strings.Contains(read(t, "BENCHMARKS.md"), "\n## "+name+"\n") {
			t.Errorf("BENCHMARKS.md has no section %s; run make bench-%s", name, name)
		}
	}
}

// once are runs with all sizes, each of them once: "make bench-clear" has only the smallest,
// and LONG=y takes hours.
var once = map[string]string{"clear": "go run ./test/benchmark clear --sizes=10000,30000,100000 --workers=16,64"}

// TestEveryBenchmarkHasAResult holds that the result of each is there, and is that of a
// whole run: one with other sizes is for a look.
func TestEveryBenchmarkHasAResult(t *testing.T) {
	for _, b := range benchmarks {
		r, err := result.Read(recorded(root, b.name))
		if errors.Is(err, fs.ErrNotExist) && outdated[b.name] {
			t.Logf("%s has not been run since it became a benchmark of its own", b.name)
			continue
		}
		if err != nil {
			t.Errorf("%v; run make bench-%s", err, b.name)
			continue
		}
		if want := whole(b.name); r.Name != b.name || !isWhole(r.Command, b.name) && r.Command != once[b.name] {
			t.Errorf("the result of %s is of %q, run with %q; run %s", b.name, r.Name, r.Command, want)
		}
	}
}

// git runs it in a folder and returns what it says.
func git(t *testing.T, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// TestResultsAreOfThisHistory holds that whoever reads a result can check out what was
// measured.
func TestResultsAreOfThisHistory(t *testing.T) {
	if shallow, err := git(t, root, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
			t.Fatalf("there is no whole history here, in which results could be found: shallow is %q, %v", shallow, err)
		}
		t.Skipf("there is no whole history here: shallow is %q, %v", shallow, err)
	}
	results, err := filepath.Glob(filepath.Join(root, "docs", "benchmarks", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range results {
		r, err := result.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if r.Environment.Dirty {
			t.Errorf("%s was measured with files that no commit has; run it again in a clean clone", file)
		}
		said, err := git(t, root, "merge-base", "--is-ancestor", r.Environment.Commit, "HEAD")
		if err != nil {
			t.Errorf("%s is of the commit %s, which is not in this history: %s %v; run it again", file, r.Environment.Commit, said, err)
		}
	}
}

// TestAWholeRunIsOfACommit checks that a run of hours is refused at its beginning
// when it could not be repeated.
func TestAWholeRunIsOfACommit(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"go.mod", "go.work"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(read(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"}} {
		if said, err := git(t, dir, args...); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, said)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := newCommand(&out)
	cmd.SetArgs([]string{"clear", "--root=" + dir, "--bin-dir=" + filepath.Join(dir, "none")})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "commit them") {
		t.Errorf("the error is %v; want that files have to be committed first", err)
	}
}

func TestCommandLineRepeatsRun(t *testing.T) {
	for want, args := range map[string][]string{
		"make bench-clear":                           {"--output=/tmp/x"},
		"make bench-clear LONG=y":                    {"--long", "--output=/tmp/x"},
		"go run ./test/benchmark clear --sizes=1,20": {"--sizes=1,20", "--bin-dir=/tmp"},
	} {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		fs.IntSlice("sizes", nil, "")
		fs.Bool("long", false, "")
		fs.String("output", "", "")
		fs.String("bin-dir", "", "")
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := commandLine("clear", fs); got != want {
			t.Errorf("commandLine is %q, want %q", got, want)
		}
	}
}
