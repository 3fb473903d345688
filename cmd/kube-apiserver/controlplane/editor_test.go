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

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/utils/ptr"
)

var statefulSets = appsv1.SchemeGroupVersion.WithResource("statefulsets")

const maxUnavailable = "spec.updateStrategy.rollingUpdate.maxUnavailable"

// TestRegistryKnowsWhatTheCatalogClears: what it does not know takes the slow way.
func TestRegistryKnowsWhatTheCatalogClears(t *testing.T) {
	of := registry{builtIn: registryStrategies(nil, nil)}
	cleared := 0
	for _, entry := range catalog.Features() {
		for _, clearing := range entry.AllTasks() {
			if !strings.HasPrefix(clearing.Name, "ClearField/") {
				continue
			}
			cleared++
			field := clearing.Fields[0]
			for _, version := range legacyscheme.Scheme.PrioritizedVersionsForGroup(field.Resource.Group) {
				resource := field.Resource.WithVersion(version.Version)
				if !catalog.HasField(legacyscheme.Scheme, resource, field.Path) {
					continue
				}
				kinds, err := of.kinds(resource, field.Path)
				if err != nil {
					t.Errorf("%s: %v", entry.Name, err)
					continue
				}
				if err := kinds.updatable(); err != nil {
					t.Errorf("%s: %v", entry.Name, err)
				}
				if !kinds.hasField(version.String()) {
					t.Errorf("%s: objects of %s do not have %s", entry.Name, resource, field.Path)
				}
			}
		}
	}
	if cleared == 0 {
		t.Error("the catalog clears no field")
	}
}

// Txn is a transaction that compares revisions and puts, as edits do.
func (k *keys) Txn(context.Context) clientv3.Txn { return &keysTxn{keys: k} }

type keysTxn struct {
	clientv3.Txn
	keys       *keys
	conditions []clientv3.Cmp
	operations []clientv3.Op
}

func (x *keysTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	x.conditions = append(x.conditions, conditions...)
	return x
}

func (x *keysTxn) Then(operations ...clientv3.Op) clientv3.Txn {
	x.operations = append(x.operations, operations...)
	return x
}

func (x *keysTxn) Commit() (*clientv3.TxnResponse, error) {
	for _, condition := range x.conditions {
		compare := condition.GetCompare()
		is := int64(0)
		if _, there := x.keys.values[string(compare.Key)]; there {
			is = int64(len(compare.Key))
		}
		wanted := compare.GetModRevision()
		if less := compare.Result == pb.Compare_LESS; less && is >= wanted || !less && is != wanted {
			return &clientv3.TxnResponse{}, nil
		}
	}
	for _, operation := range x.operations {
		x.keys.written = append(x.keys.written, string(operation.KeyBytes()))
		x.keys.values[string(operation.KeyBytes())] = operation.ValueBytes()
	}
	return &clientv3.TxnResponse{Succeeded: true}, nil
}

// editing is the editor of resources that are stored in a fake etcd.
type editing struct {
	*editor
	etcd   *keys
	events events
}

// editStored edits what is stored of a resource of apps, or a custom one.
func editStored(t *testing.T, resource schema.GroupVersionResource, level auditinternal.Level, transformer value.Transformer) (e *editing, prefix string) {
	t.Helper()
	prefix = "/registry/" + resource.Resource + "/"
	e = &editing{etcd: &keys{values: map[string][]byte{}}}
	stored := NewStored(prefixes{}, prefixes{}, func(schema.GroupResource) bool { return true })
	codec := legacyscheme.Codecs.CodecForVersions(protobufEncoder(t), legacyscheme.Codecs.UniversalDeserializer(), resource.GroupVersion(), runtime.InternalGroupVersioner)
	config := storagebackend.NewDefaultConfig("/registry", codec)
	config.Transformer = transformer
	stored.shared[resource.GroupResource()] = place{
		resource: resource.GroupResource(), client: &clientv3.Client{KV: e.etcd}, prefix: prefix,
		config: config.ForResource(resource.GroupResource()), builtIn: legacyscheme.Scheme.IsGroupRegistered(resource.Group),
	}
	e.editor = NewEditor(stored, EditorConfig{Definition: func(string) (*apiextensionsv1.CustomResourceDefinition, error) { return gadgets, nil }, AuditBackend: &e.events, AuditPolicy: policy(level)}).(*editor)
	return e, prefix
}

