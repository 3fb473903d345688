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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

var (
	migrationVersion = migrations.WithVersion("v1beta1")
	migrationKind    = migrationVersion.GroupVersion().WithKind("StorageVersionMigration")
)

// migrating returns a server with the API of migrations.
func migrating(objects ...*unstructured.Unstructured) *wire {
	var list []runtime.Object
	for _, o := range objects {
		list = append(list, o)
	}
	return &wire{server: &server{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		widgets: "WidgetList", crds: "CustomResourceDefinitionList", migrationVersion: "StorageVersionMigrationList",
	}, list...)}}
}

func (w *wire) migrationClients() Clients {
	return Clients{Dynamic: w, Mapper: mapperOf(widgetKind, migrationKind)}
}

// only returns the only migration.
func (w *wire) only(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	list, err := w.Tracker().List(migrationVersion, migrationKind, "")
	if err != nil {
		t.Fatal(err)
	}
	items := list.(*unstructured.UnstructuredList).Items
	if len(items) != 1 {
		t.Fatalf("%d migrations, want 1", len(items))
	}
	return &items[0]
}

// migrator ends the only migration with a condition, as the controller does.
func (w *wire) migrator(t *testing.T, condition, message string) {
	t.Helper()
	migration := w.only(t).DeepCopy()
	err := unstructured.SetNestedSlice(migration.Object, []any{
		map[string]any{"type": "Running", "status": "False"},
		map[string]any{"type": condition, "status": "True", "message": message},
	}, "status", "conditions")
	if err == nil {
		err = w.Tracker().Update(migrationVersion, migration, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *wire) none(t *testing.T) {
	t.Helper()
	list, err := w.Tracker().List(migrationVersion, migrationKind, "")
	if err != nil {
		t.Fatal(err)
	}
	if items := list.(*unstructured.UnstructuredList).Items; len(items) > 0 {
		t.Errorf("migrations are left: %v", items)
	}
}

func TestMigrateStorageWaitsForTheMigrator(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(t *testing.T, w *wire)
		says string
	}{
		"it succeeds": {func(t *testing.T, w *wire) { w.migrator(t, "Succeeded", "") }, ""},
		"it fails":    {func(t *testing.T, w *wire) { w.migrator(t, "Failed", "an object is too large") }, "failed: an object is too large"},
		"another client deletes it": {func(t *testing.T, w *wire) {
			if err := w.Tracker().Delete(migrationVersion, "", w.only(t).GetName()); err != nil {
				t.Fatal(err)
			}
		}, "deleted by another client"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := migrating()
				task := MigrateStorage(widgets.GroupResource())
				done := make(chan error, 1)
				go func() { done <- task.Run(t.Context(), w.migrationClients(), ignored) }()
				select {
				case err := <-done:
					t.Fatalf("it ended before the migration: %v", err)
				case <-time.After(time.Hour):
				}
				want := map[string]any{"resource": map[string]any{"group": "example.com", "resource": "widgets"}}
				if diff := cmp.Diff(want, w.only(t).Object["spec"]); diff != "" {
					t.Errorf("the migration (-want +got):\n%s", diff)
				}
				tc.end(t, w)
				err := <-done
				if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
					t.Errorf("got %v, want it to say %q", err, tc.says)
				}
				w.none(t)
				w.permitted(t, task)
				if n := len(w.requests()); n > 100 {
					t.Errorf("%d requests in an hour", n)
				}
			})
		})
	}
}

// TestMigrateStorageResumesAfterCrash.
func TestMigrateStorageResumesAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := migrating()
		task := MigrateStorage(widgets.GroupResource())
		attempt := Attempt{Feature: "A", TransitionID: "1", Report: func(Progress) {}}
		ctx, crash := context.WithTimeout(t.Context(), time.Minute)
		defer crash()
		if err := task.Run(ctx, w.migrationClients(), attempt); err == nil {
			t.Fatal("it ended without the migrator")
		}
		begun := w.only(t).GetName()
		// It ended while no server looked.
		w.migrator(t, "Succeeded", "")
		if err := task.Run(t.Context(), w.migrationClients(), attempt); err != nil {
			t.Error(err)
		}
		if n := len(w.requests("create")); n != 2 || begun == "" {
			t.Errorf("%d attempts to create %s", n, begun)
		}
		w.none(t)
	})
}

func TestNamesOfMigrations(t *testing.T) {
	seen := map[string]string{}
	for _, flow := range []string{"", "red", "blue"} {
		for _, feature := range []string{"A", "B"} {
			for _, id := range []string{"1", "2"} {
				for _, resource := range []schema.GroupResource{widgets.GroupResource(), {Resource: "pods"}} {
					m, attempt := migrateStorage{resource}, Attempt{Feature: feature, TransitionID: id}
					name, of := m.name(flow, attempt), flow+" "+feature+id+resource.String()
					if other, ok := seen[name]; ok {
						t.Errorf("%s is the name for %s and for %s", name, other, of)
					}
					seen[name] = of
					attempt.Last = Progress{Done: 7}
					if again := m.name(flow, attempt); again != name {
						t.Errorf("another attempt at %s is %s, the first was %s", of, again, name)
					}
				}
			}
		}
	}
}

