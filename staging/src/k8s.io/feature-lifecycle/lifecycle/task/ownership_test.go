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
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	clienttesting "k8s.io/client-go/testing"
)

// ownedServer tracks field managers the way kube-apiserver does for a custom resource
// whose lists have no x-kubernetes-list-type: each list is one value.
type ownedServer struct {
	*server
	manager *managedfields.FieldManager
	// refuse, if not nil, is called before each patch.
	refuse func(patch string) error
	t      *testing.T
}

func serveOwned(t *testing.T) *ownedServer {
	s := &ownedServer{server: serve(), t: t}
	s.manager = managedfieldstest.NewFakeFieldManager(managedfields.NewDeducedTypeConverter(), widgetKind)
	s.PrependReactor("patch", "widgets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		action := a.(clienttesting.PatchActionImpl)
		if s.refuse != nil {
			if err := s.refuse(string(action.Patch)); err != nil {
				return true, nil, err
			}
		}
		object, err := s.patch(action)
		return true, object, err
	})
	return s
}

// live returns the object under test.
func (s *ownedServer) live() *unstructured.Unstructured {
	s.t.Helper()
	object, err := s.Tracker().Get(widgets, "ns", "a")
	if err != nil {
		s.t.Fatal(err)
	}
	return object.(*unstructured.Unstructured).DeepCopy()
}

// patch applies a JSON patch the way kube-apiserver does.
func (s *ownedServer) patch(action clienttesting.PatchActionImpl) (runtime.Object, error) {
	live := s.live()
	data, err := json.Marshal(live.Object)
	if err != nil {
		return nil, err
	}
	operations, err := jsonpatch.DecodePatch(action.Patch)
	if err != nil {
		return nil, err
	}
	if data, err = operations.Apply(data); err != nil {
		return nil, err
	}
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if wanted.GetResourceVersion() != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(widgets.GroupResource(), action.Name, errors.New("changed"))
	}
	if action.Subresource != "" {
		// As decodeLiveOrNew of apimachinery's managedfields has it.
		wanted.SetManagedFields(live.GetManagedFields())
	}
	written, err := s.manager.Update(live, wanted, action.PatchOptions.FieldManager)
	if err != nil {
		return nil, err
	}
	return s.store(written), nil
}

func (s *ownedServer) store(object runtime.Object) *unstructured.Unstructured {
	s.t.Helper()
	stored := object.(*unstructured.Unstructured)
	version, _ := strconv.Atoi(stored.GetResourceVersion())
	stored.SetResourceVersion(strconv.Itoa(version + 1))
	if err := s.Tracker().Update(widgets, stored.DeepCopy(), "ns"); err != nil {
		s.t.Fatal(err)
	}
	return stored
}