func protobufEncoder(t *testing.T) runtime.Encoder {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no serializer of protobuf")
	}
	return info.Serializer
}

// put stores an object, with its fields as they are.
func (e *editing) put(t *testing.T, key string, object runtime.Object, transformer value.Transformer) {
	t.Helper()
	data, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(protobufEncoder(t), schema.GroupVersions(legacyscheme.Scheme.PrioritizedVersionsAllGroups())), object)
	if err != nil {
		t.Fatal(err)
	}
	e.etcd.values[key] = e.encrypted(t, key, data, transformer)
}

func (e *editing) encrypted(t *testing.T, key string, data []byte, transformer value.Transformer) []byte {
	t.Helper()
	if transformer == nil {
		return data
	}
	data, err := transformer.TransformToStorage(t.Context(), data, value.DefaultContext(key))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// edit returns the edits of a field, or why there are none.
func (e *editing) edit(t *testing.T, resource schema.GroupVersionResource, path string) (task.EditPage, error) {
	t.Helper()
	edits, err := e.Edits(t.Context(), task.FieldEdit{Resource: resource, Path: path, Manager: "feature-lifecycle/kube-system", Feature: "Gate", TransitionID: "t1"})
	if err != nil {
		return task.EditPage{}, err
	}
	return edits.Page(t.Context(), "")
}

// statefulSet has the field, owned by a manager that owns another one, too.
func statefulSet(name string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u", Generation: 3, Labels: map[string]string{"a": "b"}},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](2), ServiceName: "s", PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:       &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0), MaxUnavailable: ptr.To(intstr.FromInt32(2))}},
		},
	}
	set.Spec.Template.Labels = set.Labels
	set.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, TerminationGracePeriodSeconds: ptr.To[int64](30),
		SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: corev1.DefaultSchedulerName,
		Containers: []corev1.Container{{
			Name: "c", Image: "example.invalid/c:1", ImagePullPolicy: corev1.PullNever,
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		}},
	}
	owned := `{"f:spec":{"f:replicas":{},"f:updateStrategy":{"f:rollingUpdate":{"f:maxUnavailable":{}}}}}`
	set.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "author", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(owned)},
	}
	return set
}

func (e *editing) statefulSet(t *testing.T, key string, transformer value.Transformer) *appsv1.StatefulSet {
	t.Helper()
	data := e.etcd.values[key]
	if transformer != nil {
		var err error
		if data, _, err = transformer.TransformFromStorage(t.Context(), data, value.DefaultContext(key)); err != nil {
			t.Fatal(err)
		}
	}
	decoded, err := runtime.Decode(legacyscheme.Codecs.UniversalDeserializer(), data)
	if err != nil {
		t.Fatal(err)
	}
	return decoded.(*appsv1.StatefulSet)
}

// TestFieldIsRemovedFromStoredObjects: with it go its owners, and nothing else, and the
// generation is the next one.
func TestFieldIsRemovedFromStoredObjects(t *testing.T) {
	transformer, _, err := aes.NewGCMTransformerWithUniqueKeyUnsafe()
	if err != nil {
		t.Fatal(err)
	}
	for name, transformer := range map[string]value.Transformer{"plain": nil, "encrypted": transformer} {
		t.Run(name, func(t *testing.T) {
			e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, transformer)
			key := prefix + "ns/a"
			e.put(t, key, statefulSet("a"), transformer)
			without := statefulSet("b")
			without.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
			e.put(t, prefix+"ns/b", without, transformer)
			other := slices.Clone(e.etcd.values[prefix+"ns/b"])
			page, err := e.edit(t, statefulSets, maxUnavailable)
			if err != nil || len(page.Edits) != 1 || page.Objects != 2 || page.Next != "" {
				t.Fatalf("page %+v, %v", page, err)
			}
			if edit := page.Edits[0]; edit.Namespace != "ns" || edit.Name != "a" || edit.Key != key {
				t.Errorf("the edit is of %+v", edit)
			}
			if err := page.Edits[0].Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := statefulSet("a")
			want.Generation = 4
			want.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
			want.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
			if diff := cmp.Diff(want, e.statefulSet(t, key, transformer)); diff != "" {
				t.Errorf("what is stored (-want +got):\n%s", diff)
			}
			if !bytes.Equal(other, e.etcd.values[prefix+"ns/b"]) || len(e.etcd.written) != 1 {
				t.Errorf("wrote %v", e.etcd.written)
			}
		})
	}
}

