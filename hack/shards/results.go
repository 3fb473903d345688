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
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/kubernetes-features/hack/testevents"
)

// maxSeeds bounds how many seeds of a shard are kept.
const maxSeeds = 8

// seedLine finds the seeds that tests print: "-rapid.seed=7", "SOAK_SEED=7", "seed of
// the Pods: 7".
var seedLine = regexp.MustCompile(`(?i)([-.\w]*\bseed|\w+_seed)(?:=| of [\w ]+: |: ?)(\d+)`)

// figures are the numbers of tests and subtests by result, and the seeds they
// printed.
type figures struct {
	Passed, Failed, Skipped int
	Seeds                   []string `json:",omitempty"`
}

func (f figures) ran() int { return f.Passed + f.Failed + f.Skipped }

// results reads the output of the processes of a shard as it comes. The output of a
// test is kept until the test has passed.
type results struct {
	mu sync.Mutex
	figures
	outcomes *testevents.Outcomes
	// other has the last output that is no event.
	other []string
	// raw gets all lines, log what tests printed.
	raw, log io.Writer
}

func newResults(raw, log io.Writer) *results {
	return &results{outcomes: testevents.NewOutcomes(), raw: raw, log: log}
}

// addLine takes a line of "go test -json". part distinguishes processes that run the
// same test.
func (r *results) addLine(line, part string) {
	e, err := testevents.Parse([]byte(line))
	if err != nil {
		r.addOther(line)
		return
	}
	e.Package += part
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.raw, line)
	r.add(e)
}

// addOther takes a line that is no event, such as an error of the go command.
func (r *results) addOther(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.log, line)
	if r.other = append(r.other, line); len(r.other) > maxLines {
		r.other = r.other[1:]
	}
}

func (r *results) add(e testevents.Event) {
	test := r.outcomes.Add(e)
	switch e.Action {
	case "output", "build-output":
		fmt.Fprint(r.log, e.Output)
		r.addSeeds(e.Output)
	case "fail":
		if e.Test != "" || !r.failedWithin(test) {
			r.Failed++
		}
	case "pass", "skip":
		delete(r.outcomes.Output, test)
		if e.Test == "" {
			return
		}
		if e.Action == "pass" {
			r.Passed++
		} else {
			r.Skipped++
		}
	}
}

func (r *results) addSeeds(line string) {
	for _, match := range seedLine.FindAllStringSubmatch(line, -1) {
		seed := match[1] + "=" + match[2]
		if len(r.Seeds) < maxSeeds && !slices.Contains(r.Seeds, seed) {
			r.Seeds = append(r.Seeds, seed)
		}
	}
}

// failedWithin is true when a subtest of the test, or a test of the package, failed.
func (r *results) failedWithin(test testevents.Test) bool {
	for other := range r.outcomes.Failed {
		if other != test && other.Package == test.Package && (test.Name == "" || strings.HasPrefix(other.Name, test.Name+"/")) {
			return true
		}
	}
	return false
}

// failures returns the failed tests, sorted by name. A test with a failed subtest is
// left out when it has no message of its own, and so is a package. A test that did
// not end is among them when its package failed.
func (r *results) failures() []failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := r.outcomes.Failed
	for test := range r.outcomes.Output {
		if test.Name != "" && failed[testevents.Test{Package: test.Package}] {
			failed[test] = true
		}
	}
	var failures []failure
	for test := range failed {
		f := failure{pkg: test.Package, test: test.Name}
		if output := strings.TrimRight(r.outcomes.Printed(test), "\n"); output != "" {
			f.output = strings.Split(output, "\n")
		}
		// The build's output has the cause of what was not built.
		if _, notBuilt := r.outcomes.NotBuilt[test]; len(f.causes()) > 0 || !r.failedWithin(test) && !notBuilt {
			failures = append(failures, f)
		}
	}
	slices.SortFunc(failures, func(a, b failure) int { return cmp.Compare(a.name(), b.name()) })
	return failures
}

// lines cuts what is written into lines.
type lines struct {
	rest []byte
	take func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		l.take(string(l.rest[:i]))
		l.rest = l.rest[i+1:]
	}
}

// end takes what was written without a last line break.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.take(string(l.rest))
		l.rest = nil
	}
}
