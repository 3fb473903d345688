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

package result

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteText writes the table for a terminal.
func (t *Table) WriteText(w io.Writer) {
	lines := [][]string{nil}
	for _, column := range t.Columns {
		lines[0] = append(lines[0], column.head())
	}
	for _, row := range t.Rows {
		var line []string
		for _, cell := range row {
			line = append(line, cell.String())
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns))
	for _, line := range lines {
		for i, cell := range line {
			if i < len(widths) {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n", t.Title)
	for n, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			space := ""
			if i < len(widths) {
				space = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			}
			if n > 0 && i < len(t.Rows[n-1]) && !t.Rows[n-1][i].isText {
				cell, space = space+cell, ""
			}
			b.WriteString(cell + space + "  ")
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	if t.Note != "" {
		fmt.Fprintln(w, t.Note)
	}
}

// WriteText writes tables, budgets and limits for a terminal.
func (r *Result) WriteText(w io.Writer) {
	for _, t := range r.Tables {
		t.WriteText(w)
	}
	fmt.Fprintln(w)
	for _, b := range r.Budgets {
		fmt.Fprintf(w, "%-12s %s: %s, wanted %s %s\n", b.Verdict(), b.Text, b.measured(), b.Compare, withUnit(b.Target, b.Unit))
	}
	for _, l := range r.Limits {
		fmt.Fprintf(w, "%-12s %s: %s, ours %s: %s\n", "limit", l.Text, withUnit(l.Limit, l.Unit), withUnit(l.Ours, l.Unit), l.Distance())
	}
}

// measured is the figure with its unit, and how certain it is.
func (b Budget) measured() string {
	text := withUnit(b.Measured, b.Unit)
	if b.Low == 0 && b.High == 0 {
		return text
	}
	return text + fmt.Sprintf(" (%s to %s)", Format(b.Low), Format(b.High))
}

func withUnit(v float64, unit string) string { return strings.TrimSpace(Format(v) + " " + unit) }
