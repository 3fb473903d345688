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
	"maps"
	"net/http"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/control"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	_ "k8s.io/kubernetes-features/pkg/apis/features/install" // the group's types
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/reporting"
	"k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes-features/pkg/generated/openapi"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
	featuresrest "k8s.io/kubernetes-features/pkg/registry/features/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	upstreamopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// Config is everything that the servers of the chain are made of.
type Config struct {
	aggregator    *aggregatorapiserver.Config
	kubeAPIs      *controlplane.Config
	apiExtensions *apiextensionsapiserver.Config

	lifecycleEnabled bool
	settings         transition.Settings
	clearThrough     string
	control          control.Options
	features         []lifecycle.Feature
	// flowToken is the credential of the server flow, "" without the feature
	// lifecycle.
	flowToken string
	// documents are those of the Kubernetes APIs, nil without the feature lifecycle.
	documents *documents
}

// CompletedConfig is a Config whose defaults are filled in.
type CompletedConfig struct {
	aggregator    aggregatorapiserver.CompletedConfig
	kubeAPIs      controlplane.CompletedConfig
	apiExtensions apiextensionsapiserver.CompletedConfig

	lifecycleEnabled bool
	settings         transition.Settings
	clearThrough     string
	control          control.Options
	features         []lifecycle.Feature
	flowToken        string
	documents        *documents
}

// NewConfig makes the configuration of the chain and starts nothing.
func NewConfig(opts CompletedOptions) (*Config, error) {
	c := &Config{
		lifecycleEnabled: utilfeature.DefaultFeatureGate.Enabled(features.FeatureLifecycle),
		settings:         opts.Lifecycle,
		clearThrough:     opts.ClearThrough,
		control:          opts.Control,
		features:         opts.Features,
	}
	resources := resourceConfig(c.lifecycleEnabled)
	definitions := upstreamopenapi.GetOpenAPIDefinitions
	if c.lifecycleEnabled {
		definitions = openapi.GetAllOpenAPIDefinitions
	}
	schemes := []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}
	generic, informers, storageFactory, err := controlplaneapiserver.BuildGenericConfig(opts.CompletedOptions.CompletedOptions, schemes, resources, definitions, opts.InformerName)
	if err != nil {
		return nil, err
	}
	if c.lifecycleEnabled {
		// The servers of the chain get copies of the configuration below.
		c.flowToken = identifyFlow(&generic.Authentication)
	}
	kubeAPIs, resolver, initializers, err := app.CreateKubeAPIServerConfig(opts.CompletedOptions, generic, informers, storageFactory)
	if err != nil {
		return nil, err
	}
	c.kubeAPIs = kubeAPIs
	shared := &kubeAPIs.ControlPlane
	auth := webhook.NewDefaultAuthenticationInfoResolverWrapper(shared.ProxyTransport, shared.Generic.EgressSelector, shared.Generic.LoopbackClientConfig, shared.Generic.TracerProvider)
	c.apiExtensions, err = controlplaneapiserver.CreateAPIExtensionsConfig(*shared.Generic, shared.VersionedInformers, initializers,
		opts.CompletedOptions.CompletedOptions, opts.MasterCount, resolver, auth)
	if err != nil {
		return nil, err
	}
	c.aggregator, err = controlplaneapiserver.CreateAggregatorConfig(*shared.Generic, opts.CompletedOptions.CompletedOptions, shared.VersionedInformers,
		resolver, shared.ProxyTransport, shared.Extra.PeerProxy, initializers)
	if err != nil {
		return nil, err
	}
	if c.lifecycleEnabled {
		c.configureDocuments()
	}
	return c, nil
}

