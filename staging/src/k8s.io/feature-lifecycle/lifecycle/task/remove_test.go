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
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

func names(found []request) []string {
	var names []string
	for _, r := range found {
		names = append(names, r.name)
	}
	return names
}

func TestRemoveDeletesInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "", held("a"), held("b"), held("c"))
		removing := Remove("widgets", []byte(twoWidgets))
		if err := removing.Validate(); err != nil {
			t.Fatal(err)
		}
		found, err := removing.Find(t.Context(), w.clients())
		if err != nil || len(found) != 1 || found[0].Count != 2 {
			t.Errorf("found %v (%v), want 2", found, err)
		}
		if n := len(w.requests("delete")); n > 0 {
			t.Errorf("finding deletes %d", n)
		}
		if err := removing.Run(t.Context(), w.clients(), ignored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b"}, names(w.requests("delete"))); diff != "" {
			t.Errorf("not deleted in the reverse of b, a (-want +got):\n%s", diff)
		}
		if found, err := removing.Find(t.Context(), w.clients()); err != nil || len(found) != 0 {
			t.Errorf("found %v (%v) afterwards", found, err)
		}
		// Again there is nothing to do.
		if err := removing.Run(t.Context(), w.clients(), ignored); err != nil || len(w.requests("delete")) != 2 {
			t.Errorf("again: %v, %d requests", err, len(w.requests("delete")))
		}
		w.permitted(t, removing)
	})
}

func TestRemoveBlockedByFinalizersUntilDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "", held("a", foreign))
		removing := Remove("widgets", []byte(twoWidgets))
		blocked := blockedBy(t, removing, w.clients(), ignored)
		if !strings.Contains(blocked.Message, "Widget ns/a") || !strings.Contains(blocked.Message, foreign) {
			t.Errorf("it does not say what holds which object: %s", blocked.Message)
		}
		done := make(chan error, 1)
		go func() { done <- blocked.Until(t.Context()) }()
		synctest.Wait()
		if err := w.Tracker().Delete(widgets, "ns", "a"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("it is deleted: %v", err)
		}
		if err := removing.Run(t.Context(), w.clients(), ignored); err != nil {
			t.Error(err)
		}
	})
}

// TestRemoveRereadsFinalizers checks the object before the block is reported: it may be
// deleted, or held by others than before, and a server in trouble is no finalizer.
func TestRemoveRereadsFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		// meanwhile happens before the object is read again.
		meanwhile func(w *wire) error
		says      string
		blocked   bool
	}{
		"another holder":            {func(w *wire) error { return w.Tracker().Update(widgets, held("a", "example.com/late"), "ns") }, "finalizers hold it: example.com/late", true},
		"no holder any more":        {func(w *wire) error { return w.Tracker().Update(widgets, held("a"), "ns") }, "is being deleted and still there", true},
		"deleted, without an event": {func(w *wire) error { return w.Tracker().Delete(widgets, "ns", "a") }, "", false},
		"a server is in trouble":    {func(*wire) error { return apierrors.NewServiceUnavailable("later") }, "looking for what holds Widget ns/a: later", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := finalizing(t, "", held("a", foreign))
				reads := 0
				w.before = func(_ context.Context, r request) error {
					switch {
					case r.verb == "list" || r.verb == "watch":
						return apierrors.NewServiceUnavailable("no watch")
					case r.verb == "get" && r.name == "a":
						if reads++; reads == 2 {
							return tc.meanwhile(w)
						}
					}
					return nil
				}
				err := Remove("widgets", []byte(twoWidgets)).Run(t.Context(), w.clients(), ignored)
				var blocked *BlockedError
				if errors.As(err, &blocked) != tc.blocked || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want blocked %t, saying %q", err, tc.blocked, tc.says)
				}
			})
		})
	}
}

func TestRemoveUnservedOrRefusedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "", held("a"))
		removing := Remove("widgets", []byte(twoWidgets))
		if err := removing.Run(t.Context(), w.unserved(nil), ignored); err != nil || len(w.requests("get")) != len(w.requests()) {
			t.Errorf("an unknown kind: %v, requests: %v", err, w.requests())
		}
		var refusal error
		w.before = func(_ context.Context, r request) error {
			if r.verb == "delete" {
				return refusal
			}
			return nil
		}
		refusal = apierrors.NewForbidden(widgets.GroupResource(), "a", errors.New("no"))
		if blocked := blockedBy(t, removing, w.clients(), ignored); !strings.Contains(blocked.Message, "Widget ns/a") {
			t.Errorf("it does not say what is refused: %s", blocked.Message)
		}
		refusal = apierrors.NewServiceUnavailable("later")
		var blocked *BlockedError
		if err := removing.Run(t.Context(), w.clients(), ignored); err == nil || errors.As(err, &blocked) {
			t.Errorf("a server that is busy: %v", err)
		}
	})
}

