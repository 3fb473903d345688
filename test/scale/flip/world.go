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

package flip

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/scale/fleet"
	"k8s.io/kubernetes-features/test/scale/measure"
	"k8s.io/kubernetes-features/test/scale/testbed"
)

// patience bounds every wait.
const patience = 10 * time.Minute

// world is a cluster of one size.
type world struct {
	*testbed.Cluster
	bed       *testbed.Bed
	options   Options
	templates map[string]fleet.Template
	n         int

	pid        int
	fleet      *fleet.Fleet
	foreground *measure.Foreground
	writes     *measure.Writes

	load   sync.WaitGroup
	failed chan error
}

// load is what went on in kube-apiserver during a part of a run.
type load struct {
	seconds    float64
	usage      measure.Usage
	foreground measure.ForegroundStats
	// own is the processor time of the watchers, which share the machine.
	own time.Duration
	// reports, features and writes are what was written to etcd.
	reports, features, writes int
	// tooMany are answers 429, lists and events those of the watched resource, bytes
	// the size of these events.
	tooMany, lists, events, bytes float64
}

// watched names the resource that watchers watch, as metrics do.
type watched struct{ group, resource string }

// begin starts a cluster with nodes, and processes that do not run yet.
func begin(ctx context.Context, bed *testbed.Bed, o Options, templates map[string]fleet.Template, n int) (*world, error) {
	c, err := bed.Start(ctx, cluster.Config{
		Only:      []string{cluster.Etcd, cluster.APIServer},
		Control:   cluster.ControlOptions{DynamicFeatures: []string{feature}},
		ExtraArgs: map[string][]string{cluster.APIServer: {"--feature-settle-period=" + o.Settle.String()}},
	})
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, bed: bed, options: o, templates: templates, n: n, failed: make(chan error, 1)}
	return w, w.prepare(ctx)
}

func (w *world) prepare(ctx context.Context) error {
	var err error
	if w.pid, err = w.PID(cluster.APIServer); err != nil {
		return err
	}
	nodes := w.n / perNode
	w.bed.Say("%d processes on %d nodes", w.n, nodes)
	if err := fleet.CreateNodes(ctx, w.Kube, 0, nodes, w.templates[fleet.Kubelet].BinaryVersion); err != nil {
		return err
	}
	if err := w.prepareConfigMap(ctx); err != nil {
		return err
	}
	if w.fleet, err = fleet.New(ctx, w.Config, w.templates, nodes); err != nil {
		return err
	}
	w.fleet.Ask(feature, byDefault)
	for i := range nodes {
		w.fleet.Add(fleet.NodeName(i))
	}
	user, err := w.As(measure.ForegroundUser)
	if err != nil {
		return err
	}
	if w.foreground, err = measure.StartForeground(ctx, w.Kube, user, w.options.Foreground); err != nil {
		return err
	}
	if w.writes, err = measure.CountWrites(ctx, w.Etcd); err != nil {
		return err
	}
	w.keep(ctx, func(ctx context.Context) error { return fleet.Beat(ctx, w.Kube, nodes) })
	return nil
}

// keep does something in the background until the run ends; its error fails the part
// in which it comes.
func (w *world) keep(ctx context.Context, do func(context.Context) error) {
	w.load.Go(func() {
		if err := do(ctx); err != nil {
			select {
			case w.failed <- err:
			default:
			}
		}
	})
}

// end ends everything. The context of the run has ended.
func (w *world) end() error {
	if w.fleet != nil {
		for _, p := range w.fleet.Processes() {
			p.Kill()
		}
	}
	if w.foreground != nil {
		w.foreground.Stop()
	}
	if w.writes != nil {
		w.writes.Stop()
	}
	w.load.Wait()
	return w.Close()
}

// during measures kube-apiserver while do runs.
func (w *world) during(ctx context.Context, of watched, do func(context.Context) error) (l load, err error) {
	client := w.Kube.CoreV1().RESTClient()
	before, err := measure.Scrape(ctx, client)
	if err != nil {
		return l, err
	}
	w.foreground.Take()
	if _, _, _, err := w.writes.Take(); err != nil {
		return l, err
	}
	own, err := measure.CPU(os.Getpid())
	if err != nil {
		return l, err
	}
	observed, err := measure.ObserveProcess(ctx, w.pid, nil)
	if err != nil {
		return l, err
	}
	begun := time.Now()
	doErr := do(ctx)
	l.seconds = time.Since(begun).Seconds()
	if l.usage, err = observed.Stop(); err != nil || doErr != nil {
		return l, errors.Join(doErr, err)
	}
	l.foreground = w.foreground.Take()
	now, err := measure.CPU(os.Getpid())
	if err != nil {
		return l, err
	}
	l.own = now - own
	if l.reports, l.features, l.writes, err = w.writes.Take(); err != nil {
		return l, err
	}
	after, err := measure.Scrape(ctx, client)
	if err != nil {
		return l, err
	}
	labels := map[string]string{"group": of.group, "resource": of.resource}
	difference := func(name string) float64 { return after.Sum(name, labels) - before.Sum(name, labels) }
	l.tooMany = after.TooManyRequests() - before.TooManyRequests()
	l.events, l.bytes = difference("apiserver_watch_events_total"), difference("apiserver_watch_events_sizes_sum")
	labels["verb"] = "LIST"
	l.lists = after.Requests(labels) - before.Requests(labels)
	select {
	case err := <-w.failed:
		return l, err
	default:
		return l, nil
	}
}

// open returns how many watches of a resource the server has.
func (w *world) open(ctx context.Context, of watched) (float64, error) {
	m, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
	return m.Sum("apiserver_longrunning_requests", map[string]string{"group": of.group, "resource": of.resource, "verb": "WATCH"}), err
}

// untilOpen waits until the server has so many watches of a resource, or no more
// than that if they close.
func (w *world) untilOpen(ctx context.Context, of watched, enough func(float64) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last float64
	err := wait.PollUntilContextCancel(ctx, openPeriod, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = w.open(ctx, of)
		return enough(last), err
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver has %v watches of %s: %w", last, of.resource, err)
	}
	return nil
}

// openPeriod is how often the server is asked for its watches; asking costs it some
// 20 ms.
const openPeriod = 500 * time.Millisecond

// memory is the live heap and the resident memory of kube-apiserver, in bytes.
type memory struct{ heap, rss int64 }

func (w *world) memory(ctx context.Context) (m memory, err error) {
	m.heap, m.rss, err = measure.LiveMemory(ctx, w.Kube.CoreV1().RESTClient(), w.pid)
	return m, err
}

func (m memory) less(before memory) memory { return memory{m.heap - before.heap, m.rss - before.rss} }

// profileSeconds is for how long a flip is profiled.
const profileSeconds = 10

// profile takes a CPU profile of kube-apiserver if that is wanted; wait waits for it.
func (w *world) profile(ctx context.Context, name string) (wait func() error) {
	if w.options.Profiles == "" {
		return func() error { return nil }
	}
	done := make(chan error, 1)
	go func() {
		done <- measure.Profile(ctx, w.Kube.CoreV1().RESTClient(), "profile", profileSeconds, filepath.Join(w.options.Profiles, fmt.Sprintf("%s-%d.pprof", name, w.n)))
	}()
	return func() error { return <-done }
}
