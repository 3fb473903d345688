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

package flip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

// feature is the dynamic feature. Nothing is to be done when it is turned off.
const (
	feature   = "PodDeletionCost"
	byDefault = true
)

// Options are sizes.
type Options struct {
	// Processes are the sizes, Budget is the one that promises are compared with.
	Processes []int
	Budget    int
	// Changes is how often a value is changed, on and off in turn, for each kind of
	// watchers.
	Changes int
	// Warm is the time that followers run before the cluster is looked at at rest: they
	// look at the list less and less often, down to every ten minutes. Their fourth look
	// comes after 160 to 235 s, the fifth after 610 s or later; those that came with very
	// many look again 450 s after their first answer or later. In between, for Rest, lists are
	// sent at the rate to which that comes.
	Warm, Rest time.Duration
	// Window is for how long at least everybody looks at what a change costs, whatever
	// kind of watchers has it how soon.
	Window time.Duration
	// Template is for how long a real node is watched for what it reports.
	Template time.Duration
	// Settle is kube-apiserver's --feature-settle-period.
	Settle time.Duration
	// Foreground is how many requests a second other clients send.
	Foreground float64
	// Before is a kube-apiserver of an earlier commit, which is measured before this one
	// with the same processes; "" for none. What it does not serve, processes do without.
	Before string
	// Profiles is a directory for profiles of kube-apiserver, "" for none.
	Profiles string
}

// Defaults are the sizes of a run that counts.
func Defaults() Options {
	return Options{Processes: []int{100, 1000, 10000}, Budget: 10000, Changes: 6, Warm: 240 * time.Second, Rest: time.Minute, Window: 5 * time.Second, Template: 75 * time.Second, Settle: 10 * time.Second, Foreground: 30}
}

// AddFlags makes the sizes flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Processes, "processes", o.Processes, "How many processes follow, two on each node. One run for each number.")
	fs.IntVar(&o.Budget, "budget-processes", o.Budget, "The number of processes that promises are compared with.")
	fs.IntVar(&o.Changes, "changes", o.Changes, "How often a value is changed, off and on in turn, for each kind of watchers.")
	fs.DurationVar(&o.Warm, "warm", o.Warm, "For how long processes follow before the cluster is looked at at rest. In --rest lists are sent at the rate of processes that have run for long; choose a time in which they hardly look by themselves.")
	fs.DurationVar(&o.Rest, "rest", o.Rest, "For how long the cluster is looked at at rest, without followers and with them.")
	fs.DurationVar(&o.Window, "window", o.Window, "For how long at least it is looked at what a change costs; shorter than the settle period.")
	fs.DurationVar(&o.Template, "template", o.Template, "For how long a real node is watched for what it reports.")
	fs.DurationVar(&o.Settle, "settle", o.Settle, "kube-apiserver's --feature-settle-period.")
	fs.Float64Var(&o.Foreground, "foreground", o.Foreground, "Requests a second of other clients.")
	fs.StringVar(&o.Before, "before", o.Before, "A kube-apiserver of an earlier commit, to be measured beside this one.")
	fs.StringVar(&o.Profiles, "profiles", o.Profiles, "A directory for CPU profiles of kube-apiserver during a flip; for a look, not for figures.")
}

func (o *Options) validate() error {
	if len(o.Processes) == 0 || o.Changes < 2 {
		return errors.New("there has to be a number of processes, and at least 2 changes; say --processes and --changes")
	}
	if o.Window < 0 || o.Window > o.Settle {
		return fmt.Errorf("--window=%s: a transition would end in it, which --settle=%s makes longer; say a shorter window", o.Window, o.Settle)
	}
	if len(o.Processes) > 1 && !slices.Contains(o.Processes, o.Budget) {
		return fmt.Errorf("--budget-processes=%d is none of --processes=%v", o.Budget, o.Processes)
	}
	return fleet.OfWholeNodes(o.Processes...)
}

// Run measures one size after the other, each in a cluster of its own. With an error
// it returns what was measured before.
func Run(ctx context.Context, bed *testbed.Bed, o Options) (*result.Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	templates, err := fleet.Templates(ctx, bed, o.Template)
	if err != nil {
		return nil, err
	}
	apply, err := applyTime()
	if err != nil {
		return nil, err
	}
	var outcomes []*outcome
	for _, n := range o.Processes {
		var before *outcome
		if o.Before != "" {
			bed.Say("%d processes: %s", n, o.Before)
			if before, err = one(ctx, bed, o, templates, n, o.Before); err != nil {
				return describe(o, templates, apply, outcomes), fmt.Errorf("%d processes, %s: %w", n, o.Before, err)
			}
		}
		found, err := one(ctx, bed, o, templates, n, "")
		if err != nil {
			return describe(o, templates, apply, outcomes), fmt.Errorf("%d processes: %w", n, err)
		}
		found.before = before
		outcomes = append(outcomes, found)
	}
	return describe(o, templates, apply, outcomes), nil
}

// one measures one size, with the kube-apiserver of this build or another one.
func one(ctx context.Context, bed *testbed.Bed, o Options, templates map[string]fleet.Template, n int, server string) (_ *outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := begin(ctx, bed, o, templates, n, server)
	if w != nil {
		defer func() {
			cancel()
			err = errors.Join(err, w.end())
		}()
	}
	if err != nil {
		return nil, err
	}
	found := &outcome{processes: n}
	if server != "" {
		return found, w.beside(ctx, found)
	}
	if err := w.reportAll(ctx); err != nil {
		return nil, err
	}
	for _, kind := range []struct {
		name string
		to   *kindOutcome
		open func(context.Context) (watchers, error)
	}{{"plain watches", &found.bound, w.openPlain}, {"informers of a ConfigMap", &found.peer, w.openPeer}} {
		if *kind.to, err = w.configMap(ctx, kind.name, kind.open); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return found, w.follow(ctx, found)
}

// beside measures followers alone.
func (w *world) beside(ctx context.Context, found *outcome) error {
	if err := w.reportAll(ctx); err != nil {
		return err
	}
	return w.follow(ctx, found)
}

// reportAll lets the server have the reports of all, whatever is measured.
func (w *world) reportAll(ctx context.Context) error {
	w.bed.Say("%d processes: all report", w.n)
	if err := w.report(ctx, w.fleet.Processes()); err != nil {
		return err
	}
	w.meter.Keep(ctx, w.fleet.Check)
	return nil
}
