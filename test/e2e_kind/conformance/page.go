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

package conformance

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Page is a comparison with what a reader needs to know of it.
type Page struct {
	Comparison Comparison
	// Ours and Other are the versions of both clusters, and Date is the day.
	Ours, Other, Date string
	// Labels and Focus select specs, and Workers is the number of nodes for Pods.
	Labels, Focus string
	Workers       int
	// Left are specs that are left out, and Missing the names of missing images.
	Left    []LeftOut
	Missing []string
	// Known are the known failures that count here.
	Known []Row
}

// Markdown writes the page.
func (p Page) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Ours is %s, upstream's is %s, each with one control plane and %d workers, on %s. Label filter: `%s`.", p.Ours, p.Other, p.Workers, p.Date, p.Labels)
	if p.Focus != "" {
		fmt.Fprintf(&b, " Only specs whose names match `%s`.", p.Focus)
	}
	b.WriteString("\n\n")
	p.table(&b)
	c := p.Comparison
	for _, list := range []struct {
		title string
		specs []Difference
		say   func(Difference) string
	}{
		{"Failed on ours only", c.OnlyOurs, said},
		{"Failed on upstream's only", c.OnlyOther, said},
		{"Failed on both", c.Both, p.known},
		{"Did not run", c.NotRun, said},
		{"Ended in two other ways", c.Different, said},
		{"Skipped by themselves", c.Skipped, said},
		{"Passed in a second attempt", c.Again, tried},
	} {
		if len(list.specs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n\n", list.title)
		for _, d := range list.specs {
			fmt.Fprintf(&b, "* %s: %s\n", escape(d.Name), escape(list.say(d)))
		}
	}
	for _, l := range p.Left {
		fmt.Fprintf(&b, "\nLeft out, since %s:\n\n", escape(l.Why))
		for _, name := range l.Specs {
			fmt.Fprintf(&b, "* %s\n", escape(name))
		}
	}
	if len(p.Missing) > 0 {
		b.WriteString("\nImages that upstream's tests name, and that nodes here neither have nor can pull. A spec that needs one fails on both, unless it is left out:\n\n")
		for _, name := range p.Missing {
			fmt.Fprintf(&b, "* %s\n", name)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes the numbers of specs.
func (p Page) table(b *strings.Builder) {
	left := map[string]int{}
	for _, l := range p.Left {
		for _, name := range l.Specs {
			left[sig(name)]++
		}
	}
	b.WriteString("| group | passed: ours | upstream's | failed: ours | upstream's | skipped themselves: ours | upstream's | did not run: ours | upstream's | left out |\n")
	b.WriteString("| --- " + strings.Repeat("| --- ", 9) + "|\n")
	row := func(name string, n Counts, left int) {
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d |\n", name,
			n.Ours.Passed, n.Other.Passed, n.Ours.Failed, n.Other.Failed, n.Ours.Skipped, n.Other.Skipped, n.Ours.NotRun, n.Other.NotRun, left)
	}
	groups := maps.Clone(p.Comparison.Groups)
	for group := range left {
		groups[group] = p.Comparison.Groups[group]
	}
	var all Counts
	sum := 0
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		row(group, groups[group], left[group])
		all.Ours.sum(groups[group].Ours)
		all.Other.sum(groups[group].Other)
		sum += left[group]
	}
	row("all", all, sum)
}

func (t *Tally) sum(other Tally) {
	t.Passed += other.Passed
	t.Failed += other.Failed
	t.Skipped += other.Skipped
	t.NotRun += other.NotRun
}

// known is what is said of a spec that fails on both, with the reason if there is one.
func (p Page) known(d Difference) string {
	if i := slices.IndexFunc(p.Known, func(r Row) bool { return r.matches(d.Name) }); i >= 0 {
		return said(d) + ". Known: " + p.Known[i].Why
	}
	return said(d)
}

// said is what the runs say of a spec: the message once where both say the same.
func said(d Difference) string {
	return sides(d, func(s Spec) string {
		switch {
		case s.Message != "":
			return s.Message
		case s.Status != "":
			return string(s.Status)
		}
		return "did not run"
	})
}

// tried is what failed before a spec passed.
func tried(d Difference) string {
	return sides(d, func(s Spec) string {
		if s.FirstAttempt != "" {
			return s.FirstAttempt
		}
		return "passed at once"
	})
}

// sides joins what is said of both runs.
func sides(d Difference, say func(Spec) string) string {
	ours, other := say(d.Ours), say(d.Other)
	if ours == other {
		return "both: " + ours
	}
	return "ours: " + ours + "; upstream's: " + other
}

// escape keeps what is special in Markdown's tables and links as it is.
func escape(s string) string {
	return strings.NewReplacer("|", "\\|", "[", "\\[", "<", "&lt;").Replace(s)
}
