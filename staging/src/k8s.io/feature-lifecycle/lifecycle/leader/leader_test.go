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

package leader

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestNoLeaderWithoutServers(t *testing.T) {
	if got := Of("A", nil); got != "" {
		t.Errorf("Of(A, nil) = %q, want none", got)
	}
}

func servers(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.StringMatching(`apiserver-[a-z0-9]{4}`), 1, 7, rapid.ID[string]).Draw(t, "servers")
}

func TestLeaderDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := servers(t)
		feature := rapid.String().Draw(t, "feature")
		shuffled := rapid.Permutation(servers).Draw(t, "shuffled")
		if a, b := Of(feature, servers), Of(feature, shuffled); a != b {
			t.Fatalf("%v elects %s, %v elects %s", servers, a, shuffled, b)
		}
	})
}

func TestRemovedServerMovesOnlyItsOwnFeatures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := servers(t)
		gone := rapid.SampledFrom(servers).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return s == gone })
		for i := range 50 {
			feature := fmt.Sprintf("Feature%d", i)
			before, after := Of(feature, servers), Of(feature, rest)
			if before != gone && before != after {
				t.Fatalf("%s moved from %s to %s although %s left", feature, before, after, gone)
			}
		}
	})
}

func TestFeaturesSpreadOverServers(t *testing.T) {
	servers := []string{"apiserver-a", "apiserver-b", "apiserver-c"}
	led := map[string]int{}
	for i := range 240 {
		led[Of(fmt.Sprintf("Feature%d", i), servers)]++
	}
	for _, server := range servers {
		// 80 is the fair share; 50 is four standard deviations below it.
		if led[server] < 50 {
			t.Errorf("%s leads %d of 240 features: %v", server, led[server], led)
		}
	}
}
