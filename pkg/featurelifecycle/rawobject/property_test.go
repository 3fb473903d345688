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
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"sigs.k8s.io/randfill"

	apitestingfuzzer "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	apitesting "k8s.io/kubernetes/pkg/api/testing"
)

// objectsPerPath is how many random objects a path is tried with.
const objectsPerPath = 10

// declared is a field of a kind in one version.
type declared struct {
	kind schema.GroupVersionKind
	typ  reflect.Type
	path string
}

// madeByHand are paths that no task has: inlined structs, scalars that are always encoded,
// and ends that cannot be absent.
var madeByHand = map[schema.GroupVersionKind][]string{
	{Version: "v1", Kind: "Pod"}: {
		"metadata.name", "metadata.generation", "metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.labels",
		"metadata.labels{a.b/c}", "metadata.finalizers[*]", "metadata.ownerReferences[kind=Job]", "metadata.ownerReferences[controller=true].uid",
		"metadata.managedFields", "metadata.managedFields[operation=Apply].time",
		"spec", "status", "spec.volumes", "spec.volumes[*].name", "spec.volumes[*].emptyDir", "spec.volumes[*].hostPath.path",
		"spec.volumes[*].projected.sources[*].clusterTrustBundle", "spec[hostNetwork=true].hostUsers", "spec[hostPID=true]", "spec.hostNetwork",
		"spec.containers[*].resources.limits{cpu}", "spec.containers[*].resources.limits", "spec.containers[*].resources",
		"spec.containers[*].securityContext.runAsUser", "spec.containers[name=a].ports[containerPort=80]", "spec.containers[*].ports[protocol=TCP].hostPort",
		"spec.ephemeralContainers[*].restartPolicyRules", "spec.ephemeralContainers[*].targetContainerName", "spec.containers[*].livenessProbe.exec",
		"spec.containers[*].livenessProbe.httpGet.port", "spec.tolerations[operator=Exists]", "spec.containers[*].args[*]",
		"status.conditions[type=Ready].message", "status.conditions[status=True].lastTransitionTime", "status.containerStatuses[ready=false].restartCount",
		"status.startTime", "spec.securityContext.supplementalGroups", "spec.securityContext.supplementalGroups[*]",
	},
	{Group: "apps", Version: "v1", Kind: "ControllerRevision"}:                       {"revision", "data", "data.metadata", "data.kind"},
	{Version: "v1", Kind: "Secret"}:                                                  {"data", "data{a}", "stringData{*}x", "immutable", "type"},
	{Group: "certificates.k8s.io", Version: "v1", Kind: "CertificateSigningRequest"}: {"spec.extra", "spec.extra{a}", "spec.request", "spec.groups", "status.certificate"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                              {"spec.template.spec.containers[*].restartPolicy", "spec.replicas", "spec.volumeClaimTemplates[*].status", "status.replicas"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}: {
		"webhooks[*].rules[*].operations", "webhooks[*].rules[*].scope", "webhooks[*].clientConfig.caBundle", "webhooks[*].clientConfig.url",
	},
	{Group: "scheduling.k8s.io", Version: "v1beta1", Kind: "PodGroup"}: {"spec.schedulingPolicy", "spec.schedulingConstraints"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}: {
		"spec.metrics[*].resource.target.averageValue", "spec.behavior.scaleUp.policies[*].value", "spec.behavior.scaleDown",
	},
}

// declaredFields returns the fields that tasks of the catalog remove, and those made by
// hand.
func declaredFields(t testing.TB) (all []declared) {
	t.Helper()
	for _, feature := range catalog.Features() {
		for _, one := range slices.Concat(feature.OnEnable, feature.OnDisable) {
			for _, field := range one.Fields {
				if one.Waits || field.Path == "" || field.Resource.Group == "apiextensions.k8s.io" {
					continue
				}
				all = append(all, inVersions(t, field)...)
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("the catalog removes %d fields, which cannot be all", len(all))
	}
	for kind, paths := range madeByHand {
		for _, path := range paths {
			if !strings.HasSuffix(path, "x") {
				all = append(all, declared{kind, legacyscheme.Scheme.AllKnownTypes()[kind], path})
			}
		}
	}
	slices.SortFunc(all, func(a, b declared) int {
		return strings.Compare(fmt.Sprint(a.kind, a.path), fmt.Sprint(b.kind, b.path))
	})
	return all
}

// inVersions returns a field in every version that has it.
func inVersions(t testing.TB, field task.Field) (all []declared) {
	t.Helper()
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsForGroup(field.Resource.Group) {
		resource := field.Resource.WithVersion(version.Version)
		if !catalog.HasField(legacyscheme.Scheme, resource, field.Path) {
			continue
		}
		for kind, typ := range legacyscheme.Scheme.KnownTypes(version) {
			if plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind)); plural == resource {
				all = append(all, declared{version.WithKind(kind), typ, field.Path})
			}
		}
	}
	if len(all) == 0 {
		t.Errorf("no version of %s has %s", field.Resource, field.Path)
	}
	return all
}

// TestRemoveEqualsDecodingAndEncoding: the bytes without a field are those that the server
// writes of the object without it.
func TestRemoveEqualsDecodingAndEncoding(t *testing.T) {
	for i, d := range declaredFields(t) {
		t.Run(d.kind.String()+"/"+d.path, func(t *testing.T) {
			t.Parallel()
			field, err := NewField(d.typ, d.path)
			if err != nil {
				t.Fatal(err)
			}
			path, err := task.ParsePath(d.path)
			if err != nil {
				t.Fatal(err)
			}
			tr := &trial{T: t, declared: d, field: field, path: path}
			tr.fill = apitestingfuzzer.FuzzerFor(apitesting.FuzzerFuncs, rand.NewSource(int64(i)), legacyscheme.Codecs).NumElements(1, 2)
			tr.rand = rand.New(rand.NewSource(int64(i)))
			had := 0
			for range objectsPerPath {
				if tr.try() {
					had++
				}
			}
			if had == 0 {
				t.Error("no object had the field, so nothing was tried")
			}
		})
	}
}

// trial compares the removal of one field from bytes with that from decoded objects.
type trial struct {
	*testing.T
	declared
	field *Field
	path  task.Path
	fill  *randfill.Filler
	rand  *rand.Rand
}

// try returns whether a random object had the field.
func (tr *trial) try() bool {
	object := tr.object()
	content := tr.content(object)
	pointers := tr.path.Pointers(content)
	without := runtime.DeepCopyJSON(content)
	for _, pointer := range slices.Backward(pointers) {
		removeAt(without, pointer)
	}
	before, want := tr.encode(object), tr.encode(tr.typed(without))
	tr.compare("protobuf", before, want, pointers)
	tr.compare("protobuf with unknown fields", tr.inject(before), tr.inject(want), pointers)
	tr.compareJSON(object, without, pointers)
	return len(pointers) > 0
}

// object returns a random object with the field, most times, as JSON can express it.
func (tr *trial) object() runtime.Object {
	value := reflect.New(tr.typ)
	tr.fill.Fill(value.Interface())
	if tr.rand.Intn(5) > 0 {
		tr.plant(value.Elem(), tr.field.segments)
	}
	object := value.Interface().(runtime.Object)
	object.GetObjectKind().SetGroupVersionKind(tr.kind)
	return tr.typed(tr.content(object))
}

func (tr *trial) content(object runtime.Object) map[string]any {
	tr.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		tr.Fatal(err)
	}
	var content map[string]any
	if err := decode(data, &content); err != nil {
		tr.Fatal(err)
	}
	return content
}

