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
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/kubernetes-features/test/integration/framework"
)

// clients is how many clients of each kind there are.
const clients = 3

// driver does one kind of thing again and again.
type driver struct {
	name string
	// least and most bound the pause between two times.
	least, most time.Duration
	// calm is true for what goes on while the cluster recovers: load.
	calm bool
	// act does it once. Its context lasts longer than the run, so that what was
	// begun is ended.
	act func(ctx context.Context, random *rand.Rand) error
}

// drivers are all that there are.
func (w *world) drivers() []driver {
	drivers := []driver{
		{"flips by command line", 5 * time.Second, 30 * time.Second, false, w.flipByRestart},
		{"flips through the API", time.Second, 8 * time.Second, false, w.flipThroughAPI},
		{"crashes", 5 * time.Second, 30 * time.Second, false, w.crash},
		{"freezes", 5 * time.Second, 30 * time.Second, false, w.freeze},
		{"deaths of etcd", 30 * time.Second, 90 * time.Second, false, w.killEtcd},
		{"compactions", 2 * time.Second, 20 * time.Second, false, w.compact},
		{"defragmentations", 15 * time.Second, 60 * time.Second, false, w.defragment},
		{"nodes that come and go", time.Second, 8 * time.Second, false, w.people.churnNodes},
		{"reporters that come and go", 500 * time.Millisecond, 4 * time.Second, false, w.people.churnReporters},
		{"objects that use features", 50 * time.Millisecond, 500 * time.Millisecond, false, w.objects.churn},
	}
	for i := range clients {
		drivers = append(drivers,
			driver{fmt.Sprint("reader ", i), 20 * time.Millisecond, 400 * time.Millisecond, true, w.read},
			driver{fmt.Sprint("watcher ", i), 100 * time.Millisecond, time.Second, true, w.watch},
			driver{fmt.Sprint("writer ", i), 50 * time.Millisecond, 500 * time.Millisecond, true, w.write})
	}
	return drivers
}

// run lets all drivers drive for as long as the run lasts, and pauses them from
// time to time.
func (w *world) run() {
	ctx, stop := context.WithTimeout(w.t.Context(), w.duration)
	defer stop()
	var running sync.WaitGroup
	for _, d := range w.drivers() {
		running.Go(func() { w.drive(ctx, stop, d) })
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

// drive runs one driver. Something that it cannot do ends the run.
func (w *world) drive(ctx context.Context, stop func(), d driver) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(d.name))
	random := rand.New(rand.NewPCG(w.seed, name.Sum64()))
	for {
		hold(ctx, between(random, d.least, d.most))
		if ctx.Err() != nil {
			return
		}
		if err := w.once(ctx, d, random); err != nil {
			w.t.Errorf("%s: %v", d.name, err)
			stop()
			return
		}
	}
}

func (w *world) once(ctx context.Context, d driver, random *rand.Rand) error {
	if !d.calm {
		w.quiet.RLock()
		defer w.quiet.RUnlock()
		if ctx.Err() != nil {
			return nil
		}
	}
	limited, cancel := context.WithTimeout(w.t.Context(), 2*framework.Patience)
	defer cancel()
	return d.act(limited, random)
}
