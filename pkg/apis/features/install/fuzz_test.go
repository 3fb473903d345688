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

package install_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
	"k8s.io/kubernetes-features/pkg/registry/features/feature"
	"k8s.io/kubernetes-features/pkg/registry/features/featurereport"
	"k8s.io/kubernetes-features/pkg/registry/features/featurevalue"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/ptr"
)

// codecs are kube-apiserver's, with the formats that a gate may turn on.
var codecs = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

var mediaTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR}

func serializerFor(t testing.TB, mediaType string) runtime.SerializerInfo {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("the server has no %s", mediaType)
	}
	return info
}

// realistic are objects of all kinds of the group.
func realistic() []runtime.Object {
	began := metav1.NewMicroTime(time.Date(2026, 11, 1, 2, 3, 4, 5000, time.UTC))
	then := metav1.NewTime(began.Truncate(time.Second))
	meta := metav1.ObjectMeta{
		Namespace: "kube-system", Name: "MaxUnavailableStatefulSet", UID: "0b5d", ResourceVersion: "7", Generation: 2, CreationTimestamp: then,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"features.k8s.io/requested-by": "jane"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "features.k8s.io/v1alpha1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}},
	}
	uses := []v1alpha1.FeatureUse{{Component: "kubelet", Version: "v1.36.3", Enabled: ptr.To(true), Count: 3, Expected: 4, Stale: 1, Examples: []string{"node-1"}}}
	tasks := []v1alpha1.FeatureTask{{Name: v1alpha1.TaskWaitForUses, Message: "3 of 4"}, {Name: "ClearField/statefulsets.apps/spec.x", Done: 1, Total: 2, Attempts: 3, LastAttemptTime: &began, Checkpoint: "1 token"}}
	f := v1alpha1.Feature{
		ObjectMeta: meta,
		Spec:       v1alpha1.FeatureSpec{Enabled: ptr.To(false), Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](5), Components: []string{"kubelet"}, Attempt: 1}, Paused: true},
		Status: v1alpha1.FeatureStatus{
			Stage: v1alpha1.StageBeta, Default: ptr.To(true), Control: v1alpha1.ControlDynamic, State: v1alpha1.StateTurningOff, StateSince: &then, Version: "1.36",
			Configured: &v1alpha1.FeatureConfiguration{Source: v1alpha1.SourceAPI, Previous: ptr.To(true)},
			Transition: &v1alpha1.FeatureTransition{ID: "t", StartTime: began, Reason: v1alpha1.TransitionConfiguration, FromVersion: "1.35", ToVersion: "1.36", FromState: v1alpha1.StateOn},
			Tasks:      tasks, Uses: uses, StoredVersions: []string{"1.35"},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionConsistent, Status: metav1.ConditionTrue, Reason: "Agreed", Message: "m", LastTransitionTime: then}},
			Rollout:    &v1alpha1.FeatureRolloutStatus{StartTime: began, Halted: true, HaltTime: &then, Message: "gone", FailedInstances: []string{"kubelet/node-1"}},
		},
	}
	meta.Name = "kube-scheduler.a"
	report := v1alpha1.FeatureReport{ObjectMeta: meta, Spec: v1alpha1.FeatureReportSpec{
		Component: "kube-scheduler", Instance: "a", BinaryVersion: "v1.36.3+feature.1", EmulationVersion: "1.36", Username: "system:kube-scheduler", Process: "0b6e",
		Features: []v1alpha1.ReportedFeature{{Name: "A", Enabled: true, Queried: true, Stage: v1alpha1.StageAlpha}, {Name: "B", Explicit: true, Control: v1alpha1.ControlCentral, Overridden: true}},
		Liveness: v1alpha1.ReportLiveness{Lease: &v1alpha1.LeaseReference{Namespace: v1alpha1.LeaseNamespace, Name: "kube-scheduler.a"}},
	}}
	value := v1alpha1.FeatureValue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "MaxUnavailableStatefulSet", UID: "0b5e", ResourceVersion: "8", CreationTimestamp: then},
		Control:    v1alpha1.ControlDynamic, Value: true, Previous: ptr.To(false), FeatureVersion: "7", ReportWithinSeconds: 12,
		Rollout: &v1alpha1.FeatureRollout{Percent: ptr.To[int32](25), Components: []string{"kubelet"}},
	}
	return []runtime.Object{
		&f, &report, &v1alpha1.FeatureList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "c"}, Items: []v1alpha1.Feature{f, {}}},
		&value, &v1alpha1.FeatureValueList{Items: []v1alpha1.FeatureValue{value}},
		&v1alpha1.FeatureReportList{Items: []v1alpha1.FeatureReport{report}},
		&v1alpha1.FeaturePlan{ObjectMeta: metav1.ObjectMeta{Name: "A"}, Spec: v1alpha1.FeaturePlanSpec{TargetVersion: "1.37"}, Status: v1alpha1.FeaturePlanStatus{
			Tasks: []v1alpha1.PlannedTask{{Name: "T", State: v1alpha1.StateUpgrading, Leftovers: []v1alpha1.ResourceLeftovers{{Group: "apps", Resource: "statefulsets", Field: "spec.x", Count: 1, Examples: []string{"a/b"}}}}},
			Uses:  uses, Dependents: []string{"B"}, Blockers: []string{"b"}, Unknown: []string{"u"},
		}},
		&v1alpha1.FeatureCleanup{Status: v1alpha1.FeatureCleanupStatus{TransitionID: "t", Tasks: tasks}},
	}
}

