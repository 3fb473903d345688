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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// TestServedMatchesExactResource: a mapper also offers what only begins alike.
func TestServedMatchesExactResource(t *testing.T) {
	clients := Clients{Mapper: mapperOf(schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "Scaler"})}
	for resource, want := range map[schema.GroupResource]bool{
		{Group: "autoscaling.k8s.io", Resource: "scalers"}: true,
		{Group: "autoscaling", Resource: "scalers"}:        false,
		{Resource: "scalers"}:                              false,
		{Group: "other.example.com", Resource: "scalers"}:  false,
	} {
		found, is, err := served(clients, resource)
		if err != nil || is != want {
			t.Errorf("%s: served %t as %s, %v; want %t", resource, is, found, err, want)
		}
	}
}

// TestRemovedAPIHoldsNothing, if nothing of it is stored.
func TestRemovedAPIHoldsNothing(t *testing.T) {
	gone := func() *server {
		s := serve()
		s.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(widgets.GroupResource(), "")
		})
		return s
	}
	for name, tc := range map[string]struct {
		stored []StoredObject
		over   bool
	}{
		"nothing is stored":  {nil, true},
		"something is still": {[]StoredObject{{Name: "a"}}, false},
	} {
		for _, of := range []Task{ClearField(widgets, "spec.field"), WaitForNone(widgets, "a field", "spec.field")} {
			clients := Clients{Dynamic: gone(), Mapper: mapperOf(), Storage: store(tc.stored...)}
			if err := of.Run(t.Context(), clients, ignored); (err == nil) != tc.over {
				t.Errorf("%s: %s: %v, want it over: %t", name, of.Name, err, tc.over)
			}
			if _, err := of.Find(t.Context(), clients); (err == nil) != tc.over {
				t.Errorf("%s: finding for %s: %v", name, of.Name, err)
			}
		}
	}
}

// TestRemovedAPIWithoutDefinition checks an operator, which has no access to storage.
// It needs permission to read the definition, and its error names a missing one.
func TestRemovedAPIWithoutDefinition(t *testing.T) {
	refusal := apierrors.NewForbidden(crds.GroupResource(), "widgets.example.com", errors.New(`user "operator" cannot get it`))
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		looking error
		says    []string
		blocked bool
	}{
		"the definition is deleted": {},
		"it is there":               {objects: []*unstructured.Unstructured{widgetDefinition()}, says: []string{"widgets.example.com is defined and not served"}, blocked: true},
		"no permission": {looking: refusal, blocked: true, says: []string{
			"widgets.example.com is not served", "permit get on customresourcedefinitions.apiextensions.k8s.io widgets.example.com", "lifecycle.Rules", `user "operator" cannot get it`,
		}},
		"the server is in trouble": {looking: apierrors.NewServiceUnavailable("later"), says: []string{"widgets.example.com", ": later"}},
	} {
		for _, of := range []Task{ClearField(widgets, "spec.field"), WaitForNone(widgets, "a field", "spec.field"), ClearCollection(widgets.GroupResource()), Remove("widgets", []byte(twoWidgets))} {
			w := finalizing(t, "", tc.objects...)
			w.before = func(_ context.Context, r request) error {
				switch {
				case r.resource == crds.GroupResource():
					return tc.looking
				case r.verb == "list":
					return apierrors.NewNotFound(widgets.GroupResource(), "")
				}
				return nil
			}
			clients := w.unserved(nil)
			_, findErr := of.Find(t.Context(), clients)
			for doing, err := range map[string]error{"running": of.Run(t.Context(), clients, ignored), "finding": findErr} {
				var blocked *BlockedError
				if (err == nil) != (len(tc.says) == 0) || errors.As(err, &blocked) != tc.blocked {
					t.Errorf("%s: %s %s: %v, want blocked: %t", name, doing, of.Name, err, tc.blocked)
					continue
				}
				for _, text := range tc.says {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%s: %s %s: %v does not say %q", name, doing, of.Name, err, text)
					}
				}
			}
			w.permitted(t, of)
		}
	}
}

// TestTaskResumesWithRestoredPermission: permissions are given while the task waits.
func TestTaskResumesWithRestoredPermission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		refused.Store(true)
		w := finalizing(t, "")
		w.before = func(_ context.Context, r request) error {
			switch {
			case r.resource == crds.GroupResource() && refused.Load():
				return apierrors.NewForbidden(crds.GroupResource(), r.name, errors.New("no"))
			case r.verb == "list":
				return apierrors.NewNotFound(widgets.GroupResource(), "")
			}
			return nil
		}
		clearing := ClearField(widgets, "spec.field")
		blocked := blockedBy(t, clearing, w.unserved(nil), ignored)
		done := stillBlocked(t, blocked)
		refused.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := clearing.Run(t.Context(), w.unserved(nil), ignored); err != nil {
			t.Error(err)
		}
	})
}

