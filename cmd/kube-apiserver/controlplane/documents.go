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
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	componentfeaturegate "k8s.io/component-base/featuregate"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes-features/cmd/kube-apiserver/controlplane/apidocs"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// documentsHookName is the post-start hook that lets the published OpenAPI
// documents follow dynamic features.
const documentsHookName = "start-feature-openapi-documents"

// documents are the OpenAPI documents of one server of the chain. The published
// ones do not have the fields of gates that are off.
//
// The documents are cut when kube-openapi has built them and before they are
// served (PostProcessSpec), so the aggregator, which downloads them, and kubectl
// explain see nothing else. Server-side apply is not touched: the server builds its
// models from the configuration's definitions, without PostProcessSpec
// (GenericAPIServer.getOpenAPIModels, BuildOpenAPIDefinitionsForResources). Neither
// are the schemas of ValidatingAdmissionPolicies, which are the definitions.
// MutatingAdmissionPolicies apply configurations by the published documents of
// OpenAPI v3, though; see completeDocuments.
type documents struct {
	guards *apidocs.Guards
	gate   *featuregate.Gate
	// complete serves the uncut documents of OpenAPI v3 that may differ.
	complete *handler3.OpenAPIService
	// dynamic are the gates that may change while the server runs.
	dynamic []string

	// mu keeps what is below while the server prepares to run, and updates in order
	// afterwards. Only documents that dynamic gates can change are kept.
	mu sync.Mutex
	v2 *document[spec.Swagger]
	// v3 are by group and version, as handler3 names them: apis/apps/v1.
	v3 map[string]*document[spec3.OpenAPI]
}

// document is a complete one, what gates can take out of it, and what they took
// out of the one that is published.
type document[T any] struct {
	complete  *T
	cuts      apidocs.Cuts
	published apidocs.Cuts
}

// newDocuments reads the catalog and what is declared beside it. The gate is only
// observed: to publish what a gate guards is not to use the feature.
func newDocuments(gate *featuregate.Gate, declared []lifecycle.Feature, dynamic []string) *documents {
	return &documents{
		guards:   apidocs.NewGuards(entries(declared), gate.Dependencies()),
		gate:     gate,
		dynamic:  dynamic,
		complete: handler3.NewOpenAPIService(),
		v3:       map[string]*document[spec3.OpenAPI]{},
	}
}

// entries returns the catalog's, and those of the features that a distribution
// declares (Options.Features): the fields of their tasks go with their gates,
// too. A distribution's declaration replaces that of the catalog.
func entries(declared []lifecycle.Feature) []catalog.Entry {
	all := catalog.All()
	for _, feature := range declared {
		at := slices.IndexFunc(all, func(e catalog.Entry) bool { return e.Name == feature.Name })
		if at < 0 {
			all = append(all, catalog.Entry{Feature: feature})
			continue
		}
		all[at].Feature = feature
	}
	return all
}

// configure makes a server publish cut documents. The configurations are replaced,
// since those of the chain share them.
func (d *documents) configure(generic *genericapiserver.Config) {
	if generic.OpenAPIConfig != nil {
		v2 := *generic.OpenAPIConfig
		nameOperations(&v2)
		v2.PostProcessSpec = afterwards(v2.PostProcessSpec, d.cutV2)
		generic.OpenAPIConfig = &v2
	}
	if generic.OpenAPIV3Config != nil {
		v3 := *generic.OpenAPIV3Config
		v3.PostProcessSpec = afterwards(v3.PostProcessSpec, d.cutV3)
		generic.OpenAPIV3Config = &v3
	}
}

// nameOperations sets a function that kube-openapi otherwise makes from
// GetOperationIDAndTags, when it first builds with a configuration
// (builder.newOpenAPI). That one refers to the whole builder, so each configuration
// would keep the definitions of all types while the server runs: 16 MiB for those of
// the chain.
func nameOperations(config *common.Config) {
	// Deprecated, and what upstream's servers set (genericapiserver.DefaultOpenAPIConfig).
	name := config.GetOperationIDAndTags //nolint:staticcheck
	if name == nil || config.GetOperationIDAndTagsFromRoute != nil {
		return
	}
	config.GetOperationIDAndTagsFromRoute = func(route common.Route) (string, []string, error) {
		adapter, ok := route.(*restfuladapter.RouteAdapter)
		if !ok {
			return "", nil, fmt.Errorf("the route %s %s of an OpenAPI document is a %T; only routes of go-restful have names of operations", route.Method(), route.Path(), route)
		}
		return name(adapter.Route)
	}
}

// afterwards returns a configuration's function for a document, followed by cut.
func afterwards[T any](before func(*T) (*T, error), cut func(*T) *T) func(*T) (*T, error) {
	return func(complete *T) (*T, error) {
		if before != nil {
			var err error
			if complete, err = before(complete); err != nil {
				return nil, err
			}
		}
		return cut(complete), nil
	}
}

