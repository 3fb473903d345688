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
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClearCollectionOutOfReachWaitsForFinalizersOfOthers: what the API would not delete is
// not deleted behind its back either.
func TestClearCollectionOutOfReachWaitsForFinalizersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := func() *storage {
			return store(
				StoredObject{Namespace: "ns", Name: "free"},
				StoredObject{Namespace: "ns", Name: "own", Finalizers: []string{own}},
				StoredObject{Namespace: "ns", Name: "collected", Finalizers: []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}},
				StoredObject{Namespace: "ns", Name: "foreign", Finalizers: []string{own, foreign}},
				StoredObject{Namespace: "ns", Name: "garbage", Finalizers: []string{foreign}, Unreadable: errors.New("garbage")},
			)
		}
		s, clearing := stored(), ClearCollection(widgets.GroupResource(), own)
		var p progresses
		clients := finalizing(t, "").unserved(s)
		err := clearing.Run(t.Context(), clients, p.attempt(Progress{}))
		var blocked *BlockedError
		if !errors.As(err, &blocked) || !strings.Contains(blocked.Message, "1 object of widgets.example.com is held by finalizers of others: ns/foreign ("+foreign+"), and no version is served") ||
			!strings.Contains(blocked.Message, "serve it again") {
			t.Fatalf("%v does not block with what has to happen", err)
		}
		if diff := cmp.Diff([]string{"ns/foreign"}, s.keys()); diff != "" {
			t.Errorf("what is stored (-want +got):\n%s", diff)
		}
		if last := p.last(); last.Done != 4 || last.Total != 5 {
			t.Errorf("progress ended with %+v, want 4 of 5", last)
		}
		done := stillBlocked(t, blocked)
		if err := s.Delete(t.Context(), widgets.GroupResource(), StoredObject{Key: "ns/foreign"}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := clearing.Run(t.Context(), clients, ignored); err != nil {
			t.Error(err)
		}
	})
}

// TestClearUnreadableAndFinalizers: no server could take them away.
func TestClearUnreadableAndFinalizers(t *testing.T) {
	s := store(StoredObject{Name: "a", Finalizers: []string{foreign}, Unreadable: errors.New("garbage")}, StoredObject{Name: "b", Finalizers: []string{foreign}})
	if err := ClearUnreadable(widgets.GroupResource()).Run(t.Context(), finalizing(t, "").unserved(s), ignored); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"/b"}, s.keys()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

// TestObstaclesOfClearCollection checks that they are the same whether the finalizers
// are seen in storage or through the API.
func TestObstaclesOfClearCollection(t *testing.T) {
	const want = "1 object of widgets.example.com is held by finalizers of others: ns/c (" + foreign + "); while the API is served"
	w := finalizing(t, "", held("a"), held("b", own), held("c", foreign))
	withStorage := w.clients()
	withStorage.Storage = store(StoredObject{Namespace: "ns", Name: "b", Finalizers: []string{own}}, StoredObject{Namespace: "ns", Name: "c", Finalizers: []string{foreign}})
	clearing := ClearCollection(widgets.GroupResource(), own)
	for name, clients := range map[string]Clients{"the API": w.clients(), "storage": withStorage} {
		for _, of := range []Task{clearing, clearing.InNamespace("ns")} {
			if found, err := of.Obstacles(t.Context(), clients); err != nil || len(found.Held) != 1 || !strings.HasPrefix(found.Held[0], want) {
				t.Errorf("%s, seen in %s: %q, %v, want %q", of.Name, name, found, err, want)
			}
		}
		if found, err := clearing.InNamespace("other").Obstacles(t.Context(), clients); err != nil || len(found.Held) > 0 {
			t.Errorf("in another namespace: %q, %v", found, err)
		}
	}
	if found, err := ClearCollection(widgets.GroupResource(), own, foreign).Obstacles(t.Context(), w.clients()); err != nil || len(found.Held) > 0 {
		t.Errorf("of its own finalizers: %q, %v", found, err)
	}
	w.permitted(t, clearing)
}

// TestStoredObjectsHaveNoBytes: tasks keep those of whole collections, so no field may
// refer to what was stored, as a function or a slice of bytes can.
func TestStoredObjectsHaveNoBytes(t *testing.T) {
	var problems func(of reflect.Type) []string
	problems = func(of reflect.Type) []string {
		switch of.Kind() {
		case reflect.String, reflect.Bool, reflect.Int64:
			return nil
		case reflect.Slice:
			return problems(of.Elem())
		case reflect.Struct:
			var found []string
			for i := range of.NumField() {
				for _, problem := range problems(of.Field(i).Type) {
					found = append(found, of.Field(i).Name+": "+problem)
				}
			}
			return found
		}
		return []string{of.String() + " may keep what it was made of"}
	}
	// Why it does not decode is a text (Stored.List of kube-apiserver, and its test).
	want := []string{"Unreadable: error may keep what it was made of"}
	if diff := cmp.Diff(want, problems(reflect.TypeFor[StoredObject]())); diff != "" {
		t.Errorf("fields of a stored object (-want +got):\n%s", diff)
	}
}
