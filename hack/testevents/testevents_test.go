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

package testevents

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOutcomes reads what the go command prints about tests that end in different ways.
func TestOutcomes(t *testing.T) {
	o := NewOutcomes()
	for _, line := range []string{
		`{"Action":"start","Package":"p"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestA"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"pass","Package":"p","Test":"TestC/sub"}`,
		`{"Action":"output","Package":"p","Test":"TestD","Output":"panic: out of order\n"}`,
		`{"Action":"fail","Package":"p"}`,
		`{"ImportPath":"q [q.test]","Action":"build-output","Output":"q.go:1:1: syntax error\n"}`,
		`{"ImportPath":"q [q.test]","Action":"build-fail"}`,
		`{"Action":"output","Package":"r","Output":"FAIL\tr [build failed]\n"}`,
		`{"Action":"fail","Package":"r","FailedBuild":"q [q.test]"}`,
	} {
		e, err := Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		o.Add(e)
	}
	if diff := cmp.Diff([]string{"TestA", "TestB", "TestC/sub", "TestD"}, o.Tests("p")); diff != "" {
		t.Errorf("unexpected tests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Test]bool{{"p", "TestA"}: true, {"p", "TestB"}: true, {"p", "TestC/sub"}: true, {"p", ""}: true, {"r", ""}: true}, o.Ended); diff != "" {
		t.Errorf("unexpectedly ended (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Test]bool{{"p", "TestA"}: true, {"p", ""}: true, {"q", ""}: true, {"r", ""}: true}, o.Failed); diff != "" {
		t.Errorf("unexpectedly failed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Test]string{{"r", ""}: "q"}, o.NotBuilt); diff != "" {
		t.Errorf("unexpectedly not built (-want +got):\n%s", diff)
	}
	for test, want := range map[Test]string{
		{"p", "TestA"}: "=== RUN   TestA\n    a_test.go:1: no\n", {"p", "TestB"}: "", {"q", ""}: "q.go:1:1: syntax error\n",
	} {
		if got := o.Printed(test); got != want {
			t.Errorf("%v printed %q, want %q", test, got, want)
		}
	}
}

// TestLinesThatAreNoEvents are errors of the go command and what JSON has besides objects.
func TestLinesThatAreNoEvents(t *testing.T) {
	for _, line := range []string{"", "go: cannot find main module", "null", "7", `{"Action":`, "[]"} {
		if e, err := Parse([]byte(line)); err == nil {
			t.Errorf("%q is the event %+v", line, e)
		}
	}
}
