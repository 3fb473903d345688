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

package reporters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/result"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
)

// Options are the sizes of the benchmark.
type Options struct {
	// Nodes are the sizes; each node has two processes that report.
	Nodes []int
	// Budget is the size that the budgets are for.
	Budget int
	// Rest is the time that the cluster is looked at at rest, without and with reporters.
	Rest time.Duration
	// Windows is how many times it is looked at that long in the size of the budgets, so
	// that the spread is known.
	Windows int
	// Compaction is kube-apiserver's --etcd-compaction-interval. Memory at rest is measured
	// when the past has been forgotten.
	Compaction time.Duration
	// Template is for how long a real node is watched for what it reports.
	Template time.Duration
	// Together is how many nodes restart their processes at a time.
	Together int
	// Foreground is how many requests a second other clients send.
	Foreground float64
	// Lists and More are for two more starts of all processes with the budgets' nodes:
	// of processes of two versions with so many different lists of features, and of
	// processes with so many features more. Without them there are none.
	Lists, More int
	// Profiles is a directory for profiles of kube-apiserver, none if empty.
	Profiles string
}

// Defaults are the sizes of the budgets, and those that show growth.
func Defaults() Options {
	return Options{Nodes: []int{500, 5000, 15000}, Budget: 5000, Rest: 65 * time.Second, Windows: 5, Compaction: 40 * time.Second, Template: 75 * time.Second, Together: 100, Foreground: 30, Lists: 200, More: 60}
}

// AddFlags adds the options as flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.IntSliceVar(&o.Nodes, "nodes", o.Nodes, "How many nodes; each has a kubelet and a kube-proxy that report. One run for each number.")
	fs.IntVar(&o.Budget, "budget-nodes", o.Budget, "The number of nodes that the budgets are compared with.")
	fs.DurationVar(&o.Rest, "rest", o.Rest, "For how long the cluster is looked at at rest, before and after.")
	fs.IntVar(&o.Windows, "windows", o.Windows, "How many times that is done with --budget-nodes.")
	fs.DurationVar(&o.Compaction, "compaction", o.Compaction, "kube-apiserver's --etcd-compaction-interval. Memory at rest is measured when the past has been forgotten; 0 lets it never be.")
	fs.DurationVar(&o.Template, "template", o.Template, "For how long a real node is watched for what it reports.")
	fs.IntVar(&o.Together, "together", o.Together, "How many nodes restart their processes at a time in the rolling restart.")
	fs.Float64Var(&o.Foreground, "foreground", o.Foreground, "Requests a second of other clients.")
	fs.IntVar(&o.Lists, "lists", o.Lists, "Start the processes of --budget-nodes once more, of two versions and with so many different lists of features; 0 does not.")
	fs.IntVar(&o.More, "more", o.More, "Start the processes of --budget-nodes once more, with so many features more; 0 does not.")
	fs.StringVar(&o.Profiles, "profiles", o.Profiles, "A directory for processor and heap profiles of kube-apiserver.")
}

// kind is one part of the benchmark: so many nodes, and what their processes report.
type kind struct {
	nodes int
	// name is what is different from what real processes report; empty if nothing is.
	name            string
	lists, versions int
	more            int
	// past is true where etcd is compacted as by default; all but the start of all is left
	// out, since waiting until the past is forgotten takes ten minutes each time.
	past bool
	// gates are --feature-gates of kube-apiserver.
	gates string
}

// kinds are the parts of the benchmark.
func (o Options) kinds() []kind {
	var kinds []kind
	for _, nodes := range o.Nodes {
		kinds = append(kinds, kind{nodes: nodes})
	}
	if o.Lists > 0 {
		kinds = append(kinds, kind{nodes: o.Budget, name: fmt.Sprintf("%d lists, two versions", o.Lists), lists: o.Lists, versions: 2})
	}
	if o.More > 0 {
		kinds = append(kinds, kind{nodes: o.Budget, name: fmt.Sprintf("%d features more", o.More), more: o.More})
	}
	if o.Compaction != 0 && o.Compaction != defaultCompaction {
		kinds = append(kinds, kind{nodes: o.Budget, name: "the past kept as by default", past: true})
	}
	return kinds
}

