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

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// TestTrials: a row has what was seen, or why nothing was, sorted by gates.
func TestTrials(t *testing.T) {
	got := trials(map[featuregate.Feature]catalog.Trial{
		"Lamps": {Writes: "light", Untried: "it is day", Pods: "glows"},
		"Bulbs": {Writes: "warmth", Seen: "it was warm", Pods: "cools"},
	})
	want := trialsHead + "| `Bulbs` | warmth | seen: it was warm | cools |\n| `Lamps` | light | not seen: it is day | glows |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}
