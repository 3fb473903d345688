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
	"strings"
)

// Markdown is the table as Markdown has tables.
func (t *Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", cell(t.Title))
	var heads, rules []string
	for i, column := range t.Columns {
		heads = append(heads, cell(column.head()))
		rule := "---"
		if t.numeric(i) {
			rule = "---:"
		}
		rules = append(rules, rule)
	}
	fmt.Fprintf(&b, "| %s |\n| %s |\n", strings.Join(heads, " | "), strings.Join(rules, " | "))
	for _, row := range t.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, cell(c.String()))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	if t.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", t.Note)
	}
	return b.String()
}

// numeric is true for columns that have a figure.
func (t *Table) numeric(column int) bool {
	for _, row := range t.Rows {
		if _, ok := row[column].Value(); ok {
			return true
		}
	}
	return false
}

// cell keeps a text within its cell.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}

// Markdown is the section of a result below its heading, without explanation.
// Pictures are the paths of the charts' files, in their order.
func (r *Result) Markdown(pictures []string) string {
	var b strings.Builder
	e := r.Environment
	fmt.Fprintf(&b, "%s\n\n**Beside it:** %s\n\n", r.Question, r.Peer)
	dirty := ""
	if e.Dirty {
		dirty = " with changes that are not committed"
	}
	fmt.Fprintf(&b, "%s, %d cores, %s GiB; %s, Linux %s; %s; Kubernetes %s, etcd %s; commit %.12s%s; %s, %s s. Again: `%s`\n\n",
		e.Processor, e.Cores, Format(float64(e.Memory>>20)/1024), e.OS, e.Kernel, e.Go, e.Kubernetes, e.Etcd, e.Commit, dirty,
		r.Begun.UTC().Format("2006-01-02 15:04 UTC"), Format(float64(int(r.Seconds))), r.Command)
	for _, sentence := range r.Method {
		fmt.Fprintf(&b, "* %s\n", sentence)
	}
	if len(r.Method) > 0 {
		b.WriteString("\n")
	}
	for i, chart := range r.Charts {
		if i < len(pictures) {
			fmt.Fprintf(&b, "![%s](%s)\n\n", chart.Title, pictures[i])
		}
	}
	for _, table := range r.Tables {
		b.WriteString(table.Markdown() + "\n")
	}
	if table := r.Growth.Table(); table != nil {
		b.WriteString(table.Markdown() + "\n")
	}
	b.WriteString(r.BudgetTable().Markdown() + "\n" + r.limits().Markdown())
	return b.String()
}

// BudgetTable is the budgets as a table, one row each in their order: text, wanted,
// measured, verdict, how.
func (r *Result) BudgetTable() *Table {
	t := &Table{Title: "Budgets", Columns: []Column{{Name: "budget"}, {Name: "wanted"}, {Name: "measured"}, {Name: "verdict"}, {Name: "how it was computed"}}}
	for _, b := range r.Budgets {
		verdict := b.Verdict()
		if !b.Met() || b.Noisy() {
			verdict = "**" + verdict + "**"
		}
		t.AddRow(b.Text, b.Compare+" "+withUnit(b.Target, b.Unit), b.measured(), verdict, b.How)
	}
	return t
}

// limits are the physical limits as a table.
func (r *Result) limits() *Table {
	t := &Table{Title: "Physical limits, measured in the same run", Columns: []Column{{Name: "limit"}, {Name: "at best"}, {Name: "ours"}, {Name: "ours is at"}}}
	for _, l := range r.Limits {
		t.AddRow(l.Text, withUnit(l.Limit, l.Unit), withUnit(l.Ours, l.Unit), l.Distance())
	}
	return t
}
