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

// Command mutations breaks lines of the product, one at a time, in a copy of the last
// commit, and runs the tests there: a line that can be broken without a failing test is
// not tested. For each line "make test-mutations" runs the unit tests of its package,
// all of which are in the quick shards; then, for missed ones, the quick shards; and at
// last all shards. -only takes some mutations.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var s settings
	flag.StringVar(&s.root, "root", ".", "The top of the checkout.")
	flag.StringVar(&s.only, "only", "", "Names of mutations, separated by commas; all without it.")
	flag.IntVar(&s.least, "least", 18, "How many of all mutations the quick shards have to notice.")
	flag.BoolVar(&s.all, "all", false, "Run all shards for mutations that the quick shards miss.")
	flag.Parse()
	if err := s.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	root, only string
	least      int
	all        bool
}

// choose returns the mutations to run.
func (s settings) choose() ([]Mutation, error) {
	if s.only == "" {
		return mutations, nil
	}
	var chosen []Mutation
	for _, name := range strings.Split(s.only, ",") {
		i := slices.IndexFunc(mutations, func(m Mutation) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no mutation is called %q; their names are in hack/mutations/mutations.go", name)
		}
		chosen = append(chosen, mutations[i])
	}
	return chosen, nil
}

// run breaks each line in turn and prints what noticed it.
func (s settings) run(ctx context.Context, stdout io.Writer) (err error) {
	chosen, err := s.choose()
	if err != nil {
		return err
	}
	c, err := newCopy(ctx, s.root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	fmt.Fprintf(stdout, "The tests pass without a mutation, or nothing below means anything: %s\n", strings.Join(quick, " "))
	if output, err := c.test(ctx, quick); err != nil {
		return fmt.Errorf("the tests fail without a mutation: %w\n%s", err, tail(output))
	}
	byQuick, byAny := 0, 0
	for _, m := range chosen {
		f, err := s.try(ctx, c, m)
		if err != nil {
			return err
		}
		if f.shards == "quick" {
			byQuick++
		}
		if f.by != "" {
			byAny++
		}
		fmt.Fprintf(stdout, "%-22s %-10s %-9s %6.0f s  %s\n", m.Name, m.Area, f.result(), f.took.Seconds(), f.by)
	}
	fmt.Fprintf(stdout, "%d of %d noticed by quick shards, %d by any\n", byQuick, len(chosen), byAny)
	if least := s.least - (len(mutations) - len(chosen)); byQuick < least {
		return fmt.Errorf("the quick shards noticed %d mutations, and should notice %d", byQuick, least)
	}
	if s.all && byAny < len(chosen) {
		return fmt.Errorf("%d mutations were not noticed at all", len(chosen)-byAny)
	}
	return nil
}

// found describes which shards noticed a mutation, and by which test.
type found struct {
	shards, by string
	took       time.Duration
}

func (f found) result() string {
	if f.by == "" {
		return "MISSED"
	}
	return f.shards
}

// try breaks one line and runs tests until one fails.
func (s settings) try(ctx context.Context, c *checkout, m Mutation) (f found, err error) {
	begun := time.Now()
	restore, err := m.apply(c.dir)
	if err != nil {
		return f, err
	}
	defer func() {
		f.took = time.Since(begun)
		err = errors.Join(err, restore())
	}()
	// A line that does not compile would be noticed by anything.
	if output, err := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(c.dir, filepath.Dir(m.File)), ".").CombinedOutput(); err != nil {
		return f, fmt.Errorf("mutation %s does not compile: %w\n%s", m.Name, err, output)
	}
	if name, err := c.testPackage(ctx, filepath.Dir(m.File)); err != nil || name != "" {
		return found{shards: "quick", by: name}, err
	}
	runs := map[string][]string{"quick": quick, "all": all}
	for _, name := range []string{"quick", "all"} {
		if name == "all" && !s.all {
			break
		}
		output, err := c.test(ctx, runs[name])
		if ctx.Err() != nil {
			return f, ctx.Err()
		}
		if err != nil {
			by := firstFailure(output)
			if by == "" {
				// Shards that cannot run show nothing.
				return f, fmt.Errorf("mutation %s: %w\n%s", m.Name, err, output)
			}
			return found{shards: name, by: by}, nil
		}
	}
	return f, nil
}

