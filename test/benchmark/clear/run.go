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

package clear

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/kubernetes-features/test/benchmark/measure"
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
	// rest, during and all are what other clients saw before the request, while objects
	// were written, and from the request until all was done.
	rest, during, all measure.ForegroundStats
	// cpu is the processor time of kube-apiserver between the marks, allCPU from the
	// request, or from the restart that is the request, until all was done. atRest is how
	// many cores it used before the request, with the requests of other clients.
	cpu, allCPU time.Duration
	atRest      float64
	// apiserver and manager are observed from kube-apiserver's last start on, the
	// heap is what is alive of it.
	apiserver, manager measure.Usage
	// rested is kube-apiserver's heap before the request, after garbage was collected, in
	// bytes. That is before the restart that turns the gate off.
	rested int64
	// history is for how many past events of StatefulSets the watch cache has room.
	history float64
	// database is the size of etcd's file at the end, in bytes.
	database int64
}

// steady is the rate between the two marks, in objects a second.
func (r run) steady() float64 {
	return float64(r.objects) * (to - from) / r.curve.to.Sub(r.curve.from).Seconds()
}

// whole is the rate from the request until all is done.
func (r run) whole() float64 { return float64(r.objects) / r.total.Seconds() }

// perObject is kube-apiserver's processor time for one object while it is written, beyond
// what it uses at rest in the same time, in milliseconds.
func (r run) perObject() float64 {
	return r.beyondRest(r.cpu, r.curve.to.Sub(r.curve.from)) / (float64(r.objects) * (to - from))
}

// wholePerObject is that of all it did from the request until all was done.
func (r run) wholePerObject() float64 {
	return r.beyondRest(r.allCPU, r.total) / float64(r.objects)
}

// beyondRest is what is left of processor time without what it is at rest, in milliseconds:
// a tick at least, since less cannot be told apart.
func (r run) beyondRest(cpu, in time.Duration) float64 {
	return max(measure.Milliseconds(cpu)-r.atRest*measure.Milliseconds(in), measure.Milliseconds(measure.Tick))
}

// alive is kube-apiserver's heap after collections of garbage at its highest, in MiB.
func (r run) alive() float64 { return measure.Mebibytes(r.apiserver.HeapPeak) }

// restedHeap is that of before the request, in MiB.
func (r run) restedHeap() float64 { return measure.Mebibytes(r.rested) }

// aboveRest is by how much it was above that, in MiB.
func (r run) aboveRest() float64 { return r.alive() - r.restedHeap() }

// resident is its resident memory at its highest, in MiB.
func (r run) resident() float64 { return measure.Mebibytes(r.apiserver.RSSPeak) }

// p99 is that of other clients' requests, in milliseconds.
func (r run) p99() float64 { return measure.Milliseconds(r.during.All.Percentile(99)) }

// try runs one method.
func (w *world) try(ctx context.Context, m method, n int) (r run, err error) {
	k := w.options.kind
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %d %s: %w", m.name, n, k.name, err)
		}
	}()
	w.bed.Say("%s: %d %s", m.name, n, k.name)
	r = run{method: m, kind: k, objects: n}
	w.now = &r
	if err := w.settle(ctx, m, n); err != nil {
		return r, err
	}
	idle, idleSince := <-w.processor(ctx), time.Now()
	w.foreground.Take()
	if err := measure.Pause(ctx, w.options.Rest); err != nil {
		return r, err
	}
	r.rest = w.foreground.Take().Wait()

	asked := <-w.processor(ctx)
	begun := time.Now()
	r.atRest = (asked.cpu - idle.cpu).Seconds() / begun.Sub(idleSince).Seconds()
	defer w.profiles.Wait()
	following, stop := context.WithCancel(ctx)
	defer stop()
	var cpu [2]<-chan reading
	var waiting, writing *measure.ForegroundWindow
	first := func() {
		waiting = w.foreground.Take()
		cpu[0] = w.processor(ctx)
		w.profile(following, "writing")
	}
	last := func() {
		writing = w.foreground.Take()
		cpu[1] = w.processor(ctx)
	}
	if r.curve, err = follow(following, w, n, first, last); err != nil {
		return r, err
	}
	err = m.run(ctx, w)
	r.total = time.Since(begun)
	if err != nil {
		stop()
	}
	done := <-w.processor(ctx)
	err = errors.Join(err, r.curve.wait(stop))
	looking := w.foreground.Take()
	var observeErr error
	r.apiserver, r.manager, observeErr = w.observed()
	if err := errors.Join(err, observeErr); err != nil {
		return r, err
	}
	before, after := <-cpu[0], <-cpu[1]
	if err := errors.Join(idle.err, asked.err, before.err, after.err, done.err); err != nil {
		return r, err
	}
	r.during = writing.Wait()
	r.all = waiting.Wait().With(r.during, looking.Wait())
	r.cpu = after.cpu - before.cpu
	if r.allCPU = done.cpu; !m.turnsOff {
		r.allCPU -= asked.cpu
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
	database, databaseErr := measure.DatabaseOf(ctx, w.Etcd)
	r.database = database.Size
	r.history = metrics.Sum("watch_cache_capacity", map[string]string{"group": "apps", "resource": "statefulsets"})
	w.bed.Say("%s: %.0f objects/s while it wrote, %.0f from the request in %s; p99 of others %s, at rest %s", m.name, r.steady(), r.whole(), r.total.Round(time.Millisecond),
		r.during.All.Percentile(99), r.rest.All.Percentile(99))
	return r, errors.Join(err, databaseErr, m.check(found))
}

// reading is the processor time that kube-apiserver had used at a moment.
type reading struct {
	cpu time.Duration
	err error
}

// processor reads kube-apiserver's processor time. The kernel is asked at once, since a
// server answers late while it is busy. One that writes before its start was seen to end is
// not known yet, and is asked itself. Nothing waits for that: objects are counted meanwhile.
func (w *world) processor(ctx context.Context) <-chan reading {
	read := make(chan reading, 1)
	if cpu, err := measure.CPU(int(w.server.Load())); err == nil {
		read <- reading{cpu, nil}
		return read
	}
	go func() {
		metrics, err := measure.Scrape(ctx, w.Kube.CoreV1().RESTClient())
		read <- reading{time.Duration(metrics.Sum("process_cpu_seconds_total", nil) * float64(time.Second)), err}
	}()
	return read
}

// profileSeconds is for how long the processor is profiled.
const profileSeconds = 8

// profile takes a CPU profile of kube-apiserver if profiles are wanted, after the one that
// is under way: there is one at a time. It does not wait.
func (w *world) profile(ctx context.Context, stage string) {
	profiler := measure.Profiler{Dir: w.options.Profiles, Client: w.Kube.CoreV1().RESTClient()}
	name := fmt.Sprintf("%s-%d-%d-%s", w.now.method.name, w.now.objects, w.now.bytes, stage)
	w.profiles.Go(func() {
		w.profiling.Lock()
		defer w.profiling.Unlock()
		if err := profiler.Take(ctx, measure.Processor, profileSeconds, name); err != nil {
			w.bed.Say("no profile: %v", err)
		}
	})
}
