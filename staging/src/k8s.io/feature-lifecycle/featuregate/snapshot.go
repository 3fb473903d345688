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
	"slices"
	"sync/atomic"

	"k8s.io/component-base/featuregate"
)

// snapshot has the value of every known feature. It is not changed once it can
// be seen; the flags in its values are. It is a hash table of its own since
// Enabled is called some hundred times for one request, and hashing the whole
// name is most of what a lookup in a map costs.
type snapshot struct {
	// slots is at least four times as long as there are features, a power of
	// two. A value is in the slot of its key or in the first free one after it.
	slots []*value
	// gate is the copy of the wrapped gate that the values were read from, with
	// the values from outside set on it. It is not changed.
	gate featuregate.MutableVersionedFeatureGate
	// overlaid is true when there are such values.
	overlaid bool
}

type value struct {
	key     featuregate.Feature
	enabled bool
	// queried is shared by all snapshots: it survives mutations.
	queried *atomic.Bool
	// forwarded is true once the wrapped gate was queried, too, since the snapshot was
	// made: it warns when a version is set that changes a value already queried.
	forwarded atomic.Bool
}

// newSnapshot makes an empty one for so many features.
func newSnapshot(features int) *snapshot {
	size := 16
	for size < 4*features {
		size *= 2
	}
	return &snapshot{slots: make([]*value, size)}
}

// slot is where to look for a feature first. Five properties of a name tell
// nearly all of Kubernetes' some 240 apart.
func (s *snapshot) slot(key featuregate.Feature) int {
	n := len(key)
	if n == 0 {
		return 0
	}
	bits := uint64(key[0]) | uint64(key[n/4])<<8 | uint64(key[n/2])<<16 | uint64(key[n-1])<<24 | uint64(n)<<32
	// Fibonacci hashing: the high bits of the product depend on all of them.
	return int(bits*0x9E3779B97F4A7C15>>40) & (len(s.slots) - 1)
}

// find returns the value of a feature, nil when it is not known. A nil snapshot
// knows none.
func (s *snapshot) find(key featuregate.Feature) *value {
	if s == nil {
		return nil
	}
	for i := s.slot(key); ; i = (i + 1) & (len(s.slots) - 1) {
		v := s.slots[i]
		if v == nil || v.key == key {
			return v
		}
	}
}

// add puts in a feature that is not there yet.
func (s *snapshot) add(v *value) {
	i := s.slot(v.key)
	for s.slots[i] != nil {
		i = (i + 1) & (len(s.slots) - 1)
	}
	s.slots[i] = v
}

// changed are the features that have another value than they had before, sorted.
func (s *snapshot) changed(before *snapshot) []featuregate.Feature {
	var changed []featuregate.Feature
	for _, v := range s.slots {
		if v == nil {
			continue
		}
		if old := before.find(v.key); old != nil && old.enabled != v.enabled {
			changed = append(changed, v.key)
		}
	}
	slices.Sort(changed)
	return changed
}
