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
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

var hue = RemovedField{Resource: widgets, Path: "spec.lamps[*].hue", Number: 4, At: "1.37", Instead: "spec.lamps[*].color"}

// holder is storage whose objects hold the field until the API writes them.
type holder struct {
	*storage
	mu      sync.Mutex
	written map[string]bool
}

// hold stores objects with the field, and one without it. The answer of the API to a write
// is an error, or nil.
func hold(t *testing.T, answer func(name string) error, names ...string) (*holder, *wire, Clients) {
	t.Helper()
	h := &holder{written: map[string]bool{"other": true}}
	var served []*unstructured.Unstructured
	var stored []StoredObject
	for _, name := range append(names, "other") {
		o := widget(name, "x")
		served = append(served, o)
		stored = append(stored, StoredObject{Namespace: o.GetNamespace(), Name: name, UID: o.GetUID(), Revision: 1})
	}
	h.storage = store(stored...)
	h.holds = func(o StoredObject, f RemovedField) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return f == hue && !h.written[o.Name]
	}
	w := &wire{server: serve(served...)}
	w.before = func(_ context.Context, r request) error {
		if r.verb != "patch" {
			t.Errorf("the task does %s %s", r.verb, r.name)
		}
		if err := answer(r.name); err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.written[r.name] = true
		return nil
	}
	clients := w.clients()
	clients.Storage = h
	return h, w, clients
}

func answers(err error) func(string) error { return func(string) error { return err } }

// TestClearRemovedFieldRewritesHolders: those objects are written, and no others.
func TestClearRemovedFieldRewritesHolders(t *testing.T) {
	_, w, clients := hold(t, answers(nil), "a", "b")
	clearing := ClearRemovedField(hue)
	if err := clearing.Validate(); err != nil {
		t.Fatal(err)
	}
	found, err := clearing.Find(t.Context(), clients)
	namespace := w.requests()
	want := []v1alpha1.ResourceLeftovers{{Group: "example.com", Resource: "widgets", Field: hue.Path, Count: 2, Examples: []string{"ns/a", "ns/b"}}}
	if diff := cmp.Diff(want, found); err != nil || diff != "" || len(namespace) > 0 {
		t.Errorf("found (-want +got), %v, by the requests %v:\n%s", err, namespace, diff)
	}
	var last Progress
	attempt := Attempt{Report: func(p Progress) { last = p }}
	if err := clearing.Run(t.Context(), clients, attempt); err != nil {
		t.Fatal(err)
	}
	if writes := w.requests("patch"); len(writes) != 2 || last.Done != 2 || last.Total != 2 {
		t.Errorf("%d writes and progress %+v, want 2 of 2", len(writes), last)
	}
	if found, err := clearing.Find(t.Context(), clients); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v afterwards", found, err)
	}
	w.permitted(t, clearing)
}

