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

package feature

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Strategy has the rules for spec and metadata.
type Strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	// control returns how the value of a feature of Kubernetes is decided, by
	// this server's flags.
	control func(feature string) v1alpha1.FeatureControl
}

// NewStrategy returns the rules for spec and metadata. Control returns how the
// value of a feature of Kubernetes is decided: Dynamic ones may be set through
// the API. Features in other namespaces than kube-system are their operator's
// concern.
func NewStrategy(control func(feature string) v1alpha1.FeatureControl) Strategy {
	return Strategy{legacyscheme.Scheme, names.SimpleNameGenerator, control}
}

var (
	_ rest.RESTCreateStrategy = Strategy{}
	_ rest.RESTUpdateStrategy = Strategy{}
	_ rest.RESTDeleteStrategy = Strategy{}
)

// NamespaceScoped is true: third parties have features in their own namespaces.
func (Strategy) NamespaceScoped() bool { return true }

// GetResetFields returns the fields that a write of spec does not touch.
func (Strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
}

// PrepareForCreate drops the status: only the server flow writes it.
func (Strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	feature := obj.(*features.Feature)
	feature.Status = features.FeatureStatus{}
	feature.Generation = 1
	roundMoment(feature)
	noteRequester(ctx, feature, nil)
}

// PrepareForUpdate keeps the status and counts changes of spec.
func (Strategy) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	feature, before := obj.(*features.Feature), old.(*features.Feature)
	feature.Status = before.Status
	roundMoment(feature)
	if !equality.Semantic.DeepEqual(feature.Spec, before.Spec) {
		feature.Generation = before.Generation + 1
	}
	noteRequester(ctx, feature, before)
}

// noteRequester records the user who last changed value, rollout or pause in the
// spec. A later event names that user. For a withdrawn request, that is the user
// who withdrew it. The annotation in requests is ignored.
func noteRequester(ctx context.Context, feature, before *features.Feature) {
	var requester string
	var was features.FeatureSpec
	if before != nil {
		requester, was = before.Annotations[v1alpha1.AnnotationRequestedBy], before.Spec
	}
	if !equality.Semantic.DeepEqual(feature.Spec, was) {
		requester = ""
		if who, ok := request.UserFrom(ctx); ok {
			requester = strings.ToValidUTF8(who.GetName(), "")
		}
	}
	if requester == "" {
		delete(feature.Annotations, v1alpha1.AnnotationRequestedBy)
		return
	}
	metav1.SetMetaDataAnnotation(&feature.ObjectMeta, v1alpha1.AnnotationRequestedBy, requester)
}

// Validate validates a new Feature.
func (s Strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	feature := obj.(*features.Feature)
	return append(validation.ValidateFeature(feature), s.validateEnabled(feature, nil)...)
}

// ValidateUpdate validates a change. A write that changes nothing passes, even if the
// object is invalid. An older server may have accepted it, and only such a write
// encrypts it with another key or stores it in another version.
func (s Strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	feature, before := obj.(*features.Feature), old.(*features.Feature)
	if unchanged(feature, before) {
		return validation.ValidateManagedFields(feature, before)
	}
	return append(validation.ValidateFeatureUpdate(feature, before), s.validateEnabled(feature, before)...)
}

// unchanged returns true for a write that stores the same object, as the migrator of
// storage versions does (pkg/controller/storageversionmigrator). An object that was
// never applied gets managed fields from that, as all kinds do.
func unchanged(feature, before *features.Feature) bool {
	same := *feature
	same.ResourceVersion, same.ManagedFields = before.ResourceVersion, before.ManagedFields
	return equality.Semantic.DeepEqual(&same, before)
}

// validateEnabled refuses a value for a feature of Kubernetes that is not
// dynamic. A value that is there already may stay, so that an object written
// when the feature was dynamic can still be changed.
func (s Strategy) validateEnabled(feature, before *features.Feature) field.ErrorList {
	if feature.Spec.Enabled == nil || feature.Namespace != metav1.NamespaceSystem || s.control(feature.Name) == v1alpha1.ControlDynamic {
		return nil
	}
	if before != nil && before.Spec.Enabled != nil && *before.Spec.Enabled == *feature.Spec.Enabled {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "enabled"), fmt.Sprintf(
		"feature %s cannot be set through the API: it is not listed in --dynamic-features of kube-apiserver; list it there, if its author permits that, or set --feature-gates=%s=%t on the components that use it",
		feature.Name, feature.Name, *feature.Spec.Enabled))}
}

// WarningsOnCreate names fields of the spec without effect.
func (s Strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	feature := obj.(*features.Feature)
	return append(s.warnings(feature), passed(feature, nil)...)
}

