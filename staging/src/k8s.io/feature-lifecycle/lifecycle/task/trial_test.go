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

package task

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// dryRuns returns whether each write was a dry run.
func (s *server) dryRuns() []bool {
	var all []bool
	for _, a := range s.Actions() {
		switch action := a.(type) {
		case clienttesting.PatchActionImpl:
			all = append(all, slices.Equal(action.PatchOptions.DryRun, dryRun))
		case clienttesting.DeleteActionImpl:
			all = append(all, slices.Equal(action.DeleteOptions.DryRun, dryRun))
		}
	}
	return all
}

// TestTryCountsEachObject: what the server answers to the dry run of each object decides,
// validation among it.
func TestTryCountsEachObject(t *testing.T) {
	answers := map[string]error{
		"denied": deny(http.StatusConflict), "forbidden": apierrors.NewForbidden(widgets.GroupResource(), "a", errors.New("no")),
		"invalid": apierrors.NewInvalid(widgetKind.GroupKind(), "a", nil), "untold": sideEffects, "fine": nil,
		"conflict": apierrors.NewConflict(widgets.GroupResource(), "a", nil), "gone": apierrors.NewNotFound(widgets.GroupResource(), "a"),
		"trouble": apierrors.NewTooManyRequests("busy", 1),
	}
	var objects []*unstructured.Unstructured
	for namespace := range answers {
		o := widget("a", "x")
		o.SetNamespace(namespace)
		objects = append(objects, o)
	}
	for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
		w := &wire{server: serve(objects...), size: 3, before: func(_ context.Context, r request) error {
			if r.verb == "patch" || r.verb == "delete" {
				return answers[r.namespace]
			}
			return nil
		}}
		var reported Progress
		trial, err := of.Try(t.Context(), w.clients(), Attempt{Report: func(p Progress) { reported = p }})
		if err != nil {
			t.Fatal(err)
		}
		if trial.Objects != 8 || trial.Ready != 3 || trial.Refused != 3 || trial.Untried != 2 || !trial.Held() || reported.Done != 3 || reported.Total != 8 {
			t.Errorf("%s: %+v, reported %+v", of.Name, trial, reported)
		}
		if text := strings.Join(trial.RefusedExamples, "\n"); !strings.HasPrefix(text, "denied/a: ") || !strings.Contains(text, "\nforbidden/a: ") || !strings.Contains(text, "\ninvalid/a: ") {
			t.Errorf("%s: refused %q", of.Name, text)
		}
		if runs := w.dryRuns(); len(runs) == 0 || slices.Contains(runs, false) {
			t.Errorf("%s: a write was no dry run: %v", of.Name, runs)
		}
		w.permitted(t, of)
	}
}

// changing lets a server answer patches with an object that it also changed otherwise.
func changing(change func(o *unstructured.Unstructured), objects ...*unstructured.Unstructured) *wire {
	s := serve(objects...)
	s.PrependReactor("patch", "widgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		handled, object, err := clienttesting.ObjectReaction(s.Tracker())(action)
		if err == nil {
			change(object.(*unstructured.Unstructured))
		}
		return handled, object, err
	})
	return &wire{server: s}
}

// TestSideEffectsAreRefused: a server that changes more than the field is noticed before
// anything is stored, and again by the first write.
func TestSideEffectsAreRefused(t *testing.T) {
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, value, fields...) }
	}
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		says   string
	}{
		"another field":       {set("other", "spec", "other"), "the server changes /spec/other with it"},
		"a label":             {set("x", "metadata", "labels", "a/b"), "the server changes /metadata/labels with it"},
		"the field again":     {set("default", "spec", "field"), "the server puts spec.field in again"},
		"what follows":        {set(int64(2), "metadata", "generation"), ""},
		"an observed version": {set(int64(2), "status", "observedGeneration"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := ClearField(widgets, "spec.field")
			trial, err := of.Try(t.Context(), changing(tc.change, widget("a", "x")).clients(), Attempt{Report: func(Progress) {}})
			if err != nil || (trial.Refused == 1) != (tc.says != "") || !strings.Contains(strings.Join(trial.RefusedExamples, ""), tc.says) {
				t.Errorf("%+v, %v, want %q", trial, err, tc.says)
			}
			err = of.Run(t.Context(), changing(tc.change, widget("a", "x")).clients(), Attempt{StopAtFirst: true, Report: func(Progress) {}})
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), "ns/a: "+tc.says)) {
				t.Errorf("running it: %v, want %q", err, tc.says)
			}
		})
	}
}

