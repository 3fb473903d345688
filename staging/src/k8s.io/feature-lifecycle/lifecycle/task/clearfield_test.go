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
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// widget has the field if it has a value.
func widget(name, value string) *unstructured.Unstructured {
	spec := map[string]any{"other": "stays"}
	if value != "" {
		spec["field"] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "ns", "name": name, "uid": "uid-" + name, "resourceVersion": "7"},
		"spec":       spec,
	}}
}

// server is a fake server with objects. It counts writes.
type server struct {
	*dynamicfake.FakeDynamicClient
}

func serve(objects ...*unstructured.Unstructured) *server {
	var list []runtime.Object
	for _, o := range objects {
		list = append(list, o)
	}
	return &server{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList"}, list...)}
}

func (s *server) clients() Clients { return Clients{Dynamic: s} }

// patched names the objects that were written, sorted.
func (s *server) patched() []string {
	var names []string
	for _, a := range s.Actions() {
		if patch, ok := a.(clienttesting.PatchAction); ok {
			names = append(names, patch.GetName())
		}
	}
	slices.Sort(names)
	return names
}

func (s *server) spec(t *testing.T, name string) any {
	t.Helper()
	object, err := s.Tracker().Get(widgets, "ns", name)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured).Object["spec"]
}

// ignored is an attempt whose progress is not read.
var ignored = Attempt{Report: func(Progress) {}}

func TestClearFieldWritesOnlyObjectsWithField(t *testing.T) {
	s := serve(widget("a", "x"), widget("b", ""), widget("c", "y"))
	var mu sync.Mutex
	var last Progress
	err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), Attempt{Report: func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Done > last.Done {
			last = p
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, s.patched()); diff != "" {
		t.Errorf("unexpected writes (-want +got):\n%s", diff)
	}
	for _, name := range []string{"a", "b", "c"} {
		if diff := cmp.Diff(map[string]any{"other": "stays"}, s.spec(t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if last.Done != 3 || last.Total != 3 || !strings.HasPrefix(last.Message, "2 objects changed") {
		t.Errorf("progress ended with %+v, want 3 of 3 read and 2 changed", last)
	}
}

func TestClearFieldNamesReadVersion(t *testing.T) {
	s := serve(widget("a", "x"))
	if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored); err != nil {
		t.Fatal(err)
	}
	for _, a := range s.Actions() {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok {
			continue
		}
		var got []map[string]any
		if err := json.Unmarshal(patch.GetPatch(), &got); err != nil {
			t.Fatal(err)
		}
		want := []map[string]any{
			{"op": "replace", "path": "/metadata/uid", "value": "uid-a"},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
			{"op": "remove", "path": "/spec/field"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("unexpected patch (-want +got):\n%s", diff)
		}
	}
}

func TestClearFieldRetriesConflicts(t *testing.T) {
	s := serve(widget("a", "x"))
	conflicts := 2
	s.PrependReactor("patch", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts--
		return conflicts >= 0, nil, apierrors.NewConflict(widgets.GroupResource(), "a", errors.New("changed"))
	})
	if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored); err != nil {
		t.Fatal(err)
	}
	if conflicts > 0 {
		t.Errorf("%d conflicts were not met", conflicts)
	}
}

func TestClearFieldNamesRefusals(t *testing.T) {
	s := serve(widget("a", "x"), widget("b", "x"), widget("c", "x"))
	s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		denied := a.(clienttesting.PatchAction).GetName() == "b"
		return denied, nil, apierrors.NewForbidden(widgets.GroupResource(), "b", errors.New("a webhook says no"))
	})
	err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored)
	var blocked *BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("got %v, want it blocked", err)
	}
	for _, text := range []string{"1 object", "ns/b", "a webhook says no"} {
		if !strings.Contains(blocked.Message, text) {
			t.Errorf("the message does not say %q: %s", text, blocked.Message)
		}
	}
	// The others did not wait for it.
	for _, name := range []string{"a", "c"} {
		if diff := cmp.Diff(map[string]any{"other": "stays"}, s.spec(t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestClearFieldNamesSameObjectsEachTime: which of many refusals come first differs
// from attempt to attempt.
func TestClearFieldNamesSameObjectsEachTime(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 40 {
		objects = append(objects, widget(fmt.Sprintf("w%02d", i), "x"))
	}
	s := serve(objects...)
	s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(widgets.GroupResource(), a.(clienttesting.PatchAction).GetName(), errors.New("no"))
	})
	for range 20 {
		err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored)
		var blocked *BlockedError
		if !errors.As(err, &blocked) {
			t.Fatalf("got %v, want it blocked", err)
		}
		for i := range 7 {
			name := fmt.Sprintf("ns/w%02d", i)
			if want := i < maxExamples; strings.Contains(blocked.Message, name) != want {
				t.Fatalf("%s is named: %t, want %t: %s", name, !want, want, blocked.Message)
			}
		}
	}
}

// TestRefusesOnlyPermanentErrors checks that transient errors are retried soon, and
// those that need an external action rarely.
func TestRefusesOnlyPermanentErrors(t *testing.T) {
	resource := widgets.GroupResource()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a webhook says no":            {apierrors.NewForbidden(resource, "a", errors.New("no")), true},
		"the object is not valid":      {apierrors.NewInvalid(schema.GroupKind{}, "a", nil), true},
		"the patch does not fit":       {apierrors.NewBadRequest("no"), true},
		"a webhook cannot be reached":  {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"the store has trouble":        {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), false},
		"the server is busy":           {apierrors.NewTooManyRequests("busy", 1), false},
		"the server is down":           {errors.New("connection refused"), false},
		"another client keeps writing": {apierrors.NewConflict(resource, "a", errors.New("changed")), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(widget("a", "x"))
			s.PrependReactor("patch", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored)
			var blocked *BlockedError
			if err == nil || errors.As(err, &blocked) != tc.want || !strings.Contains(err.Error(), "ns/a") {
				t.Errorf("got %v (%T), want blocked: %t", err, err, tc.want)
			}
		})
	}
}

