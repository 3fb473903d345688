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

// Package values gives a process the values of features that are set in one
// place: those whose Feature has status.control Central, which a process takes
// when it starts, and Dynamic, which it follows while it runs (KEP-3920, "Values
// set centrally, values that change").
//
// A process calls Load at the moment at which its own command line has been read
// and its code has not asked yet (featuregate.Gate.BeforeFinal), and runs Run
// beside its work. Both hand values to its gate, which decides whether it can take
// them; package rollout decides which value a canary gives to the process.
//
// Following is cheap. Everybody lists the few Features that are not Local, rarely
// and from the server's cache. A watch costs the server memory for as long as it
// is open, so there is one only while a feature is Dynamic, and it selects those:
// kube-apiserver keeps its watchers by the control they select, so that thousands
// of them cost nothing while other features change.
//
// Nothing in here fails the process. Load delays it, in bounded time.
package values

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/rollout"
	"k8s.io/utils/clock"

	componentfeaturegate "k8s.io/component-base/featuregate"
)

const (
	// minBackoff and maxBackoff bound the pause after a failed look.
	minBackoff, maxBackoff = 250 * time.Millisecond, 30 * time.Second
	// firstRecheck is the least pause after the first look. Pauses grow from there:
	// a server that has just started may not have announced its features yet.
	firstRecheck = 10 * time.Second
	// recheckGrowth is by how much: thousands that start together are to be few when
	// they look again.
	recheckGrowth = 4
	// missingRecheck is the pause while the server has no such API, and never had.
	missingRecheck = 10 * time.Minute
	// vanishedJitter spreads the looks after a dynamic feature has vanished from
	// thousands of watches at once.
	vanishedJitter = 20 * time.Second
	// servedJitter spreads the looks of thousands whose reports are taken again.
	servedJitter = 5 * time.Second
)

// ErrNoServer is what Connect fails with when the process will never have a
// server: a kubelet that runs alone, say.
var ErrNoServer = errors.New("no server is configured")

// ErrConfiguration is what Connect fails with when people have to mend a file or a
// flag, and the process is about to end for it itself: Load does not wait then.
var ErrConfiguration = errors.New("the configuration is not usable")

// Gate takes the values; *featuregate.Gate is one.
type Gate interface {
	SetRemote(values map[componentfeaturegate.Feature]featuregate.Remote) []featuregate.Outcome
	RemoteOutcomes() []featuregate.Outcome
}

// Config is what a Follower needs.
type Config struct {
	// Namespace has the Features: kube-system for Kubernetes' own.
	Namespace string
	// Component and Instance identify the process in canaries, as in its report.
	Component, Instance string
	// Gate takes the values.
	Gate Gate
	// Connect returns a client, whose configuration should be one of ClientConfig.
	// It is called until it succeeds; an error that is ErrNoServer ends that, one
	// that is ErrConfiguration ends Load's waiting.
	Connect func() (versioned.Interface, error)
	// Reconnect is asked before each look whether the client that Connect
	// returned is to be replaced by another one, as that of a node which has its
	// own identity by now; nil means never.
	Reconnect func() bool
	// File has the last known values, for processes that start without a server;
	// "" means none. It exists only while there is a value.
	File string
	// Patience is how long Load waits for the server; with the last attempt it may
	// take a second more. 0 means one attempt, and some more within 5 seconds at
	// a server that has too many requests.
	Patience time.Duration
	// Recheck is the longest pause between two looks at the list; 0 means 10
	// minutes.
	Recheck time.Duration
	// AlwaysWatch keeps the watch of dynamic features open while there are none,
	// so that the first one is followed at once: for components with few
	// instances.
	AlwaysWatch bool
	// Policy is what happens when a static value is outdated; "" means PolicyReport.
	Policy ChangePolicy
	// RestartWindow spreads restarts: each process waits for a random part of it.
	RestartWindow time.Duration
	// Restart ends the process in order. It is called once, from Run.
	Restart func()
	// Ready says why the server that answered may not know yet what is set
	// centrally; Load waits for it as it does for an answer. Nothing ends for the
	// answer of a server that is not ready, and nothing is saved before a server
	// was ready once. nil means that it is not asked.
	Ready func(context.Context, versioned.Interface) error
	// Only says which Features count, by their spec and status; nil means all.
	Only func(*v1alpha1.Feature) bool
	// Clock is the time; nil means the real one.
	Clock clock.WithTicker
}

