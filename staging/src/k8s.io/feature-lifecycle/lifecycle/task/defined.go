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

package task

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definedField is how the schema of a custom resource treats a field.
type definedField struct {
	// absent is true if the schema does not have the field: the server removes it from
	// what it reads (pruning), and stored objects keep it until they are written.
	absent bool
	// value is the default, which the server puts in where the field is missing; nil for none.
	value any
}

// findable returns an error if the definition of a custom resource keeps a field from
// being found or cleared: a *BlockedError that names the next step, before anything is
// written. matches selects the defaults that matter; nil means all. It is nil without a
// definition, and if that may not be read. Finders of kube-apiserver's own flow do
// without it: they run every half hour, and nearly all their resources are built in.
func findable(ctx context.Context, clients Clients, resource schema.GroupVersionResource, path Path, matches func(value any) bool) error {
	look := func(ctx context.Context) (string, error) {
		definition, err := clients.Dynamic.Resource(crds).Get(ctx, resource.GroupResource().String(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("finding out how %s is defined: %w", resource.GroupResource(), err)
		}
		return fieldProblem(definition, resource, path, matches), nil
	}
	if !mayBeCustom(resource.GroupResource()) {
		return nil
	}
	problem, err := look(ctx)
	if problem == "" || err != nil {
		return err
	}
	return &BlockedError{Message: problem, Until: func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			problem, err := look(ctx)
			return err == nil && problem == ""
		})
	}}
}

// fieldProblem describes what a definition does to a field, and the next step.
func fieldProblem(definition *unstructured.Unstructured, resource schema.GroupVersionResource, path Path, matches func(value any) bool) string {
	root := withMetadata(schemaOf(definition, resource.Version))
	if root == nil {
		return ""
	}
	switch f := definedIn(root, path.segments); {
	case f.absent:
		return fmt.Sprintf("the schema of %s %s has no %s, so what is stored of it cannot be seen, and returns with the property: "+
			"let the definition have the property until the feature is off and clean, or correct the path", resource.GroupResource(), resource.Version, path)
	case f.value != nil && (matches == nil || matches(f.value)):
		return fmt.Sprintf("the schema of %s %s gives %s the default %v, which the server puts into every object without it: "+
			"take the default out of the definition before the feature is turned off; nothing has been changed", resource.GroupResource(), resource.Version, path, f.value)
	}
	return ""
}

// versionOf returns the entry of a version in a definition, nil without one.
func versionOf(definition *unstructured.Unstructured, name string) map[string]any {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["name"] == name {
			return version
		}
	}
	return nil
}

// schemaOf returns the schema that a definition has for a version, nil if it prunes nothing.
func schemaOf(definition *unstructured.Unstructured, version string) map[string]any {
	if keeps, _, _ := unstructured.NestedBool(definition.Object, "spec", "preserveUnknownFields"); keeps {
		return nil
	}
	root, _, _ := unstructured.NestedMap(versionOf(definition, version), "schema", "openAPIV3Schema")
	return root
}

// withMetadata adds what every object has, whatever its definition, and nil to nil.
func withMetadata(root map[string]any) map[string]any {
	if root == nil {
		return nil
	}
	properties, _ := root["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	for _, key := range []string{"apiVersion", "kind", "metadata"} {
		properties[key] = open
	}
	root = maps.Clone(root)
	root["properties"] = properties
	return root
}

// open is a schema in which everything is permitted.
var open = map[string]any{preserves: true}

const preserves = "x-kubernetes-preserve-unknown-fields"

// definedIn finds a field in a structural schema
// (k8s.io/apiextensions-apiserver/pkg/apiserver/schema).
func definedIn(node map[string]any, segments []segment) definedField {
	part := segments[0]
	child := entrySchema(node, part.key)
	if child == nil {
		return definedField{absent: true}
	}
	// Defaults are of properties: elements and entries are not restored.
	value := child["default"]
	switch part.which {
	case eachElement, someElements:
		items, _ := child["items"].(map[string]any)
		switch {
		case items != nil:
			child, value = items, nil
		case child[preserves] != true && part.which == eachElement:
			return definedField{absent: true}
		}
	case oneEntry:
		if child = entrySchema(child, part.name); child == nil {
			return definedField{absent: true}
		}
		value = child["default"]
	case eachEntry:
		return definedInEach(child, segments[1:])
	}
	if len(segments) == 1 {
		return definedField{value: value}
	}
	return definedIn(child, segments[1:])
}

// definedInEach finds a field in all entries of a map: one that has it is enough.
func definedInEach(node map[string]any, segments []segment) definedField {
	properties, _ := node["properties"].(map[string]any)
	names := slices.Sorted(maps.Keys(properties))
	if len(names) == 0 {
		names = []string{""}
	}
	found := definedField{absent: true}
	for _, name := range names {
		entry := entrySchema(node, name)
		if entry == nil {
			continue
		}
		if f := definedIn(entry, segments); !f.absent && (found.absent || f.value != nil) {
			found = f
		}
	}
	return found
}

// entrySchema returns the schema of an entry of an object, nil if it may not have it.
func entrySchema(node map[string]any, key string) map[string]any {
	properties, _ := node["properties"].(map[string]any)
	if property, ok := properties[key].(map[string]any); ok {
		return property
	}
	if entries, ok := node["additionalProperties"].(map[string]any); ok {
		return entries
	}
	if node[preserves] == true || node["additionalProperties"] == true || node["x-kubernetes-embedded-resource"] == true {
		return open
	}
	return nil
}
