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
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// edited is what is stored of widgets, which the server serves, too.
type edited struct {
	*wire
	// in is the version in which the fake server keeps the objects.
	in schema.GroupVersionResource
	// pageSize is the number of objects that a page is read from.
	pageSize int
	// refuse, if not nil, returns the answer to the edit of an object, nil if it is written.
	refuse func(name string) error
	// unfit, if not nil, is why no object can be edited, and unedited returns why a
	// collection cannot be.
	unfit    error
	unedited func(FieldEdit) error

	mu sync.Mutex
	// what was asked for, and from where pages were read.
	what  FieldEdit
	pages []string
	// searches are the numbers of those that each walk was for.
	searches []int
	// wrote are the names of the objects that were written.
	wrote []string
}

func storeWidgets(objects ...*unstructured.Unstructured) *edited {
	return &edited{wire: &wire{server: serve(objects...)}, in: widgets, pageSize: 4}
}

// storeElsewhere stores widgets in v1, and serves them in v2 alone, in which objects have
// the same fields if hasField is true.
func storeElsewhere(hasField bool, objects ...*unstructured.Unstructured) (*edited, Clients) {
	e := &edited{wire: servedElsewhere(objects...), in: v2, pageSize: 4}
	clients := e.clients()
	clients.Mapper = mapperOf(v2.GroupVersion().WithKind("Widget"))
	clients.HasField = func(resource schema.GroupVersionResource, _ string) bool { return hasField && resource == v2 }
	return e, clients
}

func (e *edited) clients() Clients {
	clients := e.wire.clients()
	clients.Storage, clients.Editor = store(), e
	return clients
}