// TestClearRemovedFieldWhenWritesFail: what is refused is named, and what changed or went
// meanwhile is for the next walk.
func TestClearRemovedFieldWhenWritesFail(t *testing.T) {
	resource := widgets.GroupResource()
	once := true
	for name, tc := range map[string]struct {
		answer  func(string) error
		blocked string
		failed  string
	}{
		"admission refuses": {answers(apierrors.NewForbidden(resource, "a", nil)), "may not be rewritten: ns/a: ", ""},
		"the server fails":  {answers(apierrors.NewInternalError(context.DeadlineExceeded)), "", "rewriting ns/a"},
		"it changed": {func(string) error {
			if once {
				once = false
				return apierrors.NewConflict(resource, "a", nil)
			}
			return nil
		}, "", ""},
		"it keeps changing":             {answers(apierrors.NewConflict(resource, "a", nil)), "a server older than 1.37 writes them", ""},
		"an old server answers for all": {answers(apierrors.NewGenericServerResponse(http.StatusTeapot, "patch", resource, "a", "", 0, true)), "", "rewriting ns/a"},
	} {
		_, _, clients := hold(t, tc.answer, "a")
		err := ClearRemovedField(hue).Run(t.Context(), clients, ignored)
		blocked, isBlocked := err.(*BlockedError)
		switch {
		case tc.blocked != "" && (!isBlocked || !strings.Contains(blocked.Message, tc.blocked)):
			t.Errorf("%s: %v, want it blocked: %s", name, err, tc.blocked)
		case tc.failed != "" && (isBlocked || err == nil || !strings.Contains(err.Error(), tc.failed)):
			t.Errorf("%s: %v, want an error: %s", name, err, tc.failed)
		case tc.blocked == "" && tc.failed == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClearRemovedFieldInNamespace: others' objects are neither found nor written.
func TestClearRemovedFieldInNamespace(t *testing.T) {
	h, w, clients := hold(t, answers(nil), "a")
	elsewhere := StoredObject{Namespace: "other", Name: "a", Key: "other/a"}
	h.objects[elsewhere.Key] = elsewhere
	clearing := ClearRemovedField(hue).InNamespace("ns")
	if found, err := clearing.Find(t.Context(), clients); err != nil || len(found) != 1 || found[0].Count != 1 {
		t.Errorf("found %v, %v; want one", found, err)
	}
	if err := clearing.Run(t.Context(), clients, ignored); err != nil {
		t.Error(err)
	}
	if writes := w.requests("patch"); len(writes) != 1 || writes[0].namespace != "ns" {
		t.Errorf("it wrote %v", writes)
	}
}

// TestClearRemovedFieldChecksBeforeWrites: a transition that is no longer wanted writes
// nothing.
func TestClearRemovedFieldChecksBeforeWrites(t *testing.T) {
	_, w, clients := hold(t, answers(nil), "a")
	attempt := ignored
	attempt.Check = func(context.Context) error { return context.Canceled }
	if err := ClearRemovedField(hue).Run(t.Context(), clients, attempt); err == nil || len(w.requests("patch")) > 0 {
		t.Errorf("%v, and %d writes", err, len(w.requests("patch")))
	}
}

// TestClearRemovedFieldWithoutStorage: what cannot be seen is neither nothing nor done.
func TestClearRemovedFieldWithoutStorage(t *testing.T) {
	clearing := ClearRemovedField(hue)
	if blocked := blockedBy(t, clearing, Clients{}, ignored); !strings.Contains(blocked.Message, "only kube-apiserver can reach etcd") {
		t.Errorf("it does not name kube-apiserver: %s", blocked.Message)
	}
	if found, err := clearing.Find(t.Context(), Clients{}); err == nil {
		t.Errorf("found %v without looking", found)
	}
}

// TestRemovedFieldDeclarations: what cannot be found in bytes is refused.
func TestRemovedFieldDeclarations(t *testing.T) {
	for says, change := range map[string]func(*RemovedField){
		"field path":                  func(f *RemovedField) { f.Path = "" },
		"[*] or {*}, and nothing":     func(f *RemovedField) { f.Path = "spec.lamps[name=x].hue" },
		"{*}, and nothing else":       func(f *RemovedField) { f.Path = "spec.lamps{x}.hue" },
		"its protobuf number is 0":    func(f *RemovedField) { f.Number = 0 },
		"the first minor version":     func(f *RemovedField) { f.At = "" },
		"the last part must name a f": func(f *RemovedField) { f.Path = "spec.lamps[*]" },
	} {
		f := hue
		change(&f)
		if err := ClearRemovedField(f).Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want it to say %q", f, err, says)
		}
	}
	if text := hue.String(); text != "1.37 does not have the field spec.lamps[*].hue of widgets.example.com and drops it without an error; spec.lamps[*].color took its place" {
		t.Error(text)
	}
	keys, selectors := hue.Keys()
	if diff := cmp.Diff([][]string{{"spec", "lamps", "hue"}, {"", "[*]", ""}}, [][]string{keys, selectors}); diff != "" {
		t.Error(diff)
	}
}
