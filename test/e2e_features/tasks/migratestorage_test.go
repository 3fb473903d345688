//go:build linux

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

package tasks

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

var migrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1beta1", Resource: "storageversionmigrations"}

var migrated = customKind("Migrated")

// storedVersion is the apiVersion of an object as it is stored in JSON.
func (w *world) storedVersion(t *testing.T, key string) string {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("reading %s: %v, %v", key, found, err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(found.Kvs[0].Value); err != nil {
		t.Fatalf("decoding %s: %v", key, err)
	}
	return object.GetAPIVersion()
}

func (w *world) noMigrationsOf(t *testing.T, resource string) {
	t.Helper()
	list, err := w.objects.Resource(migrations).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if of, _, _ := unstructured.NestedString(m.Object, "spec", "resource", "resource"); of == resource {
			t.Errorf("storage version migration %s is left: %v", m.GetName(), m.Object["status"])
		}
	}
}

func (w *world) migrateCustom(t *testing.T) {
	k := migrated
	for _, name := range []string{"a", "b"} {
		w.objects.Create(t, k.resource, k.object(name, map[string]any{}))
	}
	w.objects.Define(t, k.definition("v2"))
	const prefix = "/registry/tasks.example.com/migrateds/tasks/"
	framework.WaitFor(t, "objects to be stored as v2", func() bool {
		name := "new"
		_ = w.objects.Resource(k.resource).Namespace(ns).Delete(t.Context(), name, metav1.DeleteOptions{})
		w.objects.Create(t, k.resource, k.object(name, map[string]any{}))
		return w.storedVersion(t, prefix+name) == group+"/v2"
	})
	migrating := lifecycle.MigrateStorage(k.resource.GroupResource())
	clients := w.withStorage(t, declared(t, migrating)...)
	if found := find(t, clients, migrating); len(found) != 1 || found[0].Count != 2 {
		t.Errorf("found %v, want the two objects that are stored as v1", found)
	}
	withoutStorage := clients
	withoutStorage.Storage = nil
	if n := count(t, withoutStorage, migrating); n != 3 {
		t.Errorf("found %d without access to storage, want all 3", n)
	}
	w.migrate(t, clients, migrating, k.resource, "new")
	for _, name := range []string{"a", "b", "new"} {
		if version := w.storedVersion(t, prefix+name); version != group+"/v2" {
			t.Errorf("%s is stored as %s", name, version)
		}
	}
	if found := find(t, clients, migrating); len(found) != 0 {
		t.Errorf("found %v after the migration", found)
	}
	w.noMigrationsOf(t, k.resource.Resource)
}

// migrate runs a task until it succeeds, and keeps writing one object meanwhile:
// the migrator waits until its cache has seen a version as new as the migration,
// which without a write takes a minute or two.
func (w *world) migrate(t *testing.T, clients task.Clients, migrating task.Task, resource schema.GroupVersionResource, name string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	touching.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			change := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
			_, _ = w.objects.Resource(resource).Namespace(ns).Patch(ctx, name, types.MergePatchType, change, metav1.PatchOptions{})
		}, time.Second)
	})
	clearAll(t, clients, migrating)
	stop()
	touching.Wait()
}

func (w *world) migrateBuiltIn(t *testing.T) {
	scalers := schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "now"},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "StatefulSet", Name: "s", APIVersion: "apps/v1"}},
	}
	if _, err := w.Kube.AutoscalingV2().HorizontalPodAutoscalers(ns).Create(t.Context(), scaler, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// An older server stored this one.
	const key = "/registry/horizontalpodautoscalers/tasks/old"
	const old = `{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"old","namespace":"tasks","uid":"8d7b7b1c-6d0b-4f0e-9a44-0c8d3c5e9c11","creationTimestamp":"2026-01-01T00:00:00Z"},` +
		`"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"StatefulSet","name":"s","apiVersion":"apps/v1"}}}`
	if _, err := w.etcd.Put(t.Context(), key, old); err != nil {
		t.Fatal(err)
	}
	migrating := lifecycle.MigrateStorage(scalers)
	clients := w.withStorage(t, declared(t, migrating)...)
	if found := find(t, clients, migrating); len(found) != 1 || found[0].Count != 1 || found[0].Examples[0] != "tasks/old" {
		t.Errorf("found %v, want the one that is stored as v1", found)
	}
	w.migrate(t, clients, migrating, scalers.WithVersion("v2"), "now")
	if found := find(t, clients, migrating); len(found) != 0 {
		t.Errorf("found %v after the migration", found)
	}
	if n := w.keys(t, "/registry/horizontalpodautoscalers/"); n != 2 {
		t.Errorf("%d objects are stored, want 2", n)
	}
	w.noMigrationsOf(t, scalers.Resource)
}
