/*
Copyright 2026 The Kubernetes Authors.

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

// Package leftout skips tests that cannot run, and sees to it that nobody
// overlooks them: in CI nothing may be left out but what is called long.
package leftout

import (
	"fmt"
	"os"
	"testing"
)

// Skip ends a test that lacks something. Where KUBE_FEATURES_REQUIRE_ALL is set,
// as in CI, the test fails.
func Skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("KUBE_FEATURES_REQUIRE_ALL") != "" {
		t.Fatalf("%s, and KUBE_FEATURES_REQUIRE_ALL forbids to leave the test out", why)
	}
	note(t, why)
	t.Skip(why)
}

// Long ends a test that only "make test-release" runs, because it takes a real
// release, whatever is set.
func Long(t *testing.T) {
	t.Helper()
	const why = "there is no real release; \"make quick-release\" makes one, \"make test-release\" looks at it"
	if os.Getenv("RELEASE_TARS") == "" {
		t.Skip(why)
	}
}

// Note says in the log what a test leaves out of what it does.
func Note(t *testing.T, what string) {
	t.Helper()
	note(t, what)
	t.Log("Left out: " + what)
}

// note adds a line to the file RELEASE_LEFT_OUT, which "make test-release" shows
// at its end.
func note(t *testing.T, why string) {
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
