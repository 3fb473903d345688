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
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// long is the limit of a shard's time when its needs are built.
const long = 9 * time.Minute

// row is a line of the table at the end.
type row struct {
	name, result string
	seconds      time.Duration
	tests, notes string
}

// tests returns the numbers of tests by result.
func (f figures) tests() string {
	text := strconv.Itoa(f.ran())
	if f.ran() == 1 {
		text += " test"
	} else {
		text += " tests"
	}
	if f.Failed > 0 {
		text += fmt.Sprintf(", %d failed", f.Failed)
	}
	if f.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", f.Skipped)
	}
	return text
}

func (o *outcome) row() row {
	line := row{name: o.shard.Name, result: o.result, seconds: o.duration, notes: strings.Join(append(slices.Clone(o.Seeds), o.notes...), "; ")}
	if o.ran() > 0 {
		line.tests = o.tests()
	}
	return line
}

// report prints the causes of failures, the table, and the numbers of tests by
// result. It returns whether the run passed.
func (r *runner) report(outcomes []*outcome) bool {
	rows := slices.Clone(r.builds)
	var sum, before figures
	var over []string
	passed, unchanged := true, len(outcomes) > 0
	for _, o := range outcomes {
		printCauses(o.failures, r.stdout)
		rows = append(rows, o.row())
		to := &sum
		if o.result == unchangedResult {
			to = &before
		} else {
			unchanged = false
		}
		to.Passed, to.Failed, to.Skipped = to.Passed+o.Passed, to.Failed+o.Failed, to.Skipped+o.Skipped
		passed = passed && o.result != failedResult && o.result != interruptedResult
		if o.duration > long && o.result != unchangedResult {
			over = append(over, fmt.Sprintf("%s (%s)", o.shard.Name, seconds(o.duration)))
		}
	}
	fmt.Fprintf(r.stdout, "\n%s", table(rows))
	if len(over) > 0 {
		fmt.Fprintf(r.stdout, "over nine minutes: %s\n", strings.Join(over, ", "))
	}
	if before.ran() > 0 {
		fmt.Fprintf(r.stdout, "%s of unchanged shards were not run again; FORCE=1 runs them\n", before.tests())
	}
	interrupted := slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.result == interruptedResult })
	switch {
	case interrupted:
		fmt.Fprintln(r.stdout, "interrupted: shards that were not finished keep the result that they had before")
	case sum.ran() == 0 && !unchanged:
		fmt.Fprintln(r.stdout, "no test ran; see the notes of shards, and \"make test-all LIST=1\"")
		passed = false
	}
	if slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.result == failedResult }) {
		fmt.Fprintf(r.stdout, "whole output: %s/NAME.log; \"make test-all ONLY=failed\" repeats what failed\n", r.dir())
	}
	fmt.Fprintf(r.stdout, "%d passed, %d failed, %d skipped\n", sum.Passed, sum.Failed, sum.Skipped)
	return passed
}

// table aligns rows.
func table(rows []row) string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SHARD\tRESULT\tSECONDS\tTESTS\tSEEDS, NOTES")
	for _, row := range rows {
		took := "-"
		if row.seconds > 0 {
			took = fmt.Sprintf("%.0f", row.seconds.Seconds())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", row.name, row.result, took, row.tests, row.notes)
	}
	return flushed(w, &text)
}

// list prints the shards and how they last ended.
func (r *runner) list(shards []Shard, to io.Writer) error {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "SHARD\tRUN BY\tLAST\tCOVERS\tNEEDS")
	for _, s := range shards {
		last, err := r.last(s)
		if err != nil {
			return err
		}
		by := "test-all"
		if s.Quick {
			by = "test"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Name, by, last, s.Covers, strings.Join(s.needs(), ", "))
	}
	_, err := fmt.Fprint(to, flushed(w, &text))
	return err
}

// last returns the last result of a shard.
func (r *runner) last(s Shard) (string, error) {
	for suffix, result := range map[string]string{passedSuffix: passedResult, failedSuffix: failedResult} {
		rec, err := r.readRecord(s, suffix)
		if err != nil {
			return "", err
		}
		if rec != nil {
			return fmt.Sprintf("%s in %.0f s", result, rec.Seconds), nil
		}
	}
	return "-", nil
}

// needs returns a shard's needs as text.
func (s Shard) needs() []string {
	needs := slices.Concat(s.Needs, s.Installed)
	if s.Root {
		needs = append(needs, "root", "nft")
	}
	if s.Alone {
		needs = append(needs, "nothing beside it")
	}
	return needs
}

// flushed is the text of a table, without spaces at the ends of lines.
func flushed(w *tabwriter.Writer, text *bytes.Buffer) string {
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	var trimmed strings.Builder
	for line := range strings.Lines(text.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.String()
}
