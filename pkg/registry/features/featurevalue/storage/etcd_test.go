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

package storage

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install" // the kinds that are stored
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/registry/registrytest"
	"k8s.io/utils/ptr"
)

// newREST returns the storage on an etcd of its own.
func newREST(t *testing.T) *REST {
	t.Helper()
	config, server := registrytest.NewEtcdStorageForResource(t, features.Resource("featurevalues"))
	t.Cleanup(func() { server.Terminate(t) })
	r, err := NewREST(generic.RESTOptions{
		StorageConfig: config, Decorator: generic.UndecoratedStorage, DeleteCollectionWorkers: 1, ResourcePrefix: "featurevalues",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Destroy)
	return r
}

// as is a request of a user in a namespace.
func as(t *testing.T, name, namespace string) context.Context {
	return genericapirequest.WithNamespace(genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: name}), namespace)
}

func flow(t *testing.T) context.Context {
	return as(t, featurestorage.FlowUser, metav1.NamespaceSystem)
}

func value(namespace, name string, enabled bool) *features.FeatureValue {
	return &features.FeatureValue{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Control:    features.ControlDynamic, Value: enabled, FeatureVersion: "123456788",
	}
}

func create(ctx context.Context, r *REST, v *features.FeatureValue) (*features.FeatureValue, error) {
	obj, err := r.Create(ctx, v, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*features.FeatureValue), nil
}

func update(ctx context.Context, r *REST, v *features.FeatureValue, forceAllowCreate bool) (*features.FeatureValue, error) {
	obj, _, err := r.Update(ctx, v.Name, rest.DefaultUpdatedObjectInfo(v), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, forceAllowCreate, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*features.FeatureValue), nil
}

func created(ctx context.Context, t *testing.T, r *REST, v *features.FeatureValue) *features.FeatureValue {
	t.Helper()
	stored, err := create(ctx, r, v)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func wantForbidden(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), featurestorage.FlowUser) {
		t.Errorf("%s: got %v, want it forbidden and to name who may", what, err)
	}
}

// TestOnlyServerFlowWritesValuesOfKubernetes is S5. Operators' own flows have other
// namespaces, which RBAC protects.
func TestOnlyServerFlowWritesValuesOfKubernetes(t *testing.T) {
	r := newREST(t)
	admin := as(t, "admin", metav1.NamespaceSystem)
	_, err := create(admin, r, value(metav1.NamespaceSystem, "A", true))
	wantForbidden(t, "creating", err)
	_, err = update(admin, r, value(metav1.NamespaceSystem, "A", true), true)
	wantForbidden(t, "applying", err)
	_, err = create(genericapirequest.WithNamespace(t.Context(), metav1.NamespaceSystem), r, value(metav1.NamespaceSystem, "A", true))
	wantForbidden(t, "creating without a user", err)
	stored := created(flow(t), t, r, value(metav1.NamespaceSystem, "A", true))
	for name, change := range map[string]func(*features.FeatureValue){
		"the value":      func(v *features.FeatureValue) { v.Value = false },
		"the control":    func(v *features.FeatureValue) { v.Control = features.ControlCentral },
		"the rollout":    func(v *features.FeatureValue) { v.Rollout = &features.FeatureRollout{Percent: ptr.To[int32](1)} },
		"the version":    func(v *features.FeatureValue) { v.FeatureVersion = "9" },
		"when to report": func(v *features.FeatureValue) { v.ReportWithinSeconds = 1 },
		"all, to nothing": func(v *features.FeatureValue) {
			*v = *value(v.Namespace, v.Name, false)
			v.ResourceVersion = stored.ResourceVersion
		},
	} {
		changed := stored.DeepCopy()
		change(changed)
		_, err := update(admin, r, changed, false)
		wantForbidden(t, "changing "+name, err)
	}
	changed := stored.DeepCopy()
	changed.Value = false
	if stored, err = update(flow(t), r, changed, false); err != nil || stored.Value {
		t.Errorf("the server flow changed it to %+v, %v", stored, err)
	}
	other := created(as(t, "operator", "widgets"), t, r, value("widgets", "A", true))
	other.Value = false
	if _, err := update(as(t, "operator", "widgets"), r, other, false); err != nil {
		t.Errorf("an operator changes its own value: %v", err)
	}
}

