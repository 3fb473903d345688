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

package objectdiff

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Beside returns a copy of an object without the values to which JSON pointers lead, and
// without what follows from any write: resourceVersion, generation, managed fields and the
// observed generation. Empty maps and lists mean nothing and are left out. Pointers are in
// the order in which package task's Path has them: an element that is removed moves those
// behind it. The result is nil for an object without anything else.
func Beside(object map[string]any, pointers []string) map[string]any {
	copied := runtime.DeepCopyJSON(object)
	for _, pointer := range slices.Backward(pointers) {
		copied, _ = without(copied, strings.Split(pointer, "/")[1:]).(map[string]any)
	}
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(copied, "metadata", field)
	}
	unstructured.RemoveNestedField(copied, "status", "observedGeneration")
	compacted, _ := compact(copied).(map[string]any)
	return compacted
}

// Paths returns where two objects differ, as JSON pointers in their order, the first few
// of them: at most so many. An object that one of them does not have is one place.
func Paths(a, b map[string]any, most int) []string {
	d := difference{most: most}
	d.maps(a, b, "")
	return d.paths
}

type difference struct {
	most  int
	paths []string
}

func (d *difference) maps(a, b map[string]any, at string) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		place := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		left, inLeft := a[key]
		right, inRight := b[key]
		if inLeft != inRight {
			d.add(place)
			continue
		}
		d.values(left, right, place)
	}
}

func (d *difference) values(a, b any, at string) {
	switch left := a.(type) {
	case map[string]any:
		if right, ok := b.(map[string]any); ok {
			d.maps(left, right, at)
			return
		}
	case []any:
		if right, ok := b.([]any); ok && len(left) == len(right) {
			for i := range left {
				d.values(left[i], right[i], at+"/"+strconv.Itoa(i))
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		d.add(at)
	}
}

func (d *difference) add(place string) {
	if len(d.paths) < d.most {
		d.paths = append(d.paths, place)
	}
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
