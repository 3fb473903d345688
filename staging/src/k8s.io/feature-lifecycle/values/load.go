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

package values

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
	// maxStartBackoff is the longest pause while Load holds the process up.
	maxStartBackoff = 5 * time.Second
	// startCrowdBackoff is the first pause after a server turned the process away.
	// Without values it is not to wait as long as others can (backoff.ThrottleWindow).
	startCrowdBackoff = 4 * time.Second
	// attemptTimeout bounds one look while Load holds the process up. It is the whole
	// patience of a node: a request that waits its turn at a busy server loses it when
	// the process gives up and asks anew, and the server has one more.
	attemptTimeout = 5 * time.Second
	// refusalPatience is how long Load waits for a server that does not allow
	// the process to look: a new one writes its RBAC policy in its first seconds.
	refusalPatience = 10 * time.Second
)

// Origin is where the values come from.
type Origin string

const (
	// FromServer means that the server was asked.
	FromServer Origin = "Server"
	// FromFile means that the values are the last known ones from disk.
	FromFile Origin = "File"
	// FromNowhere means that nothing is known, so that the process's own values
	// count.
	FromNowhere Origin = "None"
)

// Load gives the gate the server's values and returns where they come from. It
// waits for the server for Config.Patience at most, says in the log what it waits
// for, and then takes what a server said that is not ready, else the last known
// values from disk, or none. It does not wait for a server without this API, which
// takes nothing back that another one has said (in the middle of an upgrade there
// are both kinds), nor for a configuration that people have to mend first.
func (f *Follower) Load(ctx context.Context) Origin {
	stored, savedAt := f.file.read(ctx)
	if stored != nil {
		f.chosen = stored
	}
	w := &waiting{begun: f.config.Clock.Now()}
	w.deadline = w.begun.Add(f.config.Patience)
	until := w.deadline
	for {
		err := f.ask(ctx, until)
		if err == nil {
			f.apply(ctx)
			f.noteTooLate(ctx)
			return f.origin
		}
		now := f.config.Clock.Now()
		var pause time.Duration
		pause, until = w.next(now, err)
		if pause <= 0 || ctx.Err() != nil {
			f.fallBack(ctx, savedAt, err, now.Sub(w.begun))
			return f.origin
		}
		klog.FromContext(ctx).Info("Waiting for kube-apiserver to say which values of features are set centrally", "component", f.config.Component, "err", err,
			"waited", now.Sub(w.begun).Round(time.Millisecond), "nextAttemptIn", pause.Round(time.Millisecond),
			"next", fmt.Sprintf("without an answer within %s the process goes on with last known or its own values", until.Sub(now).Round(time.Second)))
		f.pause(ctx, pause)
	}
}

// ask looks once. It fails when the server answers but is not ready.
func (f *Follower) ask(ctx context.Context, deadline time.Time) error {
	left := max(time.Second, deadline.Sub(f.config.Clock.Now()))
	attempt, cancel := context.WithTimeout(ctx, min(attemptTimeout, left))
	defer cancel()
	err := f.look(attempt)
	if err == nil {
		err = f.ready(attempt)
	}
	f.crowded = apierrors.IsTooManyRequests(err) || errors.Is(err, context.DeadlineExceeded)
	return err
}

// Crowded is true when the server turned the process away at the end of Load, or gave
// no answer in time: thousands of processes may have started together. What can wait
// is then done later, each at another time. It is safe for concurrent use once Load has
// returned. A reporter of this process takes it (report.Config.Crowded).
func (f *Follower) Crowded() bool { return f.crowded }

// waiting is how long Load waits.
type waiting struct {
	begun, deadline time.Time
	failures        int
	// refusedSince is the first of the refusals in a row, zero without any.
	refusedSince time.Time
}

// next is the pause after a failure and how long Load goes on at most; without a
// pause it goes on no more.
func (w *waiting) next(now time.Time, err error) (pause time.Duration, until time.Time) {
	w.failures++
	if errors.Is(err, errMissing) || errors.Is(err, ErrNoServer) || errors.Is(err, ErrConfiguration) {
		return 0, now
	}
	until = w.deadline
	least, crowd := minBackoff, apierrors.IsTooManyRequests(err)
	if crowd {
		// It is there, and too many ask it at once: it is asked again also by who does
		// not wait.
		least = startCrowdBackoff
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
		until = earlier(until, w.refusedSince.Add(refusalPatience))
	}
	pause, left := backoff.Delay(w.failures, least, maxStartBackoff), until.Sub(now)
	if crowd && w.failures > 1 && pause > left {
		// All who were turned away as often would ask again at the end.
		return 0, until
	}
	return min(pause, left), until
}

// fallBack takes the best values there are without the answer of a server that is
// ready.
func (f *Follower) fallBack(ctx context.Context, savedAt time.Time, cause error, waited time.Duration) {
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component, "cause", cause)
	alone := errors.Is(cause, ErrNoServer)
	switch {
	case !alone && f.listed != nil:
		logger.Info("Starting with the values of features of a server that is not ready; they are looked for again", "waited", waited.Round(time.Millisecond), "changePolicy", f.config.Policy)
		f.apply(ctx)
	case !alone && len(f.chosen) > 0:
		logger.Info("Starting with the last known values of features from disk; they are looked for again. They stay as long as no server with the API features.k8s.io/v1alpha1 takes them back; without such servers, remove the file",
			"file", f.file.path, "savedAt", savedAt, "waited", waited.Round(time.Millisecond), "changePolicy", f.config.Policy)
		f.setOrigin(FromFile)
		f.give(ctx)
	case alone, errors.Is(cause, errMissing):
		logger.V(1).Info("The values of features come from this process alone")
		f.setOrigin(FromNowhere)
	default:
		logger.Info("Starting without knowing which values of features are set centrally; they are looked for again", "waited", waited.Round(time.Millisecond), "changePolicy", f.config.Policy)
		f.setOrigin(FromNowhere)
	}
	f.noteTooLate(ctx)
}

// noteTooLate remembers features whose static values come too late even at the
// start, because the gate's values were final before Load: no restart helps.
func (f *Follower) noteTooLate(ctx context.Context) {
	for _, o := range f.config.Gate.RemoteOutcomes() {
		if o.Reason == featuregate.OutcomeOutdated {
			klog.FromContext(ctx).Error(nil, "The value of a feature is set centrally, and this process looks for it too late: its gate was final before", "feature", o.Feature)
			f.tooLate[o.Feature] = true
		}
	}
}