// defaultCompaction is kube-apiserver's --etcd-compaction-interval if nothing else is said.
const defaultCompaction = 5 * time.Minute

// outcome is what one part gave.
type outcome struct {
	kind
	before, storm, after, rolled phase
	// free is the memory at rest before processes report, counted that when all have just
	// been counted, resting that at rest later, when the past has been forgotten.
	free, counted, resting measure.Live
	stored, features       measure.Stored
	// afterStorm and afterRestart are etcd's database, past included.
	afterStorm, afterRestart measure.Database
	// arrivals is the time at which processes had reported after the start of all.
	arrivals measure.Distribution
	// left is how many reports could not be taken away in the restart.
	left int64
}

func (o outcome) processes() int { return fleet.PerNode * o.nodes }

// Run runs the benchmark. With an error it returns what was measured before.
func Run(ctx context.Context, bed *testbed.Bed, options Options) (*result.Result, error) {
	if !slices.Contains(options.Nodes, options.Budget) {
		return nil, fmt.Errorf("--budget-nodes=%d is none of --nodes=%v", options.Budget, options.Nodes)
	}
	if options.Windows < 1 {
		return nil, fmt.Errorf("--windows=%d: at rest the cluster has to be looked at once at least", options.Windows)
	}
	templates, err := fleet.Templates(ctx, bed, options.Template)
	if err != nil {
		return nil, err
	}
	var outcomes, peers []outcome
	for _, k := range options.kinds() {
		o, err := one(ctx, bed, options, templates, k, (*run).reporters)
		if err != nil {
			return describe(options, templates, outcomes, peers), fmt.Errorf("%s: %w", k, err)
		}
		outcomes = append(outcomes, o)
		if k.name != "" && !k.past {
			continue
		}
		k.name, k.gates = strings.TrimPrefix(k.name+", ConfigMaps", ", "), noSystem
		if o, err = one(ctx, bed, options, templates, k, (*run).aside); err != nil {
			return describe(options, templates, outcomes, peers), fmt.Errorf("%s: %w", k, err)
		}
		if k.past {
			outcomes = append(outcomes, o)
		} else {
			peers = append(peers, o)
		}
	}
	return describe(options, templates, outcomes, peers), nil
}

func (k kind) String() string {
	if k.name == "" {
		return fmt.Sprintf("%d nodes", k.nodes)
	}
	return fmt.Sprintf("%d nodes, %s", k.nodes, k.name)
}

// one measures one part in a cluster of its own.
func one(ctx context.Context, bed *testbed.Bed, options Options, templates map[string]fleet.Template, k kind, measured func(*run, context.Context, *outcome) error) (o outcome, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := newRun(ctx, bed, options, templates, k)
	if r != nil {
		defer func() {
			cancel()
			err = errors.Join(err, r.end())
		}()
	}
	if err != nil {
		return o, err
	}
	o.kind = k
	return o, measured(r, ctx, &o)
}

// reporters measures processes that report.
func (r *run) reporters(ctx context.Context, o *outcome) (err error) {
	if err := r.beginning(ctx, o, r.start); err != nil || r.past {
		return err
	}
	if err := r.settled(ctx, o); err != nil || r.name != "" {
		return err
	}
	if o.rolled, err = r.counted(ctx, "restart", "all processes are restarted with another version", r.restart); err != nil {
		return err
	}
	o.left = r.left.Load()
	o.afterRestart, err = measure.DatabaseOf(ctx, r.c.Etcd)
	return err
}

// beginning measures the cluster without processes, and the start of all of them.
func (r *run) beginning(ctx context.Context, o *outcome, start func(context.Context) (time.Duration, error)) (err error) {
	r.meter.Keep(ctx, func(ctx context.Context) error { return fleet.Beat(ctx, r.c.Kube, r.nodes) })
	r.meter.Keep(ctx, r.fleet.KeepOpen)
	if err := r.untilQuiet(ctx, o); err != nil {
		return err
	}
	if o.free, err = r.memory(ctx); err != nil {
		return err
	}
	if err := r.profiler().Take(ctx, measure.Heap, 0, r.profileName("free")); err != nil {
		return err
	}
	if o.storm, err = r.counted(ctx, "storm", "all processes start", start); err != nil {
		return err
	}
	o.arrivals = r.arrivals
	if o.afterStorm, err = measure.DatabaseOf(ctx, r.c.Etcd); err != nil {
		return err
	}
	o.counted, err = r.memory(ctx)
	return err
}

