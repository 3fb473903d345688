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

package values

import (
	"math"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/rollout"
)

// Peers is how many processes got the value of a feature that this one has at the same
// moment as it: by what the server counted last, those that had the other one and that
// a rollout does not leave out. It is 0 unless the feature is dynamic. It is safe for
// concurrent use. A reporter of this process takes it (report.Config.Peers).
func (f *Follower) Peers(feature string) int {
	if peers := f.peers.Load(); peers != nil {
		return (*peers)[feature]
	}
	return 0
}

// countPeers counts them by what was listed and chosen, before the gate gets it: the
// reporter asks at once.
func (f *Follower) countPeers() {
	peers, counted := map[string]int{}, map[string][]v1alpha1.FeatureUse{}
	for name, feature := range f.listed {
		if feature.Status.Control != v1alpha1.ControlDynamic {
			continue
		}
		counted[name] = feature.Status.Uses
		if len(counted[name]) == 0 {
			// A transition has just begun: the server counts anew.
			counted[name] = f.uses[name]
		}
		told, ok := f.chosen[name]
		peers[name] = changing(feature, counted[name], told.Value, ok)
	}
	f.uses = counted
	f.peers.Store(&peers)
}

// changing is how many users a value is new for. Without one that they are told each
// takes its own, which nobody knows.
func changing(feature *v1alpha1.Feature, counted []v1alpha1.FeatureUse, value, told bool) int {
	status := &feature.Status
	// When a canary is called off those outside of it have the value already.
	limited := told && status.Configured != nil && value == status.Configured.Value && !rollout.Halted(status)
	if limited {
		before := rollout.Previous(status)
		limited = before == nil || *before != value
	}
	users := 0.0
	for _, use := range counted {
		switch {
		case told && use.Enabled != nil && *use.Enabled == value:
		case limited:
			users += float64(use.Count) * rollout.Share(feature, use.Component)
		default:
			users += float64(use.Count)
		}
	}
	return int(math.Ceil(users))
}
