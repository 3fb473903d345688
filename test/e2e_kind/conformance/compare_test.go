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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planned are the specs that were to run in the runs below.
var planned = []string{
	"[sig-apps] a", "[sig-apps] b", "[sig-apps] c", "[sig-node] d", "[sig-node] e", "[sig-node] f", "[sig-node] g", "[sig-node] h", "[sig-node] i", "[sig-node] j",
}

func runs() (ours, other Specs) {
	pass, fail := Spec{Status: Passed}, func(message string) Spec { return Spec{Status: Failed, Message: message} }
	skip := func(message string) Spec { return Spec{Status: Skipped, Message: message} }
	again := Spec{Status: Passed, FirstAttempt: "slow | Pod"}
	return Specs{
			"[sig-apps] a": pass, "[sig-apps] b": fail("ours"), "[sig-apps] c": pass, "[sig-node] d": fail("same"), "[sig-node] e": skip("Windows"),
			"[sig-node] f": skip("no gate"), "[sig-node] i": again, "[sig-node] j": fail("other"),
		}, Specs{
			"[sig-apps] a": pass, "[sig-apps] b": pass, "[sig-apps] c": fail("other"), "[sig-node] d": fail("same"), "[sig-node] e": skip("Windows"),
			"[sig-node] f": pass, "[sig-node] g": pass, "[sig-node] i": pass, "[sig-node] j": fail("another"),
		}
}

func TestCompare(t *testing.T) {
	ours, other := runs()
	c := Compare(planned, ours, other)
	want := map[string]Counts{
		"sig-apps": {Ours: Tally{Passed: 2, Failed: 1}, Other: Tally{Passed: 2, Failed: 1}},
		"sig-node": {Ours: Tally{Passed: 1, Failed: 2, Skipped: 2, NotRun: 2}, Other: Tally{Passed: 3, Failed: 2, Skipped: 1, NotRun: 1}},
	}
	if diff := cmp.Diff(want, c.Groups); diff != "" {
		t.Errorf("the counts (-want +got)\n%s", diff)
	}
	names := func(list []Difference) (letters string) {
		for _, d := range list {
			letters += d.Name[len(d.Name)-1:]
		}
		return letters
	}
	got := []string{names(c.OnlyOurs), names(c.OnlyOther), names(c.Both), names(c.NotRun), names(c.Different), names(c.Skipped), names(c.Again)}
	if diff := cmp.Diff([]string{"b", "c", "dj", "gh", "f", "e", "i"}, got); diff != "" {
		t.Errorf("the lists (-want +got)\n%s", diff)
	}
}

func TestProblems(t *testing.T) {
	ours, other := runs()
	known := []Row{{Spec: `sig-node\] d$`}, {Spec: `sig-apps\] a$`}, {Spec: "not selected"}}
	want := []string{
		"passes on upstream's binaries and not on ours: [sig-apps] b: ours",
		"did not run on ours: [sig-node] g",
		"did not run on either cluster: [sig-node] h",
		`ends as "skipped" on ours and as "passed" on upstream's: [sig-node] f: ours: no gate; upstream's: passed`,
		"fails on both clusters and is no known failure: [sig-node] j: ours: other; upstream's: another",
		`no longer fails on both clusters, remove it from the known failures: sig-apps\] a$`,
	}
	if diff := cmp.Diff(want, Compare(planned, ours, other).Problems(planned, known)); diff != "" {
		t.Errorf("the problems (-want +got)\n%s", diff)
	}
}

// TestCutRunIsAProblem has two runs that ended before the same spec's turn.
func TestCutRunIsAProblem(t *testing.T) {
	cut := Specs{"[sig-apps] a": {Status: Passed}}
	want := []string{"did not run on either cluster: [sig-apps] b"}
	if diff := cmp.Diff(want, Compare(planned[:2], cut, cut).Problems(planned[:2], nil)); diff != "" {
		t.Errorf("the problems (-want +got)\n%s", diff)
	}
	whole := Specs{"[sig-apps] a": {Status: Passed}, "[sig-apps] b": {Status: Passed}}
	if got := Compare(planned[:2], whole, cut).Problems(planned[:2], nil); len(got) != 1 || !strings.Contains(got[0], "on upstream's: [sig-apps] b") {
		t.Errorf("the problems are %q", got)
	}
	if got := Compare(planned[:2], whole, whole).Problems(planned[:2], nil); len(got) > 0 {
		t.Errorf("the problems of equal runs are %q", got)
	}
}

// TestMarkdown compares the page with the one in testdata.
func TestMarkdown(t *testing.T) {
	ours, other := runs()
	page := Page{
		Comparison: Compare(planned, ours, other), Ours: "v1.37.2+feature.1", Other: "v1.37.2", Date: "2026-11-30", Labels: "Conformance || NodeConformance", Focus: "sig-", Workers: 2,
		Left:    []LeftOut{{Why: "the kernel | is small", Specs: []string{"[sig-apps] x", "[sig-cli] y"}}},
		Missing: []string{"registry.k8s.io/e2e-test-images/perl:5.26"}, Known: []Row{{Spec: `sig-node\] d$`, Why: "of a reason"}},
	}
	var text strings.Builder
	if err := page.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("the page (-want +got)\n%s", diff)
	}
}
