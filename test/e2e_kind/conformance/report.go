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
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Status is how a spec ended.
type Status string

// What is compared. A spec that panicked, timed out or was interrupted has failed.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Spec is a spec of upstream's tests.
type Spec struct {
	// Status is how it ended.
	Status Status
	// Seconds is how long it took.
	Seconds float64
	// Message says why it failed, or was skipped, in one line.
	Message string
}

// Specs are those of a run by their names. Those that were not to run are not among
// them.
type Specs map[string]Spec

// junit is what is read of a report.
type junit struct {
	Suites []struct {
		Cases []struct {
			Name    string  `xml:"name,attr"`
			Status  string  `xml:"status,attr"`
			Time    float64 `xml:"time,attr"`
			Skipped *struct {
				Message string `xml:"message,attr"`
			} `xml:"skipped"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
			Error *struct {
				Message string `xml:"message,attr"`
			} `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// it begins the name of a spec, and spec what follows. Cases of set-up and of reports
// have other names.
const it = "[It] "

var spec = regexp.MustCompile(`^\[sig-[a-z-]+\] `)

// ReadJUnit reads the report that e2e.test writes with --report-dir. What failed
// outside of specs, such as the set-up of the suite, is an error.
func ReadJUnit(r io.Reader) (Specs, error) {
	var report junit
	if err := xml.NewDecoder(r).Decode(&report); err != nil {
		return nil, fmt.Errorf("reading a report in JUnit's format: %w", err)
	}
	specs := Specs{}
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			s := Spec{Status: Failed, Seconds: c.Time}
			switch {
			case c.Failure != nil:
				s.Message = c.Failure.Message
			case c.Error != nil:
				s.Message = c.Error.Message
			case c.Skipped != nil:
				s.Status, s.Message = Skipped, c.Skipped.Message
			case c.Status == string(Passed):
				s.Status = Passed
			}
			s.Message = oneLine(s.Message)
			name, isSpec := strings.CutPrefix(c.Name, it)
			if !isSpec || !spec.MatchString(name) {
				if s.Status == Failed {
					return nil, fmt.Errorf("%s failed: %s", c.Name, s.Message)
				}
				continue
			}
			// A spec that a filter leaves out is skipped without a message.
			if s.Status == Skipped && strings.TrimPrefix(s.Message, "skipped") == "" {
				continue
			}
			specs[name] = s
		}
	}
	if len(specs) == 0 {
		return nil, fmt.Errorf("the report has no spec that ran")
	}
	return specs, nil
}

// maxMessage is how much of a message is kept.
const maxMessage = 200

// oneLine is the beginning of a message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// sig is the group that owns a spec.
func sig(name string) string {
	owner, _, _ := strings.Cut(strings.TrimPrefix(name, "["), "]")
	return owner
}

// Difference is a spec that ended in two ways.
type Difference struct {
	Name        string
	Ours, Other Spec
}

// Comparison is what two runs say.
type Comparison struct {
	// Counts are by group, and Total has all.
	Counts map[string]Counts
	Total  Counts
	// OnlyOurs failed on ours only, OnlyOther on the other only, and Different are all
	// others that ended in two ways, such as those that one run does not have.
	OnlyOurs, OnlyOther, Different []Difference
	// Both failed on both.
	Both []Difference
}

// Counts are numbers of specs.
type Counts struct {
	Passed, FailedOurs, FailedOther, FailedBoth, Skipped, Different int
}

// Compare compares two runs.
func Compare(ours, other Specs) Comparison {
	c := Comparison{Counts: map[string]Counts{}}
	names := maps.Clone(ours)
	maps.Copy(names, other)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Difference{Name: name, Ours: ours[name], Other: other[name]}
		group := c.Counts[sig(name)]
		for _, counts := range []*Counts{&group, &c.Total} {
			counts.add(d)
		}
		c.Counts[sig(name)] = group
		switch {
		case d.Ours.Status == Failed && d.Other.Status == Failed:
			c.Both = append(c.Both, d)
		case d.Ours.Status == d.Other.Status:
		case d.Ours.Status == Failed && d.Other.Status == Passed:
			c.OnlyOurs = append(c.OnlyOurs, d)
		case d.Ours.Status == Passed && d.Other.Status == Failed:
			c.OnlyOther = append(c.OnlyOther, d)
		default:
			c.Different = append(c.Different, d)
		}
	}
	return c
}

func (c *Counts) add(d Difference) {
	switch ours, other := d.Ours.Status, d.Other.Status; {
	case ours == Passed && other == Passed:
		c.Passed++
	case ours == Failed && other == Failed:
		c.FailedBoth++
	case ours == Failed && other == Passed:
		c.FailedOurs++
	case ours == Passed && other == Failed:
		c.FailedOther++
	case ours == other:
		c.Skipped++
	default:
		c.Different++
	}
}

// Markdown writes the comparison, with how many specs were left out for which reason.
func (c Comparison) Markdown(w io.Writer, left []LeftOut) error {
	var b strings.Builder
	b.WriteString("| group | passed on both | failed on ours only | on upstream's only | on both | skipped by themselves | left out |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	out := map[string]int{}
	for _, l := range left {
		for _, name := range l.Specs {
			out[sig(name)]++
			out[""]++
		}
	}
	row := func(name string, n Counts, left int) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d |\n", name, n.Passed, n.FailedOurs, n.FailedOther, n.FailedBoth, n.Skipped, left)
	}
	for _, group := range slices.Sorted(maps.Keys(c.Counts)) {
		row(group, c.Counts[group], out[group])
	}
	row("all", c.Total, out[""])
	for _, list := range []struct {
		title string
		specs []Difference
	}{
		{"Failed on ours only", c.OnlyOurs}, {"Failed on upstream's only", c.OnlyOther}, {"Failed on both", c.Both}, {"Ended in two other ways", c.Different},
	} {
		if len(list.specs) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n\n", list.title)
		for _, d := range list.specs {
			fmt.Fprintf(&b, "* %s: %s\n", escape(d.Name), escape(said(d)))
		}
	}
	if len(left) > 0 {
		b.WriteString("\nLeft out:\n\n| why | specs |\n| --- | --- |\n")
		for _, l := range left {
			fmt.Fprintf(&b, "| %s | %d |\n", escape(l.Why), len(l.Specs))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// said is what the runs say of a spec: the message once where both say the same.
func said(d Difference) string {
	texts := []string{}
	for _, s := range []Spec{d.Ours, d.Other} {
		text := s.Message
		if text == "" {
			text = string(s.Status)
		}
		if text == "" {
			text = "did not run"
		}
		texts = append(texts, text)
	}
	if texts[0] == texts[1] {
		return texts[0]
	}
	return "ours: " + texts[0] + "; upstream's: " + texts[1]
}

// escape keeps what is special in Markdown's tables and links as it is.
func escape(s string) string {
	return strings.NewReplacer("|", "\\|", "[", "\\[", "<", "&lt;").Replace(s)
}

// LeftOut are specs that do not run for a reason.
type LeftOut struct {
	Why   string
	Specs []string
}
