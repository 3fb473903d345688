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

package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycletest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

type gate = featuregate.Feature

// copies are what became of a feature's fields where the API takes them for text.
type copies struct {
	// revisions are ControllerRevisions that have them, applied annotations of
	// kubectl apply on objects that are still there.
	revisions, applied int
	// dropped, refused, unserved and returned count what was applied again with
	// the gate off: the server left the fields out, took the object for invalid,
	// did not serve the resource, or stored the fields.
	dropped, refused, unserved, returned int
}

func (c copies) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{{c.revisions, "revisions"}, {c.applied, "last-applied"}, {c.dropped, "dropped when applied again"}, {c.refused, "refused as invalid"}, {c.unserved, "not served"}, {c.returned, "stored again"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// neverReturned reports whether no field came back that was applied again. Objects whose API the
// servers' version does not serve tell nothing.
func (c copies) neverReturned() bool {
	return c.returned == 0 && (c.unserved == 0 || c.dropped+c.refused > 0)
}

func TestNeverReturned(t *testing.T) {
	for name, test := range map[string]struct {
		copies
		want bool
	}{
		"nothing was applied again":             {copies{}, true},
		"dropped":                               {copies{dropped: 1}, true},
		"stored again":                          {copies{dropped: 2, unserved: 1, returned: 1}, false},
		"no object is served":                   {copies{unserved: 2}, false},
		"one object is not, another is dropped": {copies{unserved: 1, dropped: 1}, true},
		"one object is not, another is refused": {copies{unserved: 1, refused: 1}, true},
	} {
		if got := test.neverReturned(); got != test.want {
			t.Errorf("%s: never returned is %t, want %t", name, got, test.want)
		}
	}
}

// uses reports whether a task of the feature finds something in an object.
func (w *world) uses(t *testing.T, entry catalog.Entry, object *unstructured.Unstructured, resource schema.GroupResource) bool {
	t.Helper()
	clients := lifecycletest.NewView([]lifecycletest.Object{{Unstructured: object, Resource: resource}}, w.Mapper, convert).Clients()
	return slices.ContainsFunc(entry.OnDisable, func(one task.Task) bool {
		found, err := one.Find(t.Context(), clients)
		if err != nil {
			t.Errorf("%s: task %s over a copy in %s %s: %v", entry.Name, one.Name, resource, object.GetName(), err)
		}
		return len(found) > 0
	})
}

// copied looks at the copies of a feature's fields with the gate off: those that
// its entry says stay have to be there, no manager may own a field that is gone,
// and applying again what was once applied must not bring a field back.
func (w *world) copied(t *testing.T, entry catalog.Entry, c *lifecycletest.Case, before, after *lifecycletest.View) (found copies, problems []string) {
	t.Helper()
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: "+format, append([]any{entry.Name}, args...)...))
	}
	own := c.Own(after)
	now := own.ByID()
	edited := false
	for _, object := range own.Objects {
		if template := revisionOf(object); template != nil && w.uses(t, entry, template, statefulSetResource) {
			found.revisions++
		}
		edited = edited || w.edited[object.ID()]
		for _, field := range entry.Stores() {
			if manager := ownerOfNothing(field, object); manager != "" {
				problem("%s has no %s any more, and the managed fields of %s have it", object.ID(), field.Path, manager)
			}
		}
	}
	templated := slices.ContainsFunc(entry.Stores(), func(f task.Field) bool {
		return f.Resource.Resource == statefulSetResource.Resource && strings.HasPrefix(f.Path, "spec.template.")
	})
	if edited && templated && found.revisions == 0 {
		problem("no ControllerRevision of its StatefulSet has the field although its template was edited; is the entry's OtherCopies right?")
	}
	for _, was := range c.Own(before).Objects {
		text := was.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
		applied := &unstructured.Unstructured{}
		if text == "" || applied.UnmarshalJSON([]byte(text)) != nil {
			continue
		}
		if !w.uses(t, entry, applied, was.Resource) {
			continue
		}
		is, exists := now[was.ID()]
		if exists {
			found.applied++
			if is.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != text {
				problem("the last-applied annotation of %s was changed", was.ID())
			}
		}
		stored, err := w.apply(t.Context(), applied, text, exists)
		switch {
		case apierrors.IsInvalid(err):
			found.refused++
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			found.unserved++
		case err != nil:
			problem("applying again what was once applied to %s fails for another reason than the gate: %v", was.ID(), err)
		case w.uses(t, entry, stored, was.Resource):
			found.returned++
			if entry.OnReapply == "" {
				problem("what was once applied to %s brings the field back with the gate off; make the server drop it, or say in OnReapply of its entry what it does then", was.ID())
			}
		default:
			found.dropped++
		}
	}
	problems = append(problems, w.rollback(t, entry, own)...)
	if entry.OnReapply != "" && found.neverReturned() {
		problem("nothing that was once applied brings the field back with the gate off; remove OnReapply from its entry (%s)", entry.OnReapply)
	}
	if (found.revisions > 0 || found.applied > 0) && entry.OtherCopies == "" {
		problem("copies of its fields are left (%s); say in OtherCopies of its entry what becomes of them", found)
	}
	return found, problems
}

// apply is what a GitOps tool does: it applies a text to the existing object, or
// recreates it, in the version that the text has. The server answers what it would
// store, and stores nothing.
func (w *world) apply(ctx context.Context, applied *unstructured.Unstructured, text string, exists bool) (*unstructured.Unstructured, error) {
	client, err := w.client(applied)
	if err != nil {
		return nil, err
	}
	dry := []string{metav1.DryRunAll}
	if exists {
		return client.Patch(ctx, applied.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{DryRun: dry})
	}
	return client.Create(ctx, applied, metav1.CreateOptions{DryRun: dry})
}

// rollback takes StatefulSets back to the revisions that have the field, as
// kubectl rollout undo does: that must not bring it back either.
func (w *world) rollback(t *testing.T, entry catalog.Entry, own *lifecycletest.View) (problems []string) {
	t.Helper()
	for _, revision := range own.Objects {
		template := revisionOf(revision)
		if template == nil || !w.uses(t, entry, template, statefulSetResource) {
			continue
		}
		data, err := json.Marshal(revision.Object["data"])
		if err != nil {
			return append(problems, err.Error())
		}
		for _, owner := range own.Of(statefulSetResource) {
			if !metav1.IsControlledBy(revision, owner) {
				continue
			}
			client, err := w.client(owner.Unstructured)
			if err != nil {
				return append(problems, err.Error())
			}
			stored, err := client.Patch(t.Context(), owner.GetName(), types.StrategicMergePatchType, data, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case apierrors.IsInvalid(err): // As good.
			case err != nil:
				problems = append(problems, fmt.Sprintf("%s: a rollback of %s to %s fails for another reason than the gate: %v", entry.Name, owner.ID(), revision.GetName(), err))
			case w.uses(t, entry, stored, owner.Resource) && entry.OnReapply == "":
				problems = append(problems, fmt.Sprintf("%s: a rollback of %s to %s brings the field back with the gate off; make the server drop it, or say in OnReapply of its entry what it does then", entry.Name, owner.ID(), revision.GetName()))
			}
		}
	}
	return problems
}

var statefulSetResource = schema.GroupResource{Group: "apps", Resource: "statefulsets"}

// copiedInto are the resources whose templates controllers copy, and into what.
var copiedInto = map[schema.GroupResource]string{
	statefulSetResource:                      "controllerrevisions",
	{Group: "apps", Resource: "daemonsets"}:  "controllerrevisions",
	{Group: "apps", Resource: "deployments"}: "replicasets",
}

// waitForCopies waits until controllers have copied the templates of all objects
// of cases as they are now. A controller copies what it finds when it comes to an
// object: of a template that is edited, or whose object is deleted, before that
// there is no copy, ever.
func (w *world) waitForCopies(t *testing.T, all ...*lifecycletest.Case) {
	t.Helper()
	var without []string
	err := wait.PollUntilContextTimeout(t.Context(), controllersPeriod, controllersPatience, true, func(context.Context) (bool, error) {
		without = nil
		view := w.stored(t)
		for _, c := range all {
			without = append(without, withoutCopies(c.Own(view))...)
		}
		return len(without) == 0, nil
	})
	if err != nil {
		t.Errorf("controllers did not copy the templates of %s: %v", strings.Join(without, ", "), err)
	}
}

// withoutCopies names the objects of whose templates controllers have yet to make
// the copies: those of an older generation do not count.
func withoutCopies(own *lifecycletest.View) []string {
	var without []string
	for _, object := range own.Objects {
		copies, has := copiedInto[object.Resource]
		if !has {
			continue
		}
		// Controllers say which generation they saw after they copied it.
		observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		made := slices.ContainsFunc(own.Objects, func(other lifecycletest.Object) bool {
			return other.Resource.Resource == copies && metav1.IsControlledBy(other, object)
		})
		if observed < object.GetGeneration() || !made {
			without = append(without, object.ID())
		}
	}
	return without
}

// revisionOf returns the StatefulSet that a ControllerRevision would make, nil for
// anything else.
func revisionOf(object lifecycletest.Object) *unstructured.Unstructured {
	owner := metav1.GetControllerOf(object)
	if object.Resource.Resource != "controllerrevisions" || owner == nil || owner.Kind != "StatefulSet" {
		return nil
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "data", "spec")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": owner.APIVersion, "kind": owner.Kind,
		"metadata": map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()},
		"spec":     spec,
	}}
}

