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
	"maps"
	"sync/atomic"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/rollout"

	componentfeaturegate "k8s.io/component-base/featuregate"
)

const (
	// minSyncBackoff and maxSyncBackoff bound the pause after a failed list.
	minSyncBackoff, maxSyncBackoff = 250 * time.Millisecond, 30 * time.Second
	// firstResync is the shortest pause after the first list. Pauses grow from there: a
	// server that has just started may not have published its features yet.
	firstResync = 10 * time.Second
	// resyncGrowth is the factor by which pauses grow, so that few of the thousands that
	// start together list again at the same time.
	resyncGrowth = 4
	// notServedResync is the pause while the server does not have the API, and never had.
	notServedResync = 10 * time.Minute
	// removedJitter spreads the lists after a feature left thousands of watches at once.
	removedJitter = 20 * time.Second
	// servedJitter spreads the lists of thousands whose reports are accepted again.
	servedJitter = 5 * time.Second
	// clockPeriod is how long the process waits for a moment without reading the clock
	// again, which may be set meanwhile. From further away it waits for half of the time.
	clockPeriod = time.Second
)

// Syncer takes values from the API. Load and Run must not run at the same time.
type Syncer struct {
	config SyncerConfig
	file   *file
	client versioned.Interface

	// origin is where the values in the gate come from.
	origin Origin
	// throttled is the result of Throttled, also if only the question whether the server
	// is ready got no answer. Load alone writes it.
	throttled bool
	// listed are the Features of the last list, with the later events of the watch.
	// version is the newest resource version of either, listVersion that of the list.
	listed               map[string]*v1alpha1.Feature
	version, listVersion string
	// valueWatch is the watch of FeatureValues, and values are those that it had since the
	// last list. watch is that of Features in their place; both are nil while nothing is
	// dynamic.
	watch, valueWatch *dynamicWatch
	values            map[string]*v1alpha1.FeatureValue
	// valuesWanted is true while this process is to watch values, and valuesServed once it
	// did. refusals is how often the server has refused that since, refusedSince and
	// refusedLast are the first and the last time; valuesAfter is when to watch them again.
	valuesWanted, valuesServed bool
	refusals                   int
	refusedSince, refusedLast  time.Time
	// behindSince is since when they lack something that the last list has, zero while they
	// do not. unpublished are the features for which Features are watched therefore, with the
	// versions that their values had then.
	valuesAfter, behindSince time.Time
	unpublished              map[string]string
	// chosen is what this process takes from each Feature.
	chosen map[string]choice
	// before is what chosen was before it changed last.
	before map[string]choice
	// switched has the moments at which the process took the other value of a Feature by
	// itself. A clock that is set back before one does not take it back.
	switched map[string]time.Time
	// outcomes are the gate's last outcomes for them.
	outcomes map[componentfeaturegate.Feature]featuregate.Outcome
	// tooLate are features whose values cannot be in time.
	tooLate map[componentfeaturegate.Feature]bool
	// trusted is true once a server that had answered was ready as well.
	trusted bool
	// failures counts consecutive failed lists; state is the one that was logged last.
	failures int
	state    string
	// served has room for one signal that a server accepts reports: true if one did before.
	// reports is true while one does, and notServed if the last list found no API.
	served    chan bool
	reports   atomic.Bool
	notServed bool
	// restartAt is the time at which the process restarts, zero while it does not.
	restartAt time.Time
	// heldBy is the reason why a due restart was held, as it was logged.
	heldBy string
	// peers is what Peers returns. uses are the last counts of the server, by dynamic
	// feature.
	peers atomic.Pointer[map[string]int]
	uses  map[string][]v1alpha1.FeatureUse
}

// choice is a value that this process takes.
type choice struct {
	Value   bool
	Dynamic bool
	// SwitchTime is the moment at which the process takes the other value by itself, in
	// UTC; zero if there is none.
	SwitchTime time.Time
}

// NewSyncer returns a Syncer. It sends nothing.
func NewSyncer(config SyncerConfig) (*Syncer, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	registerSyncerMetrics()
	return &Syncer{
		config: config,
		file:   &file{path: config.File, namespace: config.Namespace, component: config.Component, instance: config.Instance},
		origin: FromNowhere, chosen: map[string]choice{}, tooLate: map[componentfeaturegate.Feature]bool{}, served: make(chan bool, 1),
	}, nil
}

