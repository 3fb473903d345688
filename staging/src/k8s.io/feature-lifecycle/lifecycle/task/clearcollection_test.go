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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

const own, foreign = "example.com/own", "example.com/foreign"

// held has finalizers.
func held(name string, finalizers ...string) *unstructured.Unstructured {
	object := widget(name, "")
	object.SetFinalizers(finalizers)
	return object
}

// finalizing makes the fake delete as a real server does: with a precondition,
// and what has finalizers is there until it has none. graceful objects are being
// deleted without any.
func finalizing(t *testing.T, graceful string, objects ...*unstructured.Unstructured) *wire {
	var list []runtime.Object
	for _, o := range objects {
		list = append(list, o)
	}
	s := &server{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList", crds: "CustomResourceDefinitionList"}, list...)}
	get := func(name string) (*unstructured.Unstructured, error) {
		found, err := s.Tracker().Get(widgets, "ns", name)
		if err != nil {
			return nil, err
		}
		return found.(*unstructured.Unstructured).DeepCopy(), nil
	}
	s.PrependReactor("delete", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.DeleteActionImpl)
		object, err := get(action.Name)
		if err != nil {
			return true, nil, err
		}
		uid := action.DeleteOptions.Preconditions
		if uid == nil || uid.UID == nil {
			t.Errorf("%s is deleted without a precondition", action.Name)
		} else if *uid.UID != object.GetUID() {
			return true, nil, apierrors.NewConflict(widgets.GroupResource(), action.Name, errors.New("uid"))
		}
		if len(object.GetFinalizers()) == 0 && action.Name != graceful {
			return false, nil, nil
		}
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		return true, nil, s.Tracker().Update(widgets, object, "ns")
	})
	s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.PatchActionImpl)
		if current, err := get(action.Name); err == nil && !strings.Contains(string(action.Patch), `"resourceVersion":"`+current.GetResourceVersion()+`"`) {
			t.Errorf("the finalizers of %s are written whatever they are: %s", action.Name, action.Patch)
		}
		_, object, err := clienttesting.ObjectReaction(s.Tracker())(a)
		patched, _ := object.(*unstructured.Unstructured)
		if err == nil && len(patched.GetFinalizers()) == 0 && patched.GetDeletionTimestamp() != nil {
			err = s.Tracker().Delete(widgets, "ns", patched.GetName())
		}
		return true, object, err
	})
	return &wire{server: s}
}

func (w *wire) left(t *testing.T) []string {
	t.Helper()
	list, err := w.server.Resource(widgets).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, o := range list.Items {
		names = append(names, o.GetName()+" "+strings.Join(o.GetFinalizers(), ","))
	}
	return names
}

func TestClearCollectionRemovesOwnFinalizersAndWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "", held("a"), held("b", own), held("c", foreign), held("d", own, foreign))
		clearing := ClearCollection(widgets.GroupResource(), own)
		blocked := blockedBy(t, clearing, w.clients(), ignored)
		if want := "2 objects of widgets.example.com are left: ns/c: being deleted, finalizers: " + foreign + "; ns/d: being deleted, finalizers: " + foreign; blocked.Message != want {
			t.Errorf("got  %q\nwant %q", blocked.Message, want)
		}
		if diff := cmp.Diff([]string{"c " + foreign, "d " + foreign}, w.left(t)); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}
		done := stillBlocked(t, blocked)
		for _, name := range []string{"c", "d"} {
			if err := w.Tracker().Delete(widgets, "ns", name); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := clearing.Run(t.Context(), w.clients(), ignored); err != nil {
			t.Error(err)
		}
		w.permitted(t, clearing)
	})
}

