//go:build linux

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

package clear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

// Options are sizes.
type Options struct {
	// kind is what the objects are: see Defaults and LargeDefaults.
	kind kind
	// Long replaces sizes, repetitions, workers, sweep and counted by those of a run of
	// hours.
	Long bool
	// Sizes are numbers of objects.
	Sizes []int
	// Repetitions is how often everything is run at the first size.
	Repetitions int
	// Workers are numbers of concurrent patches of the plain client, of which the fastest at
	// the first size counts; Sweep more of them that are tried once, at the first size.
	Workers, Sweep []int
	// Counted is the number of objects whose leftovers are counted, 0 for none.
	Counted int
	// Rate is the number of requests of other clients in a second, Rest the time for
	// which that is measured without other load.
	Rate float64
	Rest time.Duration
	// Touch writes one StatefulSet of another namespace every second, as users of a busy
	// cluster do. The migrator waits until it has seen a version as new as the request,
	// for which in an idle collection a bookmark has to come.
	Touch bool
	// Settle is kube-apiserver's --feature-settle-period.
	Settle time.Duration
	// Profiles is a directory for CPU profiles of kube-apiserver; "" for none.
	// Taking them slows it down.
	Profiles string
}

// Defaults are the sizes of a run of minutes, with small objects.
func Defaults() Options {
	return Options{
		kind: small, Sizes: []int{10_000}, Repetitions: 1, Workers: []int{64}, Counted: 10_000,
		Rate: 60, Rest: 5 * time.Second, Touch: true, Settle: 10 * time.Second,
	}
}

// LargeDefaults are those with objects of 20 KiB.
func LargeDefaults() Options {
	o := Defaults()
	o.kind, o.Sizes, o.Counted = large, []int{3_000}, 0
	return o
}

// longer returns the options of a run of hours.
func (o Options) longer() Options {
	o.Repetitions, o.Workers, o.Sweep, o.Rest = 3, []int{4, 16, 64}, []int{1}, 10*time.Second
	if o.kind.name == large.name {
		o.Sizes = []int{10_000, 30_000}
		return o
	}
	o.Sizes, o.Counted = []int{10_000, 30_000, 100_000}, 100_000
	return o
}

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Sizes, "sizes", o.Sizes, "Numbers of "+o.kind.name+".")
	fs.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "How often everything is run at the first size; once at the others.")
	fs.IntSliceVar(&o.Workers, "workers", o.Workers, "Numbers of concurrent patches of the plain client. The fastest at the first size is run at the others.")
	fs.IntSliceVar(&o.Sweep, "sweep", o.Sweep, "More such numbers, which are tried once at the first size; 0 for none.")
	fs.BoolVar(&o.Long, "long", o.Long, "Run for hours: more and larger sizes, three repetitions, all numbers of workers. Flags of these do not count then.")
	fs.IntVar(&o.Counted, "counted", o.Counted, "Number of StatefulSets, and of Pods, whose leftovers are counted after a start, through the API and in storage; 0 for none.")
	fs.Float64Var(&o.Rate, "rate", o.Rate, "Requests that other clients send in a second.")
	fs.DurationVar(&o.Rest, "rest", o.Rest, "For how long they are measured without other load.")
	fs.BoolVar(&o.Touch, "touch", o.Touch, "Write a StatefulSet of another namespace every second, as users of a busy cluster do.")
	fs.DurationVar(&o.Settle, "settle", o.Settle, "kube-apiserver's --feature-settle-period.")
	fs.StringVar(&o.Profiles, "profiles", o.Profiles, "A directory for CPU profiles of kube-apiserver; for a look, not for figures.")
}

// method is one way to write all objects.
type method struct {
	name string
	// workers is how many patches the plain client has under way, 0 for others.
	workers int
	// turnsOff is true for those that begin with a restart that turns the gate
	// off; the gate is off before the others.
	turnsOff bool
	// through is kube-apiserver's --feature-clear-through, "" for its default.
	through string
	// run does it and returns when all is done.
	run func(context.Context, *world) error
	// check looks at what is stored afterwards.
	check func(stored) error
}

