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

package reporters

import (
	"math"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/scale/measure"
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

func TestCarried(t *testing.T) {
	var outcomes []outcome
	for _, nodes := range []int{500, 5_000} {
		var o outcome
		o.nodes = nodes
		o.stored.Bytes = int64(2*nodes) * 2 * measure.MiB / 1000
		o.storm.Seconds = 10
		o.storm.Usage.CPU = time.Duration(nodes) * time.Millisecond
		outcomes = append(outcomes, o)
	}
	var r result.Result
	describeCarried(&r, outcomes)
	if len(r.Tables) != 1 {
		t.Fatalf("%d tables", len(r.Tables))
	}
	var found bool
	for _, row := range r.Tables[0].Rows {
		if row[0].String() != "etcd, reports (MiB)" {
			continue
		}
		found = true
		for i, want := range []float64{2, 0, 20, 60, 260} {
			if got, ok := row[i+1].Value(); !ok || math.Abs(got-want) > 1e-3 {
				t.Errorf("column %d is %v, want %v", i+1, got, want)
			}
		}
	}
	if !found {
		t.Error("what etcd stores is missing")
	}
	if without := r.Tables[0].Rows[1]; without[0].String() != "live heap of kube-apiserver, more than without (MiB)" || without[1].String() != "no line: one of the costs is not above 0" {
		t.Errorf("what cannot be carried is not said: %v", without)
	}
	var none result.Result
	if describeCarried(&none, outcomes[:1]); len(none.Tables) > 0 {
		t.Error("one size is carried to others")
	}
}