func (e *edited) Edits(_ context.Context, what FieldEdit) (FieldEdits, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.what = what
	if e.unedited != nil {
		if err := e.unedited(what); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// objects are those of the server, in the order of their names.
func (e *edited) objects(ctx context.Context) ([]unstructured.Unstructured, error) {
	list, err := e.server.Resource(e.in).Namespace("ns").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list.Items, nil
}

func (e *edited) Page(ctx context.Context, from string) (EditPage, error) {
	e.mu.Lock()
	e.pages = append(e.pages, from)
	e.mu.Unlock()
	if e.unfit != nil {
		return EditPage{}, e.unfit
	}
	items, err := e.objects(ctx)
	if err != nil {
		return EditPage{}, err
	}
	items = slices.DeleteFunc(items, func(o unstructured.Unstructured) bool { return o.GetName() <= from })
	var page EditPage
	read := items[:min(e.pageSize, len(items))]
	for _, item := range read {
		if edit := e.edit(item); edit != nil {
			page.Edits = append(page.Edits, *edit)
		}
	}
	page.Objects, page.Remaining = int64(len(read)), int64(len(items)-len(read))
	if page.Remaining > 0 {
		page.Next = read[len(read)-1].GetName()
	}
	return page, nil
}

func (e *edited) Again(ctx context.Context, key string) (*Edit, error) {
	object, err := e.server.Resource(e.in).Namespace("ns").Get(ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.edit(*object), nil
}

// Search finds nothing through the API.
func (e *edited) Search(ctx context.Context, _ schema.GroupVersionResource, namespace string, searches []FieldSearch, found func(search int, object FoundObject)) (read int64, err error) {
	e.mu.Lock()
	e.searches = append(e.searches, len(searches))
	e.mu.Unlock()
	if e.unfit != nil {
		return 0, e.unfit
	}
	items, err := e.objects(ctx)
	if err != nil {
		return 0, err
	}
	for _, item := range items {
		if namespace != "" && namespace != item.GetNamespace() {
			continue
		}
		read++
		for i, search := range searches {
			if search.matches(item) {
				found(i, foundWidget{item})
			}
		}
	}
	return read, nil
}

// matches is a naive search.
func (s FieldSearch) matches(item unstructured.Unstructured) bool {
	if s.Uncontrolled && metav1.GetControllerOf(&item) != nil {
		return false
	}
	return slices.ContainsFunc(s.Fields, func(field SearchedField) bool {
		matches, err := field.In(item.Object)
		return err == nil && matches
	})
}

type foundWidget struct{ unstructured.Unstructured }

func (f foundWidget) Namespace() string { return f.GetNamespace() }
func (f foundWidget) Name() string      { return f.GetName() }
func (f foundWidget) UID() types.UID    { return f.GetUID() }

func (e *edited) Probe(context.Context) (time.Duration, error) { return time.Millisecond, nil }

// edit is the one of an object, nil if it does not have the field.
func (e *edited) edit(object unstructured.Unstructured) *Edit {
	if _, has, _ := unstructured.NestedString(object.Object, "spec", "field"); !has {
		return nil
	}
	name := object.GetName()
	return &Edit{Namespace: "ns", Name: name, Key: name, Write: func(ctx context.Context) error {
		if e.refuse != nil {
			if err := e.refuse(name); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		after := object.DeepCopy()
		unstructured.RemoveNestedField(after.Object, "spec", "field")
		e.mu.Lock()
		defer e.mu.Unlock()
		e.wrote = append(e.wrote, name)
		return e.Tracker().Update(e.in, after, "ns")
	}}
}

// left are the names of the objects that have the field.
func (e *edited) left(t *testing.T) []string {
	t.Helper()
	items, err := e.objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range items {
		if e.edit(item) != nil {
			names = append(names, item.GetName())
		}
	}
	return names
}

func TestFieldsAreClearedInStorage(t *testing.T) {
	e := storeWidgets(append(many(10), widget("z", ""))...)
	clearing := ClearField(widgets, "spec.field")
	var p progresses
	attempt := p.attempt(Progress{})
	attempt.Feature, attempt.TransitionID = "Colors", "t1"
	if err := clearing.Run(t.Context(), e.clients(), attempt); err != nil {
		t.Fatal(err)
	}
	if left := e.left(t); left != nil {
		t.Errorf("%v have the field", left)
	}
	if len(e.wrote) != 10 || slices.Contains(e.wrote, "z") {
		t.Errorf("wrote %v, want each object with the field once", e.wrote)
	}
	for _, r := range e.requests() {
		if r.resource == widgets.GroupResource() && r.verb != "list" {
			t.Errorf("the API got %v", r)
		}
	}
	want := FieldEdit{Resource: widgets, Path: "spec.field", Manager: "feature-lifecycle", Feature: "Colors", TransitionID: "t1"}
	if diff := cmp.Diff(want, e.what); diff != "" {
		t.Errorf("what is edited (-want +got):\n%s", diff)
	}
	p.monotone(t, 11)
	if last := p.last(); last.Done != 11 || last.Total != 11 {
		t.Errorf("progress is %+v", last)
	}
}

func TestEditsInStorageThatAreRefused(t *testing.T) {
	conflict := apierrors.NewConflict(widgets.GroupResource(), "w01", errors.New("changed"))
	for name, tc := range map[string]struct {
		refuse func(calls int) error
		// patched is whether the API writes the object in the end.
		patched bool
		failure string
	}{
		"once by another writer":       {refuse: func(calls int) error { return map[bool]error{true: conflict}[calls == 1] }},
		"always by other writers":      {refuse: func(int) error { return conflict }, failure: "another client keeps writing it"},
		"because the API has to":       {refuse: func(int) error { return &ThroughAPIError{Reason: "it is odd"} }, patched: true},
		"by a storage that is full":    {refuse: func(int) error { return errors.New("database space exceeded") }, failure: "clearing ns/w01: database space exceeded"},
		"by one that is full for once": {refuse: func(calls int) error { return map[bool]error{true: errors.New("full")}[calls == 1] }, failure: "full"},
	} {
		t.Run(name, func(t *testing.T) {
			e := storeWidgets(many(6)...)
			var mu sync.Mutex
			calls := 0
			e.refuse = func(object string) error {
				mu.Lock()
				defer mu.Unlock()
				if object != "w01" {
					return nil
				}
				calls++
				return tc.refuse(calls)
			}
			err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}})
			if (err == nil) != (tc.failure == "") || err != nil && !strings.Contains(err.Error(), tc.failure) {
				t.Errorf("got %v, want %q", err, tc.failure)
			}
			if left := len(e.left(t)); left != 0 && err == nil || left > 1 {
				t.Errorf("%d objects have the field", left)
			}
			if patched := len(e.requests("patch")) > 0; patched != tc.patched {
				t.Errorf("the API wrote: %t, want %t", patched, tc.patched)
			}
		})
	}
}

// TestObjectsOfAVersionThatIsNotServedAreClearedInAnother: storage finds them in the
// declared version, in which the API would answer as if they were gone.
func TestObjectsOfAVersionThatIsNotServedAreClearedInAnother(t *testing.T) {
	odd := func(name string) error {
		return map[string]error{"w01": &ThroughAPIError{Reason: "it is odd"}}[name]
	}
	clearing := ClearField(widgets, "spec.field")
	t.Run("with the field", func(t *testing.T) {
		e, clients := storeElsewhere(true, many(3)...)
		e.refuse = odd
		if err := clearing.Run(t.Context(), clients, ignored); err != nil {
			t.Error(err)
		}
		if left, patched := e.left(t), e.requests("patch"); left != nil || len(patched) != 1 || patched[0].name != "w01" {
			t.Errorf("%v have the field after %v", left, patched)
		}
		e.permitted(t, clearing)
	})
	t.Run("without the field", func(t *testing.T) {
		e, clients := storeElsewhere(false, many(3)...)
		e.refuse = odd
		blocked := blockedBy(t, clearing, clients, ignored)
		if want := "widgets.example.com is served in v2 and not in v1, and objects are there that show no spec.field in it: "; !strings.HasPrefix(blocked.Message, want) {
			t.Errorf("got %q, want %q", blocked.Message, want)
		}
		if left := e.left(t); !slices.Equal(left, []string{"w01"}) {
			t.Errorf("%v have the field, want the odd one", left)
		}
	})
	t.Run("refused there for a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, clients := storeElsewhere(true, many(3)...)
			e.refuse = odd
			var permitted atomic.Bool
			e.before = func(_ context.Context, r request) error {
				if r.verb == "patch" && !permitted.Load() {
					return deny(http.StatusForbidden)
				}
				return nil
			}
			done := stillBlocked(t, blockedBy(t, clearing, clients, ignored))
			permitted.Store(true)
			select {
			case err := <-done:
				if left := e.left(t); err != nil || left != nil {
					t.Errorf("it ended with %v, and %v have the field", err, left)
				}
			case <-time.After(time.Hour):
				t.Error("it did not end")
			}
		})
	})
}

