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
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	ns = "tasks"
	// withGates are the cluster's arguments at first, withoutGates later. The
	// server flow is off: it would do by itself what is tried here.
	withGates    = "FeatureLifecycle=false,StorageVersionMigrator=true,MaxUnavailableStatefulSet=true,ClusterTrustBundle=true,ClusterTrustBundleProjection=true"
	withoutGates = "FeatureLifecycle=false,StorageVersionMigrator=true,MaxUnavailableStatefulSet=false,ClusterTrustBundle=false,ClusterTrustBundleProjection=false"
)

// TestMain lets all subtests run at once: most of them wait for half a minute,
// until something is tried again.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// TestTasks shares one cluster, since starting one takes longer than most of
// what is tried. Its subtests have resources of their own. Gates are on first,
// so that objects get what is to be cleared, then off.
func TestTasks(t *testing.T) {
	config := localcluster.Config{
		FeatureGates: withGates,
		Only:         []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager},
		ExtraArgs: map[string][]string{
			localcluster.APIServer: {"--runtime-config=certificates.k8s.io/v1beta1=true,storagemigration.k8s.io/v1beta1=true"},
			// The migrator needs the garbage collector's view of the cluster. No
			// other controller may write what these tests compare.
			localcluster.ControllerManager: {"--controllers=garbage-collector-controller,storage-version-migrator-controller"},
		},
	}
	w := newWorld(t, framework.Start(t, config))
	w.makeNamespace(t)

	t.Run("gates on", func(t *testing.T) {
		t.Run("WaitForNone names pods and waits for them", w.waitForPods)
	})
	sets := w.makeStatefulSets(t)
	w.makeBundles(t)
	// The garbage collector, whose view the migrator needs, notices it at once
	// when it begins with it.
	w.serve(t, migrated)
	off := withoutGates
	if err := w.Restart(t.Context(), &off); err != nil {
		t.Fatalf("restarting with the gates off: %v", err)
	}
	t.Run("gates off", func(t *testing.T) {
		// It reads every collection, so it comes before those with garbage in them.
		t.Run("ClearCollection of an API that is gone", w.clearBundles)
		for name, test := range map[string]func(*testing.T){
			"ClearField changes nothing else (S7)":            func(t *testing.T) { w.clearStatefulSets(t, sets) },
			"ClearPodTemplates clears every workload kind":    w.clearTemplates,
			"ClearField and an admission policy":              w.deniedByPolicy,
			"ClearField and a webhook":                        w.deniedByWebhook,
			"ClearField and a webhook that is gone":           w.unreachableWebhook,
			"ClearField and a schema that became stricter":    w.stricterSchema,
			"ClearField and the owners of atomic lists":       w.ownedLists,
			"ClearCollection through the API":                 w.clearCustomResources,
			"ClearCollection with garbage, custom":            w.clearGarbageCustom,
			"ClearCollection with garbage, built in":          w.clearGarbageBuiltIn,
			"ClearCollection of what is not served":           w.clearUnserved,
			"tasks of one namespace":                          w.limited,
			"MigrateStorage of a custom resource":             w.migrateCustom,
			"MigrateStorage of a built-in resource":           w.migrateBuiltIn,
			"Apply of a definition and an object of it":       w.applyDefinition,
			"Apply of a field that another manager has taken": w.applyConflict,
			"Apply of two flows":                              w.applyOfTwoFlows,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
}

func (w *world) makeNamespace(t *testing.T) {
	t.Helper()
	if _, err := w.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Pods want it, and no controller makes it.
	if _, err := w.Kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// attempt is one of a transition of its own for each test, whose progress is not
// read.
func attempt(t *testing.T) task.Attempt {
	return task.Attempt{Feature: "Test", TransitionID: t.Name(), Report: func(task.Progress) {}}
}

// run runs a task that has to succeed.
func run(t *testing.T, clients task.Clients, tasks ...task.Task) {
	t.Helper()
	for _, wanted := range tasks {
		if err := wanted.Run(t.Context(), clients, attempt(t)); err != nil {
			t.Fatalf("%s: %v", wanted.Name, err)
		}
	}
}

// runBlocked runs a task that has to be blocked with a message that says all
// the texts.
func runBlocked(t *testing.T, clients task.Clients, wanted task.Task, texts ...string) *task.BlockedError {
	t.Helper()
	err := wanted.Run(t.Context(), clients, attempt(t))
	var blocked *task.BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("%s: got %v, want it blocked", wanted.Name, err)
	}
	for _, text := range texts {
		if !strings.Contains(blocked.Message, text) {
			t.Errorf("%s: the message does not say %q: %s", wanted.Name, text, blocked.Message)
		}
	}
	if blocked.Until == nil {
		t.Fatalf("%s: nothing says when another attempt is worth it: %s", wanted.Name, blocked.Message)
	}
	return blocked
}

// until waits for what a blocked task waits for, after resolve has made it come,
// which it does once Until runs.
func until(t *testing.T, blocked *task.BlockedError, resolve func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- blocked.Until(ctx) }()
	resolve()
	begun := time.Now()
	if err := <-done; err != nil {
		t.Fatalf("waiting for the end of %q: %v", blocked.Message, err)
	}
	t.Logf("noticed after %s", time.Since(begun).Round(time.Millisecond))
}

// find returns what a task finds.
func find(t *testing.T, clients task.Clients, wanted task.Task) []v1alpha1.ResourceLeftovers {
	t.Helper()
	found, err := wanted.Find(t.Context(), clients)
	if err != nil {
		t.Fatalf("finding for %s: %v", wanted.Name, err)
	}
	return found
}

// count is the number of objects a task finds.
func count(t *testing.T, clients task.Clients, wanted task.Task) int64 {
	t.Helper()
	var sum int64
	for _, found := range find(t, clients, wanted) {
		sum += found.Count
	}
	return sum
}

// declared checks tasks the way the catalog's are checked.
func declared(t *testing.T, tasks ...task.Task) []task.Task {
	t.Helper()
	if err := lifecycle.Validate([]lifecycle.Feature{{Name: "Test", OnDisable: tasks}}); err != nil {
		t.Fatal(err)
	}
	return tasks
}
