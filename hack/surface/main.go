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

// Package main records what packages of the library export, as api/go1.txt of Go
// does: a line for each identifier. "make update" writes the record, "make verify"
// compares (-check), so that a change of what third parties build against is seen in
// review. It runs from the root of the repository.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	library = "k8s.io/feature-lifecycle"
	record  = "api/surface.txt"
	head    = `# What packages of k8s.io/feature-lifecycle export. Names of parameters, tags of
# fields and what generators write do not count, nor do internal packages and examples.
# Written by hack/surface; "make update" writes it, "make verify" compares.
`
)

func main() {
	check := flag.Bool("check", false, "Compare with "+record+" instead of writing it.")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	now, err := surface("staging/src/"+library, library)
	if err != nil {
		return fmt.Errorf("what the library exports: %w", err)
	}
	if !check {
		return os.WriteFile(record, []byte(head+strings.Join(now, "\n")+"\n"), 0o644)
	}
	recorded, err := os.ReadFile(record)
	if err != nil {
		return fmt.Errorf("%w; run make update", err)
	}
	if !bytes.HasPrefix(recorded, []byte(head)) {
		return fmt.Errorf("%s does not begin with what hack/surface writes; run make update", record)
	}
	return compare(strings.Split(strings.TrimSpace(strings.TrimPrefix(string(recorded), head)), "\n"), now)
}

// identifier is what a line is about, whatever its type or value is.
var identifier = regexp.MustCompile(`^pkg \S+, (const \w+|var \w+|func \w+|method \([^)]+\) \w+|type \w+(\[.*?\])?( (struct|interface), \w+)?)`)

// subject is the identifier of a line, or the line for one about a package. Methods
// of T and of *T are the same one.
func subject(line string) string {
	if found := identifier.FindString(line); found != "" {
		return strings.Replace(found, "(*", "(", 1)
	}
	return line
}

// interfaceMethod is a line about a method of an interface, and the line about the
// interface itself in it.
var interfaceMethod = regexp.MustCompile(`^(pkg \S+, type \S+(?:\[.*?\])? interface), .+`)

// compare tells the lines of the record from those of now. Nothing may differ; the
// error says which differences break those who use the library.
func compare(recorded, now []string) error {
	var broken, added []string
	changed := map[string]bool{}
	for _, line := range recorded {
		if !slices.Contains(now, line) {
			broken = append(broken, "-"+line)
			changed[subject(line)] = true
		}
	}
	for _, line := range now {
		if slices.Contains(recorded, line) {
			continue
		}
		// Who implements an interface lacks its new methods.
		method := interfaceMethod.FindStringSubmatch(line)
		if changed[subject(line)] || method != nil && slices.Contains(recorded, method[1]) {
			broken = append(broken, "+"+line)
		} else {
			added = append(added, "+"+line)
		}
	}
	if len(broken)+len(added) == 0 {
		return nil
	}
	text := library + " exports something else than " + record + " says"
	if len(broken) > 0 {
		// What was before stands beside what is now.
		slices.SortStableFunc(broken, func(a, b string) int { return strings.Compare(subject(a[1:]), subject(b[1:])) })
		text += "\nIncompatible, removed or changed; this breaks who uses it:\n  " + strings.Join(broken, "\n  ")
	}
	if len(added) > 0 {
		text += "\nCompatible, added:\n  " + strings.Join(added, "\n  ")
	}
	return errors.New(text + "\nIf that is meant, run make update and commit the record; CHANGELOG.md says what becomes incompatible. Else export what was exported before.")
}
