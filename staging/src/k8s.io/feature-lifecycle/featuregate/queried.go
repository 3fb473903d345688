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

package featuregate

import (
	"reflect"

	"k8s.io/component-base/featuregate"
)

// queried returns the features that a gate of upstream's was queried for so far:
// code queries while packages are initialized, before main can put a layer over the
// gate. Upstream keeps the set to itself (component-base/featuregate, field
// queriedFeatures), so it is read by reflection; a gate that is another type, or
// has no such field, counts as never queried. The gate must
// not be queried meanwhile.
func queried(gate featuregate.MutableVersionedFeatureGate) []featuregate.Feature {
	// The field is an atomic.Value, which holds a set in its only field.
	value := reflect.ValueOf(gate)
	for _, step := range []string{"queriedFeatures", "v"} {
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface {
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct {
			return nil
		}
		value = value.FieldByName(step)
	}
	if value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if value.Kind() != reflect.Map || value.Type().Key().Kind() != reflect.String {
		return nil
	}
	var features []featuregate.Feature
	for _, key := range value.MapKeys() {
		features = append(features, featuregate.Feature(key.String()))
	}
	return features
}