// TestBuiltInResourceDefinitionNotRead: groups of custom resources have a dot.
func TestBuiltInResourceDefinitionNotRead(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for _, of := range []Task{ClearField(deployments.WithVersion("v1"), "spec.x"), WaitForNone(deployments.WithVersion("v1"), "x", "spec.x"), ClearCollection(deployments)} {
		for _, rule := range of.Rules {
			if slices.Contains(rule.Resources, crds.Resource) {
				t.Errorf("%s asks for the permission %v, which it has no use for", of.Name, rule)
			}
		}
	}
	w := finalizing(t, "")
	if err := ClearCollection(deployments).Run(t.Context(), w.unserved(nil), ignored); err != nil || len(w.requests()) > 0 {
		t.Errorf("%v, after the requests %v", err, w.requests())
	}
}

// TestRemovedAPIEndsWithStoredObjects checks a collection that another feature clears
// after its API was removed: tasks for fields in it then continue.
func TestRemovedAPIEndsWithStoredObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stored := serve(), store(StoredObject{Name: "a"})
		s.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(widgets.GroupResource(), "")
		})
		clients := Clients{Dynamic: s, Mapper: mapperOf(), Storage: stored}
		err := WaitForNone(widgets, "a field", "spec.field").Run(t.Context(), clients, ignored)
		var blocked *BlockedError
		if !errors.As(err, &blocked) || blocked.Until == nil || !strings.Contains(blocked.Message, "widgets.example.com v1 is not served and objects of it may be stored") || !strings.Contains(blocked.Message, "emulates a version without it cannot") {
			t.Fatalf("%v does not block with what has to happen", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- blocked.Until(t.Context()) }()
		<-time.After(10 * probePeriod)
		select {
		case err := <-ended:
			t.Fatalf("it ends while something is stored: %v", err)
		default:
		}
		if err := stored.Delete(t.Context(), widgets.GroupResource(), StoredObject{Key: "/a"}); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * probePeriod)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("it ends with %v", err)
			}
		default:
			t.Error("it does not end once nothing is stored")
		}
	})
}

// TestClearingFeatureNamed: flags that serve it otherwise are of no use while the
// gate of another feature is off.
func TestClearingFeatureNamed(t *testing.T) {
	s := serve()
	s.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(widgets.GroupResource(), "")
	})
	clients := Clients{Dynamic: s, Mapper: mapperOf(), Storage: store(StoredObject{Name: "a"})}
	clients.ClearedBy = func(resource schema.GroupResource) string { return "feature G, which clears " + resource.Resource }
	blocked := blockedBy(t, WaitForNone(widgets, "a field", "spec.field"), clients, ignored)
	if want := "which cannot be read: it waits for feature G, which clears widgets"; !strings.HasSuffix(blocked.Message, want) {
		t.Errorf("got %q, want it to end with %q", blocked.Message, want)
	}
}

// TestReplacedTransitionStopsWriting checks that a process that was frozen checks
// first.
func TestReplacedTransitionStopsWriting(t *testing.T) {
	replaced := Attempt{Report: func(Progress) {}, Check: func(context.Context) error {
		return apierrors.NewConflict(widgets.GroupResource(), "A", nil)
	}}
	for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
		s := serve(widget("a", "x"))
		if err := of.Run(t.Context(), Clients{Dynamic: s, Mapper: mapperOf(widgetKind)}, replaced); err == nil {
			t.Errorf("%s ends well", of.Name)
		}
		for _, a := range s.Actions() {
			if a.GetVerb() != "list" && a.GetVerb() != "get" {
				t.Errorf("%s does %s", of.Name, a.GetVerb())
			}
		}
	}
	// Nor where the API does not reach.
	stored := store(StoredObject{Name: "a"})
	if err := ClearCollection(widgets.GroupResource()).Run(t.Context(), Clients{Dynamic: serve(), Mapper: mapperOf(), Storage: stored}, replaced); err == nil {
		t.Error("clearing storage ends well")
	}
	if diff := cmp.Diff([]string{"/a"}, stored.keys()); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

// TestReplicaSetsOfDeploymentsKept checks history: a ReplicaSet of a Deployment whose
// template was cleared would be taken for the present one.
func TestReplicaSetsOfDeploymentsKept(t *testing.T) {
	owned := widget("owned", "x")
	owned.SetOwnerReferences(nil)
	c := clearField{resource: widgets, uncontrolled: true}
	c.path, _ = ParsePath("spec.field")
	if !c.has(owned) {
		t.Error("one without a controller is left out")
	}
	if err := unstructured.SetNestedSlice(owned.Object, []any{map[string]any{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}}, "metadata", "ownerReferences"); err != nil {
		t.Fatal(err)
	}
	if c.has(owned) {
		t.Error("one with a controller is not")
	}
}
