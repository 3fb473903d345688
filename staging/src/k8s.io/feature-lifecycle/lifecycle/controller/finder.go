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
	"errors"
	"slices"
	"sync"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/utils/clock"
)

const (
	// findPeriod is how often the leftovers of a feature that is off are searched again:
	// that reads whole collections.
	findPeriod = 30 * time.Minute
	// findRetry is the same after a search that failed, or that found a declaration which
	// does not fit the server, as before its definition is installed; it doubles with each,
	// up to findPeriod.
	findRetry = 30 * time.Second
	// roundPatience is how long waiting features wait for the searches of the round
	// before: one of them may take until its deadline.
	roundPatience = 2 * time.Minute
	// firstLull is how long no feature may have been added before the first round begins,
	// which waits for mostGathered at most. After the start of a server all features that
	// are off are added within seconds, and each round reads the collections that its
	// features share.
	firstLull    = time.Second
	mostGathered = 10 * time.Second
)

// finder searches leftovers of features that are off, beside the queue: for all that
// request it at one time together, so that each collection is read once and not for
// every feature. For features that are on, it finds what servers of this version do not
// read. It also compares the declarations of both with the server. It reads only. It is
// safe for concurrent use.
type finder struct {
	clients task.Clients
	// all are the tasks of all features.
	all    lifecycle.Tasks
	clock  clock.Clock
	notify func(feature string, after time.Duration)
	// absent are fields that need not be searched again.
	absent *absentFields

	mu      sync.Mutex
	results map[string]*search
	// busy are features that are searched for, or will be in the next round. There is
	// no other search before that has ended, also when its result is not wanted any more.
	busy map[string]bool
	// waiting are those of the next round. At the start of a server many features are to
	// be searched, and they are added while a round is under way.
	waiting []wanted
	// came is when the last of them was added.
	came time.Time
	// running is true while there are rounds.
	running bool
	// lull is firstLull before the first round, and 0 after that. Only the goroutine that
	// runs rounds uses it.
	lull time.Duration
	wait sync.WaitGroup
}

// search is what is known of the leftovers of one feature. Found is nil while the first
// search runs.
type search struct {
	found *transition.Leftovers
	next  time.Time
	// pause is the one after the last search if it failed, or what is declared does not fit
	// the server; 0 if it does not.
	pause time.Duration
	// off is true when the last search was wanted for a feature that is off.
	off bool
}

// wanted is a search of the next round.
type wanted struct {
	feature lifecycle.Feature
	search  *search
	// off is false for a feature that is on.
	off bool
}

func newFinder(clients task.Clients, all lifecycle.Tasks, clock clock.Clock, notify func(string, time.Duration)) *finder {
	return &finder{clients: clients, all: all, clock: clock, notify: notify, absent: newAbsentFields(), lull: firstLull, results: map[string]*search{}, busy: map[string]bool{}}
}

// result returns what was found last, nil when no search ended since the last change of
// state.
func (f *finder) result(feature string) *transition.Leftovers {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.results[feature]; s != nil {
		return s.found
	}
	return nil
}

// forget drops what was found: the state changed.
func (f *finder) forget(feature string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.results, feature)
}

// forgetLeftovers drops what was found while the feature was off. The inspection of its
// declaration since then stays.
func (f *finder) forgetLeftovers(feature string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.results[feature]; s != nil && s.off {
		delete(f.results, feature)
	}
}

// expire makes the next search of a feature due: a newer search found something else
// than the last one.
func (f *finder) expire(feature string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.results[feature]; s != nil {
		s.next = time.Time{}
	}
}

// refresh starts a search when one is due, and returns when the next one is.
func (f *finder) refresh(ctx context.Context, feature lifecycle.Feature) time.Duration {
	return f.want(ctx, feature, true)
}

// inspect looks at a feature that is on when that is due, and returns when it is due
// again: it compares the declaration with the server, 0 for never while all is well, and
// searches what servers of this version do not read.
func (f *finder) inspect(ctx context.Context, feature lifecycle.Feature) time.Duration {
	searches := f.clients.Storage != nil && len(unread(feature)) > 0
	if !searches && (!f.clients.Inspects() || len(feature.AllTasks()) == 0) {
		return 0
	}
	next := f.want(ctx, feature, false)
	if searches {
		return next
	}
	if found := f.result(string(feature.Name)); found == nil || found.Err == "" && len(found.Misdeclared) == 0 {
		return 0
	}
	return next
}