// TestEditsLeftToTheAPI: it decides about what is unusual, and says why.
func TestEditsLeftToTheAPI(t *testing.T) {
	unfinished := statefulSet("a")
	unfinished.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:feature-lifecycle/kube-system":{"f:spec":{"f:replicas":{}}},"f:spec":{}}`)
	beta := statefulSet("a")
	beta.ManagedFields[0].APIVersion = "apps/v0"
	invalid := statefulSet("a")
	invalid.Labels = map[string]string{"no key of a label": ""}
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		path     string
		object   *appsv1.StatefulSet
		raw      string
		says     string
	}{
		"a resource that the registry table lacks":  {resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, path: "spec.x", says: "is not known beside the API"},
		"bytes that no server reads":                {resource: statefulSets, path: maxUnavailable, raw: "garbage", says: "the stored object /registry/statefulsets/ns/a"},
		"an object of another kind":                 {resource: statefulSets, path: maxUnavailable, raw: `{"apiVersion":"v1","kind":"Secret"}`, says: "it is a Secret"},
		"a version without the field":               {resource: statefulSets, path: maxUnavailable, raw: `{"apiVersion":"apps/v0","kind":"StatefulSet"}`, says: "no type apps/v0"},
		"an attempt of the API that did not finish": {resource: statefulSets, path: maxUnavailable, object: unfinished, says: "unfinished attempt"},
		"owners in a version without the field":     {resource: statefulSets, path: maxUnavailable, object: beta, says: "an API version that does not have the path"},
		"a change that is not valid":                {resource: statefulSets, path: maxUnavailable, object: invalid, says: "the registry refuses the change"},
		"a field that must not be removed":          {resource: statefulSets, path: "spec.serviceName", object: statefulSet("a"), says: "the registry refuses the change"},
	} {
		t.Run(name, func(t *testing.T) {
			e, prefix := editStored(t, statefulSets, auditinternal.LevelMetadata, nil)
			if tc.object != nil {
				e.put(t, prefix+"ns/a", tc.object, nil)
			} else {
				e.etcd.values[prefix+"ns/a"] = []byte(tc.raw)
			}
			page, err := e.edit(t, tc.resource, tc.path)
			for _, edit := range page.Edits {
				err = errors.Join(err, edit.Write(t.Context()))
			}
			var through *task.ThroughAPIError
			if !errors.As(err, &through) || !strings.Contains(through.Reason, tc.says) {
				t.Errorf("got %v, want the API because of %q", err, tc.says)
			}
			if len(e.etcd.written) > 0 || len(e.events.all) > 0 {
				t.Errorf("wrote %v and the events %v", e.etcd.written, e.events.all)
			}
		})
	}
}

// meddling is a strategy that changes more than it is asked to.
type meddling struct{ rest.RESTUpdateStrategy }

func (m meddling) PrepareForUpdate(ctx context.Context, updated, previous runtime.Object) {
	m.RESTUpdateStrategy.PrepareForUpdate(ctx, updated, previous)
	about, err := meta.Accessor(updated)
	if err != nil {
		panic(err)
	}
	about.SetAnnotations(map[string]string{"prepared": "yes"})
}

// TestWhatTheRegistryExtendsIsLeftToTheAPI: bytes that lose the field alone would not be
// what a request stores.
func TestWhatTheRegistryExtendsIsLeftToTheAPI(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	e.kinds = registry{builtIn: map[schema.GroupResource]strategies{statefulSets.GroupResource(): {object: meddling{statefulset.Strategy}}}}.kinds
	e.put(t, prefix+"ns/a", statefulSet("a"), nil)
	page, err := e.edit(t, statefulSets, maxUnavailable)
	if err != nil || len(page.Edits) != 1 {
		t.Fatal(page, err)
	}
	var through *task.ThroughAPIError
	if err := page.Edits[0].Write(t.Context()); !errors.As(err, &through) || !strings.Contains(through.Reason, "the registry changes more than the field") || len(e.etcd.written) > 0 {
		t.Errorf("got %v, and wrote %v", err, e.etcd.written)
	}
}

