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

// Package leftout skips tests that cannot run, and makes them visible: in "make test-all" nothing
// may be left out but what is called long, and what no machine of its kind could do (Note).
package leftout

import (
	"fmt"
	"os"
	"testing"
)

func required() bool { return os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" }

// Skip ends a test that lacks something. Where KUBE_FEATURES_REQUIRE_ALL is set,
// as in "make test-all", the test fails.
func Skip(t testing.TB, why string) {
	t.Helper()
	if required() {
		t.Fatalf("%s, and KUBE_FEATURES_REQUIRE_ALL forbids to leave the test out", why)
	}
	note(t, why)
	t.Skip(why)
}

// Part logs the part of a test that is skipped, since something is missing. Where
// KUBE_FEATURES_REQUIRE_ALL is set the test fails.
func Part(t testing.TB, why string) {
	t.Helper()
	if required() {
		t.Errorf("%s, and KUBE_FEATURES_REQUIRE_ALL forbids to leave this out", why)
		return
	}
	note(t, why)
	t.Log("Left out: " + why)
}

// Long ends a test that only "make test-release" runs, because it takes a real
// release, whatever is set.
func Long(t testing.TB) {
	t.Helper()
	const why = "there is no real release; \"make quick-release\" makes one, \"make test-release\" looks at it"
	if os.Getenv("RELEASE_TARS") == "" {
		t.Skip(why)
	}
}

// Note logs the part of a test that is skipped, or does in another
// way, and what installing something here cannot change: programs of another
// architecture, packages that mirrors have no more. It is no failure anywhere.
func Note(t testing.TB, what string) {
	t.Helper()
	note(t, what)
	t.Log("Left out: " + what)
}

// note adds a line to the file RELEASE_LEFT_OUT, which "make test-release" shows
// at its end.
func note(t testing.TB, why string) {
	t.Helper()
	name := os.Getenv("RELEASE_LEFT_OUT")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s: %s\n", t.Name(), why); err != nil {
		t.Fatal(err)
	}
}
