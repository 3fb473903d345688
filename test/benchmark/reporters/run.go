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
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/featuregate"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// phase is what was measured during one part of a run.
type phase struct {
	measure.Part
	// behind is how many seconds after the last report the uses of all features were
	// right.
	behind float64
	// cores is how busy kube-apiserver was each time that the cluster was looked at at
	// rest.
	cores []float64
}

// run is a cluster of one size and what is measured in it.
type run struct {
	bed     *testbed.Bed
	c       *testbed.Cluster
	options Options
	kind

	fleet     *fleet.Fleet
	meter     *measure.Meter
	templates map[string]fleet.Template

	// arrivals is how long after the start of all each had reported.
	arrivals measure.Distribution
	// left counts reports that their processes could not take away in time.
	left atomic.Int64
}

// reports is the resource that the benchmark is about.
var reports = schema.GroupResource{Group: v1alpha1.GroupName, Resource: "featurereports"}

// during measures what happens while do runs.
func (r *run) during(ctx context.Context, what string, do func(context.Context) error) (phase, error) {
	r.bed.Say("%s: %s", r.kind, what)
	part, err := r.meter.During(ctx, reports, do)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	r.bed.Say("%s: %s: %.1f s, %v writes of reports, %v of features; processor %.1f s, that of the processes %.1f s; %v answers 429, of them %v",
		r.kind, what, part.Seconds, part.Reports, part.Features, part.Usage.CPU.Seconds(), part.Own.Seconds(), part.TooMany, part.Rejected)
	return phase{Part: part}, err
}

// start starts all processes at once and waits until all have reported and are
// counted.
func (r *run) start(ctx context.Context) (behind time.Duration, err error) {
	processes := r.fleet.Processes()
	counted, err := fleet.FollowUses(ctx, r.c.Features, fleet.Expected(processes))
	if err != nil {
		return 0, err
	}
	defer counted.Stop()
	begun := time.Now()
	for _, p := range processes {
		if err := p.Start(ctx); err != nil {
			return 0, err
		}
	}
	if r.arrivals, err = fleet.Arrivals(ctx, begun, processes); err != nil {
		return 0, err
	}
	last := time.Now()
	right, err := counted.Wait(ctx)
	// The watch may have shown it before the last process had its answer.
	return max(0, right.Sub(last)), err
}

// restart ends all processes in order and starts them again with a newer version, node
// by node, so many nodes at a time, as fast as they go. It returns how long after the
// last report uses had nothing but the newer version.
func (r *run) restart(ctx context.Context) (behind time.Duration, err error) {
	newer := r.newer()
	for group := range r.groups() {
		errs := make(chan error, len(group))
		for _, p := range group {
			go func() {
				if err := p.Stop(ctx); err != nil {
					// A real process ends all the same, and the next one rewrites the report.
					r.left.Add(1)
				}
				p.Become(newer[p.Component])
				errs <- p.Start(ctx)
			}()
		}
		for range group {
			if e := <-errs; e != nil {
				err = e
			}
		}
		if err != nil {
			return 0, err
		}
		if err := fleet.Reported(ctx, group); err != nil {
			return 0, err
		}
	}
	last := time.Now()
	counted, err := fleet.FollowUses(ctx, r.c.Features, fleet.Expected(r.fleet.Processes()))
	if err != nil {
		return 0, err
	}
	defer counted.Stop()
	right, err := counted.Wait(ctx)
	// The watch may have shown it before the last process had its answer.
	return max(0, right.Sub(last)), err
}

// newer are templates of the version that processes have after a restart, by component.
func (r *run) newer() map[string]*fleet.Template {
	newer := map[string]*fleet.Template{}
	for component, template := range r.templates {
		newer[component] = &template
	}
	return newer
}

// groups are the processes that are restarted together, node by node.
func (r *run) groups() iter.Seq[[]*fleet.Process] {
	return slices.Chunk(r.fleet.Processes(), r.options.Together*fleet.PerNode)
}

// windows is how many times the cluster is looked at at rest.
func (r *run) windows() int {
	if r.nodes != r.options.Budget {
		return 1
	}
	return r.options.Windows
}

// atRestFor measures the cluster at rest so many times, one after the other.
func (r *run) atRestFor(ctx context.Context, what string, windows int) (phase, error) {
	r.bed.Say("%s: %s, %d times %v", r.kind, what, windows, r.options.Rest)
	parts, err := r.meter.InTurn(ctx, reports, slices.Repeat([]func(context.Context) error{r.rest}, windows)...)
	if err != nil {
		return phase{}, fmt.Errorf("%s: %w", what, err)
	}
	p := phase{Part: measure.Sum(parts...)}
	for _, part := range parts {
		p.cores = append(p.cores, part.Usage.Cores())
	}
	r.bed.Say("%s: %s: %v writes of reports, %v of features; processor %.3f s a second, one time after the other %.3f", r.kind, what, p.Reports, p.Features, p.Usage.Cores(), p.cores)
	return p, nil
}

