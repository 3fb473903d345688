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
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// deny returns a webhook's denial with a code of its choice, as
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors makes it.
func deny(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: `admission webhook "w.example.com" denied the request: no`}}
}

// TestDenialWithAnyCode checks the codes that webhooks choose: some send 500 or 409.
func TestDenialWithAnyCode(t *testing.T) {
	policy := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized,
		Message: `widgets.example.com "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`}}
	for name, err := range map[string]error{
		"a webhook, 400": deny(400), "a webhook, 403": deny(403), "a webhook, 409": deny(409), "a webhook, 422": deny(422),
		"a webhook, 500": deny(500), "a webhook, 503": deny(503), "a policy, 401": policy,
	} {
		t.Run(name, func(t *testing.T) {
			w := &wire{server: serve(widget("a", "x")), before: func(_ context.Context, r request) error {
				if r.verb == "patch" || r.verb == "delete" {
					return err
				}
				return nil
			}}
			for _, of := range []Task{ClearField(widgets, "spec.field"), ClearCollection(widgets.GroupResource())} {
				blocked := blockedBy(t, of, w.clients(), ignored)
				if !strings.Contains(blocked.Message, "ns/a") || !strings.Contains(blocked.Message, "denied") {
					t.Errorf("%s: the message does not say what denies: %s", of.Name, blocked.Message)
				}
			}
			if n := len(w.requests("patch")); n != 1 {
				t.Errorf("%d patches, want 1: there is no conflict with a write", n)
			}
		})
	}
}

// TestClearFieldCountsDeletedObjectsAsDone: deleted, or deleted and made again, between
// being read and being written.
func TestClearFieldCountsDeletedObjectsAsDone(t *testing.T) {
	other := widget("a", "y")
	other.SetUID("other")
	for name, tc := range map[string]struct {
		act     func(s *server) error
		refusal error
		patches int
	}{
		"deleted": {func(s *server) error { return s.Tracker().Delete(widgets, "ns", "a") },
			apierrors.NewNotFound(widgets.GroupResource(), "a"), 1},
		"deleted once a conflict was met": {func(s *server) error { return s.Tracker().Delete(widgets, "ns", "a") },
			apierrors.NewConflict(widgets.GroupResource(), "a", errors.New("changed")), 1},
		// The next pass sees the other one.
		"made again": {func(s *server) error { return s.Tracker().Update(widgets, other, "ns") },
			apierrors.NewInvalid(widgetKind.GroupKind(), "a", nil), 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, acted := &wire{server: serve(widget("a", "x"))}, false
			w.before = func(_ context.Context, r request) error {
				if r.verb != "patch" || acted {
					return nil
				}
				acted = true
				return errors.Join(tc.act(w.server), tc.refusal)
			}
			if err := ClearField(widgets, "spec.field").Run(t.Context(), w.clients(), ignored); err != nil {
				t.Error(err)
			}
			if n := len(w.requests("patch")); n != tc.patches {
				t.Errorf("%d patches, want %d", n, tc.patches)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	w := &wire{server: serve(many(60)...), before: func(_ context.Context, r request) error {
		if r.verb == "patch" {
			return apierrors.NewForbidden(widgets.GroupResource(), r.name, errors.New(strings.Repeat("é", 100_000)))
		}
		return nil
	}}
	blocked := blockedBy(t, ClearField(widgets, "spec.field"), w.clients(), ignored)
	if len(blocked.Message) > 5000 || !strings.Contains(blocked.Message, "60 objects") || strings.ToValidUTF8(blocked.Message, "") != blocked.Message {
		t.Errorf("a message of %d bytes: %s", len(blocked.Message), blocked.Message)
	}
}

// TestUntilEndsWhenRefusalEnds: at no other time, and without a hot loop.
func TestUntilEndsWhenRefusalEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *server, permit func()){
		"it may be cleared": func(_ *testing.T, _ *server, permit func()) { permit() },
		"it is deleted": func(t *testing.T, s *server, _ func()) {
			if err := s.Tracker().Delete(widgets, "ns", "a"); err != nil {
				t.Error(err)
			}
		},
		"another client cleared it": func(t *testing.T, s *server, _ func()) {
			if err := s.Tracker().Update(widgets, widget("a", ""), "ns"); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var denied atomic.Bool
				denied.Store(true)
				w := &wire{server: serve(widget("a", "x"), widget("b", "x"))}
				w.before = func(_ context.Context, r request) error {
					if r.verb == "patch" && denied.Load() {
						return deny(403)
					}
					return nil
				}
				clearing := ClearField(widgets, "spec.field")
				blocked := blockedBy(t, clearing, w.clients(), ignored)
				before := len(w.requests())
				done := stillBlocked(t, blocked)
				// One object is read and tried every half a minute.
				if n := len(w.requests()) - before; n > 2*120 {
					t.Errorf("%d requests in an hour", n)
				}
				synctest.Wait()
				end(t, w.server, func() { denied.Store(false) })
				begun := time.Now()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took > time.Minute {
					t.Errorf("noticed after %s", took)
				}
				w.permitted(t, clearing)
			})
		})
	}
}

func TestUntilEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{server: serve(widget("a", "x")), before: func(_ context.Context, r request) error {
			if r.verb == "patch" {
				return deny(403)
			}
			return nil
		}}
		blocked := blockedBy(t, ClearField(widgets, "spec.field"), w.clients(), ignored)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour+time.Second)
		defer cancel()
		if err := blocked.Until(ctx); err == nil {
			t.Error("the end of the server was taken for the end of what blocks")
		}
	})
}

// clearNaively is the twin of ClearField: it visits everything and removes what has the
// path.
func clearNaively(value any, path []string) {
	switch {
	case len(path) == 0:
	case strings.HasSuffix(path[0], "[*]"):
		object, _ := value.(map[string]any)
		list, _ := object[strings.TrimSuffix(path[0], "[*]")].([]any)
		for _, element := range list {
			clearNaively(element, path[1:])
		}
	default:
		object, _ := value.(map[string]any)
		if len(path) == 1 {
			delete(object, path[0])
			return
		}
		clearNaively(object[path[0]], path[1:])
	}
}

// keys look alike, and like what JSON pointers and patches have a meaning for.
var keys = rapid.SampledFrom([]string{"a", "aa", "a1", "0", "1", "-", "A", "b", "é"})

func anything(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		switch {
		case kind < 3 && depth > 0:
			object := map[string]any{}
			for _, key := range rapid.SliceOfN(keys, 0, 4).Draw(t, "keys") {
				object[key] = anything(depth-1).Draw(t, key)
			}
			return object
		case kind < 5 && depth > 0:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				list = append(list, anything(depth-1).Draw(t, "element"))
			}
			return list
		case kind == 5:
			return nil
		default:
			return rapid.SampledFrom([]any{"", "text", int64(0), int64(7), true, 1.5}).Draw(t, "value")
		}
	})
}

// TestClearFieldRemovesTheFieldAndNothingElse: the patches are applied by the
// same library as a real server's.
func TestClearFieldRemovesTheFieldAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := []string{"spec"}
		for _, key := range rapid.SliceOfN(keys, 1, 4).Draw(t, "path") {
			if rapid.Bool().Draw(t, "each") {
				key += "[*]"
			}
			path = append(path, key)
		}
		path[len(path)-1] = strings.TrimSuffix(path[len(path)-1], "[*]")
		object := widget("a", "")
		object.Object["spec"] = anything(5).Draw(t, "spec")
		want := runtime.DeepCopyJSON(object.Object)
		clearNaively(want, path)
		changed := cmp.Diff(object.Object, want) != ""

		s := serve(object)
		clearing := ClearField(widgets, strings.Join(path, "."))
		if err := clearing.Validate(); err != nil {
			t.Fatal(err)
		}
		if err := clearing.Run(t.Context(), s.clients(), ignored); err != nil {
			t.Fatal(err)
		}
		is, err := s.Tracker().Get(widgets, "ns", "a")
		if err != nil {
			t.Fatal(err)
		}
		got := is.(*unstructured.Unstructured).Object
		if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", strings.Join(path, "."), diff)
		}
		if written := len(s.patched()) > 0; written != changed {
			t.Fatalf("%s: written: %t, has the field: %t", strings.Join(path, "."), written, changed)
		}
	})
}

// normal has numbers as JSON has them.
func normal(t *rapid.T, object map[string]any) map[string]any {
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]any
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestProgressExcludesRemainingObjects: an object that refuses, or that the server did not
// write, is not done.
func TestProgressExcludesRemainingObjects(t *testing.T) {
	for name, cause := range map[string]error{
		"one refuses":           apierrors.NewForbidden(widgets.GroupResource(), "b", errors.New("no")),
		"the server is in need": apierrors.NewInternalError(errors.New("etcd is away")),
	} {
		s := serve(widget("a", "x"), widget("b", "x"), widget("c", ""))
		s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.(clienttesting.PatchAction).GetName() == "b", nil, cause
		})
		var last Progress
		if err := ClearField(widgets, "spec.field").Run(t.Context(), s.clients(), Attempt{Report: func(p Progress) { last = p }}); err == nil {
			t.Errorf("%s: the task is done", name)
		}
		if last.Done != 2 || last.Total != 3 {
			t.Errorf("%s: %d of %d are done, want 2 of 3", name, last.Done, last.Total)
		}
	}
}