// TestWhatTheAPIDoesNotFindIsGoneIfItIsNotStored: the API may have ceased to serve the
// version.
func TestWhatTheAPIDoesNotFindIsGoneIfItIsNotStored(t *testing.T) {
	for name, stored := range map[string]bool{"deleted": false, "stored": true} {
		t.Run(name, func(t *testing.T) {
			e := storeWidgets(many(3)...)
			e.refuse = func(name string) error {
				if name != "w01" {
					return nil
				}
				if !stored {
					if err := e.Tracker().Delete(widgets, "ns", name); err != nil {
						return err
					}
				}
				return &ThroughAPIError{Reason: "it is odd"}
			}
			e.before = func(_ context.Context, r request) error {
				if r.verb == "get" && r.resource == widgets.GroupResource() {
					return apierrors.NewNotFound(r.resource, r.name)
				}
				return nil
			}
			err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), ignored)
			if stored && (err == nil || err.Error() != "clearing ns/w01: the API does not find it, and it is stored") || !stored && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCollectionsThatOnlyTheAPIClears(t *testing.T) {
	e := storeWidgets(many(6)...)
	e.unfit = &ThroughAPIError{Reason: "they are stored as CBOR"}
	if err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}}); err != nil {
		t.Fatal(err)
	}
	if left, patched := e.left(t), len(e.requests("patch")); left != nil || patched != 6 || len(e.wrote) > 0 {
		t.Errorf("%v have the field after %d patches and the edits %v", left, patched, e.wrote)
	}
}

