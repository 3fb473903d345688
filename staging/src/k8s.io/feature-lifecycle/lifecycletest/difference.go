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

package lifecycletest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Changed returns how an object changed other than by the removal of fields: what
// follows from any write (resourceVersion, generation, managed fields) does not
// count (S7). It is "" when nothing changed.
func Changed(before, after *unstructured.Unstructured, removed []task.Field) string {
	return cmp.Diff(beside(before, removed), beside(after, removed))
}

// beside is an object without fields and without what follows from any write.
// Empty parents of what was removed mean nothing.
func beside(object *unstructured.Unstructured, removed []task.Field) any {
	copied := object.DeepCopy()
	for _, field := range removed {
		path, err := task.ParsePath(field.Path)
		if err != nil {
			continue
		}
		for _, pointer := range slices.Backward(path.Pointers(copied.Object)) {
			copied.Object, _ = without(copied.Object, strings.Split(pointer, "/")[1:]).(map[string]any)
		}
	}
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(copied.Object, "status", "observedGeneration")
	return compact(copied.Object)
}

// without removes what a JSON pointer's parts lead to.
func without(value any, parts []string) any {
	part := strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[0])
	switch typed := value.(type) {
	case map[string]any:
		if len(parts) == 1 {
			delete(typed, part)
		} else if child, ok := typed[part]; ok {
			typed[part] = without(child, parts[1:])
		}
	case []any:
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i >= len(typed) {
			return value
		}
		if len(parts) == 1 {
			return slices.Delete(typed, i, i+1)
		}
		typed[i] = without(typed[i], parts[1:])
	}
	return value
}

// compact drops empty maps and lists, nil for nothing.
func compact(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for key, child := range typed {
			if child = compact(child); child == nil {
				delete(typed, key)
			} else {
				typed[key] = child
			}
		}
		if len(typed) == 0 {
			return nil
		}
		return typed
	case []any:
		if len(typed) == 0 {
			return nil
		}
		for i, child := range typed {
			// An element that is empty keeps its place.
			if child = compact(child); child != nil {
				typed[i] = child
			}
		}
		return typed
	default:
		return value
	}
}