// TestClearCollectionKeepsFinalizersOfOthers that come between reading and
// writing: the list is written as a whole.
func TestClearCollectionKeepsFinalizersOfOthers(t *testing.T) {
	w := finalizing(t, "", held("a", own))
	w.before = func(_ context.Context, r request) error {
		if r.verb != "delete" {
			return nil
		}
		return w.Tracker().Update(widgets, held("a", own, foreign), "ns")
	}
	blocked := blockedBy(t, ClearCollection(widgets.GroupResource(), own), w.clients(), ignored)
	if !strings.Contains(blocked.Message, foreign) {
		t.Errorf("got %q, want it to wait for the owner of the new finalizer", blocked.Message)
	}
	if diff := cmp.Diff([]string{"a " + foreign}, w.left(t)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// TestClearCollectionAndGracefulDeletion: the object stays for a while, and is
// not deleted again and again.
func TestClearCollectionAndGracefulDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "a", held("a"))
		clearing := ClearCollection(widgets.GroupResource())
		blocked := blockedBy(t, clearing, w.clients(), ignored)
		if want := "1 object of widgets.example.com is left: ns/a: being deleted"; blocked.Message != want {
			t.Errorf("got %q, want %q", blocked.Message, want)
		}
		done := make(chan error, 1)
		go func() { done <- blocked.Until(t.Context()) }()
		<-time.After(time.Hour)
		if n := len(w.requests("delete", "patch")); n != 1 {
			t.Errorf("%d writes in an hour, want 1", n)
		}
		if n := len(w.requests()); n > 120 {
			t.Errorf("%d requests in an hour", n)
		}
		if err := w.Tracker().Delete(widgets, "ns", "a"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestClearCollectionAndAnotherOfTheSameName checks that only the object that was read
// is deleted; the next pass handles the other.
func TestClearCollectionAndAnotherOfTheSameName(t *testing.T) {
	w := finalizing(t, "", held("a"))
	again := true
	w.before = func(_ context.Context, r request) error {
		if r.verb != "delete" || !again {
			return nil
		}
		again = false
		other := held("a")
		other.SetUID("other")
		return w.Tracker().Update(widgets, other, "ns")
	}
	if err := ClearCollection(widgets.GroupResource()).Run(t.Context(), w.clients(), ignored); err != nil {
		t.Fatal(err)
	}
	if n := len(w.requests("delete")); n != 2 || len(w.left(t)) > 0 {
		t.Errorf("%d deletions and %v is left, want 2 and nothing", n, w.left(t))
	}
}

func TestClearCollectionBlockedWhileRefilled(t *testing.T) {
	w := finalizing(t, "", held("a"))
	made := 0
	w.before = func(_ context.Context, r request) error {
		if r.verb != "delete" {
			return nil
		}
		made++
		return w.Tracker().Create(widgets, held(fmt.Sprintf("new-%d", made)), "ns")
	}
	blocked := blockedBy(t, ClearCollection(widgets.GroupResource()), w.clients(), ignored)
	if !strings.Contains(blocked.Message, "find out what creates them") || made > 20 {
		t.Errorf("after %d deletions: %q", made, blocked.Message)
	}
}

// unserved are clients of a server that does not serve widgets.
func (w *wire) unserved(storage Storage) Clients {
	return Clients{Dynamic: w, Mapper: mapperOf(), Storage: storage}
}

// widgetDefinition defines widgets.
func widgetDefinition() *unstructured.Unstructured {
	definition := &unstructured.Unstructured{Object: map[string]any{}}
	definition.SetGroupVersionKind(crds.GroupVersion().WithKind("CustomResourceDefinition"))
	definition.SetName("widgets.example.com")
	return definition
}

// TestClearCollectionNotDoneWithoutStorageAccess checks an operator, which has no
// access to storage. While no version of a definition is served its objects stay in
// etcd, and return with it.
func TestClearCollectionNotDoneWithoutStorageAccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clearing := ClearCollection(widgets.GroupResource())
		w, kinds := finalizing(t, "", widgetDefinition(), held("a")), mapperOf()
		clients := Clients{Dynamic: w, Mapper: kinds}
		if found, err := clearing.Find(t.Context(), clients); err == nil {
			t.Errorf("found %v, and could not look", found)
		}
		blocked := blockedBy(t, clearing, clients, ignored)
		if want := "widgets.example.com is defined and not served, and objects of it may be stored"; !strings.Contains(blocked.Message, want) {
			t.Errorf("got %q, want it to say %q", blocked.Message, want)
		}
		done := stillBlocked(t, blocked)
		kinds.add(widgetKind)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := clearing.Run(t.Context(), clients, ignored); err != nil || len(w.left(t)) > 0 {
			t.Errorf("%v; %v is left", err, w.left(t))
		}
		w.permitted(t, clearing)
	})
}

