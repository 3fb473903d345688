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
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// never is later than any schedule lasts.
const never = 1000 * time.Hour

// informer is a watch of one server. Nothing happens by itself: the schedule
// says when it takes from etcd's log, and when the handlers hear of it, which
// with a real informer is a little later.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
	handler cache.ResourceEventHandler

	kind kind
	etcd *etcd
	// next is the position in the log.
	next int
	// pending are calls of handlers.
	pending []func()
}

func newInformer(k kind, e *etcd) *informer {
	return &informer{kind: k, etcd: e, indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSyncedChecker() cache.DoneChecker { return synced{} }

// synced is done: an informer of the model has nothing to list first.
type synced struct{}

func (synced) Name() string { return "informer of the model" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return registration{}, nil
}

// SetWatchErrorHandlerWithContext takes a handler that is never called: a watch of the model
// lags, and does not fail.
func (i *informer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}

func (i *informer) GetStore() cache.Store { return i.indexer }

func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// nodeInformer is what Config.Nodes wants.
type nodeInformer struct{ *informer }

func (n nodeInformer) Informer() cache.SharedIndexInformer { return n.informer }

func (n nodeInformer) Lister() corelisters.NodeLister { return corelisters.NewNodeLister(n.indexer) }

var _ coreinformers.NodeInformer = nodeInformer{}

// behind is how many changes have not been taken.
func (i *informer) behind() int { return len(i.etcd.log[i.kind]) - i.next }

// due is when the next change has to be taken, with the delay given.
func (i *informer) due(delay time.Duration) time.Duration {
	if i.behind() == 0 {
		return never
	}
	return i.etcd.log[i.kind][i.next].at + delay
}

// take brings up to n changes to the cache.
func (i *informer) take(n int) {
	for ; n > 0 && i.behind() > 0; n-- {
		change := i.etcd.log[i.kind][i.next]
		i.next++
		i.become(change.key, change.object, change.gone, false)
	}
}

// become changes one object in the cache.
func (i *informer) become(key string, object metav1.Object, gone, tombstone bool) {
	// The cache of this test does not fail.
	old, exists, _ := i.indexer.GetByKey(key)
	switch {
	case gone && exists:
		_ = i.indexer.Delete(old)
		var last any = object
		if tombstone {
			last = cache.DeletedFinalStateUnknown{Key: key, Obj: old}
		}
		i.pending = append(i.pending, func() { i.handler.OnDelete(last) })
	case gone:
	case exists:
		_ = i.indexer.Update(object)
		i.pending = append(i.pending, func() { i.handler.OnUpdate(old, object) })
	default:
		_ = i.indexer.Add(object)
		i.pending = append(i.pending, func() { i.handler.OnAdd(object, false) })
	}
}

// tell calls the handlers.
func (i *informer) tell() {
	for len(i.pending) > 0 {
		call := i.pending[0]
		i.pending = i.pending[1:]
		call()
	}
	i.pending = nil
}

// relist replaces the cache by the state after so many changes, which may be an
// older one than what was seen: a server's cache lags behind another's.
func (i *informer) relist(changes int) {
	state := i.etcd.at(i.kind, changes)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		i.become(key, state[key], false, false)
	}
	for _, key := range slices.Sorted(slices.Values(i.indexer.ListKeys())) {
		if state[key] == nil {
			i.become(key, nil, true, true)
		}
	}
	i.next = changes
}

// newest is the position in the log that a list may begin with which shows
// everything that happened up to the time given.
func (i *informer) newest(until time.Duration) int {
	log := i.etcd.log[i.kind]
	n := len(log)
	for n > 0 && log[n-1].at > until {
		n--
	}
	return n
}

// skewed is the clock of one server: true time and a constant.
type skewed struct {
	clock.WithTicker
	c    *cluster
	skew time.Duration
}

func (s *skewed) Now() time.Time { return start.Add(s.c.now + s.skew) }

func (s *skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// NewTimer is for the finder alone: its searches are under way between two steps of a
// schedule, and no time passes meanwhile.
func (s *skewed) NewTimer(d time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(d) }

// workQueue does what client-go's does, when the schedule says so. It is safe for
// concurrent use: attempts at tasks add to it.
type workQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	limiter workqueue.TypedRateLimiter[string]
	c       *cluster

	mu sync.Mutex
	// ready and waiting are when a feature was, or is to be, looked at.
	ready, waiting map[string]time.Duration
}

func newWorkQueue(c *cluster) *workQueue {
	return &workQueue{limiter: newRateLimiter(), c: c, ready: map[string]time.Duration{}, waiting: map[string]time.Duration{}}
}

func (q *workQueue) Add(name string) { q.AddAfter(name, 0) }

func (q *workQueue) AddAfter(name string, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	times, at := q.ready, q.c.now
	if after > 0 {
		times, at = q.waiting, q.c.now+after
	}
	if old, ok := times[name]; !ok || at < old {
		times[name] = at
	}
}

func (q *workQueue) AddRateLimited(name string) { q.AddAfter(name, q.limiter.When(name)) }

func (q *workQueue) Forget(name string) { q.limiter.Forget(name) }

func (q *workQueue) Done(string) {}

// first is what is to be looked at first, and when.
func (q *workQueue) first() (name string, at time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at = never
	for _, times := range []map[string]time.Duration{q.ready, q.waiting} {
		for n, t := range times {
			if t < at || t == at && n < name {
				name, at = n, t
			}
		}
	}
	return name, at
}

// due says whether a feature is to be looked at now.
func (q *workQueue) due(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, ok := q.waiting[name]; ok && at <= q.c.now {
		return true
	}
	_, ok := q.ready[name]
	return ok
}

// get takes a feature that is due from the queue.
func (q *workQueue) get(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.ready, name)
	if at, ok := q.waiting[name]; ok && at <= q.c.now {
		delete(q.waiting, name)
	}
}
