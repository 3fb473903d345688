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

package feature

import (
	"strings"
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestPlanCountsEachObjectOnce covers two tasks that handle the same objects.
func TestPlanCountsEachObjectOnce(t *testing.T) {
	of := func(resource string, count int64, examples ...string) v1alpha1.PlannedTask {
		return v1alpha1.PlannedTask{Leftovers: []v1alpha1.ResourceLeftovers{{Group: "autoscaling", Resource: resource, Count: count, Examples: examples}}}
	}
	for name, tc := range map[string]struct {
		tasks       []v1alpha1.PlannedTask
		least, most int64
	}{
		"nothing is found":                   {},
		"one task names its objects":         {[]v1alpha1.PlannedTask{of("a", 2, "x", "y")}, 2, 2},
		"one task with more than it names":   {[]v1alpha1.PlannedTask{of("a", 20, "x", "y")}, 20, 20},
		"one object with both fields":        {[]v1alpha1.PlannedTask{of("a", 2, "x", "y"), of("a", 1, "x")}, 2, 2},
		"objects of two resources":           {[]v1alpha1.PlannedTask{of("a", 2, "x", "y"), of("b", 1, "x")}, 3, 3},
		"more objects than two tasks name":   {[]v1alpha1.PlannedTask{of("a", 20, "x", "y"), of("a", 7, "z")}, 20, 27},
		"few objects of which most differ":   {[]v1alpha1.PlannedTask{of("a", 3, "u", "v"), of("a", 3, "x", "y")}, 4, 6},
		"two tasks that name none of theirs": {[]v1alpha1.PlannedTask{of("a", 3), of("a", 3)}, 3, 6},
	} {
		if least, most := objectsOf(tc.tasks); least != tc.least || most != tc.most {
			t.Errorf("%s: got %d to %d, want %d to %d", name, least, most, tc.least, tc.most)
		}
	}
	plan := &v1alpha1.FeaturePlanStatus{Tasks: []v1alpha1.PlannedTask{of("a", 20, "x"), of("a", 7, "y")}}
	if want, got := "2 tasks, 20 to 27 objects", answerOf(plan); !strings.Contains(got, want) {
		t.Errorf("the answer is %q, want it to say %q", got, want)
	}
}