// TestOthersMayWriteMetadata: the garbage collector removes finalizers, and the migrator of
// storage versions stores the same again.
func TestOthersMayWriteMetadata(t *testing.T) {
	r := newREST(t)
	admin := as(t, "admin", metav1.NamespaceSystem)
	held := value(metav1.NamespaceSystem, "A", true)
	held.Finalizers = []string{metav1.FinalizerOrphanDependents}
	stored := created(flow(t), t, r, held)
	migrated := stored.DeepCopy()
	migrated.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "before-first-apply"}}
	same, err := update(admin, r, migrated, false)
	if err != nil {
		t.Fatal(err)
	}
	stored.ResourceVersion = same.ResourceVersion
	if diff := cmp.Diff(stored, same); diff != "" {
		t.Errorf("the migrator changed it (-before +after):\n%s", diff)
	}
	same.Finalizers = nil
	if _, err := update(admin, r, same, false); err != nil {
		t.Errorf("removing a finalizer: %v", err)
	}
	if _, _, err := r.Delete(admin, "A", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting: %v", err)
	}
}

func TestValueNeedsVersionToUpdate(t *testing.T) {
	r := newREST(t)
	first := created(flow(t), t, r, value(metav1.NamespaceSystem, "A", true))
	second := first.DeepCopy()
	second.Value = false
	if _, err := update(flow(t), r, second, false); err != nil {
		t.Fatal(err)
	}
	first.FeatureVersion = "9"
	if _, err := update(flow(t), r, first, false); !apierrors.IsConflict(err) {
		t.Errorf("an old version is written: %v", err)
	}
	first.ResourceVersion = ""
	if _, err := update(flow(t), r, first, false); !apierrors.IsInvalid(err) {
		t.Errorf("no version is written: %v", err)
	}
	if _, err := update(flow(t), r, value(metav1.NamespaceSystem, "B", true), false); !apierrors.IsNotFound(err) {
		t.Errorf("a PUT to a value that is not there: %v", err)
	}
}

func TestValuesAreSelectedByControl(t *testing.T) {
	r := newREST(t)
	created(flow(t), t, r, value(metav1.NamespaceSystem, "A", true))
	central := value(metav1.NamespaceSystem, "B", true)
	central.Control = features.ControlCentral
	created(flow(t), t, r, central)
	for selector, want := range map[string][]string{"": {"A", "B"}, "control=Dynamic": {"A"}, "control=Central": {"B"}, "control=Local": nil} {
		parsed, err := pkgfields.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.List(flow(t), &metainternalversion.ListOptions{FieldSelector: parsed})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, item := range list.(*features.FeatureValueList).Items {
			names = append(names, item.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("by %q (-want +got):\n%s", selector, diff)
		}
	}
}

const (
	// maxEvent is the most that a change of a value sends to a process, in bytes. Processes
	// ask for protobuf (agent.ClientConfig).
	maxEvent = 300
	// maxJSONEvent is what it is for other clients. With a name of 50 characters, what all
	// objects have is more than 300 bytes in JSON: type, kind, name, namespace, uid, resource
	// version and creation time.
	maxJSONEvent = 520
)

// longName has 50 characters, as many as the longest gates of Kubernetes.
var longName = "A" + strings.Repeat("VeryLongNameOfAGate", 3)[:49]

// event is what kube-apiserver sends to a watch for an object (k8s.io/apiserver/pkg/endpoints/handlers).
func event(t *testing.T, mediaType string, stored *features.FeatureValue) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		t.Fatalf("no watch has %s", mediaType)
	}
	object, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion), stored)
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	frames := info.StreamSerializer.NewFrameWriter(&sent)
	encoder := legacyscheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, v1alpha1.SchemeGroupVersion)
	if err := encoder.Encode(&metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Raw: object}}, frames); err != nil {
		t.Fatal(err)
	}
	return sent.Bytes()
}

