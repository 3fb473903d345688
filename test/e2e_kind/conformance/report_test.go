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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// report has one case of each kind, in the form that e2e.test writes.
const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6"><testsuite name="Kubernetes e2e suite">
<testcase name="[SynchronizedBeforeSuite]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-apps] Deployment rolls over [Conformance]" status="passed" time="2.5"></testcase>
<testcase name="[It] [sig-node] Pods fail [NodeConformance]" status="failed" time="3"><failure message="" type="failed">[FAILED] timed out&#xA;waiting for | the pod&#xA;In [It] at: pods.go:7 @ 11/30/26</failure></testcase>
<testcase name="[It] [sig-node] Pods panic" status="panicked" time="1"><error message="nil map" type="panicked">[PANICKED] Test Panicked</error></testcase>
<testcase name="[It] [sig-node] Pods need Windows" status="skipped" time="0"><skipped message="skipped - only on Windows"></skipped></testcase>
<testcase name="[It] [sig-node] Pods of versions [kubelet: [&gt;=1.36]]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-cli] not selected" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>`

func read(t *testing.T) Report {
	t.Helper()
	got, err := ReadJUnit(strings.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestReadJUnit(t *testing.T) {
	want := Report{Specs: Specs{
		"[sig-apps] Deployment rolls over [Conformance]":  {Status: Passed, Seconds: 2.5},
		"[sig-node] Pods fail [NodeConformance]":          {Status: Failed, Seconds: 3, Message: "timed out waiting for | the pod"},
		"[sig-node] Pods panic":                           {Status: Failed, Seconds: 1, Message: "nil map"},
		"[sig-node] Pods need Windows":                    {Status: Skipped, Message: "skipped - only on Windows"},
		"[sig-node] Pods of versions [kubelet: [>=1.36]]": {Status: Passed, Seconds: 1},
	}, PassedOver: []string{"[sig-cli] not selected"}}
	if diff := cmp.Diff(want, read(t)); diff != "" {
		t.Errorf("the specs (-want +got)\n%s", diff)
	}
	const rollsOver = `<testcase name="[It] [sig-apps] Deployment rolls over [Conformance]" status="passed" time="2.5"></testcase>`
	for text, complaint := range map[string]string{
		"no XML": "JUnit",
		strings.Replace(report, `Suite]" status="passed" time="1">`, `Suite]" status="failed" time="1"><failure message="no nodes"></failure>`, 1): "no nodes",
		strings.Replace(report, rollsOver, rollsOver+rollsOver, 1):                                                                                 "two specs",
		"<testsuites></testsuites>": "no spec that ran",
	} {
		if _, err := ReadJUnit(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("got the error %v, want one with %q", err, complaint)
		}
	}
}

// second is ginkgo's report of specs, of which two ran twice.
const second = `[{"SuitePath": "e2e", "SpecReports": [
{"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite", "LeafNodeText": "", "NumAttempts": 0},
{"ContainerHierarchyTexts": ["[sig-apps] Deployment"], "LeafNodeType": "It", "LeafNodeText": "rolls over [Conformance]", "NumAttempts": 2, "State": "passed",
 "AdditionalFailures": [{"State": "failed", "Failure": {"Message": "Failure recorded during attempt 1:\nno\nPod"}}]},
{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeType": "It", "LeafNodeText": "panic", "NumAttempts": 1, "State": "panicked"},
{"ContainerHierarchyTexts": ["[sig-node]", "Pods"], "LeafNodeType": "It", "LeafNodeText": "of versions", "NumAttempts": 2, "State": "passed"}]}]`

func TestReadAttempts(t *testing.T) {
	specs := read(t).Specs
	if err := ReadAttempts(strings.NewReader(second), specs); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, s := range specs {
		if s.FirstAttempt != "" {
			got[name] = s.FirstAttempt
		}
	}
	want := map[string]string{"[sig-apps] Deployment rolls over [Conformance]": "no Pod", "[sig-node] Pods of versions [kubelet: [>=1.36]]": "no message"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what failed first (-want +got)\n%s", diff)
	}
	delete(specs, "[sig-apps] Deployment rolls over [Conformance]")
	for text, complaint := range map[string]string{"no JSON": "ginkgo's report", second: "lacks: rolls over"} {
		if err := ReadAttempts(strings.NewReader(text), specs); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("got the error %v, want one with %q", err, complaint)
		}
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	if got := oneLine(strings.Repeat("é", maxMessage)); len(got) > maxMessage+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}

func TestSpecsOfTablesAreLeftOut(t *testing.T) {
	selected := []string{"[sig-node] c", "[sig-node] PrivilegedPod b", "[sig-node] PrivilegedPod a", "[sig-cli] Update Demo"}
	const demo = "registry.k8s.io/e2e-test-images/nautilus:1.8"
	for _, test := range []struct {
		place   Place
		planned []string
		left    [][]string
		known   int
	}{
		{Place{DummyDevices: true}, []string{"[sig-cli] Update Demo", "[sig-node] PrivilegedPod a", "[sig-node] PrivilegedPod b", "[sig-node] c"}, nil, 0},
		{Place{}, []string{"[sig-cli] Update Demo", "[sig-node] c"}, [][]string{{"[sig-node] PrivilegedPod a", "[sig-node] PrivilegedPod b"}}, 0},
		{Place{Missing: []string{demo}, DummyDevices: true}, []string{"[sig-node] PrivilegedPod a", "[sig-node] PrivilegedPod b", "[sig-node] c"}, [][]string{{"[sig-cli] Update Demo"}}, 1},
		{Place{Missing: []string{"registry.k8s.io/other:1"}, DummyDevices: true}, []string{"[sig-cli] Update Demo", "[sig-node] PrivilegedPod a", "[sig-node] PrivilegedPod b", "[sig-node] c"}, nil, 1},
	} {
		planned, left := leaveOut(selected, counting(unable, test.place))
		var specs [][]string
		for _, l := range left {
			specs = append(specs, l.Specs)
			if l.Why == "" {
				t.Errorf("%q are left out without a reason", l.Specs)
			}
		}
		if diff := cmp.Diff(test.planned, planned); diff != "" {
			t.Errorf("%+v: the specs that run (-want +got)\n%s", test.place, diff)
		}
		if diff := cmp.Diff(test.left, specs); diff != "" {
			t.Errorf("%+v: the specs that are left out (-want +got)\n%s", test.place, diff)
		}
		if known := counting(knownFailures, test.place); len(known) != test.known {
			t.Errorf("%+v: %d failures are known, want %d", test.place, len(known), test.known)
		}
	}
	rows := []Row{{Spec: "Update D.mo"}, {Spec: "removed"}}
	if got := outdated(rows, selected); !slices.Equal(got, []string{"removed"}) {
		t.Errorf("the rows %q are out of date", got)
	}
}

// TestRowsAreDocumented holds both tables against the page that lists them.
func TestRowsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Concat(unable, knownFailures) {
		if !strings.Contains(string(page), r.Spec) {
			t.Errorf("docs/kind.md does not name the specs of %q", r.Spec)
		}
	}
}
