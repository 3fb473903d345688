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

package catalog

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HasField returns true if objects of a resource have a field, written as for
// task.ClearField, in a version that the scheme knows, by their Go type
// (task.Clients.HasField).
func HasField(scheme *runtime.Scheme, resource schema.GroupVersionResource, path string) bool {
	for kind, goType := range scheme.KnownTypes(resource.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind)); plural == resource {
			return hasPath(goType, parsePath(path))
		}
	}
	return false
}

// segment is one key of a task's path and what it selects: "", "[*]", "[a=b]",
// "{*}" or "{key}". Package task has checked the syntax.
type segment struct{ key, selector string }

func parsePath(path string) []segment {
	var segments []segment
	inside := false
	for _, part := range strings.FieldsFunc(path, func(r rune) bool {
		inside = (inside || r == '[' || r == '{') && r != ']' && r != '}'
		return r == '.' && !inside
	}) {
		at := strings.IndexAny(part+"[", "[{")
		segments = append(segments, segment{part[:at], part[at:]})
	}
	return segments
}

// hasPath returns true if the objects of a Go type can have the field.
func hasPath(kind reflect.Type, path []segment) bool {
	if len(path) == 0 {
		return true
	}
	kind = dereference(kind)
	if kind == reflect.TypeFor[runtime.RawExtension]() {
		return true // any object
	}
	if kind.Kind() != reflect.Struct {
		return false
	}
	for i := range kind.NumField() {
		field := kind.Field(i)
		if jsonKey(field) == "" && field.Anonymous && hasPath(field.Type, path) {
			return true
		}
		if jsonKey(field) != path[0].key {
			continue
		}
		value := dereference(field.Type)
		switch selector := path[0].selector; {
		case selector == "":
			return hasPath(value, path[1:])
		case selector == "[*]":
			return value.Kind() == reflect.Slice && hasPath(value.Elem(), path[1:])
		case selector[0] == '[':
			name, _, _ := strings.Cut(selector[1:], "=")
			if value.Kind() == reflect.Slice {
				value = value.Elem()
			}
			return hasPath(value, []segment{{key: name}}) && hasPath(value, path[1:])
		default:
			return value.Kind() == reflect.Map && hasPath(value.Elem(), path[1:])
		}
	}
	return false
}

// jsonKey returns the key of a field, "" if it has none of its own.
func jsonKey(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if !field.IsExported() || key == "-" {
		return ""
	}
	return key
}

func dereference(kind reflect.Type) reflect.Type {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return kind
}
