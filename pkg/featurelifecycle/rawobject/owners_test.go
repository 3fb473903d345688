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

package rawobject

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TestDisownEqualsTheAPI: owners are those that remain after a write through the API and
// the one behind it, which returns what the first has taken.
func TestDisownEqualsTheAPI(t *testing.T) {
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	set := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	slice := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceSlice"}
	claim := schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "ResourceClaim"}
	const (
		containers = `"spec":{"containers":[{"name":"a","image":"i","resizePolicy":[{"resourceName":"cpu","restartPolicy":"NotRequired"}],"ports":[{"containerPort":80,"protocol":"TCP","hostPort":1},{"containerPort":81,"hostPort":2}]},{"name":"b","image":"i"}],"hostNetwork":true,"hostUsers":false,"tolerations":[{"key":"k","operator":"Exists"}]}`
		conditions = `"status":{"conditions":[{"type":"A","status":"True","message":"m"},{"type":"B","status":"True","message":"n"}],"startTime":"2026-01-01T00:00:00Z"}`
		reserved   = `"spec":{},"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"1"},{"apiGroup":"scheduling.k8s.io","resource":"podgroups","name":"g","uid":"2"},{"apiGroup":"scheduling.k8s.io","resource":"podgroups","name":"h","uid":"3"}]}`
		devices    = `"spec":{"driver":"d","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"x","allowMultipleAllocations":true,"capacity":{"c":{"value":"1","requestPolicy":{"default":"1"}}}},{"name":"y"}]}`
		rolling    = `"spec":{"serviceName":"s","updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"partition":2}},"template":{"spec":{"containers":[{"name":"a"}]}}}`
	)
	for name, tc := range map[string]struct {
		kind    schema.GroupVersionKind
		content string
		path    string
		// lost is the number of entries that change, and gone that of those that go.
		lost, gone int
	}{
		"a field":                                      {set, rolling, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1, 0},
		"a struct with all that is in it":              {set, rolling, "spec.updateStrategy", 1, 0},
		"a field of elements that are owned":           {pod, containers, "spec.containers[*].resizePolicy", 1, 0},
		"a field of one element":                       {pod, containers, "spec.containers[name=a].image", 1, 0},
		"elements by a part of their key":              {pod, containers, "spec.containers[*].ports[protocol=TCP]", 1, 0},
		"elements by what is not in their key":         {pod, containers, "spec.containers[*].ports[hostPort=2]", 1, 0},
		"a field of a struct that has a value":         {pod, containers, "spec[hostNetwork=true].hostUsers", 1, 0},
		"a field in a list that is one value":          {pod, containers, "spec.tolerations[key=k].operator", 0, 0},
		"a list that is one value":                     {pod, containers, "spec.tolerations", 1, 0},
		"a condition":                                  {pod, conditions, "status.conditions[type=B]", 1, 0},
		"the message of a condition":                   {pod, conditions, "status.conditions[type=B].message", 1, 0},
		"all elements of a list":                       {pod, conditions, "status.conditions[*]", 1, 0},
		"a condition that is not there":                {pod, conditions, "status.conditions[type=C]", 0, 0},
		"elements that their key does not select":      {claim, reserved, "status.reservedFor[resource=podgroups]", 1, 0},
		"the name of such elements":                    {claim, reserved, "status.reservedFor[resource=podgroups].name", 1, 0},
		"a map in a list that is one value":            {slice, devices, "spec.devices[*].capacity{*}.requestPolicy", 0, 0},
		"a field of devices, a list that is one value": {slice, devices, "spec.devices[*].allowMultipleAllocations", 0, 0},
		"an annotation":                                {pod, `"metadata":{"name":"n","annotations":{"a.b/c":"x","d":"y"}}`, "metadata.annotations{a.b/c}", 1, 0},
		"an element of a set":                          {pod, `"metadata":{"name":"n","finalizers":["a.b/c"]}`, "metadata.finalizers[*]", 1, 0},
		"all that an owner has":                        {pod, `"metadata":{"name":"n"},"status":{"phase":"Running"}`, "status.phase", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := cleared(t, tc.kind, tc.content, tc.path)
			want := outcome(before.GetManagedFields(), after.GetManagedFields(), tc.path)
			object, err := clientscheme.Scheme.New(tc.kind)
			if err != nil {
				t.Fatal(err)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(before.Object, object); err != nil {
				t.Fatal(err)
			}
			field := newField(t, reflect.TypeOf(object).Elem(), tc.path)
			bothEncodings(t, object, func(t *testing.T, o Object) {
				got, edits := disowned(t, field, o)
				if diff := cmp.Diff(shownOwners(want), shownOwners(got)); diff != "" {
					t.Errorf("owners, of\n%v\n(-want +got):\n%s", shownOwners(before.GetManagedFields()), diff)
				}
				if len(edits) != tc.lost {
					t.Errorf("%d entries change, want %d", len(edits), tc.lost)
				}
			})
		})
	}
}