func (tr *trial) typed(content map[string]any) runtime.Object {
	tr.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		tr.Fatal(err)
	}
	object := reflect.New(tr.typ).Interface().(runtime.Object)
	if err := decode(data, object); err != nil {
		tr.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(tr.kind)
	return object
}

func (tr *trial) encode(object runtime.Object) []byte {
	tr.Helper()
	return encoded(tr, object)
}

func encoded(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var data bytes.Buffer
	if err := protobufserializer.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme).Encode(object, &data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func encodedJSON(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var data bytes.Buffer
	serializer := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme, jsonserializer.SerializerOptions{})
	if err := serializer.Encode(object, &data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func (tr *trial) compare(what string, before, want []byte, pointers []string) {
	tr.Helper()
	o, err := Parse(before)
	if err != nil {
		tr.Fatal(err)
	}
	if has, err := tr.field.Holds(o); err != nil || has != (len(pointers) > 0) {
		tr.Fatalf("%s: holds the field: %t, %v; the API shows it at %q", what, has, err, pointers)
	}
	original := bytes.Clone(before)
	edited, removed, err := tr.field.Remove(o)
	switch got := edited.Bytes(); {
	case err != nil:
		tr.Fatalf("%s: %v", what, err)
	case !bytes.Equal(got, want):
		tr.Fatalf("%s: without what is at %q (-want +got):\n%s", what, pointers, cmp.Diff(want, got))
	case removed > len(pointers) || (removed > 0) == bytes.Equal(got, original):
		tr.Fatalf("%s: removed from %d places of %q, and the bytes are the same: %t", what, removed, pointers, bytes.Equal(got, original))
	case !bytes.Equal(before, original):
		tr.Fatalf("%s: the removal changed what it was given", what)
	case removed == 0 && &got[0] != &before[0]:
		tr.Fatalf("%s: nothing was removed, and the bytes were copied", what)
	}
}

func (tr *trial) compareJSON(object runtime.Object, without map[string]any, pointers []string) {
	tr.Helper()
	before := encodedJSON(tr, object)
	o, err := Parse(before)
	if err != nil {
		tr.Fatal(err)
	}
	if has, err := tr.field.Holds(o); err != nil || has != (len(pointers) > 0) {
		tr.Fatalf("JSON holds the field: %t, %v; the API shows it at %q", has, err, pointers)
	}
	edited, removed, err := tr.field.Remove(o)
	if err != nil || removed != len(pointers) {
		tr.Fatalf("JSON: removed from %d places of %q, %v", removed, pointers, err)
	}
	var got map[string]any
	if err := decode(edited.Bytes(), &got); err != nil {
		tr.Fatalf("JSON: %v of\n%s", err, edited.Bytes())
	}
	if diff := cmp.Diff(without, got); diff != "" {
		tr.Fatalf("JSON without what is at %q (-want +got):\n%s", pointers, diff)
	}
	if !bytes.HasSuffix(edited.Bytes(), []byte("}\n")) {
		tr.Fatal("JSON lost the newline at its end")
	}
}

// removeAt removes what is at a JSON pointer.
func removeAt(object any, pointer string) {
	keys := strings.Split(pointer[1:], "/")
	var put func(any)
	for i, key := range keys {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		last := i == len(keys)-1
		switch within := object.(type) {
		case map[string]any:
			if last {
				delete(within, key)
			}
			object, put = within[key], func(v any) { within[key] = v }
		case []any:
			at, _ := strconv.Atoi(key)
			if last {
				put(slices.Delete(within, at, at+1))
				return
			}
			object, put = within[at], func(v any) { within[at] = v }
		}
	}
}

// plant makes an object have what segments name.
func (tr *trial) plant(value reflect.Value, segments []segment) {
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		value = value.Elem()
	}
	if len(segments) == 0 {
		for range 20 {
			if tr.fill.Fill(value.Addr().Interface()); !value.IsZero() {
				return
			}
		}
		return
	}
	if isRaw(value.Type()) {
		value.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a", "labels": {}}, "spec":1}`)}))
		return
	}
	s := segments[0]
	within := keyed(value, s.key)
	switch {
	case s.which == itself, s.which == someElements && within.Kind() != reflect.Slice:
		tr.plant(within, segments[1:])
		if s.which == someElements {
			tr.choose(within, s)
		}
	case within.Kind() == reflect.Slice:
		within.Set(reflect.Append(within, reflect.Zero(within.Type().Elem()), reflect.Zero(within.Type().Elem())))
		for i := range within.Len() {
			if within.Index(i).IsZero() {
				tr.fill.Fill(within.Index(i).Addr().Interface())
			}
			if len(segments) > 1 {
				tr.plant(within.Index(i), segments[1:])
			}
			if s.which == someElements && i%2 == 0 {
				tr.choose(within.Index(i), s)
			}
		}
	case within.Kind() == reflect.Map:
		if within.IsNil() {
			within.Set(reflect.MakeMap(within.Type()))
		}
		for _, key := range []string{s.name, "other"} {
			entry := reflect.New(within.Type().Elem()).Elem()
			tr.plant(entry, segments[1:])
			within.SetMapIndex(reflect.ValueOf(key).Convert(within.Type().Key()), entry)
		}
	}
}

// choose makes [name=value] select a struct.
func (tr *trial) choose(value reflect.Value, s segment) {
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		value = value.Elem()
	}
	named := keyed(value, s.name)
	if named.Kind() == reflect.Pointer {
		named.Set(reflect.New(named.Type().Elem()))
		named = named.Elem()
	}
	if named.Kind() == reflect.String {
		named.SetString(s.value)
		return
	}
	if err := json.Unmarshal([]byte(s.value), named.Addr().Interface()); err != nil {
		tr.Fatal(err)
	}
}

