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

package single

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
	"k8s.io/kubernetes-features/test/integration/framework"
)

const (
	gate = "MaxUnavailableStatefulSet"
	on   = gate + "=true"
	off  = gate + "=false"
	// count is how many servers a world has.
	count = 3
)

// flags of every server. No fault here is about these periods, so they are
// short.
var flags = []string{"--feature-settle-period=1s", "--feature-grace-period=5s"}

// world is a cluster of three kube-apiservers and one etcd, without controllers:
// nobody but the tests and the server flow writes StatefulSets. Faults follow
// each other in it, each after what was left of the one before has been put right.
type world struct {
	cluster *framework.Cluster
	etcd    *clientv3.Client
	feature *framework.History
	// servers are the components, byID the same by the id that the server flow
	// knows them by.
	servers []string
	byID    map[string]string
	// links are between servers and etcd.
	links map[string]*link
	// objects is how many StatefulSets have the field.
	objects int
}

// newWorld starts a cluster with the gate on and objects that have the field.
func newWorld(t *testing.T, objects int) *world {
	t.Helper()
	w := &world{objects: objects, byID: map[string]string{}, links: map[string]*link{}}
	config := cluster.Config{Servers: count, FeatureGates: on, Only: []string{cluster.Etcd}, ExtraArgs: map[string][]string{}}
	for i := range count {
		name := cluster.Nth(cluster.APIServer, i+1)
		w.servers = append(w.servers, name)
		config.ExtraArgs[name] = flags
		// Before the cluster, so that the cluster ends before its links.
		w.links[name] = newLink(t)
	}
	config.Only = append(config.Only, w.servers...)
	w.cluster = framework.Start(t, config)
	w.etcd = w.cluster.Etcd()
	w.feature = framework.RecordFeature(t, w.etcd, gate)
	target := strings.TrimPrefix(w.cluster.EtcdEndpoint(), "https://")
	for _, name := range w.servers {
		w.links[name].lead(target)
		w.cluster.SetEtcd(name, w.links[name].url())
	}
	leases, err := w.cluster.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		for i, name := range w.servers {
			if lease.Labels["kubernetes.io/hostname"] == cluster.Hostname(i+1) {
				w.byID[lease.Name] = name
			}
		}
	}
	if len(w.byID) != count {
		t.Fatalf("these servers are known by their ids, want %d: %v", count, w.byID)
	}
	w.feature.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	useThroughAPI(t, w.cluster.Kube, objects)
	return w
}

// leader is the server that looks after the feature while all are alive.
func (w *world) leader() string {
	var ids []string
	for id := range w.byID {
		ids = append(ids, id)
	}
	return w.byID[leader.Of(gate, ids)]
}

// witness is a server that does not look after the feature.
func (w *world) witness() string {
	for _, name := range w.servers {
		if name != w.leader() {
			return name
		}
	}
	return ""
}

// config is how an administrator reaches one of the servers.
func (w *world) config(server string) *rest.Config {
	return w.cluster.ConfigOf(server)
}

func (w *world) kube(server string) kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(w.config(server))
}

func (w *world) features(server string) versioned.Interface {
	return versioned.NewForConfigOrDie(w.config(server))
}

// restart restarts all servers at once with other gates.
func (w *world) restart(t *testing.T, gates string) {
	t.Helper()
	if err := w.cluster.RestartTogether(t.Context(), gates, w.servers...); err != nil {
		t.Fatalf("restarting all servers with %s: %v", gates, err)
	}
}

// revive starts a server that was killed.
func (w *world) revive(t *testing.T, server string) {
	t.Helper()
	if err := w.cluster.Start(t.Context(), server); err != nil {
		t.Fatalf("starting %s again: %v", server, err)
	}
}

// repair ends every fault, so that one test that failed leaves the others a
// world to live in.
func (w *world) repair(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), framework.Patience)
	defer cancel()
	alive, dead := w.cluster.Running()
	for _, name := range alive {
		_ = w.cluster.Signal(name, unix.SIGCONT)
	}
	for _, link := range w.links {
		link.mend()
	}
	for _, name := range w.servers {
		w.cluster.SetArgs(name, flags...)
	}
	if len(dead) > 0 {
		if err := w.cluster.Start(ctx, dead...); err != nil {
			t.Errorf("repairing after a test: %v", err)
		}
	}
	if w.feature.Last().Spec.Paused {
		w.pause(t, false)
	}
}

