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

// Package openapi has the OpenAPI definitions of features.k8s.io and puts them
// beside upstream's.
package openapi

import (
	"k8s.io/kube-openapi/pkg/common"
	upstream "k8s.io/kubernetes/pkg/generated/openapi"
)

// GetAllOpenAPIDefinitions returns upstream's definitions and those of this
// fork.
func GetAllOpenAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := upstream.GetOpenAPIDefinitions(ref)
	for name, definition := range GetOpenAPIDefinitions(ref) {
		// The generator also writes the common types that ours refer to;
		// upstream's definitions of them are the complete ones.
		if _, ok := definitions[name]; !ok {
			definitions[name] = definition
		}
	}
	return definitions
}
