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

package fleet

import (
	"math"
	"strings"
	"testing"

	"k8s.io/kubernetes-features/test/scale/result"
)

func TestFit(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	l, ok := fit([]float64{1_000, 10_000, 30_000}, []float64{7, 25, 65})
	if !ok {
		t.Fatal("three sizes have no line")
	}
	near("fixed", l.fixed, 5)
	near("slope", l.slope, 0.002)
	near("off", l.off, 0)
	near("at 130,000", l.at(130_000), 265)

	// A small size weighs as much as a large one.
	l, ok = fit([]float64{1_000, 10_000, 30_000}, []float64{2, 10, 30})
	if !ok || l.off < 0.03 || l.off > 0.05 || l.fixed < 1 || l.fixed > 1.1 {
		t.Errorf("%+v, %t", l, ok)
	}
	for what, test := range map[string]struct{ processes, costs []float64 }{
		"one size":         {[]float64{1_000}, []float64{1}},
		"twice one size":   {[]float64{1_000, 1_000}, []float64{1, 2}},
		"nothing measured": {nil, nil},
		"no cost":          {[]float64{1_000, 10_000}, []float64{0, 1}},
	} {
		if l, ok := fit(test.processes, test.costs); ok {
			t.Errorf("%s has the line %+v", what, l)
		}
	}
}

func TestCarry(t *testing.T) {
	var r result.Result
	Carry(&r, []int{1_000, 10_000}, Cost{"stored", []float64{2, 20}}, Cost{"nothing", []float64{0, 1}})
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 2 {
		t.Fatalf("%+v", r.Tables)
	}
	for i, want := range []float64{2, 0, 20, 60, 260} {
		if got, ok := r.Tables[0].Rows[0][i+1].Value(); !ok || math.Abs(got-want) > 1e-3 {
			t.Errorf("column %d is %v, want %v", i+1, got, want)
		}
	}
	if without := r.Tables[0].Rows[1]; without[0].String() != "nothing" || without[1].String() != "no line: one of the costs is not above 0" {
		t.Errorf("what cannot be carried is not said: %v", without)
	}
	if note := r.Tables[0].Note; !strings.Contains(note, "with 1,000 and 10,000 processes") {
		t.Errorf("the note is %q", note)
	}
	var none result.Result
	if Carry(&none, []int{1_000}, Cost{"stored", []float64{2}}); len(none.Tables) > 0 {
		t.Error("one size is carried to others")
	}
}