// configureDocuments leaves what gates that are off guard out of the published
// OpenAPI documents. The aggregator passes on what it downloads from the others, and
// has documents of its own, whose requests have parameters like all others.
func (c *Config) configureDocuments() {
	gate := reporting.Install()
	c.documents = newDocuments(gate, c.features, c.control.Dynamic)
	c.documents.configure(c.kubeAPIs.ControlPlane.Generic)
	crds := newDocuments(gate, c.features, nil)
	crds.configure(&c.apiExtensions.GenericConfig.Config)
	crds.configure(&c.aggregator.GenericConfig.Config)
	chain := c.aggregator.GenericConfig.BuildHandlerChainFunc
	c.aggregator.GenericConfig.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return chain(withCompleteDocuments(withCompleteDocuments(handler, c.documents.complete), crds.complete), config)
	}
}

// Complete fills in defaults.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{
		aggregator:       c.aggregator.Complete(),
		kubeAPIs:         c.kubeAPIs.Complete(),
		apiExtensions:    c.apiExtensions.Complete(),
		lifecycleEnabled: c.lifecycleEnabled,
		settings:         c.settings,
		clearThrough:     c.clearThrough,
		control:          c.control,
		features:         c.features,
		flowToken:        c.flowToken,
		documents:        c.documents,
	}
}

