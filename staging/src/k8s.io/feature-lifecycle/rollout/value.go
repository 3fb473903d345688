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

package rollout

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// ValueOf returns the FeatureValue that a Feature specifies, nil for none. Each instance
// takes from it what it takes from the Feature (Choose), at any moment. ReportWithinSeconds
// is not set: it depends on who takes the value. No clock is read: servers whose clocks
// differ publish the same.
//
// Known is false while the server has not observed the spec. Instances keep what they
// hold until then, so the stored FeatureValue has to stay as it is.
//
// The result is the same for all that does not change what instances take, such as the
// end of a transition, counts, and the attempts of a rollout.
func ValueOf(feature *v1alpha1.Feature) (value *v1alpha1.FeatureValue, known bool) {
	status := &feature.Status
	dynamic := status.Control == v1alpha1.ControlDynamic
	if (!dynamic && status.Control != v1alpha1.ControlCentral) || status.Configured == nil {
		return nil, true
	}
	value = &v1alpha1.FeatureValue{
		ObjectMeta:     metav1.ObjectMeta{Namespace: feature.Namespace, Name: feature.Name},
		Control:        status.Control,
		Value:          status.Configured.Value,
		FeatureVersion: feature.ResourceVersion,
	}
	before := Previous(status)
	switch limit, at, known := limits(feature); {
	case Halted(status):
		// Previous knows it: it is the opposite of the canary's value.
		value.Value = !value.Value
	case !known:
		return nil, false
	case Limits(limit) && (before == nil || *before != value.Value):
		value.Rollout = &v1alpha1.FeatureRollout{Components: slices.Clone(limit.Components)}
		if limit.Percent != nil {
			value.Rollout.Percent = ptr.To(*limit.Percent)
		}
		value.Rollout.At = at.DeepCopy()
		if before != nil {
			value.Previous = ptr.To(*before)
		}
	}
	return value, true
}

// SameValue returns true if each instance takes the same from two FeatureValues of one
// Feature. The versions that they were derived from do not count.
func SameValue(a, b *v1alpha1.FeatureValue) bool {
	return a.Control == b.Control && a.Value == b.Value && ptr.Equal(a.Previous, b.Previous) && sameRollout(a.Rollout, b.Rollout)
}

func sameRollout(a, b *v1alpha1.FeatureRollout) bool {
	if a == nil || b == nil {
		return a == b
	}
	return ptr.Equal(a.Percent, b.Percent) && slices.Equal(a.Components, b.Components) && a.At.Equal(b.At)
}

// ChooseValue returns what one instance takes from a FeatureValue at a moment.
func ChooseValue(value *v1alpha1.FeatureValue, instance Instance, now time.Time) Choice {
	dynamic := value.Control == v1alpha1.ControlDynamic
	if !dynamic && value.Control != v1alpha1.ControlCentral {
		return Choice{}
	}
	var at *metav1.Time
	if value.Rollout != nil {
		at = value.Rollout.At
	}
	return choose(value.Rollout, at, value.Name, instance, value.Value, value.Previous, dynamic, now)
}
