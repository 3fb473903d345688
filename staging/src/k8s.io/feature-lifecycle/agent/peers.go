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

package agent

import (
	"math"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/stagger"
	"k8s.io/feature-lifecycle/rollout"
)

// Peers returns how many processes got this process's value of a feature at the same
// moment: as many as FeatureValue.reportWithinSeconds is for. Without a FeatureValue these
// are, by the last counts of the server, the processes that had the other value and that a
// rollout does not leave out. Peers returns 0 unless the feature is dynamic. It is safe
// for concurrent use, and meant for ReporterConfig.Peers.
func (s *Syncer) Peers(feature string) int {
	if peers := s.peers.Load(); peers != nil {
		return (*peers)[feature]
	}
	return 0
}

// countPeers counts them by the listed Features and the chosen values, before the gate gets
// these: the reporter calls Peers at once.
func (s *Syncer) countPeers() {
	peers, counted := map[string]int{}, map[string][]v1alpha1.FeatureUse{}
	for name, feature := range s.listed {
		if feature.Status.Control != v1alpha1.ControlDynamic {
			continue
		}
		counted[name] = feature.Status.Uses
		if len(counted[name]) == 0 {
			// A transition has just started: the server counts again from zero.
			counted[name] = s.uses[name]
		}
		told, ok := s.chosen[name]
		// Whoever gets to know a moment, or that it does not count, reports that.
		moment := waits(feature) || !s.before[name].SwitchTime.IsZero()
		peers[name] = changing(feature, counted[name], told.Value, ok, moment)
	}
	for name := range s.values {
		if value := s.valueOf(name); value != nil {
			peers[name] = stagger.Count(value.ReportWithinSeconds)
		}
	}
	s.uses = counted
	s.peers.Store(&peers)
}

// waits returns true for a feature with a moment at which all switch together, whether it
// counts or not.
func waits(feature *v1alpha1.Feature) bool {
	requested, current := feature.Spec.Rollout, feature.Status.Rollout
	return feature.Status.Transition != nil && (requested != nil && requested.At != nil || current != nil && current.Observed.At != nil)
}

// changing returns for how many users a value is new. If the Feature specifies none, each
// user takes its own, which is unknown here. With a moment it is one for all.
func changing(feature *v1alpha1.Feature, counted []v1alpha1.FeatureUse, value, told, moment bool) int {
	status := &feature.Status
	// When a canary is aborted, those outside of it have the value already.
	limited := told && status.Configured != nil && value == status.Configured.Value && !rollout.Halted(status)
	if limited {
		before := rollout.Previous(status)
		limited = before == nil || *before != value
	}
	users := 0.0
	for _, use := range counted {
		switch {
		case moment:
			users += float64(use.Count)
		case told && use.Enabled != nil && *use.Enabled == value:
		case limited:
			users += float64(use.Count) * rollout.Share(feature, use.Component)
		default:
			users += float64(use.Count)
		}
	}
	return int(math.Ceil(users))
}