// release edits the template of a StatefulSet that holds a feature, as an
// administrator does who keeps the set: so its revisions stay, too. Claim
// templates cannot be edited.
func (w *world) release(ctx context.Context, object lifecycletest.Object) (released bool, err error) {
	_, claims, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	if object.Resource != statefulSetResource || claims {
		return false, nil
	}
	client, err := w.client(object.Unstructured)
	if err != nil {
		return false, err
	}
	plain := `[{"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "RollingUpdate"}},
		{"op": "replace", "path": "/spec/template/spec", "value": {"nodeSelector": {"example.invalid/none": "true"}, "containers": [{"name": "c", "image": "example.invalid/c"}]}}]`
	_, err = client.Patch(ctx, object.GetName(), types.JSONPatchType, []byte(plain), metav1.PatchOptions{})
	if err == nil {
		w.edited[object.ID()] = true
	}
	return true, err
}

// ownerOfNothing names the manager that is said to own a field which the object
// does not have.
func ownerOfNothing(field task.Field, object lifecycletest.Object) string {
	if field.Path == "" || field.Resource != object.Resource {
		return ""
	}
	path, err := task.ParsePath(field.Path)
	if err != nil || len(path.Pointers(object.Object)) > 0 {
		return ""
	}
	for _, entry := range object.GetManagedFields() {
		var tree map[string]any
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &tree) != nil {
			continue
		}
		if owned(tree, segments(field.Path)) {
			return entry.Manager
		}
	}
	return ""
}