// unread returns the tasks whose findings servers of this version do not read.
func unread(feature lifecycle.Feature) lifecycle.Tasks {
	var tasks lifecycle.Tasks
	for _, t := range slices.Concat(feature.OnEnable, feature.OnDisable) {
		if t.Unread != "" && !slices.Contains(tasks.Names(), t.Name) {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

func (f *finder) want(ctx context.Context, feature lifecycle.Feature, off bool) time.Duration {
	name := string(feature.Name)
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.results[name]
	if s == nil {
		s = &search{}
		f.results[name] = s
	}
	if f.busy[name] {
		return 0
	}
	if now.Before(s.next) {
		return s.next.Sub(now)
	}
	f.busy[name], s.off = true, off
	f.waiting, f.came = append(f.waiting, wanted{feature, s, off}), now
	if !f.running {
		f.running = true
		f.wait.Go(func() { f.rounds(ctx) })
	}
	return 0
}

// gather waits before the first round until no more features come, or the context ends.
func (f *finder) gather(ctx context.Context) {
	lull, end := f.lull, f.clock.Now().Add(mostGathered)
	f.lull = 0
	for left := lull; left > 0; {
		timer := f.clock.NewTimer(left)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		f.mu.Lock()
		quiet := f.came.Add(lull)
		f.mu.Unlock()
		if quiet.After(end) {
			quiet = end
		}
		left = quiet.Sub(f.clock.Now())
	}
}

// rounds searches until nothing is wanted any more, one round after the other.
func (f *finder) rounds(ctx context.Context) {
	f.gather(ctx)
	for {
		f.mu.Lock()
		round := f.waiting
		f.waiting = nil
		if len(round) == 0 || ctx.Err() != nil {
			f.running = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		var finders []func(task.Clients)
		inspection := task.NewInspection(f.clients, f.all)
		for _, w := range round {
			finders = append(finders, func(clients task.Clients) { f.search(ctx, clients, inspection, w) })
		}
		done := make(chan struct{})
		f.wait.Go(func() {
			defer close(done)
			task.FindShared(ctx, f.clients, finders)
		})
		patience := f.clock.NewTimer(roundPatience)
		select {
		case <-done:
		case <-patience.C():
		}
		patience.Stop()
	}
}

func (f *finder) search(ctx context.Context, clients task.Clients, inspection *task.Inspection, w wanted) {
	feature, s := w.feature, w.search
	var tasks lifecycle.Tasks
	switch {
	case w.off:
		tasks = feature.OnDisable
	case clients.Storage != nil:
		tasks = unread(feature)
	}
	found, stray := findAll(ctx, clients, f.absent.remember(tasks))
	problems, err := inspection.Problems(ctx, feature.AllTasks())
	found.Misdeclared = problems
	if err != nil && found.Err == "" {
		found.Err = shorten(err.Error())
	}
	if stray != nil {
		// There is no other search before it has ended.
		defer f.wait.Go(func() {
			<-stray
			f.mu.Lock()
			delete(f.busy, string(feature.Name))
			f.mu.Unlock()
			f.notify(string(feature.Name), 0)
		})
	}
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	s.found, s.next = found, f.clock.Now().Add(findPeriod)
	if stray == nil {
		delete(f.busy, string(feature.Name))
	}
	if found.Err == "" && len(found.Misdeclared) == 0 {
		s.pause = 0
	} else {
		s.pause = min(max(2*s.pause, findRetry), findPeriod)
		s.next = f.clock.Now().Add(s.pause)
	}
	f.mu.Unlock()
	f.notify(string(feature.Name), 0)
}

// findAll calls every task's finder, also after one failed: what others find does not
// depend on it. The error is the first. If one does not return in time, what it has begun
// ends when stray is closed, which is nil otherwise, and no other is called.
func findAll(ctx context.Context, clients task.Clients, tasks lifecycle.Tasks) (found *transition.Leftovers, stray <-chan struct{}) {
	found = &transition.Leftovers{}
	for _, t := range tasks {
		resources, stray, err := findInTime(ctx, clients, t)
		if err != nil && found.Err == "" {
			found.Err = shorten(t.Name + ": " + err.Error())
		}
		if stray != nil {
			return found, stray
		}
		for _, r := range resources {
			found.Resources = append(found.Resources, transition.Finding{ResourceLeftovers: r, Held: t.Waits, Unread: t.Unread})
		}
	}
	return found, nil
}

// findInTime calls a task's finder, and waits for no longer than an attempt at the task
// may take. Nothing is read for others meanwhile, and an author's own finder may ignore
// its context.
func findInTime(ctx context.Context, clients task.Clients, t task.Task) (found []v1alpha1.ResourceLeftovers, stray <-chan struct{}, err error) {
	ctx, cancel := limited(ctx, t, "")
	defer cancel()
	type answer struct {
		found []v1alpha1.ResourceLeftovers
		err   error
	}
	answers, ended := make(chan answer, 1), make(chan struct{})
	go func() {
		defer close(ended)
		found, err := t.Find(ctx, clients)
		answers <- answer{found, err}
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return nil, ended, context.Cause(ctx)
	}
	select {
	case a := <-answers:
		return a.found, nil, tooLate(ctx, a.err)
	default:
		return nil, nil, errors.New("it ended without an answer")
	}
}

// drain waits until no search runs; its context has been canceled.
func (f *finder) drain() { f.wait.Wait() }

// planned returns what one task would handle, for a plan. With a *task.BlockedError it
// returns what the task does.
func planned(ctx context.Context, clients task.Clients, t task.Task) (p v1alpha1.PlannedTask, err error) {
	way, err := t.Way(ctx, clients)
	if err != nil {
		return p, err
	}
	p = v1alpha1.PlannedTask{Name: t.Name, Message: t.Description}
	if way != "" {
		p.Message += ", " + way
	}
	leftovers, err := t.Find(ctx, clients)
	if err != nil {
		return p, err
	}
	p.Leftovers = leftovers
	return p, nil
}
