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
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sideEffects is how the server answers a dry run that a webhook with side effects
// would see.
var sideEffects = apierrors.NewBadRequest(`admission webhook "w.example.com" does not support dry run`)

// TestAdmissionRefusalsForeseen checks that objects of each namespace are tried,
// whatever happens to the others, and that validation is left out.
func TestAdmissionRefusalsForeseen(t *testing.T) {
	answers := map[string]error{
		"denied": deny(http.StatusConflict), "denied-invalid": deny(http.StatusUnprocessableEntity), "forbidden": apierrors.NewForbidden(widgets.GroupResource(), "a", errors.New("no")),
		"untold": sideEffects, "invalid": apierrors.NewInvalid(widgetKind.GroupKind(), "a", nil), "fine": nil,
		"conflict": apierrors.NewConflict(widgets.GroupResource(), "a", nil), "gone": apierrors.NewNotFound(widgets.GroupResource(), "a"),
		"trouble": apierrors.NewTooManyRequests("busy", 1),
	}
	var objects []*unstructured.Unstructured
	for namespace := range answers {
		for _, name := range []string{"a", "b"} {
			o := widget(name, "x")
			o.SetNamespace(namespace)
			objects = append(objects, o)
		}
	}
	for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
		w := &wire{server: serve(objects...), before: func(_ context.Context, r request) error {
			if r.verb == "patch" || r.verb == "delete" {
				return answers[r.namespace]
			}
			return nil
		}}
		found, err := of.Obstacles(t.Context(), w.clients())
		if err != nil {
			t.Fatal(err)
		}
		held, unknown := strings.Join(found.Held, "\n"), strings.Join(found.Unknown, "\n")
		for text, want := range map[string]string{held: "6 objects of widgets.example.com refuse to ", unknown: "whether admission lets objects of widgets.example.com be changed: "} {
			if !strings.HasPrefix(text, want) {
				t.Errorf("%s: %q, want it to begin with %q", of.Name, text, want)
			}
		}
		if !strings.Contains(held, ", of 18 that were tried: denied-invalid/a: ") || !strings.Contains(held, "; denied/b: ") || !strings.Contains(held, "; forbidden/a: ") {
			t.Errorf("%s: held by %q", of.Name, held)
		}
		if !strings.Contains(unknown, "trouble/a: ") || !strings.Contains(unknown, "; untold/b: ") {
			t.Errorf("%s: not known is %q", of.Name, unknown)
		}
		if n := len(w.requests("patch", "delete")); n != len(objects) || found.Tried != "" {
			t.Errorf("%s: %d tries, want one for each of %d objects; it says %q", of.Name, n, len(objects), found.Tried)
		}
	}
}

// TestObjectsOfOneNamespaceTried checks that one that is refused is not the first, and
// that the plan states when not all are tried.
func TestObjectsOfOneNamespaceTried(t *testing.T) {
	for n, tried := range map[int]string{3: "", maxTried + 5: "admission was tried with 20 of 25 objects of widgets.example.com"} {
		var objects []*unstructured.Unstructured
		for i := range n {
			o := widget(fmt.Sprintf("w-%02d", i), "x")
			o.SetNamespace("one")
			objects = append(objects, o)
		}
		w := &wire{server: serve(objects...), before: func(_ context.Context, r request) error {
			if r.verb == "patch" && r.name == "w-02" {
				return deny(http.StatusUnprocessableEntity)
			}
			return nil
		}}
		found, err := ClearField(widgets, "spec.field").Obstacles(t.Context(), w.clients())
		if err != nil || len(found.Held) != 1 || !strings.Contains(found.Held[0], fmt.Sprintf("1 object of widgets.example.com refuses to have spec.field removed, of %d that were tried: one/w-02: ", min(n, maxTried))) || found.Tried != tried {
			t.Errorf("of %d objects: %+v, %v, want w-02 and %q", n, found, err, tried)
		}
	}
}

// TestPlanTriesFewObjects, and none that the task leaves alone.
func TestPlanTriesFewObjects(t *testing.T) {
	var objects []*unstructured.Unstructured
	for i := range 2 * maxTried {
		o := widget(fmt.Sprintf("w-%02d", i), []string{"", "x"}[i%2])
		o.SetNamespace(fmt.Sprintf("ns-%d", i))
		objects = append(objects, o)
	}
	w := &wire{server: serve(objects...)}
	found, err := ClearField(widgets, "spec.field").Obstacles(t.Context(), w.clients())
	if err != nil || len(found.Held)+len(found.Unknown) > 0 {
		t.Errorf("got %+v, %v, want nothing", found, err)
	}
	tried := w.requests("patch")
	if len(tried) != maxTried || slices.ContainsFunc(tried, func(r request) bool { return strings.HasSuffix(r.namespace, "0") }) {
		t.Errorf("%d were tried, want %d, all with the field: %v", len(tried), maxTried, tried)
	}
}

// TestUntriableObjectsUnknown checks a collection that is searched in storage, and that
// the API cannot list.
func TestUntriableObjectsUnknown(t *testing.T) {
	w := &wire{server: serve(), before: func(_ context.Context, r request) error {
		if r.verb == "list" {
			return apierrors.NewInternalError(errors.New("does not decode"))
		}
		return nil
	}}
	clients := w.clients()
	clients.Storage = store()
	found, err := ClearCollection(widgets.GroupResource()).Obstacles(t.Context(), clients)
	if want := "whether admission lets objects of widgets.example.com be deleted: "; err != nil || len(found.Held) > 0 || len(found.Unknown) != 1 || !strings.HasPrefix(found.Unknown[0], want) {
		t.Errorf("got %q, %v, want %q", found, err, want)
	}
}

// TestAdmissionRefusalsOfManifestsForeseen, also of objects that are not there, which
// finding them does not try.
func TestAdmissionRefusalsOfManifestsForeseen(t *testing.T) {
	w := applying(widget("b", "x"))
	w.before = func(_ context.Context, r request) error {
		if !slices.Contains([]string{"get", "list", "watch"}, r.verb) {
			return map[string]error{"a": deny(http.StatusForbidden), "b": sideEffects}[r.name]
		}
		return nil
	}
	for of, want := range map[string]struct {
		task          Task
		held, unknown string
	}{
		"Apply":  {Apply("x", []byte(twoWidgets)), "applying Widget ns/a: admission webhook", "whether admission permits applying Widget ns/b: "},
		"Remove": {Remove("x", []byte(twoWidgets)), "", "whether admission permits deleting Widget ns/b: "},
	} {
		if _, err := want.task.Find(t.Context(), w.clients()); err != nil {
			t.Errorf("%s: finding: %v", of, err)
		}
		found, err := want.task.Obstacles(t.Context(), w.clients())
		if held, unknown := strings.Join(found.Held, "\n"), strings.Join(found.Unknown, "\n"); err != nil || held == "" != (want.held == "") ||
			!strings.HasPrefix(held, want.held) || !strings.HasPrefix(unknown, want.unknown) {
			t.Errorf("%s: held by %q, not known is %q, %v", of, held, unknown, err)
		}
	}
}
