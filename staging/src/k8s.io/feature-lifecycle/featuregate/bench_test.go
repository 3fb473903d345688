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

package featuregate

import (
	"testing"

	"k8s.io/component-base/featuregate"
)

// BenchmarkEnabled compares the layer with the gate it wraps, in one run: the
// names are what benchstat makes columns of (benchstat -col /gate).
func BenchmarkEnabled(b *testing.B) {
	for _, value := range []struct {
		name    string
		feature featuregate.Feature
	}{{"default", "Beta"}, {"explicit", "Alpha"}} {
		for _, gate := range []struct {
			name string
			gate featuregate.MutableVersionedFeatureGate
		}{{"upstream", upstream(b)}, {"layer", Wrap(upstream(b))}} {
			if err := gate.gate.Set("Alpha=true"); err != nil {
				b.Fatal(err)
			}
			b.Run("value="+value.name+"/callers=one/gate="+gate.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					gate.gate.Enabled(value.feature)
				}
			})
			b.Run("value="+value.name+"/callers=all/gate="+gate.name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						gate.gate.Enabled(value.feature)
					}
				})
			})
		}
	}
}
