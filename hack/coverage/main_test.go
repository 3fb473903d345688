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

package main

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// library is the module as this folder sees it.
var library = module{"k8s.io/feature-lifecycle", "../../staging/src/k8s.io/feature-lifecycle"}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want block
		ok   bool
		says string
	}{
		"a block that ran":     {line: "k8s.io/a/b.go:19.40,21.2 3 1", want: block{"k8s.io/a/b.go", 3, true}, ok: true},
		"one that did not":     {line: "k8s.io/a/b.go:19.40,21.2 3 0", want: block{"k8s.io/a/b.go", 3, false}, ok: true},
		"the first line":       {line: "mode: set"},
		"a line that is none":  {line: "FAIL", says: `"FAIL" is no line of a profile`},
		"a number that is not": {line: "k8s.io/a/b.go:19.40,21.2 x 0", says: "is no line of a profile"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := parse(tc.line)
			if (tc.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("unexpected error: %v, want %q", err, tc.says)
			}
			if ok != tc.ok || got != tc.want {
				t.Errorf("got %+v, %t, want %+v, %t", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestCountLeavesGeneratedFilesOut(t *testing.T) {
	const profile = `mode: set
k8s.io/feature-lifecycle/lifecycle/leader/leader.go:1.1,2.2 3 1
k8s.io/feature-lifecycle/lifecycle/leader/leader.go:3.1,4.2 1 0
k8s.io/feature-lifecycle/apis/features/v1alpha1/register.go:1.1,2.2 4 0
k8s.io/feature-lifecycle/apis/features/v1alpha1/zz_generated.deepcopy.go:1.1,2.2 1000 1
k8s.io/feature-lifecycle/client/clientset/versioned/clientset.go:1.1,2.2 50 0
`
	packages, err := library.count(strings.NewReader(profile))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, c := range packages {
		got[name] = c.row("x")
	}
	want := map[string]string{
		"k8s.io/feature-lifecycle/lifecycle/leader":       "| x | 4 | 75.0% |",
		"k8s.io/feature-lifecycle/apis/features/v1alpha1": "| x | 4 | 0.0% |",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected rows (-want +got):\n%s", diff)
	}
}

func TestCountRefusesWhatIsNotOfTheModule(t *testing.T) {
	for profile, says := range map[string]string{
		"k8s.io/other/a.go:1.1,2.2 1 1\n":                       "is not of that module",
		"k8s.io/feature-lifecycle/missing.go:1.1,2.2 1 1\n":     "no such file",
		"k8s.io/feature-lifecycle/doc.go:1.1,2.2 1 1\nbroken\n": "is no line of a profile",
	} {
		if _, err := library.count(strings.NewReader(profile)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", profile, err, says)
		}
	}
}