// segments are the parts of a path, divided at dots outside of brackets and braces.
func segments(path string) []string {
	depth := 0
	return strings.FieldsFunc(path, func(c rune) bool {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		return c == '.' && depth == 0
	})
}

// owned reports whether a tree of managed fields (FieldsV1) has a path.
func owned(tree map[string]any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	key, selector := path[0], ""
	if at := strings.IndexAny(key, "[{"); at >= 0 {
		key, selector = key[:at], key[at:]
	}
	field, is := tree["f:"+key].(map[string]any)
	if !is {
		return false
	}
	if selector == "" {
		return owned(field, path[1:])
	}
	inner := selector[1 : len(selector)-1]
	for child, below := range field {
		kind, text, _ := strings.Cut(child, ":")
		if kind == "" || !selects(selector[0], inner, kind, text) {
			continue
		}
		if below, is := below.(map[string]any); is && owned(below, path[1:]) {
			return true
		}
	}
	return false
}

// selects says whether [inner] or {inner} is about a child of a tree: k:{"a":"b"}
// is an element of a list with that key, f:a an entry of a map.
func selects(bracket byte, inner, kind, text string) bool {
	if bracket == '{' {
		return kind == "f" && (inner == "*" || inner == text)
	}
	if kind == "f" || inner == "*" {
		return kind != "f"
	}
	name, value, _ := strings.Cut(inner, "=")
	var keys map[string]any
	return kind == "k" && json.Unmarshal([]byte(text), &keys) == nil && fmt.Sprint(keys[name]) == value
}