// TestRemoveLeavesNothingInStorage checks that kube-apiserver sees what is stored of a
// kind that it does not serve, and that returns with the API.
func TestRemoveLeavesNothingInStorage(t *testing.T) {
	removing := Remove("widgets", []byte(twoWidgets))
	others := []StoredObject{{Namespace: "other", Name: "a"}, {Namespace: "ns", Name: "c"}}
	clients := finalizing(t, "").unserved(store(others...))
	if found, err := removing.Find(t.Context(), clients); err != nil || len(found) > 0 {
		t.Errorf("of others: found %v, %v", found, err)
	}
	if err := removing.Run(t.Context(), clients, ignored); err != nil {
		t.Errorf("of others: %v", err)
	}
	clients.Storage = store(append(others, StoredObject{Namespace: "ns", Name: "b"})...)
	if found, err := removing.Find(t.Context(), clients); err == nil {
		t.Errorf("found %v, and one is stored", found)
	}
	if blocked := blockedBy(t, removing, clients, ignored); !strings.Contains(blocked.Message, "Widget ns/b is stored") {
		t.Errorf("it does not say what is stored: %s", blocked.Message)
	}
}

// TestRemoveInAnotherVersion: manifests may be of a version that a server does not serve
// any more, or not yet.
func TestRemoveInAnotherVersion(t *testing.T) {
	later := widgets.GroupResource().WithVersion("v2")
	widget := held("a")
	widget.SetAPIVersion(later.GroupVersion().String())
	server := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{later: "WidgetList"}, widget)
	removing, clients := Remove("widgets", []byte(twoWidgets)), Clients{Dynamic: server, Mapper: mapperOf(later.GroupVersion().WithKind("Widget"))}
	if found, err := removing.Find(t.Context(), clients); err != nil || len(found) != 1 || found[0].Count != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	if err := removing.Run(t.Context(), clients, ignored); err != nil {
		t.Fatal(err)
	}
	if left, err := server.Resource(later).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v, %v", left, err)
	}
}

func TestRemoveWithoutObjectsInvalid(t *testing.T) {
	if err := Remove("nothing", nil).Validate(); err == nil || !strings.Contains(err.Error(), "Remove/nothing") {
		t.Errorf("got %v", err)
	}
}

func TestClearUnreadableKeepsDecodableObjects(t *testing.T) {
	clearing := ClearUnreadable(widgets.GroupResource())
	s := store(StoredObject{Namespace: "ns", Name: "bad", Unreadable: errors.New("no kind")}, StoredObject{Namespace: "ns", Name: "good"},
		StoredObject{Namespace: "ns", Name: "worse", Unreadable: errors.New("no kind")})
	clients := Clients{Storage: s}
	found, err := clearing.Find(t.Context(), clients)
	if err != nil || len(found) != 1 || found[0].Count != 2 {
		t.Errorf("found %v (%v), want 2", found, err)
	}
	s.refuse = func(StoredObject) error { return errors.New("no etcd") }
	if err := clearing.Run(t.Context(), clients, ignored); err == nil || len(s.keys()) != 3 {
		t.Errorf("a failure is not returned: %v, left %v", err, s.keys())
	}
	s.refuse = nil
	if err := clearing.Run(t.Context(), clients, ignored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ns/good"}, s.keys()); diff != "" {
		t.Errorf("unexpected objects are left (-want +got):\n%s", diff)
	}
	if found, err := clearing.Find(t.Context(), clients); err != nil || len(found) != 0 {
		t.Errorf("found %v (%v) afterwards", found, err)
	}
	// Without storage nothing is visible, and so nothing is done.
	if blocked := blockedBy(t, clearing, Clients{}, ignored); !strings.Contains(blocked.Message, "only kube-apiserver can reach etcd") {
		t.Errorf("it does not name kube-apiserver: %s", blocked.Message)
	}
	if found, err := clearing.Find(t.Context(), Clients{}); err == nil {
		t.Errorf("found %v without looking", found)
	}
}

// TestRemoveCountsObjectsOfDefinition, since deleting one deletes all objects of
// its kind. Nothing is counted any more once it is being deleted.
func TestRemoveCountsObjectsOfDefinition(t *testing.T) {
	const manifest = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets}
  versions:
  - {name: v0, served: false}
  - {name: v1, served: true}
`
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &definition.Object); err != nil {
		t.Fatal(err)
	}
	kinds := mapperOf(widgetKind)
	kinds.add(crds.GroupVersion().WithKind("CustomResourceDefinition"))
	removing := Remove("widgets", []byte(manifest))
	found := func(definition *unstructured.Unstructured) []v1alpha1.ResourceLeftovers {
		w := finalizing(t, "", definition, held("a"), held("b"))
		found, err := removing.Find(t.Context(), Clients{Dynamic: w, Mapper: kinds})
		if err != nil {
			t.Fatal(err)
		}
		w.permitted(t, removing)
		return found
	}
	itself := v1alpha1.ResourceLeftovers{Group: crds.Group, Resource: crds.Resource, Count: 1, Examples: []string{"widgets.example.com"}}
	along := v1alpha1.ResourceLeftovers{Group: widgets.Group, Resource: widgets.Resource, Count: 2, Examples: []string{"ns/a", "ns/b"}}
	if diff := cmp.Diff([]v1alpha1.ResourceLeftovers{itself, along}, found(definition)); diff != "" {
		t.Errorf("unexpected leftovers (-want +got):\n%s", diff)
	}
	going := definition.DeepCopy()
	going.SetDeletionTimestamp(ptr.To(metav1.Now()))
	going.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	if diff := cmp.Diff([]v1alpha1.ResourceLeftovers{itself}, found(going)); diff != "" {
		t.Errorf("unexpected leftovers of one that is being deleted (-want +got):\n%s", diff)
	}
}
