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

package stored

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

const (
	// markers begin the names of objects that end the watches of clients.
	markers = "marker-"
	// puts is how many objects one transaction stores.
	puts = 64
)

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	encoder      = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	// field is the one that is cleared, as managed fields name it.
	field = fieldpath.MakePathOrDie("spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
)

// object is a StatefulSet as etcd has it.
type object struct {
	data []byte
	// revision is that of its last write.
	revision int64
}

// decode returns what is stored.
func decode(t *testing.T, name string, data []byte) *appsv1.StatefulSet {
	t.Helper()
	set, err := framework.DecodeStatefulSet(data)
	if err != nil {
		t.Fatalf("decoding StatefulSet %s: %v", name, err)
	}
	return set
}

// encode returns an object as a server stores it.
func encode(t *testing.T, set *appsv1.StatefulSet) []byte {
	t.Helper()
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	var data bytes.Buffer
	if err := encoder.Encode(set, &data); err != nil {
		t.Fatalf("encoding StatefulSet %s: %v", set.Name, err)
	}
	return data.Bytes()
}

// shape makes one object through the API. All others are copies.
type shape struct {
	name string
	make func(*testing.T, *world, string)
}

// shapes are what differs in who wrote which field. The bystanders do not have the field.
var shapes = []shape{
	{"one manager wrote everything", func(t *testing.T, w *world, name string) {
		w.create(t, framework.StatefulSet(name, intstr.FromInt32(3)))
	}},
	{"a manager owns the field and nothing else", func(t *testing.T, w *world, name string) {
		w.create(t, framework.StatefulSet(name, intstr.FromInt32(1)))
		w.apply(t, name, "tuner", map[string]any{"spec": rolling("maxUnavailable", "20%")})
	}},
	{"two managers own the field, one of them more", func(t *testing.T, w *world, name string) {
		w.create(t, framework.StatefulSet(name, intstr.FromInt32(2)))
		w.apply(t, name, "tuner", map[string]any{"spec": rolling("maxUnavailable", int64(2))})
		w.apply(t, name, "roller", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"rolled": "yes"}, "annotations": map[string]any{"long": strings.Repeat("x", 300)}},
			"spec":     rolling("maxUnavailable", int64(2), "partition", int64(4)),
		})
	}},
	{"others wrote the status and labels", func(t *testing.T, w *world, name string) {
		w.create(t, framework.StatefulSet(name, intstr.FromString("50%")))
		w.patch(t, name, "status-writer", `{"status":{"replicas":0,"observedGeneration":1,"collisionCount":7}}`, "status")
		w.patch(t, name, "labeler", `{"metadata":{"labels":{"by":"another"},"finalizers":["example.com/hold"]},"spec":{"minReadySeconds":5}}`)
	}},
	{"bystander", func(t *testing.T, w *world, name string) { w.create(t, bystander(name)) }},
	{"bystander of several managers", func(t *testing.T, w *world, name string) {
		w.create(t, bystander(name))
		w.apply(t, name, "roller", map[string]any{"metadata": map[string]any{"labels": map[string]any{"rolled": "yes"}}})
		w.patch(t, name, "status-writer", `{"status":{"replicas":0,"observedGeneration":1}}`, "status")
	}},
}

// bystander cannot have the field.
func bystander(name string) *appsv1.StatefulSet {
	set := framework.PlainStatefulSet(name)
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	return set
}

// rolling is a spec with fields of rolling updates, given as keys and values.
func rolling(fields ...any) map[string]any {
	update := map[string]any{}
	for i := 0; i < len(fields); i += 2 {
		update[fields[i].(string)] = fields[i+1]
	}
	return map[string]any{"updateStrategy": map[string]any{"rollingUpdate": update}}
}

func (w *world) create(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	if _, err := w.cluster.Kube.AppsV1().StatefulSets(objectNS).Create(t.Context(), set, metav1.CreateOptions{FieldManager: "creator"}); err != nil {
		t.Fatalf("creating StatefulSet %s: %v", set.Name, err)
	}
}

func (w *world) apply(t *testing.T, name, manager string, fields map[string]any) {
	t.Helper()
	set := &unstructured.Unstructured{Object: fields}
	set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
	set.SetName(name)
	if _, err := w.cluster.Objects().Resource(statefulSets).Namespace(objectNS).Apply(t.Context(), name, set, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		t.Fatalf("applying StatefulSet %s as %s: %v", name, manager, err)
	}
}

func (w *world) patch(t *testing.T, name, manager, patch string, subresources ...string) {
	t.Helper()
	_, err := w.cluster.Kube.AppsV1().StatefulSets(objectNS).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		t.Fatalf("patching StatefulSet %s as %s: %v", name, manager, err)
	}
}

// populate stores all objects as they are before a round, over what is there of them. The
// first time it makes the shapes through the API.
func (w *world) populate(t *testing.T) {
	t.Helper()
	if w.shapes == nil {
		w.makeShapes(t)
	}
	for name := range framework.KeysBelow(t, w.etcd, framework.StatefulSetsKey+markers) {
		if _, err := w.etcd.Delete(t.Context(), name); err != nil {
			t.Fatalf("deleting %s: %v", name, err)
		}
	}
	var ops []clientv3.Op
	for i := range w.objects {
		set := w.shapes[i%len(w.shapes)].DeepCopy()
		set.Name = fmt.Sprintf("set-%06d", i)
		set.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
		set.Annotations = maps.Clone(set.Annotations)
		if set.Annotations == nil {
			set.Annotations = map[string]string{}
		}
		set.Annotations["keep"] = fmt.Sprint("this ", i)
		ops = append(ops, clientv3.OpPut(framework.StatefulSetsKey+set.Name, string(encode(t, set))))
	}
	for batch := range slices.Chunk(ops, puts) {
		if _, err := w.etcd.Txn(t.Context()).Then(batch...).Commit(); err != nil {
			t.Fatalf("storing StatefulSets: %v", err)
		}
	}
}

