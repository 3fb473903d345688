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

package faults

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

// shortCut cuts the leader's network for less than it takes others to notice.
// What it had sent arrives later.
func shortCut(t *testing.T, w *world, row *row) {
	moments := random(t)
	for range pick(2, 1) {
		r := w.turnOff(t, row)
		r.cleared(t, 1+moments.IntN(w.objects*9/10))
		w.links[w.leader()].sever()
		hold(t, time.Duration(1+moments.IntN(5))*time.Second)
		if state := w.feature.last().Status.State; state != v1alpha1.StateTurningOff {
			t.Errorf("S1: the state is %s although the server that clears is cut off", state)
		}
		w.links[w.leader()].mend()
		r.injected()
		took := r.restOff(t)
		said(t, "L2: Off %.1f s after the cut", took.Seconds())
	}
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
	moments := random(t)
	r := w.turnOff(t, row)
	r.cleared(t, 1+moments.IntN(w.objects*9/10))
	alarm(t, w, pb.AlarmRequest_ACTIVATE)
	defer func() {
		if t.Failed() {
			alarm(t, w, pb.AlarmRequest_DEACTIVATE)
		}
	}()
	// Within the whole time servers stop to believe that others live.
	hold(t, pick(50*time.Second, 5*time.Second))
	if state := w.feature.last().Status.State; state != v1alpha1.StateTurningOff {
		t.Errorf("S1: the state is %s although nothing could be written", state)
	}
	if _, err := w.etcd.Defragment(t.Context(), w.cluster.EtcdEndpoint()); err != nil {
		t.Fatalf("defragmenting etcd: %v", err)
	}
	alarm(t, w, pb.AlarmRequest_DEACTIVATE)
	r.injected()
	took := r.restOff(t)
	said(t, "L2: Off %.1f s after there was space again", took.Seconds())
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
