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
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// OfV2 finds what gates can take out of an OpenAPI v2 document.
func (g *Guards) OfV2(document *spec.Swagger) Cuts {
	if document.Paths == nil {
		return nil
	}
	roots := map[schema.GroupVersionResource]string{}
	for path, item := range document.Paths.Paths {
		resource, ok := resourceOf(path)
		if !ok || item.Get == nil || item.Get.Responses == nil {
			continue
		}
		if answer := item.Get.Responses.StatusCodeResponses[http.StatusOK].Schema; answer != nil {
			roots[resource] = referenced(answer)
		}
	}
	schemas := pointers(document.Definitions)
	return sorted(append(g.findCuts(schemas, roots), requestCuts(schemas, parametersV2(document), true)...))
}

// OfV3 finds what gates can take out of the OpenAPI v3 document of one group and
// version.
func (g *Guards) OfV3(document *spec3.OpenAPI) Cuts {
	if document.Paths == nil || document.Components == nil {
		return nil
	}
	roots := map[schema.GroupVersionResource]string{}
	for path, item := range document.Paths.Paths {
		resource, ok := resourceOf(path)
		if !ok || item == nil || item.Get == nil || item.Get.Responses == nil {
			continue
		}
		answer := item.Get.Responses.StatusCodeResponses[http.StatusOK]
		if answer == nil {
			continue
		}
		for _, media := range answer.Content {
			if media.Schema != nil {
				roots[resource] = referenced(media.Schema)
			}
		}
	}
	return sorted(append(g.findCuts(document.Components.Schemas, roots), requestCuts(document.Components.Schemas, parametersV3(document), false)...))
}

// resourceOf is the resource whose objects are got at a path of a document, false
// if it is another path.
func resourceOf(path string) (schema.GroupVersionResource, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = append([]string{""}, parts[1:]...)
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[1:]
	default:
		return schema.GroupVersionResource{}, false
	}
	group, version, rest := parts[0], parts[1], parts[2:]
	if len(rest) > 2 && rest[0] == "namespaces" && rest[1] == "{namespace}" {
		rest = rest[2:]
	}
	if len(rest) != 2 || rest[1] != "{name}" {
		return schema.GroupVersionResource{}, false
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: rest[0]}, true
}

// V2 returns the document without what these cuts take, and leaves the one that is
// given as it is. The two share what is the same.
func (c Cuts) V2(document *spec.Swagger) *spec.Swagger {
	result := *document
	result.Definitions = maps.Clone(document.Definitions)
	for name, changed := range c.apply(pointers(document.Definitions)) {
		result.Definitions[name] = *changed
	}
	withoutParametersV2(&result, c.parameters())
	return &result
}

// V3 is the same for OpenAPI v3.
func (c Cuts) V3(document *spec3.OpenAPI) *spec3.OpenAPI {
	result, components := *document, *document.Components
	components.Schemas = maps.Clone(components.Schemas)
	maps.Copy(components.Schemas, c.apply(document.Components.Schemas))
	result.Components = &components
	withoutParametersV3(&result, c.parameters())
	return &result
}

func pointers(definitions spec.Definitions) map[string]*spec.Schema {
	schemas := make(map[string]*spec.Schema, len(definitions))
	for name, definition := range definitions {
		schemas[name] = &definition
	}
	return schemas
}
