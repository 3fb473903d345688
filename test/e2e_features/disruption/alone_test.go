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

package disruption

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// bare is what a cluster has in which disruptions come one after another: kube-apiservers
// and etcd only, so that only the tests and the server flow write StatefulSets. Each
// disruption comes after what was left of the one before has been put right.
type bare struct {
	// links are between servers and etcd.
	links map[string]*framework.Link
	// objects is how many StatefulSets have the field.
	objects int
	// leader looks after the feature while all servers are alive, witness does not.
	leader, witness server
	// spaceless is true while etcd has no space.
	spaceless bool
}

// newBare starts such a cluster with the gate on and objects that have the field.
func newBare(t *testing.T, s settings, servers, objects int) *world {
	t.Helper()
	b := &bare{objects: objects, links: map[string]*framework.Link{}}
	for i := range servers {
		// Before the cluster, so that the cluster ends before its links.
		b.links[localcluster.Nth(localcluster.APIServer, i+1)] = framework.NewLink(t)
	}
	w := newWorld(t, s, localcluster.Config{Servers: servers, Only: []string{localcluster.Etcd}}, framework.FeatureKey(static))
	w.bare = b
	for name, link := range b.links {
		link.Lead(strings.TrimPrefix(w.cluster.EtcdEndpoint(), "https://"))
		w.cluster.SetEtcd(name, link.URL())
	}
	// Together, which is quicker than one after the other.
	w.configureAll(t, true, w.servers...)
	w.findLeader(t)
	w.history(static).Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	useThroughAPI(t, w.kept().kube, objects)
	return w
}

// findLeader knows servers by their ids, as the server flow does, so that the right process
// dies (package lifecycle/leader).
func (w *world) findLeader(t *testing.T) {
	t.Helper()
	leases, err := w.kept().kube.CoordinationV1().Leases(systemNS).List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]server{}
	for _, lease := range leases.Items {
		for i, s := range w.servers {
			if lease.Labels["kubernetes.io/hostname"] == localcluster.Hostname(i+1) {
				byID[lease.Name] = s
			}
		}
	}
	if len(byID) != len(w.servers) {
		t.Fatalf("these servers are known by their ids, want %d: %v", len(w.servers), slices.Sorted(maps.Keys(byID)))
	}
	w.bare.leader = byID[leader.Of(static, slices.Collect(maps.Keys(byID)))]
	w.bare.witness = w.servers[slices.IndexFunc(w.servers, func(s server) bool { return s.name != w.bare.leader.name })]
}

// repair ends every disruption, so that one test that failed leaves the others a cluster to
// live in.
func (w *world) repair(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), framework.Patience)
	defer cancel()
	alive, dead := w.cluster.Running()
	for _, name := range alive {
		_ = w.cluster.Signal(name, unix.SIGCONT)
	}
	for _, link := range w.bare.links {
		link.Mend()
	}
	for _, s := range w.servers {
		w.cluster.SetArgs(s.name, serverFlags...)
	}
	if w.bare.spaceless {
		if err := w.alarm(ctx, pb.AlarmRequest_DEACTIVATE); err != nil {
			t.Errorf("repairing after a test: %v", err)
		}
	}
	if len(dead) > 0 {
		if err := w.cluster.Start(ctx, dead...); err != nil {
			t.Errorf("repairing after a test: %v", err)
		}
	}
	clear(w.down)
	if w.history(static).Last().Spec.Paused {
		w.pause(t, false)
	}
}

// turnOn brings the feature to On and makes all objects have the field, as an
// administrator and users do.
func (w *world) turnOn(t *testing.T) {
	t.Helper()
	history := w.history(static)
	if w.cluster.Control().FeatureGates == gates(true) && history.Last().Status.State == v1alpha1.StateOn {
		// A new cluster.
		return
	}
	mark := history.Mark()
	w.configureAll(t, true, w.servers...)
	history.Wait(t, max(mark-1, 0), "On", framework.In(v1alpha1.StateOn))
	useThroughAPI(t, w.bare.witness.kube, w.bare.objects)
}

// configureAll restarts servers at once with a value on their command lines.
func (w *world) configureAll(t *testing.T, value bool, servers ...server) {
	t.Helper()
	w.setGate(value)
	var names []string
	for _, s := range servers {
		names = append(names, s.name)
	}
	if err := w.cluster.RestartTogether(t.Context(), w.cluster.FeatureGates(), names...); err != nil {
		t.Fatalf("restarting %v with %s: %v", names, gates(value), err)
	}
}

// round is one transition from On to Off, with what was before it.
type round struct {
	w       *world
	row     *row
	history *framework.History
	mark    int
	before  map[string]framework.StoredStatefulSet
	// revision is etcd's at the time of before.
	revision int64
	begun    time.Time
}

// begin takes down what is before a transition.
func (w *world) begin(t *testing.T, r *row) *round {
	t.Helper()
	response, err := w.etcd.Get(t.Context(), "revision")
	if err != nil {
		t.Fatalf("reading etcd's revision: %v", err)
	}
	history := w.history(static)
	return &round{w: w, row: r, history: history, mark: history.Mark(), before: sets(t, w.etcd), revision: response.Header.Revision}
}