// keyed returns the field of a struct with a JSON key.
func keyed(value reflect.Value, key string) reflect.Value {
	for i := range value.NumField() {
		name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if name == key {
			return value.Field(i)
		}
	}
	for i := range value.NumField() {
		if f := value.Type().Field(i); f.Anonymous && f.Type.Kind() == reflect.Struct {
			if found := keyed(value.Field(i), key); found.IsValid() {
				return found
			}
		}
	}
	return reflect.Value{}
}

// inject adds fields that no type has to each message on the way to the field.
func (tr *trial) inject(plain []byte) []byte {
	tr.Helper()
	o, err := Parse(plain)
	if err != nil {
		tr.Fatal(err)
	}
	body, _, err := inject(tr.field.within)(nil, o.body)
	if err != nil {
		tr.Fatal(err)
	}
	return o.withBody(body).Bytes()
}

func inject(n *node) func(dst, message []byte) ([]byte, bool, error) {
	return func(dst, message []byte) ([]byte, bool, error) {
		dst = protowire.AppendFixed32(protowire.AppendTag(dst, 3001, protowire.Fixed32Type), 7)
		dst, _, err := editFields(dst, message, n.number, func(dst []byte, f *fields) ([]byte, bool, error) {
			if n.next == nil {
				return dst, false, nil
			}
			return editNested(dst, f, inject(n.next))
		})
		dst = protowire.AppendString(protowire.AppendTag(dst, 3002, protowire.BytesType), "of a later version")
		return protowire.AppendVarint(protowire.AppendTag(dst, 3003, protowire.VarintType), 1<<40), true, err
	}
}

// decodeTyped decodes what is stored.
func decodeTyped(t testing.TB, plain []byte, into runtime.Object) {
	t.Helper()
	if _, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(plain, nil, into); err != nil {
		t.Fatal(err)
	}
}
