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
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

//go:embed testdata/twins.yaml
var twins []byte

// validValues are values of fields that not any value is valid for, and what has to be there
// beside them.
var validValues = map[string]map[string]any{
	"spec.preferredHolder":                    {"spec.preferredHolder": "h", "spec.strategy": "OldestEmulationVersion"},
	"spec.strategy":                           {"spec.strategy": "OldestEmulationVersion"},
	"spec.extendedResourceName":               {"spec.extendedResourceName": "example.com/x"},
	"spec.nodeAllocatableUpdatePeriodSeconds": {"spec.nodeAllocatableUpdatePeriodSeconds": int64(10)},
	"status.declaredFeatures":                 {"status.declaredFeatures": []any{"Some"}},
	"status.reservedFor[resource=podgroups]":  {"status.allocation": map[string]any{"devices": map[string]any{"results": []any{map[string]any{"request": "r", "driver": "twin.example.com", "pool": "p", "device": "d"}}}}},
	"spec.devices[*].nodeAllocatableResources": {"spec.devices": []any{
		map[string]any{"name": "d", "nodeAllocatableResources": map[string]any{"cpu": map[string]any{"mapping": map[string]any{"deviceMultiplier": "1"}}}},
	}},
	"spec.partitionTypeAttribute": {
		"spec.partitionTypeAttribute": "example.com/x",
		"spec.devices": []any{map[string]any{
			"name": "d", "attributes": map[string]any{"example.com/x": map[string]any{"string": "a"}},
			"consumesCounters": []any{map[string]any{"counterSet": "s", "counters": map[string]any{"c": map[string]any{"value": "1"}}}},
		}},
	},
}

// alwaysDefaulted are fields that this version gives a default whatever gates say; only
// servers that emulate an older one clear them.
var alwaysDefaulted = []string{"spec.seLinuxMount"}

// twinGates are those of the server and of this process: the one of MaxUnavailableStatefulSet
// gives the field a default, and PodGroups are served with the other.
var twinGates = map[string]bool{"FeatureLifecycle": false, "MaxUnavailableStatefulSet": false, "VolumeLimitScaling": false, "GenericWorkload": true}

// TestStorageClearsAsTheAPIDoes has one object of each resource of the catalog, and of
// custom ones, cleared through the API, put back as it was, and cleared in storage. Both
// have to leave the same: fields, generation, managed fields.
func TestStorageClearsAsTheAPIDoes(t *testing.T) {
	w := newWorld(t, framework.Start(t, localcluster.Config{
		FeatureGates: gatesFlag(twinGates),
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		ExtraArgs:    map[string][]string{localcluster.APIServer: {"--runtime-config=api/all=true"}},
	}))
	w.makeNamespace(t)
	for name, on := range twinGates {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, featuregate.Feature(name), on)
	}
	resources := twinResources(t)
	cleared := map[schema.GroupResource]bool{}
	for _, feature := range catalog.Features() {
		for _, clearing := range feature.AllTasks() {
			if !strings.HasPrefix(clearing.Name, "ClearField/") {
				continue
			}
			field := clearing.Fields[0]
			twin, ok := resources[field.Resource]
			if !ok {
				t.Errorf("%s: testdata/twins.yaml has no object of %s", feature.Name, field.Resource)
				continue
			}
			cleared[field.Resource] = true
			if slices.Contains(alwaysDefaulted, field.Path) {
				continue
			}
			t.Run(string(feature.Name)+"/"+field.Resource.String()+"/"+field.Path, func(t *testing.T) { w.clearTwins(t, twin, clearing) })
		}
	}
	for of := range resources {
		if !cleared[of] {
			t.Errorf("the catalog clears no field of %s: take it out of testdata/twins.yaml", of)
		}
	}
	t.Run("a custom resource", func(t *testing.T) {
		k := customKind("Piece")
		w.serve(t, k)
		object := k.object("twin", map[string]any{"color": "red", "size": int64(1), "parts": []any{map[string]any{"name": "a", "hue": "x"}, map[string]any{"name": "b"}}})
		for _, path := range []string{"spec.color", "spec.parts[*].hue", "spec.parts[name=b]", "spec.parts[*]"} {
			t.Run(path, func(t *testing.T) {
				w.clearTwins(t, twinOf{k.resource, object}, lifecycle.ClearField(k.resource, path))
			})
		}
	})
}

