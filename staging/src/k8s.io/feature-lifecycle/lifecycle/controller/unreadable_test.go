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
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// leftBehind is storage with objects that no server can decode.
type leftBehind struct {
	mu      sync.Mutex
	objects []task.StoredObject
	lists   int
}

func (s *leftBehind) List(context.Context, schema.GroupResource, int64, string) ([]task.StoredObject, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return append([]task.StoredObject(nil), s.objects...), "", nil
}

// ListHolding finds nothing.
func (s *leftBehind) ListHolding(context.Context, task.RemovedField, int64, string) ([]task.StoredObject, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return nil, "", nil
}

func (s *leftBehind) Delete(_ context.Context, _ schema.GroupResource, object task.StoredObject) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects = nil
	return nil
}

// TestUncheckedMoveIsReportedUntilTurnedOff: servers that were replaced without a check
// name what they cannot read while the feature is on, and turning it off removes that.
func TestUncheckedMoveIsReportedUntilTurnedOff(t *testing.T) {
	lamps := schema.GroupResource{Resource: "lamps"}
	declared := lifecycle.Feature{
		Name: "A", OnEnable: lifecycle.Tasks{lifecycle.ClearUnreadable(lamps)}, OnDisable: lifecycle.Tasks{lifecycle.ClearUnreadable(lamps)},
	}
	inWorld(t, func(w *world) {
		s := &leftBehind{objects: []task.StoredObject{{Name: "old", Key: "/registry/lamps/old", Unreadable: context.DeadlineExceeded}}}
		w.tasks = task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: lastingMapper{meta.NewDefaultRESTMapper(nil)}, Storage: s}
		w.recorder = record.NewFakeRecorder(100)
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		w.until(2*firstLull, "reported of a feature that is on", func() bool {
			clean := w.condition("A", v1alpha1.ConditionClean)
			return clean.Reason == v1alpha1.ReasonUnreadable && strings.Contains(clean.Message, "1 lamps (old): no server of this version can decode it")
		})
		if events := w.events(); strings.Count(events, "Warning Unreadable") != 1 {
			t.Errorf("events say %q, want Unreadable once", events)
		}
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", false)}, "s1")
		w.until(10*time.Minute, "off and clean", func() bool {
			return w.state("A") == v1alpha1.StateOff && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
		})
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		w.until(10*time.Minute, "on, and nothing is reported", func() bool {
			return w.state("A") == v1alpha1.StateOn && w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonInUse
		})
		before := s.lists
		w.pass(4*findPeriod + time.Minute)
		if searches := s.lists - before; searches < 3 || searches > 6 {
			t.Errorf("it was searched %d times in 4 periods", searches)
		}
	}, declared)
}
