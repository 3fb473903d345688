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

package intern

import (
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/utils/lru"
)

// Lists stay known after their users are gone, so what is known is bounded. The least
// recently used lists are forgotten, and then held as often as they come.
const (
	// kept is the largest number of different known lists.
	kept = 1024
	// elements is the largest number of elements that they have together. Without it, a
	// process that reports something else each time would make the longest lists stay.
	elements = 50_000
	// largest is the largest number of elements of a known list: a longer one would evict
	// too many others.
	largest = elements / 25
)

// seed is shared by all: hashes are compared within a process only.
var seed = maphash.MakeSeed()

// Lists knows lists of one type. It is safe for concurrent use.
type Lists[T comparable] struct {
	mu sync.Mutex
	// known are lists by their hash. Only one list of each hash is known.
	known *lru.Cache
	// held is the number of elements that the known lists have together.
	held int
}

// NewLists returns Lists that know none.
func NewLists[T comparable]() *Lists[T] {
	l := &Lists[T]{}
	l.known = lru.NewWithEvictionFunc(kept, func(_ lru.Key, list any) { l.held -= len(list.([]T)) })
	return l
}

// Of returns a list that is equal to the given one: a known list, or else the given one
// itself. The elements of both must not change any more.
func (l *Lists[T]) Of(list []T) []T {
	if len(list) == 0 {
		return list
	}
	list = slices.Clip(list)
	if len(list) > largest {
		return list
	}
	hash := Hash(list)
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.known.Get(hash); ok {
		if slices.Equal(known.([]T), list) {
			return known.([]T)
		}
		l.known.Remove(hash)
	}
	l.known.Add(hash, list)
	for l.held += len(list); l.held > elements; {
		l.known.RemoveOldest()
	}
	return list
}

// Hash returns the same value for equal lists, within one process.
func Hash[T comparable](list []T) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range list {
		maphash.WriteComparable(&h, list[i])
	}
	return h.Sum64()
}