// TestFlowsKeepMigrationsApart: two operators have features of one name, and
// migrate one resource. A migration of an earlier transition goes, in its own flow.
func TestFlowsKeepMigrationsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := migrating()
		migrating := MigrateStorage(widgets.GroupResource())
		names := func() map[string]string {
			t.Helper()
			list, err := w.Resource(migrationVersion).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]string{}
			for _, migration := range list.Items {
				flow := migration.GetLabels()["features.k8s.io/namespace"]
				if other, ok := names[flow]; ok {
					t.Errorf("flow %q has the migrations %s and %s", flow, other, migration.GetName())
				}
				names[flow] = migration.GetName()
			}
			return names
		}
		begin := func(flow, transition string) {
			ctx, crash := context.WithTimeout(t.Context(), time.Minute)
			defer crash()
			clients := w.migrationClients()
			clients.Flow = flow
			if err := migrating.Run(ctx, clients, Attempt{Feature: "A", TransitionID: transition, Report: func(Progress) {}}); err == nil {
				t.Fatalf("flow %q ends without the migrator", flow)
			}
		}
		begin("red", "1")
		begin("blue", "1")
		both := names()
		if len(both) != 2 || both["red"] == "" || both["blue"] == "" || both["red"] == both["blue"] {
			t.Fatalf("there are the migrations %v, want one of each", both)
		}
		begin("red", "2")
		after := names()
		if len(after) != 2 || after["blue"] != both["blue"] || after["red"] == both["red"] {
			t.Errorf("after another transition of red there are %v, want red's replaced; before there were %v", after, both)
		}
	})
}

func TestMigrateStorageWithoutTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := migrating()
		clients := w.migrationClients()
		known := mapperOf(widgetKind)
		clients.Mapper = known
		blocked := blockedBy(t, MigrateStorage(widgets.GroupResource()), clients, ignored)
		for _, text := range []string{"StorageVersionMigrator", "--runtime-config=storagemigration.k8s.io/v1beta1=true", "kube-controller-manager"} {
			if !strings.Contains(blocked.Message, text) {
				t.Errorf("the message does not say %q: %s", text, blocked.Message)
			}
		}
		done := stillBlocked(t, blocked)
		synctest.Wait()
		known.add(migrationKind)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it did not notice the API within a minute")
		}
	})
}

func TestMigrateStorageFindsOldVersions(t *testing.T) {
	definition := func(stored ...any) *unstructured.Unstructured {
		d := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"versions": []any{
				map[string]any{"name": "v1", "storage": false}, map[string]any{"name": "v2", "storage": true},
			}},
			"status": map[string]any{"storedVersions": stored},
		}}
		d.SetGroupVersionKind(crds.GroupVersion().WithKind("CustomResourceDefinition"))
		d.SetName("widgets.example.com")
		return d
	}
	custom := store(StoredObject{Name: "a", APIVersion: "example.com/v1"}, StoredObject{Name: "b", APIVersion: "example.com/v2"}, StoredObject{Name: "c"})
	builtIn := store(StoredObject{Name: "a", Outdated: true}, StoredObject{Name: "b"}, StoredObject{Name: "c", Outdated: true})
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		storage Storage
		want    int64
	}{
		"a custom resource":                           {[]*unstructured.Unstructured{definition("v1", "v2")}, custom, 1},
		"a built-in one":                              {nil, builtIn, 2},
		"a custom one, without storage: all may be":   {[]*unstructured.Unstructured{definition("v1", "v2"), widget("a", ""), widget("b", "")}, nil, 2},
		"a custom one, of one version":                {[]*unstructured.Unstructured{definition("v2"), widget("a", "")}, nil, 0},
		"a built-in one, without storage: none known": {[]*unstructured.Unstructured{widget("a", "")}, nil, 0},
	} {
		w := migrating(tc.objects...)
		clients := w.migrationClients()
		clients.Storage = tc.storage
		task := MigrateStorage(widgets.GroupResource())
		found, err := task.Find(t.Context(), clients)
		n := int64(0)
		for _, f := range found {
			n += f.Count
		}
		if err != nil || n != tc.want {
			t.Errorf("%s: found %v, %v, want %d", name, found, err, tc.want)
		}
		w.permitted(t, task)
	}
	// A version that is switched off for a while does not mean that there are none.
	w := migrating(definition("v1", "v2"), widget("a", ""))
	if found, err := MigrateStorage(widgets.GroupResource()).Find(t.Context(), Clients{Dynamic: w, Mapper: mapperOf(migrationKind)}); err == nil {
		t.Errorf("found %v in a collection that is not served", found)
	}
}