// notOurs returns all shards but the one that compares mutations with the files that
// they change: it would notice every mutation.
const notOurs = "*,!unit-hack"

// Unchanged shards are left out, so that only those run that depend on the line.
var (
	quick = []string{"-quick", "-shard=" + notOurs, "-reuse", "-stop"}
	all   = []string{"-shard=" + notOurs, "-reuse", "-stop"}
)

// apply breaks the line in a checkout and returns what restores the file.
func (m Mutation) apply(dir string) (restore func() error, err error) {
	file := filepath.Join(dir, m.File)
	before, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("mutation %s: %w", m.Name, err)
	}
	if n := bytes.Count(before, []byte(m.Old)); n != 1 {
		return nil, fmt.Errorf("mutation %s: the line is %d times in %s, and has to be there once; change its row in hack/mutations/mutations.go", m.Name, n, m.File)
	}
	after := bytes.Replace(before, []byte(m.Old), []byte(m.New), 1)
	if err := os.WriteFile(file, after, 0o644); err != nil {
		return nil, err
	}
	return func() error { return os.WriteFile(file, before, 0o644) }, nil
}

// checkout is a copy of the last commit.
type checkout struct {
	root, dir string
}

func newCopy(ctx context.Context, root string) (*checkout, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return nil, err
	}
	c := &checkout{root: root, dir: dir}
	if output, err := exec.CommandContext(ctx, "git", "-C", root, "worktree", "add", "--detach", dir, "HEAD").CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("copying the last commit: %w\n%s", err, output), os.RemoveAll(dir))
	}
	return c, nil
}

// remove removes the copy, also after an interrupt.
func (c *checkout) remove() error {
	err := os.RemoveAll(c.dir)
	return errors.Join(err, exec.CommandContext(context.Background(), "git", "-C", c.root, "worktree", "prune").Run())
}

// test runs shards in the copy and returns what they printed. An interrupt ends the
// runner, which ends its processes.
func (c *checkout) test(ctx context.Context, args []string) (string, error) {
	build := exec.CommandContext(ctx, "go", "build", "-o", "_output/tools/shards", "./hack/shards")
	build.Dir = c.dir
	if output, err := build.CombinedOutput(); err != nil {
		return string(output), err
	}
	cmd := exec.CommandContext(ctx, "_output/tools/shards", args...)
	cmd.Dir = c.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// testPackage runs the unit tests of one package and returns the first that fails, or
// "". They are part of the quick shards and take seconds.
func (c *checkout) testPackage(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-C", filepath.Join(c.dir, dir), "-vet=off", "-failfast", "-timeout=10m", ".")
	output, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	for line := range strings.Lines(string(output)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return dir + "." + name, nil
		}
	}
	// A package that crashes fails; one that cannot be built or run shows nothing.
	for _, sign := range []string{"\npanic: ", "DATA RACE", "panic: test timed out"} {
		if strings.Contains(string(output), sign) {
			return dir + ": " + strings.TrimSpace(sign), nil
		}
	}
	return "", fmt.Errorf("the tests of %s cannot run: %w\n%s", dir, err, output)
}

// firstFailure is the first test that failed, "" when the output names none.
func firstFailure(output string) string {
	for line := range strings.Lines(output) {
		if name, ok := strings.CutPrefix(line, "=== WHY "); ok {
			return strings.TrimSuffix(strings.TrimSpace(name), " FAILED")
		}
	}
	return ""
}

// tail is the last line that is not empty.
func tail(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return lines[len(lines)-1]
}
