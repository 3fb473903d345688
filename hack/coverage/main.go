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

// Package main measures how much of each package its own unit tests run, in both
// modules, and writes it as the table of the KEP's test plan. "make coverage" runs
// it from the root of the repository.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is one module whose packages are measured.
type module struct {
	name, dir string
}

var modules = []module{
	{"k8s.io/feature-lifecycle", "staging/src/k8s.io/feature-lifecycle"},
	{"k8s.io/kubernetes-features", "."},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "coverage")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it lies where temporary files do
	fmt.Print("| package | statements | covered |\n| --- | --- | --- |\n")
	var all counts
	for _, m := range modules {
		profile, err := m.test(filepath.Join(dir, "profile"))
		if err != nil {
			return err
		}
		packages, err := m.count(bytes.NewReader(profile))
		if err != nil {
			return err
		}
		for _, name := range slices.SortedFunc(maps.Keys(packages), cmp.Compare[string]) {
			fmt.Println(packages[name].row("`" + name + "`"))
			all.add(packages[name].statements, packages[name].covered)
		}
	}
	fmt.Println(all.row("all"))
	return nil
}

// test runs the unit tests of a module and returns their profile. Those that start
// processes are left out, since what processes run is not in a profile, and so are
// the tools of this folder, which check the repository and do not ship. The tests of
// docs check the table itself.
func (m module) test(profile string) ([]byte, error) {
	list := exec.Command("go", "list", "./...")
	list.Dir, list.Stderr = m.dir, os.Stderr
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("the packages of %s: %w", m.name, err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(output)), func(p string) bool {
		return strings.HasPrefix(p, m.name+"/test/") || strings.HasPrefix(p, m.name+"/hack/") || p == m.name+"/docs"
	})
	test := exec.Command("go", append([]string{"test", "-count=1", "-covermode=set", "-coverprofile=" + profile}, packages...)...)
	// The table is all that goes to the standard output.
	test.Dir, test.Stdout, test.Stderr = m.dir, os.Stderr, os.Stderr
	if err := test.Run(); err != nil {
		return nil, fmt.Errorf("the unit tests of %s failed, so nothing was measured: %w", m.name, err)
	}
	return os.ReadFile(profile)
}

// counts are statements of hand-written code.
type counts struct {
	statements, covered int
}

func (c *counts) add(statements, covered int) {
	c.statements += statements
	c.covered += covered
}

func (c *counts) row(name string) string {
	return fmt.Sprintf("| %s | %d | %.1f%% |", name, c.statements, 100*float64(c.covered)/float64(c.statements))
}

// count adds up a profile by package. Generated files are left out, and so are
// packages that have nothing else.
func (m module) count(profile io.Reader) (map[string]*counts, error) {
	packages, generated := map[string]*counts{}, map[string]bool{}
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		b, ok, err := parse(lines.Text())
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if _, known := generated[b.file]; !known {
			if generated[b.file], err = m.generated(b.file); err != nil {
				return nil, err
			}
		}
		if generated[b.file] {
			continue
		}
		name := b.file[:strings.LastIndex(b.file, "/")]
		if packages[name] == nil {
			packages[name] = &counts{}
		}
		covered := 0
		if b.ran {
			covered = b.statements
		}
		packages[name].add(b.statements, covered)
	}
	return packages, lines.Err()
}

// block is one line of a profile.
type block struct {
	file       string
	statements int
	ran        bool
}

// parse reads a line such as "k8s.io/a/b.go:19.40,21.2 1 0": the file and the place
// in it, the number of statements, and how often they ran. The first line of a
// profile is no block.
func parse(line string) (b block, ok bool, err error) {
	if strings.HasPrefix(line, "mode: ") {
		return block{}, false, nil
	}
	fields := strings.Fields(line)
	file, _, found := strings.Cut(line, ":")
	if len(fields) != 3 || !found || !strings.Contains(file, "/") {
		return block{}, false, fmt.Errorf("%q is no line of a profile", line)
	}
	statements, err := strconv.Atoi(fields[1])
	if err != nil {
		return block{}, false, fmt.Errorf("%q is no line of a profile: %w", line, err)
	}
	return block{file: file, statements: statements, ran: fields[2] != "0"}, true, nil
}

// generated is true for a file that a generator wrote.
func (m module) generated(file string) (bool, error) {
	relative, ok := strings.CutPrefix(file, m.name+"/")
	if !ok {
		return false, fmt.Errorf("the profile of %s has the file %s, which is not of that module", m.name, file)
	}
	data, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(relative)))
	if err != nil {
		return false, err
	}
	head := data[:min(len(data), 2000)]
	return bytes.Contains(head, []byte("// Code generated by ")) && bytes.Contains(head, []byte("DO NOT EDIT.")), nil
}
