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
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const twoWidgets = `
# A comment is no object.
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: b, namespace: ns}
spec: {other: stays}
---
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: ns}
spec: {other: stays}
`

// applying makes the fake apply whole objects: field ownership is a real
// server's business (test/e2e_features/tasks).
func applying(objects ...*unstructured.Unstructured) *wire {
	w := migrating(objects...)
	w.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.PatchActionImpl)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(action.GetPatch()); err != nil {
			return true, nil, err
		}
		if len(action.PatchOptions.DryRun) > 0 {
			if is, err := w.Tracker().Get(action.GetResource(), action.GetNamespace(), action.GetName()); err == nil {
				object.SetUID(is.(*unstructured.Unstructured).GetUID())
			}
			return true, object, nil
		}
		err := w.Tracker().Update(action.GetResource(), object, action.GetNamespace())
		if apierrors.IsNotFound(err) {
			err = w.Tracker().Create(action.GetResource(), object, action.GetNamespace())
		}
		return true, object, err
	})
	return w
}

func (w *wire) applied() []string {
	names := []string{}
	for _, r := range w.requests("patch") {
		names = append(names, r.resource.Resource+" "+r.name)
	}
	return names
}

func TestApplyKeepsOrder(t *testing.T) {
	w := applying()
	task := Apply("x", []byte(twoWidgets))
	if err := task.Validate(); err != nil {
		t.Fatal(err)
	}
	var p progresses
	if err := task.Run(t.Context(), w.clients(), p.attempt(Progress{})); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"widgets b", "widgets a"}, w.applied()); diff != "" {
		t.Errorf("applied were (-want +got):\n%s", diff)
	}
	p.monotone(t, 2)
	if last := p.last(); last.Done != 2 {
		t.Errorf("progress ended with %+v", last)
	}
	w.permitted(t, task)
}

func TestApplyFindsMissingOrDifferingObjects(t *testing.T) {
	same := widget("a", "")
	same.SetResourceVersion("")
	different := widget("b", "x")
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		want    []string
	}{
		"nothing is there": {nil, []string{"ns/b", "ns/a"}},
		"one differs":      {[]*unstructured.Unstructured{same, different}, []string{"ns/b"}},
		"one is missing":   {[]*unstructured.Unstructured{same}, []string{"ns/b"}},
	} {
		w := applying(tc.objects...)
		task := Apply("x", []byte(twoWidgets))
		found, err := task.Find(t.Context(), w.clients())
		want := []v1alpha1.ResourceLeftovers{{Group: "example.com", Resource: "widgets", Count: int64(len(tc.want)), Examples: tc.want}}
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if written := w.requests("patch", "create", "delete"); len(written) > 0 {
			t.Errorf("%s: the finder wrote %v", name, written)
		}
		w.permitted(t, task)
	}
}

func TestApplyFindsObjectsWithoutDefinition(t *testing.T) {
	w := applying()
	found, err := Apply("x", []byte(twoWidgets)).Find(t.Context(), Clients{Dynamic: w, Mapper: mapperOf()})
	if err != nil || len(found) != 1 || found[0].Count != 2 || found[0].Resource != "widgets" {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestApplyBlockedByFieldOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Bool
		taken.Store(true)
		w := applying()
		w.before = func(_ context.Context, r request) error {
			if strings.HasSuffix(r.verb, "patch") && r.name == "b" && taken.Load() {
				return apierrors.NewConflict(widgets.GroupResource(), "b", errors.New(`conflict with "other": .spec.other`))
			}
			return nil
		}
		task := Apply("x", []byte(twoWidgets))
		blocked := blockedBy(t, task, w.clients(), ignored)
		if !strings.Contains(blocked.Message, "Widget ns/b") || !strings.Contains(blocked.Message, "other") {
			t.Errorf("got %q", blocked.Message)
		}
		done := stillBlocked(t, blocked)
		if n := len(w.requests()); n > 125 {
			t.Errorf("%d requests in an hour", n)
		}
		synctest.Wait()
		taken.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := task.Run(t.Context(), w.clients(), ignored); err != nil {
			t.Error(err)
		}
	})
}

