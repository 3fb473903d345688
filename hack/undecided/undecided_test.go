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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQuestionsNameTests: each name stands for a test of its package.
func TestQuestionsNameTests(t *testing.T) {
	for _, q := range questions {
		names := slices.Sorted(maps.Keys(readSource(t, filepath.Join("..", "..", filepath.FromSlash(q.pkg))).uses))
		for _, pattern := range q.tests {
			if len(matching(names, pattern)) == 0 {
				t.Errorf("%q: %s has no test %s", q.heading, q.pkg, pattern)
			}
		}
	}
}

// put writes files below a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// small is a module with packages whose tests pass, fail and end in other ways.
var small = map[string]string{
	"go.mod":       "module example.net/small\n\ngo 1.26.0\n",
	"good/good.go": "package good\n",
	"good/good_test.go": `package good

import "testing"

func TestPasses(t *testing.T) { t.Log("not a finding") }

func TestAlsoPasses(t *testing.T) {}
`,
	"bad/bad.go": "package bad\n",
	"bad/bad_test.go": `package bad

import "testing"

func TestSays(t *testing.T) {
	t.Error("gate A has no verdict; add one")
	t.Errorf("fields differ:\n  -a\n\n  +b")
}

func TestSubtests(t *testing.T) {
	t.Run("first", func(t *testing.T) { t.Error("of the first") })
	t.Run("second", func(t *testing.T) { t.Log("not a finding") })
}

func TestSilent(t *testing.T) { t.Fail() }
`,
	"crashed/crashed.go": "package crashed\n",
	"crashed/crashed_test.go": `package crashed

import "testing"

func TestBefore(t *testing.T) { t.Error("before the end") }

func TestPanics(t *testing.T) { panic("out of order") }

func TestZNever(t *testing.T) {}
`,
	"exited/exited.go": "package exited\n",
	"exited/exited_test.go": `package exited

import (
	"os"
	"testing"
)

func TestExits(t *testing.T) { os.Exit(3) }
`,
	"broken/broken.go":      "package broken\n",
	"broken/broken_test.go": "package broken\n\nimport \"testing\"\n\nfunc TestUnbuilt(t *testing.T) { gone() }\n",
}

// TestLists runs the tests of a small module, and prints their findings.
func TestLists(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	dir := t.TempDir()
	put(t, dir, small)
	all := []question{
		{"Nothing", "good", []string{"TestPasses", "TestAlso*"}},
		{"Findings", "bad", []string{"TestSays", "TestSub*"}},
		{"Without a word", "bad", []string{"TestSilent"}},
		{"A crash", "crashed", []string{"TestBefore", "TestPanics", "TestZNever"}},
		{"An exit", "exited", []string{"TestExits"}},
		{"What does not compile", "broken", []string{"TestUnbuilt"}},
		{"The same", "broken", []string{"TestUnbuilt"}},
	}
	read, err := runTests(t.Context(), dir, all)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := read.answer(all)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if !printLists(&out, lists) {
		t.Error("something is undecided, and the answer is that nothing is")
	}
	want := `Nothing (good): nothing to decide
Findings (bad): 3
  - gate A has no verdict; add one
  - fields differ:
      -a
    
      +b
  - first: of the first
Without a word (bad): 1
  - TestSilent fails without a message: go test -run '^TestSilent$' ./bad
A crash (crashed): 4
  - before the end
`
	text := out.String()
	head, rest, ok := strings.Cut(text, "  - panic: out of order")
	if !ok {
		t.Fatalf("the crash is not listed:\n%s", text)
	}
	if diff := cmp.Diff(want, head); diff != "" {
		t.Errorf("unexpected lists (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"  - the tests in crashed did not run:", "  - TestZNever did not run; repair the package, then: go run ./hack/undecided",
		"An exit (exited): 1\n  - TestExits ended the process of its tests:",
		"What does not compile (broken): 2\n  - the tests in broken did not run:", "undefined: gone", "The same (broken): 1\n  - TestUnbuilt did not run; repair",
	} {
		if !strings.Contains(rest, want) {
			t.Errorf("the lists lack %q:\n%s", want, rest)
		}
	}
}

// TestNothingToDecide: tests that pass leave nothing.
func TestNothingToDecide(t *testing.T) {
	var out bytes.Buffer
	if printLists(&out, []list{{heading: "One"}, {heading: "Two"}}) || out.String() != "One: nothing to decide\nTwo: nothing to decide\n" {
		t.Errorf("without findings it is undecided, or printed is %q", out.String())
	}
}

// TestTestsThatAreNotThere are errors: a list would be empty for a wrong reason.
func TestTestsThatAreNotThere(t *testing.T) {
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod")
	dir := t.TempDir()
	put(t, dir, small)
	for name, tc := range map[string]struct {
		question question
		want     string
	}{
		"another name":    {question{"Nothing", "good", []string{"TestPasses", "TestOther"}}, "good has no test TestOther; change the questions"},
		"another pattern": {question{"Nothing", "good", []string{"TestOther*"}}, "good has no test TestOther*; change the questions"},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := runTests(t.Context(), dir, []question{tc.question})
			if err != nil {
				t.Fatal(err)
			}
			if lists, err := read.answer([]question{tc.question}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want an error with %q", lists, err, tc.want)
			}
		})
	}
	read, err := readEvents(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.answer([]question{{"Nothing", "good", []string{"TestPasses"}}}); err == nil || !strings.Contains(err.Error(), "printed nothing of ./good") {
		t.Errorf("without a package: %v", err)
	}
	if _, err := readEvents(strings.NewReader("ok  good 0.1s\n")); err == nil || !strings.Contains(err.Error(), "no event") {
		t.Errorf("output without -json: %v", err)
	}
	if _, err := runTests(t.Context(), t.TempDir(), []question{{"Nothing", "good", []string{"TestPasses"}}}); err == nil || !strings.Contains(err.Error(), "go test") {
		t.Errorf("outside of a module: %v", err)
	}
}