// fuzzDecoding decodes any bytes of one format as kube-apiserver does. It encodes and
// decodes accepted objects again, in every format, without a change. Invalid objects
// have errors, and valid ones pass the strategies.
func fuzzDecoding(f *testing.F, mediaType string, more ...string) {
	info := serializerFor(f, mediaType)
	for _, object := range realistic() {
		data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion), object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)*2/3])
	}
	// Only protobuf has years of five digits; the other formats cannot represent
	// them.
	late := metav1.NewTime(time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC))
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion), &v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "A"}, Status: v1alpha1.FeatureStatus{StateSince: &late}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, text := range more {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decoder := codecs.DecoderToVersion(info.Serializer, features.SchemeGroupVersion)
		object, kind, err := decoder.Decode(data, nil, nil)
		strict, _, strictErr := codecs.DecoderToVersion(info.StrictSerializer, features.SchemeGroupVersion).Decode(data, nil, nil)
		switch {
		case err != nil && err.Error() == "", strictErr != nil && strictErr.Error() == "":
			t.Fatal("an error without a message")
		case err != nil && strictErr == nil:
			t.Fatalf("only the strict decoder takes it: %v", err)
		case err == nil && strictErr != nil && !runtime.IsStrictDecodingError(strictErr):
			t.Fatalf("the strict decoder reports something other than the unknown field: %v", strictErr)
		case err != nil || kind.Group != features.GroupName:
			return
		case strictErr == nil && !equality.Semantic.DeepEqual(object, strict):
			t.Fatalf("decoded strictly it is %+v, else %+v", strict, object)
		}
		checkObject(t, object, len(data))
		for _, mediaType := range mediaTypes {
			if !checkRoundTrip(t, mediaType, object) && mediaType == info.MediaType {
				t.Fatalf("%+v cannot be written as the %s that it was read from", object, mediaType)
			}
		}
	})
}

