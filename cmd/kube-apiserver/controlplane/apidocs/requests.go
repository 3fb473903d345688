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

package apidocs

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/component-base/featuregate"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/features"
)

const (
	metaV1 = "io.k8s.apimachinery.pkg.apis.meta.v1."
	coreV1 = "io.k8s.api.core.v1."
	query  = "query"
)

// requestFields are fields of requests and responses that belong to gates. No
// stored object has them, so the catalog, which is about stored objects, names none
// of them. The server takes options of a request as query parameters of the same
// name, too (apiserver's endpoints.AddObjectParams). A document has only these for
// types that are never a body.
//
// TestMarkers finds what upstream marks and is missing here. It marks
// ignoreStoreReadErrorWithClusterBreakingPotential by prose only.
var requestFields = []struct {
	property
	gate featuregate.Feature
	// options is true if the field is a query parameter, too.
	options bool
	// inV3 is true if OpenAPI v2 keeps the property (not the parameter). The
	// aggregator merges documents of v2, and renames types that differ. Those of
	// custom resources and of aggregated API servers are complete. So a type that
	// is a kind of its own would occur twice, and clients refuse the whole
	// document: "duplicate entry for /v1, Kind=DeleteOptions" (apimachinery's
	// managedfields.NewGVKParser). ListMeta is no kind.
	inV3 bool
}{
	{property{metaV1 + "ListMeta", "shardInfo"}, genericfeatures.ShardedListAndWatch, false, false},
	{property{metaV1 + "ListOptions", "shardSelector"}, genericfeatures.ShardedListAndWatch, true, false},
	{property{metaV1 + "DeleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"}, genericfeatures.AllowUnsafeMalformedObjectDeletion, true, true},
	{property{coreV1 + "PodLogOptions", "stream"}, features.PodLogsQuerySplitStreams, true, false},
}

// requestCuts returns the requestFields that gates can remove from a document
// with these types and query parameters.
func requestCuts(schemas map[string]*spec.Schema, parameters sets.Set[string], v2 bool) Cuts {
	var cuts Cuts
	for _, field := range requestFields {
		places := []place{{level{field.gate}}}
		if s := schemas[field.definition]; s != nil && (!v2 || !field.inV3) {
			if _, ok := s.Properties[field.key]; ok {
				cuts = append(cuts, Cut{property: field.property, about: request, places: places})
			}
		}
		if field.options && parameters.Has(field.key) {
			cuts = append(cuts, Cut{property: field.property, about: parameter, places: places})
		}
	}
	return cuts
}

// parameters are the names of the query parameters that are taken.
func (c Cuts) parameters() sets.Set[string] {
	names := sets.New[string]()
	for _, cut := range c {
		if cut.about == parameter {
			names.Insert(cut.key)
		}
	}
	return names
}

// without returns a list without some elements, and whether there were any. The
// list that is given stays as it is.
func without[T any](list []T, gone func(T) bool) ([]T, bool) {
	if !slices.ContainsFunc(list, gone) {
		return list, false
	}
	return slices.DeleteFunc(slices.Clone(list), gone), true
}

func operationsV2(item *spec.PathItem) []**spec.Operation {
	return slices.DeleteFunc([]**spec.Operation{&item.Get, &item.Put, &item.Post, &item.Delete, &item.Options, &item.Head, &item.Patch},
		func(o **spec.Operation) bool { return *o == nil })
}

func operationsV3(item *spec3.Path) []**spec3.Operation {
	return slices.DeleteFunc([]**spec3.Operation{&item.Get, &item.Put, &item.Post, &item.Delete, &item.Options, &item.Head, &item.Patch, &item.Trace},
		func(o **spec3.Operation) bool { return *o == nil })
}

// parametersV2 are the names of all query parameters of a document. kube-openapi
// moves parameters of many paths into a list that they share, but only after it
// has let documents be changed (builder.finalizeSwagger), so they may be anywhere.
func parametersV2(document *spec.Swagger) sets.Set[string] {
	names := sets.New[string]()
	add := func(list []spec.Parameter) {
		for _, p := range list {
			if p.In == query {
				names.Insert(p.Name)
			}
		}
	}
	add(slices.Collect(maps.Values(document.Parameters)))
	for _, item := range document.Paths.Paths {
		add(item.Parameters)
		for _, operation := range operationsV2(&item) {
			add((*operation).Parameters)
		}
	}
	return names
}

// parametersV3 is the same for OpenAPI v3.
func parametersV3(document *spec3.OpenAPI) sets.Set[string] {
	names := sets.New[string]()
	add := func(list []*spec3.Parameter) {
		for _, p := range list {
			if p.In == query {
				names.Insert(p.Name)
			}
		}
	}
	add(slices.Collect(maps.Values(document.Components.Parameters)))
	for _, item := range document.Paths.Paths {
		if item == nil {
			continue
		}
		add(item.Parameters)
		for _, operation := range operationsV3(item) {
			add((*operation).Parameters)
		}
	}
	return names
}

// withoutParametersV2 replaces what has query parameters that are gone.
func withoutParametersV2(document *spec.Swagger, names sets.Set[string]) {
	if len(names) == 0 {
		return
	}
	shared := sets.New[string]()
	document.Parameters = maps.Clone(document.Parameters)
	maps.DeleteFunc(document.Parameters, func(key string, p spec.Parameter) bool {
		gone := p.In == query && names.Has(p.Name)
		if gone {
			shared.Insert("#/parameters/" + key)
		}
		return gone
	})
	gone := func(p spec.Parameter) bool { return p.In == query && names.Has(p.Name) || shared.Has(p.Ref.String()) }
	paths := *document.Paths
	paths.Paths = maps.Clone(paths.Paths)
	for path, item := range paths.Paths {
		item.Parameters, _ = without(item.Parameters, gone)
		for _, operation := range operationsV2(&item) {
			if left, ok := without((*operation).Parameters, gone); ok {
				changed := **operation
				changed.Parameters = left
				*operation = &changed
			}
		}
		paths.Paths[path] = item
	}
	document.Paths = &paths
}

// withoutParametersV3 is the same for OpenAPI v3. The document's components are a
// copy already.
func withoutParametersV3(document *spec3.OpenAPI, names sets.Set[string]) {
	if len(names) == 0 {
		return
	}
	shared := sets.New[string]()
	document.Components.Parameters = maps.Clone(document.Components.Parameters)
	maps.DeleteFunc(document.Components.Parameters, func(key string, p *spec3.Parameter) bool {
		gone := p.In == query && names.Has(p.Name)
		if gone {
			shared.Insert("#/components/parameters/" + key)
		}
		return gone
	})
	gone := func(p *spec3.Parameter) bool { return p.In == query && names.Has(p.Name) || shared.Has(p.Ref.String()) }
	paths := *document.Paths
	paths.Paths = maps.Clone(paths.Paths)
	for path, item := range paths.Paths {
		if item == nil {
			continue
		}
		changedItem := *item
		changedItem.Parameters, _ = without(item.Parameters, gone)
		for _, operation := range operationsV3(&changedItem) {
			if left, ok := without((*operation).Parameters, gone); ok {
				changed := **operation
				changed.Parameters = left
				*operation = &changed
			}
		}
		paths.Paths[path] = &changedItem
	}
	document.Paths = &paths
}
