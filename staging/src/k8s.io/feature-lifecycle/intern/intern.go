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

	"k8s.io/utils/lru"
)

// kept is how many different lists are known. Lists beyond that, which nobody asked
// for in a while, are held as often as they come.
const kept = 1024

// seed is one for all: hashes are compared within a process only.
var seed = maphash.MakeSeed()

// Lists knows lists of some elements. It is safe for concurrent use.
type Lists[T comparable] struct {
	// known are lists by their hash. Of those that have the same hash one is known.
	known *lru.Cache
}

// NewLists returns a Lists that knows none.
func NewLists[T comparable]() *Lists[T] { return &Lists[T]{lru.New(kept)} }

// Of returns a list that is equal to the one given: one that is known, or else that
// one itself. Nobody may change its elements any more.
func (l *Lists[T]) Of(list []T) []T {
	if len(list) == 0 {
		return list
	}
	hash := Hash(list)
	if known, ok := l.known.Get(hash); ok && slices.Equal(known.([]T), list) {
		return known.([]T)
	}
	list = slices.Clip(list)
	l.known.Add(hash, list)
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