// Run syncs the values until the context ends, or until the process restarts because a
// static value is outdated.
func (s *Syncer) Run(ctx context.Context) {
	defer func() { s.stopWatches() }()
	pause := min(firstResync, s.config.ResyncPeriod)
	next := s.config.Clock.Now().Add(s.firstPause(pause))
	for {
		s.manageWatch(ctx)
		timer := s.config.Clock.NewTimer(s.timeUntil(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.watch.events():
			timer.Stop()
			next = s.follow(ctx, s.watch, next)
			continue
		case <-s.valueWatch.events():
			timer.Stop()
			next = s.follow(ctx, s.valueWatch, next)
			continue
		case again := <-s.served:
			timer.Stop()
			// A first accepted report is no news to a process that has observed the API.
			if again || s.notServed {
				next = earlier(next, s.config.Clock.Now().Add(backoff.Jitter(servedJitter)))
			}
			continue
		case <-timer.C():
		}
		if s.switchDue() {
			s.takeSwitched(ctx)
		}
		due := s.restartDue()
		if !due && s.config.Clock.Now().Before(next) {
			continue
		}
		err := s.relist(ctx)
		s.notServed = errors.Is(err, errAPINotServed)
		switch {
		case errors.Is(err, ErrNoServer):
			return
		case err == nil:
			s.apply(ctx)
			if due && s.restart(ctx) {
				return
			}
			pause = s.nextPause(pause)
			next = s.config.Clock.Now().Add(shorten(pause))
		case s.notServed:
			pause = firstResync
			next = s.config.Clock.Now().Add(shorten(s.notServedPause()))
		default:
			next = s.config.Clock.Now().Add(backoff.DelayFor(err, s.failures, minSyncBackoff, maxSyncBackoff))
		}
		if due && !s.restartAt.IsZero() {
			// It would not help now; restart logs why.
			s.restartAt = next
		}
	}
}

// follow applies changes of a watch, and returns when to list next.
func (s *Syncer) follow(ctx context.Context, w *dynamicWatch, next time.Time) time.Time {
	if w.left() {
		next = earlier(next, s.config.Clock.Now().Add(backoff.Jitter(removedJitter)))
	}
	s.apply(ctx)
	return next
}

// firstPause returns the pause before the first list of Run. A process with a long resync
// period may have started with thousands of others, and waits up to three times as long.
func (s *Syncer) firstPause(shortest time.Duration) time.Duration {
	switch {
	case s.origin == FromServer:
		if more := s.config.ResyncPeriod - shortest; more > 0 {
			return shortest + backoff.Jitter(min(2*shortest, more))
		}
		return shorten(shortest)
	case !s.throttled:
		return shorten(backoff.Delay(1, minSyncBackoff, maxSyncBackoff))
	case s.config.AlwaysWatch:
		return backoff.ThrottleDelay(1)
	default:
		// There are thousands of processes that do not always watch.
		return backoff.ThrottleStartDelay()
	}
}

// nextPause returns the pause after a successful list, by the one before it.
func (s *Syncer) nextPause(pause time.Duration) time.Duration {
	if s.throttled && s.trusted && !s.config.AlwaysWatch {
		// The server was ready and knows the central values. Thousands can wait.
		return s.config.ResyncPeriod
	}
	return min(resyncGrowth*pause, s.config.ResyncPeriod)
}

// notServedPause returns the pause after a list that found no API.
func (s *Syncer) notServedPause() time.Duration {
	pause := notServedResync
	if len(s.chosen) > 0 {
		// Another server of this cluster had it.
		pause = s.config.ResyncPeriod
	}
	if s.reports.Load() {
		// A server that accepts reports has the API: it restarts, or is one of several.
		pause = backoff.Exponential(s.failures, min(firstResync, pause), pause)
	}
	return pause
}

// timeUntil returns how long there is nothing to do.
func (s *Syncer) timeUntil(next time.Time) time.Duration {
	if !s.restartAt.IsZero() {
		next = earlier(next, s.restartAt)
	}
	if !s.behindSince.IsZero() && s.watch == nil {
		next = earlier(next, s.behindSince.Add(valuesPatience))
	}
	if s.valuesWanted && s.refusals > 0 && s.valueWatch == nil {
		next = earlier(next, s.valuesAfter)
	}
	now := s.config.Clock.Now()
	pause := max(0, next.Sub(now))
	for _, c := range s.chosen {
		if c.SwitchTime.IsZero() {
			continue
		}
		left := max(0, c.SwitchTime.Sub(now))
		if left > clockPeriod {
			left = max(left/2, clockPeriod)
		}
		pause = min(pause, left)
	}
	return pause
}

// switchDue returns true if the moment has come at which the process takes another value.
func (s *Syncer) switchDue() bool {
	now := s.config.Clock.Now()
	for _, c := range s.chosen {
		if c.due(now) {
			return true
		}
	}
	return false
}

// due returns true if the moment has come at which the process takes the other value.
func (c choice) due(now time.Time) bool { return !c.SwitchTime.IsZero() && !now.Before(c.SwitchTime) }

// switched returns what the process takes from a moment on.
func (c choice) switched() choice { return choice{Value: !c.Value, Dynamic: c.Dynamic} }

// takeSwitched takes the values whose moment has come. Those that are known from disk alone
// change as they say.
func (s *Syncer) takeSwitched(ctx context.Context) {
	if s.listed != nil {
		s.apply(ctx)
		return
	}
	s.chosen = switchedBy(s.chosen, s.config.Clock.Now())
	s.setRemote(ctx)
}

// switchedBy returns values with those changed whose moment has come.
func switchedBy(values map[string]choice, now time.Time) map[string]choice {
	result := make(map[string]choice, len(values))
	for name, c := range values {
		if c.due(now) {
			c = c.switched()
		}
		result[name] = c
	}
	return result
}

// clockFor returns the time that counts for a feature: now, or the moment at which the
// process switched already.
func (s *Syncer) clockFor(name string, instance rollout.Instance, now time.Time) time.Time {
	// From long ago every moment is still to come.
	at := s.choose(name, instance, time.Time{}).SwitchTime
	if at.IsZero() {
		return now
	}
	if now.Before(at) {
		if !s.switched[name].Equal(at) {
			return now
		}
		now = at
	}
	if s.switched == nil {
		s.switched = map[string]time.Time{}
	}
	s.switched[name] = at
	return now
}

// apply chooses a value for each known Feature and gives the values to the gate.
func (s *Syncer) apply(ctx context.Context) {
	instance := rollout.Instance{Component: s.config.Component, Name: s.config.Instance}
	if s.listed == nil {
		return
	}
	// A Feature that left the watch stays as it was until a new list has it, or lacks it.
	for name, watched := range s.watch.features() {
		if listed, ok := s.listed[name]; !ok || !newer(listed.ResourceVersion, watched.ResourceVersion) {
			s.listed[name] = watched
		}
		if newer(watched.ResourceVersion, s.version) {
			s.version = watched.ResourceVersion
		}
	}
	s.takeValues()
	chosen, now := map[string]choice{}, s.config.Clock.Now()
	take := func(name string) {
		c := s.choose(name, instance, s.clockFor(name, instance, now))
		if c.Told {
			chosen[name] = choice{Value: c.Value, Dynamic: c.Dynamic, SwitchTime: c.SwitchTime.UTC()}
		}
	}
	for name := range s.listed {
		take(name)
	}
	for name := range s.values {
		take(name)
	}
	changed := s.outcomes == nil || !maps.Equal(chosen, s.chosen)
	if changed {
		s.before = s.chosen
	}
	s.chosen = chosen
	s.countPeers()
	s.setOrigin(FromServer)
	if changed {
		s.setRemote(ctx)
	} else {
		// The process may have queried an outdated feature meanwhile.
		s.publish(ctx, s.config.Gate.RemoteOutcomes())
	}
	s.save(ctx)
	s.planRestart(ctx)
}

// save writes the chosen values to disk. A server that has never been ready may not know
// the central values yet: its answer counts for now, and not for the next start.
func (s *Syncer) save(ctx context.Context) {
	if s.trusted {
		s.file.write(ctx, s.chosen, s.config.Clock.Now())
	}
}

// setRemote gives the chosen values to the gate.
func (s *Syncer) setRemote(ctx context.Context) {
	values := make(map[componentfeaturegate.Feature]featuregate.Remote, len(s.chosen))
	for name, c := range s.chosen {
		values[componentfeaturegate.Feature(name)] = featuregate.Remote{Value: c.Value, Dynamic: c.Dynamic, SwitchTime: c.SwitchTime}
	}
	s.publish(ctx, s.config.Gate.SetRemote(values))
}

// shorten returns a pause that is up to a quarter shorter.
func shorten(pause time.Duration) time.Duration { return pause - backoff.Jitter(pause/4) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
