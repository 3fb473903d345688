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
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// elsewhere returns a widget of another namespace than ns, which belongs to another
// installation.
func elsewhere(name, value string) *unstructured.Unstructured {
	object := widget(name, value)
	object.SetNamespace("other")
	return object
}

// limitable are tasks about widgets that can be limited to a namespace.
func limitable() []Task {
	return []Task{ClearField(widgets, "spec.field"), WaitForNone(widgets, "a field", "spec.field"), ClearCollection(widgets.GroupResource())}
}

// TestNamespacedTaskLeavesOthersAlone: two installations of an operator share a
// definition, and what one of them turns off is on in the other.
func TestNamespacedTaskLeavesOthersAlone(t *testing.T) {
	for _, of := range limitable() {
		limited := of.InNamespace("ns")
		if err := limited.Validate(); err != nil {
			t.Fatal(err)
		}
		// The unlimited task sees both.
		before := []*unstructured.Unstructured{widget("a", "x"), elsewhere("a", "y"), elsewhere("b", "y")}
		if found, err := of.Find(t.Context(), (&wire{server: serve(before...)}).clients()); err != nil || found[0].Count != 3 {
			t.Fatalf("%s finds %v, %v; want 3", of.Name, found, err)
		}
		w := &wire{server: serve(before...)}
		found, err := limited.Find(t.Context(), w.clients())
		if err != nil || len(found) != 1 || found[0].Count != 1 || !slices.Equal(found[0].Examples, []string{"ns/a"}) {
			t.Errorf("%s finds %v, %v; want ns/a alone", limited.Name, found, err)
		}
		err = limited.Run(t.Context(), w.clients(), ignored)
		var blocked *BlockedError
		switch {
		case limited.Waits && (!errors.As(err, &blocked) || !strings.Contains(blocked.Message, "1 widgets.example.com using a field: ns/a")):
			t.Errorf("%s: %v, want it to wait for ns/a alone", limited.Name, err)
		case !limited.Waits && err != nil:
			t.Errorf("%s: %v", limited.Name, err)
		}
		for _, was := range before[1:] {
			is, err := w.Tracker().Get(widgets, "other", was.GetName())
			if err != nil {
				t.Fatalf("%s: other/%s: %v", limited.Name, was.GetName(), err)
			}
			if diff := cmp.Diff(was, is); diff != "" {
				t.Errorf("%s changed other/%s (-before +after):\n%s", limited.Name, was.GetName(), diff)
			}
		}
		for _, r := range w.requests() {
			if r.namespace != "ns" && r.resource != crds.GroupResource() {
				t.Errorf("%s sent %v, and has to ask for nothing but what is in ns", limited.Name, r)
			}
		}
		w.permitted(t, limited)
	}
}

// TestWaitingInOneNamespaceEnds checks that others do not hold it.
func TestWaitingInOneNamespaceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := finalizing(t, "", widget("a", "x"), elsewhere("a", "y"))
		waiting := WaitForNone(widgets, "a field", "spec.field").InNamespace("ns")
		blocked := blockedBy(t, waiting, w.clients(), ignored)
		done := make(chan error, 1)
		go func() { done <- blocked.Until(t.Context()) }()
		synctest.Wait()
		if err := w.Tracker().Delete(widgets, "ns", "a"); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := waiting.Run(t.Context(), w.clients(), ignored); err != nil {
			t.Errorf("it waits for what is in another namespace: %v", err)
		}
		w.permitted(t, waiting)
	})
}

