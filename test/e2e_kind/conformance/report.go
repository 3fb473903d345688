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
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Status is how a spec ended.
type Status string

// Statuses that Compare distinguishes. Panics, timeouts and interrupts count as Failed.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
)

// Spec is a spec of upstream's tests.
type Spec struct {
	// Status is how it ended, empty if it did not run.
	Status Status
	// Seconds is how long it took.
	Seconds float64
	// Message says why it failed, or was skipped, in one line.
	Message string
	// FirstAttempt says why an attempt failed before another one. It is empty for a spec
	// that ran once.
	FirstAttempt string
}

// Specs are those of a run by their names.
type Specs map[string]Spec

// Report is what a run wrote.
type Report struct {
	// Specs are those that ran, and in a dry run those that would.
	Specs Specs
	// PassedOver are the names of all others: filters exclude them, or the run ended
	// before their turn.
	PassedOver []string
}

// junit is what is read of a report.
type junit struct {
	Suites []struct {
		Cases []struct {
			Name    string   `xml:"name,attr"`
			Status  string   `xml:"status,attr"`
			Time    float64  `xml:"time,attr"`
			Skipped *outcome `xml:"skipped"`
			Failure *outcome `xml:"failure"`
			Error   *outcome `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// outcome says why a case did not pass. e2e.test has the message of a failure in the text
// only, between the word for how it failed and where it did.
type outcome struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (o outcome) String() string {
	if o.Message != "" {
		return oneLine(o.Message)
	}
	text, _, _ := strings.Cut(o.Text, "\nIn [")
	return oneLine(heading.ReplaceAllString(strings.TrimSpace(text), ""))
}

var heading = regexp.MustCompile(`^\[[A-Z]+\] `)

// it begins the name of a spec, and spec what follows. Cases of set-up and of reports
// have other names.
const it = "[It] "

var spec = regexp.MustCompile(`^\[sig-[a-z-]+\] `)

// ReadJUnit reads the report that e2e.test writes with --report-dir. A failure
// outside of specs, such as in the set-up of the suite, is an error.
func ReadJUnit(r io.Reader) (Report, error) {
	var read junit
	if err := xml.NewDecoder(r).Decode(&read); err != nil {
		return Report{}, fmt.Errorf("reading a report in JUnit's format: %w", err)
	}
	report := Report{Specs: Specs{}}
	for _, suite := range read.Suites {
		for _, c := range suite.Cases {
			s := Spec{Status: Failed, Seconds: c.Time}
			switch {
			case c.Failure != nil:
				s.Message = c.Failure.String()
			case c.Error != nil:
				s.Message = c.Error.String()
			case c.Skipped != nil:
				s.Status, s.Message = Skipped, c.Skipped.String()
			case c.Status == string(Passed):
				s.Status = Passed
			}
			name, isSpec := strings.CutPrefix(c.Name, it)
			if !isSpec || !spec.MatchString(name) {
				if s.Status == Failed {
					return Report{}, fmt.Errorf("%s failed: %s", c.Name, s.Message)
				}
				continue
			}
			// A spec that did not begin is skipped without a message.
			if s.Status == Skipped && strings.TrimPrefix(s.Message, "skipped") == "" {
				report.PassedOver = append(report.PassedOver, name)
				continue
			}
			if _, ok := report.Specs[name]; ok {
				return Report{}, fmt.Errorf("the report has two specs with the name %q", name)
			}
			report.Specs[name] = s
		}
	}
	if len(report.Specs) == 0 {
		return Report{}, fmt.Errorf("the report has no spec that ran")
	}
	return report, nil
}

// attempts is what is read of ginkgo's own report.
type attempts []struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeText            string
		NumAttempts             int
		AdditionalFailures      []struct {
			Failure struct{ Message string }
		}
	}
}

// attemptHeading begins the message of an attempt that was not the last.
var attemptHeading = regexp.MustCompile(`^Failure recorded during attempt \d+:\n`)

// ReadAttempts reads the report that ginkgo writes with --json-report, and notes in specs
// which of them needed more than one attempt. JUnit's format does not have that.
func ReadAttempts(r io.Reader, specs Specs) error {
	var read attempts
	if err := json.NewDecoder(r).Decode(&read); err != nil {
		return fmt.Errorf("reading ginkgo's report: %w", err)
	}
	for _, suite := range read {
		for _, s := range suite.SpecReports {
			if s.NumAttempts < 2 {
				continue
			}
			name := specs.find(strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "))
			if name == "" {
				return fmt.Errorf("ginkgo's report has a spec that that of e2e.test lacks: %s", s.LeafNodeText)
			}
			found := specs[name]
			found.FirstAttempt = "no message"
			if len(s.AdditionalFailures) > 0 {
				found.FirstAttempt = oneLine(attemptHeading.ReplaceAllString(s.AdditionalFailures[0].Failure.Message, ""))
			}
			specs[name] = found
		}
	}
	return nil
}

// find returns the name of the spec with a text, to which e2e.test may have added the
// versions of components that it needs.
func (s Specs) find(text string) string {
	if _, ok := s[text]; ok {
		return text
	}
	for name := range s {
		if strings.HasPrefix(name, text+" [") {
			return name
		}
	}
	return ""
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
