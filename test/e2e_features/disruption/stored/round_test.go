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

package stored

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// round is one transition from On to Off.
type round struct {
	w    *world
	row  *row
	mark int
	// before is what was stored before anything was cleared, having is how many of these
	// objects have the field, and revision was etcd's.
	before   map[string]object
	having   int
	revision int64
	// conflicts is how many there were before.
	conflicts int
	progress  *progress

	rival    *rival
	watchers []*watcher
	informed []*informed
	// marked is the name of the object that ends all watches.
	marked string
}

// begin stores objects with the field and restarts the servers with the gate off, after what
// else is to be prepared. The Feature is paused: nothing is cleared before resume.
func (w *world) begin(t *testing.T, row *row, prepare ...func()) *round {
	t.Helper()
	if w.history.Last().Status.State != v1alpha1.StateOn {
		mark := w.history.Mark()
		w.configure(t, true)
		w.history.Wait(t, max(mark-1, 0), "On", framework.In(v1alpha1.StateOn))
	}
	w.populate(t)
	w.pause(t, true)
	for _, do := range prepare {
		do()
	}
	r := &round{w: w, row: row, mark: w.history.Mark(), conflicts: w.conflicts(t)}
	w.configure(t, false)
	r.before, r.revision = w.stored(t)
	for name, object := range r.before {
		if framework.HasMaxUnavailable(decode(t, name, object.data)) {
			r.having++
		}
	}
	return r
}

// resume lets clearing begin, and another client write meanwhile.
func (r *round) resume(t *testing.T) {
	t.Helper()
	r.row.transitions++
	r.progress = newProgress(t, r.w.etcd, r.revision+1)
	r.rival = newRival(t, r.w, r.before)
	r.w.pause(t, false)
}

// end waits for Off and judges the round.
func (r *round) end(t *testing.T) {
	t.Helper()
	turning := false
	r.w.history.Wait(t, r.mark, "Off", func(v framework.FeatureVersion) bool {
		turning = turning || v.Status.State == v1alpha1.StateTurningOff
		return turning && v.Status.State == v1alpha1.StateOff
	})
	r.row.contested += r.rival.end(t)
	versions := r.w.history.Since(r.mark)
	for invariant, check := range map[string]func([]framework.FeatureVersion) string{"S1": framework.FalseState, "S2": framework.EarlyTask, "S3": framework.LostTask} {
		if what := check(versions); what != "" {
			t.Errorf("%s: %s", invariant, what)
		}
	}
	if ids := framework.Transitions(versions); len(ids) != 1 {
		t.Errorf("S3: the round had these transitions, want 1: %v", ids)
	}
	after, _ := r.w.stored(t)
	r.row.objects += len(r.before)
	compare(t, r.before, after, r.rival.wrote)
	r.endWatches(t)
	r.row.conflicts += r.w.conflicts(t) - r.conflicts
	for _, s := range r.w.servers {
		ended, err := s.metricOf(t.Context(), "apiserver_terminated_watchers_total")
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		r.row.slow += ended
	}
}

// over is true once the transition has ended.
func (r *round) over() bool {
	v := r.w.history.Last()
	return v.Status.State == v1alpha1.StateOff && len(framework.Transitions(r.w.history.Since(r.mark))) > 0
}

// progress follows in etcd which objects have lost the field.
type progress struct {
	mu sync.Mutex
	// cleared are the keys of these objects.
	cleared map[string]bool
	news    chan struct{}
	err     error
}

// newProgress follows what is written from a revision on, until the test ends.
func newProgress(t *testing.T, etcd *clientv3.Client, from int64) *progress {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &progress{cleared: map[string]bool{}, news: make(chan struct{})}
	watching := etcd.Watch(ctx, framework.StatefulSetsKey, clientv3.WithPrefix(), clientv3.WithRev(from))
	var done sync.WaitGroup
	done.Go(func() {
		for response := range watching {
			p.add(response)
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return p
}

func (p *progress) add(response clientv3.WatchResponse) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, response.Err())
	for _, event := range response.Events {
		if event.Type != clientv3.EventTypePut {
			continue
		}
		set, err := framework.DecodeStatefulSet(event.Kv.Value)
		if err != nil {
			p.err = errors.Join(p.err, fmt.Errorf("%s: %w", event.Kv.Key, err))
		} else if set.Spec.UpdateStrategy.RollingUpdate != nil && !framework.HasMaxUnavailable(set) {
			p.cleared[string(event.Kv.Key)] = true
		}
	}
	close(p.news)
	p.news = make(chan struct{})
}

// wait waits until so many objects have been cleared, and returns how many are.
func (p *progress) wait(t *testing.T, objects int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	for {
		p.mu.Lock()
		cleared, news, err := len(p.cleared), p.news, p.err
		p.mu.Unlock()
		if err != nil {
			t.Fatalf("following StatefulSets in etcd: %v", err)
		}
		if cleared >= objects {
			return cleared
		}
		select {
		case <-news:
		case <-ctx.Done():
			t.Fatalf("waiting for %d objects to be cleared: %d are", objects, cleared)
		}
	}
}