// TestFlowsHaveOwnManagers: with one manager for all, what a flow has applied would
// be another's to overwrite, without a conflict.
func TestFlowsHaveOwnManagers(t *testing.T) {
	long := strings.Repeat("n", validation.DNS1123LabelMaxLength)
	of := map[string]string{}
	for _, flow := range []string{"", "red", "kube-system", long} {
		w := applying(widget("a", ""), held("c", own))
		managers := map[string]bool{}
		w.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			switch a := a.(type) {
			case clienttesting.PatchActionImpl:
				managers[a.PatchOptions.FieldManager] = true
				// Only the identity matters.
				return a.PatchType != types.ApplyPatchType, widget(a.Name, ""), nil
			case clienttesting.CreateActionImpl:
				managers[a.CreateOptions.FieldManager] = true
			case clienttesting.DeleteActionImpl:
				// Its finalizers hold it.
				return true, nil, nil
			}
			return false, nil, nil
		})
		clients := w.migrationClients()
		clients.Flow = flow
		applying := Apply("x", []byte(twoWidgets))
		if _, err := applying.Find(t.Context(), clients); err != nil {
			t.Fatal(err)
		}
		if err := applying.Run(t.Context(), clients, ignored); err != nil {
			t.Fatal(err)
		}
		if _, err := (clearField{resource: widgets, path: fieldPath(t)}).clear(t.Context(), clients, widget("a", "x")); err != nil {
			t.Fatal(err)
		}
		if _, err := (clearCollection{resource: widgets.GroupResource(), finalizers: []string{own}}).remove(t.Context(), clients, widgets, held("c", own)); err != nil {
			t.Fatal(err)
		}
		migrating, cancel := context.WithCancel(t.Context())
		w.before = func(_ context.Context, r request) error {
			if r.verb == "watch" {
				cancel()
			}
			return nil
		}
		_ = MigrateStorage(widgets.GroupResource()).Run(migrating, clients, ignored)
		cancel()
		if len(w.requests("create")) == 0 || len(w.requests("patch")) < 4 || len(w.requests("dry-run patch")) == 0 {
			t.Fatalf("not everything was written: %v", w.requests())
		}
		names := slices.Collect(maps.Keys(managers))
		if len(names) != 1 {
			t.Fatalf("flow %q writes as %v", flow, names)
		}
		if problems := metav1validation.ValidateFieldManager(names[0], nil); names[0] == "" || len(problems) > 0 {
			t.Errorf("the manager of flow %q is %q: %v", flow, names[0], problems)
		}
		if other, ok := of[names[0]]; ok {
			t.Errorf("%q is the manager of flow %q and of %q", names[0], other, flow)
		}
		of[names[0]] = flow
	}
}

// fieldPath returns the path of what is cleared.
func fieldPath(t *testing.T) Path {
	t.Helper()
	path, err := ParsePath("spec.field")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const definitionAndWidget = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: ns}
`

func TestApplyWaitsUntilADefinitionIsEstablished(t *testing.T) {
	for name, establish := range map[string]bool{"it is": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := applying()
				kinds := mapperOf(widgetKind)
				kinds.add(crds.GroupVersion().WithKind("CustomResourceDefinition"))
				task := Apply("x", []byte(definitionAndWidget))
				done := make(chan error, 1)
				go func() { done <- task.Run(t.Context(), Clients{Dynamic: w, Mapper: kinds}, ignored) }()
				<-time.After(20 * time.Second)
				if diff := cmp.Diff([]string{"customresourcedefinitions widgets.example.com"}, w.applied()); diff != "" {
					t.Errorf("applied were (-want +got):\n%s", diff)
				}
				if establish {
					w.establish(t)
				}
				err := <-done
				if (err == nil) != establish || (err != nil && !strings.Contains(err.Error(), "not established within 1m0s")) {
					t.Errorf("got %v", err)
				}
				if got := len(w.applied()); (got == 2) != establish {
					t.Errorf("applied were %v", w.applied())
				}
				w.permitted(t, task)
			})
		})
	}
}

func (w *wire) establish(t *testing.T) {
	t.Helper()
	found, err := w.Tracker().Get(crds, "", "widgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	definition := found.(*unstructured.Unstructured).DeepCopy()
	definition.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	if err := w.Tracker().Update(crds, definition, ""); err != nil {
		t.Fatal(err)
	}
}

func TestInvalidManifests(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\n"
	for name, tc := range map[string]struct{ manifests, says string }{
		"none":                     {"# nothing\n", "there are none"},
		"an object without a name": {object, "document 1 needs apiVersion, kind and metadata.name"},
		"the second is no object":  {object + "metadata: {name: a}\n---\nkind: X\n", "document 2 needs"},
		"no YAML":                  {"a: [", "Apply/x"},
		"a list":                   {"- a\n- b\n", "Apply/x"},
		"a text":                   {"text\n", "Apply/x"},
	} {
		if err := Apply("x", []byte(tc.manifests)).Validate(); err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "Apply/x") {
			t.Errorf("%s: got %v, want it to say %q and name the task", name, err, tc.says)
		}
	}
}

func TestFuncUsesOwnFunctions(t *testing.T) {
	rule := rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: []string{"r"}, Verbs: []string{"v"}}
	failure := errors.New("no")
	task := Func(Own{
		Name: "x", Description: "does it",
		Find:   func(context.Context, Clients) ([]v1alpha1.ResourceLeftovers, error) { return nil, failure },
		Run:    func(context.Context, Clients, Attempt) error { return failure },
		Fields: []Field{{Path: "spec.x"}}, Rules: []rbacv1.PolicyRule{rule},
	})
	if err := task.Validate(); err != nil || task.Name != "Func/x" || task.Description != "does it" {
		t.Errorf("%v: %+v", err, task)
	}
	if diff := cmp.Diff([]rbacv1.PolicyRule{rule}, task.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if err := task.Run(t.Context(), Clients{}, ignored); !errors.Is(err, failure) {
		t.Error(err)
	}
	if diff := cmp.Diff([]Field{{Path: "spec.x"}}, task.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if err := Func(Own{Name: "x"}).Validate(); err == nil {
		t.Error("one without functions is valid")
	}
}
