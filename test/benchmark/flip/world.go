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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"

	"k8s.io/kubernetes-features/test/benchmark/fleet"
	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
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
	// followed are the objects that followers watch: FeatureValues, or Features where the
	// server has no FeatureValues.
	followed schema.GroupResource

	fleet *fleet.Fleet
	meter *measure.Meter
}

// begin starts a cluster with nodes, and processes that do not run yet.
func begin(ctx context.Context, bed *testbed.Bed, o Options, templates map[string]fleet.Template, n int, server string) (*world, error) {
	config := localcluster.Config{
		Only:      []string{localcluster.Etcd, localcluster.APIServer},
		Control:   localcluster.ControlOptions{DynamicFeatures: []string{feature}},
		ExtraArgs: map[string][]string{localcluster.APIServer: {"--feature-settle-period=" + o.Settle.String()}},
	}
	if server != "" {
		config.Binaries = map[string]string{localcluster.APIServer: server}
	}
	c, err := bed.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	w := &world{Cluster: c, bed: bed, options: o, templates: templates, n: n, followed: features}
	served, err := c.Kube.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return w, err
	}
	if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == values.Resource }) {
		w.followed = values
	}
	return w, w.prepare(ctx)
}

func (w *world) prepare(ctx context.Context) error {
	pid, err := w.PID(localcluster.APIServer)
	if err != nil {
		return err
	}
	nodes := w.n / fleet.PerNode
	w.bed.Say("%d processes on %d nodes", w.n, nodes)
	if err := fleet.CreateNodes(ctx, w.Kube, 0, nodes, w.templates[fleet.Kubelet].BinaryVersion); err != nil {
		return err
	}
	if err := w.prepareConfigMap(ctx); err != nil {
		return err
	}
	if w.fleet, err = fleet.New(ctx, w.FrontProxy(), w.templates, nodes); err != nil {
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
	if w.meter, err = measure.StartMeter(ctx, w.Kube, user, w.Etcd, pid, w.options.Foreground); err != nil {
		return err
	}
	w.meter.Keep(ctx, func(ctx context.Context) error { return fleet.Beat(ctx, w.Kube, nodes) })
	w.meter.Keep(ctx, w.fleet.KeepOpen)
	return nil
}

// end ends everything. The context of the run has ended.
func (w *world) end() error {
	w.fleet.Kill()
	w.meter.Stop()
	return w.Close()
}

// open returns how many watches of a resource the server has.
func (w *world) open(ctx context.Context, of schema.GroupResource) (float64, error) {
	m, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
	return m.Sum("apiserver_longrunning_requests", map[string]string{"group": of.Group, "resource": of.Resource, "verb": "WATCH"}), err
}

// untilOpen waits until the server has so many watches of a resource, or no more
// than that if they close.
func (w *world) untilOpen(ctx context.Context, of schema.GroupResource, enough func(float64) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last float64
	err := wait.PollUntilContextCancel(ctx, openPeriod, true, func(ctx context.Context) (bool, error) {
		var err error
		last, err = w.open(ctx, of)
		return enough(last), err
	})
	if err != nil {
		return fmt.Errorf("kube-apiserver has %v watches of %s: %w", last, of.Resource, err)
	}
	return nil
}

// openPeriod is how often the server is asked for its watches; asking costs it some
// 20 ms.
const openPeriod = 500 * time.Millisecond

// profileSeconds is for how long a flip is profiled.
const profileSeconds = 10

// profile takes profiles of kube-apiserver and of the watchers if that is wanted, and what
// kube-apiserver has allocated before and after; wait waits for them.
func (w *world) profile(ctx context.Context, name string) (wait func() error) {
	profiler := measure.Profiler{Dir: w.options.Profiles, Client: w.Kube.CoreV1().RESTClient()}
	name = fmt.Sprintf("%s-%d", name, w.n)
	before := profiler.Take(ctx, measure.Allocations, 0, name+"-before")
	stop, own := profiler.Own(name + "-watchers")
	server := profiler.Begin(ctx, measure.Processor, profileSeconds, name)
	return func() error {
		err := errors.Join(before, own, server())
		if own == nil {
			err = errors.Join(err, stop())
		}
		return errors.Join(err, profiler.Take(ctx, measure.Allocations, 0, name+"-after"))
	}
}
