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

package clear

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/kubernetes-features/test/scale/measure"
)

// run is what one method took on one collection.
type run struct {
	method method
	kind   kind
	// objects is how many there were, bytes the size of each as it is stored.
	objects, bytes int
	// total is from the request until all is done, unready the part of it in which
	// the server restarted.
	total, unready time.Duration
	// waited is from the request to the first mark.
	waited time.Duration
	curve  *curve
	// rest and during are what other users saw before the request and while objects
	// were written.
	rest, during       measure.ForegroundStats
	apiserver, manager measure.Usage
	// rejected are requests that API priority and fairness turned away.
	rejected float64
}

// steady is the rate between the two marks, in objects a second.
func (r run) steady() float64 {
	return float64(r.objects) * (to - from) / r.curve.to.Sub(r.curve.from).Seconds()
}

// whole is the rate from the request until all is done.
func (r run) whole() float64 { return float64(r.objects) / r.total.Seconds() }

// try runs one method.
func (w *world) try(ctx context.Context, m method, k kind, n int) (run, error) {
	w.bed.Say("%s: %d %s", m.name, n, k.name)
	r := run{method: m, kind: k, objects: n}
	w.now = &r
	if err := w.settle(ctx, m, k, n); err != nil {
		return r, err
	}
	w.foreground.Take()
	if err := measure.Pause(ctx, w.options.Rest); err != nil {
		return r, err
	}
	r.rest = w.foreground.Take()

	begun := time.Now()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var err error
	if !m.turnsOff {
		if err := w.observe(ctx); err != nil {
			return r, err
		}
	}
	if r.curve, err = follow(following, w, n, func() { w.foreground.Take(); w.profile(following, "writing") }, func() { r.during = w.foreground.Take() }); err != nil {
		return r, err
	}
	err = m.run(ctx, w)
	r.total = time.Since(begun)
	if err != nil {
		stop()
	}
	err = errors.Join(err, r.curve.wait(stop))
	if w.apiserver != nil {
		var observeErr error
		r.apiserver, observeErr = w.apiserver.Stop()
		err = errors.Join(err, observeErr)
		r.manager, observeErr = w.manager.Stop()
		err = errors.Join(err, observeErr)
		w.apiserver, w.manager = nil, nil
	}
	if err != nil {
		return r, err
	}
	r.waited = r.curve.from.Sub(begun)
	found, err := look(ctx, w.Etcd)
	if err != nil {
		return r, err
	}
	if found.objects != n {
		return r, fmt.Errorf("%d objects are stored, there were %d", found.objects, n)
	}
	metrics, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
	for _, rejected := range metrics.Rejected() {
		r.rejected += rejected
	}
	w.bed.Say("%s: %.0f objects/s while it wrote, %.0f from the request in %s; p99 of others %s, at rest %s", m.name, r.steady(), r.whole(), r.total.Round(time.Millisecond),
		r.during.All.Percentile(99), r.rest.All.Percentile(99))
	return r, errors.Join(err, m.check(found))
}

// profileSeconds is for how long the processor is profiled.
const profileSeconds = 8

// profile takes a CPU profile of kube-apiserver if profiles are wanted. It does not
// wait.
func (w *world) profile(ctx context.Context, stage string) {
	if w.options.Profiles == "" {
		return
	}
	name := fmt.Sprintf("%s-%d-%d-%s.pprof", strings.ReplaceAll(strings.ReplaceAll(w.now.method.name, " ", "-"), ",", ""), w.now.objects, w.now.bytes, stage)
	go func() {
		if err := measure.Profile(ctx, w.Kube.CoreV1().RESTClient(), "profile", profileSeconds, filepath.Join(w.options.Profiles, name)); err != nil {
			w.bed.Say("no profile: %v", err)
		}
	}()
}