// TestEventIsSmall: a change sends it to each of thousands of processes.
func TestEventIsSmall(t *testing.T) {
	r := newREST(t)
	applied := value(metav1.NamespaceSystem, longName, true)
	applied.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-apiserver", Operation: metav1.ManagedFieldsOperationUpdate}}
	applied.Labels = map[string]string{"added-by": "admission"}
	applied.ReportWithinSeconds = 35
	stored := created(flow(t), t, r, applied)
	canary := stored.DeepCopy()
	canary.Previous, canary.Rollout = ptr.To(false), &features.FeatureRollout{Percent: ptr.To[int32](25), Components: []string{"kube-proxy", "kubelet"}}
	together := canary.DeepCopy()
	together.Rollout.At = ptr.To(metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))
	for name, v := range map[string]*features.FeatureValue{"for all": stored, "for a part": canary, "for a part, and for all later": together} {
		v.ResourceVersion = strconv.Itoa(123456789)
		protobuf, json := event(t, runtime.ContentTypeProtobuf, v), event(t, runtime.ContentTypeJSON, v)
		t.Logf("an event %s has %d bytes as protobuf and %d as JSON: %s", name, len(protobuf), len(json), json)
		if len(protobuf) > maxEvent {
			t.Errorf("an event %s has %d bytes as protobuf, want at most %d", name, len(protobuf), maxEvent)
		}
		if len(json) > maxJSONEvent {
			t.Errorf("an event %s has %d bytes as JSON, want at most %d", name, len(json), maxJSONEvent)
		}
	}
}

// TestTable has every column and what a value shows in it.
func TestTable(t *testing.T) {
	r := &REST{}
	for name, tc := range map[string]struct {
		value *features.FeatureValue
		want  []any
	}{
		"for all": {value(metav1.NamespaceSystem, "A", true), []any{"A", "Dynamic", "on", "<none>", "<none>", "<unknown>", "123456788", "0s"}},
		"for a part": {&features.FeatureValue{
			ObjectMeta: metav1.ObjectMeta{Name: "A"}, Control: features.ControlCentral, Value: false, Previous: ptr.To(true), FeatureVersion: "7", ReportWithinSeconds: 12,
			Rollout: &features.FeatureRollout{Percent: ptr.To[int32](25), Components: []string{"kubelet", "kube-proxy"}},
		}, []any{"A", "Central", "off", "25% of kubelet,kube-proxy", "on", "<unknown>", "7", "12s"}},
		"for a component": {&features.FeatureValue{ObjectMeta: metav1.ObjectMeta{Name: "A"}, Control: features.ControlDynamic, Rollout: &features.FeatureRollout{Components: []string{"kubelet"}}},
			[]any{"A", "Dynamic", "off", "100% of kubelet", "<none>", "<unknown>", "", "0s"}},
		"for all at a moment": {&features.FeatureValue{
			ObjectMeta: metav1.ObjectMeta{Name: "A"}, Control: features.ControlDynamic, Value: true, Previous: ptr.To(false),
			Rollout: &features.FeatureRollout{Percent: ptr.To[int32](0), At: ptr.To(metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)))},
		}, []any{"A", "Dynamic", "on", "0%, all at 2026-11-30T12:00:00Z", "off", "<unknown>", "", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := printValue(tc.value, printers.GenerateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, rows[0].Cells); diff != "" {
				t.Errorf("unexpected row (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]string{"features-all"}, r.Categories()); diff != "" {
		t.Errorf("unexpected categories (-want +got):\n%s", diff)
	}
}
