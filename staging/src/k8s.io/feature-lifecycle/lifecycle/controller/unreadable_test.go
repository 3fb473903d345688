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
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/utils/ptr"
)

// leftBehind is storage with objects that no server can decode.
type leftBehind struct {
	mu      sync.Mutex
	objects []task.StoredObject
	// lists is the number of pages that were read.
	lists int
	// fails has the error of each resource that cannot be read.
	fails map[string]error
}

// listed returns the number of pages that were read.
func (s *leftBehind) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *leftBehind) List(_ context.Context, resource schema.GroupResource, _ int64, _ string) ([]task.StoredObject, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if err := s.fails[resource.Resource]; err != nil {
		return nil, "", err
	}
	return append([]task.StoredObject(nil), s.objects...), "", nil
}

// ListHolding finds nothing.
func (s *leftBehind) ListHolding(context.Context, task.RemovedField, int64, string) ([]task.StoredObject, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return nil, "", nil
}

func (s *leftBehind) Delete(_ context.Context, _ schema.GroupResource, _ task.StoredObject) error {
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
		before := s.listed()
		w.pass(4*findPeriod + time.Minute)
		if searches := s.listed() - before; searches != 4 {
			t.Errorf("it was searched %d times in 4 periods", searches)
		}
	}, declared)
}

// TestRemovedFieldIsNotSearchedAgainWithoutOlderServers: a walk through all that is stored
// is repeated only when a server was there that may have stored the field.
func TestRemovedFieldIsNotSearchedAgainWithoutOlderServers(t *testing.T) {
	hue := task.RemovedField{Resource: schema.GroupVersionResource{Version: "v1", Resource: "lamps"}, Path: "spec.hue", Number: 4, At: "1.36"}
	for _, on := range []bool{false, true} {
		inWorld(t, func(w *world) {
			s := &leftBehind{}
			w.tasks = task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: lastingMapper{meta.NewDefaultRESTMapper(nil)}, Storage: s}
			expect := func(what string, want int) {
				t.Helper()
				before := s.listed()
				w.pass(4*findPeriod + time.Minute)
				if searches := s.listed() - before; searches != want {
					t.Errorf("on: %t; %s: it was searched %d times in 4 periods, want %d", on, what, searches, want)
				}
			}
			// It emulates the version of the servers that it replaces.
			w.binary = "v1.36.3+feature.1"
			w.emulate("1.35", []v1alpha1.ReportedFeature{gate("A", on)}, "s1")
			w.serve("s1")
			w.until(time.Minute, "searched", func() bool { return s.listed() > 0 })
			expect("all servers are new", 0)

			unreported := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "identities", Name: "s9"},
				Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Now())), LeaseDurationSeconds: ptr.To[int32](3600)},
			}
			w.put(leasesResource, unreported, unreported.Namespace)
			expect("a server that does not report came and went", 1)
			expect("it is gone", 0)

			w.binary = "v1.35.9"
			stop := w.lease("server", "s0")
			w.emulate("1.35", nil, "s0")
			expect("an older server is there", 4)
			stop()
			w.removeReport("server.s0")
			expect("it went", 1)
			expect("it is gone for long", 0)

			// s1 is replaced in its place, and back.
			w.emulate("1.35", []v1alpha1.ReportedFeature{gate("A", on)}, "s1")
			w.pass(2 * noticePeriod)
			w.binary = "v1.36.3"
			w.emulate("1.35", []v1alpha1.ReportedFeature{gate("A", on)}, "s1")
			expect("it was an older binary for a moment", 1)
		}, lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{lifecycle.ClearRemovedField(hue)}})
	}
}

