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

package versionskew

import v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

// Value returns the value that the feature has in the other version if nothing is
// changed, and its source there. An explicit setting of servers stays where the gate
// exists. A value requested in the API stays where a server reads it. Otherwise the
// default of that version applies.
func (q Input) Value() v1alpha1.FeatureConfiguration {
	byDefault := v1alpha1.FeatureConfiguration{Value: q.Target.Default, Source: v1alpha1.SourceDefault}
	if !q.Target.Known {
		// A gate that is generally available, or locked on, is removed when its feature can no
		// longer be turned off.
		byDefault.Value = !q.Down && q.Current.Default && (q.Current.Stage == v1alpha1.StageGA || q.Current.Locked)
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
		// A binary of a lower version may not read spec.enabled. A request that was withdrawn
		// while it waits leaves the default.
		if q.withdrawn() {
			return byDefault
		}
		return *configured
	case configured.Source == v1alpha1.SourceCommandLine && q.Current.Stage == q.Target.Stage:
		// AllAlpha or AllBeta set it, since there is no explicit setting. They apply there
		// too: they are for a stage.
		return v1alpha1.FeatureConfiguration{Value: configured.Value, Source: v1alpha1.SourceCommandLine}
	default:
		return byDefault
	}
}

// withdrawn returns true for a request that was removed, while the answer to that is
// postponed.
func (q Input) withdrawn() bool {
	return q.Feature.Status.Control == v1alpha1.ControlDynamic && q.Feature.Spec.Enabled == nil
}

// Configured returns the value that a feature is to have in the version that the
// cluster has; nil when that is unknown. A value requested in the API counts also while
// the answer in status.configured is postponed, as by a pause or during an upgrade
// (package transition). The servers' own value after a withdrawn request is known only
// with the answer.
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
