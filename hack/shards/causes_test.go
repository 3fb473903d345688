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
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes-features/hack/testevents"
)

// read feeds events to results: output of tests, "" for the package, and what failed.
func read(t *testing.T, failed []string, output ...[2]string) *results {
	t.Helper()
	r := newResults(io.Discard, io.Discard)
	add := func(e testevents.Event) {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		r.addLine(string(line), "")
	}
	notBuilt := ""
	for _, o := range output {
		if compiler, ok := strings.CutPrefix(o[1], "# "); ok {
			notBuilt = "p [p.test]"
			add(testevents.Event{Action: "build-output", ImportPath: notBuilt, Output: compiler + "\n"})
			add(testevents.Event{Action: "build-fail", ImportPath: notBuilt})
			continue
		}
		add(testevents.Event{Action: "output", Package: "p", Test: o[0], Output: o[1] + "\n"})
	}
	for _, test := range failed {
		add(testevents.Event{Action: "fail", Package: "p", Test: test})
	}
	add(testevents.Event{Action: "pass", Package: "p", Test: "TestGood"})
	return r
}

func TestCauses(t *testing.T) {
	log := [][2]string{
		{"TestA", "=== RUN   TestA"},
		{"TestA", "    a_test.go:7: waiting for feature X: timed out"},
		{"TestA", "        seen: nothing"},
		{"TestA", "    framework.go:138: --- etcd runs, the end of its log:"},
		{"TestA", "        noise"},
		{"TestA", "    framework.go:144: --- kube-scheduler HAS ENDED, the end of its log:"},
	}
	for _, line := range strings.Split("1 2 3 4 5 6 7 8 9 10", " ") {
		log = append(log, [2]string{"TestA", "        log " + line})
	}
	log = append(log, [2]string{"TestA", "--- FAIL: TestA (300.00s)"}, [2]string{"", "FAIL"}, [2]string{"", "FAIL	p	301s"})
	ofA := `
=== WHY p.TestA FAILED
    a_test.go:7: waiting for feature X: timed out
        seen: nothing
    framework.go:144: --- kube-scheduler HAS ENDED, the end of its log:
        log 3
        log 4
        log 5
        log 6
        log 7
        log 8
        log 9
        log 10
`
	for name, tc := range map[string]struct {
		failed []string
		output [][2]string
		want   string
	}{
		"a test with logs": {[]string{"TestA", ""}, log, ofA},
		"a subtest": {[]string{"TestB", "TestB/c", ""}, [][2]string{
			{"TestB", "=== RUN   TestB"}, {"TestB/c", "    b_test.go:1: no"}, {"TestB", "--- FAIL: TestB"},
			{"TestGood", "    b_test.go:2: not this"},
		}, "\n=== WHY p.TestB/c FAILED\n    b_test.go:1: no\n"},
		"a package that does not build": {[]string{""}, [][2]string{{"", "# p/x.go:1:1: syntax error"}, {"", "FAIL	p [build failed]"}},
			"\n=== WHY p FAILED\np/x.go:1:1: syntax error\n"},
		"a long line": {[]string{"TestD"}, [][2]string{{"TestD", "    d_test.go:1: " + strings.Repeat("x", maxColumns)}},
			"\n=== WHY p.TestD FAILED\n    d_test.go:1: " + strings.Repeat("x", maxColumns-len("    d_test.go:1: ")) + " …\n"},
		"many lines": {[]string{"TestE"}, [][2]string{{"TestE", "    e_test.go:1: first" + strings.Repeat("\n        more", maxLines)}},
			"\n=== WHY p.TestE FAILED" + strings.Repeat("\n        more", maxLines) + "\n"},
		"a test that did not end": {[]string{""}, [][2]string{{"TestF", "panic: test timed out"}, {"TestGood", "    f_test.go:1: fine"}, {"", "FAIL	p	9s"}},
			"\n=== WHY p.TestF FAILED\npanic: test timed out\n"},
		"nothing": {nil, log[:1], ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			printCauses(read(t, tc.failed, tc.output...).failures(), &got)
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