// create makes the object, as a manager by server-side apply.
func (s *ownedServer) create(manager, spec string) {
	s.t.Helper()
	object := widget("a", "")
	delete(object.Object, "spec")
	if err := s.Tracker().Create(widgets, object, "ns"); err != nil {
		s.t.Fatal(err)
	}
	// A server tracks from the creation on; else all would be before-first-apply's.
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "example.com/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:none":{}}}`),
	}})
	s.store(object)
	s.apply(manager, spec)
}

// apply applies the spec, and fails the test upon a conflict.
func (s *ownedServer) apply(manager, spec string) {
	s.t.Helper()
	if err := s.tryApply(manager, spec); err != nil {
		s.t.Errorf("%s applies %s: %v", manager, spec, err)
	}
}

func (s *ownedServer) tryApply(manager, content string) error {
	s.t.Helper()
	object, err := s.manager.Apply(s.live(), s.applied(content), manager, false)
	if err == nil && object != nil {
		s.store(object)
	}
	return err
}

// owners returns the fields by owner.
func (s *ownedServer) owners() map[string]string {
	s.t.Helper()
	owners := map[string]string{}
	for _, entry := range s.live().GetManagedFields() {
		owners[fmt.Sprintf("%s, %s%s", entry.Manager, entry.Operation, entry.Subresource)] = entry.FieldsV1.GetRawString()
	}
	return owners
}

func (s *ownedServer) clearing(field string) error {
	return ClearField(widgets, field).Run(s.t.Context(), s.clients(), ignored)
}

const (
	devices = `"spec":{"devices":[{"name":"x","taints":["t"]},{"name":"y"}],"hue":"red"}`
	// changed is devices as their driver applies them later.
	changed = `"spec":{"devices":[{"name":"x"},{"name":"y","size":1}],"hue":"red"}`
)

// TestClearFieldTakesOverNothing: managed fields are what they were, less the field.
func TestClearFieldTakesOverNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		begin func(s *ownedServer)
		field string
		// lost is what is not owned afterwards, of all that the driver owns.
		lost    string
		patches int
	}{
		"a field of its own": {
			begin: func(*ownedServer) {},
			field: "spec.hue", lost: `,"f:hue":{}`, patches: 1,
		},
		"a field in a list that is one value": {
			begin: func(*ownedServer) {},
			field: "spec.devices[*].taints", patches: 2,
		},
		"elements of a list that is one value": {
			begin: func(*ownedServer) {},
			field: "spec.devices[name=y]", patches: 2,
		},
		"a list that two have applied": {
			begin: func(s *ownedServer) { s.apply("other", strings.Replace(devices, `,"hue":"red"`, "", 1)) },
			field: "spec.devices[*].taints", patches: 2,
		},
		"a list that its owner gave up": {
			begin: func(s *ownedServer) { s.disown("f:devices") },
			field: "spec.devices[*].taints", patches: 2,
		},
		"no owner is tracked": {
			begin: func(s *ownedServer) {
				object := s.live()
				object.SetManagedFields(nil)
				s.store(object)
			},
			field: "spec.devices[*].taints", patches: 1,
		},
		"a list of status": {
			begin: func(s *ownedServer) { s.apply("kubelet", `"status":{"devices":[{"taints":["t"]}]}`) },
			field: "status.devices[*].taints", patches: 3,
		},
		"an owner in another version": {
			begin: func(s *ownedServer) { s.inVersion("example.com/v1beta1") },
			field: "spec.hue", lost: `,"f:hue":{}`, patches: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveOwned(t)
			s.create("driver", devices)
			tc.begin(s)
			want := s.owners()
			for owner, owned := range want {
				want[owner] = strings.Replace(owned, tc.lost, "", 1)
			}
			if err := s.clearing(tc.field); err != nil {
				t.Fatal(err)
			}
			path, err := ParsePath(tc.field)
			if err != nil {
				t.Fatal(err)
			}
			if left := path.Pointers(s.live().Object); len(left) > 0 {
				t.Errorf("the field is left at %s", left)
			}
			if diff := cmp.Diff(want, s.owners(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
			if got := len(s.patched()); got != tc.patches {
				t.Errorf("%d patches, want %d", got, tc.patches)
			}
			if err := s.clearing(tc.field); err != nil || len(s.patched()) != tc.patches {
				t.Errorf("another attempt wrote %d times, %v", len(s.patched())-tc.patches, err)
			}
		})
	}
}

// disown takes a field of spec from all its owners.
func (s *ownedServer) disown(field string) {
	s.t.Helper()
	s.eachEntry(func(entry *metav1.ManagedFieldsEntry) {
		entry.FieldsV1.SetRawString(strings.Replace(entry.FieldsV1.GetRawString(), `"`+field+`":{},`, "", 1))
	})
}

// inVersion gives all owners another API version.
func (s *ownedServer) inVersion(version string) {
	s.t.Helper()
	s.eachEntry(func(entry *metav1.ManagedFieldsEntry) { entry.APIVersion = version })
}

func (s *ownedServer) eachEntry(change func(*metav1.ManagedFieldsEntry)) {
	s.t.Helper()
	object := s.live()
	entries := object.GetManagedFields()
	for i := range entries {
		change(&entries[i])
	}
	object.SetManagedFields(entries)
	s.store(object)
}

// TestApplyWithoutConflictAfterClearing: the owner of a list applies it as ever.
func TestApplyWithoutConflictAfterClearing(t *testing.T) {
	s := serveOwned(t)
	s.create("driver", devices)
	if err := s.clearing("spec.devices[*].taints"); err != nil {
		t.Fatal(err)
	}
	s.apply("driver", changed)
	if err := s.tryApply("other", devices); !apierrors.IsConflict(err) {
		t.Errorf("another manager may write the driver's list: %v", err)
	}
}

// TestClearFieldGivesBackAfterACrash: an attempt ended between its two writes.
func TestClearFieldGivesBackAfterACrash(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(s *ownedServer)
		// same is false if the event changes ownership.
		same bool
	}{
		"nothing happens": {func(*ownedServer) {}, true},
		"the field returns by force": {func(s *ownedServer) {
			object, err := s.manager.Apply(s.live(), s.applied(devices), "driver", true)
			if err != nil {
				s.t.Fatal(err)
			}
			s.store(object)
		}, true},
		"another manager takes the list over": {func(s *ownedServer) {
			object := s.live()
			if err := unstructured.SetNestedField(object.Object, []any{"other"}, "spec", "devices"); err != nil {
				s.t.Fatal(err)
			}
			written, err := s.manager.Update(s.live(), object, "other")
			if err != nil {
				s.t.Fatal(err)
			}
			s.store(written)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveOwned(t)
			s.create("driver", devices)
			want := s.owners()
			first := true
			s.refuse = func(string) error {
				if !first {
					return context.Canceled
				}
				first = false
				return nil
			}
			if err := s.clearing("spec.devices[*].taints"); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want the second write to fail", err)
			}
			if got := s.owners()["feature-lifecycle, Update"]; !strings.Contains(got, "f:devices") {
				t.Fatalf("the first write has not taken the list over, this test tries nothing: %v", s.owners())
			}
			s.refuse = nil
			tc.happens(s)
			if err := s.clearing("spec.devices[*].taints"); err != nil {
				t.Fatal(err)
			}
			if !tc.same {
				want = map[string]string{"driver, Apply": `{"f:spec":{".":{},"f:hue":{}}}`, "other, Update": `{"f:spec":{"f:devices":{}}}`}
			}
			if diff := cmp.Diff(want, s.owners()); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// applied returns what a manager applies.
func (s *ownedServer) applied(content string) *unstructured.Unstructured {
	s.t.Helper()
	applied := &unstructured.Unstructured{}
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"ns","name":"a"},` + content + `}`
	if err := applied.UnmarshalJSON([]byte(text)); err != nil {
		s.t.Fatal(err)
	}
	return applied
}
