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

package task

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// patience is the time that reads wait for a finder that neither ends nor reads. One that
// inspects something else, perhaps outside the cluster, may take as long as its context
// allows.
const patience = 2 * time.Minute

// FindShared calls finders concurrently, with clients that read a collection once for
// all finders that request it at the same time, and returns when all have ended. Many
// features inspect the same few collections: reading each on its own took a
// kube-apiserver with 10,000 StatefulSets half a minute of processor time after its
// start.
//
// Each finder still sees every object. One that stops, or whose context ends, does not
// stop others; collections are read with ctx. While a finder neither ends nor reads,
// others wait for it for up to two minutes, but not while it walks through several pages
// of Clients.Storage. Finders must end with their contexts, and must not wait for each
// other. A panic in one ends the process.
func FindShared(ctx context.Context, clients Clients, finders []func(Clients)) {
	shared := &sharedReads{ctx: ctx, clients: clients, waiting: map[collection][]*sharedRead{}}
	for range finders {
		shared.finders = append(shared.finders, &sharedFinder{all: shared, since: time.Now()})
	}
	shared.again = time.AfterFunc(patience, shared.read)
	defer shared.again.Stop()
	var finding sync.WaitGroup
	for i, find := range finders {
		finding.Go(func() {
			one := shared.finders[i]
			// Also one that ends its goroutine: the others would wait for ever.
			defer one.end()
			own := clients
			own.shared = one
			if own.Storage != nil {
				own.Storage = sharedStorage{own.Storage, one}
			}
			find(own)
		})
	}
	finding.Wait()
	shared.reading.Wait()
}

// sharedReads are the reads of finders that run together. A collection is read when no
// finder can proceed without one, except for those that have been idle for too long.
type sharedReads struct {
	ctx     context.Context
	clients Clients
	finders []*sharedFinder
	reading sync.WaitGroup

	mu sync.Mutex
	// again checks whether to read when enough time has passed.
	again   *time.Timer
	waiting map[collection][]*sharedRead
}

// sharedFinder is one of the finders. Work that it started may continue after its end,
// and reads for itself from then on.
type sharedFinder struct {
	all *sharedReads
	// pending is the number of its reads that have not begun.
	pending int
	// walking is the number of its reads of storage that hold up no others.
	walking int
	ended   bool
	// since is the time at which it, or a read of it, began or ended last, or it saw a page.
	since time.Time
}

// runs returns true while it neither has ended, nor waits for a collection, nor walks
// through storage.
func (f *sharedFinder) runs() bool { return !f.ended && f.pending == 0 && f.walking == 0 }

// sharedRead is what one finder reads of a collection. Its visitor is called where it
// waits, so that the visitor's effects stay there.
type sharedRead struct {
	finder *sharedFinder
	ctx    context.Context
	// pages are sent to it one by one; it reports when it has processed one. Once gone is
	// closed it wants no more.
	pages  chan *unstructured.UnstructuredList
	looked chan struct{}
	gone   chan struct{}
	// search is what it looks for in stored objects, nil for one that gets pages, and matched
	// what was found once done is sent to.
	search  *FieldSearch
	matched matched
	// done has room for how the reading ended.
	done chan error
	// group are those for which the reading is, nil before it begins.
	group *readGroup
}

// readGroup are those for which a collection is being read.
type readGroup struct {
	left int
	// cancel ends the reading when none is left.
	cancel context.CancelFunc
}

// alone are clients that read a collection for one.
func (s *sharedReads) alone(what collection) Clients {
	clients := s.clients
	clients.shared = nil
	return clients.limited(what.namespace)
}

// end records that a finder has ended.
func (f *sharedFinder) end() {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.ended = true
	f.all.readLocked()
}

// sharedStorage is the storage that a finder reads. Each finder reads it for itself. While
// it reads the first page, others wait for it: most such collections have no more, and
// what it reads of the API afterwards is read together. From the second page on they do
// not: a walk through all Pods takes longer than what is saved.
type sharedStorage struct {
	Storage
	finder *sharedFinder
}

func (s sharedStorage) List(ctx context.Context, resource schema.GroupResource, limit int64, from string) ([]StoredObject, string, error) {
	defer s.finder.walk(from != "")()
	return s.Storage.List(ctx, resource, limit, from)
}

func (s sharedStorage) ListHolding(ctx context.Context, field RemovedField, limit int64, from string) ([]StoredObject, string, error) {
	defer s.finder.walk(from != "")()
	return s.Storage.ListHolding(ctx, field, limit, from)
}

// walk records that a page of storage is being read, until the function that it returns is
// called. Others do not wait for a page that is not the first.
func (f *sharedFinder) walk(later bool) (end func()) {
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	f.since = time.Now()
	if !later {
		return func() { f.all.sawPage(f) }
	}
	f.walking++
	f.all.readLocked()
	return func() {
		f.all.mu.Lock()
		defer f.all.mu.Unlock()
		f.walking--
		f.since = time.Now()
	}
}