// Follower takes values from the API. Load and Run must not run at the same time.
type Follower struct {
	config Config
	file   *file
	client versioned.Interface

	// origin is where the values in the gate come from.
	origin Origin
	// crowded is what Crowded returns, also when only the question whether the server is
	// ready had no answer. Load alone writes it.
	crowded bool
	// listed are the Features of the last list, and what the watch said since;
	// seen is the newest resource version of either.
	listed map[string]*v1alpha1.Feature
	seen   string
	watch  *watch
	// chosen is what this process takes from each Feature.
	chosen map[string]choice
	// outcomes is what became of them last.
	outcomes map[componentfeaturegate.Feature]featuregate.Outcome
	// tooLate are features whose values cannot be in time.
	tooLate map[componentfeaturegate.Feature]bool
	// trusted is true once a server that had answered was ready, too.
	trusted bool
	// failures counts failed looks in a row; state is the one logged last.
	failures int
	state    string
	// served has room for one signal that a server takes reports: true if one did before.
	// reports is true while one does, and missing while the last look found no API.
	served  chan bool
	reports atomic.Bool
	missing bool
	// restartAt is when the process ends itself, zero while it does not.
	restartAt time.Time
	// complained is why it does not end itself, as the log says already.
	complained string
	// peers is what Peers returns. uses are those that the server counted last, by
	// dynamic feature.
	peers atomic.Pointer[map[string]int]
	uses  map[string][]v1alpha1.FeatureUse
}

// choice is a value that this process takes.
type choice struct {
	Value   bool
	Dynamic bool
}

// New makes a Follower.
func New(config Config) (*Follower, error) {
	if config.Namespace == "" || config.Component == "" || config.Instance == "" {
		return nil, errors.New("following feature values needs Namespace, Component and Instance")
	}
	if config.Gate == nil || config.Connect == nil {
		return nil, fmt.Errorf("following feature values for %s.%s needs Gate and Connect", config.Component, config.Instance)
	}
	if config.Policy == "" {
		config.Policy = PolicyReport
	}
	if config.Policy == PolicyRestart && config.Restart == nil {
		return nil, fmt.Errorf("following feature values for %s.%s needs Restart for the policy %s", config.Component, config.Instance, PolicyRestart)
	}
	if config.Recheck <= 0 {
		config.Recheck = 10 * time.Minute
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	registerMetrics()
	return &Follower{
		config: config,
		file:   &file{path: config.File, namespace: config.Namespace, component: config.Component, instance: config.Instance},
		origin: FromNowhere, chosen: map[string]choice{}, tooLate: map[componentfeaturegate.Feature]bool{}, served: make(chan bool, 1),
	}, nil
}

// Run follows the values until the context ends, or the process ends itself
// because a static value is outdated.
func (f *Follower) Run(ctx context.Context) {
	defer func() { f.watch.stop() }()
	pause := min(firstRecheck, f.config.Recheck)
	next := f.config.Clock.Now().Add(f.firstPause(pause))
	if f.origin != FromServer {
		wait := spread(backoff.Delay(1, minBackoff, maxBackoff))
		if f.crowded {
			// Of those that do not watch there are thousands.
			if wait = backoff.ThrottleDelay(1); !f.config.AlwaysWatch {
				wait = backoff.ThrottleStartDelay()
			}
		}
		next = f.config.Clock.Now().Add(wait)
	}
	for {
		f.manageWatch(ctx)
		timer := f.config.Clock.NewTimer(f.until(next))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-f.watch.news():
			timer.Stop()
			if f.watch.vanished.Swap(false) {
				next = earlier(next, f.config.Clock.Now().Add(backoff.Jitter(vanishedJitter)))
			}
			f.apply(ctx)
			continue
		case again := <-f.served:
			timer.Stop()
			// That reports are taken at all says nothing new to who has seen the API.
			if again || f.missing {
				next = earlier(next, f.config.Clock.Now().Add(backoff.Jitter(servedJitter)))
			}
			continue
		case <-timer.C():
		}
		due := f.restartDue()
		if !due && f.config.Clock.Now().Before(next) {
			continue
		}
		err := f.lookAgain(ctx)
		f.missing = errors.Is(err, errMissing)
		if errors.Is(err, ErrNoServer) {
			return
		}
		switch {
		case err == nil:
			f.apply(ctx)
			if due && f.restart(ctx) {
				return
			}
			if pause = min(recheckGrowth*pause, f.config.Recheck); f.crowded && f.trusted && !f.config.AlwaysWatch {
				// The server was ready, and knows what is set. Thousands need not ask soon.
				pause = f.config.Recheck
			}
			next = f.config.Clock.Now().Add(spread(pause))
		case f.missing:
			pause = firstRecheck
			rare := missingRecheck
			if len(f.chosen) > 0 {
				// Another server of this cluster had it.
				rare = f.config.Recheck
			}
			if f.reports.Load() {
				// One that takes reports has the API: it restarts, or is one of several.
				rare = backoff.Exponential(f.failures, min(firstRecheck, rare), rare)
			}
			next = f.config.Clock.Now().Add(spread(rare))
		default:
			next = f.config.Clock.Now().Add(backoff.DelayFor(err, f.failures, minBackoff, maxBackoff))
		}
		if due && !f.restartAt.IsZero() {
			// It would not help now; restart says why.
			f.restartAt = next
		}
	}
}