func TestEditsOfChangedObjectsAreConflicts(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	key := prefix + "ns/a"
	e.put(t, key, statefulSet("a"), nil)
	page, err := e.edit(t, statefulSets, maxUnavailable)
	if err != nil || len(page.Edits) != 1 {
		t.Fatal(page, err)
	}
	delete(e.etcd.values, key)
	if err := page.Edits[0].Write(t.Context()); !apierrors.IsConflict(err) || len(e.etcd.values) > 0 {
		t.Errorf("a deleted object: %v; stored is %v", err, e.etcd.values)
	}
}

func TestEditsOfOneNamespace(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	for _, key := range []string{"ns/a", "ns-other/a", "ns/b", "other/a"} {
		e.put(t, prefix+key, statefulSet("a"), nil)
	}
	edits, err := e.Edits(t.Context(), task.FieldEdit{Resource: statefulSets, Path: maxUnavailable, Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := edits.Page(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, edit := range page.Edits {
		names = append(names, edit.Namespace+"/"+edit.Name)
	}
	if diff := cmp.Diff([]string{"ns/a", "ns/b"}, names); diff != "" {
		t.Errorf("edits (-want +got):\n%s", diff)
	}
	if page, err = edits.Page(t.Context(), "a"); err != nil || len(page.Edits) != 1 || page.Edits[0].Name != "b" {
		t.Errorf("behind a: %v, %v", page, err)
	}
	if again, err := edits.Again(t.Context(), prefix+"ns/gone"); again != nil || err != nil {
		t.Errorf("a deleted object: %v, %v", again, err)
	}
}

func TestProbesWriteNothing(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	edits, err := e.Edits(t.Context(), task.FieldEdit{Resource: statefulSets, Path: maxUnavailable})
	if err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{false, true} {
		if there {
			e.etcd.values[prefix] = []byte("x")
		}
		if took, err := edits.Probe(t.Context()); err != nil || took <= 0 || len(e.etcd.written) > 0 {
			t.Errorf("took %s, %v; wrote %v", took, err, e.etcd.written)
		}
	}
}

// events is an audit backend.
type events struct{ all []*auditinternal.Event }

func (e *events) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, event := range events {
		e.all = append(e.all, event.DeepCopy())
	}
	return true
}

// policy has one level for everything.
type policy auditinternal.Level

func (p policy) EvaluatePolicyRule(attributes authorizer.Attributes) audit.RequestAuditConfig {
	if attributes.GetVerb() != "patch" || attributes.GetUser().GetName() != featurestorage.FlowUser || !attributes.IsResourceRequest() {
		return audit.RequestAuditConfig{Level: auditinternal.LevelNone}
	}
	return audit.RequestAuditConfig{Level: auditinternal.Level(p), OmitManagedFields: true}
}

// TestEditsAreAudited: each has one event, with what was removed.
func TestEditsAreAudited(t *testing.T) {
	for level, tc := range map[auditinternal.Level]struct{ events, request, response int }{
		auditinternal.LevelNone:            {0, 0, 0},
		auditinternal.LevelMetadata:        {1, 0, 0},
		auditinternal.LevelRequest:         {1, 1, 0},
		auditinternal.LevelRequestResponse: {1, 1, 1},
	} {
		t.Run(string(level), func(t *testing.T) {
			e, prefix := editStored(t, statefulSets, level, nil)
			e.put(t, prefix+"ns/a", statefulSet("a"), nil)
			page, err := e.edit(t, statefulSets, maxUnavailable)
			if err != nil || len(page.Edits) != 1 {
				t.Fatal(page, err)
			}
			if err := page.Edits[0].Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(e.events.all) != tc.events {
				t.Fatalf("%d events, want %d", len(e.events.all), tc.events)
			}
			for _, event := range e.events.all {
				checkEvent(t, event, tc.request == 1, tc.response == 1)
			}
		})
	}
}

func checkEvent(t *testing.T, event *auditinternal.Event, request, response bool) {
	t.Helper()
	want := &auditinternal.ObjectReference{APIGroup: "apps", APIVersion: "v1", Resource: "statefulsets", Namespace: "ns", Name: "a"}
	if diff := cmp.Diff(want, event.ObjectRef); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
	got := fmt.Sprint(event.Verb, " ", event.RequestURI, " ", event.Stage, " ", event.User.Username, " ", event.ResponseStatus.Code, " ", event.UserAgent, " ", event.AuditID != "")
	if want := "patch /apis/apps/v1/namespaces/ns/statefulsets/a ResponseComplete " + featurestorage.FlowUser + " 200 feature-lifecycle true"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	annotations := map[string]string{"features.k8s.io/removed-field": maxUnavailable, "features.k8s.io/feature": "Gate", "features.k8s.io/transition": "t1"}
	if diff := cmp.Diff(annotations, event.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if (event.RequestObject != nil) != request || (event.ResponseObject != nil) != response {
		t.Errorf("the request is %v, the response %v", event.RequestObject, event.ResponseObject)
	}
	if want := `[{"op":"remove","path":"/spec/updateStrategy/rollingUpdate/maxUnavailable"}]`; request && string(event.RequestObject.Raw) != want {
		t.Errorf("the request is %s", event.RequestObject.Raw)
	}
	if response && (bytes.Contains(event.ResponseObject.Raw, []byte("maxUnavailable")) || !bytes.Contains(event.ResponseObject.Raw, []byte(`"generation":4`))) {
		t.Errorf("the response is %s", event.ResponseObject.Raw)
	}
}

// gadgets is a definition with a subresource status.
var gadgets = &apiextensionsv1.CustomResourceDefinition{
	ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.com"},
	Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Required: []string{"size"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"size": {Type: "integer"}, "color": {Type: "string"},
					}},
					"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}}},
				},
			}},
		}},
	},
}