// rest does nothing for a while, with the load that a cluster at rest has.
func (r *run) rest(ctx context.Context) error {
	return measure.Pause(ctx, r.options.Rest)
}

// forget waits until the last writes of what was before are done and the past is
// forgotten: watch caches keep each version of the list of all objects until then.
// Without compactions it is not forgotten, and where the past is to be kept it may stay.
func (r *run) forget(ctx context.Context) error {
	if r.options.Compaction == 0 || r.past {
		return r.rest(ctx)
	}
	r.bed.Say("%s: waiting until the past is forgotten", r.kind)
	return measure.UntilCompacted(ctx, r.c.Etcd)
}

// memory is what kube-apiserver holds.
func (r *run) memory(ctx context.Context) (measure.Live, error) {
	l, err := r.meter.Memory(ctx)
	r.bed.Say("%s: %.1f MiB live heap, %.1f MiB spans with it, %.1f MiB free, %.1f MiB stacks, %.1f MiB resident", r.kind,
		measure.Mebibytes(l.Heap), measure.Mebibytes(l.Spans), measure.Mebibytes(l.Kept), measure.Mebibytes(l.Stacks), measure.Mebibytes(l.RSS))
	return l, err
}

// newRun starts a cluster with nodes and without processes.
func newRun(ctx context.Context, bed *testbed.Bed, options Options, templates map[string]fleet.Template, k kind) (*run, error) {
	interval := options.Compaction
	if k.past {
		interval = defaultCompaction
	}
	c, err := bed.Start(ctx, localcluster.Config{
		Only:         []string{localcluster.Etcd, localcluster.APIServer},
		FeatureGates: k.gates,
		ExtraArgs:    map[string][]string{localcluster.APIServer: {"--etcd-compaction-interval=" + interval.String()}},
	})
	if err != nil {
		return nil, err
	}
	r := &run{bed: bed, c: c, options: options, kind: k, templates: templates}
	return r, r.prepare(ctx)
}

func (r *run) prepare(ctx context.Context) error {
	pid, err := r.c.PID(localcluster.APIServer)
	if err != nil {
		return err
	}
	r.bed.Say("creating %d nodes", r.nodes)
	if err := fleet.CreateNodes(ctx, r.c.Kube, 0, r.nodes, r.templates[fleet.Kubelet].BinaryVersion); err != nil {
		return err
	}
	if err := r.populate(ctx); err != nil {
		return err
	}
	user, err := r.c.As(measure.ForegroundUser)
	if err != nil {
		return err
	}
	r.meter, err = measure.StartMeter(ctx, r.c.Kube, user, r.c.Etcd, pid, r.options.Foreground)
	return err
}

// populate makes the processes. The restart is to a newer version: that of the
// templates.
func (r *run) populate(ctx context.Context) error {
	older := map[string]fleet.Template{}
	for component, template := range r.templates {
		var err error
		if older[component], err = template.Older(); err != nil {
			return err
		}
	}
	var err error
	if r.fleet, err = fleet.New(ctx, r.c.FrontProxy(), older, r.nodes); err != nil {
		return err
	}
	r.fleet.LookForValues()
	for i := range r.nodes {
		r.fleet.Add(fleet.NodeName(i))
	}
	more, err := r.others(ctx)
	if err != nil {
		return err
	}
	return r.fleet.Vary(fleet.Variety{Lists: r.lists, Versions: r.versions, More: more})
}

// others are so many features that a kubelet does not report, as the servers know
// them: with the values that they are configured to have.
func (r *run) others(ctx context.Context) ([]featuregate.Observation, error) {
	if r.more == 0 {
		return nil, nil
	}
	known := map[string]bool{}
	for _, template := range r.templates {
		for _, o := range template.Observations {
			known[o.Name] = true
		}
	}
	var others []featuregate.Observation
	// A server that has just started gives Features their status one by one.
	err := wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		list, err := r.c.Features.FeaturesV1alpha1().Features(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		others = nil
		for _, f := range list.Items {
			if c := f.Status.Configured; !known[f.Name] && c != nil && len(others) < r.more {
				others = append(others, featuregate.Observation{Name: f.Name, Queried: true, Enabled: c.Value, Default: c.Value, Stage: v1alpha1.StageBeta})
			}
		}
		return len(others) == r.more, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the server has %d features that nodes do not report, fewer than the %d wanted; say a smaller --more: %w", len(others), r.more, err)
	}
	return others, nil
}

// patience bounds the wait for what a server does in seconds.
const patience = 5 * time.Minute

// end ends everything. The context of the run has ended.
func (r *run) end() error {
	r.fleet.Kill()
	r.meter.Stop()
	return r.c.Close()
}
