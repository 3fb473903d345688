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
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/cmd/local-up/cluster"
)

// etcdRestarts kills the database in the middle of the clearing.
func etcdRestarts(t *testing.T, w *world, row *row) {
	moments := random(t)
	for range pick(3, 1) {
		r := w.turnOff(t, row)
		r.cleared(t, 1+moments.IntN(w.objects*9/10))
		if err := w.cluster.Kill(t.Context(), cluster.Etcd); err != nil {
			t.Fatal(err)
		}
		if err := w.cluster.Start(t.Context(), cluster.Etcd); err != nil {
			t.Fatal(err)
		}
		r.injected()
		took := r.restOff(t)
		said(t, "L2: Off %.1f s after etcd was back", took.Seconds())
	}
}

// mostLate is how many faults in a row may come when the clearing is over: the
// test hears of an object a moment after it was cleared, on a loaded machine a
// long one.
const mostLate = 5

// inTime does rounds until faults have come in time, so many of them. Fault
// injects one, holds it and looks whether the round was over before, and ends it.
func inTime(t *testing.T, w *world, row *row, times int, fault func(r *round) (late bool), after string) {
	moments := random(t)
	for n, late := 0, 0; n < times; {
		r := w.turnOff(t, row)
		r.cleared(t, 1+moments.IntN(w.objects/2))
		if fault(r) {
			if late++; late > mostLate {
				t.Fatalf("%d faults came when all objects were cleared; this shows nothing", late)
			}
			r.begun = time.Now()
			r.restOff(t)
			continue
		}
		r.injected()
		took := r.restOff(t)
		said(t, "L2: Off %.1f s after %s", took.Seconds(), after)
		n, late = n+1, 0
	}
}

// over is true for a round that ended before its fault: it is Off, and no object
// is left to clear (S1).
func (r *round) over(t *testing.T, fault string) bool {
	t.Helper()
	state := r.w.feature.Last().Status.State
	if state == v1alpha1.StateTurningOff {
		return false
	}
	if left := compare(t, r.before, sets(t, r.w.etcd)); state != v1alpha1.StateOff || left > 0 {
		t.Errorf("S1: the state is %s with %d objects left although %s", state, left, fault)
	}
	return true
}

// shortCut cuts the leader's network for less than it takes others to notice.
// What it had sent arrives later.
func shortCut(t *testing.T, w *world, row *row) {
	moments := random(t)
	inTime(t, w, row, pick(2, 1), func(r *round) bool {
		leader := w.links[w.leader()]
		leader.sever()
		defer leader.mend()
		hold(t, time.Duration(1+moments.IntN(5))*time.Second)
		return r.over(t, "the server that clears is cut off")
	}, "the cut")
}

// longCut lasts until another server has noticed and finished. When it ends, what
// the first had sent arrives, and it believes to lead for a moment.
func longCut(t *testing.T, w *world, row *row) {
	moments := random(t)
	r := w.turnOff(t, row)
	r.cleared(t, 1+moments.IntN(w.objects*9/10))
	w.links[w.leader()].sever()
	r.injected()
	took := r.restOff(t)
	said(t, "L2: another server finished %.1f s after the cut began", took.Seconds())
	w.links[w.leader()].mend()
	w.still(t, row, "the cut ended", 10*time.Second)
	r.judge(t)
}

// noSpace raises the alarm that etcd raises when its quota is used up: it refuses
// every write, also those by which servers say that they live.
func noSpace(t *testing.T, w *world, row *row) {
	inTime(t, w, row, 1, func(r *round) bool {
		alarm(t, w, pb.AlarmRequest_ACTIVATE)
		// Nothing that follows could write otherwise, whatever happens.
		defer alarm(t, w, pb.AlarmRequest_DEACTIVATE)
		// Within the whole time servers stop to believe that others live.
		hold(t, pick(50*time.Second, 5*time.Second))
		over := r.over(t, "nothing could be written")
		if _, err := w.etcd.Defragment(t.Context(), w.cluster.EtcdEndpoint()); err != nil {
			t.Fatalf("defragmenting etcd: %v", err)
		}
		return over
	}, "there was space again")
}

// alarm raises or ends the alarm. The client's own interface can only end it.
func alarm(t *testing.T, w *world, action pb.AlarmRequest_AlarmAction) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	members, err := w.etcd.MemberList(ctx)
	if err != nil {
		t.Fatalf("asking for etcd's members: %v", err)
	}
	request := &pb.AlarmRequest{Action: action, MemberID: members.Members[0].ID, Alarm: pb.AlarmType_NOSPACE}
	if _, err := clientv3.RetryMaintenanceClient(w.etcd, w.etcd.ActiveConnection()).Alarm(ctx, request); err != nil {
		t.Fatalf("etcd's alarm for no space: %v", err)
	}
}