func TestOwnedFields(t *testing.T) {
	var tree map[string]any
	err := json.Unmarshal([]byte(`{"f:metadata":{"f:labels":{".":{},"f:example.com/zone":{}}},
		"f:spec":{"f:rolling":{"f:max":{}},"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:rules":{}}}},
		"f:status":{"f:conditions":{"k:{\"type\":\"Unused\"}":{".":{},"f:status":{}}}}}`), &tree)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"spec.rolling.max":                  true,
		"spec.max":                          false,
		"max":                               false,
		"spec.rolling":                      true,
		"spec.rolling.min":                  false,
		"spec.containers[*].rules":          true,
		"spec.containers[*].max":            false,
		"status.conditions[type=Unused]":    true,
		"status.conditions[type=Used]":      false,
		"metadata.labels{example.com/zone}": true,
		"metadata.labels{example.com/z}":    false,
		"metadata.labels{*}":                true,
	} {
		if got := owned(tree, segments(path)); got != want {
			t.Errorf("%s: owned is %t, want %t", path, got, want)
		}
	}
}

func TestWithoutCopies(t *testing.T) {
	object := func(resource, name, uid, owner string, generation, observed int64) lifecycletest.Object {
		metadata := map[string]any{"name": name, "uid": uid, "generation": generation}
		if owner != "" {
			metadata["ownerReferences"] = []any{map[string]any{"uid": owner, "controller": true}}
		}
		return lifecycletest.Object{Resource: schema.ParseGroupResource(resource), Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"metadata": metadata, "status": map[string]any{"observedGeneration": observed},
		}}}
	}
	const set, revision = "statefulsets.apps", "controllerrevisions.apps"
	for name, test := range map[string]struct {
		objects []lifecycletest.Object
		want    []string
	}{
		"no controller came to it":            {objects: []lifecycletest.Object{object(set, "s", "s", "", 1, 0)}, want: []string{set + " s"}},
		"copied":                              {objects: []lifecycletest.Object{object(set, "s", "s", "", 1, 1), object(revision, "s-1", "1", "s", 0, 0)}},
		"copied, and not yet said":            {objects: []lifecycletest.Object{object(set, "s", "s", "", 1, 0), object(revision, "s-1", "1", "s", 0, 0)}, want: []string{set + " s"}},
		"only what was before is copied":      {objects: []lifecycletest.Object{object(set, "s", "s", "", 2, 1), object(revision, "s-1", "1", "s", 0, 0)}, want: []string{set + " s"}},
		"the copy has another owner":          {objects: []lifecycletest.Object{object(set, "s", "s", "", 1, 1), object(revision, "t-1", "1", "t", 0, 0)}, want: []string{set + " s"}},
		"the copy is none":                    {objects: []lifecycletest.Object{object(set, "s", "s", "", 1, 1), object("pods", "s-0", "1", "s", 0, 0)}, want: []string{set + " s"}},
		"objects without copies":              {objects: []lifecycletest.Object{object("replicasets.apps", "s", "s", "", 1, 0)}},
		"a Deployment's copy is a ReplicaSet": {objects: []lifecycletest.Object{object("deployments.apps", "s", "s", "", 1, 1), object("replicasets.apps", "s-1", "1", "s", 1, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, withoutCopies(lifecycletest.NewView(test.objects, nil, nil))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