func TestTasksThatChooseTheAPI(t *testing.T) {
	e := storeWidgets(many(2)...)
	clearing := ClearField(widgets, "spec.field").ThroughAPI()
	if err := clearing.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := clearing.Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}}); err != nil {
		t.Fatal(err)
	}
	if left := e.left(t); left != nil || len(e.wrote) > 0 || len(e.pages) > 0 {
		t.Errorf("%v have the field; storage was read at %q and written at %v", left, e.pages, e.wrote)
	}
	if err := WaitForNone(widgets, "fields", "spec.field").ThroughAPI().Validate(); err == nil || !strings.Contains(err.Error(), "clear a field") {
		t.Errorf("a task that clears no field: %v", err)
	}
}

func TestWayOfATask(t *testing.T) {
	const inStorage, throughAPI = "in storage; admission and webhooks are not called", "through the API"
	clearing, odd := ClearField(widgets, "spec.field"), &ThroughAPIError{Reason: "it has no row in the table"}
	trouble := errors.New("the definition cannot be read")
	only := func(served schema.GroupVersionResource) func(FieldEdit) error {
		return func(what FieldEdit) error {
			if what.Resource != served {
				return odd
			}
			return nil
		}
	}
	for name, tc := range map[string]struct {
		task Task
		// unedited is the Editor's answer, and api is true where there is none.
		unedited func(FieldEdit) error
		api      bool
		// elsewhere is true for a collection that is served in v2 alone.
		elsewhere, hasField bool
		want                string
		failure             error
	}{
		"a collection that the editor takes":                 {task: clearing, want: inStorage},
		"one that it leaves to the API":                      {task: clearing, unedited: only(v2), want: throughAPI},
		"one that it leaves to the API, in a namespace":      {task: clearing.InNamespace("ns"), unedited: only(v2), want: throughAPI},
		"an editor that does not know":                       {task: clearing, unedited: func(FieldEdit) error { return trouble }, failure: trouble},
		"a task that chooses the API":                        {task: clearing.ThroughAPI(), want: throughAPI},
		"a server with an API alone":                         {task: clearing, api: true, want: throughAPI},
		"a task that only waits":                             {task: WaitForNone(widgets, "fields", "spec.field"), want: ""},
		"a version that is not served, edited in the other":  {task: clearing, unedited: only(v2), elsewhere: true, hasField: true, want: inStorage},
		"a version that is not served, edited in itself":     {task: clearing, unedited: only(widgets), elsewhere: true, want: inStorage},
		"a version that is not served, and no other will do": {task: clearing, unedited: only(widgets.GroupResource().WithVersion("v3")), elsewhere: true, want: throughAPI},
	} {
		t.Run(name, func(t *testing.T) {
			e := storeWidgets(many(2)...)
			clients := e.clients()
			if tc.elsewhere {
				e, clients = storeElsewhere(tc.hasField, many(2)...)
			}
			e.unedited = tc.unedited
			if tc.api {
				clients.Editor = nil
			}
			if got, err := tc.task.Way(t.Context(), clients); got != tc.want || !errors.Is(err, tc.failure) {
				t.Errorf("got %q, %v, want %q, %v", got, err, tc.want, tc.failure)
			}
		})
	}
	if way, err := clearing.Way(t.Context(), Clients{}); way != "" || err != nil {
		t.Errorf("without storage: %q, %v", way, err)
	}
}