// quietTries is how often a cluster is looked at that is not at rest: one that has just
// got thousands of nodes counts their kubelets for some minutes, which do not report.
const quietTries = 4

// untilQuiet measures the cluster at rest without processes.
func (r *run) untilQuiet(ctx context.Context, o *outcome) (err error) {
	for range quietTries {
		if err := r.forget(ctx); err != nil {
			return err
		}
		if o.before, err = r.atRestFor(ctx, "at rest without processes", r.windows()); err != nil {
			return err
		}
		if err = o.quiet(); err == nil || r.options.Compaction == 0 {
			return nil
		}
		r.bed.Say("%s: %v", r.kind, err)
	}
	return err
}

// settled measures the cluster at rest with reporters.
func (r *run) settled(ctx context.Context, o *outcome) (err error) {
	// What they send by themselves depends on how long ago they started. Those that are
	// restarted later look by themselves.
	r.fleet.EndLooks()
	r.meter.Keep(ctx, r.fleet.Check)
	looking, settled := context.WithCancel(ctx)
	defer settled()
	r.meter.Keep(looking, r.fleet.Look)
	if err := r.atRest(ctx, o); err != nil {
		return err
	}
	if o.stored, err = measure.StoredBelow(ctx, r.c.Etcd, measure.ReportsPrefix); err != nil {
		return err
	}
	o.features, err = measure.StoredBelow(ctx, r.c.Etcd, measure.FeaturesPrefix)
	return err
}

// atRest measures the cluster at rest once all processes have written.
func (r *run) atRest(ctx context.Context, o *outcome) (err error) {
	if err := r.forget(ctx); err != nil {
		return err
	}
	profiled := r.profiler().Begin(ctx, measure.Processor, profileSeconds, r.profileName("steady"))
	o.after, err = r.atRestFor(ctx, "at rest, all have written", r.windows())
	if err = errors.Join(err, profiled()); err != nil {
		return err
	}
	if o.resting, err = r.memory(ctx); err != nil {
		return err
	}
	return r.profiler().Take(ctx, measure.Heap, 0, r.profileName("rest"))
}

// busy is how many cores a kube-apiserver may use at rest without reporters. Budgets
// take what it uses then off what it uses with them: one that still did something else
// would meet them by that.
const busy = 0.5

// quiet is an error if the cluster was not at rest before processes report.
func (o *outcome) quiet() error {
	if cores := o.before.Usage.Cores(); cores > busy || o.before.Features > 0 || o.before.Reports > 0 {
		return fmt.Errorf("the cluster is not at rest before any process reports: kube-apiserver uses %.2f cores, and %d Features and %d reports were written; run it again when the machine is idle", cores, o.before.Features, o.before.Reports)
	}
	return nil
}

// counted measures what makes processes report.
func (r *run) counted(ctx context.Context, name, what string, do func(context.Context) (time.Duration, error)) (phase, error) {
	var behind time.Duration
	var profiled func() error
	p, err := r.during(ctx, what, func(ctx context.Context) error {
		profiled = r.profiler().Begin(ctx, measure.Processor, profileSeconds, r.profileName(name))
		var err error
		behind, err = do(ctx)
		return err
	})
	p.behind = behind.Seconds()
	if profiled != nil {
		err = errors.Join(err, profiled())
	}
	return p, err
}

// profileSeconds is for how long the processor is profiled.
const profileSeconds = 30

// profiler writes profiles of kube-apiserver if they are wanted.
func (r *run) profiler() measure.Profiler {
	return measure.Profiler{Dir: r.options.Profiles, Client: r.c.Kube.CoreV1().RESTClient()}
}

func (r *run) profileName(name string) string { return fmt.Sprintf("%s-%s", name, r.kind) }
