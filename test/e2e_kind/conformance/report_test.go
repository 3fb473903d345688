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
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// report has one case of each kind, in the form that e2e.test writes.
const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6"><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-apps] Deployment rolls over [Conformance]" status="passed" time="2.5"></testcase>
<testcase name="[It] [sig-node] Pods fail [NodeConformance]" status="failed" time="3"><failure message="timed out&#xA;waiting for | the pod" type="failed"></failure></testcase>
<testcase name="[It] [sig-node] Pods panic" status="panicked" time="1"><error message="nil map" type="panicked"></error></testcase>
<testcase name="[It] [sig-node] Pods need Windows" status="skipped" time="0"><skipped message="skipped - only on Windows"></skipped></testcase>
<testcase name="[It] [sig-cli] not selected" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`

func TestReadJUnit(t *testing.T) {
	got, err := ReadJUnit(strings.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	want := Specs{
		"[sig-apps] Deployment rolls over [Conformance]": {Status: Passed, Seconds: 2.5},
		"[sig-node] Pods fail [NodeConformance]":         {Status: Failed, Seconds: 3, Message: "timed out waiting for | the pod"},
		"[sig-node] Pods panic":                          {Status: Failed, Seconds: 1, Message: "nil map"},
		"[sig-node] Pods need Windows":                   {Status: Skipped, Message: "skipped - only on Windows"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the specs (-want +got)\n%s", diff)
	}
	for text, complaint := range map[string]string{
		"no XML": "JUnit",
		strings.Replace(report, `Suite]" status="passed" time="1">`, `Suite]" status="failed" time="1"><failure message="no nodes"></failure>`, 1): "no nodes",
		"<testsuites></testsuites>": "no spec that ran",
	} {
		if _, err := ReadJUnit(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("got the error %v, want one with %q", err, complaint)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	if got := oneLine(strings.Repeat("é", maxMessage)); len(got) > maxMessage+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}

func TestCompare(t *testing.T) {
	spec := func(s Status, message string) Spec { return Spec{Status: s, Message: message} }
	ours := Specs{
		"[sig-apps] a": spec(Passed, ""), "[sig-apps] b": spec(Failed, "ours"), "[sig-apps] c": spec(Passed, ""),
		"[sig-node] d": spec(Failed, "same"), "[sig-node] e": spec(Skipped, "Windows"), "[sig-node] f": spec(Skipped, "no gate"),
	}
	other := Specs{
		"[sig-apps] a": spec(Passed, ""), "[sig-apps] b": spec(Passed, ""), "[sig-apps] c": spec(Failed, "other"),
		"[sig-node] d": spec(Failed, "same"), "[sig-node] e": spec(Skipped, "Windows"), "[sig-node] f": spec(Passed, ""), "[sig-node] g": spec(Passed, ""),
	}
	c := Compare(ours, other)
	if want := (Counts{Passed: 1, FailedOurs: 1, FailedOther: 1, FailedBoth: 1, Skipped: 1, Different: 2}); c.Total != want {
		t.Errorf("the counts are %+v, want %+v", c.Total, want)
	}
	if want := (Counts{Passed: 1, FailedOurs: 1, FailedOther: 1}); c.Counts["sig-apps"] != want {
		t.Errorf("the counts of sig-apps are %+v, want %+v", c.Counts["sig-apps"], want)
	}
	names := func(list []Difference) (names []string) {
		for _, d := range list {
			names = append(names, d.Name)
		}
		return names
	}
	got := [][]string{names(c.OnlyOurs), names(c.OnlyOther), names(c.Both), names(c.Different)}
	if diff := cmp.Diff([][]string{{"[sig-apps] b"}, {"[sig-apps] c"}, {"[sig-node] d"}, {"[sig-node] f", "[sig-node] g"}}, got); diff != "" {
		t.Errorf("the differences (-want +got)\n%s", diff)
	}
	var text strings.Builder
	if err := c.Markdown(&text, []LeftOut{{Why: "no image | of perl", Specs: []string{"[sig-apps] x", "[sig-apps] y"}}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| sig-apps | 1 | 1 | 1 | 0 | 0 | 2 |\n", "| all | 1 | 1 | 1 | 1 | 1 | 2 |\n", "* \\[sig-apps] b: ours: ours; upstream's: passed\n",
		"* \\[sig-node] d: same\n", "* \\[sig-node] g: ours: did not run; upstream's: passed\n", "| no image \\| of perl | 2 |\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}