// makeShapes makes one object of each shape and leaves nothing of it in the cluster.
func (w *world) makeShapes(t *testing.T) {
	t.Helper()
	for i, shape := range shapes {
		name := fmt.Sprintf("shape-%d", i)
		shape.make(t, w, name)
		key := framework.StatefulSetsKey + name
		found, err := w.etcd.Get(t.Context(), key)
		if err != nil || len(found.Kvs) != 1 {
			t.Fatalf("reading %s from etcd: %d found, %v", key, len(found.Kvs), err)
		}
		set := decode(t, name, found.Kvs[0].Value)
		if encoded := encode(t, set.DeepCopy()); !bytes.Equal(encoded, found.Kvs[0].Value) {
			t.Fatalf("%s: this test does not encode objects as servers do", shape.name)
		}
		if has, wants := framework.HasMaxUnavailable(set), !strings.HasPrefix(shape.name, "bystander"); has != wants {
			t.Fatalf("%s: it has the field: %t, want %t", shape.name, has, wants)
		}
		w.shapes = append(w.shapes, set)
		if _, err := w.etcd.Delete(t.Context(), key); err != nil {
			t.Fatalf("deleting %s: %v", key, err)
		}
	}
}

// stored reads all objects from etcd, by name.
func (w *world) stored(t *testing.T) (objects map[string]object, revision int64) {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), framework.StatefulSetsKey, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("reading StatefulSets from etcd: %v", err)
	}
	objects = map[string]object{}
	for _, kv := range found.Kvs {
		objects[strings.TrimPrefix(string(kv.Key), framework.StatefulSetsKey)] = object{kv.Value, kv.ModRevision}
	}
	return objects, found.Header.Revision
}

// left is how many objects have the field.
func (w *world) left(t *testing.T) (left int) {
	t.Helper()
	objects, _ := w.stored(t)
	for name, object := range objects {
		if framework.HasMaxUnavailable(decode(t, name, object.data)) {
			left++
		}
	}
	return left
}

// withoutField is what clearing makes of an object: the field is gone, also from managed
// fields, of which entries without any field go, and the generation is one more.
func withoutField(t *testing.T, set *appsv1.StatefulSet) *appsv1.StatefulSet {
	t.Helper()
	set = set.DeepCopy()
	set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	set.Generation++
	lost := fieldpath.NewSet(field)
	var entries []metav1.ManagedFieldsEntry
	for _, entry := range set.ManagedFields {
		owned := fieldpath.NewSet()
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatalf("managed fields of %s: %v", set.Name, err)
		}
		if owned = owned.RecursiveDifference(lost); owned.Empty() {
			continue
		}
		raw, err := owned.ToJSON()
		if err != nil {
			t.Fatalf("managed fields of %s: %v", set.Name, err)
		}
		entry.FieldsV1 = metav1.NewFieldsV1(string(raw))
		entries = append(entries, entry)
	}
	set.ManagedFields = entries
	return set
}

// compare checks each object's bytes, and describes the first few that are wrong.
func compare(t *testing.T, before, after map[string]object, wrote map[string]string) {
	t.Helper()
	wrong := differences(t, before, after, wrote)
	for i, what := range wrong {
		if i < 3 {
			t.Errorf("S7: StatefulSet %s", what)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("S7: %d of %d objects are lost or changed", len(wrong), len(before))
	}
}

// differences describes objects that are not what they were without the field. Another
// client has written some of them, which is to be found there.
func differences(t *testing.T, before, after map[string]object, wrote map[string]string) (wrong []string) {
	t.Helper()
	for name, was := range before {
		is, ok := after[name]
		if !ok {
			wrong = append(wrong, name+" is gone")
		} else if what := difference(t, name, was, is, wrote); what != "" {
			wrong = append(wrong, name+" "+what)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			wrong = append(wrong, name+" was not there before")
		}
	}
	return wrong
}

// difference describes what is wrong with one object, "" for nothing.
func difference(t *testing.T, name string, was, is object, wrote map[string]string) string {
	t.Helper()
	before, after := decode(t, name, was.data), decode(t, name, is.data)
	if !framework.HasMaxUnavailable(before) {
		if was.revision != is.revision {
			return "never had the field and was written"
		}
		return ""
	}
	value, contested := wrote[name]
	if got := after.Annotations[rivalName]; got != value {
		return fmt.Sprintf("lost a write of another client, which wrote %q; stored is %q", value, got)
	}
	if contested {
		forget(after)
	}
	want := withoutField(t, before)
	switch {
	case !bytes.Equal(encode(t, want), encode(t, after)):
		return "is not what it was without the field (-want +got):\n" + cmp.Diff(readable(t, want), readable(t, after))
	case !contested && !bytes.Equal(encode(t, want), is.data):
		return "is stored in other bytes than servers write"
	default:
		return ""
	}
}

// readable is an object as JSON decodes, in which managed fields can be read.
func readable(t *testing.T, set *appsv1.StatefulSet) (value any) {
	t.Helper()
	data, err := json.Marshal(set)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}
