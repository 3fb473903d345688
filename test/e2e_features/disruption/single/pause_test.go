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
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/integration/framework"
)

// frozen stops the leader's process, as the migration of a virtual machine or a
// long pause of its disk does. Another takes over; when the first goes on, it
// believes to lead and that no time has passed.
func frozen(t *testing.T, w *world, row *row) {
	moments := random(t)
	r := w.turnOff(t, row)
	leader := w.leader()
	r.cleared(t, 1+moments.IntN(w.objects*9/10))
	if err := w.cluster.Signal(leader, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.injected()
	hold(t, time.Minute)
	taken := w.feature.Last().Status.State == v1alpha1.StateOff
	if !taken {
		r.begun = time.Now()
	}
	if err := w.cluster.Signal(leader, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	took := r.restOff(t)
	said(t, "L2: another server finished meanwhile: %t; Off %.1f s after the freeze, or its end if nobody took over", taken, took.Seconds())
	w.still(t, row, "a server believed to lead", 5*time.Second)
	r.judge(t)
}

// pause sets spec.paused through a server.
func (w *world) pause(t *testing.T, paused bool) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"paused":%t}}`, paused)
	client := w.features(w.witness()).FeaturesV1alpha1().Features(metav1.NamespaceSystem)
	framework.WaitFor(t, "spec.paused to be written", func() bool {
		_, err := client.Patch(t.Context(), gate, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil
	})
}

// paused sets spec.paused before a transition starts, while it waits for uses,
// and while it clears. Nothing moves until it is unset.
func paused(t *testing.T, w *world, row *row) {
	moments := random(t)
	before := func(t *testing.T) *round {
		w.turnOn(t)
		w.pause(t, true)
		r := w.begin(t, row)
		w.restart(t, off)
		return r
	}
	waiting := func(t *testing.T) *round {
		r := w.turnOff(t, row)
		w.feature.Wait(t, r.mark, "waiting for uses", func(v framework.FeatureVersion) bool { return len(v.Status.Tasks) == 2 })
		w.pause(t, true)
		return r
	}
	middle := func(t *testing.T) *round {
		r := w.turnOff(t, row)
		r.cleared(t, 1+moments.IntN(w.objects/2))
		w.pause(t, true)
		return r
	}
	for _, at := range pick([]func(*testing.T) *round{before, waiting, middle, middle}, []func(*testing.T) *round{middle}) {
		r := at(t)
		held := w.feature.Wait(t, r.mark, "paused or Off", func(v framework.FeatureVersion) bool {
			return framework.Because(v1alpha1.ConditionProgressing, v1alpha1.ReasonPaused)(v) && v.Spec.Paused || v.Status.State == v1alpha1.StateOff
		})
		if held.Status.State == v1alpha1.StateOff {
			t.Log("the transition ended before the pause was stored")
		}
		// Writes that were under way arrive.
		hold(t, time.Second)
		w.still(t, row, "spec.paused was set", 4*time.Second)
		r.injected()
		state, tasks := held.Status.State, len(held.Status.Tasks)
		w.pause(t, false)
		took := r.restOff(t)
		said(t, "paused in %s with %d tasks left: nothing moved; Off %.1f s after it was unset", state, tasks, took.Seconds())
	}
}
