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

// Package intern makes lists that are equal one. Of the reports of thousands of
// processes most say the same: who holds them all, kube-apiserver in its watch cache
// and the server flow in its informers, then holds each list once.
package intern

import (
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/utils/lru"
)

// Lists are known after those who asked for them are gone, so what is known is bounded.
// Lists beyond that, which nobody asked for in a while, are held as often as they come.
const (
	// kept is how many different lists are known at most.
	kept = 1024
	// elements is how many elements these have together at most. One process that
	// says something else each time would else make the largest lists stay.
	elements = 50_000
	// largest is how many elements a list may have to be known at all: one that has
	// more would drive out too many others.
	largest = elements / 25
)

// seed is one for all: hashes are compared within a process only.
var seed = maphash.MakeSeed()

// Lists knows lists of some elements. It is safe for concurrent use.
type Lists[T comparable] struct {
	mu sync.Mutex
	// known are lists by their hash. Of those that have the same hash one is known.
	known *lru.Cache
	// held is how many elements the known lists have together.
	held int
}

// NewLists returns a Lists that knows none.
func NewLists[T comparable]() *Lists[T] {
	l := &Lists[T]{}
	l.known = lru.NewWithEvictionFunc(kept, func(_ lru.Key, list any) { l.held -= len(list.([]T)) })
	return l
}

// Of returns a list that is equal to the one given: one that is known, or else that
// one itself. Nobody may change its elements any more.
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

// Hash is the same for equal lists, in one process.
func Hash[T comparable](list []T) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range list {
		maphash.WriteComparable(&h, list[i])
	}
	return h.Sum64()
}