func gatesFlag(gates map[string]bool) string {
	var parts []string
	for name, on := range gates {
		parts = append(parts, fmt.Sprintf("%s=%t", name, on))
	}
	return strings.Join(parts, ",")
}

// twinOf is an object and its resource.
type twinOf struct {
	schema.GroupVersionResource
	object *unstructured.Unstructured
}

func twinResources(t *testing.T) map[schema.GroupResource]twinOf {
	t.Helper()
	all := map[schema.GroupResource]twinOf{}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(twins), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		of, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		all[of.GroupResource()] = twinOf{of, object}
	}
}

// clearTwins clears a field of an object in both ways.
func (w *world) clearTwins(t *testing.T, twin twinOf, clearing task.Task) {
	object, key := w.makeTwin(t, twin, clearing.Fields[0].Path)
	defer w.deleteTwin(t, twin, object)
	before := w.bytesAt(t, key)
	clients := w.clients(t, clearing)
	run(t, clients, clearing)
	throughAPI := w.bytesAt(t, key)
	if bytes.Equal(before, throughAPI) {
		t.Fatal("the API changed nothing: this test tries nothing")
	}
	if _, err := w.etcd.Put(t.Context(), key, string(before)); err != nil {
		t.Fatal(err)
	}
	clients.Storage = w.stored
	clients.Editor = onlyStorage{w.editor(), t}
	run(t, clients, clearing)
	inStorage := w.bytesAt(t, key)
	if diff := cmp.Diff(decodeTwin(t, twin, throughAPI), decodeTwin(t, twin, inStorage)); diff != "" {
		t.Errorf("what is stored (-through the API +in storage):\n%s", diff)
	}
}

// makeTwin makes an object that has a field, and two managers that own all of it.
func (w *world) makeTwin(t *testing.T, twin twinOf, path string) (object *unstructured.Unstructured, key string) {
	t.Helper()
	object = w.renamed(twin)
	client := w.objects.Resource(twin.GroupVersionResource).Namespace("")
	if w.namespaced(t, twin) {
		object.SetNamespace(ns)
		client = w.objects.Resource(twin.GroupVersionResource).Namespace(ns)
	}
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "creator"})
	if err != nil {
		t.Fatal(err)
	}
	key = w.keyOf(t, made)
	if twin.Group == group {
		return made, key
	}
	for beside, value := range validValues[path] {
		if err := unstructured.SetNestedField(made.Object, value, strings.Split(beside, ".")...); err != nil {
			t.Fatal(err)
		}
	}
	if twin.Group == "apiextensions.k8s.io" {
		// Its status is written until then.
		plural, _, _ := strings.Cut(made.GetName(), ".")
		w.WaitUntilServed(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
		if made, err = client.Get(t.Context(), made.GetName(), metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fillPath(t, twin, made.Object, path)
	w.putTwin(t, twin, key, made)
	var subresources []string
	if strings.HasPrefix(path, "status.") {
		subresources = []string{"status"}
	}
	for _, manager := range []string{"driver", "other"} {
		applied := made.DeepCopy()
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"} {
			unstructured.RemoveNestedField(applied.Object, "metadata", field)
		}
		if _, err := client.Apply(t.Context(), made.GetName(), applied, metav1.ApplyOptions{FieldManager: manager, Force: true}, subresources...); err != nil {
			t.Fatalf("applying the object with the field: %v", err)
		}
	}
	return made, key
}

// renamed returns a copy of the object with a name that no other one had.
func (w *world) renamed(twin twinOf) *unstructured.Unstructured {
	object, number := twin.object.DeepCopy(), strconv.FormatInt(w.identities.Add(1), 10)
	if twin.Group != "apiextensions.k8s.io" {
		object.SetName("twin" + number + strings.TrimPrefix(object.GetName(), "twin"))
		return object
	}
	names := map[string]any{"plural": "twins" + number, "singular": "twin" + number, "kind": "Twin" + number, "listKind": "Twin" + number + "List"}
	object.Object["spec"].(map[string]any)["names"] = names
	object.SetName("twins" + number + "." + group)
	return object
}

func (w *world) namespaced(t *testing.T, twin twinOf) bool {
	t.Helper()
	list, err := w.Kube.Discovery().ServerResourcesForGroupVersion(twin.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range list.APIResources {
		if found.Name == twin.Resource {
			return found.Namespaced
		}
	}
	t.Fatalf("%s is not served", twin.GroupVersionResource)
	return false
}

// keyOf finds where an object is stored by its uid.
func (w *world) keyOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), "/registry/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if strings.HasSuffix(string(kv.Key), "/"+object.GetName()) && bytes.Contains(kv.Value, []byte(object.GetUID())) {
			return string(kv.Key)
		}
	}
	t.Fatalf("%s %s is stored under no key", object.GetKind(), object.GetName())
	return ""
}

