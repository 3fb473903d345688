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
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
)

func TestWaitForNoneNamesObjects(t *testing.T) {
	waiting := WaitForNone(widgets, "the old field", "spec.field")
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"one":             {append(many(1), widget("without", "")), "waiting for 1 widgets.example.com using the old field: ns/w00"},
		"as many as fit":  {many(5), "waiting for 5 widgets.example.com using the old field: ns/w00, ns/w01, ns/w02, ns/w03, ns/w04"},
		"more than fit":   {many(7), "waiting for 7 widgets.example.com using the old field: ns/w00, ns/w01, ns/w02, ns/w03, ns/w04 and 2 more"},
		"more than pages": {many(90), "waiting for 90 widgets.example.com using the old field: ns/w00, ns/w01, ns/w02, ns/w03, ns/w04 and 85 more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{server: serve(tc.objects...), size: 20}
			var p progresses
			if blocked := blockedBy(t, waiting, w.clients(), p.attempt(Progress{})); blocked.Message != tc.want {
				t.Errorf("got  %q\nwant %q", blocked.Message, tc.want)
			}
			p.monotone(t, int64(len(tc.objects)))
			if n := len(w.requests()) - len(w.requests("list", "watch", "get")); n > 0 {
				t.Errorf("it did more than read: %v", w.requests())
			}
		})
	}
}

// TestWaitForNoneNamesPods: core resources have no group to be named.
func TestWaitForNoneNamesPods(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "ns", "name": name},
			"spec": map[string]any{"volumes": []any{map[string]any{"projected": map[string]any{"sources": []any{map[string]any{"clusterTrustBundle": map[string]any{}}}}}}},
		}}
	}
	s := &server{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{pods: "PodList"}, pod("a"), pod("b"))}
	waiting := WaitForNone(pods, "volume source clusterTrustBundle", "spec.volumes[*].projected.sources[*].clusterTrustBundle")
	if blocked := blockedBy(t, waiting, s.clients(), ignored); blocked.Message != "waiting for 2 pods using volume source clusterTrustBundle: ns/a, ns/b" {
		t.Errorf("got %q", blocked.Message)
	}
}

// TestWaitForNoneTakesNullForUnset checks a type that does not omit the field: it shows
// null for every unset one.
func TestWaitForNoneTakesNullForUnset(t *testing.T) {
	unset := widget("a", "")
	unset.Object["spec"] = map[string]any{"field": nil}
	if err := WaitForNone(widgets, "the field", "spec.field").Run(t.Context(), serve(unset).clients(), ignored); err != nil {
		t.Errorf("null counts as use: %v", err)
	}
}

func TestWaitForNoneWithAValue(t *testing.T) {
	s := serve(widget("a", "x"), widget("b", "y"), widget("c", "xx"), widget("d", ""))
	blocked := blockedBy(t, WaitForNone(widgets, "x", "spec.field=x", "spec.nothing"), s.clients(), ignored)
	if !strings.HasSuffix(blocked.Message, ": ns/a") {
		t.Errorf("got %q, want only a", blocked.Message)
	}
	if err := WaitForNone(widgets, "z", "spec.field=z").Run(t.Context(), s.clients(), ignored); err != nil {
		t.Error(err)
	}
}

func TestWaitForNoneWhere(t *testing.T) {
	s := serve(widget("a", "1x"), widget("b", "y"), widget("c", "x1"), widget("d", ""))
	digits := func(value any) bool { return strings.HasPrefix(value.(string), "1") }
	blocked := blockedBy(t, WaitForNoneWhere(widgets, "a digit", digits, "spec.nothing", "spec.field"), s.clients(), ignored)
	if want := "waiting for 1 widgets.example.com using a digit: ns/a"; blocked.Message != want {
		t.Errorf("got %q, want %q", blocked.Message, want)
	}
	if err := WaitForNoneWhere(widgets, "a digit", digits, "spec.").Validate(); err == nil {
		t.Error("a path that is none is accepted")
	}
}

