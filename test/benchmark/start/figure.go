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

package start

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"k8s.io/kubernetes-features/test/benchmark/measure"
	"k8s.io/kubernetes-features/test/benchmark/testbed"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

const (
	// readyPeriod is how often a server is asked whether it is ready.
	readyPeriod = 20 * time.Millisecond
	quietPeriod = 100 * time.Millisecond
	patience    = 3 * time.Minute
)

// figure is what one start took. Times count from the start of the process.
type figure struct {
	// answers is the time at which the server answers at all, whatever it says.
	answers                  time.Duration
	ready, quiet, cpu        time.Duration
	writesReady, writesQuiet int64
	requests                 float64
	rss, database            int64
}

// run is one etcd with one server.
type run struct {
	*testbed.Cluster
	client *http.Client
}

// begin starts etcd alone.
func begin(ctx context.Context, bed *testbed.Bed, s server) (*run, error) {
	etcd := localcluster.Config{Only: []string{localcluster.Etcd}, FeatureGates: s.gates}
	if s.binary != "" {
		etcd.Binaries = map[string]string{localcluster.APIServer: s.binary}
	}
	c, err := bed.Start(ctx, etcd)
	if err != nil {
		return nil, err
	}
	// An administrator: the roles that let others ask come with the server.
	config, err := rest.TLSConfigFor(c.Config)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &run{Cluster: c, client: &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: time.Second}}, nil
}

// stop ends the server, if it runs.
func (r *run) stop(ctx context.Context) error {
	return r.Stop(ctx, localcluster.APIServer)
}

// start starts the server and measures until it is quiet. Profiles of it, if wanted, have
// the name.
func (r *run) start(ctx context.Context, o Options, profileName string) (figure, error) {
	var f figure
	profiler := measure.Profiler{Dir: o.Profiles, Client: r.Kube.CoreV1().RESTClient()}
	profiled := func() error { return nil }
	before, err := measure.DatabaseOf(ctx, r.Etcd)
	if err != nil {
		return f, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	seen := make(chan error, 1)
	go func() {
		err := r.untilReady(waiting, func() {
			if f.answers == 0 {
				f.answers, profiled = time.Since(begun), profiler.Begin(ctx, measure.Processor, profileSeconds, profileName)
			}
		})
		f.ready = time.Since(begun)
		database, statusErr := measure.DatabaseOf(waiting, r.Etcd)
		f.writesReady = database.Revision - before.Revision
		seen <- errors.Join(err, statusErr)
	}()
	err = r.Start(ctx, localcluster.APIServer)
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, <-seen); err != nil {
		return f, err
	}
	quiet, last, err := r.untilQuiet(waiting, o.Quiet)
	if err != nil {
		return f, err
	}
	f.quiet, f.writesQuiet, f.database = last.Sub(begun), quiet.Revision-before.Revision, quiet.InUse
	return f, errors.Join(r.used(ctx, &f), profiled())
}

// profileSeconds is for how long a start is profiled, from when the server answers.
const profileSeconds = 2

// untilReady asks a server that may not be there yet until it says that it is ready, and
// tells of each answer.
func (r *run) untilReady(ctx context.Context, answered func()) error {
	defer r.client.CloseIdleConnections()
	return wait.PollUntilContextCancel(ctx, readyPeriod, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Server(localcluster.APIServer)+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := r.client.Do(request)
		if err != nil {
			return false, nil
		}
		answered()
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

// untilQuiet returns the database once nothing was written for a while, and when the
// last write was seen.
func (r *run) untilQuiet(ctx context.Context, quietFor time.Duration) (measure.Database, time.Time, error) {
	var quiet measure.Database
	last := time.Now()
	err := wait.PollUntilContextCancel(ctx, quietPeriod, true, func(ctx context.Context) (bool, error) {
		now, err := measure.DatabaseOf(ctx, r.Etcd)
		if err != nil {
			return false, err
		}
		if now.Revision != quiet.Revision {
			last = time.Now()
		}
		quiet = now
		return time.Since(last) >= quietFor, nil
	})
	if err != nil {
		err = fmt.Errorf("waiting until kube-apiserver writes nothing for %s: %w", quietFor, err)
	}
	return quiet, last, err
}

// used adds what the server used up to now.
func (r *run) used(ctx context.Context, f *figure) error {
	pid, err := r.PID(localcluster.APIServer)
	if err != nil {
		return err
	}
	if f.cpu, err = measure.CPU(pid); err != nil {
		return err
	}
	if f.rss, _, err = measure.Memory(pid); err != nil {
		return err
	}
	metrics, err := measure.Scrape(ctx, r.Kube.CoreV1().RESTClient())
	f.requests = metrics.Requests(nil)
	return err
}