// cleared returns an object that two managers have applied, and the object after a write
// through the API without the field.
func cleared(t *testing.T, kind schema.GroupVersionKind, content, path string) (before, after *unstructured.Unstructured) {
	t.Helper()
	manager := managedfieldstest.NewTestFieldManager(applyconfigurations.NewTypeConverter(clientscheme.Scheme), kind)
	object := &unstructured.Unstructured{}
	text := `{"apiVersion":"` + kind.GroupVersion().String() + `","kind":"` + kind.Kind + `",` + content + `}`
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	if err := manager.Apply(object.DeepCopy(), "driver", false); err != nil {
		t.Fatal(err)
	}
	labeled := manager.Live().DeepCopyObject().(*unstructured.Unstructured)
	labeled.SetLabels(map[string]string{"by": "another"})
	if err := manager.Update(labeled, "another"); err != nil {
		t.Fatal(err)
	}
	before = manager.Live().DeepCopyObject().(*unstructured.Unstructured)
	written := before.DeepCopy()
	parsed, err := task.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, pointer := range slices.Backward(parsed.Pointers(written.Object)) {
		removeAt(written.Object, pointer)
	}
	if err := manager.Update(written, taker); err != nil {
		t.Fatal(err)
	}
	return before, manager.Live().(*unstructured.Unstructured)
}

// outcome returns the owners before a write without what they lost at or below the path.
func outcome(before, after []metav1.ManagedFieldsEntry, path string) (left []metav1.ManagedFieldsEntry) {
	segments, _ := parsePath(path)
	for _, entry := range before {
		fields := setOf(entry)
		lost := fields
		for _, other := range after {
			if other.Manager == entry.Manager && other.Operation == entry.Operation {
				lost = fields.Difference(setOf(other))
			}
		}
		gone := fieldpath.NewSet()
		lost.Iterate(func(at fieldpath.Path) {
			if mayBeIn(segments, at) {
				gone.Insert(at.Copy())
			}
		})
		if fields = fields.Difference(gone); fields.Empty() {
			continue
		}
		raw, _ := fields.ToJSON()
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		left = append(left, entry)
	}
	return left
}

func setOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		panic(err)
	}
	return set
}

// mayBeIn returns true if a path in managed fields is that of the field or continues from
// there, with any element for those that are selected.
func mayBeIn(segments []segment, at fieldpath.Path) bool {
	for _, s := range segments {
		if len(at) == 0 || at[0].FieldName == nil || *at[0].FieldName != s.key {
			return false
		}
		at = at[1:]
		if s.which == itself || s.which == someElements && len(at) > 0 && at[0].FieldName != nil {
			continue
		}
		if len(at) == 0 || s.which == oneEntry && *at[0].FieldName != s.name {
			return false
		}
		at = at[1:]
	}
	return true
}

// disowned returns the managed fields of an object without those of the field.
func disowned(t *testing.T, field *Field, o Object) ([]metav1.ManagedFieldsEntry, []OwnerEdit) {
	t.Helper()
	edits, err := field.Disown(o, taker, nil)
	if err != nil {
		t.Fatal(err)
	}
	edited, err := o.WithOwners(edits)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := edited.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	return metadata.ManagedFields, edits
}

// shownOwners returns entries with their sets as text.
func shownOwners(entries []metav1.ManagedFieldsEntry) (shown []map[string]any) {
	for _, entry := range entries {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
		if err != nil {
			panic(err)
		}
		shown = append(shown, content)
	}
	return shown
}

