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
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// featureQueue is the queue of features to reconcile. It batches changes that arrive
// together. It is safe for concurrent use.
type featureQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	batches *batches
	clock   clock.WithTicker
}

// newRateLimiter returns the backoff of features that failed to reconcile.
func newRateLimiter() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Minute)
}

// addNow enqueues features at once.
func (q *featureQueue) addNow(names ...string) {
	for _, name := range names {
		q.Add(name)
	}
}

// addBatched enqueues features a little later. Thousands of reports may come before
// that, each with the same features. The last one that is expected enqueues them at once.
func (q *featureQueue) addBatched(names ...string) {
	if len(names) == 0 {
		return
	}
	now := q.clock.Now()
	for _, name := range names {
		if after, first := q.batches.add(name, now); first {
			q.addAfter(name, after)
		}
	}
}

// addAfter enqueues a feature after a time, at once if it is not positive.
func (q *featureQueue) addAfter(name string, after time.Duration) {
	if after <= 0 {
		q.Add(name)
		return
	}
	q.AddAfter(name, after)
}

// addDue enqueues a feature when something is due, and later while very many
// reports arrive, of which each may be due at another time.
func (q *featureQueue) addDue(name string, after time.Duration) {
	q.AddAfter(name, max(after, q.batches.least(name)))
}

// handle reconciles a feature that was taken out of the queue, and puts it back if that
// fails. A change during the reconciliation enqueues the feature again.
func (q *featureQueue) handle(name string, reconcile func() error) error {
	defer q.Done(name)
	q.batches.taken(name, q.clock.Now())
	if err := reconcile(); err != nil {
		q.AddRateLimited(name)
		return err
	}
	q.Forget(name)
	return nil
}

// flushQuiet enqueues features whose reports are batched for long as soon as no more
// arrive, until the context ends.
func (q *featureQueue) flushQuiet(ctx context.Context) {
	timer := q.clock.NewTimer(quietAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.batches.putOff:
		case <-timer.C():
		}
		names, next := q.batches.quiet(q.clock.Now())
		q.addNow(names...)
		if timer.Stop(); next > 0 {
			timer.Reset(next)
		}
	}
}

// drain shuts the queue down and takes out what is left, so that the metrics of the
// queue that replaces it under the same name begin at 0.
func (q *featureQueue) drain() {
	q.ShutDown()
	for name, quit := q.Get(); !quit; name, quit = q.Get() {
		q.Done(name)
	}
}