// WarningsOnUpdate names fields of the spec without effect, unchanged ones,
// too: servers may have been restarted with other flags since.
func (s Strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	feature := obj.(*features.Feature)
	return append(s.warnings(feature), passed(feature, old.(*features.Feature))...)
}

// passed names a moment that has passed as it is requested: the clock of who requests it
// may be behind.
func passed(feature, before *features.Feature) []string {
	at := momentOf(feature)
	if at == nil || before != nil && at.Equal(momentOf(before)) || time.Now().Before(at.Time) {
		return nil
	}
	return []string{fmt.Sprintf("spec.rollout.at: %s has passed by the server's clock: the value is for all instances at once", at.UTC().Format(time.RFC3339))}
}

// momentOf returns the requested moment, nil for none.
func momentOf(feature *features.Feature) *metav1.Time {
	if feature.Spec.Rollout == nil {
		return nil
	}
	return feature.Spec.Rollout.At
}

// roundMoment drops fractions of a second, which are not stored.
func roundMoment(feature *features.Feature) {
	if at := momentOf(feature); at != nil {
		feature.Spec.Rollout.At = ptr.To(metav1.NewTime(at.Truncate(time.Second)))
	}
}

// warnings names accepted fields without effect. These are a value left over from
// when the feature was dynamic, and a rollout of a value that every process has
// from its own command line. For an operator's features, only their status has the
// control.
func (s Strategy) warnings(feature *features.Feature) []string {
	control := v1alpha1.FeatureControl(feature.Status.Control)
	if feature.Namespace == metav1.NamespaceSystem {
		control = s.control(feature.Name)
	}
	if control == "" {
		return nil
	}
	var warnings []string
	if feature.Spec.Enabled != nil && control != v1alpha1.ControlDynamic {
		warnings = append(warnings, fmt.Sprintf("spec.enabled: has no effect: feature %s is %s, only those in --dynamic-features of the servers are set through the API; remove spec.enabled, or list the feature there", feature.Name, control))
	}
	if feature.Spec.Rollout != nil && control == v1alpha1.ControlLocal {
		warnings = append(warnings, fmt.Sprintf("spec.rollout: has no effect: feature %s is Local, each process has the value of its own command line; remove spec.rollout, or list the feature in --central-features or --dynamic-features of the servers", feature.Name))
	}
	return warnings
}

// Canonicalize does nothing.
func (Strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: a PUT to a name that no gate has is a mistake.
func (Strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns false: updates need a resource version.
func (Strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// StatusStrategy has the rules for the subresource status.
type StatusStrategy struct {
	Strategy
}

// GetResetFields returns the fields that a write of status does not touch.
func (StatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(v1alpha1.SchemeGroupVersion.String()): fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")),
	}
}

// PrepareForUpdate keeps everything but the status.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	feature, before := obj.(*features.Feature), old.(*features.Feature)
	feature.Spec = before.Spec
	metav1.ResetObjectMetaForStatus(&feature.ObjectMeta, &before.ObjectMeta)
}

// ValidateUpdate validates a change of status. As for the main resource, a write that
// changes nothing passes.
func (StatusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	feature, before := obj.(*features.Feature), old.(*features.Feature)
	if unchanged(feature, before) {
		return validation.ValidateManagedFields(feature, before)
	}
	return validation.ValidateFeatureStatusUpdate(feature, before)
}

// WarningsOnUpdate returns none: a write of the status does not write the
// spec.
func (StatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetAttrs returns what selectors may use.
func GetAttrs(obj runtime.Object) (labels.Set, pkgfields.Set, error) {
	feature, ok := obj.(*features.Feature)
	if !ok {
		return nil, nil, fmt.Errorf("expected a Feature, got %T", obj)
	}
	set := generic.ObjectMetaFieldsSet(&feature.ObjectMeta, true)
	set["status.state"] = string(feature.Status.State)
	set["status.stage"] = string(feature.Status.Stage)
	set[controlField] = string(feature.Status.Control)
	return feature.Labels, set, nil
}

// controlField is the field by which components select the Features whose
// values they follow.
const controlField = "status.control"

// Match selects Features by label and field.
func Match(label labels.Selector, field pkgfields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs, IndexFields: []string{controlField}}
}

// TriggerFuncs makes the watch cache send changes only to watchers of the same
// control. Thousands of nodes watch the dynamic features, and none of them is
// woken when the uses of another feature change.
func TriggerFuncs() storage.IndexerFuncs {
	return storage.IndexerFuncs{controlField: func(obj runtime.Object) string { return string(obj.(*features.Feature).Status.Control) }}
}
