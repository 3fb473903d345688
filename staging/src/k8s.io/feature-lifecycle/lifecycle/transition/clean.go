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

package transition

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// MayClean returns why a transition that removes leftovers must not start now, nil when
// it may (S4). Whether there are leftovers does not matter.
func MayClean(feature *v1alpha1.Feature, view View) error {
	switch {
	case len(view.Declared.OnDisable) == 0:
		return errors.New("the feature declares nothing that could be removed")
	case !view.Declared.Removes:
		return errors.New("nothing may remove from live objects what the feature leaves; delete or replace those that the condition Clean names")
	}
	if err := Cleanable(feature); err != nil {
		return err
	}
	config := configurationOf(feature, view)
	_, mixed := clusterVersion(view.Servers)
	switch {
	case !config.agreed:
		return errors.New(orElse(config.message, reportAwaited))
	case config.value.Value:
		return errors.New("the configured value is on; the feature is about to be turned on")
	case mixed:
		return errors.New("live servers have different effective versions")
	}
	if clean := meta.FindStatusCondition(feature.Status.Conditions, v1alpha1.ConditionClean); clean != nil && clean.Reason == v1alpha1.ReasonMisdeclared {
		return errors.New(clean.Message)
	}
	return nil
}

// Cleanable returns why the state or the spec of a feature keep it from being cleaned,
// nil if neither does. It is a part of MayClean, for callers that have the feature
// alone.
func Cleanable(feature *v1alpha1.Feature) error {
	switch {
	case feature.Status.State == "":
		return errors.New("the feature has no state yet; try again once it has been adopted")
	case feature.Status.State != v1alpha1.StateOff:
		return fmt.Errorf("the feature is %s; only a feature that is Off can be cleaned, turning it off cleans by itself", feature.Status.State)
	case feature.Spec.Paused:
		return errors.New("spec.paused holds the feature; set it to false first")
	default:
		return nil
	}
}
