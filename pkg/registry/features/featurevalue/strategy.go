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

package featurevalue

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// Strategy has the rules.
var Strategy = strategy{legacyscheme.Scheme, names.SimpleNameGenerator}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

// NamespaceScoped is true: third parties have values in their own namespaces.
func (strategy) NamespaceScoped() bool { return true }

// PrepareForCreate removes what processes that follow the value do not need.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	shrink(obj.(*features.FeatureValue))
}

// PrepareForUpdate removes what processes that follow the value do not need.
func (strategy) PrepareForUpdate(_ context.Context, obj, _ runtime.Object) {
	shrink(obj.(*features.FeatureValue))
}

// shrink removes managed fields, labels and annotations, which each change would send to
// thousands of processes: managed fields alone are more than the rest. One identity writes
// a value as a whole, so they contain no information. Labels may come from admission that
// adds them to all objects; refusing these would keep the server flow from writing.
// Generations would repeat the resource version.
func shrink(value *features.FeatureValue) {
	value.ManagedFields, value.Labels, value.Annotations, value.Generation = nil, nil, nil, 0
}

// Validate validates a new value.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateFeatureValue(obj.(*features.FeatureValue))
}

// ValidateUpdate validates a change. A write that changes nothing passes, even if the
// object is invalid. An older server may have accepted it, and only such a write
// encrypts it with another key or stores it in another version.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	value, before := obj.(*features.FeatureValue), old.(*features.FeatureValue)
	if Unchanged(value, before) {
		return nil
	}
	return validation.ValidateFeatureValueUpdate(value, before)
}

// Unchanged is true for a write that stores what is there, as those of the migrator of
// storage versions do (pkg/controller/storageversionmigrator). What shrink removes does
// not count.
func Unchanged(value, before *features.FeatureValue) bool {
	same, was := *value, *before
	same.ResourceVersion = was.ResourceVersion
	shrink(&same)
	shrink(&was)
	return equality.Semantic.DeepEqual(&same, &was)
}

// WarningsOnCreate returns none.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns none.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize does nothing.
func (strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: a PUT to a name without a value is a mistake.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns false: updates need a resource version.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// GetAttrs returns what selectors may use.
func GetAttrs(obj runtime.Object) (labels.Set, pkgfields.Set, error) {
	value, ok := obj.(*features.FeatureValue)
	if !ok {
		return nil, nil, fmt.Errorf("expected a FeatureValue, got %T", obj)
	}
	set := generic.AddObjectMetaFieldsSet(make(pkgfields.Set, 3), &value.ObjectMeta, true)
	set[controlField] = string(value.Control)
	return value.Labels, set, nil
}

// controlField is the field by which components select the values that they follow.
const controlField = "control"

// Match selects values by label and field.
func Match(label labels.Selector, field pkgfields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs, IndexFields: []string{controlField}}
}

// TriggerFuncs makes the watch cache send changes only to watchers of the same control: of
// thousands that follow dynamic values, none is woken when a central one changes.
func TriggerFuncs() storage.IndexerFuncs {
	return storage.IndexerFuncs{controlField: func(obj runtime.Object) string { return string(obj.(*features.FeatureValue).Control) }}
}