// TestClearFieldRemovedMeanwhile checks a patch that removes what another client has
// just removed: it is invalid, and no refusal.
func TestClearFieldRemovedMeanwhile(t *testing.T) {
	s := serve(widget("a", "x"))
	s.PrependReactor("patch", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		removed := widget("a", "")
		removed.SetResourceVersion("8")
		if err := s.Tracker().Update(widgets, removed, "ns"); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewInvalid(schema.GroupKind{}, "a", nil)
	})
	if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored); err != nil {
		t.Error(err)
	}
	if n := len(s.patched()); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// TestCollectionNotListable checks permanent and transient errors.
func TestCollectionNotListable(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"it is forbidden":  {apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no")), true},
		"it is not served": {apierrors.NewNotFound(widgets.GroupResource(), ""), true},
		"the page expired": {apierrors.NewResourceExpired("too old"), false},
		"etcd is down":     {apierrors.NewInternalError(errors.New("etcd")), false},
	} {
		s := serve()
		s.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
		err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored)
		var blocked *BlockedError
		if err == nil || errors.As(err, &blocked) != tc.want || !strings.Contains(err.Error(), "widgets.example.com") {
			t.Errorf("%s: got %v, want blocked: %t", name, err, tc.want)
		}
	}
}

func TestClearFieldBlockedByRecurringField(t *testing.T) {
	s := serve(widget("a", "x"))
	s.PrependReactor("patch", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, widget("a", "x"), nil
	})
	var blocked *BlockedError
	if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), ignored); !errors.As(err, &blocked) || !strings.Contains(blocked.Message, "what writes it") {
		t.Errorf("got %v, want it blocked", err)
	}
}

func TestFindersCountAndChangeNothing(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 7 {
		objects = append(objects, widget(fmt.Sprintf("w%d", i), "x"))
	}
	s := serve(append(objects, widget("without", ""))...)
	found, err := ClearField(widgets, "spec.field").Find(t.Context(), s.clients())
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.ResourceLeftovers{{Group: "example.com", Resource: "widgets", Field: "spec.field", Count: 7,
		Examples: []string{"ns/w0", "ns/w1", "ns/w2", "ns/w3", "ns/w4"}}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("unexpected leftovers (-want +got):\n%s", diff)
	}
	for _, a := range s.Actions() {
		if a.GetVerb() != "list" && !a.Matches("get", crds.Resource) {
			t.Errorf("the finder did %s", a.GetVerb())
		}
	}
	found, err = ClearField(widgets, "spec.nothing").Find(t.Context(), s.clients())
	if err != nil || len(found) != 0 {
		t.Errorf("found %v, %v; want nothing", found, err)
	}
}

func TestClearFieldReadsPageByPage(t *testing.T) {
	s := serve()
	pages := 0
	s.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "WidgetList"}}
		pages++
		if pages == 1 {
			list.SetContinue("more")
		}
		list.Items = append(list.Items, *widget(fmt.Sprintf("w%d", pages), "x"))
		return true, list, nil
	})
	found, err := ClearField(widgets, "spec.field").Find(t.Context(), s.clients())
	if err != nil || found[0].Count != 2 || pages != 2 {
		t.Errorf("%d pages, found %v, %v; want two pages with one each", pages, found, err)
	}
}

// TestClearFieldOfStatus writes through the subresource and removes elements of
// a list from the last on.
func TestClearFieldOfStatus(t *testing.T) {
	w := widget("a", "")
	w.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Unused", "n": int64(1)},
		map[string]any{"type": "Ready"},
		map[string]any{"type": "Unused", "n": int64(2)},
	}}
	s := serve(w)
	clear := ClearField(widgets, "status.conditions[type=Unused]")
	if err := clear.Run(t.Context(), s.clients(), ignored); err != nil {
		t.Fatal(err)
	}
	for _, a := range s.Actions() {
		if a.GetVerb() == "patch" && a.GetSubresource() != "status" {
			t.Errorf("it writes subresource %q", a.GetSubresource())
		}
	}
	object, err := s.Tracker().Get(widgets, "ns", "a")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"conditions": []any{map[string]any{"type": "Ready"}}}
	if diff := cmp.Diff(want, object.(*unstructured.Unstructured).Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	permitted := false
	for _, rule := range clear.Rules {
		permitted = permitted || slices.Contains(rule.Resources, "widgets/status")
	}
	if !permitted {
		t.Errorf("its rules do not permit it: %+v", clear.Rules)
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		task Task
		says string
	}{
		"what a constructor makes": {ClearField(widgets, "spec.field"), ""},
		"a path that is none":      {ClearField(widgets, "spec..field"), "spec..field"},
		"the zero value":           {Task{}, "without a name"},
		"the server flow's own":    {Task{Name: v1alpha1.TaskWaitForUses}, "leave it out"},
		"without Find":             {Task{Name: "X"}, "both Find and Run"},
	} {
		err := tc.task.Validate()
		if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: got %v, want it to say %q", name, err, tc.says)
		}
	}
}
