/*
Copyright 2026 The Kubernetes Authors.

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

// Command causes prints, when tests have failed, why: their own messages, without
// the logs of processes that come with them. It is gotestsum's --post-run-command,
// so that it is the last thing that a run prints; long output is often read, or
// kept, from its end.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxLines bounds what is printed of one test, maxColumns a line.
	maxLines, maxColumns = 40, 2000
	// ofTheDead is how much is kept of the log of a process that ended by itself.
	ofTheDead = 8
)

var (
	// message begins what a test logs.
	message = regexp.MustCompile(`^\s*\w+\.go:\d+: `)
	// logged begins the log of a process (framework.Cluster).
	logged = regexp.MustCompile(`--- \S+ (runs|HAS ENDED), the end of its log:$`)
)

func main() {
	file := os.Getenv("GOTESTSUM_JSONFILE")
	if os.Getenv("TESTS_FAILED") == "0" || file == "" {
		return
	}
	if err := show(file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "causes:", err)
		os.Exit(1)
	}
}

// show prints the causes of the failures in a file of "go test -json".
func show(file string, w io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	failures, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, failed := range failures {
		if _, err := fmt.Fprintf(w, "\n=== WHY %s FAILED\n%s\n", failed.name(), strings.Join(failed.causes(), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// failure is a test, or a package without its tests, that failed.
type failure struct {
	pkg, test string
	output    []string
}

func (f failure) name() string { return strings.TrimSuffix(f.pkg+"."+f.test, ".") }

// event is what "go test -json" prints (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	// ImportPath is the package that was built, as "p [p.test]" for a test's.
	ImportPath string
}

// read returns what failed, sorted by name. A test of which a subtest failed is left
// out when it says nothing by itself, and so is a package.
func read(r io.Reader) ([]failure, error) {
	output, failed := map[[2]string]string{}, map[[2]string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
		}
		if e.Package == "" {
			e.Package, _, _ = strings.Cut(e.ImportPath, " ")
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			output[key] += e.Output
		case "fail":
			failed[key] = true
		}
	}
	var failures []failure
	for key := range maps.Keys(failed) {
		f := failure{pkg: key[0], test: key[1], output: strings.Split(strings.TrimRight(output[key], "\n"), "\n")}
		within := func(other [2]string) bool {
			return other != key && other[0] == key[0] && (key[1] == "" || strings.HasPrefix(other[1], key[1]+"/"))
		}
		if len(f.causes()) > 0 || !slices.ContainsFunc(slices.Collect(maps.Keys(failed)), within) {
			failures = append(failures, f)
		}
	}
	slices.SortFunc(failures, func(a, b failure) int { return cmp.Compare(a.name(), b.name()) })
	return failures, lines.Err()
}

// causes are the lines that may say why, the last of them.
func (f failure) causes() []string {
	var kept []string
	var dead []string
	inLog, ofDead := false, false
	end := func() {
		kept = append(kept, dead[max(0, len(dead)-ofTheDead):]...)
		dead = nil
	}
	for _, line := range f.output {
		if message.MatchString(line) {
			end()
			match := logged.FindStringSubmatch(line)
			inLog = match != nil
			ofDead = inLog && match[1] != "runs"
			if inLog && !ofDead {
				continue
			}
		} else if inLog {
			if ofDead && !frame(line) {
				dead = append(dead, cut(line))
			}
			continue
		}
		if !frame(line) {
			kept = append(kept, cut(line))
		}
	}
	end()
	return kept[max(0, len(kept)-maxLines):]
}

// frame is true for a line that only says where a test begins or ends.
func frame(line string) bool {
	line = strings.TrimSpace(line)
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- FAIL", "FAIL", "PASS"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == ""
}

func cut(line string) string {
	if len(line) > maxColumns {
		return line[:maxColumns] + " …"
	}
	return line
}
