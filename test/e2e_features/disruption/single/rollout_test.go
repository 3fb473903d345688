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
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// TestFaultsOneAfterAnother happen to one cluster.
func TestFaultsOneAfterAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pick(1000, 300))
	for _, fault := range []struct {
		name string
		test func(*testing.T, *world, *row)
		// long faults are not in the short form: they need most of a minute to
		// be worth anything.
		long bool
	}{
		{"servers restart one by one with another value", rollingRestart, false},
		{"etcd is killed (kill -9) and started again", etcdRestarts, false},
		{"the leader is cut off from etcd for some seconds", shortCut, false},
		{"the leader is cut off from etcd until another has finished", longCut, true},
		{"a server has another version", mixedVersions, false},
		{"a transition is paused", paused, false},
		{"etcd has no space left", noSpace, false},
		{"the leader freezes (SIGSTOP) and goes on later", frozen, true},
		{"a feature is known to no server any more", unknown, false},
	} {
		if short && fault.long {
			continue
		}
		t.Run(fault.name, func(t *testing.T) {
			defer w.repair(t)
			fault.test(t, w, faults.fault(fault.name))
		})
	}
}

// nothingBegan checks S4 since the beginning of a round.
func (r *round) nothingBegan(t *testing.T, while string) {
	t.Helper()
	versions := r.w.feature.Since(r.mark)
	if ids := framework.Transitions(versions); len(ids) > 0 {
		t.Errorf("S4: while %s these transitions began: %v", while, ids)
		r.row.lost(len(ids), 0)
	}
	for _, state := range framework.States(versions) {
		if state != v1alpha1.StateOn {
			t.Errorf("S4: while %s the state became %s", while, state)
		}
	}
}

// rollingRestart restarts server by server. No transition starts before all
// agree, exactly one after.
func rollingRestart(t *testing.T, w *world, row *row) {
	for range pick(3, 1) {
		w.turnOn(t)
		r := w.begin(t, row)
		gates := off
		for i, server := range w.servers {
			if i == len(w.servers)-1 {
				r.nothingBegan(t, "servers disagreed")
				// Those that live agree as soon as the last one stops.
				r.injected()
			}
			if err := w.cluster.Restart(t.Context(), &gates, server); err != nil {
				t.Fatal(err)
			}
			if i < len(w.servers)-1 {
				w.feature.Wait(t, r.mark, "found inconsistent", framework.Because(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree))
				hold(t, 3*time.Second)
			}
		}
		took := r.restOff(t)
		said(t, "S4: nothing began while servers disagreed; Off %.1f s after the last began to restart", took.Seconds())
		want := []v1alpha1.FeatureState{v1alpha1.StateOn, v1alpha1.StateTurningOff, v1alpha1.StateOff}
		if diff := cmp.Diff(want, framework.States(w.feature.Since(r.mark))); diff != "" {
			t.Errorf("S4: unexpected states (-want +got):\n%s", diff)
		}
	}
}

// mixedVersions emulates an older version in one server. Although all configure
// the same value, nothing starts, and the Feature says why.
func mixedVersions(t *testing.T, w *world, row *row) {
	w.turnOn(t)
	r := w.begin(t, row)
	last := w.servers[len(w.servers)-1]
	w.cluster.SetArgs(last, append([]string{"--emulated-version=1.35"}, flags...)...)
	gates := off
	if err := w.cluster.Restart(t.Context(), &gates, last); err != nil {
		t.Fatal(err)
	}
	w.feature.Wait(t, r.mark, "found inconsistent", framework.Because(v1alpha1.ConditionConsistent, v1alpha1.ReasonServersDisagree))
	if err := w.cluster.RestartTogether(t.Context(), off, w.servers[:len(w.servers)-1]...); err != nil {
		t.Fatal(err)
	}
	said(t, "%s emulates 1.35", last)
	w.feature.Wait(t, r.mark, "held by mixed versions", framework.Because(v1alpha1.ConditionProgressing, v1alpha1.ReasonMixedVersions))
	hold(t, 5*time.Second)
	if !framework.Because(v1alpha1.ConditionProgressing, v1alpha1.ReasonMixedVersions)(w.feature.Last()) {
		t.Errorf("Progressing does not say MixedVersions any more: %+v", w.feature.Last().Status.Conditions)
	}
	r.nothingBegan(t, "versions were mixed")
	w.cluster.SetArgs(last, flags...)
	r.injected()
	if err := w.cluster.Restart(t.Context(), &gates, last); err != nil {
		t.Fatal(err)
	}
	r.restOff(t)
}