// read is forEachPage from the beginning, together with others.
func (f *sharedFinder) read(ctx context.Context, what collection, visit func(*unstructured.UnstructuredList) error) error {
	r := &sharedRead{
		finder: f, ctx: ctx,
		pages: make(chan *unstructured.UnstructuredList), looked: make(chan struct{}), gone: make(chan struct{}), done: make(chan error, 1),
	}
	f.all.mu.Lock()
	if f.ended {
		f.all.mu.Unlock()
		return forEachPage(ctx, f.all.alone(what), what.GroupVersionResource, "", visit)
	}
	f.all.waiting[what] = append(f.all.waiting[what], r)
	f.pending++
	f.all.readLocked()
	f.all.mu.Unlock()
	defer f.all.leave(what, r)
	for {
		// When both are so, select may take a page before it sees that the context has
		// ended, and so on to the last one: as if it had not.
		if err := ctx.Err(); err != nil {
			return err
		}
		select {
		case page := <-r.pages:
			f.all.sawPage(f)
			if err := visit(page); err != nil {
				return err
			}
			select {
			case r.looked <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
		case err := <-r.done:
			// It may have been skipped, which the others' end does not show.
			return cmp.Or(ctx.Err(), err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// search is searchStored, together with others.
func (f *sharedFinder) search(ctx context.Context, what collection, search FieldSearch) (*matched, error) {
	what.stored = true
	r := &sharedRead{finder: f, ctx: ctx, search: &search, gone: make(chan struct{}), done: make(chan error, 1)}
	f.all.mu.Lock()
	if f.ended {
		f.all.mu.Unlock()
		return searchStored(ctx, f.all.alone(what), what.GroupVersionResource, search)
	}
	f.all.waiting[what] = append(f.all.waiting[what], r)
	f.pending++
	f.all.readLocked()
	f.all.mu.Unlock()
	defer f.all.leave(what, r)
	select {
	case err := <-r.done:
		return &r.matched, cmp.Or(ctx.Err(), err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// searchAll searches the stored objects of a collection for all readers.
func (s *sharedReads) searchAll(ctx context.Context, what collection, readers []*sharedRead) {
	searches := make([]FieldSearch, len(readers))
	results := make([]matched, len(readers))
	for i, r := range readers {
		searches[i] = *r.search
	}
	read, err := s.clients.Editor.Search(ctx, what.GroupVersionResource, what.namespace, searches, func(i int, found FoundObject) { results[i].addStored(found) })
	for i, r := range readers {
		// A reader that has left reads it no more.
		r.matched = results[i]
		r.matched.read = read
		r.done <- err
	}
}

// leave records that a reader wants to see no more of a collection.
func (s *sharedReads) leave(what collection, r *sharedRead) {
	close(r.gone)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.finder.since = time.Now()
	if r.group != nil {
		if r.group.left--; r.group.left == 0 {
			r.group.cancel()
		}
		return
	}
	// It proceeds without having seen anything.
	s.waiting[what] = slices.DeleteFunc(s.waiting[what], func(other *sharedRead) bool { return other == r })
	if len(s.waiting[what]) == 0 {
		delete(s.waiting, what)
	}
	r.finder.pending--
}

// read is readLocked, some time later.
func (s *sharedReads) read() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readLocked()
}

// readLocked reads the collection with most waiters while no finder proceeds without.
func (s *sharedReads) readLocked() {
	for len(s.waiting) > 0 {
		if left := s.patienceLocked(); left > 0 {
			s.again.Reset(left)
			return
		}
		s.beginLocked(s.mostWantedLocked())
	}
}

// patienceLocked returns for how long still running finders may request what others
// wait for, 0 when none has made progress lately.
func (s *sharedReads) patienceLocked() (left time.Duration) {
	for _, f := range s.finders {
		if f.runs() {
			left = max(left, patience-time.Since(f.since))
		}
	}
	return left
}

// sawPage records that a finder makes progress.
func (s *sharedReads) sawPage(f *sharedFinder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.since = time.Now()
}

// beginLocked begins to read a collection for all that wait for it.
func (s *sharedReads) beginLocked(what collection) {
	readers := s.waiting[what]
	delete(s.waiting, what)
	ctx, cancel := context.WithCancel(s.ctx)
	group := &readGroup{left: len(readers), cancel: cancel}
	for _, r := range readers {
		r.group = group
		// While it is read it holds up others: it may want the next one, too.
		r.finder.pending--
		r.finder.since = time.Now()
	}
	s.reading.Go(func() {
		defer cancel()
		if what.stored {
			s.searchAll(ctx, what, readers)
			return
		}
		err := forEachPage(ctx, s.alone(what), what.GroupVersionResource, "", func(page *unstructured.UnstructuredList) error { return visitAll(readers, page) })
		for _, r := range readers {
			r.done <- err
		}
	})
}

// mostWantedLocked returns the collection that most finders wait for, so that it need
// not be read again for those that request it later.
func (s *sharedReads) mostWantedLocked() collection {
	var most collection
	for what, readers := range s.waiting {
		if c := cmp.Compare(len(readers), len(s.waiting[most])); c > 0 || c == 0 && what.String() < most.String() {
			most = what
		}
	}
	return most
}

var errNoReader = errors.New("no reader is left")

// visitAll gives a page to one after the other.
func visitAll(readers []*sharedRead, page *unstructured.UnstructuredList) error {
	left := errNoReader
	for _, r := range readers {
		select {
		case r.pages <- page:
		case <-r.ctx.Done():
			continue
		case <-r.gone:
			continue
		}
		select {
		case <-r.looked:
			left = nil
		case <-r.ctx.Done():
		case <-r.gone:
		}
	}
	return left
}
