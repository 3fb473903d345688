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

// Package storage stores Features and serves their subresources status, plan
// and clean.
package storage

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/registry/features/feature"
	"k8s.io/kubernetes/pkg/printers"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// FlowUser is the identity of the server flow inside kube-apiserver. Its only
// credentials are a token that each server makes for itself and that never leaves the
// process. So its permissions are those of its roles, API priority and fairness counts
// its requests, and audit knows them by this name.
const FlowUser = "system:feature-lifecycle"

// FeatureStorage is everything that serves Features.
type FeatureStorage struct {
	Feature *REST
	Status  *StatusREST
	Plan    *PlanREST
	Clean   *CleanREST
}

// REST stores Features. Creating one with a spec needs the permission to write that spec
// later. Server flows create, delete and recreate features, and must not thereby make
// decisions that are reserved for users.
type REST struct {
	*genericregistry.Store
	authorizer authorizer.UnconditionalAuthorizer
}

// NewStorage makes the storage. The authorizer decides which user may write which spec.
// Control returns how the value of a feature of Kubernetes is decided, by the server's
// flags. Flow answers requests of plan and cleanup.
func NewStorage(optsGetter generic.RESTOptionsGetter, auth authorizer.UnconditionalAuthorizer, control func(string) v1alpha1.FeatureControl, flow *Flow) (FeatureStorage, error) {
	strategy := feature.NewStrategy(control)
	statusStrategy := feature.StatusStrategy{Strategy: strategy}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &features.Feature{} },
		NewListFunc:               func() runtime.Object { return &features.FeatureList{} },
		PredicateFunc:             feature.Match,
		DefaultQualifiedResource:  features.Resource("features"),
		SingularQualifiedResource: features.Resource("feature"),

		CreateStrategy:      strategy,
		UpdateStrategy:      strategy,
		DeleteStrategy:      strategy,
		ResetFieldsStrategy: strategy,

		TableConvertor: printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(addPrintHandlers)},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: feature.GetAttrs, TriggerFunc: feature.TriggerFuncs()}); err != nil {
		return FeatureStorage{}, err
	}
	status := *store
	status.UpdateStrategy = statusStrategy
	status.ResetFieldsStrategy = statusStrategy
	return FeatureStorage{
		Feature: &REST{store, auth},
		Status:  &StatusREST{&status},
		Plan:    &PlanREST{store, flow},
		Clean:   &CleanREST{store, flow},
	}, nil
}

var (
	_ rest.ShortNamesProvider = &REST{}
	_ rest.CategoriesProvider = &REST{}
)

// ShortNames returns the short names that kubectl accepts.
func (r *REST) ShortNames() []string { return []string{"feat"} }

// Categories lets "kubectl get features-all" show features and reports.
func (r *REST) Categories() []string { return []string{"features-all"} }

// Create creates a Feature if the requester may write its spec. Server-side apply does
// not come here when it creates one: it needs the permission to patch.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, func(ctx context.Context, obj runtime.Object) error {
		if err := r.maySetSpec(ctx, obj.(*features.Feature)); err != nil {
			return err
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}, options)
}

// maySetSpec checks whether the requester could write the spec of a new Feature into an
// existing one.
func (r *REST) maySetSpec(ctx context.Context, feature *features.Feature) error {
	if equality.Semantic.DeepEqual(feature.Spec, features.FeatureSpec{}) {
		return nil
	}
	refused := func(format string, args ...any) error {
		return apierrors.NewForbidden(features.Resource("features"), feature.Name, fmt.Errorf(format, args...))
	}
	requester, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return refused("the request has no user")
	}
	var errs []error
	for _, verb := range []string{"update", "patch"} {
		decision, _, err := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User:            requester,
			Verb:            verb,
			Namespace:       feature.Namespace,
			APIGroup:        features.GroupName,
			APIVersion:      v1alpha1.SchemeGroupVersion.Version,
			Resource:        "features",
			Name:            feature.Name,
			ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			return nil
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return refused("user %q may not create a Feature with a spec: authorization is unknown: %w", requester.GetName(), err)
	}
	return refused("user %q may create Features, and not ask for anything in their spec; leave spec out, or grant the verb update or patch on features in namespace %q", requester.GetName(), feature.Namespace)
}

// StatusREST serves the subresource status.
type StatusREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher = &StatusREST{}
	_ rest.Storage = &StatusREST{}
)

// New makes an empty Feature.
func (r *StatusREST) New() runtime.Object { return &features.Feature{} }

// Destroy does nothing: the store is destroyed with the main resource.
func (r *StatusREST) Destroy() {}

// Get reads a Feature.
func (r *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update writes the status. For Kubernetes' own features only the server flow may
// change it, whatever RBAC allows: a state of any other writer could be false,
// with consequences (S5). As for reports, a write that changes nothing passes.
func (r *StatusREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if genericapirequest.NamespaceValue(ctx) == metav1.NamespaceSystem {
		requester, ok := genericapirequest.UserFrom(ctx)
		if !ok || requester.GetName() != FlowUser {
			objInfo = rest.WrapUpdatedObjectInfo(objInfo, refuseOtherStatus)
		}
	}
	// Status is never created by an update.
	return r.store.Update(ctx, name, objInfo, validateCreate, validateUpdate, false, options)
}

// refuseOtherStatus refuses a status that is not the stored one, and other managers of
// its fields.
func refuseOtherStatus(_ context.Context, changed, old runtime.Object) (runtime.Object, error) {
	feature, before := changed.(*features.Feature), old.(*features.Feature)
	if equality.Semantic.DeepEqual(feature.Status, before.Status) && equality.Semantic.DeepEqual(feature.ManagedFields, before.ManagedFields) {
		return changed, nil
	}
	if feature.ResourceVersion != "" && feature.ResourceVersion != before.ResourceVersion {
		// The status may equal an earlier one. The store would return the same conflict.
		return nil, apierrors.NewConflict(features.Resource("features/status"), before.Name, errors.New(genericregistry.OptimisticLockErrorMsg))
	}
	return nil, apierrors.NewForbidden(features.Resource("features/status"), before.Name, fmt.Errorf(
		"the status of Kubernetes' own features is written by %s alone; change --feature-gates, spec.paused, or create the subresource cleanup", FlowUser))
}

// GetResetFields returns the fields that a write of status does not touch.
func (r *StatusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable prints Features.
func (r *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, options)
}