func TestWaitForNoneRetriesWhenOneIsDeleted(t *testing.T) {
	other := widget("w02", "x")
	other.SetUID("another")
	for name, tc := range map[string]struct {
		act  func(s *server) error
		ends bool
	}{
		"one of them is deleted":  {func(s *server) error { return s.Tracker().Delete(widgets, "ns", "w02") }, true},
		"one gets another value":  {func(s *server) error { return s.Tracker().Update(widgets, widget("w02", "y"), "ns") }, true},
		"one loses the field":     {func(s *server) error { return s.Tracker().Update(widgets, widget("w02", ""), "ns") }, true},
		"one is another object":   {func(s *server) error { return s.Tracker().Update(widgets, other, "ns") }, true},
		"one is written as it is": {func(s *server) error { return s.Tracker().Update(widgets, widget("w02", "x"), "ns") }, false},
		"another is made":         {func(s *server) error { return s.Tracker().Create(widgets, widget("w9", "x"), "ns") }, false},
		"nothing happens":         {func(*server) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{server: serve(many(4)...)}
				waiting := WaitForNone(widgets, "x", "spec.field=x")
				blocked := blockedBy(t, waiting, w.clients(), ignored)
				endsOn(t, blocked, func() error { return tc.act(w.server) }, tc.ends)
				// A list and a watch for each of four, and watches that end in between.
				if n := len(w.requests()); n > 4*(2+60) {
					t.Errorf("%d requests in an hour", n)
				}
				w.permitted(t, waiting)
			})
		})
	}
}

// endsOn checks whether what a task waits for ends after an act, within an hour.
func endsOn(t *testing.T, blocked *BlockedError, act func() error, ends bool) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- blocked.Until(t.Context()) }()
	// The watches are there then.
	<-time.After(time.Minute)
	if err := act(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil || !ends {
			t.Errorf("it ended with %v, want it to end: %t", err, ends)
		}
	case <-time.After(time.Hour):
		if ends {
			t.Error("it did not end")
		}
	}
}

// TestObjectsOfAVersionThatIsNotServedAreWatchedInAnother: storage finds them in the
// declared version, in which the API would answer each watch with NotFound.
func TestObjectsOfAVersionThatIsNotServedAreWatchedInAnother(t *testing.T) {
	changed := widget("w00", "y")
	changed.SetAPIVersion(v2.GroupVersion().String())
	for name, tc := range map[string]struct {
		hasField bool
		act      func(s *server) error
		ends     bool
	}{
		"deleted, in a version with the field":             {true, func(s *server) error { return s.Tracker().Delete(v2, "ns", "w00") }, true},
		"another value, in a version with the field":       {true, func(s *server) error { return s.Tracker().Update(v2, changed, "ns") }, true},
		"deleted, in a version without the field":          {false, func(s *server) error { return s.Tracker().Delete(v2, "ns", "w00") }, true},
		"another value, in a version without the field":    {false, func(s *server) error { return s.Tracker().Update(v2, changed, "ns") }, false},
		"nothing happens, in a version with the field":     {true, func(*server) error { return nil }, false},
		"nothing happens, in a version that has no fields": {false, func(*server) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, clients := storeElsewhere(tc.hasField, widget("w00", "x"))
				waiting := WaitForNone(widgets, "x", "spec.field=x")
				blocked := blockedBy(t, waiting, clients, ignored)
				if want := "waiting for 1 widgets.example.com using x: ns/w00"; blocked.Message != want {
					t.Errorf("got %q, want %q", blocked.Message, want)
				}
				endsOn(t, blocked, func() error { return tc.act(e.server) }, tc.ends)
				e.permitted(t, waiting)
			})
		})
	}
}

func TestTasksForPodTemplates(t *testing.T) {
	for name, tasks := range map[string][]Task{
		"ClearPodTemplates": ClearPodTemplates("x", "spec.containers[*].x"),
		"WaitForNoneInPods": WaitForNoneInPods("x", "spec.containers[*].x", "spec.x=y"),
	} {
		seen := map[string]bool{}
		for _, of := range tasks {
			if err := of.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if seen[of.Name] {
				t.Errorf("%s: %s is there twice", name, of.Name)
			}
			seen[of.Name] = true
			writes := strings.Contains(fmt.Sprint(of.Rules), "patch")
			if want := name == "ClearPodTemplates" && !strings.Contains(of.Name, "jobs.batch/"); writes != (want || strings.Contains(of.Name, "ClearField/cronjobs.batch/")) {
				t.Errorf("%s writes: %t", of.Name, writes)
			}
		}
		for _, resource := range []string{"podtemplates", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers", "cronjobs.batch", "jobs.batch"} {
			found := false
			for task := range seen {
				found = found || strings.Contains(task, "/"+resource+"/")
			}
			if !found {
				t.Errorf("%s leaves out %s", name, resource)
			}
		}
		if last := tasks[len(tasks)-1].Name; name == "WaitForNoneInPods" && last != "WaitForNone/pods/x" {
			t.Errorf("pods are not the last, but %s; templates make more of them", last)
		}
	}
}