// TestStorageOfOneNamespace: what the API does not reach is limited, too.
func TestStorageOfOneNamespace(t *testing.T) {
	garbage := errors.New("garbage")
	clearing, unreadable := ClearCollection(widgets.GroupResource()).InNamespace("ns"), ClearUnreadable(widgets.GroupResource()).InNamespace("ns")
	for _, of := range []Task{clearing, unreadable} {
		// Whole pages of it belong to others.
		stored := []StoredObject{{Namespace: "ns", Name: "bad", Unreadable: garbage}, {Namespace: "ns", Name: "worse", Unreadable: garbage}}
		var kept []string
		for i := range 2*storedPageSize + 1 {
			o := StoredObject{Namespace: "before", Name: strings.Repeat("x", i+1), Unreadable: garbage}
			stored, kept = append(stored, o), append(kept, "before/"+o.Name)
		}
		s := store(stored...)
		clients := finalizing(t, "").unserved(s)
		found, err := of.Find(t.Context(), clients)
		if err != nil || len(found) != 1 || found[0].Count != 2 {
			t.Errorf("%s finds %v, %v; want 2", of.Name, found, err)
		}
		if err := of.Run(t.Context(), clients, ignored); err != nil {
			t.Errorf("%s: %v", of.Name, err)
		}
		if diff := cmp.Diff(kept, s.keys()); diff != "" {
			t.Errorf("%s: what is stored (-want +got):\n%s", of.Name, diff)
		}
	}
}

// TestStoredObjectsOfOtherNamespacesDoNotHold checks a removed API that has left
// objects of others.
func TestStoredObjectsOfOtherNamespacesDoNotHold(t *testing.T) {
	var others []StoredObject
	for i := range storedPageSize + 1 {
		others = append(others, StoredObject{Namespace: "before", Name: strings.Repeat("x", i+1)})
	}
	for name, tc := range map[string]struct {
		stored []StoredObject
		over   bool
	}{
		"others' alone":    {others, true},
		"one of their own": {append(others, StoredObject{Namespace: "ns", Name: "a"}), false},
	} {
		w := finalizing(t, "")
		w.before = func(context.Context, request) error { return apierrors.NewNotFound(widgets.GroupResource(), "") }
		err := ClearField(widgets, "spec.field").InNamespace("ns").Run(t.Context(), w.unserved(store(tc.stored...)), ignored)
		if (err == nil) != tc.over {
			t.Errorf("%s: %v, want it over: %t", name, err, tc.over)
		}
	}
}

// TestFindersOfOneNamespaceTogether: what is read of one namespace is not taken for all.
func TestFindersOfOneNamespaceTogether(t *testing.T) {
	w := finalizing(t, "", widget("a", "x"), elsewhere("a", "y"))
	of := ClearField(widgets, "spec.field")
	features := [][]Task{{of}, {of.InNamespace("ns")}, {of.InNamespace("other")}, {of.InNamespace("ns")}, {of.InNamespace("nobodys")}}
	finders, found, failed := findings(t.Context(), features)
	FindShared(t.Context(), w.clients(), finders)
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, f := range found {
		var examples []string
		for _, l := range f {
			examples = append(examples, l.Examples...)
		}
		slices.Sort(examples)
		got = append(got, examples)
	}
	if diff := cmp.Diff([][]string{{"ns/a", "other/a"}, {"ns/a"}, {"other/a"}, {"ns/a"}, nil}, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if lists := w.requests("list"); len(lists) != 4 {
		t.Errorf("there were the requests %v, want one for each namespace and one for all", lists)
	}
}

func TestTasksNotLimitable(t *testing.T) {
	of := ClearField(widgets, "spec.field")
	author := Func(Own{
		Name: "x",
		Find: func(context.Context, Clients) ([]v1alpha1.ResourceLeftovers, error) { return nil, nil },
		Run:  func(context.Context, Clients, Attempt) error { return nil },
	})
	for name, tc := range map[string]struct {
		task Task
		says string
	}{
		"a migration":             {MigrateStorage(widgets.GroupResource()).InNamespace("ns"), "rewrites every object of a resource"},
		"manifests":               {Apply("x", []byte(twoWidgets)).InNamespace("ns"), "its manifests name the namespaces"},
		"manifests that go":       {Remove("x", []byte(twoWidgets)).InNamespace("ns"), "its manifests name the namespaces"},
		"functions of an author":  {author.InNamespace("ns"), "NamespacedRules"},
		"no namespace":            {of.InNamespace(""), `to namespace ""`},
		"what is no namespace":    {of.InNamespace("a/b"), "lowercase"},
		"twice":                   {of.InNamespace("ns").InNamespace("other"), "limited to ns already"},
		"definitions":             {ClearCollection(crds.GroupResource()).InNamespace("ns"), "are in no namespace"},
		"one that is wrong as is": {ClearField(widgets, "").InNamespace("ns"), "path"},
	} {
		if err := tc.task.Validate(); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want it to say %q", name, err, tc.says)
		}
	}
}