func TestClearCollectionNotServed(t *testing.T) {
	clearing := ClearCollection(widgets.GroupResource(), own)
	objects := func() *storage {
		return store(StoredObject{Namespace: "ns", Name: "a"}, StoredObject{Namespace: "ns", Name: "b", Unreadable: errors.New("garbage")})
	}
	t.Run("it is deleted where it is stored", func(t *testing.T) {
		w, s := finalizing(t, ""), objects()
		var p progresses
		if err := clearing.Run(t.Context(), w.unserved(s), p.attempt(Progress{})); err != nil || len(s.keys()) > 0 {
			t.Errorf("%v; %v is left", err, s.keys())
		}
		if last := p.last(); last.Done != 2 || last.Total != 2 {
			t.Errorf("progress ended with %+v", last)
		}
		w.permitted(t, clearing)
	})
	t.Run("without storage nothing can be done, and all is deleted with the definition", func(t *testing.T) {
		w := finalizing(t, "")
		if err := clearing.Run(t.Context(), w.unserved(nil), ignored); err != nil {
			t.Error(err)
		}
		if found, err := clearing.Find(t.Context(), w.unserved(nil)); err != nil || len(found) > 0 {
			t.Errorf("found %v, %v", found, err)
		}
		w.permitted(t, clearing)
	})
	t.Run("one that was changed is for the next attempt", func(t *testing.T) {
		w, s := finalizing(t, ""), objects()
		s.refuse = func(o StoredObject) error {
			if o.Name == "a" {
				return apierrors.NewConflict(widgets.GroupResource(), "a", errors.New("changed"))
			}
			return nil
		}
		err := clearing.Run(t.Context(), w.unserved(s), ignored)
		var blocked *BlockedError
		if err == nil || errors.As(err, &blocked) || !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("got %v, want an error about ns/a", err)
		}
		s.refuse = nil
		if err := clearing.Run(t.Context(), w.unserved(s), ignored); err != nil || len(s.keys()) > 0 {
			t.Errorf("%v; %v is left", err, s.keys())
		}
	})
	t.Run("what has a definition is left to the API", func(t *testing.T) {
		w, s := finalizing(t, "", widgetDefinition()), objects()
		if err := clearing.Run(t.Context(), w.unserved(s), ignored); err == nil || len(s.keys()) != 2 {
			t.Errorf("%v; %v is left, want both", err, s.keys())
		}
		w.permitted(t, clearing)
	})
	t.Run("many of them", func(t *testing.T) {
		var all []StoredObject
		for i := range 2*storedPageSize + 1 {
			all = append(all, StoredObject{Namespace: "ns", Name: fmt.Sprintf("w%05d", i)})
		}
		s := store(all...)
		found, err := clearing.Find(t.Context(), finalizing(t, "").unserved(s))
		if err != nil || len(found) != 1 || found[0].Count != int64(len(all)) || len(found[0].Examples) != maxExamples {
			t.Errorf("found %v, %v", found, err)
		}
		if err := clearing.Run(t.Context(), finalizing(t, "").unserved(s), ignored); err != nil || len(s.keys()) > 0 {
			t.Errorf("%v; %d are left", err, len(s.keys()))
		}
	})
}

// TestClearCollectionWithGarbage: one that does not decode makes every list
// fail. It alone is deleted where it is stored.
func TestClearCollectionWithGarbage(t *testing.T) {
	w := finalizing(t, "", held("a", own))
	s := store(StoredObject{Namespace: "ns", Name: "a"}, StoredObject{Namespace: "ns", Name: "garbage", Unreadable: errors.New("garbage")})
	w.before = func(_ context.Context, r request) error {
		if r.verb == "list" && len(s.keys()) > 1 {
			return apierrors.NewInternalError(errors.New("cannot decode"))
		}
		return nil
	}
	clients := w.clients()
	clients.Storage = s
	clearing := ClearCollection(widgets.GroupResource(), own)
	if err := clearing.Run(t.Context(), clients, ignored); err == nil || !strings.Contains(err.Error(), "removed what no server could decode, 1 object of widgets.example.com") {
		t.Errorf("got %v, want an error that says what was done", err)
	}
	if diff := cmp.Diff([]string{"ns/a"}, s.keys()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
	if err := clearing.Run(t.Context(), clients, ignored); err != nil || len(w.left(t)) > 0 {
		t.Errorf("%v; %v is left", err, w.left(t))
	}
	// That was the API's doing, not the storage's.
	if diff := cmp.Diff([]string{"ns/a"}, s.keys()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}