// checkRoundTrip encodes and decodes. The first time takes off what no format
// keeps: fractions of seconds, time zones. It is false for what the formats do not
// have in common: years of five digits, bytes that are no UTF-8, managed fields that
// are no JSON.
func checkRoundTrip(t *testing.T, mediaType string, object runtime.Object) bool {
	t.Helper()
	first, err := writtenAndRead(t, mediaType, object)
	if err != nil {
		return false
	}
	// As JSON keeps it, both are without what no format keeps.
	if kept, err := writtenAndRead(t, runtime.ContentTypeJSON, object); err == nil {
		if still, err := writtenAndRead(t, runtime.ContentTypeJSON, first); err != nil || !equality.Semantic.DeepEqual(kept, still) {
			t.Fatalf("written as %s and read it has lost something: it is %+v (%v), want %+v", mediaType, still, err, kept)
		}
	}
	second, err := writtenAndRead(t, mediaType, first)
	if err != nil {
		t.Fatalf("as %s it can be written and read only once: %v", mediaType, err)
	}
	if !equality.Semantic.DeepEqual(first, second) {
		t.Fatalf("written as %s and read it is %+v, want %+v", mediaType, second, first)
	}
	return true
}

// writtenAndRead encodes and decodes an object.
func writtenAndRead(t *testing.T, mediaType string, object runtime.Object) (runtime.Object, error) {
	t.Helper()
	info := serializerFor(t, mediaType)
	data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, v1alpha1.SchemeGroupVersion), object)
	if err != nil {
		return nil, err
	}
	decoded, _, err := codecs.DecoderToVersion(info.Serializer, features.SchemeGroupVersion).Decode(data, nil, nil)
	return decoded, err
}

// checkObject validates an object of n bytes as a creation, a change and a change of
// status would.
func checkObject(t *testing.T, object runtime.Object, n int) {
	t.Helper()
	switch object := object.(type) {
	case *features.Feature:
		strategy := feature.NewStrategy(func(string) v1alpha1.FeatureControl { return v1alpha1.ControlDynamic })
		checkErrors(t, n, validation.ValidateFeature(object), validation.ValidateFeatureUpdate(object, object.DeepCopy()), validation.ValidateFeatureStatusUpdate(object, object.DeepCopy()))
		checkStrategy(t, strategy, strategy, object, len(validation.ValidateFeature(object)) == 0)
		checkUpdate(t, feature.StatusStrategy{Strategy: strategy}, object, object.DeepCopy())
		checkReadable(t, object)
		if labels, set, err := feature.GetAttrs(object); err != nil || len(labels) != len(object.Labels) || set["metadata.name"] != object.Name {
			t.Fatalf("selected by %v, %v, %v", labels, set, err)
		}
	case *features.FeatureReport:
		checkErrors(t, n, validation.ValidateFeatureReport(object), validation.ValidateFeatureReportUpdate(object, object.DeepCopy()))
		checkStrategy(t, featurereport.Strategy, featurereport.Strategy, object, len(validation.ValidateFeatureReport(object)) == 0)
		if labels, set, err := featurereport.GetAttrs(object); err != nil || len(labels) != len(object.Labels) || set["metadata.name"] != object.Name {
			t.Fatalf("selected by %v, %v, %v", labels, set, err)
		}
	case *features.FeatureValue:
		checkErrors(t, n, validation.ValidateFeatureValue(object), validation.ValidateFeatureValueUpdate(object, object.DeepCopy()))
		checkStrategy(t, featurevalue.Strategy, featurevalue.Strategy, object, len(validation.ValidateFeatureValue(object)) == 0)
		if labels, set, err := featurevalue.GetAttrs(object); err != nil || len(labels) != len(object.Labels) || set["metadata.name"] != object.Name {
			t.Fatalf("selected by %v, %v, %v", labels, set, err)
		}
	case *features.FeaturePlan:
		checkErrors(t, n, validation.ValidateFeaturePlan(object))
	case *features.FeatureList:
		for i := range object.Items {
			checkObject(t, &object.Items[i], n)
		}
	case *features.FeatureValueList:
		for i := range object.Items {
			checkObject(t, &object.Items[i], n)
		}
	case *features.FeatureReportList:
		for i := range object.Items {
			checkObject(t, &object.Items[i], n)
		}
	}
}