// TestPagesNaming counts lines of files that git knows.
func TestPagesNaming(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"README.md":                   "On 1.36.\nIt came from v1.35.4.\nSpeedup 11.36, go1.36\n",
		"docs/a.md":                   "1.37 and 1.32\n",
		"docs/benchmarks/flip.md":     "measured on 1.36\n",
		"Makefile":                    "KUBELETS := previous kubelets/1.34\n",
		"hack/changelog/main.go":      "package main // 1.36\n",
		"hack/changelog/main_test.go": "package main // 1.36\n",
		"hack/verify.sh":              "long=(hack/kubelets/1.33)\n",
		"pkg/a/a.go":                  "package a // 1.36\n",
		"pkg/a/a_test.go":             "package a // 1.36\n",
		"pkg/a/zz_generated.a.go":     "package a // 1.36\n",
		"test/e2e_features/a_test.go": "package a // emulates 1.35\n",
		"test/e2e_features/a.yaml":    "name: v1.35\n",
		"test/external/a_test.go":     "package a // 1.35\n",
		"untracked.md":                "1.36\n",
	})
	for _, args := range [][]string{{"init", "-q"}, {"add", "README.md", "Makefile", "docs", "hack", "pkg", "test"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, output)
		}
	}
	got, err := pagesNaming(t.Context(), dir, "v1.36.3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"Makefile: 1", "README.md: 2", "hack/changelog/main.go: 1", "hack/verify.sh: 1", "pkg/a/a.go: 1", "test/e2e_features/a.yaml: 1", "test/e2e_features/a_test.go: 1",
	}, got.findings); diff != "" || got.heading != "Lines that name 1.33 to 1.36, by file" {
		t.Errorf("%q, unexpected files (-want +got):\n%s", got.heading, diff)
	}
	if got, err := pagesNaming(t.Context(), dir, "v1.28.0"); err != nil || len(got.findings) > 0 {
		t.Errorf("of versions that nothing names: %v, %v", got, err)
	}
	for _, from := range []string{"1.36.3", "v1.36", "v2.0.0"} {
		if _, err := pagesNaming(t.Context(), dir, from); err == nil || !strings.Contains(err.Error(), "not a patch release") {
			t.Errorf("-from %s: %v", from, err)
		}
	}
	if _, err := pagesNaming(t.Context(), t.TempDir(), "v1.36.3"); err == nil {
		t.Error("outside of a repository there is no error")
	}
}

// TestUsage: arguments that are none of its flags are refused.
func TestUsage(t *testing.T) {
	if _, err := run(t.Context(), ".", "", []string{"v1.37.2"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "usage: ") {
		t.Errorf("got %v", err)
	}
}