// TestClusterScopedResourceNotLimited checks that a server answers a namespaced request
// as if it did not know the resource. That must not count as removed.
func TestClusterScopedResourceNotLimited(t *testing.T) {
	for _, of := range append(limitable(), ClearUnreadable(widgets.GroupResource())) {
		limited := of.InNamespace("ns")
		for name, storage := range map[string]Storage{"an operator": nil, "kube-apiserver": store(StoredObject{Name: "a"})} {
			w, kinds := finalizing(t, "", widget("a", "x")), mapperOf()
			kinds.add(widgetKind)
			clients := Clients{Dynamic: w, Mapper: kinds, Storage: storage}
			want := "widgets.example.com is in no namespace, and the task is limited to ns; declare it without InNamespace"
			if blocked := blockedBy(t, limited, clients, ignored); blocked.Message != want {
				t.Errorf("%s of %s: got %q, want %q", limited.Name, name, blocked.Message, want)
			}
			if found, err := limited.Find(t.Context(), clients); err == nil || err.Error() != want {
				t.Errorf("%s of %s: found %v, %v; want %q", limited.Name, name, found, err, want)
			}
			if len(w.requests()) > 0 {
				t.Errorf("%s of %s asked for %v", limited.Name, name, w.requests())
			}
		}
	}
}

func TestLimitedTaskDescribesLimit(t *testing.T) {
	of := ClearField(widgets, "status.x").WithDeadline(7).InNamespace("red")
	if of.Name != "ClearField/widgets.example.com/status.x/InNamespace/red" || !strings.HasSuffix(of.Description, "of widgets.example.com in namespace red") || of.Deadline != 7 {
		t.Errorf("it is %q, %q, with the deadline %d", of.Name, of.Description, of.Deadline)
	}
	if other := ClearField(widgets, "status.x").InNamespace("blue"); other.Name == of.Name {
		t.Errorf("those of two namespaces are called %s both", of.Name)
	}
	// Cluster-scoped objects stay.
	everywhere := definitionRules(widgets.GroupResource())
	inRed := []rbacv1.PolicyRule{rule(widgets.GroupResource(), "get", "list", "patch"), rule(schema.GroupResource{Group: widgets.Group, Resource: "widgets/status"}, "patch")}
	if diff := cmp.Diff(everywhere, of.Rules); diff != "" {
		t.Errorf("rules in all namespaces (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"red": inRed}, of.NamespacedRules); diff != "" {
		t.Errorf("rules by namespace (-want +got):\n%s", diff)
	}
	unreadable := ClearUnreadable(widgets.GroupResource()).InNamespace("red")
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{}, unreadable.NamespacedRules, cmpopts.EquateEmpty()); diff != "" || len(unreadable.Rules) > 0 {
		t.Errorf("what is in storage alone needs %v, %v", unreadable.Rules, unreadable.NamespacedRules)
	}
}

// outdated is a mapper that knows the scope of before until it is reset.
type outdated struct {
	mapper
	now mapper
}

func (o *outdated) Reset() { o.mapper = o.now }

// TestRecreatedNamespacedResourceLimited checks a definition that was created again,
// with namespaces.
func TestRecreatedNamespacedResourceLimited(t *testing.T) {
	before := mapperOf()
	before.add(widgetKind)
	w := finalizing(t, "", held("a"))
	clients := Clients{Dynamic: w, Mapper: &outdated{before, mapperOf(widgetKind)}}
	if found, err := ClearCollection(widgets.GroupResource()).InNamespace("ns").Find(t.Context(), clients); err != nil || len(found) != 1 || found[0].Count != 1 {
		t.Errorf("found %v, %v", found, err)
	}
}
