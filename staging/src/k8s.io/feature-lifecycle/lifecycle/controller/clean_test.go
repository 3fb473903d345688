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

package controller

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestCleanMessageMatchesTasks: ClearA removes, ClearB waits for people. The condition says
// which is which, and a clean-up is refused where it could only wait.
func TestCleanMessageMatchesTasks(t *testing.T) {
	l := newLeftovers()
	declared := l.declare("A")
	declared.OnDisable[1].Waits = true
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		s1 := w.serve("s1")
		says := func() string { return w.condition("A", v1alpha1.ConditionClean).Message }
		w.until(time.Minute, "leftovers", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonLeftovers
		})
		if got := says(); !strings.Contains(got, "to remove them; ") || !strings.HasSuffix(got, "nothing may remove that from live objects, and the clean-up waits for it: delete or replace them") {
			t.Errorf("of both it says %q", got)
		}
		left := func(task string, count int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.left[task] = count
		}
		// The one that can be removed goes by other means: the condition does not know it.
		left("ClearA", 0)
		_, err := s1.controller.Clean(t.Context(), w.stored("A"))
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "delete or replace them: task ClearB waits until 1 object of widgets is changed or deleted") {
			t.Errorf("a clean-up that could only wait: %v", err)
		}
		// The request made it look.
		w.until(time.Minute, "found again", func() bool {
			return strings.HasSuffix(says(), "; nothing may remove that from live objects: delete or replace them")
		})
		left("ClearB", 0)
		if _, err := s1.controller.Clean(t.Context(), w.stored("A")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "nothing is left") {
			t.Errorf("a clean-up of nothing: %v", err)
		}
		w.until(time.Minute, "clean", func() bool { return w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft })
		if ran := l.did(); len(ran) != 0 {
			t.Errorf("%v ran", ran)
		}
	}, declared)
}