// TestFieldIsRemovedFromCustomResources: their JSON stays as it is otherwise, fields that
// the definition does not have among it.
func TestFieldIsRemovedFromCustomResources(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	stored := `{"apiVersion":"example.com/v1","kind":"Gadget","unknown":1e3,"metadata":{"name":"a","namespace":"ns","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:color":{},"f:size":{}}}}]},"spec":{"size":1,"color":"red"},"status":{"phase":"x"}}` + "\n"
	for path, tc := range map[string]struct{ want, says string }{
		"spec.color": {want: strings.NewReplacer(`,"color":"red"`, "", `"f:color":{},`, "", `"generation":1`, `"generation":2`).Replace(stored)},
		// The status has no generation.
		"status.phase": {want: strings.Replace(stored, `"phase":"x"`, "", 1)},
		"spec.size":    {want: stored, says: "the registry refuses the change"},
	} {
		t.Run(path, func(t *testing.T) {
			e, prefix := editStored(t, resource, auditinternal.LevelNone, nil)
			e.etcd.values[prefix+"ns/a"] = []byte(stored)
			page, err := e.edit(t, resource, path)
			if err != nil || len(page.Edits) != 1 {
				t.Fatal(page, err)
			}
			err = page.Edits[0].Write(t.Context())
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if diff := cmp.Diff(tc.want, string(e.etcd.values[prefix+"ns/a"])); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if !json.Valid(e.etcd.values[prefix+"ns/a"]) {
				t.Error("what is stored is no JSON")
			}
		})
	}
}