func (w *world) bytesAt(t *testing.T, key string) []byte {
	t.Helper()
	found, err := w.etcd.Get(t.Context(), key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("reading %s: %d values, %v", key, len(found.Kvs), err)
	}
	return found.Kvs[0].Value
}

func schemeOf(twin twinOf) *runtime.Scheme {
	if twin.Group == "apiextensions.k8s.io" {
		return apiextensionsapiserver.Scheme
	}
	return legacyscheme.Scheme
}

// putTwin stores an object in the encoding in which it is stored.
func (w *world) putTwin(t *testing.T, twin twinOf, key string, object *unstructured.Unstructured) {
	t.Helper()
	typed, err := schemeOf(twin).New(object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		t.Fatal(err)
	}
	accessor, err := meta.Accessor(typed)
	if err != nil {
		t.Fatal(err)
	}
	accessor.SetResourceVersion("")
	codecs, mediaType := legacyscheme.Codecs, runtime.ContentTypeProtobuf
	if !bytes.HasPrefix(w.bytesAt(t, key), []byte("k8s\x00")) {
		mediaType = runtime.ContentTypeJSON
	}
	if twin.Group == "apiextensions.k8s.io" {
		codecs = apiextensionsapiserver.Codecs
	}
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, twin.GroupVersion()), typed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.etcd.Put(t.Context(), key, string(data)); err != nil {
		t.Fatal(err)
	}
}

func decodeTwin(t *testing.T, twin twinOf, data []byte) any {
	t.Helper()
	if twin.Group == group {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		return object.Object
	}
	codecs := legacyscheme.Codecs
	if twin.Group == "apiextensions.k8s.io" {
		codecs = apiextensionsapiserver.Codecs
	}
	decoded, _, err := codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func (w *world) deleteTwin(t *testing.T, twin twinOf, object *unstructured.Unstructured) {
	t.Helper()
	now := int64(0)
	client := w.objects.Resource(twin.GroupVersionResource).Namespace(object.GetNamespace())
	letGo := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := client.Patch(t.Context(), object.GetName(), "application/merge-patch+json", letGo, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if err := client.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Error(err)
	}
}

// editor edits as the server does, without an audit log.
func (w *world) editor() task.Editor {
	definitions := apiextensions.NewForConfigOrDie(w.Impersonate("editor", user.SystemPrivilegedGroup)).ApiextensionsV1().CustomResourceDefinitions()
	return controlplane.NewEditor(w.stored, controlplane.EditorConfig{
		Namespaces: w.Kube.CoreV1().Namespaces(),
		// The server flow has the permissions of its tasks.
		Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer(),
		Definition: func(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
			return definitions.Get(context.Background(), name, metav1.GetOptions{}) //nolint:forbidigo // the server's lister has no context
		},
	})
}

// onlyStorage fails the test if anything is left to the API.
type onlyStorage struct {
	task.Editor
	t *testing.T
}

func (o onlyStorage) Edits(ctx context.Context, what task.FieldEdit) (task.FieldEdits, error) {
	edits, err := o.Editor.Edits(ctx, what)
	o.check(err)
	return onlyStorageEdits{edits, o}, err
}

func (o onlyStorage) check(err error) {
	var through *task.ThroughAPIError
	if errors.As(err, &through) {
		o.t.Error(through)
	}
}

type onlyStorageEdits struct {
	task.FieldEdits
	all onlyStorage
}

func (e onlyStorageEdits) Page(ctx context.Context, from string) (task.EditPage, error) {
	page, err := e.FieldEdits.Page(ctx, from)
	e.all.check(err)
	for i := range page.Edits {
		write := page.Edits[i].Write
		page.Edits[i].Write = func(ctx context.Context) error {
			err := write(ctx)
			e.all.check(err)
			return err
		}
	}
	return page, err
}

// fillPath writes the field into an object.
func fillPath(t *testing.T, twin twinOf, object map[string]any, path string) {
	t.Helper()
	of, err := schemeOf(twin).New(twin.GroupVersion().WithKind(twin.object.GetKind()))
	if err != nil {
		t.Fatal(err)
	}
	keys, selectors := task.RemovedField{Path: path}.Keys()
	fill(object, reflect.TypeOf(of).Elem(), keys, selectors)
	parsed, err := task.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Pointers(object)) == 0 {
		t.Fatalf("an object with %s was not made", path)
	}
}