// turnOff begins a round with the gate on and lets all servers restart with the
// gate off.
func (w *world) turnOff(t *testing.T, r *row) *round {
	t.Helper()
	w.turnOn(t)
	round := w.begin(t, r)
	w.configureAll(t, false, w.servers...)
	return round
}

// holdOff is turnOff of a feature that is paused: nothing begins before it is resumed.
func (w *world) holdOff(t *testing.T, r *row) *round {
	t.Helper()
	w.turnOn(t)
	w.pause(t, true)
	round := w.begin(t, r)
	w.configureAll(t, false, w.servers...)
	return round
}

// cleared waits until so many objects have been cleared, which is a moment in
// the middle of the task.
func (r *round) cleared(t *testing.T, objects int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	seen := 0
	for response := range r.w.etcd.Watch(ctx, framework.StatefulSetsKey, clientv3.WithPrefix(), clientv3.WithRev(r.revision+1)) {
		for range response.Events {
			if seen++; seen >= objects {
				return
			}
		}
	}
	t.Fatalf("waiting for %d objects to be cleared: %d are; the Feature is %+v", objects, seen, r.history.Last().Status)
}

// left is how many objects are to be cleared.
func (r *round) left(t *testing.T) (left int) {
	t.Helper()
	for _, set := range sets(t, r.w.etcd) {
		if framework.HasMaxUnavailable(set.StatefulSet) {
			left++
		}
	}
	return left
}

// injected notes that the disruption happened, and when.
func (r *round) injected() {
	r.row.happened()
	r.begun = time.Now()
}

// restOff waits for Off, judges the round and notes how long recovery took.
func (r *round) restOff(t *testing.T) time.Duration {
	t.Helper()
	judged := false
	defer func() {
		if !judged {
			r.row.lost(1, 0)
		}
	}()
	turning := false
	end := r.history.Wait(t, r.mark, "Off", func(v framework.FeatureVersion) bool {
		turning = turning || v.Status.State == v1alpha1.StateTurningOff
		return turning && v.Status.State == v1alpha1.StateOff
	})
	judged = true
	took := max(end.At.Sub(r.begun), 0)
	r.row.recovered(took)
	if r.row.most > 0 && took > r.row.most {
		// The short form runs on busy machines, which say nothing of times.
		if r.w.said("L2: Off %s after the disruption", took); r.w.wholeForm {
			t.Errorf("L2: Off %s after the disruption", took)
		}
	}
	r.judge(t)
	return took
}

// judge checks the history of the round and every object.
func (r *round) judge(t *testing.T) {
	t.Helper()
	versions := r.history.Since(r.mark)
	for _, what := range violations(versions) {
		t.Error(what)
		r.row.lost(1, 0)
	}
	if ids := framework.Transitions(versions); len(ids) != 1 {
		t.Errorf("S3: the round had these transitions, want 1: %v", ids)
		r.row.lost(1, 0)
	}
	after := sets(t, r.w.etcd)
	if early := r.early(after, versions); early > 0 {
		t.Errorf("S2: %d objects were written before waiting for uses had ended", early)
		r.row.lost(0, early)
	}
	if lost := compare(t, r.before, after); lost > 0 {
		t.Errorf("S7: %d of %d objects lost or changed", lost, len(r.before))
		r.row.lost(0, lost)
	}
}

// early counts the objects that were written in the round before the Feature said
// that waiting for uses had ended.
func (r *round) early(after map[string]framework.StoredStatefulSet, versions []framework.FeatureVersion) (early int) {
	i := slices.IndexFunc(versions, func(v framework.FeatureVersion) bool {
		return len(v.Status.Tasks) == 1 && v.Status.State == v1alpha1.StateTurningOff
	})
	for _, is := range after {
		if i >= 0 && is.Revision > r.revision && is.Revision < versions[i].Revision {
			early++
		}
	}
	return early
}

// over is true for a round that ended before its disruption: it is Off, and no object
// is left to clear (S1).
func (r *round) over(t *testing.T, while string) bool {
	t.Helper()
	state := r.history.Last().Status.State
	if state == v1alpha1.StateTurningOff {
		return false
	}
	if left := compare(t, r.before, sets(t, r.w.etcd)); state != v1alpha1.StateOff || left > 0 {
		t.Errorf("S1: the state is %s with %d objects left although %s", state, left, while)
	}
	return true
}

// still checks that nothing moves for a while: neither the Feature's state and
// tasks nor any object.
func (r *round) still(t *testing.T, what string, long time.Duration) {
	t.Helper()
	mark, before, was := r.history.Mark(), sets(t, r.w.etcd), r.history.Last()
	hold(t.Context(), long)
	for _, v := range r.history.Since(mark) {
		if v.Status.State != was.Status.State || len(v.Status.Tasks) != len(was.Status.Tasks) {
			t.Errorf("%s, and the Feature went from %s to %s with tasks %+v", what, was.Status.State, v.Status.State, v.Status.Tasks)
			r.row.lost(1, 0)
			break
		}
	}
	moved := 0
	for name, is := range sets(t, r.w.etcd) {
		if is.Revision != before[name].Revision {
			moved++
		}
	}
	if moved > 0 {
		t.Errorf("%s, and %d objects were written", what, moved)
		r.row.lost(0, moved)
	}
}