// TestObstaclesOfTheWayThatIsTaken checks that admission is tried where the editor leaves a
// collection to the API, and only there.
func TestObstaclesOfTheWayThatIsTaken(t *testing.T) {
	clearing := ClearField(widgets, "spec.field")
	for name, tc := range map[string]struct {
		unedited error
		held     int
	}{
		"in storage":      {nil, 0},
		"through the API": {&ThroughAPIError{Reason: "it has no row in the table"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := storeWidgets(many(2)...)
			e.unedited = func(FieldEdit) error { return tc.unedited }
			e.before = func(_ context.Context, r request) error {
				if r.verb == "patch" {
					return deny(http.StatusForbidden)
				}
				return nil
			}
			found, err := clearing.Obstacles(t.Context(), e.clients())
			if err != nil || len(found.Held) != tc.held {
				t.Errorf("got %+v, %v, want %d held", found, err, tc.held)
			}
			var blocked *BlockedError
			if err := clearing.Run(t.Context(), e.clients(), ignored); errors.As(err, &blocked) != (tc.held > 0) {
				t.Errorf("then it ended with %v", err)
			}
		})
	}
	e, trouble := storeWidgets(), errors.New("the definition cannot be read")
	e.unedited = func(FieldEdit) error { return trouble }
	if found, err := clearing.Obstacles(t.Context(), e.clients()); !errors.Is(err, trouble) {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestEditsResumeAfterCrash(t *testing.T) {
	e := storeWidgets(many(20)...)
	ctx, crash := context.WithCancel(t.Context())
	var known []Progress
	err := ClearField(widgets, "spec.field").Run(ctx, e.clients(), Attempt{Report: func(p Progress) {
		if known = append(known, p); len(known) == 2 {
			crash()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(known) < 2 {
		t.Fatalf("got %v after %d reports, want the attempt cut short", err, len(known))
	}
	if known[1].Checkpoint != "8 stored:w07" {
		t.Fatalf("the checkpoint is %q", known[1].Checkpoint)
	}
	e.pages = nil
	var p progresses
	if err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), p.attempt(known[1])); err != nil {
		t.Fatal(err)
	}
	if left := e.left(t); left != nil || e.pages[0] != "w07" || !slices.Contains(e.pages, "") {
		t.Errorf("%v have the field; pages were read from %q", left, e.pages)
	}
	p.monotone(t, 20)
}

func TestCheckpointsOfTheOtherWayAreNotResumed(t *testing.T) {
	e := storeWidgets(many(6)...)
	last := Progress{Done: 5, Total: 6, Checkpoint: apiTokens.checkpoint(5, "after w04")}
	if err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{Last: last, Report: func(Progress) {}}); err != nil {
		t.Fatal(err)
	}
	if e.pages[0] != "" {
		t.Errorf("pages were read from %q", e.pages)
	}
	last.Checkpoint = storedTokens.checkpoint(5, "w04")
	if tracker := newProgressTracker(Attempt{Last: last}, apiTokens); tracker.from != "" || tracker.walked != 0 {
		t.Errorf("the API resumes at %q", tracker.from)
	}
}

func TestUnwantedTransitionsEditNothing(t *testing.T) {
	e := storeWidgets(many(6)...)
	unwanted := errors.New("the gate is on again")
	err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{
		Report: func(Progress) {}, Check: func(context.Context) error { return unwanted },
	})
	if !errors.Is(err, unwanted) || len(e.wrote) > 0 {
		t.Errorf("got %v, and wrote %v", err, e.wrote)
	}
}

// TestWritesLeftToTheAPIAreFew: what keeps storage busy is far too much for the API. Each of
// them asks again whether the transition is wanted.
func TestWritesLeftToTheAPIAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := storeWidgets(many(2 * firstEdits)...)
		e.pageSize = 2 * firstEdits
		e.refuse = func(string) error { return &ThroughAPIError{Reason: "it is stored as CBOR"} }
		unwanted := errors.New("the gate is on again")
		ctx, cancel := context.WithCancel(t.Context())
		var checks, waiting atomic.Int64
		done := make(chan error)
		go func() {
			done <- ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}, Check: func(context.Context) error {
				if checks.Add(1) == 1 {
					return nil
				}
				waiting.Add(1)
				<-ctx.Done()
				return unwanted
			}})
		}()
		synctest.Wait()
		if n := waiting.Load(); n != fewWriters {
			t.Errorf("%d writes are under way, want %d", n, fewWriters)
		}
		cancel()
		if err := <-done; err == nil {
			t.Error("the task ended although nothing was written")
		}
		if requests := e.requests("get", "patch"); slices.ContainsFunc(requests, func(r request) bool { return r.resource == widgets.GroupResource() }) {
			t.Errorf("the API got %v", requests)
		}
	})
}