// fill makes what the keys lead to in an object of a Go type, in each element or entry
// that is there, or in a new one.
func fill(object map[string]any, of reflect.Type, keys, selectors []string) {
	key, last := keys[0], len(keys) == 1
	field := fieldType(of, key)
	switch selector := selectors[0]; {
	case selector == "" && last:
		if _, is := object[key]; !is {
			object[key] = sample(field)
		}
	case selector == "":
		child, _ := object[key].(map[string]any)
		if child == nil {
			child = map[string]any{}
		}
		object[key] = child
		fill(child, field, keys[1:], selectors[1:])
	case selector[0] == '[':
		elements, _ := object[key].([]any)
		name, value, named := strings.Cut(strings.Trim(selector, "[]"), "=")
		if named || len(elements) == 0 {
			element, _ := sample(field.Elem()).(map[string]any)
			if named {
				element[name] = value
			}
			elements = append(elements, element)
		}
		for _, element := range elements {
			if fields, ok := element.(map[string]any); ok && !last && (!named || fields[name] == value) {
				fill(fields, field.Elem(), keys[1:], selectors[1:])
			}
		}
		object[key] = elements
	default:
		entries, _ := object[key].(map[string]any)
		if entries == nil {
			entries = map[string]any{}
		}
		if name := strings.Trim(selector, "{}"); name != "*" {
			entries[name] = sample(field.Elem())
		}
		for _, entry := range entries {
			if fields, ok := entry.(map[string]any); ok && !last {
				fill(fields, field.Elem(), keys[1:], selectors[1:])
			}
		}
		object[key] = entries
	}
}

// fieldType is the type of the field with a JSON key, without pointers.
func fieldType(of reflect.Type, key string) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == key {
			found := f.Type
			for found.Kind() == reflect.Pointer {
				found = found.Elem()
			}
			return found
		}
		if name == "" && f.Anonymous {
			if found := fieldType(f.Type, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// sample is the JSON of a value that is not empty.
func sample(of reflect.Type) any {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[resource.Quantity]():
		return "1"
	case of == reflect.TypeFor[intstr.IntOrString]():
		return int64(1)
	case of == reflect.TypeFor[metav1.Time]():
		return "2026-01-01T00:00:00Z"
	}
	switch of.Kind() {
	case reflect.String:
		return "x"
	case reflect.Bool:
		return true
	case reflect.Slice:
		return []any{sample(of.Elem())}
	case reflect.Map:
		return map[string]any{"cpu": sample(of.Elem())}
	case reflect.Struct:
		return sampleStruct(of)
	default:
		return int64(1)
	}
}

// sampleStruct has a value in what identifies an element of a list.
func sampleStruct(of reflect.Type) any {
	value := map[string]any{}
	for _, key := range []string{"name", "type", "status", "uid", "resource", "key", "effect", "health"} {
		if field := fieldType(of, key); field != nil && field.Kind() == reflect.String {
			value[key] = "x"
			if key == "health" {
				value[key] = "Healthy"
			}
		}
	}
	return value
}
