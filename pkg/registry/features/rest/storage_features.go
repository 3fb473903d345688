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

package rest

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/apis/features"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	reportstorage "k8s.io/kubernetes-features/pkg/registry/features/featurereport/storage"
	valuestorage "k8s.io/kubernetes-features/pkg/registry/features/featurevalue/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// StorageProvider provides the storage of features.k8s.io.
type StorageProvider struct {
	// Authorizer decides which user may report for which component, and which may create
	// Features with a spec.
	Authorizer authorizer.UnconditionalAuthorizer
	// Control returns how the value of a feature of Kubernetes is decided, by
	// this server's flags.
	Control func(feature string) v1alpha1.FeatureControl
	// Node reads a Node, from a cache.
	Node func(name string) (*corev1.Node, error)
	// RBAC is true when the server serves the RBAC API, which the policy needs.
	RBAC bool
	// FlowControl is true when the server serves the API of priority and fairness.
	FlowControl bool
	// TaskRules are the permissions that the declared tasks need in all namespaces, and
	// NamespacedTaskRules those that they need in one alone, by its name.
	TaskRules           []rbacv1.PolicyRule
	NamespacedTaskRules map[string][]rbacv1.PolicyRule
	// Flow answers the subresources plan and clean.
	Flow *featurestorage.Flow
}

var _ genericapiserver.PostStartHookProvider = StorageProvider{}

// NewRESTStorage returns the group with every enabled resource.
func (p StorageProvider) NewRESTStorage(resources serverstorage.APIResourceConfigSource, optsGetter generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	group := genericapiserver.NewDefaultAPIGroupInfo(features.GroupName, legacyscheme.Scheme, legacyscheme.ParameterCodec, legacyscheme.Codecs)
	storage := map[string]rest.Storage{}
	if resources.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource("features")) {
		s, err := featurestorage.NewStorage(optsGetter, p.Authorizer, p.Control, p.Flow)
		if err != nil {
			return genericapiserver.APIGroupInfo{}, err
		}
		storage["features"] = s.Feature
		storage["features/status"] = s.Status
		storage["features/plan"] = s.Plan
		storage["features/cleanup"] = s.Clean
	}
	if resources.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource("featurereports")) {
		s, err := reportstorage.NewREST(optsGetter, p.Authorizer, p.Node)
		if err != nil {
			return genericapiserver.APIGroupInfo{}, err
		}
		storage["featurereports"] = s
		storage["featurereports/confirmation"] = s.Confirmation()
	}
	if resources.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource("featurevalues")) {
		s, err := valuestorage.NewREST(optsGetter)
		if err != nil {
			return genericapiserver.APIGroupInfo{}, err
		}
		storage["featurevalues"] = s
	}
	if len(storage) > 0 {
		group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = storage
	}
	return group, nil
}

// GroupName is the group that is provided.
func (p StorageProvider) GroupName() string { return features.GroupName }

// PostStartHook writes the RBAC policy, and how API priority and fairness treats
// reporters.
func (p StorageProvider) PostStartHook() (string, genericapiserver.PostStartHookFunc, error) {
	return PolicyHookName, func(hook genericapiserver.PostStartHookContext) error {
		if p.FlowControl {
			// Beside it: the server is not ready before the hook has returned.
			go ensureFlowControlHook(hook)
		}
		if p.RBAC {
			return Policy(p.TaskRules, p.NamespacedTaskRules).EnsureRBACPolicy()(hook)
		}
		return nil
	}, nil
}
