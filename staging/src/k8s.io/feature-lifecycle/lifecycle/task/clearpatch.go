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
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxOperations is the number of operations that kube-apiserver accepts in one JSON
// patch (maxJSONPatchOperations in k8s.io/apiserver/pkg/endpoints/handlers/patch.go).
const maxOperations = 10000

type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// onlyIf lets a patch fail unless an object is the one that was read.
func onlyIf(object metav1.Object) []jsonPatchOperation {
	return []jsonPatchOperation{
		{Op: "replace", Path: "/metadata/uid", Value: object.GetUID()},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()},
	}
}

// ownedBy sets an object's managed fields.
func ownedBy(owners []fieldOwner) (jsonPatchOperation, error) {
	entries, err := entriesOf(owners)
	return jsonPatchOperation{Op: "add", Path: "/metadata/managedFields", Value: entries}, err
}

// patch returns the JSON patch that removes the field, nil when the object does
// not have it. It sets the managed fields, too, unless owners is nil.
func (c clearField) patch(object *unstructured.Unstructured, owners []fieldOwner) ([]byte, error) {
	if !c.path.in(object.Object) {
		return nil, nil
	}
	operations := onlyIf(object)
	if owners != nil {
		operation, err := ownedBy(owners)
		if err != nil {
			return nil, err
		}
		operations = append(operations, operation)
	}
	return json.Marshal(append(operations, c.removals(object, maxOperations-len(operations))...))
}

// removals remove the field, with so many operations at most. Where there are more places
// than that, one operation replaces what has them all: several patches would leave the
// object without some of them in between, which validation may not permit.
func (c clearField) removals(object *unstructured.Unstructured, most int) []jsonPatchOperation {
	var places []*place
	walk(object.Object, c.path.segments, nil, func(at *place, _ any) bool {
		places = append(places, at)
		return true
	})
	// From the last one on: an element that goes moves those behind it.
	slices.Reverse(places)
	if len(places) > most {
		return []jsonPatchOperation{replacement(object.Object, places)}
	}
	var operations []jsonPatchOperation
	for _, at := range places {
		operations = append(operations, jsonPatchOperation{Op: "remove", Path: at.pointer()})
	}
	return operations
}

// replacement replaces the innermost value that has all places by a copy without them.
// There are several, the last one first.
func replacement(object map[string]any, places []*place) jsonPatchOperation {
	common := places[0].below
	shared := common.keys()
	var all [][]string
	for _, at := range places {
		keys := at.keys()
		for !slices.Equal(shared, keys[:min(len(shared), len(keys)-1)]) {
			common, shared = common.below, shared[:len(shared)-1]
		}
		all = append(all, keys)
	}
	value := runtime.DeepCopyJSONValue(valueAt(object, shared))
	for _, keys := range all {
		value = without(value, keys[len(shared):])
	}
	return jsonPatchOperation{Op: "replace", Path: common.pointer(), Value: value}
}

// valueAt returns what is in a value at the keys, which are there.
func valueAt(value any, keys []string) any {
	for _, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			value = v[number(key)]
		}
	}
	return value
}

// without removes from a value what is at the keys, which is there, and returns the rest.
func without(value any, keys []string) any {
	key, last := keys[0], len(keys) == 1
	switch v := value.(type) {
	case map[string]any:
		if last {
			delete(v, key)
		} else {
			v[key] = without(v[key], keys[1:])
		}
	case []any:
		if last {
			return slices.Delete(v, number(key), number(key)+1)
		}
		v[number(key)] = without(v[number(key)], keys[1:])
	}
	return value
}

// number returns that of an element in a place.
func number(key string) int {
	n, _ := strconv.Atoi(key)
	return n
}
