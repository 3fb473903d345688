//go:build linux

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

package featuregate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadResults(t *testing.T) {
	found := samples{}
	err := found.read(strings.NewReader(`goos: linux
cpu: Benchmarked
BenchmarkEnabled/value=default/callers=one/gate=layer-2         	 4520784	        14.80 ns/op	       0 B/op	       0 allocs/op
BenchmarkEnabled/value=default/callers=one/gate=layer         	 4520784	        15.5 ns/op	       8 B/op	       1 allocs/op
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := found.of("default", "one", "layer")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&sample{ns: []float64{14.8, 15.5}, allocations: []float64{0, 1}}, got, cmp.AllowUnexported(sample{})); diff != "" {
		t.Error(diff)
	}
	if _, err := found.of("default", "all", "layer"); err == nil {
		t.Error("what was not measured has samples")
	}
}

func TestOtherLinesAreErrors(t *testing.T) {
	for _, line := range []string{
		"BenchmarkOther-2 100 14.8 ns/op 0 allocs/op",
		"BenchmarkEnabled/value=default/callers=one/gate=layer-2 100 fast ns/op 0 allocs/op",
		"BenchmarkEnabled/value=default/callers=one/gate=layer-2 100 14.8 ns/op",
		"BenchmarkEnabled/value=default/callers=one/gate=layer-2 100 14.8",
		"BenchmarkEnabled/value=default/callers=one/gate=layer-2",
	} {
		if err := (samples{}).read(strings.NewReader(line)); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}