// TestRemovedFieldThatIsFoundIsSearchedAgain: so is one whose search fails, and what is
// found of one task shows nothing of others.
func TestRemovedFieldThatIsFoundIsSearchedAgain(t *testing.T) {
	servers := []tracker.Server{{ID: "s1", Reported: true, Binary: "v1.37.2"}}
	absent := newAbsentFields()
	absent.servers = func() []tracker.Server { return servers }
	hue := task.RemovedField{Resource: schema.GroupVersionResource{Version: "v1", Resource: "lamps"}, Path: "spec.hue", Number: 4, At: "1.37"}
	shade := hue
	shade.Path, shade.Number = "spec.shade", 5
	searches := 0
	var found []v1alpha1.ResourceLeftovers
	var failure error
	during := func() {}
	of := func(field task.RemovedField) lifecycle.Tasks {
		t := lifecycle.ClearRemovedField(field)
		t.Find = func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
			searches++
			during()
			return found, failure
		}
		return lifecycle.Tasks{t}
	}
	expect := func(what string, tasks lifecycle.Tasks, want int) {
		t.Helper()
		before := searches
		got, err := absent.remember(tasks)[0].Find(t.Context(), task.Clients{})
		if searches-before != want || want > 0 && (len(got) != len(found) || !errors.Is(err, failure)) || want == 0 && (len(got) > 0 || err != nil) {
			t.Errorf("%s: searched %d times, want %d; found %v, %v", what, searches-before, want, got, err)
		}
	}
	found = []v1alpha1.ResourceLeftovers{{Resource: "lamps", Count: 1}}
	expect("it was not searched before", of(hue), 1)
	expect("it was found", of(hue), 1)
	found, failure = nil, errors.New("no etcd")
	expect("it was found again", of(hue), 1)
	expect("the search failed", of(hue), 1)
	failure = nil
	expect("the search failed again", of(hue), 1)
	expect("it is absent", of(hue), 0)
	expect("another field", of(shade), 1)
	during = func() {
		// An older one for a moment, during the walk alone.
		servers = append(servers, tracker.Server{ID: "s0", Reported: true, Binary: "v1.36.9"})
		absent.observe()
		servers = servers[:1]
		absent.observe()
	}
	absent.walks = map[removedTask]*removedWalk{}
	expect("nothing is remembered", of(hue), 1)
	expect("an older server was there during the walk", of(hue), 1)
	during = func() { servers = servers[:1] }
	servers = append(servers, tracker.Server{ID: "s0"})
	expect("and during that, too", of(hue), 1)
	expect("one that did not report was there when it began", of(hue), 1)
	during = func() {}
	expect("it is absent again", of(hue), 0)
	servers = nil
	expect("no server is known", of(hue), 1)
	servers = []tracker.Server{{ID: "s1", Reported: true, Binary: "v1.38.0-alpha.1"}}
	expect("it still is not remembered", of(hue), 1)
	expect("a newer one is", of(hue), 0)
	servers[0].Binary = "unknown"
	expect("its version cannot be read", of(hue), 1)
}

// TestFailedSearchOfEnabledFeatureIsReported: what servers cannot search may be what they
// cannot read. What they found elsewhere is named all the same.
func TestFailedSearchOfEnabledFeatureIsReported(t *testing.T) {
	lamps, hues := schema.GroupResource{Resource: "lamps"}, schema.GroupResource{Resource: "hues"}
	tasks := lifecycle.Tasks{lifecycle.ClearUnreadable(lamps), lifecycle.ClearUnreadable(hues), lifecycle.ClearCollection(schema.GroupResource{Resource: "shades"})}
	declared := lifecycle.Feature{Name: "A", OnDisable: tasks}
	inWorld(t, func(w *world) {
		s := &leftBehind{fails: map[string]error{"lamps": errors.New("no key"), "hues": errors.New("no key")}}
		w.tasks = task.Clients{Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: lastingMapper{meta.NewDefaultRESTMapper(nil)}, Storage: s}
		w.recorder = record.NewFakeRecorder(100)
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		w.serve("s1")
		w.until(time.Minute, "reported as not examined", func() bool {
			clean := w.condition("A", v1alpha1.ConditionClean)
			return clean.Reason == v1alpha1.ReasonNotExamined && strings.Contains(clean.Message, "ClearUnreadable/lamps: no key")
		})
		s.mu.Lock()
		delete(s.fails, "hues")
		s.objects = []task.StoredObject{{Name: "old", Key: "/registry/hues/old", Unreadable: context.DeadlineExceeded}}
		s.mu.Unlock()
		w.until(findPeriod, "found behind what fails", func() bool {
			clean := w.condition("A", v1alpha1.ConditionClean)
			return clean.Reason == v1alpha1.ReasonUnreadable && strings.Contains(clean.Message, "1 hues (old)") && strings.Contains(clean.Message, "ClearUnreadable/lamps: no key") &&
				strings.Contains(clean.Message, "also removes everything else that it stores, so save that, too: delete every object of shades, and what they own")
		})
		s.mu.Lock()
		s.fails, s.objects = nil, nil
		s.mu.Unlock()
		w.until(findPeriod, "read again", func() bool { return w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonInUse })
	}, declared)
}