// TestStopAtFirst: nothing behind the page with the first object that refuses is written.
func TestStopAtFirst(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 30 {
		objects = append(objects, widget(fmt.Sprintf("w-%02d", i), "x"))
	}
	for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
		for _, stop := range []bool{true, false} {
			w := &wire{server: serve(objects...), size: 5, before: func(_ context.Context, r request) error {
				if (r.verb == "patch" || r.verb == "delete") && r.name == "w-07" {
					return deny(http.StatusForbidden)
				}
				return nil
			}}
			err := of.Run(t.Context(), w.clients(), Attempt{StopAtFirst: stop, Report: func(Progress) {}})
			if err == nil || !strings.Contains(err.Error(), "ns/w-07: ") {
				t.Errorf("%s, stopping %t: %v", of.Name, stop, err)
			}
			beyond := slices.ContainsFunc(w.requests("patch", "delete"), func(r request) bool { return r.name >= "w-10" })
			if beyond == stop {
				t.Errorf("%s, stopping %t: objects behind the page were written: %t", of.Name, stop, beyond)
			}
		}
	}
}

// TestStopAtFirstWithinAPage: of the page with the object that refuses, no writes begin after
// the refusal.
func TestStopAtFirstWithinAPage(t *testing.T) {
	for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
		synctest.Test(t, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for i := range 3 * clearWorkers {
				objects = append(objects, widget(fmt.Sprintf("w-%02d", i), "x"))
			}
			// The writes of a page begin in any order, so the first that does is refused.
			var refused atomic.Pointer[string]
			w := &wire{server: serve(objects...), size: len(objects), before: func(_ context.Context, r request) error {
				if r.verb != "patch" && r.verb != "delete" {
					return nil
				}
				if refused.CompareAndSwap(nil, &r.name) {
					return deny(http.StatusForbidden)
				}
				// The others are under way until the refusal is known.
				<-time.After(time.Second)
				return nil
			}}
			err := of.Run(t.Context(), w.clients(), Attempt{StopAtFirst: true, Report: func(Progress) {}})
			if name := refused.Load(); name == nil || err == nil || !strings.Contains(err.Error(), "ns/"+*name+": ") {
				t.Errorf("%s: %v", of.Name, err)
			}
			if n := len(w.requests("patch", "delete")); n > fewWriters {
				t.Errorf("%s: %d writes began, want at most the %d that are under way at first", of.Name, n, fewWriters)
			}
		})
	}
}

// TestFindObjectsCountsOnce counts an object in which several tasks find something once,
// and returns what fails beside what was found.
func TestFindObjectsCountsOnce(t *testing.T) {
	both := widget("both", "x")
	_ = unstructured.SetNestedField(both.Object, "y", "spec", "second")
	second := widget("second", "")
	_ = unstructured.SetNestedField(second.Object, "y", "spec", "second")
	w := &wire{server: serve(both, second, widget("first", "x"), widget("none", ""))}
	failure := errors.New("no")
	found, problems := FindObjects(t.Context(), w.clients(), []Task{
		ClearField(widgets, "spec.field"), WaitForNone(widgets, "x", "spec.second"),
		Func(Own{Name: "x", Fields: []Field{{Resource: widgets.GroupResource()}, {Resource: widgets.GroupResource(), Path: "a"}},
			Find: func(context.Context, Clients) ([]v1alpha1.ResourceLeftovers, error) { return nil, failure }}),
	})
	want := []v1alpha1.ResourceLeftovers{{Group: widgets.Group, Resource: widgets.Resource, Count: 3, Examples: []string{"ns/both", "ns/first", "ns/second"}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if len(problems) != 1 || !errors.Is(problems[0].Err, failure) || len(problems[0].Resources) != 1 {
		t.Errorf("problems are %+v", problems)
	}
	if lists := w.requests("list"); len(lists) != 1 {
		t.Errorf("the collection was read %d times", len(lists))
	}
	limited, _ := FindObjects(t.Context(), w.clients(), []Task{ClearField(widgets, "spec.field").InNamespace(metav1.NamespaceDefault)})
	if len(limited) != 0 {
		t.Errorf("in another namespace are %+v", limited)
	}
}
