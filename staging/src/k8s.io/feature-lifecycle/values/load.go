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
	"fmt"
	"time"

	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/klog/v2"
)

const (
	// maxStartBackoff is the longest pause while Load holds the process up.
	maxStartBackoff = 5 * time.Second
	// attemptTimeout bounds one look while Load holds the process up.
	attemptTimeout = 3 * time.Second
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
// for, and then takes the last known values from disk, or none. A server without
// this API, or a process without a server, is not waited for.
func (f *Follower) Load(ctx context.Context) Origin {
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component)
	stored, savedAt := f.file.read(ctx)
	if stored != nil {
		f.chosen = stored
	}
	start := f.config.Clock.Now()
	deadline := start.Add(f.config.Patience)
	for failures := 1; ; failures++ {
		left := max(time.Second, deadline.Sub(f.config.Clock.Now()))
		attempt, cancel := context.WithTimeout(ctx, min(attemptTimeout, left))
		err := f.look(attempt)
		if err == nil && f.config.Ready != nil {
			err = f.config.Ready(attempt, f.client)
		}
		cancel()
		switch {
		case err == nil:
			f.setOrigin(FromServer)
			f.apply(ctx)
			f.noteTooLate(ctx)
			return f.origin
		case permanent(err):
			logger.V(1).Info("The values of features come from this process alone", "cause", err)
			f.setOrigin(FromNowhere)
			return f.origin
		}
		until := deadline
		if refused(err) {
			until = earlier(until, start.Add(refusalPatience))
		}
		now := f.config.Clock.Now()
		pause := min(backoff(failures, maxStartBackoff), until.Sub(now))
		if pause <= 0 || ctx.Err() != nil {
			f.fallBack(ctx, savedAt, err, now.Sub(start))
			return f.origin
		}
		logger.Info("Waiting for kube-apiserver to say which values of features are set centrally", "err", err,
			"waited", now.Sub(start).Round(time.Millisecond), "nextAttemptIn", pause.Round(time.Millisecond),
			"next", fmt.Sprintf("without an answer within %s the process goes on with last known or its own values", until.Sub(now).Round(time.Second)))
		f.pause(ctx, pause)
	}
}

// fallBack takes the last known values, because the server did not answer.
func (f *Follower) fallBack(ctx context.Context, savedAt time.Time, cause error, waited time.Duration) {
	logger := klog.FromContext(ctx).WithValues("component", f.config.Component)
	logger = logger.WithValues("cause", cause, "waited", waited.Round(time.Millisecond), "changePolicy", f.config.Policy)
	if len(f.chosen) == 0 {
		logger.Info("Starting without knowing which values of features are set centrally; they are looked for again")
		f.setOrigin(FromNowhere)
		return
	}
	logger.Info("Starting with the last known values of features from disk; they are looked for again", "file", f.file.path, "savedAt", savedAt)
	f.setOrigin(FromFile)
	f.give(ctx)
	f.noteTooLate(ctx)
}

// noteTooLate remembers features whose static values come too late even at the
// start, because the gate's values were final before Load: no restart helps.
func (f *Follower) noteTooLate(ctx context.Context) {
	for _, o := range f.config.Gate.RemoteOutcomes() {
		if o.Reason == featuregate.Outdated {
			klog.FromContext(ctx).Error(nil, "The value of a feature is set centrally, and this process looks for it too late: its gate was final before", "feature", o.Feature)
			f.tooLate[o.Feature] = true
		}
	}
}
