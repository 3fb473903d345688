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

package controller

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// clearedBy returns which feature deletes the collection of a resource and what it
// waits for itself, for task.Clients.ClearedBy. Tasks of other features search the
// collection for fields, and cannot once its API was removed with that feature's gate.
// It is "" while that feature is on or about to be, since it deletes nothing then.
func (o *observer) clearedBy(resource schema.GroupResource) string {
	name := task.ClearCollection(resource).Name
	for _, feature := range slices.Sorted(maps.Keys(o.features)) {
		if !slices.Contains(o.features[feature].OnDisable.Names(), name) {
			continue
		}
		f, err := o.lister.Get(feature)
		if err != nil {
			return ""
		}
		switch status := &f.Status; {
		case status.State == v1alpha1.StateTurningOff && len(status.Tasks) > 0:
			first := status.Tasks[0]
			message := fmt.Sprintf("feature %s, which deletes them and is TurningOff at %s", feature, first.Name)
			if first.Message != "" && first.Name != name {
				message += " (" + first.Message + ")"
			}
			return message
		case status.State == v1alpha1.StateOff:
			return fmt.Sprintf("feature %s, which is Off and has them left: %s of it", feature, o.config.Settings.HowToClean)
		}
	}
	return ""
}