// TestEmptiedListsKeepManagedFields: the text of sets is not in the order of maps' keys.
func TestEmptiedListsKeepManagedFields(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	set := statefulSet("a")
	set.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	set.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}, {ContainerPort: 443, Protocol: "TCP"}}
	const ports = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{".":{}}}}}}}}}`
	set.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(ports)
	e.put(t, prefix+"ns/a", set, nil)
	page, err := e.edit(t, statefulSets, "spec.template.spec.imagePullSecrets[*]")
	if err != nil || len(page.Edits) != 1 {
		t.Fatal(page, err)
	}
	if err := page.Edits[0].Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	set.Spec.Template.Spec.ImagePullSecrets = nil
	set.Generation++
	if diff := cmp.Diff(set, e.statefulSet(t, prefix+"ns/a", nil)); diff != "" {
		t.Errorf("what is stored (-want +got):\n%s", diff)
	}
}

// search returns the names that each search found.
func (e *editing) search(t *testing.T, resource schema.GroupVersionResource, namespace string, searches ...task.FieldSearch) ([][]string, error) {
	t.Helper()
	names := make([][]string, len(searches))
	read, err := e.Search(t.Context(), resource, namespace, searches, func(i int, found task.FoundObject) {
		names[i] = append(names[i], fmt.Sprintf("%s/%s %s", found.Namespace(), found.Name(), found.UID()))
	})
	prefix, stored := "/registry/"+resource.Resource+"/", 0
	if namespace != "" {
		prefix += namespace + "/"
	}
	for key := range e.etcd.values {
		if strings.HasPrefix(key, prefix) {
			stored++
		}
	}
	if err == nil && read != int64(stored) {
		t.Errorf("it read %d objects, want %d", read, stored)
	}
	return names, err
}

// TestStoredObjectsAreSearched: one walk is for all searches.
func TestStoredObjectsAreSearched(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	e.put(t, prefix+"ns/a", statefulSet("a"), nil)
	b := statefulSet("b")
	b.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(5))
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Owner", Name: "o", UID: "o", Controller: ptr.To(true)}}
	e.put(t, prefix+"ns/b", b, nil)
	c := statefulSet("c")
	c.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	e.put(t, prefix+"other/c", c, nil)
	d := statefulSet("d")
	e.put(t, prefix+"other/d", d, nil)
	is := func(wanted any) func(any) bool { return func(value any) bool { return value == wanted } }
	five := is(int64(5))
	searches := []task.FieldSearch{
		{Fields: []task.SearchedField{{Path: maxUnavailable}}},
		{Fields: []task.SearchedField{{Path: maxUnavailable, NotNull: true}}, Uncontrolled: true},
		{Fields: []task.SearchedField{{Path: maxUnavailable, Wanted: five, NotNull: true}}},
		{Fields: []task.SearchedField{{Path: "spec.minReadySeconds", NotNull: true}, {Path: "spec.replicas", NotNull: true}}},
		{Fields: []task.SearchedField{{Path: "spec.replicas", Wanted: is(int64(2)), NotNull: true}}},
		{Fields: []task.SearchedField{{Path: "spec.updateStrategy.type", Wanted: is("Recreate"), NotNull: true}, {Path: "metadata.name", Wanted: is("c"), NotNull: true}}},
		{Fields: []task.SearchedField{{Path: "metadata.ownerReferences[*].controller", Wanted: is(true), NotNull: true}}},
		// What the API always shows is null in these.
		{Fields: []task.SearchedField{{Path: "spec.selector.matchExpressions[*].values", NotNull: true}}},
	}
	for namespace, want := range map[string][][]string{
		"":   {{"ns/a u", "ns/b u", "other/d u"}, {"ns/a u", "other/d u"}, {"ns/b u"}, {"ns/a u", "ns/b u", "other/c u", "other/d u"}, {"ns/a u", "ns/b u", "other/c u", "other/d u"}, {"other/c u"}, {"ns/b u"}, nil},
		"ns": {{"ns/a u", "ns/b u"}, {"ns/a u"}, {"ns/b u"}, {"ns/a u", "ns/b u"}, {"ns/a u", "ns/b u"}, nil, {"ns/b u"}, nil},
	} {
		got, err := e.search(t, statefulSets, namespace, searches...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("found in namespace %q (-want +got):\n%s", namespace, diff)
		}
	}
	if len(e.etcd.written) > 0 {
		t.Errorf("a search wrote %v", e.etcd.written)
	}
}

// TestOtherVersionsAreLeftToTheAPI: an object whose stored version does not have the path is
// found all the same, and alone goes through the API.
func TestOtherVersionsAreLeftToTheAPI(t *testing.T) {
	autoscalers := autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")
	const tolerance = "spec.behavior.scaleUp.tolerance"
	e, prefix := editStored(t, autoscalers, auditinternal.LevelNone, nil)
	for _, object := range []struct {
		name      string
		version   schema.GroupVersion
		tolerance *resource.Quantity
	}{
		{"a", autoscalingv1.SchemeGroupVersion, nil}, {"b", autoscalingv1.SchemeGroupVersion, ptr.To(resource.MustParse("0.1"))},
		{"c", autoscalingv2.SchemeGroupVersion, nil}, {"d", autoscalingv2.SchemeGroupVersion, ptr.To(resource.MustParse("0.1"))},
	} {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: object.name, UID: "u"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "d"}, MaxReplicas: 3,
				Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{Tolerance: object.tolerance, StabilizationWindowSeconds: ptr.To[int32](0)}},
			},
		}
		internal, err := legacyscheme.Scheme.ConvertToVersion(autoscaler, runtime.InternalGroupVersioner)
		if err != nil {
			t.Fatal(err)
		}
		data, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(protobufEncoder(t), object.version), internal)
		if err != nil {
			t.Fatal(err)
		}
		e.etcd.values[prefix+"ns/"+object.name] = data
	}
	page, err := e.edit(t, autoscalers, tolerance)
	if err != nil || len(page.Edits) != 2 || page.Edits[0].Name != "b" || page.Edits[1].Name != "d" {
		t.Fatalf("edits %+v, %v; want those of b and d", page.Edits, err)
	}
	var through *task.ThroughAPIError
	if err := page.Edits[0].Write(t.Context()); !errors.As(err, &through) || !strings.Contains(through.Reason, "stored in autoscaling/v1") {
		t.Errorf("b: got %v, want the API", err)
	}
	if err := page.Edits[1].Write(t.Context()); err != nil || !slices.Equal(e.etcd.written, []string{prefix + "ns/d"}) {
		t.Errorf("d: got %v, and wrote %v", err, e.etcd.written)
	}
	found, err := e.search(t, autoscalers, "", task.FieldSearch{Fields: []task.SearchedField{{Path: tolerance}}})
	if err != nil || !slices.Equal(found[0], []string{"ns/b u"}) {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestValuesOfCustomResources: integers are compared as the API shows them.
func TestValuesOfCustomResources(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	e, prefix := editStored(t, resource, auditinternal.LevelNone, nil)
	e.etcd.values[prefix+"ns/a"] = []byte(`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a","namespace":"ns","uid":"u"},"spec":{"size":1000000}}`)
	var seen []any
	million := func(value any) bool { seen = append(seen, value); return fmt.Sprint(value) == "1000000" }
	got, err := e.search(t, resource, "", task.FieldSearch{Fields: []task.SearchedField{{Path: "spec.size", Wanted: million, NotNull: true}}})
	if err != nil || len(got[0]) != 1 || !slices.Equal(seen, []any{int64(1000000)}) {
		t.Errorf("found %v, %v among %#v", got, err, seen)
	}
}

