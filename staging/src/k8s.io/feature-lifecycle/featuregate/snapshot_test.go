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
	"testing"

	"pgregory.net/rapid"

	"k8s.io/component-base/featuregate"
)

// TestSnapshot against a map, with names that are alike and empty ones.
func TestSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching("[AB]{0,12}"), func(s string) string { return s }).Draw(t, "names")
		known := map[featuregate.Feature]bool{}
		s := newSnapshot(len(names))
		for _, name := range names {
			v := &value{key: featuregate.Feature(name), enabled: rapid.Bool().Draw(t, name)}
			known[v.key] = v.enabled
			s.add(v)
		}
		for _, key := range append(names, rapid.SliceOf(rapid.StringMatching("[ABC]{0,12}")).Draw(t, "queried")...) {
			want, ok := known[featuregate.Feature(key)]
			got := s.find(featuregate.Feature(key))
			if (got != nil) != ok || (got != nil && (got.enabled != want || string(got.key) != key)) {
				t.Fatalf("%q: got %+v, want %t, %t", key, got, want, ok)
			}
		}
	})
	var none *snapshot
	if none.find("A") != nil {
		t.Error("no snapshot knows a feature")
	}
}