// firstPause is the one after the first look. Who looks seldom later may have started
// with thousands of others, and looks three times as late at most.
func (f *Follower) firstPause(least time.Duration) time.Duration {
	if more := f.config.Recheck - least; more > 0 {
		return least + backoff.Jitter(min(2*least, more))
	}
	return spread(least)
}

// until is how long nothing has to be done.
func (f *Follower) until(next time.Time) time.Duration {
	if !f.restartAt.IsZero() {
		next = earlier(next, f.restartAt)
	}
	return max(0, next.Sub(f.config.Clock.Now()))
}

// manageWatch opens the watch of dynamic features when there are some, and ends
// it when there are none.
func (f *Follower) manageWatch(ctx context.Context) {
	wanted := f.listed != nil && f.config.AlwaysWatch
	for _, feature := range f.listed {
		wanted = wanted || feature.Status.Control == v1alpha1.ControlDynamic
	}
	switch {
	case wanted && f.watch == nil:
		f.watch = startWatch(ctx, f.client, f.config.Namespace)
	case !wanted && f.watch != nil:
		f.watch.stop()
		f.watch = nil
	}
}

// apply chooses a value for each Feature that is known and gives them to the gate.
func (f *Follower) apply(ctx context.Context) {
	instance := rollout.Instance{Component: f.config.Component, Name: f.config.Instance}
	if f.listed == nil {
		return
	}
	// What left the watch stays as it was there until a new list has it, or not.
	for name, watched := range f.watch.features() {
		if listed, ok := f.listed[name]; !ok || !newer(listed.ResourceVersion, watched.ResourceVersion) {
			f.listed[name] = watched
		}
		if newer(watched.ResourceVersion, f.seen) {
			f.seen = watched.ResourceVersion
		}
	}
	chosen := map[string]choice{}
	for name, feature := range f.listed {
		if f.config.Only != nil && !f.config.Only(feature) {
			continue
		}
		var held *bool
		if before, ok := f.chosen[name]; ok {
			held = &before.Value
		}
		if c := rollout.Choose(feature, instance, held); c.Told {
			chosen[name] = choice{Value: c.Value, Dynamic: c.Dynamic}
		}
	}
	changed := f.outcomes == nil || !maps.Equal(chosen, f.chosen)
	f.chosen = chosen
	f.countPeers()
	f.setOrigin(FromServer)
	if changed {
		f.give(ctx)
	} else {
		// The process may have asked meanwhile for what is outdated.
		f.announce(ctx, f.config.Gate.RemoteOutcomes())
	}
	f.save(ctx)
	f.planRestart(ctx)
}

// save writes what was chosen to disk. A server that has never been ready may not
// know yet what is set centrally: its answer does for now, and not for the next
// start.
func (f *Follower) save(ctx context.Context) {
	if f.trusted {
		f.file.write(ctx, f.chosen, f.config.Clock.Now())
	}
}

// give gives what was chosen to the gate.
func (f *Follower) give(ctx context.Context) {
	values := make(map[componentfeaturegate.Feature]featuregate.Remote, len(f.chosen))
	for name, c := range f.chosen {
		values[componentfeaturegate.Feature(name)] = featuregate.Remote{Value: c.Value, Dynamic: c.Dynamic}
	}
	f.announce(ctx, f.config.Gate.SetRemote(values))
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
