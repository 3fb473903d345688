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

package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/klog/v2"
)

const (
	// attemptDeadline bounds one attempt at a task. A task that needs longer is
	// attempted again and finds less to do.
	attemptDeadline = 30 * time.Minute
	// progressPeriod is how often the progress of an attempt is written at
	// most.
	progressPeriod = 5 * time.Second
)

// runner runs attempts at tasks beside the queue, at most one for each feature,
// and remembers what became of the last one. It is safe for concurrent use.
type runner struct {
	clients task.Clients
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

func newRunner(clients task.Clients, notify func(string, time.Duration)) *runner {
	return &runner{clients: clients, notify: notify, attempts: map[string]*running{}}
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

// start begins an attempt, ending the one before it.
func (r *runner) start(ctx context.Context, feature, transitionID string, t task.Task) {
	ctx, cancel := context.WithTimeout(ctx, attemptDeadline)
	current := &running{cancel: cancel, attempt: transition.Attempt{TransitionID: transitionID, Task: t.Name}}
	r.mu.Lock()
	if old := r.attempts[feature]; old != nil {
		old.cancel()
		if old.attempt.TransitionID == transitionID && old.attempt.Task == t.Name {
			current.attempt.Previous = old.attempt.Outcome
		}
	}
	r.attempts[feature] = current
	r.mu.Unlock()
	attemptsTotal.WithLabelValues(t.Name).Inc()
	r.wait.Go(func() {
		defer cancel()
		err := t.Run(ctx, r.clients, func(p task.Progress) { r.progress(feature, current, p) })
		r.end(ctx, feature, current, err)
	})
}

func (r *runner) progress(feature string, current *running, p task.Progress) {
	r.mu.Lock()
	current.attempt.Done, current.attempt.Total, current.attempt.Message = p.Done, p.Total, p.Message
	r.mu.Unlock()
	// The queue folds what is added for the same time.
	r.notify(feature, progressPeriod)
}

func (r *runner) end(ctx context.Context, feature string, current *running, err error) {
	var blocked *task.BlockedError
	r.mu.Lock()
	switch {
	case err == nil:
		current.attempt.Outcome = transition.Finished
	case errors.As(err, &blocked):
		current.attempt.Outcome, current.attempt.Message = transition.Blocked, blocked.Message
	default:
		current.attempt.Outcome, current.attempt.Message = transition.Failed, err.Error()
	}
	outcome := current.attempt.Outcome
	r.mu.Unlock()
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

// drain waits until no attempt runs; their contexts have been cancelled.
func (r *runner) drain() { r.wait.Wait() }
