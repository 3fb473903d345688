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
	// Sizes are numbers of objects.
	Sizes []int
	// Repetitions is how often everything is run at the first size.
	Repetitions int
	// Workers are numbers of concurrent patches of the plain client, of which the fastest at
	// the first size counts; Sweep more of them that are tried once, at the first size.
	Workers, Sweep []int
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

// Defaults are the sizes of a run that counts, with small objects.
func Defaults() Options {
	return Options{
		kind: small, Sizes: []int{10_000, 30_000, 100_000}, Repetitions: 3, Workers: []int{16, 64}, Sweep: []int{1, 4},
		Rate: 60, Rest: 10 * time.Second, Touch: true, Settle: 10 * time.Second,
	}
}

// LargeDefaults are those with objects of 20 KiB.
func LargeDefaults() Options {
	o := Defaults()
	o.kind, o.Sizes = large, []int{10_000, 30_000}
	return o
}

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Sizes, "sizes", o.Sizes, "Numbers of "+o.kind.name+".")
	fs.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "How often everything is run at the first size; once at the others.")
	fs.IntSliceVar(&o.Workers, "workers", o.Workers, "Numbers of concurrent patches of the plain client. The fastest at the first size is run at the others.")
	fs.IntSliceVar(&o.Sweep, "sweep", o.Sweep, "More such numbers, which are tried once at the first size; 0 for none.")
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
	// turnsOff is true for the one that begins with a restart that turns the gate
	// off; the gate is off before the others.
	turnsOff bool
	// run does it and returns when all is done.
	run func(context.Context, *world) error
	// check looks at what is stored afterwards.
	check func(stored) error
}

var (
	ours     = method{name: "turning the gate off", turnsOff: true, run: turnOff, check: stored.cleared}
	migrator = method{name: "storage version migrator", run: migrate, check: stored.migrated}
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
	for _, n := range o.Sizes {
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
}

// take runs all that is wanted.
func (f *found) take(ctx context.Context, w *world, o Options) error {
	first := append([]method{ours, migrator}, o.plain()...)
	for range o.Repetitions {
		if err := f.round(ctx, w, o.Sizes[0], first); err != nil {
			return err
		}
	}
	// Each run takes minutes at the other sizes: the plain client runs as it is at its best.
	best := patches(fastest(f.rounds))
	for _, n := range o.Sizes[1:] {
		if err := f.round(ctx, w, n, []method{ours, migrator, best}); err != nil {
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
	return nil
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
