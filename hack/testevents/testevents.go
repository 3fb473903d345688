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

// Package testevents reads the output of "go test -json" (go doc test2json) for tools that
// run tests.
package testevents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Event is a line of the output.
type Event struct {
	Action, Package, Test, Output string
	// ImportPath is the package that was built, as "p [p.test]" for a test's.
	// FailedBuild is that which failed, of a package whose tests could not be built.
	ImportPath, FailedBuild string
}

// Parse reads a line. The go command also prints lines that are no events.
func Parse(line []byte) (Event, error) {
	var e Event
	if !bytes.HasPrefix(line, []byte("{")) {
		return e, fmt.Errorf("go test -json printed %q, which is no event", line)
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("go test -json printed %q, which is no event: %w", line, err)
	}
	if e.Package == "" {
		e.Package = built(e.ImportPath)
	}
	return e, nil
}

// built returns the package of an ImportPath.
func built(importPath string) string {
	name, _, _ := strings.Cut(importPath, " ")
	return name
}

// Test is a test or a subtest by its name, or a package, with the name "".
type Test struct{ Package, Name string }

// Outcomes collects what events report. It is not safe for concurrent use.
type Outcomes struct {
	// Output has what tests printed, and for packages what else the process printed, after
	// what the compiler did.
	Output map[Test]*strings.Builder
	// Ended has what passed, failed or was skipped. A test that took its process along has not
	// ended.
	Ended map[Test]bool
	// Failed has what failed, and packages that could not be built.
	Failed map[Test]bool
	// NotBuilt has packages whose tests could not be built, with the package that was in the way.
	NotBuilt map[Test]string
}

// NewOutcomes returns outcomes without events.
func NewOutcomes() *Outcomes {
	return &Outcomes{Output: map[Test]*strings.Builder{}, Ended: map[Test]bool{}, Failed: map[Test]bool{}, NotBuilt: map[Test]string{}}
}

// Add takes an event, and returns the test or package that it is about.
func (o *Outcomes) Add(e Event) Test {
	test := Test{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if o.Output[test] == nil {
			o.Output[test] = &strings.Builder{}
		}
		o.Output[test].WriteString(e.Output)
	case "build-fail":
		o.Failed[test] = true
	case "fail":
		if e.FailedBuild != "" {
			o.NotBuilt[test] = built(e.FailedBuild)
		}
		o.Ended[test], o.Failed[test] = true, true
	case "pass", "skip":
		o.Ended[test] = true
	}
	return test
}

// Printed returns the output of a test or a package.
func (o *Outcomes) Printed(test Test) string {
	if output := o.Output[test]; output != nil {
		return output.String()
	}
	return ""
}

// Tests returns the names of the tests and subtests of a package that began, sorted.
func (o *Outcomes) Tests(pkg string) []string {
	names := map[string]bool{}
	for test := range o.Output {
		if test.Package == pkg && test.Name != "" {
			names[test.Name] = true
		}
	}
	for test := range o.Ended {
		if test.Package == pkg && test.Name != "" {
			names[test.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
