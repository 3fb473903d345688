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
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/apis/features"
	"k8s.io/kubernetes-features/pkg/apis/features/validation"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// ServerFlow answers what needs more than storage.
type ServerFlow interface {
	// Plan returns the effects of a change of a feature, and stores nothing.
	Plan(ctx context.Context, feature *v1alpha1.Feature, plan *v1alpha1.FeaturePlan) (*v1alpha1.FeaturePlanStatus, error)
	// Clean starts the removal of what a feature left behind.
	Clean(ctx context.Context, feature *v1alpha1.Feature) (*v1alpha1.FeatureCleanupStatus, error)
	// Cleanable returns the error that Clean would, and stores nothing.
	Cleanable(ctx context.Context, feature *v1alpha1.Feature) error
}

// Flow holds the server flow, which starts after the storage. It is safe for
// concurrent use; the zero value has none.
type Flow struct {
	flow atomic.Pointer[ServerFlow]
}

// Set makes the server flow known.
func (f *Flow) Set(flow ServerFlow) { f.flow.Store(&flow) }

func (f *Flow) get() (ServerFlow, error) {
	flow := f.flow.Load()
	if flow == nil {
		return nil, apierrors.NewServiceUnavailable("the feature lifecycle controller of this server has not started yet; try again in a moment")
	}
	return *flow, nil
}

// load reads a Feature of kube-system, the only namespace that this server's
// flow handles.
//
// The next step of a request about another one is the operator's, and for what a feature
// has left behind its condition Clean has it.
func load(ctx context.Context, store *genericregistry.Store, name string) (*v1alpha1.Feature, error) {
	object, err := store.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	feature := &v1alpha1.Feature{}
	if err := legacyscheme.Scheme.Convert(object, feature, nil); err != nil {
		return nil, err
	}
	if feature.Namespace != metav1.NamespaceSystem {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("feature %s/%s is not Kubernetes' own; ask the operator that looks after it (how it removes what is left behind is in the condition Clean)", feature.Namespace, name))
	}
	return feature, nil
}

// admit runs admission for a request. It returns the server flow and the
// Feature.
func admit(ctx context.Context, store *genericregistry.Store, holder *Flow, name string, obj runtime.Object, validate rest.ValidateObjectFunc) (ServerFlow, *v1alpha1.Feature, error) {
	if validate != nil {
		if err := validate(ctx, obj.DeepCopyObject()); err != nil {
			return nil, nil, err
		}
	}
	flow, err := holder.get()
	if err != nil {
		return nil, nil, err
	}
	feature, err := load(ctx, store, name)
	return flow, feature, err
}

// checkName refuses a body that names another feature than the URL.
func checkName(name, body string) error {
	if body != "" && body != name {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.name is %q, the URL names feature %q; leave it out or make them equal", body, name))
	}
	return nil
}

// PlanREST serves the subresource plan.
type PlanREST struct {
	store *genericregistry.Store
	flow  *Flow
}

var _ rest.NamedCreater = &PlanREST{}

// New makes an empty plan.
func (r *PlanREST) New() runtime.Object { return &features.FeaturePlan{} }

// Destroy does nothing.
func (r *PlanREST) Destroy() {}

// Create answers what a change would do.
func (r *PlanREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	plan, ok := obj.(*features.FeaturePlan)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a FeaturePlan, got %T", obj))
	}
	if err := checkName(name, plan.Name); err != nil {
		return nil, err
	}
	if errs := validation.ValidateFeaturePlan(plan); len(errs) > 0 {
		return nil, apierrors.NewInvalid(features.Kind("FeaturePlan"), name, errs)
	}
	flow, feature, err := admit(ctx, r.store, r.flow, name, obj, validate)
	if err != nil {
		return nil, err
	}
	external := &v1alpha1.FeaturePlan{}
	if err := legacyscheme.Scheme.Convert(plan, external, nil); err != nil {
		return nil, err
	}
	status, err := flow.Plan(ctx, feature, external)
	if err != nil {
		return nil, err
	}
	external.Name, external.Namespace = feature.Name, feature.Namespace
	external.Status = *status
	result := &features.FeaturePlan{}
	return result, legacyscheme.Scheme.Convert(external, result, nil)
}

// CleanREST serves the subresource cleanup.
type CleanREST struct {
	store *genericregistry.Store
	flow  *Flow
}

var _ rest.NamedCreater = &CleanREST{}

// New makes an empty request.
func (r *CleanREST) New() runtime.Object { return &features.FeatureCleanup{} }

// Destroy does nothing.
func (r *CleanREST) Destroy() {}

// Create starts the removal of leftovers of a feature that is off.
func (r *CleanREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	cleanup, ok := obj.(*features.FeatureCleanup)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a FeatureCleanup, got %T", obj))
	}
	if err := checkName(name, cleanup.Name); err != nil {
		return nil, err
	}
	flow, feature, err := admit(ctx, r.store, r.flow, name, obj, validate)
	if err != nil {
		return nil, err
	}
	// The flow looks for leftovers itself: the condition Clean may be half an hour old.
	if err := transition.Cleanable(feature); err != nil {
		return nil, apierrors.NewConflict(features.Resource("features"), name, err)
	}
	external := &v1alpha1.FeatureCleanup{ObjectMeta: metav1.ObjectMeta{Namespace: feature.Namespace, Name: feature.Name}}
	if options != nil && len(options.DryRun) > 0 {
		err = flow.Cleanable(ctx, feature)
	} else {
		var status *v1alpha1.FeatureCleanupStatus
		if status, err = flow.Clean(ctx, feature); err == nil {
			external.Status = *status
		}
	}
	if err != nil {
		return nil, err
	}
	result := &features.FeatureCleanup{}
	return result, legacyscheme.Scheme.Convert(external, result, nil)
}
