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

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
)

const (
	// maxStartBackoff is the longest pause while Load delays the process.
	maxStartBackoff = 5 * time.Second
	// startThrottleBackoff is the first pause after a server throttled the process. A
	// process without values should not wait as long as others can
	// (backoff.ThrottleWindow).
	startThrottleBackoff = 4 * time.Second
	// attemptTimeout bounds one list while Load delays the process. It equals the load
	// timeout of a node: a request that is queued at a busy server loses its place when
	// the process gives up and sends another one, which adds to the queue.
	attemptTimeout = 5 * time.Second
	// forbiddenTimeout is the time that Load waits for a server that does not allow the
	// request: a new server writes its RBAC policy in its first seconds.
	forbiddenTimeout = 10 * time.Second
)

// Origin is where the values come from.
type Origin string

const (
	// FromServer means that they are the answer of the server.
	FromServer Origin = "Server"
	// FromFile means that they are the last known values from disk.
	FromFile Origin = "File"
	// FromNowhere means that none are known, so that the process's own values count.
	FromNowhere Origin = "None"
)

// Load gives the server's values to the gate and returns where they come from. It waits
// for the server for SyncerConfig.LoadTimeout at most and logs what it waits for. Then it
// takes the answer of a server that is not ready, else the last known values from disk, or
// none. It does not wait for a server without this API, whose answer takes back no value
// of another server: during an upgrade there are both kinds. Nor does it wait for a
// configuration that an administrator has to fix first.
func (s *Syncer) Load(ctx context.Context) Origin {
	stored, savedAt := s.file.read(ctx)
	if stored != nil {
		s.chosen = switchedBy(stored, s.config.Clock.Now())
	}
	w := &waiting{begun: s.config.Clock.Now()}
	w.deadline = w.begun.Add(s.config.LoadTimeout)
	until := w.deadline
	for {
		err := s.attempt(ctx, until)
		if err == nil {
			s.apply(ctx)
			s.noteTooLate(ctx)
			return s.origin
		}
		now := s.config.Clock.Now()
		var pause time.Duration
		pause, until = w.next(now, err)
		if pause <= 0 || ctx.Err() != nil {
			s.fallBack(ctx, savedAt, err, now.Sub(w.begun))
			return s.origin
		}
		klog.FromContext(ctx).Info("Waiting for kube-apiserver to provide central feature values", "component", s.config.Component, "err", err,
			"waited", now.Sub(w.begun).Round(time.Millisecond), "nextAttemptIn", pause.Round(time.Millisecond),
			"next", fmt.Sprintf("without an answer within %s the process continues with last known or its own values", until.Sub(now).Round(time.Second)))
		s.pause(ctx, pause)
	}
}

// attempt lists once. It fails if the server answers but is not ready.
func (s *Syncer) attempt(ctx context.Context, deadline time.Time) error {
	left := max(time.Second, deadline.Sub(s.config.Clock.Now()))
	attempt, cancel := context.WithTimeout(ctx, min(attemptTimeout, left))
	defer cancel()
	err := s.list(attempt)
	if err == nil {
		err = s.ready(attempt)
	}
	s.throttled = apierrors.IsTooManyRequests(err) || errors.Is(err, context.DeadlineExceeded)
	return err
}

// Throttled returns true if the server throttled the process at the end of Load, or did not
// answer in time: thousands of processes may have started together. Requests that can wait
// are then sent later, at random times. It is safe for concurrent use once Load has
// returned, and meant for ReporterConfig.Throttled.
func (s *Syncer) Throttled() bool { return s.throttled }

// waiting decides how long Load waits.
type waiting struct {
	begun, deadline time.Time
	failures        int
	// refusedSince is the first of consecutive refusals, zero without any.
	refusedSince time.Time
}

// next returns the pause after a failure, and when Load ends at the latest. Without a pause
// Load ends now.
func (w *waiting) next(now time.Time, err error) (pause time.Duration, until time.Time) {
	w.failures++
	if errors.Is(err, errAPINotServed) || errors.Is(err, ErrNoServer) || errors.Is(err, ErrConfiguration) {
		return 0, now
	}
	until = w.deadline
	shortest, throttled := minSyncBackoff, apierrors.IsTooManyRequests(err)
	if throttled {
		// The server is up, and has too many requests: a process without a load timeout
		// retries as well.
		shortest = startThrottleBackoff
		if soon := w.begun.Add(attemptTimeout); until.Before(soon) {
			until = soon
		}
	}
	switch {
	case !backoff.IsForbidden(err):
		w.refusedSince = time.Time{}
	case w.refusedSince.IsZero():
		w.refusedSince = now
		fallthrough
	default:
		until = earlier(until, w.refusedSince.Add(forbiddenTimeout))
	}
	pause, left := backoff.Delay(w.failures, shortest, maxStartBackoff), until.Sub(now)
	if throttled && w.failures > 1 && pause > left {
		// All processes that were throttled as often would retry at the end.
		return 0, until
	}
	return min(pause, left), until
}

// fallBack takes the best available values without the answer of a ready server.
func (s *Syncer) fallBack(ctx context.Context, savedAt time.Time, cause error, waited time.Duration) {
	logger := klog.FromContext(ctx).WithValues("component", s.config.Component, "cause", cause)
	alone := errors.Is(cause, ErrNoServer)
	switch {
	case !alone && s.listed != nil:
		logger.Info("Starting with the feature values of a server that is not ready, will retry", "waited", waited.Round(time.Millisecond), "changePolicy", s.config.Policy)
		s.apply(ctx)
	case !alone && len(s.chosen) > 0:
		logger.Info("Starting with the last known feature values from disk, will retry. They stay until a server with the API features.k8s.io/v1alpha1 takes them back; without such a server, remove the file",
			"file", s.file.path, "savedAt", savedAt, "waited", waited.Round(time.Millisecond), "changePolicy", s.config.Policy)
		s.setOrigin(FromFile)
		s.setRemote(ctx)
	case alone, errors.Is(cause, errAPINotServed):
		logger.V(1).Info("Feature values come from this process alone")
		s.setOrigin(FromNowhere)
	default:
		logger.Info("Starting without central feature values, will retry", "waited", waited.Round(time.Millisecond), "changePolicy", s.config.Policy)
		s.setOrigin(FromNowhere)
	}
	s.noteTooLate(ctx)
}

// noteTooLate records features whose static values come too late even at the start, because
// the gate's values were final before Load: a restart does not help.
func (s *Syncer) noteTooLate(ctx context.Context) {
	for _, o := range s.config.Gate.RemoteOutcomes() {
		if o.Reason == featuregate.OutcomeOutdated {
			klog.FromContext(ctx).Error(nil, "Central feature value comes too late: the gate of this process was final before Load", "feature", o.Feature)
			s.tooLate[o.Feature] = true
		}
	}
}

// pause waits.
func (s *Syncer) pause(ctx context.Context, d time.Duration) {
	timer := s.config.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
