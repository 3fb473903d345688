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
	"sync"

	"k8s.io/component-base/featuregate"
)

// Snapshot is the values of all features at one moment. Code that queries more than
// once while it answers one request queries a Snapshot, so that the answers agree
// with each other although a dynamic value changes meanwhile. It is immutable,
// safe for concurrent use, and costs nothing to make. Its queries count as
// queries of the gate.
type Snapshot struct {
	gate   *Gate
	values *snapshot
}

var _ featuregate.FeatureGate = Snapshot{}

// Snapshot returns the values as they are now.
func (g *Gate) Snapshot() Snapshot { return Snapshot{g, g.values.Load()} }

// Enabled returns the value of a feature at the moment of the snapshot. It panics
// for a feature that was not known then.
func (s Snapshot) Enabled(key featuregate.Feature) bool {
	v := s.values.find(key)
	if v == nil {
		return s.values.gate.Enabled(key)
	}
	if !v.forwarded.Load() {
		s.gate.forwardQuery(key, v)
	}
	return v.enabled
}

// KnownFeatures implements FeatureGate.
func (s Snapshot) KnownFeatures() []string { return s.values.gate.KnownFeatures() }

// Dependencies implements FeatureGate.
func (s Snapshot) Dependencies() map[featuregate.Feature][]featuregate.Feature {
	return s.values.gate.Dependencies()
}

// DeepCopy returns a gate with the values of the snapshot and without the layer.
func (s Snapshot) DeepCopy() featuregate.MutableVersionedFeatureGate {
	return s.values.gate.DeepCopy()
}

// Validate implements FeatureGate.
func (s Snapshot) Validate() []error { return s.values.gate.Validate() }

// subscription is one call of OnChange.
type subscription struct {
	features []featuregate.Feature
	call     func(Snapshot)

	mu sync.Mutex
	// queue has the changes that f has not received yet, oldest first.
	queue []Snapshot
	// notifying is true while a goroutine works on the queue.
	notifying, closed bool
}

// OnChange calls f after each change of one of the features, or of any if none is
// named, with the values right after it. Calls come in the order of the changes,
// never two at a time, and from a goroutine of their own, so that f may take its
// time and may use the gate. Values that are there already cause no call.
// After unsubscribe returns no call begins; one may still be running.
func (g *Gate) OnChange(f func(Snapshot), features ...featuregate.Feature) (unsubscribe func()) {
	s := &subscription{features: features, call: f}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.subscriptions[s] = true
	return func() {
		g.mu.Lock()
		delete(g.subscriptions, s)
		g.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed, s.queue = true, nil
	}
}

func (g *Gate) notifyLocked(values *snapshot, changed []featuregate.Feature) {
	for s := range g.subscriptions {
		if has(s.features, changed) {
			s.add(Snapshot{g, values})
		}
	}
}

func (s *subscription) add(change Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.queue = append(s.queue, change)
	if !s.notifying {
		s.notifying = true
		go s.notify()
	}
}

// notify calls f until no change is left in the queue. A goroutine lives only as long, so
// that a subscription that is forgotten costs none.
func (s *subscription) notify() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.notifying = false
			s.mu.Unlock()
			return
		}
		change := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.call(change)
	}
}
