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
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of the output of "go test -json" (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	// ImportPath is the package that was built, as "p [p.test]" for that of a test.
	ImportPath string
	// FailedBuild is the ImportPath whose build failed, of a package that has no tests
	// for that reason.
	FailedBuild string
}

// result is a test's, or a package's.
type result struct {
	// ended is true once the test passed, failed or was skipped. One that took the process
	// along has not.
	ended, failed bool
	output        strings.Builder
}

// events are the results of a run.
type events struct {
	// packages are by import path.
	packages map[string]*result
	// tests are by import path and name, with subtests.
	tests map[string]map[string]*result
	// builds are the outputs of compilers, by ImportPath.
	builds map[string]*strings.Builder
	// notBuilt has the ImportPath of the build that failed, by package.
	notBuilt map[string]string
}

// readEvents reads the output of "go test -json".
func readEvents(from io.Reader) (*events, error) {
	seen := &events{packages: map[string]*result{}, tests: map[string]map[string]*result{}, builds: map[string]*strings.Builder{}, notBuilt: map[string]string{}}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("go test -json printed %q, which is no event: %w", line, err)
			}
			seen.add(e)
		}
		if err == io.EOF {
			return seen, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *events) add(e event) {
	if e.Action == "build-output" {
		if s.builds[e.ImportPath] == nil {
			s.builds[e.ImportPath] = &strings.Builder{}
		}
		s.builds[e.ImportPath].WriteString(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	if s.packages[e.Package] == nil {
		s.packages[e.Package], s.tests[e.Package] = &result{}, map[string]*result{}
	}
	r := s.packages[e.Package]
	if e.Test != "" {
		if r = s.tests[e.Package][e.Test]; r == nil {
			r = &result{}
			s.tests[e.Package][e.Test] = r
		}
	}
	switch e.Action {
	case "output":
		r.output.WriteString(e.Output)
	case "pass", "skip":
		r.ended = true
	case "fail":
		r.ended, r.failed = true, true
		if e.FailedBuild != "" {
			s.notBuilt[e.Package] = e.FailedBuild
		}
	}
}

// answer returns a list for each question, in their order. It fails where a test of a
// question is not there.
func (s *events) answer(asked []question) ([]list, error) {
	var lists []list
	explained := map[string]bool{}
	said := map[string]string{}
	for _, q := range asked {
		pkg, err := s.packageIn(q.pkg)
		if err != nil {
			return nil, err
		}
		l := list{heading: fmt.Sprintf("%s (%s)", q.asks, q.pkg)}
		for _, pattern := range q.tests {
			names := s.named(pkg, pattern)
			if len(names) > 0 {
				for _, name := range names {
					l.findings = append(l.findings, s.findings(pkg, q.pkg, name)...)
				}
				continue
			}
			if !s.packages[pkg].failed {
				return nil, fmt.Errorf("%s has no test %s; change the questions in hack/undecided/main.go", q.pkg, pattern)
			}
			if !explained[pkg] {
				explained[pkg] = true
				why := s.whyNotRun(pkg)
				if said[why] == "" {
					said[why] = q.pkg
					l.findings = append(l.findings, fmt.Sprintf("the tests in %s did not run:\n%s", q.pkg, why))
				} else {
					l.findings = append(l.findings, fmt.Sprintf("the tests in %s did not run, for the same reason as those in %s", q.pkg, said[why]))
				}
			}
			l.findings = append(l.findings, fmt.Sprintf("%s did not run; repair the package, then: go run ./hack/undecided", pattern))
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// packageIn returns the import path of a directory.
func (s *events) packageIn(dir string) (string, error) {
	for name := range s.packages {
		if strings.HasSuffix(name, "/"+dir) {
			return name, nil
		}
	}
	return "", fmt.Errorf("go test says nothing of ./%s; change the questions in hack/undecided/main.go", dir)
}

// named returns the tests of a package that a pattern stands for, without subtests.
func (s *events) named(pkg, pattern string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.tests[pkg])) {
		prefix, many := strings.CutSuffix(pattern, "*")
		if name == pattern || many && strings.HasPrefix(name, prefix) && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

// whyNotRun returns the compiler's output, or that of the process.
func (s *events) whyNotRun(pkg string) string {
	text := s.packages[pkg].output.String()
	if build, ok := s.builds[s.notBuilt[pkg]]; ok {
		text = build.String()
	}
	return strings.TrimSpace(text)
}

var (
	// finding begins what a test says, with the place: "    a_test.go:12: text".
	finding = regexp.MustCompile(`^( +)\S+\.go:\d+: (.*)$`)
	// frame is a line of the go command about a test.
	frame = regexp.MustCompile(`^\s*(=== |--- |PASS$|FAIL$)`)
)

// findings returns what a test and its subtests say if they fail. A test that fails
// without a word is a finding, too.
func (s *events) findings(pkg, dir, test string) []string {
	var found []string
	failed := false
	for _, name := range slices.Sorted(maps.Keys(s.tests[pkg])) {
		r := s.tests[pkg][name]
		if (name != test && !strings.HasPrefix(name, test+"/")) || r.ended && !r.failed {
			continue
		}
		failed = true
		prefix := ""
		if _, subtest, ok := strings.Cut(name, "/"); ok {
			prefix = subtest + ": "
		}
		for _, text := range messages(r.output.String()) {
			found = append(found, prefix+text)
		}
		if !r.ended {
			found = append(found, fmt.Sprintf("%s ended the process of its tests:\n%s", name, strings.TrimSpace(r.output.String())))
		}
	}
	if failed && len(found) == 0 {
		found = append(found, fmt.Sprintf("%s fails and does not say why: go test -run '^%s$' ./%s", test, test, dir))
	}
	return found
}

// messages returns what a test logged, one text for each call, with its further lines.
func messages(output string) []string {
	var texts []string
	indent := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if match := finding.FindStringSubmatch(line); match != nil {
			indent = match[1]
			texts = append(texts, match[2])
			continue
		}
		if strings.HasPrefix(line, "panic: ") {
			indent = ""
			texts = append(texts, line)
			continue
		}
		rest, deeper := strings.CutPrefix(line, indent+"    ")
		if last := len(texts) - 1; last >= 0 && deeper && !frame.MatchString(line) {
			texts[last] += "\n" + rest
		}
	}
	return texts
}
