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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
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
		"admission refuses": {answers(apierrors.NewForbidden(resource, "a", nil)), "1 object of widgets.example.com may not be written, which would drop spec.lamps[*].hue: ns/a: ", ""},
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
		var blocked *BlockedError
		isBlocked := errors.As(err, &blocked)
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

// TestRefusedObjectDoesNotKeepOthersFromBeingRewritten: neither those of its batch nor
// those of later ones, and another attempt follows once it may be written.
func TestRefusedObjectDoesNotKeepOthersFromBeingRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range storedBatch + 5 {
			names = append(names, fmt.Sprintf("w%03d", i))
		}
		var refusing atomic.Bool
		refusing.Store(true)
		refused := []string{"w000", "w001", names[storedBatch]}
		_, w, clients := hold(t, func(name string) error {
			if refusing.Load() && slices.Contains(refused, name) {
				return apierrors.NewForbidden(widgets.GroupResource(), name, errors.New("not yours"))
			}
			return nil
		}, names...)
		var p progresses
		blocked := blockedBy(t, ClearRemovedField(hue), clients, p.attempt(Progress{}))
		for _, says := range []string{"3 objects of widgets.example.com may not be written", "ns/w000: ", "ns/w100: ", "not yours", "let admission and permissions accept", "or delete them"} {
			if !strings.Contains(blocked.Message, says) {
				t.Errorf("it does not say %q: %s", says, blocked.Message)
			}
		}
		if last := p.last(); last.Done != storedBatch+2 || last.Total != storedBatch+5 {
			t.Errorf("progress ended with %+v, want all but three", last)
		}
		if n := len(w.requests("patch")); n != len(names) {
			t.Errorf("%d writes, want each object once", n)
		}
		if found, err := ClearRemovedField(hue).Find(t.Context(), clients); err != nil || len(found) != 1 || found[0].Count != 3 {
			t.Errorf("found %v, %v; want the refused ones", found, err)
		}
		done := stillBlocked(t, blocked)
		refusing.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := ClearRemovedField(hue).Run(t.Context(), clients, ignored); err != nil {
			t.Error(err)
		}
		w.permitted(t, ClearRemovedField(hue))
	})
}

// TestObjectTheAPIDoesNotFind: it is done with once it is gone from storage, too.
func TestObjectTheAPIDoesNotFind(t *testing.T) {
	for name, gone := range map[string]bool{"it is gone": true, "it is stored": false} {
		var h *holder
		h, _, clients := hold(t, func(name string) error {
			if gone {
				if err := h.Delete(t.Context(), widgets.GroupResource(), StoredObject{Key: "ns/" + name}); err != nil {
					return err
				}
			}
			return apierrors.NewNotFound(widgets.GroupResource(), name)
		}, "a")
		var p progresses
		err := ClearRemovedField(hue).Run(t.Context(), clients, p.attempt(Progress{}))
		if last := p.last(); last.Done != 0 {
			t.Errorf("%s: progress %+v counts what was not written", name, last)
		}
		var blocked *BlockedError
		switch {
		case gone && err != nil:
			t.Errorf("%s: %v", name, err)
		case !gone && (!errors.As(err, &blocked) || !strings.Contains(blocked.Message, "the API does not find them: ns/a; let kube-apiserver itself serve widgets.example.com")):
			t.Errorf("%s: %v, want it to name the object and what to do", name, err)
		}
	}
}

// TestRewritingThroughServedVersions: any will do, and without one nothing is done, which
// is not an older server's fault.
func TestRewritingThroughServedVersions(t *testing.T) {
	other := widgets
	other.Version = "v1beta1"
	_, w, clients := hold(t, answers(nil), "a")
	clients.Mapper = mapperOf(other.GroupVersion().WithKind("Widget"))
	var through []schema.GroupVersionResource
	clients.Dynamic = recording{w, func(resource schema.GroupVersionResource) { through = append(through, resource) }}
	if err := ClearRemovedField(hue).Run(t.Context(), clients, ignored); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]schema.GroupVersionResource{other}, through); diff != "" {
		t.Errorf("written through (-want +got):\n%s", diff)
	}
	synctest.Test(t, func(t *testing.T) {
		_, w, clients := hold(t, answers(nil), "a")
		served := mapperOf()
		clients.Mapper = served
		blocked := blockedBy(t, ClearRemovedField(hue), clients, ignored)
		if !strings.Contains(blocked.Message, "1 object of widgets.example.com is stored with spec.lamps[*].hue, and no version of it is served through which to rewrite them: serve it again (--runtime-config=example.com/v1=true") {
			t.Errorf("it does not name the cause and what to do: %s", blocked.Message)
		}
		if n := len(w.requests()); n > 0 {
			t.Errorf("%d requests", n)
		}
		clients.ClearedBy = func(schema.GroupResource) string { return "feature Lamps, which clears it" }
		if blocked := blockedBy(t, ClearRemovedField(hue), clients, ignored); !strings.HasSuffix(blocked.Message, "rewrite them: it waits for feature Lamps, which clears it") {
			t.Errorf("it does not name the feature that clears the collection: %s", blocked.Message)
		}
		done := stillBlocked(t, blocked)
		served.add(widgetKind)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h, _, clients := hold(t, answers(nil), "a")
		clients.Mapper = mapperOf()
		blocked := blockedBy(t, ClearRemovedField(hue), clients, ignored)
		if err := h.Delete(t.Context(), widgets.GroupResource(), StoredObject{Key: "ns/a"}); err != nil {
			t.Fatal(err)
		}
		if err := blocked.Until(t.Context()); err != nil {
			t.Errorf("nothing is stored any more: %v", err)
		}
		if err := ClearRemovedField(hue).Run(t.Context(), clients, ignored); err != nil {
			t.Errorf("nothing is stored, and it needs the API: %v", err)
		}
	})
}

// recording notes which resources are used.
type recording struct {
	*wire
	note func(schema.GroupVersionResource)
}

func (r recording) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	r.note(resource)
	return r.wire.Resource(resource)
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
