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
	"maps"
	"regexp"
	"slices"
)

// Difference is a spec in two runs.
type Difference struct {
	Name        string
	Ours, Other Spec
}

// Comparison is what two runs say of the specs that were to run.
type Comparison struct {
	// Groups are the numbers of specs by the groups that own them.
	Groups map[string]Counts
	// OnlyOurs failed on ours only, OnlyOther on the other only, and Both on both.
	OnlyOurs, OnlyOther, Both []Difference
	// NotRun lack in one report or in both.
	NotRun []Difference
	// Different are all others that ended in two ways.
	Different []Difference
	// Skipped skipped themselves on both.
	Skipped []Difference
	// Again passed in another attempt than the first, on one or on both.
	Again []Difference
}

// Counts are numbers of specs in both runs.
type Counts struct{ Ours, Other Tally }

// Tally are numbers of specs in one run.
type Tally struct{ Passed, Failed, Skipped, NotRun int }

func (t *Tally) add(s Spec) {
	switch s.Status {
	case Passed:
		t.Passed++
	case Failed:
		t.Failed++
	case Skipped:
		t.Skipped++
	default:
		t.NotRun++
	}
}

// Compare compares two runs of the specs that were to run. Those that were not, and ran,
// are compared, too.
func Compare(planned []string, ours, other Specs) Comparison {
	c := Comparison{Groups: map[string]Counts{}}
	names := maps.Clone(ours)
	maps.Copy(names, other)
	for _, name := range planned {
		names[name] = Spec{}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Difference{Name: name, Ours: ours[name], Other: other[name]}
		group := c.Groups[sig(name)]
		group.Ours.add(d.Ours)
		group.Other.add(d.Other)
		c.Groups[sig(name)] = group
		c.add(d)
	}
	return c
}

func (c *Comparison) add(d Difference) {
	switch ours, other := d.Ours.Status, d.Other.Status; {
	case ours == "" || other == "":
		c.NotRun = append(c.NotRun, d)
	case ours == Failed && other == Failed:
		c.Both = append(c.Both, d)
	case ours == Failed && other == Passed:
		c.OnlyOurs = append(c.OnlyOurs, d)
	case ours == Passed && other == Failed:
		c.OnlyOther = append(c.OnlyOther, d)
	case ours != other:
		c.Different = append(c.Different, d)
	case ours == Skipped:
		c.Skipped = append(c.Skipped, d)
	}
	if d.Ours.again() || d.Other.again() {
		c.Again = append(c.Again, d)
	}
}

// again is true for a spec that passed, and not at once.
func (s Spec) again() bool { return s.Status == Passed && s.FirstAttempt != "" }

// Problems are what fails a comparison, one line each. A failure on both is none if a row
// of known has it. A row whose specs were to run, and of which none failed on both, is
// out of date.
func (c Comparison) Problems(planned []string, known []Row) []string {
	var problems []string
	for _, d := range c.OnlyOurs {
		problems = append(problems, fmt.Sprintf("passes on upstream's binaries and not on ours: %s: %s", d.Name, d.Ours.Message))
	}
	for _, d := range c.NotRun {
		problems = append(problems, fmt.Sprintf("did not run on %s: %s", d.where(), d.Name))
	}
	for _, d := range c.Different {
		problems = append(problems, fmt.Sprintf("ends as %q on ours and as %q on upstream's: %s: %s", d.Ours.Status, d.Other.Status, d.Name, said(d)))
	}
	for _, d := range c.Both {
		if !slices.ContainsFunc(known, func(r Row) bool { return r.matches(d.Name) }) {
			problems = append(problems, fmt.Sprintf("fails on both clusters and is no known failure: %s: %s", d.Name, said(d)))
		}
	}
	for _, r := range known {
		failed := slices.ContainsFunc(c.Both, func(d Difference) bool { return r.matches(d.Name) })
		if slices.ContainsFunc(planned, r.matches) && !failed {
			problems = append(problems, fmt.Sprintf("no longer fails on both clusters, remove it from the known failures: %s", r.Spec))
		}
	}
	return problems
}

// where names the clusters on which a spec did not run.
func (d Difference) where() string {
	switch {
	case d.Ours.Status == "" && d.Other.Status == "":
		return "either cluster"
	case d.Ours.Status == "":
		return "ours"
	default:
		return "upstream's"
	}
}

// Row is a line of a table of specs with something in common.
type Row struct {
	// Spec is an expression for the names of specs, and Why says in a few words what is
	// to say of them.
	Spec, Why string
	// When tells whether the row counts where these tests run. Without it, it always does.
	When func(Place) bool
}

func (r Row) matches(name string) bool { return regexp.MustCompile(r.Spec).MatchString(name) }

// Place is where tests run.
type Place struct {
	// Missing are the names of images that nodes neither have nor can pull.
	Missing []string
	// DummyDevices is true if the kernel of nodes has dummy network devices.
	DummyDevices bool
}

// counting are the rows of a table that count in a place.
func counting(table []Row, place Place) []Row {
	return slices.DeleteFunc(slices.Clone(table), func(r Row) bool { return r.When != nil && !r.When(place) })
}

// outdated are the expressions of a table that match none of all specs.
func outdated(table []Row, all []string) []string {
	var found []string
	for _, r := range table {
		if !slices.ContainsFunc(all, r.matches) {
			found = append(found, r.Spec)
		}
	}
	return found
}

// LeftOut are specs that do not run for a reason.
type LeftOut struct {
	Why   string
	Specs []string
}

// leaveOut takes the specs of these rows out of those that are selected. It returns those
// that are to run, in order, and the others with the reasons.
func leaveOut(selected []string, rows []Row) (planned []string, left []LeftOut) {
	byRow := make([][]string, len(rows))
	for _, name := range slices.Sorted(slices.Values(selected)) {
		if i := slices.IndexFunc(rows, func(r Row) bool { return r.matches(name) }); i >= 0 {
			byRow[i] = append(byRow[i], name)
		} else {
			planned = append(planned, name)
		}
	}
	for i, specs := range byRow {
		if len(specs) > 0 {
			left = append(left, LeftOut{Why: rows[i].Why, Specs: specs})
		}
	}
	return planned, left
}