// checkReadable holds that a Feature that may be stored can be read as JSON, which most
// clients do. Upstream validates metadata.
func checkReadable(t *testing.T, f *features.Feature) {
	t.Helper()
	plain := f.DeepCopy()
	plain.ObjectMeta = metav1.ObjectMeta{Namespace: "kube-system", Name: "A", ResourceVersion: "7"}
	if valid := len(validation.ValidateFeatureStatusUpdate(plain, plain.DeepCopy())) == 0; valid && !checkRoundTrip(t, runtime.ContentTypeJSON, plain) {
		t.Fatalf("it is valid and cannot be written as JSON and read: %+v", plain)
	}
}

// checkErrors checks that errors name a field and the cause. They are not much longer
// than the request.
func checkErrors(t *testing.T, n int, lists ...field.ErrorList) {
	t.Helper()
	for _, errs := range lists {
		size := 0
		for _, err := range errs {
			size += len(err.Error())
			// For metadata and conditions, upstream's message is only that they are
			// required.
			plain := err.Type == field.ErrorTypeDuplicate || err.Type == field.ErrorTypeRequired && (strings.HasPrefix(err.Field, "metadata.") || strings.Contains(err.Field, "conditions["))
			if err.Field == "" || err.Detail == "" && !plain || err.Type == field.ErrorTypeInternal {
				t.Fatalf("a message without the cause: %v", err)
			}
		}
		if size > 16*n+64<<10 {
			t.Fatalf("%d bytes are answered with %d: %v", n, size, errs[:min(len(errs), 10)])
		}
	}
}

func contextOf(t *testing.T, object metav1.Object) context.Context {
	ctx := request.WithNamespace(t.Context(), object.GetNamespace())
	return request.WithUser(ctx, &user.DefaultInfo{Name: "jane"})
}

// checkStrategy creates and changes an object as storage does. Valid objects are
// created.
func checkStrategy(t *testing.T, create rest.RESTCreateStrategy, update rest.RESTUpdateStrategy, object runtime.Object, valid bool) {
	t.Helper()
	created := object.DeepCopyObject()
	accessor, err := meta.Accessor(created)
	if err != nil {
		t.Fatal(err)
	}
	if accessor.GetNamespace() == "" {
		return
	}
	accessor.SetResourceVersion("")
	rest.FillObjectMetaSystemFields(accessor)
	if accessor.GetName() == "" && accessor.GetGenerateName() != "" {
		accessor.SetName(create.GenerateName(accessor.GetGenerateName()))
	}
	err = rest.BeforeCreate(create, contextOf(t, accessor), created)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		create.WarningsOnCreate(contextOf(t, accessor), created)
	case !errors.As(err, &status) || status.Status().Message == "" || status.Status().Code >= 500:
		t.Fatalf("creating it: %v", err)
	case valid:
		t.Fatalf("it is valid and not created: %v", err)
	default:
		return
	}
	accessor.SetResourceVersion("8")
	old := created.DeepCopyObject()
	checkUpdate(t, update, object, old)
}

// checkUpdate writes an object over another one.
func checkUpdate(t *testing.T, update rest.RESTUpdateStrategy, object, old runtime.Object) {
	t.Helper()
	changed := object.DeepCopyObject()
	accessor, err := meta.Accessor(changed)
	if err != nil {
		t.Fatal(err)
	}
	before, err := meta.Accessor(old)
	if err != nil {
		t.Fatal(err)
	}
	if before.GetNamespace() == "" {
		return
	}
	accessor.SetName(before.GetName())
	accessor.SetUID(types.UID(before.GetUID()))
	err = rest.BeforeUpdate(update, contextOf(t, accessor), changed, old)
	var status apierrors.APIStatus
	if err != nil && (!errors.As(err, &status) || status.Status().Message == "" || status.Status().Code >= 500) {
		t.Fatalf("changing it: %v", err)
	}
	if err == nil {
		update.WarningsOnUpdate(contextOf(t, accessor), changed, old)
	}
}