var (
	ours       = method{name: "turning the gate off", turnsOff: true, run: turnOff, check: stored.cleared}
	throughAPI = method{name: "turning the gate off, through the API", turnsOff: true, through: api, run: turnOff, check: stored.cleared}
	migrator   = method{name: "storage version migrator", run: migrate, check: stored.migrated}
	// What etcd takes at best from a program that does nothing else.
	oneKey   = method{name: "etcd alone, one key per transaction", run: rewriter(1, keysUnderWay), check: stored.unchanged}
	manyKeys = method{name: "etcd alone, many keys per transaction", run: rewriter(mostKeys, transactionsUnderWay), check: stored.unchanged}
)

// patches is the plain client.
func patches(workers int) method {
	return method{
		name: fmt.Sprintf("patch client, %d workers", workers), workers: workers,
		run:   func(ctx context.Context, w *world) error { return patchAll(ctx, w, workers) },
		check: stored.cleared,
	}
}

// Run tries the methods on the same objects, for every size. With an error it returns
// what was measured before.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (r *result.Result, err error) {
	if o.Long {
		o = o.longer()
	}
	none := func(n int) bool { return n == 0 }
	o.Sweep = slices.DeleteFunc(slices.Clone(o.Sweep), none)
	for _, n := range slices.Concat(o.Sizes, o.Workers, o.Sweep, []int{o.Repetitions}) {
		if n < 1 {
			return nil, fmt.Errorf("sizes, repetitions and workers have to be above 0, one is %d", n)
		}
	}
	machine, err := measure.MachineMemory()
	if err != nil {
		return nil, err
	}
	for _, n := range append(slices.Clone(o.Sizes), o.Counted) {
		if err := room(n, o.kind.bytes, machine); err != nil {
			return nil, err
		}
	}
	if len(o.Sizes) == 0 || len(o.Workers) == 0 {
		return nil, errors.New("no sizes or no workers; say --sizes and --workers")
	}
	w, err := begin(ctx, bed, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	f := &found{}
	if err := f.take(ctx, w, o); err != nil {
		if len(f.rounds) == 0 {
			return nil, err
		}
		return report(f, o), err
	}
	return report(f, o), nil
}

// found are the runs of all methods that are compared, and those that only show where
// the plain client saturates.
type found struct {
	rounds []round
	sweep  []run
	// counts are what counting leftovers took.
	counts []count
}

// take runs all that is wanted.
func (f *found) take(ctx context.Context, w *world, o Options) error {
	all := []method{ours, throughAPI, migrator, oneKey, manyKeys}
	first := append(slices.Clone(all), o.plain()...)
	for range o.Repetitions {
		if err := f.round(ctx, w, o.Sizes[0], first); err != nil {
			return err
		}
	}
	// Each run takes minutes at the other sizes: the plain client runs as it is at its best.
	best := patches(fastest(f.rounds))
	for _, n := range o.Sizes[1:] {
		if err := f.round(ctx, w, n, append(slices.Clone(all), best)); err != nil {
			return err
		}
	}
	for _, workers := range o.Sweep {
		if slices.Contains(o.Workers, workers) {
			continue
		}
		one, err := w.try(ctx, patches(workers), o.Sizes[0])
		if err != nil {
			return err
		}
		f.sweep = append(f.sweep, one)
	}
	if o.Counted == 0 {
		return nil
	}
	var err error
	f.counts, err = w.count(ctx, o.Counted)
	return err
}

// plain is the plain client with each number of workers that may be its best.
func (o Options) plain() []method {
	var all []method
	for _, workers := range o.Workers {
		all = append(all, patches(workers))
	}
	return all
}

// round runs methods on one collection, one after the other.
func (f *found) round(ctx context.Context, w *world, n int, methods []method) error {
	var runs round
	for i := range methods {
		// The order rotates, so that none is always the first.
		one, err := w.try(ctx, methods[(i+len(f.rounds))%len(methods)], n)
		if err != nil {
			return err
		}
		runs = append(runs, one)
	}
	f.rounds = append(f.rounds, runs)
	return nil
}