// turnOn brings the feature to On and makes all objects have the field, as an
// administrator and users do.
func (w *world) turnOn(t *testing.T) {
	t.Helper()
	if w.cluster.FeatureGates() == on && w.feature.Last().Status.State == v1alpha1.StateOn {
		// A new world.
		return
	}
	mark := w.feature.Mark()
	w.restart(t, on)
	w.feature.Wait(t, max(mark-1, 0), "On", framework.In(v1alpha1.StateOn))
	useThroughAPI(t, w.kube(w.witness()), w.objects)
}

// round is one transition from On to Off, with what was before it.
type round struct {
	w      *world
	row    *row
	mark   int
	before map[string]framework.StoredStatefulSet
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
	return &round{w: w, row: r, mark: w.feature.Mark(), before: sets(t, w.etcd), revision: response.Header.Revision}
}

// turnOff begins a round with the gate on and lets all servers restart with the
// gate off.
func (w *world) turnOff(t *testing.T, r *row) *round {
	t.Helper()
	w.turnOn(t)
	round := w.begin(t, r)
	w.restart(t, off)
	return round
}

// cleared waits until so many objects have been cleared, which is a moment in
// the middle of the task.
func (r *round) cleared(t *testing.T, objects int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), framework.Patience)
	defer cancel()
	seen := 0
	for response := range r.w.etcd.Watch(ctx, setsKey, clientv3.WithPrefix(), clientv3.WithRev(r.revision+1)) {
		for range response.Events {
			if seen++; seen >= objects {
				return
			}
		}
	}
	t.Fatalf("waiting for %d objects to be cleared: %d are; the Feature is %+v", objects, seen, r.w.feature.Last().Status)
}

// injected notes that the fault happened, and when.
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
	end := r.w.feature.Wait(t, r.mark, "Off", func(v framework.FeatureVersion) bool {
		turning = turning || v.Status.State == v1alpha1.StateTurningOff
		return turning && v.Status.State == v1alpha1.StateOff
	})
	judged = true
	took := max(end.At.Sub(r.begun), 0)
	r.row.recovered(took)
	// L2 says a minute; a loaded machine gets more.
	if took > 3*time.Minute {
		t.Errorf("L2: Off %s after the fault", took)
	}
	r.judge(t)
	return took
}

// judge checks the history of the round and every object.
func (r *round) judge(t *testing.T) {
	t.Helper()
	versions := r.w.feature.Since(r.mark)
	if what := framework.FalseState(versions); what != "" {
		t.Errorf("S1: %s", what)
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
func (r *round) early(after map[string]framework.StoredStatefulSet, versions []framework.FeatureVersion) int {
	ended := int64(0)
	for _, v := range versions {
		if len(v.Status.Tasks) == 1 && v.Status.State == v1alpha1.StateTurningOff {
			ended = v.Revision
			break
		}
	}
	early := 0
	for _, is := range after {
		if is.Revision > r.revision && is.Revision < ended {
			early++
		}
	}
	return early
}

// hold lets a fault last.
func hold(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-time.After(long):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// still checks that nothing moves for a while: neither the Feature's state and
// tasks nor any object.
func (w *world) still(t *testing.T, r *row, what string, long time.Duration) {
	t.Helper()
	mark, before := w.feature.Mark(), sets(t, w.etcd)
	was := w.feature.Last()
	hold(t, long)
	for _, v := range w.feature.Since(mark) {
		if v.Status.State != was.Status.State || len(v.Status.Tasks) != len(was.Status.Tasks) {
			t.Errorf("%s, and the Feature went from %s to %s with tasks %+v", what, was.Status.State, v.Status.State, v.Status.Tasks)
			r.lost(1, 0)
			break
		}
	}
	moved := 0
	for name, is := range sets(t, w.etcd) {
		if is.Revision != before[name].Revision {
			moved++
		}
	}
	if moved > 0 {
		t.Errorf("%s, and %d objects were written", what, moved)
		r.lost(0, moved)
	}
}

// said is a line of progress.
func said(t *testing.T, format string, args ...any) {
	t.Helper()
	fmt.Fprintf(t.Output(), format+"\n", args...)
}
