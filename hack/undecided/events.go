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
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/kubernetes-features/hack/testevents"
)

// outcomes are those of the tests of all questions.
type outcomes struct{ *testevents.Outcomes }

// readEvents reads the output of "go test -json".
func readEvents(from io.Reader) (outcomes, error) {
	read := outcomes{testevents.NewOutcomes()}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			e, err := testevents.Parse(bytes.TrimRight(line, "\n"))
			if err != nil {
				return read, err
			}
			read.Add(e)
		}
		if err == io.EOF {
			return read, nil
		}
		if err != nil {
			return read, err
		}
	}
}

// answer returns a list for each question, in their order. It fails where a test of a
// question is not there.
func (o outcomes) answer(all []question) ([]list, error) {
	var lists []list
	// explained has packages whose reason is listed, reasons the first directory with each.
	explained, reasons := map[string]bool{}, map[string]string{}
	for _, q := range all {
		pkg, err := o.packageIn(q.pkg)
		if err != nil {
			return nil, err
		}
		l := list{heading: fmt.Sprintf("%s (%s)", q.heading, q.pkg)}
		for _, pattern := range q.tests {
			names := matching(o.Tests(pkg), pattern)
			if len(names) > 0 {
				for _, name := range names {
					l.findings = append(l.findings, o.findings(pkg, q.pkg, name)...)
				}
				continue
			}
			if !o.Failed[testevents.Test{Package: pkg}] {
				return nil, fmt.Errorf("%s has no test %s; change the questions in hack/undecided/main.go", q.pkg, pattern)
			}
			if !explained[pkg] {
				explained[pkg] = true
				why := o.whyNotRun(pkg)
				if other, listed := reasons[why]; listed {
					l.findings = append(l.findings, fmt.Sprintf("the tests in %s did not run, for the same reason as those in %s", q.pkg, other))
				} else {
					reasons[why] = q.pkg
					l.findings = append(l.findings, fmt.Sprintf("the tests in %s did not run:\n%s", q.pkg, why))
				}
			}
			l.findings = append(l.findings, fmt.Sprintf("%s did not run; repair the package, then: go run ./hack/undecided", pattern))
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// packageIn returns the import path of a directory.
func (o outcomes) packageIn(dir string) (string, error) {
	for test := range o.Ended {
		if test.Name == "" && strings.HasSuffix(test.Package, "/"+dir) {
			return test.Package, nil
		}
	}
	return "", fmt.Errorf("go test printed nothing of ./%s; change the questions in hack/undecided/main.go", dir)
}

// matching returns the tests among names that a pattern stands for, without subtests.
func matching(names []string, pattern string) []string {
	prefix, many := strings.CutSuffix(pattern, "*")
	var found []string
	for _, name := range names {
		if name == pattern || many && strings.HasPrefix(name, prefix) && !strings.Contains(name, "/") {
			found = append(found, name)
		}
	}
	return found
}

// whyNotRun returns the compiler's output, or that of the process.
func (o outcomes) whyNotRun(pkg string) string {
	if obstacle, ok := o.NotBuilt[testevents.Test{Package: pkg}]; ok {
		pkg = obstacle
	}
	lines := slices.DeleteFunc(strings.Split(o.Printed(testevents.Test{Package: pkg}), "\n"), frame.MatchString)
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

var (
	// finding begins what a test logs, with the place: "    a_test.go:12: text".
	finding = regexp.MustCompile(`^( +)\S+\.go:\d+: (.*)$`)
	// frame is a line of the go command about a test or a package.
	frame = regexp.MustCompile(`^\s*(=== |--- |PASS$|FAIL($|\t))`)
)

// findings returns what a test and its subtests logged if they failed. A test that fails
// without a message is a finding, too.
func (o outcomes) findings(pkg, dir, test string) []string {
	var found []string
	failed := false
	for _, name := range o.Tests(pkg) {
		key := testevents.Test{Package: pkg, Name: name}
		if (name != test && !strings.HasPrefix(name, test+"/")) || o.Ended[key] && !o.Failed[key] {
			continue
		}
		failed = true
		prefix := ""
		if _, subtest, ok := strings.Cut(name, "/"); ok {
			prefix = subtest + ": "
		}
		output := o.Printed(key)
		for _, text := range messages(output) {
			found = append(found, prefix+text)
		}
		if !o.Ended[key] {
			found = append(found, fmt.Sprintf("%s ended the process of its tests:\n%s", name, strings.TrimSpace(output)))
		}
	}
	if failed && len(found) == 0 {
		found = append(found, fmt.Sprintf("%s fails without a message: go test -run '^%s$' ./%s", test, test, dir))
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
