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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// objectSchema is the schema of the objects of a resource, as OpenAPI has it.
type objectSchema struct {
	root map[string]any
	// pruned is true if what the schema does not name is not stored, as in custom resources.
	pruned bool
	// references are the schemas that others refer to, by name.
	references map[string]any
}

// mostNamed is the number of existing fields that a message names instead.
const mostNamed = 8

// metadataSchema is that of every object's metadata (ObjectMeta in
// k8s.io/apimachinery/pkg/apis/meta/v1); definitions leave it out. What no task clears
// is open.
var metadataSchema = map[string]any{"type": "object", "properties": map[string]any{
	"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
	"generation":        map[string]any{"type": "integer"},
	"creationTimestamp": text, "deletionTimestamp": text, "deletionGracePeriodSeconds": map[string]any{"type": "integer"},
	"labels":          map[string]any{"type": "object", "additionalProperties": text},
	"annotations":     map[string]any{"type": "object", "additionalProperties": text},
	"ownerReferences": map[string]any{}, "managedFields": map[string]any{},
	"finalizers": map[string]any{"type": "array", "items": text},
}}

var text = map[string]any{"type": "string"}

// lacks returns what of a field the schema does not have, "" if it has all of it or
// leaves it open.
func (s objectSchema) lacks(f Field) string {
	path, err := ParsePath(f.Path)
	if err != nil {
		// Validate reports it.
		return ""
	}
	root := s.root
	if key := path.segments[0].key; key == "metadata" {
		root = map[string]any{"type": "object", "properties": map[string]any{key: metadataSchema}}
	} else if key == "apiVersion" || key == "kind" {
		return ""
	}
	return s.descend(root, path.segments, "", f.Value)
}

// descend follows a path from a schema that is at a place. Value is what the last part of
// the path is to be, "" for anything.
func (s objectSchema) descend(node map[string]any, segments []segment, at, value string) string {
	first, place := segments[0], strings.TrimPrefix(at+"."+segments[0].key, ".")
	child, open, others := s.property(node, first.key)
	switch {
	case open:
		return ""
	case child == nil && len(others) == 0:
		return fmt.Sprintf("has no %s, and nothing below %s", place, orObject(at))
	case child == nil:
		return fmt.Sprintf("has no %s; %s has %s", place, orObject(at), strings.Join(shortened(others), ", "))
	}
	child, problem := s.selected(child, first, place)
	if problem != "" || child == nil {
		return problem
	}
	if len(segments) == 1 {
		return s.refuses(child, place, value)
	}
	switch kind := child["type"]; kind {
	case "array":
		return fmt.Sprintf("has a list in %s; write %s[*]", place, place)
	case "string", "boolean", "integer", "number":
		return fmt.Sprintf("has a %s in %s, and nothing below it", kind, place)
	}
	return s.descend(child, segments[1:], place, value)
}

// orObject returns a place in words.
func orObject(at string) string {
	if at == "" {
		return "the object"
	}
	return at
}

func shortened(names []string) []string {
	if len(names) > mostNamed {
		return append(names[:mostNamed:mostNamed], fmt.Sprintf("%d more", len(names)-mostNamed))
	}
	return names
}

// property returns the schema of an entry of an object. Open is true if it may be
// anything. Others are the entries that the object may have, for one that has no such
// entry.
func (s objectSchema) property(node map[string]any, key string) (child map[string]any, open bool, others []string) {
	node = s.resolved(node)
	properties, _ := node["properties"].(map[string]any)
	if found, ok := properties[key].(map[string]any); ok {
		return s.resolved(found), false, nil
	}
	if s.isOpen(node) || node["x-kubernetes-embedded-resource"] == true && (key == "apiVersion" || key == "kind" || key == "metadata") {
		return nil, true, nil
	}
	switch additional := node["additionalProperties"].(type) {
	case map[string]any:
		return s.resolved(additional), false, nil
	case bool:
		return nil, additional, slices.Sorted(maps.Keys(properties))
	}
	return nil, false, slices.Sorted(maps.Keys(properties))
}

// isOpen returns true for a schema that leaves open what it does not name.
func (s objectSchema) isOpen(node map[string]any) bool {
	if node["x-kubernetes-preserve-unknown-fields"] == true || node["x-kubernetes-int-or-string"] == true {
		return true
	}
	_, typed := node["type"]
	_, named := node["properties"]
	_, mapped := node["additionalProperties"]
	// Types of Kubernetes that encode themselves have no properties in the document.
	return !named && !mapped && (!typed || !s.pruned && node["type"] == "object")
}

// resolved follows references.
func (s objectSchema) resolved(node map[string]any) map[string]any {
	// A schema that refers to itself would take for ever.
	for range 16 {
		// A reference that has a description or a default stands in allOf.
		if all, _ := node["allOf"].([]any); len(all) == 1 && node["properties"] == nil {
			if only, ok := all[0].(map[string]any); ok {
				node = only
				continue
			}
		}
		name, ok := node["$ref"].(string)
		if !ok {
			return node
		}
		node, _ = s.references[strings.TrimPrefix(name, "#/components/schemas/")].(map[string]any)
	}
	return nil
}

// selected returns the schema of what a part of a path selects of its key's value, nil
// if that may be anything.
func (s objectSchema) selected(node map[string]any, part segment, place string) (map[string]any, string) {
	items, _ := node["items"].(map[string]any)
	switch part.which {
	case eachElement, someElements:
		element := node
		switch {
		case s.isOpen(node) && items == nil:
			return nil, ""
		case items != nil:
			element = s.resolved(items)
		case part.which == eachElement || node["type"] != "object":
			return nil, fmt.Sprintf("has no list in %s", place)
		}
		if part.which == someElements {
			if problem := s.descend(element, []segment{{key: part.name}}, place, part.value); problem != "" {
				return nil, problem
			}
		}
		return element, ""
	case eachEntry, oneEntry:
		if part.which == oneEntry {
			child, open, others := s.property(node, part.name)
			if !open && child == nil {
				return nil, fmt.Sprintf("has no entry %s in %s, which is no map and has %s", part.name, place, strings.Join(shortened(others), ", "))
			}
			return child, ""
		}
		additional, isMap := node["additionalProperties"]
		if entry, ok := additional.(map[string]any); ok {
			return s.resolved(entry), ""
		}
		_, isObject := node["properties"]
		if !isMap && !isObject && !s.isOpen(node) {
			return nil, fmt.Sprintf("has no map in %s", place)
		}
		return nil, ""
	}
	return node, ""
}

// refuses returns why a field never has a value, "" if it may.
func (s objectSchema) refuses(node map[string]any, place, value string) string {
	if value == "" || node["x-kubernetes-int-or-string"] == true {
		return ""
	}
	if enum, _ := node["enum"].([]any); len(enum) > 0 {
		var values []string
		for _, allowed := range enum {
			values = append(values, fmt.Sprint(allowed))
		}
		if !slices.Contains(values, value) {
			return fmt.Sprintf("permits no %s in %s; it permits %s", value, place, strings.Join(shortened(values), ", "))
		}
		return ""
	}
	ever, kind := true, node["type"]
	switch kind {
	case "boolean":
		ever = value == "true" || value == "false"
	case "integer":
		_, err := strconv.ParseInt(value, 10, 64)
		ever = err == nil
	case "number":
		_, err := strconv.ParseFloat(value, 64)
		ever = err == nil
	case "array", "object":
		ever = false
	}
	if !ever {
		return fmt.Sprintf("has the type %s in %s, which is never %s", kind, place, value)
	}
	return ""
}