func TestFieldsWrittenMeanwhileAreFoundInStorage(t *testing.T) {
	e := storeWidgets(many(3)...)
	again := sync.OnceValue(func() error { return e.Tracker().Update(widgets, widget("w00", "again"), "ns") })
	e.refuse = func(name string) error {
		if name == "w02" {
			return again()
		}
		return nil
	}
	if err := ClearField(widgets, "spec.field").Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}}); err != nil {
		t.Fatal(err)
	}
	if left := e.left(t); left != nil {
		t.Errorf("%v have the field", left)
	}
}

func TestPaceOfEdits(t *testing.T) {
	took := time.Millisecond
	var failed error
	l := newEditLimiter(func(context.Context) (time.Duration, error) { return took, failed })
	measure := func(n int) {
		for range n {
			l.measure(t.Context())
		}
	}
	l.measureBase(t.Context())
	if l.allowed != firstEdits || l.base != time.Millisecond {
		t.Fatalf("%d are allowed after the first probes of %s", l.allowed, l.base)
	}
	measure(100)
	if l.allowed != mostEdits {
		t.Errorf("%d are allowed while no probe is slow, want %d", l.allowed, mostEdits)
	}
	took = 50 * time.Millisecond
	measure(1)
	if l.allowed >= mostEdits {
		t.Errorf("%d are allowed after a slow probe", l.allowed)
	}
	// What these writes do themselves never becomes usual.
	measure(300)
	if l.allowed != 1 {
		t.Errorf("%d are allowed while probes are slow, want 1", l.allowed)
	}
	l.measureBase(t.Context())
	measure(100)
	if l.allowed != mostEdits {
		t.Errorf("%d are allowed where probes are as slow without writes, want %d", l.allowed, mostEdits)
	}
	l.end(errors.New("etcd does not answer"))
	if l.allowed != mostEdits/2 {
		t.Errorf("%d are allowed after a failure, want half", l.allowed)
	}
	l.end(apierrors.NewConflict(widgets.GroupResource(), "a", errors.New("changed")))
	if l.allowed != mostEdits/2 {
		t.Errorf("%d are allowed after a conflict", l.allowed)
	}
	failed = errors.New("etcd does not answer")
	measure(1)
	l.measureBase(t.Context())
	if l.allowed != mostEdits/8 || l.base != 50*time.Millisecond {
		t.Errorf("%d are allowed after two failed probes, beside a base of %s", l.allowed, l.base)
	}
}

// TestEditsAreProbed: one of many probes waits until no write is under way.
func TestEditsAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newEditLimiter(func(context.Context) (time.Duration, error) { return time.Millisecond, nil })
		at := map[probing][]int{}
		for i := range probesPerBase * editsPerProbe {
			kind := l.begin()
			if kind == probeAlone {
				l.measureBase(t.Context())
			}
			at[kind] = append(at[kind], i)
			l.end(nil)
		}
		if alone, beside := at[probeAlone], at[probeBeside]; !slices.Equal(alone, []int{0}) || len(beside) != probesPerBase-1 || beside[0] != editsPerProbe {
			t.Errorf("probed alone at %v and beside writes at %v", alone, beside)
		}
		l.underWay, l.since, l.probes = 2, editsPerProbe, probesPerBase
		began := make(chan probing, 1)
		go func() { began <- l.begin() }()
		for range 2 {
			synctest.Wait()
			select {
			case <-began:
				t.Fatal("it probed alone beside a write")
			default:
			}
			l.end(nil)
		}
		if kind := <-began; kind != probeAlone {
			t.Errorf("it probed %d", kind)
		}
	})
}

