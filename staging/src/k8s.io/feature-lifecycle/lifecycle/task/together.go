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

package task

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FindTogether calls finders concurrently, with clients that read a collection once
// for all who want it at the same time, and returns when all have ended. Many
// features look at the same few collections: reading each on its own took a
// kube-apiserver with 10,000 StatefulSets half a minute of processor time after its
// start. Each finder still sees every object; what one does wrong does not concern
// the others. Finders must not wait for each other.
func FindTogether(clients Clients, finders []func(Clients)) {
	shared := &sharedReads{clients: clients, running: len(finders), waiting: map[schema.GroupVersionResource][]*sharedRead{}}
	clients.shared = shared
	var finding sync.WaitGroup
	for _, find := range finders {
		finding.Go(func() {
			// Also one that panics: the others would wait for ever.
			defer shared.leave()
			find(clients)
		})
	}
	finding.Wait()
}

// sharedReads are the reads of finders that run together. A collection is read when
// nobody goes on any more without one.
type sharedReads struct {
	clients Clients

	mu sync.Mutex
	// running is how many finders neither have ended nor wait for a collection.
	running int
	waiting map[schema.GroupVersionResource][]*sharedRead
}

// sharedRead is what one finder wants of a collection.
type sharedRead struct {
	ctx   context.Context
	visit func(*unstructured.UnstructuredList) error
	// err is the visitor's own, with which it does not want to see more.
	err error
	// done has room for one error.
	done chan error
}

// read is eachPage from the beginning, together with others.
func (s *sharedReads) read(ctx context.Context, resource schema.GroupVersionResource, visit func(*unstructured.UnstructuredList) error) error {
	r := &sharedRead{ctx: ctx, visit: visit, done: make(chan error, 1)}
	s.mu.Lock()
	s.waiting[resource] = append(s.waiting[resource], r)
	s.mu.Unlock()
	s.leave()
	return <-r.done
}

// leave takes one from those that run. The last one reads for all others.
func (s *sharedReads) leave() {
	s.mu.Lock()
	s.running--
	if s.running > 0 || len(s.waiting) == 0 {
		s.mu.Unlock()
		return
	}
	resource := s.mostWantedLocked()
	readers := s.waiting[resource]
	delete(s.waiting, resource)
	s.running = len(readers)
	s.mu.Unlock()

	clients := s.clients
	clients.shared = nil
	err := eachPage(readers[0].ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error { return visitAll(readers, page) })
	for _, r := range readers {
		if r.err != nil {
			r.done <- r.err
		} else {
			r.done <- err
		}
	}
}

// mostWantedLocked is the collection that most finders wait for, so that it need not
// be read again for those that come to it later.
func (s *sharedReads) mostWantedLocked() schema.GroupVersionResource {
	var most schema.GroupVersionResource
	for resource, readers := range s.waiting {
		if c := cmp.Compare(len(readers), len(s.waiting[most])); c > 0 || c == 0 && resource.String() < most.String() {
			most = resource
		}
	}
	return most
}

var errNobodyReads = errors.New("nobody wants to see more")

func visitAll(readers []*sharedRead, page *unstructured.UnstructuredList) error {
	left := errNobodyReads
	for _, r := range readers {
		if r.err == nil {
			r.err = r.visit(page)
		}
		if r.err == nil {
			left = nil
		}
	}
	return left
}
