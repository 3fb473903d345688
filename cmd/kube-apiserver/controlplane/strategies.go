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
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

// strategies are those with which the registry updates a resource, and its status. A nil
// one means that the resource, or its status, is written through the API alone.
type strategies struct{ object, status rest.RESTUpdateStrategy }

// registryStrategies returns the strategies of built-in resources whose fields are cleared
// in storage, as upstream's registry (pkg/registry/*/storage) uses them. A resource that is
// not here is cleared through the API.
func registryStrategies(namespaces typedcorev1.NamespaceInterface, authorizer authorizer.UnconditionalAuthorizer) map[schema.GroupResource]strategies {
	claims, groups := resourceclaim.NewStrategy(namespaces, authorizer), podgroup.NewStrategy()
	return map[schema.GroupResource]strategies{
		{Resource: "nodes"}:                  {node.Strategy, node.StatusStrategy},
		{Resource: "persistentvolumeclaims"}: {persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},
		{Resource: "pods"}:                   {pod.Strategy, pod.StatusStrategy},
		{Resource: "podtemplates"}:           {object: podtemplate.Strategy},
		{Resource: "replicationcontrollers"}: {replicationcontroller.Strategy, replicationcontroller.StatusStrategy},

		{Group: "apps", Resource: "daemonsets"}:   {daemonset.Strategy, daemonset.StatusStrategy},
		{Group: "apps", Resource: "deployments"}:  {deployment.Strategy, deployment.StatusStrategy},
		{Group: "apps", Resource: "replicasets"}:  {replicaset.Strategy, replicaset.StatusStrategy},
		{Group: "apps", Resource: "statefulsets"}: {statefulset.Strategy, statefulset.StatusStrategy},

		{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy},

		{Group: "batch", Resource: "cronjobs"}: {cronjob.Strategy, cronjob.StatusStrategy},
		{Group: "batch", Resource: "jobs"}:     {job.Strategy, job.StatusStrategy},

		{Group: "coordination.k8s.io", Resource: "leases"}: {object: lease.Strategy},

		{Group: "discovery.k8s.io", Resource: "endpointslices"}: {object: endpointslice.Strategy},

		{Group: "resource.k8s.io", Resource: "deviceclasses"}:  {object: deviceclass.Strategy},
		{Group: "resource.k8s.io", Resource: "resourceclaims"}: {claims, resourceclaim.NewStatusStrategy(claims)},
		{Group: "resource.k8s.io", Resource: "resourceslices"}: {object: resourceslice.Strategy},

		{Group: "scheduling.k8s.io", Resource: "podgroups"}: {groups, podgroup.NewStatusStrategy(groups)},

		{Group: "storage.k8s.io", Resource: "csidrivers"}:        {object: csidriver.Strategy},
		{Group: "storage.k8s.io", Resource: "csinodes"}:          {csinode.Strategy, csinode.StatusStrategy},
		{Group: "storage.k8s.io", Resource: "volumeattachments"}: {volumeattachment.Strategy, volumeattachment.StatusStrategy},
	}
}

// registry finds the kinds of resources.
type registry struct {
	builtIn map[schema.GroupResource]strategies
	// definition returns that of a custom resource.
	definition func(name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// kinds returns those of a resource for a field. The error is why its objects are reached
// through the API alone.
func (r registry) kinds(resource schema.GroupVersionResource, path string) (kinds, error) {
	switch {
	case resource.GroupResource() == apiextensionsv1.Resource("customresourcedefinitions"):
		return definitionKinds(resource, path), nil
	case legacyscheme.Scheme.IsGroupRegistered(resource.Group):
		return r.builtInKinds(resource, path), nil
	}
	definition, err := r.definition(resource.GroupResource().String())
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", resource.GroupResource(), err)
	}
	return customKinds(definition, resource, path)
}

func (r registry) builtInKinds(resource schema.GroupVersionResource, path string) kinds {
	of := r.builtIn[resource.GroupResource()]
	strategy := of.object
	if isStatus(path) {
		strategy = of.status
	}
	return &compiled{scheme: legacyscheme.Scheme, decoder: legacyscheme.Codecs.UniversalDeserializer(), resource: resource, path: path, strategy: strategy}
}
