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
	"maps"
	"sync"
	"sync/atomic"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// shownFeatures holds what metrics show of the features that this server leads, as last
// stored. Nothing is decided by it. It is safe for concurrent use.
type shownFeatures struct {
	// running is true while the server flow reconciles features.
	running atomic.Bool

	mu       sync.Mutex
	features map[string]shownFeature
}

// shownFeature is a feature as it was stored. It is not changed.
type shownFeature struct {
	status *v1alpha1.FeatureStatus
	// leftovers are what was found of a feature that is off.
	leftovers []transition.Finding
}

func newShownFeatures() *shownFeatures { return &shownFeatures{features: map[string]shownFeature{}} }

// set records a feature as it was stored, and what was found of it if it is off; nil
// means that there was no search.
func (s *shownFeatures) set(name string, status *v1alpha1.FeatureStatus, found *transition.Leftovers) {
	shown := shownFeature{status: status}
	if found != nil && status.State == v1alpha1.StateOff {
		shown.leftovers = found.Resources
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.features[name] = shown
}

// forget shows a feature no longer.
func (s *shownFeatures) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.features, name)
}

// all returns what is shown of each feature.
func (s *shownFeatures) all() map[string]shownFeature {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.features)
}