// entry returns an entry of managed fields.
func entry(manager string, operation metav1.ManagedFieldsOperationType, apiVersion, fields string) metav1.ManagedFieldsEntry {
	made := described().ManagedFields[0]
	made.Manager, made.Operation, made.APIVersion, made.FieldsV1 = manager, operation, apiVersion, nil
	if fields != "" {
		made.FieldsV1 = metav1.NewFieldsV1(fields)
	}
	return made
}

// taker is the manager of the flow that writes.
const taker = "feature-lifecycle/kube-system"

func TestDisown(t *testing.T) {
	const (
		update   = metav1.ManagedFieldsOperationUpdate
		replicas = `{"f:spec":{"f:replicas":{}}}`
	)
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		has     func(string) bool
		want    []OwnerEdit
		err     error
	}{
		"no owner":                    {},
		"an owner of the field alone": {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", replicas)}, want: []OwnerEdit{{Index: 0}}},
		"an owner of more": {
			entries: []metav1.ManagedFieldsEntry{
				entry("a", update, "apps/v1", `{"f:spec":{"f:serviceName":{}}}`),
				entry("b", update, "apps/v1", `{"f:spec":{".":{},"f:replicas":{},"f:serviceName":{}}}`),
			},
			want: []OwnerEdit{{Index: 1, Fields: []byte(`{"f:spec":{".":{},"f:serviceName":{}}}`)}},
		},
		"an owner of the same name elsewhere": {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", `{"f:status":{"f:replicas":{}}}`)}},
		"an owner of the whole":               {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", `{"f:spec":{}}`)}},
		"an owner of nothing":                 {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", ""), entry("a", update, "extensions/v1beta1", "{}")}},
		"a version with the path": {
			entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1beta2", replicas)},
			has:     func(version string) bool { return version == "apps/v1beta2" },
			want:    []OwnerEdit{{Index: 0}},
		},
		"a version without the path": {
			entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1beta1", `{"f:spec":{"f:copies":{}}}`)},
			has:     func(version string) bool { return version == "apps/v1beta2" }, err: ErrOtherVersion,
		},
		"an unknown version": {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1beta1", replicas)}, err: ErrOtherVersion},
		"the taker":          {entries: []metav1.ManagedFieldsEntry{entry(taker, update, "apps/v1", replicas)}, err: ErrUnfinished},
		"the taker of another flow": {
			entries: []metav1.ManagedFieldsEntry{entry("feature-lifecycle/ns", update, "apps/v1", `{"f:metadata":{}}`)},
		},
		"what a task applied":       {entries: []metav1.ManagedFieldsEntry{entry("feature-lifecycle", metav1.ManagedFieldsOperationApply, "apps/v1", replicas)}, want: []OwnerEdit{{Index: 0}}},
		"a note":                    {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", `{"f:`+taker+`":{"f:spec":{"f:replicas":{}}}}`)}, err: ErrUnfinished},
		"a note of another flow":    {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", `{"f:spec":{},"f:feature-lifecycle/ns":{"f:spec":{}}}`)}},
		"a label named as the note": {entries: []metav1.ManagedFieldsEntry{entry("a", update, "apps/v1", `{"f:metadata":{"f:labels":{"f:`+taker+`":{}}}}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			set := described()
			set.Spec.Replicas, set.Status.Replicas = ptr.To[int32](2), 2
			set.ManagedFields = tc.entries
			field := newField(t, reflect.TypeFor[appsv1.StatefulSet](), "spec.replicas")
			bothEncodings(t, set, func(t *testing.T, o Object) {
				got, err := field.Disown(o, taker, tc.has)
				if !errors.Is(err, tc.err) {
					t.Fatalf("got the error %v, want %v", err, tc.err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("edits (-want +got):\n%s", diff)
				}
				unfinished, err := o.IsUnfinished(taker)
				if err != nil || unfinished != errors.Is(tc.err, ErrUnfinished) {
					t.Errorf("unfinished: %t, %v", unfinished, err)
				}
			})
		})
	}
}

// TestDisownKeepsWhatIsNotRemoved: an entry may name elements that do not have the field,
// or that the object does not have.
func TestDisownKeepsWhatIsNotRemoved(t *testing.T) {
	set := described()
	decodeTyped(t, []byte(`{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"template":{"spec":{"containers":[{"name":"a","lifecycle":{}},{"name":"b"}]}}}}`), set)
	const of = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{%}}}}}`
	set.ManagedFields = []metav1.ManagedFieldsEntry{entry("a", metav1.ManagedFieldsOperationUpdate, "apps/v1", strings.Replace(of, "%",
		`"k:{\"name\":\"a\"}":{".":{},"f:lifecycle":{}},"k:{\"name\":\"b\"}":{".":{},"f:lifecycle":{}},"k:{\"name\":\"c\"}":{"f:lifecycle":{}}`, 1))}
	want := strings.Replace(of, "%", `"k:{\"name\":\"a\"}":{},"k:{\"name\":\"b\"}":{".":{},"f:lifecycle":{}},"k:{\"name\":\"c\"}":{"f:lifecycle":{}}`, 1)
	field := newField(t, reflect.TypeFor[appsv1.StatefulSet](), "spec.template.spec.containers[*].lifecycle")
	bothEncodings(t, set, func(t *testing.T, o Object) {
		got, _ := disowned(t, field, o)
		if diff := cmp.Diff(want, got[0].FieldsV1.GetRawString()); diff != "" {
			t.Errorf("owned (-want +got):\n%s", diff)
		}
	})
}

func TestDisownOfWhatCannotBeRead(t *testing.T) {
	field := newField(t, nil, "spec.replicas")
	for _, entries := range []string{
		`[{"apiVersion":"v1","fieldsV1":{"f:spec":{"f:replicas":1}}}]`,
		`[{"apiVersion":"v1","fieldsV1":{"x":{"f:replicas":{}}}}]`,
	} {
		o := parsed(t, []byte(`{"apiVersion":"v1","kind":"X","metadata":{"managedFields":`+entries+`},"spec":{"replicas":1}}`))
		if edits, err := field.Disown(o, taker, nil); err == nil || !strings.Contains(err.Error(), "through the API") {
			t.Errorf("%s: got %v, %v, want an error", entries, edits, err)
		}
	}
}

// TestWithOwnersKeepsOtherBytes: unknown fields of entries, and all other entries, stay.
func TestWithOwnersKeepsOtherBytes(t *testing.T) {
	const before = `{"metadata":{ "managedFields" : [ {"manager":"a","fieldsV1":{"f:a":{}}, "later":1.0} , {"manager":"b","fieldsV1":{}},{"manager":"c"} ], "x":1}}` + "\n"
	for name, tc := range map[string]struct {
		edits []OwnerEdit
		want  string
	}{
		"none":              {nil, before},
		"other fields":      {[]OwnerEdit{{0, []byte(`{"f:b":{}}`)}}, strings.Replace(before, "f:a", "f:b", 1)},
		"the first goes":    {[]OwnerEdit{{Index: 0}}, strings.Replace(before, `{"manager":"a","fieldsV1":{"f:a":{}}, "later":1.0} , `, "", 1)},
		"the last goes":     {[]OwnerEdit{{Index: 2}}, strings.Replace(before, `,{"manager":"c"}`, "", 1)},
		"all go":            {[]OwnerEdit{{Index: 0}, {Index: 1}, {Index: 2}}, `{"metadata":{ "x":1}}` + "\n"},
		"one without a set": {[]OwnerEdit{{2, []byte(`{"f:b":{}}`)}}, strings.Replace(before, `{"manager":"c"}`, `{"manager":"c","fieldsV1":{"f:b":{}}}`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			edited, err := parsed(t, []byte(before)).WithOwners(tc.edits)
			if err != nil || string(edited.Bytes()) != tc.want {
				t.Errorf("got\n%s%v, want\n%s", edited.Bytes(), err, tc.want)
			}
		})
	}
	if _, err := parsed(t, []byte(before)).WithOwners([]OwnerEdit{{Index: 3}}); err == nil {
		t.Error("an entry that is not there was edited")
	}
}
