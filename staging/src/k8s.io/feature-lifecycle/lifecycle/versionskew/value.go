/*
Copyright 2026 The Kubernetes Authors.

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

package versionskew

import v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

// Value is the value that the feature has in the other version if nobody changes
// anything, and what decides it there: what servers set explicitly stays where the
// gate exists, what the API asked for stays where somebody reads it, and
// otherwise it is the default of that version.
func (q Input) Value() v1alpha1.FeatureConfiguration {
	byDefault := v1alpha1.FeatureConfiguration{Value: q.Target.Default, Source: v1alpha1.SourceDefault}
	if !q.Target.Known {
		// A GA gate is removed when its feature can no longer be turned off.
		byDefault.Value = !q.Down && q.Current.Stage == v1alpha1.StageGA && q.Current.Default
	}
	if !q.Target.Known || q.Target.Locked {
		return byDefault
	}
	for _, s := range q.Explicit {
		if s.Server {
			return v1alpha1.FeatureConfiguration{Value: s.Enabled, Source: v1alpha1.SourceCommandLine}
		}
	}
	configured := Configured(q.Feature)
	switch {
	case configured == nil:
		return byDefault
	case configured.Source == v1alpha1.SourceAPI && (!q.Down || q.Emulated):
		// A binary of a lower version may have nobody who reads spec.enabled. A
		// request that was taken back while it waits leaves the default.
		if q.withdrawn() {
			return byDefault
		}
		return *configured
	case configured.Source == v1alpha1.SourceCommandLine && q.Current.Stage == q.Target.Stage:
		// AllAlpha or AllBeta set it, since nobody sets it explicitly, and do so
		// there: they are for a stage.
		return v1alpha1.FeatureConfiguration{Value: configured.Value, Source: v1alpha1.SourceCommandLine}
	default:
		return byDefault
	}
}

// withdrawn is true for a request that is gone, while the answer to that is
// postponed.
func (q Input) withdrawn() bool {
	return q.Feature.Status.Control == v1alpha1.ControlDynamic && q.Feature.Spec.Enabled == nil
}

// Configured is the value that a feature is to have in the version that the
// cluster has, nil when nobody knows: what the API asks for also while the answer
// in status.configured is postponed, as by a pause or in the middle of an upgrade
// (package transition). Which value servers have by themselves, once a request is
// taken back, is known with the answer only.
func Configured(feature *v1alpha1.Feature) *v1alpha1.FeatureConfiguration {
	if requested := feature.Spec.Enabled; requested != nil && feature.Status.Control == v1alpha1.ControlDynamic {
		return &v1alpha1.FeatureConfiguration{Value: *requested, Source: v1alpha1.SourceAPI}
	}
	answered := feature.Status.Configured
	if answered == nil {
		return nil
	}
	return &v1alpha1.FeatureConfiguration{Value: answered.Value, Source: answered.Source}
}
