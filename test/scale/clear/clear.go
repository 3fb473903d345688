//go:build linux

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

// Package clear measures how fast a field is removed from all objects of a
// collection: by turning its feature off, by the in-tree storage version migrator,
// which rewrites the same objects, and by a client that does nothing but patch. All
// work on the same kube-apiserver and etcd, beside the same load of other users.
package clear

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/scale/result"
	"k8s.io/kubernetes-features/test/scale/testbed"
)

// Options are sizes.
type Options struct {
	// Sizes are numbers of small StatefulSets, Large of those of 20 KiB.
	Sizes, Large []int
	// Workers are numbers of concurrent patches with which the plain client is tried
	// at the first size.
	Workers []int
	// Rate is how many requests other users send in a second, Rest for how long that
	// is measured while nothing else goes on.
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

// Defaults are the sizes of a run that counts.
func Defaults() Options {
	return Options{Sizes: []int{10_000, 30_000, 100_000}, Large: []int{10_000}, Workers: []int{1, 4, 16, 64}, Rate: 60, Rest: 15 * time.Second, Settle: 10 * time.Second}
}

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Sizes, "sizes", o.Sizes, "Numbers of small StatefulSets.")
	fs.IntSliceVar(&o.Large, "large", o.Large, "Numbers of StatefulSets of 20 KiB; 0 for none.")
	fs.IntSliceVar(&o.Workers, "workers", o.Workers, "Numbers of concurrent patches with which the plain client is tried at the first size.")
	fs.Float64Var(&o.Rate, "rate", o.Rate, "Requests that other users send in a second.")
	fs.DurationVar(&o.Rest, "rest", o.Rest, "For how long they are measured while nothing else goes on.")
	fs.BoolVar(&o.Touch, "touch", o.Touch, "Write a StatefulSet of another namespace every second, as users of a busy cluster do.")
	fs.DurationVar(&o.Settle, "settle", o.Settle, "kube-apiserver's --feature-settle-period.")
	fs.StringVar(&o.Profiles, "profiles", o.Profiles, "A directory for CPU profiles of kube-apiserver; for a look, not for figures.")
}

// clearWorkers is how many patches the plain client has under way beside the others.
const clearWorkers = 16

// method is one way to write all objects.
type method struct {
	name string
	role result.Role
	// turnsOff is true for the one that begins with a restart that turns the gate
	// off; the gate is off before the others.
	turnsOff bool
	// run does it and returns when all is done.
	run func(context.Context, *world) error
	// check looks at what is stored afterwards.
	check func(stored) error
}

const (
	ours     = "turning the gate off"
	migrator = "storage version migrator"
)

func patching(workers int) string { return fmt.Sprintf("patch client, %d workers", workers) }

func patchMethod(workers int) method {
	return method{
		name: patching(workers), role: result.Bound,
		run:   func(ctx context.Context, w *world) error { return patchAll(ctx, w, workers) },
		check: stored.cleared,
	}
}

// methods are what is compared.
func methods() []method {
	return []method{
		{name: ours, role: result.Ours, turnsOff: true, run: turnOff, check: stored.cleared},
		{name: migrator, role: result.Peer, run: migrate, check: stored.migrated},
		patchMethod(clearWorkers),
	}
}

// Run tries each method on the same objects, for every size.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (r *result.Result, err error) {
	o.Large = slices.DeleteFunc(slices.Clone(o.Large), func(n int) bool { return n == 0 })
	for _, n := range slices.Concat(o.Sizes, o.Large, o.Workers) {
		if n < 1 {
			return nil, fmt.Errorf("sizes and workers have to be above 0, one is %d", n)
		}
	}
	if len(o.Sizes) == 0 {
		return nil, errors.New("no sizes; say --sizes")
	}
	w, err := begin(ctx, bed, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var runs []run
	try := func(m method, kind kind, n int) error {
		one, err := w.try(ctx, m, kind, n)
		if err != nil {
			return fmt.Errorf("%s, %d %s: %w", m.name, n, kind.name, err)
		}
		runs = append(runs, one)
		return nil
	}
	turn := 0
	for _, k := range kinds {
		for _, n := range k.sizes(o) {
			all := methods()
			for i := range all {
				// The order rotates, so that none is always the first.
				if err := try(all[(i+turn)%len(all)], k, n); err != nil {
					return nil, err
				}
			}
			turn++
		}
	}
	for _, workers := range o.Workers {
		if workers != clearWorkers {
			if err := try(patchMethod(workers), kinds[0], o.Sizes[0]); err != nil {
				return nil, err
			}
		}
	}
	return report(runs, o), nil
}
