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

package disruption

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/kubernetes-features/test/integration/framework"
)

// clients is how many clients of each kind there are.
const clients = 3

// TestDisruptionsAtOnce is rest, all disruptions at once, rest, and nothing is left.
func TestDisruptionsAtOnce(t *testing.T) {
	s := readSettings(t)
	w := newWhole(t, s)
	w.said("%s of disruptions; the same choices again: SOAK_SEED=%d", s.duration, s.seed)
	defer func() { fmt.Fprintf(t.Output(), "\n%s\n", w.table()) }()
	defer w.keepEvidence()
	before := w.rest("before the faults", nil)
	w.populate()
	w.memory.follow()
	w.run()
	w.memory.end()
	if t.Failed() {
		return
	}
	for _, what := range idle(s.duration, w.happened) {
		t.Errorf("this happened too rarely: %s", what)
	}
	if says := often(w.happened(rests), w.happened(late)); says != "" {
		t.Error(says)
	}
	w.depopulate()
	if after := w.rest("after the faults", before); after != nil {
		w.memory.judge(before, after)
	}
}

// run lets all drivers drive for as long as the run lasts, and pauses them from
// time to time.
func (w *world) run() {
	ctx, stop := context.WithTimeout(w.t.Context(), w.duration)
	defer stop()
	var running sync.WaitGroup
	for _, d := range catalogue {
		if d.among != nil {
			running.Go(func() { w.drive(ctx, stop, d, &w.quiet) })
		}
	}
	for i := range clients {
		for _, d := range load {
			d.name += fmt.Sprint(" ", i)
			running.Go(func() { w.drive(ctx, stop, d, nil) })
		}
	}
	// Who stays has a sixth of the run to fill its caches before its memory is judged: those
	// of past events, which every kube-apiserver keeps, fill by the number of events.
	stay := time.AfterFunc(w.duration/3, func() {
		// A flip that is under way may still restart the server.
		w.turn.Lock()
		defer w.turn.Unlock()
		w.spares.Store(true)
	})
	defer stay.Stop()
	half := time.AfterFunc(w.duration/2, w.memory.begin)
	defer half.Stop()
	// Every five minutes, and twice in a short run.
	for pause := min(5*time.Minute, w.duration/3); ctx.Err() == nil; {
		hold(ctx, pause)
		if ctx.Err() == nil && !w.converge() {
			stop()
		}
	}
	running.Wait()
	if !w.t.Failed() {
		w.converge()
	}
}

// drive does one thing again and again, but not while quiet is held, nil for what happens
// always. Something that it cannot do ends the run.
func (w *world) drive(ctx context.Context, stop func(), d disruption, quiet *sync.RWMutex) {
	random := w.random(d.name)
	once := func() error {
		if quiet != nil {
			quiet.RLock()
			defer quiet.RUnlock()
			if ctx.Err() != nil {
				return nil
			}
		}
		limited, cancel := context.WithTimeout(w.t.Context(), 2*framework.Patience)
		defer cancel()
		return d.among(w, limited, random)
	}
	for {
		hold(ctx, between(random, d.least, d.most))
		if ctx.Err() != nil {
			return
		}
		if err := once(); err != nil {
			w.t.Errorf("%s: %v", d.name, err)
			stop()
			return
		}
	}
}
