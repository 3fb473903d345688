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
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// progressPeriod is the minimum interval between writes of the progress of an attempt.
const progressPeriod = 5 * time.Second

// runner runs attempts at tasks beside the queue, at most one for each feature,
// and remembers what became of the last one. It is safe for concurrent use.
type runner struct {
	namespace string
	clients   task.Clients
	clock     clock.PassiveClock
	// notify is called with a feature's name when there is news of its attempt.
	notify func(feature string, after time.Duration)

	mu       sync.Mutex
	attempts map[string]*running
	wait     sync.WaitGroup
}

type running struct {
	cancel  context.CancelFunc
	attempt transition.Attempt
}

func newRunner(namespace string, clients task.Clients, clock clock.PassiveClock, notify func(string, time.Duration)) *runner {
	return &runner{namespace: namespace, clients: clients, clock: clock, notify: notify, attempts: map[string]*running{}}
}

// attempt returns a copy of what is known of the last attempt, nil when there
// was none.
func (r *runner) attempt(feature string) *transition.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.attempts[feature]; current != nil {
		result := current.attempt
		return &result
	}
	return nil
}

// start begins an attempt at a task, ending the one of this process before it.
// Previous is how the last one ended that this process did not make.
func (r *runner) start(ctx context.Context, t task.Task, attempt task.Attempt, previous transition.Outcome) {
	ctx, cancel := context.WithCancel(ctx)
	feature, last := attempt.Feature, attempt.Last
	current := &running{cancel: cancel, attempt: transition.Attempt{
		TransitionID: attempt.TransitionID, Task: t.Name, Previous: previous, Done: last.Done, Total: last.Total, Checkpoint: last.Checkpoint,
	}}
	attempt.Report = func(p task.Progress) { r.progress(feature, current, p) }
	r.mu.Lock()
	if old := r.attempts[feature]; old != nil {
		old.cancel()
		if old.attempt.TransitionID == attempt.TransitionID && old.attempt.Task == t.Name {
			current.attempt.Previous = old.attempt.Outcome
		}
	}
	r.attempts[feature] = current
	r.mu.Unlock()
	attemptsTotal.WithLabelValues(r.namespace, t.Name).Inc()
	r.wait.Go(func() {
		defer cancel()
		begun := r.clock.Now()
		err := r.run(ctx, t, attempt)
		r.end(ctx, feature, current, begun, err)
		var blocked *task.BlockedError
		if errors.As(err, &blocked) && blocked.Until != nil && blocked.Until(ctx) == nil && ctx.Err() == nil {
			r.retry(feature, current)
		}
	})
}

// run makes one attempt within its deadline.
func (r *runner) run(ctx context.Context, t task.Task, attempt task.Attempt) error {
	ctx, cancel := limited(ctx, t, "; another attempt continues")
	defer cancel()
	return tooLate(ctx, t.Run(ctx, r.clients, attempt))
}

// limited returns a context with the deadline of a task.
func limited(ctx context.Context, t task.Task, what string) (context.Context, context.CancelFunc) {
	deadline := cmp.Or(t.Deadline, task.DefaultDeadline)
	return context.WithTimeoutCause(ctx, deadline, fmt.Errorf("not done within %s%s", deadline, what))
}

// tooLate returns an error of a task that was given a limited context. The error states
// if it ended by its deadline.
func tooLate(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// retry records that what blocked an attempt may have been resolved.
func (r *runner) retry(feature string, current *running) {
	r.mu.Lock()
	current.attempt.Retry = true
	r.mu.Unlock()
	r.notify(feature, 0)
}

func (r *runner) progress(feature string, current *running, p task.Progress) {
	r.mu.Lock()
	current.attempt.Done, current.attempt.Total = max(p.Done, 0), max(p.Total, 0)
	current.attempt.Message, current.attempt.Checkpoint = shorten(p.Message), p.Checkpoint
	if len(p.Checkpoint) > v1alpha1.MaxCheckpointLength {
		// It could not be stored. The task restarts after a crash.
		current.attempt.Checkpoint = ""
	}
	r.mu.Unlock()
	// The queue folds what is added for the same time.
	r.notify(feature, progressPeriod)
}

// maxMessage bounds the message of one attempt. Servers' answers can be long, and a
// status that is too large to be stored would stop everything.
const maxMessage = 4096

func shorten(message string) string { return phrase.Cut(message, maxMessage) }

// end records the result of an attempt, and enqueues the feature.
func (r *runner) end(ctx context.Context, feature string, current *running, begun time.Time, err error) {
	var blocked *task.BlockedError
	r.mu.Lock()
	switch {
	case err == nil:
		current.attempt.Outcome = transition.Finished
	case errors.As(err, &blocked):
		// What the error is wrapped in, or joined with, is included.
		current.attempt.Outcome, current.attempt.Message = transition.Blocked, shorten(err.Error())
	default:
		current.attempt.Outcome, current.attempt.Message = transition.Failed, shorten(err.Error())
	}
	current.attempt.Ended = r.clock.Now()
	outcome, took := current.attempt.Outcome, current.attempt.Ended.Sub(begun)
	r.mu.Unlock()
	// One that was stopped has no outcome to record.
	if ctx.Err() == nil {
		attemptSeconds.WithLabelValues(r.namespace, current.attempt.Task, string(outcome)).Observe(took.Seconds())
	}
	klog.FromContext(ctx).V(2).Info("Attempt at a task ended", "feature", feature, "task", current.attempt.Task, "outcome", outcome, "err", err)
	r.notify(feature, 0)
}

// stop ends the attempt of a feature and forgets it.
func (r *runner) stop(feature string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if current := r.attempts[feature]; current != nil {
		current.cancel()
		delete(r.attempts, feature)
	}
}

// drain waits until no attempt runs; their contexts have been canceled.
func (r *runner) drain() { r.wait.Wait() }