func FuzzJSON(f *testing.F) {
	foundJSON(f)
	const feature = `{"apiVersion":"features.k8s.io/v1alpha1","kind":"Feature","metadata":{"namespace":"kube-system","name":"A"}`
	const report = `{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureReport","metadata":{"namespace":"kube-system","name":"a.b"},"spec":{"component":"a","instance":"b","nodeName":"n"`
	fuzzDecoding(f, runtime.ContentTypeJSON,
		"", "null", "[]", "{}", feature+"}", feature, feature+`,"spec":{"paused":null,"paused":true,"Paused":1}}`, feature+`,"spec":{"rollout":{"percent":-1,"components":["",""]}}}`,
		feature+`,"spec":{"rollout":{"percent":1e30}}}`, feature+`,"status":{"stateSince":"2026-11-01T02:03:04.5+23:59","conditions":[{},{}]}}`,
		feature+`,"unknown":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+`}`, report+`,"features":[{"name":"A"},{"name":"A","stage":"x"}]}}`, report+`,"liveness":{"lease":{}}}}`,
		report+`,"binaryVersion":"1.2 \u001b[31m","emulationVersion":"01.36","username":"\ud800"}}`,
		`{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeaturePlan","spec":{"enabled":true,"targetVersion":"1.37"}}`,
		`{"apiVersion":"features.k8s.io/v1alpha1","kind":"FeatureList","items":[null,{}]}`, `{"apiVersion":"features.k8s.io/v1","kind":"Feature"}`,
		`{"apiVersion":"features.k8s.io/__internal","kind":"Feature"}`, `{"apiVersion":"v1","kind":"Status"}`)
}

func FuzzYAML(f *testing.F) {
	foundYAML(f)
	fuzzDecoding(f, runtime.ContentTypeYAML, "a: &a [*a]", "- 1", "? a", "apiVersion: features.k8s.io/v1alpha1\nkind: Feature\nmetadata: {name: yes, namespace: 1e3}\nspec:\n  paused: on\n  rollout: !!binary aa==\n",
		"a: &x [1,1]\nb: &y [*x,*x]\nc: [*y,*y]", "apiVersion: features.k8s.io/v1alpha1\nkind: Feature\nkind: FeatureReport\n<<: {spec: {}}\n")
}

func FuzzProtobuf(f *testing.F) {
	foundProtobuf(f)
	fuzzDecoding(f, runtime.ContentTypeProtobuf, "k8s\x00", "k8s\x00\n\x29\n\x18features.k8s.io/v1alpha1\x12\x07Feature\x12\x02\x12\x00", "k8s\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
}

func FuzzCBOR(f *testing.F) {
	foundCBOR(f)
	fuzzDecoding(f, runtime.ContentTypeCBOR, "\xd9\xd9\xf7\xa0", "\xd9\xd9\xf7\xbf\xff", "\xd9\xd9\xf7\xa1\x44kind\x47Feature", "\xa2\x41a\x01\x41a\x02", "\x9f\x9f\x9f")
}

// TestSeedsAreValid keeps the seeds realistic: changes of an invalid object are
// refused early.
func TestSeedsAreValid(t *testing.T) {
	for _, external := range realistic() {
		object, err := legacyscheme.Scheme.ConvertToVersion(external, features.SchemeGroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		var errs field.ErrorList
		switch object := object.(type) {
		case *features.Feature:
			errs = append(validation.ValidateFeature(object), validation.ValidateFeatureStatusUpdate(object, object)...)
		case *features.FeatureReport:
			errs = validation.ValidateFeatureReport(object)
		case *features.FeatureValue:
			errs = validation.ValidateFeatureValue(object)
		case *features.FeaturePlan:
			errs = validation.ValidateFeaturePlan(object)
		}
		if len(errs) > 0 {
			t.Errorf("%T: %v", object, errs)
		}
		for _, mediaType := range mediaTypes {
			if !checkRoundTrip(t, mediaType, object) {
				t.Errorf("%T cannot be written as %s", object, mediaType)
			}
		}
		if !utf8.ValidString(fmt.Sprint(object)) {
			t.Errorf("%T is no text", object)
		}
	}
}