// values returns those of all gates now. A gate that this binary does not have
// guards nothing here.
func (d *documents) values() func(componentfeaturegate.Feature) bool {
	values := map[string]bool{}
	for _, o := range d.gate.Observations() {
		values[o.Name] = o.Enabled
	}
	return func(gate componentfeaturegate.Feature) bool {
		enabled, known := values[string(gate)]
		return enabled || !known
	}
}

func (d *documents) cutV2(complete *spec.Swagger) *spec.Swagger {
	d.mu.Lock()
	defer d.mu.Unlock()
	cuts := d.guards.OfV2(complete)
	now := cuts.While(d.values())
	if len(d.changing(cuts)) > 0 {
		d.v2 = &document[spec.Swagger]{complete, cuts, now}
	}
	if len(now) > 0 {
		klog.V(2).InfoS("The published OpenAPI documents leave out what belongs to features that are off", "gates", now.Gates(), "count", len(now))
	}
	return now.V2(complete)
}

func (d *documents) cutV3(complete *spec3.OpenAPI) *spec3.OpenAPI {
	cuts := d.guards.OfV3(complete)
	name, ok := groupVersionOf(complete)
	if !ok || len(cuts) == 0 {
		return complete
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := cuts.While(d.values())
	if len(d.changing(cuts)) > 0 {
		d.v3[name] = &document[spec3.OpenAPI]{complete, cuts, now}
	}
	// The server needs no model of fields that no stored object has.
	if len(cuts.OfObjects()) > 0 {
		d.complete.UpdateGroupVersion(name, complete)
	}
	return now.V3(complete)
}

// groupVersionOf returns the name of a document of OpenAPI v3. Upstream takes it
// from the document's web service (routes.OpenAPI.InstallV3): all of its paths are
// below it.
func groupVersionOf(document *spec3.OpenAPI) (string, bool) {
	for path := range document.Paths.Paths {
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		switch {
		case len(parts) > 2 && parts[0] == "api":
			return strings.Join(parts[:2], "/"), true
		case len(parts) > 3 && parts[0] == "apis":
			return strings.Join(parts[:3], "/"), true
		}
	}
	return "", false
}

// follow updates the documents of a server when gates change while it runs.
// Documents published earlier are cut by the values of that moment. The documents
// of OpenAPI v2 of the server of custom resources belong to another controller,
// so they are not updated; none of its gates is dynamic.
func (d *documents) follow(server *genericapiserver.GenericAPIServer) error {
	if len(d.dynamic) == 0 {
		return nil
	}
	return server.AddPostStartHook(documentsHookName, func(hook genericapiserver.PostStartHookContext) error {
		d.subscribe(hook, server.OpenAPIVersionedService, server.OpenAPIV3VersionedService)
		return nil
	})
}

// subscribe updates what is published whenever a dynamic gate changes, until the
// context ends.
func (d *documents) subscribe(ctx context.Context, v2 *handler.OpenAPIService, v3 *handler3.OpenAPIService) {
	var gates []componentfeaturegate.Feature
	for _, name := range d.dynamic {
		gates = append(gates, componentfeaturegate.Feature(name))
	}
	unsubscribe := d.gate.OnChange(func(featuregate.Snapshot) { d.update(v2, v3) }, gates...)
	context.AfterFunc(ctx, unsubscribe)
	// Changes between the documents and the subscription.
	d.update(v2, v3)
}

// changing are the dynamic gates that can change a document.
func (d *documents) changing(cuts apidocs.Cuts) []componentfeaturegate.Feature {
	return slices.DeleteFunc(cuts.Gates(), func(gate componentfeaturegate.Feature) bool { return !slices.Contains(d.dynamic, string(gate)) })
}

// update publishes the documents that differ from the published ones. Clients see
// it as soon as the aggregator has looked again, which it does every second.
func (d *documents) update(v2 *handler.OpenAPIService, v3 *handler3.OpenAPIService) {
	d.mu.Lock()
	defer d.mu.Unlock()
	values := d.values()
	if now := d.v2.changed(values); v2 != nil && now != nil {
		document := now.V2(d.v2.complete)
		// As when it was installed (routes.OpenAPI.InstallV2).
		document.Definitions = handler.PruneDefaults(document.Definitions)
		if err := v2.UpdateSpec(document); err != nil {
			klog.ErrorS(err, "The published OpenAPI v2 document does not follow a changed feature; it is as before")
		}
	}
	if v3 == nil {
		return
	}
	for name, document := range d.v3 {
		if now := document.changed(values); now != nil {
			v3.UpdateGroupVersion(name, now.V3(document.complete))
		}
	}
}

// changed returns the cuts for these values and records them, nil if they are the
// same as before.
func (d *document[T]) changed(values func(componentfeaturegate.Feature) bool) apidocs.Cuts {
	if d == nil {
		return nil
	}
	now := d.cuts.While(values)
	if now.Equal(d.published) {
		return nil
	}
	d.published = now
	return now
}
