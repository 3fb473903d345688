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

package featurereport

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	pkgfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/tools/cache"
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

// NamespaceScoped is true: third parties have reports in their own namespaces.
func (strategy) NamespaceScoped() bool { return true }

// PrepareForCreate sets the reporting user, whatever the request has.
func (strategy) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	report := obj.(*features.FeatureReport)
	report.Generation = 1
	dropManagedFields(report)
	report.Spec.Username = ""
	if user, ok := genericapirequest.UserFrom(ctx); ok {
		report.Spec.Username = user.GetName()
	}
}

// PrepareForUpdate keeps the reporting user and counts changes.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	report, before := obj.(*features.FeatureReport), old.(*features.FeatureReport)
	report.Spec.Username = before.Spec.Username
	dropManagedFields(report)
	if !equality.Semantic.DeepEqual(report.Spec, before.Spec) {
		report.Generation = before.Generation + 1
	}
}

// dropManagedFields removes managed fields. One identity writes a report as a whole,
// so they contain no information. They are more than half of a report's size in etcd
// and in the watch cache.
func dropManagedFields(report *features.FeatureReport) { report.ManagedFields = nil }

// Validate validates a new report.
func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateFeatureReport(obj.(*features.FeatureReport))
}

// ValidateUpdate validates a change. A write that changes nothing passes, even if the
// object is invalid. An older server may have accepted it, and only such a write
// encrypts it with another key or stores it in another version.
func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	report, before := obj.(*features.FeatureReport), old.(*features.FeatureReport)
	if Unchanged(report, before) {
		return nil
	}
	return validation.ValidateFeatureReportUpdate(report, before)
}

// Unchanged is true for a write that stores what is there, as those of the migrator of
// storage versions do (pkg/controller/storageversionmigrator). Managed fields do not
// count: a report has none.
func Unchanged(report, before *features.FeatureReport) bool {
	same := *report
	same.ResourceVersion, same.ManagedFields = before.ResourceVersion, before.ManagedFields
	return equality.Semantic.DeepEqual(&same, before)
}

// WarningsOnCreate returns none.
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate returns none.
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// Canonicalize does nothing.
func (strategy) Canonicalize(runtime.Object) {}

// AllowCreateOnUpdate is false: creating is checked otherwise than updating.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate returns false: updates need a resource version.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// GetAttrs returns what selectors may use.
func GetAttrs(obj runtime.Object) (labels.Set, pkgfields.Set, error) {
	report, ok := obj.(*features.FeatureReport)
	if !ok {
		return nil, nil, fmt.Errorf("expected a FeatureReport, got %T", obj)
	}
	set := generic.ObjectMetaFieldsSet(&report.ObjectMeta, true)
	set["spec.component"] = report.Spec.Component
	set["spec.nodeName"] = report.Spec.NodeName
	set[UsernameField] = report.Spec.Username
	return report.Labels, set, nil
}

// UsernameField selects the reports of an identity. They are indexed by it: each
// creation counts them.
const UsernameField = "spec.username"

// Match selects reports by label and field.
func Match(label labels.Selector, field pkgfields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: GetAttrs, IndexFields: []string{UsernameField}}
}

// Triggers and Indexers are how the watch cache finds the reports of an identity.
func Triggers() storage.IndexerFuncs {
	return storage.IndexerFuncs{UsernameField: func(obj runtime.Object) string { return obj.(*features.FeatureReport).Spec.Username }}
}

// Indexers returns those of the watch cache.
func Indexers() *cache.Indexers {
	return &cache.Indexers{storage.FieldIndex(UsernameField): func(obj any) ([]string, error) {
		report, ok := obj.(*features.FeatureReport)
		if !ok {
			return nil, fmt.Errorf("expected a FeatureReport, got %T", obj)
		}
		return []string{report.Spec.Username}, nil
	}}
}