func TestEditsBeginInTimeAlone(t *testing.T) {
	l := newEditLimiter(func(context.Context) (time.Duration, error) { return time.Millisecond, nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var did []int
	if begun := l.each(ctx, 5, func(i int) error { did = append(did, i); return nil }); begun != 1 || len(did) != 1 {
		t.Errorf("began %d and did %v after the end of the time, want the first alone", begun, did)
	}
}

func TestFindersReadWhatIsStored(t *testing.T) {
	e := storeWidgets(append(many(7), widget("z", ""))...)
	waiting := WaitForNone(widgets, "fields", "spec.field=x", "spec.none")
	none := WaitForNoneWhere(widgets, "others", func(value any) bool { return value == "y" }, "spec.field")
	finders, counts := []func(Clients){}, make([]int64, 3)
	for i, of := range []Task{ClearField(widgets, "spec.field"), waiting, none} {
		finders = append(finders, func(clients Clients) {
			found, err := of.Find(t.Context(), clients)
			if err != nil {
				t.Error(err)
			}
			for _, leftovers := range found {
				counts[i] += leftovers.Count
				if want := []string{"ns/w00", "ns/w01", "ns/w02", "ns/w03", "ns/w04"}; !slices.Equal(leftovers.Examples, want) {
					t.Errorf("%s names %v", of.Name, leftovers.Examples)
				}
			}
		})
	}
	FindShared(t.Context(), e.clients(), finders)
	if diff := cmp.Diff([]int64{7, 7, 0}, counts); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{3}, e.searches); diff != "" {
		t.Errorf("what was searched at once (-want +got):\n%s", diff)
	}
	if lists := e.requests("list"); len(lists) > 0 {
		t.Errorf("the API got %v", lists)
	}
	var p progresses
	blocked := blockedBy(t, waiting, e.clients(), p.attempt(Progress{}))
	if last := p.last(); last.Done != 1 || last.Total != 8 {
		t.Errorf("progress is %+v, want that one object of eight is not in use", last)
	}
	if want := "waiting for 7 widgets.example.com using fields: ns/w00, ns/w01, ns/w02, ns/w03, ns/w04 and 2 more"; blocked.Message != want {
		t.Errorf("blocked: %s", blocked.Message)
	}
	if err := none.Run(t.Context(), e.clients(), Attempt{Report: func(Progress) {}}); err != nil {
		t.Error(err)
	}
}

func TestFindersUseTheAPIForWhatIsNotSearched(t *testing.T) {
	e := storeWidgets(many(3)...)
	e.unfit = &ThroughAPIError{Reason: "they are stored as CBOR"}
	waiting := WaitForNone(widgets, "fields", "spec.field")
	FindShared(t.Context(), e.clients(), []func(Clients){func(clients Clients) {
		found, err := waiting.Find(t.Context(), clients)
		if err != nil || len(found) != 1 || found[0].Count != 3 {
			t.Errorf("found %v, %v", found, err)
		}
	}})
	if blocked := blockedBy(t, waiting, e.clients(), Attempt{Report: func(Progress) {}}); !strings.HasPrefix(blocked.Message, "waiting for 3 widgets") {
		t.Errorf("blocked: %s", blocked.Message)
	}
	e.unfit = errors.New("etcd does not answer")
	if found, err := waiting.Find(t.Context(), e.clients()); !errors.Is(err, e.unfit) {
		t.Errorf("found %v, %v", found, err)
	}
}
