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

// Package storage stores FeatureValues and decides who may write them.
package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes-features/pkg/apis/features"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	"k8s.io/kubernetes-features/pkg/registry/features/featurevalue"
	"k8s.io/kubernetes/pkg/printers"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"
)

// REST stores FeatureValues. Those of Kubernetes' own features are created and changed by
// the server flow alone, whatever RBAC allows, as the status of a Feature is (S5): each
// process that follows them would take the value of another writer. Deleting is left to
// RBAC: processes then read the Feature, and the server flow writes the value again.
type REST struct {
	*genericregistry.Store
}

// NewREST makes the storage.
func NewREST(optsGetter generic.RESTOptionsGetter) (*REST, error) {
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &features.FeatureValue{} },
		NewListFunc:               func() runtime.Object { return &features.FeatureValueList{} },
		PredicateFunc:             featurevalue.Match,
		DefaultQualifiedResource:  features.Resource("featurevalues"),
		SingularQualifiedResource: features.Resource("featurevalue"),

		CreateStrategy: featurevalue.Strategy,
		UpdateStrategy: featurevalue.Strategy,
		DeleteStrategy: featurevalue.Strategy,

		TableConvertor: printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(addPrintHandlers)},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: optsGetter, AttrFunc: featurevalue.GetAttrs, TriggerFunc: featurevalue.TriggerFuncs()}); err != nil {
		return nil, err
	}
	return &REST{store}, nil
}

var _ rest.CategoriesProvider = &REST{}

// Categories lets "kubectl get features-all" show features, reports and values.
func (r *REST) Categories() []string { return []string{"features-all"} }

// Create creates a value if the requester may.
func (r *REST) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	return r.Store.Create(ctx, obj, mayCreate(validate), options)
}

// Update changes a value if the requester may. Metadata is left to RBAC: the garbage
// collector removes finalizers, and the migrator of storage versions changes nothing.
func (r *REST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	// Server-side apply may create.
	return r.Store.Update(ctx, name, objInfo, mayCreate(validateCreate), func(ctx context.Context, obj, old runtime.Object) error {
		value, before := obj.(*features.FeatureValue), old.(*features.FeatureValue)
		same := *value
		same.ObjectMeta = before.ObjectMeta
		if !mayWrite(ctx, value.Namespace) && !equality.Semantic.DeepEqual(&same, before) {
			return refused(value.Name)
		}
		if validateUpdate == nil {
			return nil
		}
		return validateUpdate(ctx, obj, old)
	}, forceAllowCreate, options)
}

// mayCreate refuses values of others than the server flow, before admission is asked.
func mayCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if value := obj.(*features.FeatureValue); !mayWrite(ctx, value.Namespace) {
			return refused(value.Name)
		}
		if validate == nil {
			return nil
		}
		return validate(ctx, obj)
	}
}

// mayWrite returns true if the requester may write values in a namespace, beyond what RBAC
// decides.
func mayWrite(ctx context.Context, namespace string) bool {
	if namespace != metav1.NamespaceSystem {
		return true
	}
	requester, ok := genericapirequest.UserFrom(ctx)
	return ok && requester.GetName() == featurestorage.FlowUser
}

func refused(name string) error {
	return apierrors.NewForbidden(features.Resource("featurevalues"), name, fmt.Errorf(
		"the values of Kubernetes' own features are written by %s alone; set spec.enabled of Feature %s, if it is dynamic, or --feature-gates of kube-apiserver", featurestorage.FlowUser, name))
}