// TestNullIsNotFound: the API shows null for a field without a value whose type does not
// omit it, and bytes do not.
func TestNullIsNotFound(t *testing.T) {
	workloads := schedulingv1beta1.SchemeGroupVersion.WithResource("workloads")
	e, prefix := editStored(t, workloads, auditinternal.LevelNone, nil)
	for name, constraints := range map[string]*schedulingv1beta1.PodGroupSchedulingConstraints{"a": nil, "b": {Topology: []schedulingv1beta1.TopologyConstraint{{Key: "zone"}}}} {
		e.put(t, prefix+"ns/"+name, &schedulingv1beta1.Workload{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "Workload"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"},
			Spec:       schedulingv1beta1.WorkloadSpec{PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{{Name: "t", SchedulingConstraints: constraints}}},
		}, nil)
	}
	const path = "spec.podGroupTemplates[*].schedulingConstraints"
	got, err := e.search(t, workloads, "", task.FieldSearch{Fields: []task.SearchedField{{Path: path, NotNull: true}}}, task.FieldSearch{Fields: []task.SearchedField{{Path: path}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"ns/b u"}, {"ns/a u", "ns/b u"}}, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// TestObjectsOfAllVersionsAreFound: devicetaintrules are declared and stored in v1beta2, of
// which upstream serves v1 alone.
func TestObjectsOfAllVersionsAreFound(t *testing.T) {
	rules := resourcev1beta2.SchemeGroupVersion.WithResource("devicetaintrules")
	const path = "spec.taint.effect"
	for _, declared := range []schema.GroupVersionResource{rules, rules.GroupResource().WithVersion("v1")} {
		e, prefix := editStored(t, rules, auditinternal.LevelNone, nil)
		e.put(t, prefix+"a", &resourcev1beta2.DeviceTaintRule{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1beta2", Kind: "DeviceTaintRule"},
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"},
			Spec:       resourcev1beta2.DeviceTaintRuleSpec{Taint: resourcev1beta2.DeviceTaint{Effect: resourcev1beta2.DeviceTaintEffectNone}},
		}, nil)
		e.put(t, prefix+"b", &resourcev1.DeviceTaintRule{
			TypeMeta:   metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "DeviceTaintRule"},
			ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "u"},
			Spec:       resourcev1.DeviceTaintRuleSpec{Taint: resourcev1.DeviceTaint{Effect: resourcev1.DeviceTaintEffectNone}},
		}, nil)
		got, err := e.search(t, declared, "", task.FieldSearch{Fields: []task.SearchedField{{Path: path, Wanted: func(value any) bool { return value == "None" }, NotNull: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]string{{"/a u", "/b u"}}, got); diff != "" {
			t.Errorf("found as %s (-want +got):\n%s", declared, diff)
		}
	}
}

// TestPlansShowTheWayOfACollection: what has no strategy is patched, and its plan must not
// promise that admission is left out.
func TestPlansShowTheWayOfACollection(t *testing.T) {
	services := corev1.SchemeGroupVersion.WithResource("services")
	for resource, want := range map[schema.GroupVersionResource]string{
		statefulSets: "in storage; admission and webhooks are not called",
		services:     "through the API",
	} {
		e, _ := editStored(t, resource, auditinternal.LevelNone, nil)
		path := map[bool]string{true: maxUnavailable, false: "spec.internalTrafficPolicy"}[resource == statefulSets]
		got, err := task.ClearField(resource, path).Way(t.Context(), task.Clients{Storage: e.stored, Editor: e})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", resource.Resource, got, err, want)
		}
	}
}

// TestWhatIsNotServedIsLeftToTheAPI: tasks describe there how to reach its objects.
func TestWhatIsNotServedIsLeftToTheAPI(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	e.stored.serves = func(schema.GroupResource) bool { return false }
	e.put(t, prefix+"ns/a", statefulSet("a"), nil)
	_, searchErr := e.search(t, statefulSets, "", task.FieldSearch{Fields: []task.SearchedField{{Path: maxUnavailable}}})
	_, editErr := e.edit(t, statefulSets, maxUnavailable)
	for _, err := range []error{searchErr, editErr} {
		var through *task.ThroughAPIError
		if !errors.As(err, &through) || !strings.Contains(through.Reason, "is not served") {
			t.Errorf("got %v", err)
		}
	}
}

// TestObjectsOfAFlowsClientAreEdited: its Leases have the manager "feature-lifecycle", as a
// flow that was cut short leaves another one.
func TestObjectsOfAFlowsClientAreEdited(t *testing.T) {
	e, prefix := editStored(t, statefulSets, auditinternal.LevelNone, nil)
	of := statefulSet("a")
	of.ManagedFields[0].Manager, of.ManagedFields[0].Operation = "feature-lifecycle", metav1.ManagedFieldsOperationUpdate
	e.put(t, prefix+"ns/a", of, nil)
	without := of.DeepCopy()
	without.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	e.put(t, prefix+"ns/b", without, nil)
	page, err := e.edit(t, statefulSets, maxUnavailable)
	if err != nil || len(page.Edits) != 1 || page.Edits[0].Name != "a" {
		t.Fatal(page, err)
	}
	if err := page.Edits[0].Write(t.Context()); err != nil {
		t.Error(err)
	}
}
