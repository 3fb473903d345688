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

package measure

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Meter measures a kube-apiserver during parts of a run: what it uses, what is written
// to its etcd, and what other clients see, whose requests it sends all the while.
type Meter struct {
	client     rest.Interface
	pid        int
	foreground *Foreground
	writes     *Writes

	kept   sync.WaitGroup
	failed chan error
}

// Part is what was measured during one part of a run.
type Part struct {
	Seconds    float64
	Usage      Usage
	Foreground ForegroundStats
	// Own is the processor time of this process, which shares the machine.
	Own time.Duration
	Written
	// TooMany are answers 429, Rejected those that priority and fairness gave, by flow
	// schema and reason.
	TooMany  float64
	Rejected map[string]float64
	// Lists and Events are those of the resource that was looked at, Bytes is the size
	// of these events.
	Lists, Events, Bytes float64
}

// Refused is how many of other clients' requests were answered 429.
func (p Part) Refused() float64 { return float64(p.Foreground.Refused()) }

// Sum is what was measured during several parts, one after the other.
func Sum(parts ...Part) (sum Part) {
	sum.Rejected = map[string]float64{}
	for _, p := range parts {
		sum.Seconds += p.Seconds
		sum.Usage = sum.Usage.With(p.Usage)
		sum.Foreground = sum.Foreground.With(p.Foreground)
		sum.Own += p.Own
		sum.Written = sum.Written.with(p.Written)
		sum.TooMany += p.TooMany
		for why, n := range p.Rejected {
			sum.Rejected[why] += n
		}
		sum.Lists, sum.Events, sum.Bytes = sum.Lists+p.Lists, sum.Events+p.Events, sum.Bytes+p.Bytes
	}
	return sum
}

// StartMeter starts to send the foreground's requests, so many a second, until Stop is
// called. Admin reaches the server that has the process id, user is who everybody
// else is.
func StartMeter(ctx context.Context, admin kubernetes.Interface, user *rest.Config, etcd *clientv3.Client, pid int, rate float64) (*Meter, error) {
	m := &Meter{client: admin.CoreV1().RESTClient(), pid: pid, failed: make(chan error, 1)}
	var err error
	if m.foreground, err = StartForeground(ctx, admin, user, rate); err != nil {
		return nil, err
	}
	if m.writes, err = CountWrites(ctx, etcd); err != nil {
		m.foreground.Stop()
		return nil, err
	}
	return m, nil
}

// Keep does something in the background. Its error fails the part in which it comes.
// It has to end with its context, which has to end before Stop is called.
func (m *Meter) Keep(ctx context.Context, do func(context.Context) error) {
	m.kept.Go(func() {
		if err := do(ctx); err != nil {
			select {
			case m.failed <- err:
			default:
			}
		}
	})
}

// Stop ends everything. A meter that could not be started is nil and has nothing to
// end.
func (m *Meter) Stop() {
	if m == nil {
		return
	}
	m.foreground.Stop()
	m.writes.Stop()
	m.kept.Wait()
}

// During measures while do runs, and looks at one resource in particular.
func (m *Meter) During(ctx context.Context, of schema.GroupResource, do func(context.Context) error) (Part, error) {
	parts, err := m.InTurn(ctx, of, do)
	return parts[0], err
}

// InTurn measures parts that follow each other, so that nothing of what is counted
// lies between two. It returns as many as there are functions, also with an error.
func (m *Meter) InTurn(ctx context.Context, of schema.GroupResource, parts ...func(context.Context) error) ([]Part, error) {
	all, windows := make([]Part, len(parts)), make([]*ForegroundWindow, len(parts))
	from, err := m.begin(ctx)
	for i := 0; err == nil && i < len(parts); i++ {
		all[i], from, windows[i], err = m.part(ctx, from, of, parts[i])
	}
	if from.observed != nil {
		// Samples after the last part are not read.
		from.observed.stop()
	}
	// What is waited for was sent in a part, and is not to hold up the next one.
	for i, window := range windows {
		if window != nil {
			all[i].Foreground = window.Wait()
		}
	}
	return all, err
}

// moment is what there was when a part began.
type moment struct {
	metrics  Metrics
	own      time.Duration
	observed *Process
}

// begin is the beginning of the first part: what was counted before it is forgotten.
func (m *Meter) begin(ctx context.Context) (from moment, err error) {
	if from.metrics, err = Scrape(ctx, m.client); err != nil {
		return from, err
	}
	if from.own, err = CPU(os.Getpid()); err != nil {
		return from, err
	}
	m.foreground.Take()
	if _, err := m.writes.Take(); err != nil {
		return from, err
	}
	from.observed, err = ObserveProcess(ctx, m.pid, nil)
	return from, err
}

// part measures one part, and returns the moment at which the next one begins.
func (m *Meter) part(ctx context.Context, from moment, of schema.GroupResource, do func(context.Context) error) (p Part, next moment, others *ForegroundWindow, err error) {
	begun := time.Now()
	doErr := do(ctx)
	p.Seconds = time.Since(begun).Seconds()
	if p.Usage, err = from.observed.Stop(); err != nil || doErr != nil {
		return p, next, others, errors.Join(doErr, err)
	}
	if next.observed, err = ObserveProcess(ctx, m.pid, nil); err != nil {
		return p, next, others, err
	}
	others = m.foreground.Take()
	if p.Written, err = m.writes.Take(); err != nil {
		return p, next, others, err
	}
	if next.own, err = CPU(os.Getpid()); err != nil {
		return p, next, others, err
	}
	p.Own = next.own - from.own
	if next.metrics, err = Scrape(ctx, m.client); err != nil {
		return p, next, others, err
	}
	p.compare(from.metrics, next.metrics, of)
	select {
	case err := <-m.failed:
		return p, next, others, err
	default:
		return p, next, others, nil
	}
}

// Memory collects garbage in the server and returns what is left.
func (m *Meter) Memory(ctx context.Context) (Live, error) { return LiveMemory(ctx, m.client, m.pid) }

// compare takes what the server counted itself.
func (p *Part) compare(before, after Metrics, of schema.GroupResource) {
	p.TooMany = after.TooManyRequests() - before.TooManyRequests()
	p.Rejected = after.Rejected()
	for why, n := range before.Rejected() {
		// After a restart the server counts from zero.
		if p.Rejected[why] -= n; p.Rejected[why] <= 0 {
			delete(p.Rejected, why)
		}
	}
	labels := map[string]string{"group": of.Group, "resource": of.Resource}
	p.Events = after.Sum("apiserver_watch_events_total", labels) - before.Sum("apiserver_watch_events_total", labels)
	p.Bytes = after.Sum("apiserver_watch_events_sizes_sum", labels) - before.Sum("apiserver_watch_events_sizes_sum", labels)
	labels["verb"] = "LIST"
	p.Lists = after.Requests(labels) - before.Requests(labels)
}
