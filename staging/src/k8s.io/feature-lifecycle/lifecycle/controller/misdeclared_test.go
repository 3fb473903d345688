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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/openapi/openapitest"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
)

// lastingMapper knows the same after Reset.
type lastingMapper struct{ *meta.DefaultRESTMapper }

func (lastingMapper) Reset() {}

// TestMisdeclarationReportedAtOnce, while its feature is on, off and on its
// way, and taken back once the server has it.
func TestMisdeclarationReportedAtOnce(t *testing.T) {
	lamps := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}
	misspelled := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamp"}
	const want = "ClearField/lamp.example.com/spec.hue: the server has no resource lamp.example.com"
	declared := lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{lifecycle.ClearField(misspelled, "spec.hue")}}
	inWorld(t, func(w *world) {
		known := meta.NewDefaultRESTMapper(nil)
		known.Add(lamps.GroupVersion().WithKind("Lamp"), meta.RESTScopeNamespace)
		objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{misspelled: "LampList", lamps: "LampList"})
		w.tasks = task.Clients{Dynamic: objects, Mapper: lastingMapper{known}, OpenAPI: openapitest.NewFakeClient()}
		w.recorder = record.NewFakeRecorder(100)
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		s1 := w.serve("s1")
		said := func() bool {
			clean := w.condition("A", v1alpha1.ConditionClean)
			return clean.Reason == v1alpha1.ReasonMisdeclared && strings.Contains(clean.Message, want)
		}
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		w.until(2*firstLull, "said of a feature that is on", said)
		plan := w.plan(s1, "A", v1alpha1.FeaturePlanSpec{Enabled: ptr.To(false)})
		if unknown := strings.Join(plan.Unknown, "\n"); !strings.Contains(unknown, want) {
			t.Errorf("the plan does not know %q, want %q", unknown, want)
		}
		if events := w.events(); strings.Count(events, "Warning Misdeclared") != 1 || !strings.Contains(events, want) {
			t.Errorf("events say %q, want %q once", events, want)
		}
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", false)}, "s1")
		w.until(time.Minute, "off", func() bool {
			if !said() {
				t.Fatalf("in state %s Clean is %+v", w.state("A"), w.condition("A", v1alpha1.ConditionClean))
			}
			return w.state("A") == v1alpha1.StateOff
		})
		w.pass(2 * findRetry)
		if !said() {
			t.Errorf("of a feature that is off Clean is %+v", w.condition("A", v1alpha1.ConditionClean))
		}
		if _, err := s1.controller.Clean(t.Context(), w.stored("A")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("cleaning: %v, want a conflict that says %q", err, want)
		}
		if events := w.events(); strings.Contains(events, "Misdeclared") {
			t.Errorf("it is said again: %q", events)
		}
		// Its definition is installed, under the name that is declared.
		known.AddSpecific(misspelled.GroupVersion().WithKind("Lamp"), misspelled, misspelled, meta.RESTScopeNamespace)
		w.until(findPeriod, "taken back", func() bool { return w.condition("A", v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft })
	}, declared)
}

// TestInspectionOfEnabledFeatureRunsOnce: nothing is asked at rest.
func TestInspectionOfEnabledFeatureRunsOnce(t *testing.T) {
	lamps := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}
	inWorld(t, func(w *world) {
		known := meta.NewDefaultRESTMapper(nil)
		known.Add(lamps.GroupVersion().WithKind("Lamp"), meta.RESTScopeNamespace)
		objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{lamps: "LampList"})
		w.tasks = task.Clients{Dynamic: objects, Mapper: lastingMapper{known}, OpenAPI: openapitest.NewFakeClient()}
		w.emulate("1.36", []v1alpha1.ReportedFeature{gate("A", true)}, "s1")
		w.serve("s1")
		w.until(time.Minute, "adopted", func() bool { return w.rests("A", "1.36") })
		w.pass(time.Minute)
		inspections := func() (n int) {
			for _, action := range objects.Actions() {
				if action.GetResource().Resource == "customresourcedefinitions" {
					n++
				}
			}
			return n
		}
		w.pass(4 * findPeriod)
		if n := inspections(); n != 1 {
			t.Errorf("the definition was read %d times, want once", n)
		}
	}, lifecycle.Feature{Name: "A", OnDisable: lifecycle.Tasks{lifecycle.ClearField(lamps, "spec.hue")}})
}

// events are those since the last call, one a line.
func (w *world) events() string {
	var all []string
	for {
		select {
		case event := <-w.recorder.Events:
			all = append(all, event)
		default:
			return strings.Join(all, "\n")
		}
	}
}