// NewServer makes the chain: the aggregator delegates to the Kubernetes APIs,
// those to custom resources, and those to "not found".
func (c CompletedConfig) NewServer() (*aggregatorapiserver.APIAggregator, error) {
	generic := c.kubeAPIs.ControlPlane.Generic
	notFound := notfoundhandler.New(generic.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	apiExtensions, err := c.apiExtensions.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, err
	}
	kubeAPIs, err := c.kubeAPIs.New(apiExtensions.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	if c.lifecycleEnabled {
		if err := c.installLifecycle(kubeAPIs.ControlPlane, apiExtensions.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister().Get); err != nil {
			return nil, err
		}
		if err := c.documents.follow(kubeAPIs.ControlPlane.GenericAPIServer); err != nil {
			return nil, err
		}
	}
	crds := c.apiExtensions.GenericConfig.MergedResourceConfig.ResourceEnabled(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	return controlplaneapiserver.CreateAggregatorServer(c.aggregator, kubeAPIs.ControlPlane.GenericAPIServer,
		apiExtensions.Informers.Apiextensions().V1().CustomResourceDefinitions(), crds, priorities())
}

// installLifecycle adds the API group and the server flow. The group may be
// switched off by --runtime-config like any other; there is no flow then, and
// options that need one are refused (CompletedOptions.Validate).
func (c CompletedConfig) installLifecycle(server *controlplaneapiserver.Server, definition func(name string) (*apiextensionsv1.CustomResourceDefinition, error)) error {
	flow, generic := &featurestorage.Flow{}, c.kubeAPIs.ControlPlane.Generic
	err := server.InstallAPIs(featuresrest.StorageProvider{
		Authorizer:          generic.Authorization.Authorizer,
		Control:             c.control.Of,
		Node:                server.VersionedInformers.Core().V1().Nodes().Lister().Get,
		RBAC:                server.APIResourceConfigSource.ResourceEnabled(rbacv1.SchemeGroupVersion.WithResource("clusterroles")),
		FlowControl:         server.APIResourceConfigSource.ResourceEnabled(flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas")),
		TaskRules:           lifecycle.Rules(c.features),
		NamespacedTaskRules: lifecycle.NamespacedRules(c.features),
		Flow:                flow,
	})
	if err != nil {
		return err
	}
	for _, resource := range flowResources {
		if !server.APIResourceConfigSource.ResourceEnabled(v1alpha1.SchemeGroupVersion.WithResource(resource)) {
			return nil
		}
	}
	return addLifecycleHooks(server, &lifecycleHooks{
		flow:       flow,
		stored:     NewStored(c.kubeAPIs.ControlPlane.Generic.RESTOptionsGetter, c.apiExtensions.ExtraConfig.CRDRESTOptionsGetter, serves(server.GenericAPIServer)),
		throughAPI: c.clearThrough == ClearThroughAPI,
		audit:      auditor{backend: generic.AuditBackend, policy: generic.AuditPolicyRuleEvaluator},
		definition: definition,
		authorizer: c.kubeAPIs.ControlPlane.Generic.Authorization.Authorizer,
		control:    c.control,
		notServed:  c.notServed(server),
	}, c.flowToken, c.features, c.settings)
}

// notServed returns sentences, by gate, about APIs that gates need and that this server
// does not serve. Those of gates that are on are logged: some keep the server from
// becoming ready.
func (c CompletedConfig) notServed(server *controlplaneapiserver.Server) map[string][]string {
	serving := catalog.Serving{
		Enabled:  server.APIResourceConfigSource.ResourceEnabled,
		Emulated: c.kubeAPIs.ControlPlane.Generic.EffectiveVersion.EmulationVersion(),
		Scheme:   legacyscheme.Scheme,
	}
	on := map[string]bool{}
	// To look is not to use the feature.
	for _, seen := range reporting.Install().Observations() {
		on[seen.Name] = seen.Enabled
	}
	lacking := map[string][]string{}
	for _, entry := range entries(c.features) {
		problems := entry.NotServed(serving)
		if len(problems) == 0 {
			continue
		}
		lacking[string(entry.Name)] = problems
		if on[string(entry.Name)] {
			klog.Background().Error(nil, "A feature that is on needs an API", "feature", entry.Name, "problem", strings.Join(problems, "; "))
		}
	}
	return lacking
}

// serves returns whether a server has a resource installed, in any version.
// Unlike discovery it is complete from the start.
func serves(server *genericapiserver.GenericAPIServer) func(schema.GroupResource) bool {
	return func(resource schema.GroupResource) bool {
		root := "/apis/" + resource.Group + "/"
		if resource.Group == "" {
			root = "/api/"
		}
		for _, service := range server.Handler.GoRestfulContainer.RegisteredWebServices() {
			if !strings.HasPrefix(service.RootPath(), root) {
				continue
			}
			for _, route := range service.Routes() {
				if slices.Contains(strings.Split(route.Path, "/"), resource.Resource) {
					return true
				}
			}
		}
		return false
	}
}

// priorities order the groups and versions in discovery, with the values of
// upstream's cmd/kube-apiserver/app/aggregator.go. The groups that are not part
// of every control plane are listed here; ours comes last.
func priorities() map[schema.GroupVersion]controlplaneapiserver.APIServicePriority {
	result := controlplaneapiserver.DefaultGenericAPIServicePriorities()
	for _, group := range []struct {
		name     string
		priority int32
		versions map[string]int32
	}{
		{"apps", 17800, map[string]int32{"v1": 15}},
		{"autoscaling", 17500, map[string]int32{"v2": 30, "v1": 15, "v2beta1": 9, "v2beta2": 1}},
		{"batch", 17400, map[string]int32{"v1": 15, "v1beta1": 9, "v2alpha1": 9}},
		{"networking.k8s.io", 17200, map[string]int32{"v1": 15, "v1beta1": 9}},
		{"policy", 17100, map[string]int32{"v1": 15, "v1beta1": 9}},
		{"storage.k8s.io", 16800, map[string]int32{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
		{"scheduling.k8s.io", 16600, map[string]int32{"v1": 15, "v1beta1": 9, "v1alpha3": 3}},
		{"node.k8s.io", 16300, map[string]int32{"v1": 15, "v1beta1": 9, "v1alpha1": 1}},
		{"resource.k8s.io", 16200, map[string]int32{"v1": 21, "v1beta2": 15, "v1beta1": 9, "v1alpha3": 1}},
		{"lifecycle.k8s.io", 15700, map[string]int32{"v1alpha1": 1}},
		{v1alpha1.GroupName, 15600, map[string]int32{"v1alpha1": 9}},
	} {
		groupPriorities := map[schema.GroupVersion]controlplaneapiserver.APIServicePriority{}
		for version, priority := range group.versions {
			groupPriorities[schema.GroupVersion{Group: group.name, Version: version}] = controlplaneapiserver.APIServicePriority{Group: group.priority, Version: priority}
		}
		maps.Copy(result, groupPriorities)
	}
	return result
}
