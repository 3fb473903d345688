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

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestWhoHasNotCrashedForLongIsLikeAllOthers: after a restart of everything that went
// wrong a look at a feature costs again what there are kinds of reports.
func TestWhoHasNotCrashedForLongIsLikeAllOthers(t *testing.T) {
	x := newIndex(indexConfig{mostCrashes: 2, crashWindow: 15 * time.Minute})
	next := func(process int, at time.Duration) {
		r := report(kubelet, "n1", v1alpha1.ReportedFeature{Name: "A", Queried: true})
		r.Spec.NodeName, r.Spec.Process = "n1", fmt.Sprint(process)
		x.set(r, start.Add(at))
	}
	x.node("n1", true, nodeState{ready: true})
	next(0, 0)
	next(1, time.Minute)
	next(2, 10*time.Minute)
	for _, step := range []struct {
		after   time.Duration
		crashes int
	}{{10 * time.Minute, 2}, {16*time.Minute - 1, 2}, {16 * time.Minute, 1}, {25*time.Minute - 1, 1}, {25 * time.Minute, 0}} {
		x.settle(start.Add(step.after))
		crowds, others := x.of("A")
		if step.crashes == 0 {
			if len(others) > 0 || len(crowds) != 1 || !slices.Equal(crowds[0].names, []string{"n1"}) {
				t.Errorf("after %s it is not like others: %v, %v", step.after, crowds, others)
			}
		} else if len(others) != 1 || len(others[0].crashes) != step.crashes {
			t.Errorf("after %s these are looked at one by one, want n1 with %d crashes: %v", step.after, step.crashes, others)
		}
	}
	// It may crash again, and go.
	next(3, time.Hour)
	if _, others := x.of("A"); len(others) != 1 || len(others[0].crashes) != 1 {
		t.Errorf("it has crashed once more: %v", others)
	}
	x.remove(kubelet+".n1", start.Add(time.Hour))
	if len(x.crashed) > 0 {
		t.Errorf("%d processes are remembered as crashed, and none is there", len(x.crashed))
	}
}

// TestWhatSilentProcessesDependOn raises the generation of an index, and nothing else
// of a node does: with it all that are silent are found anew.
func TestWhatSilentProcessesDependOn(t *testing.T) {
	x := newIndex(indexConfig{})
	kubeletReport := report(kubelet, "n1")
	for _, step := range []struct {
		what   string
		do     func()
		raised bool
	}{
		{"a node comes", func() { x.node("n1", true, nodeState{kubelet: "v1"}) }, true},
		{"nothing changes", func() { x.node("n1", true, nodeState{kubelet: "v1"}) }, false},
		{"it is Ready", func() { x.node("n1", true, nodeState{ready: true, kubelet: "v1"}) }, true},
		{"it is upgraded", func() { x.node("n1", true, nodeState{ready: true, kubelet: "v2"}) }, true},
		{"its kubelet reports", func() { x.set(kubeletReport, start) }, true},
		{"it is upgraded, and reports", func() { x.node("n1", true, nodeState{ready: true, kubelet: "v3"}) }, false},
		{"its report goes", func() { x.remove(kubeletReport.Name, start) }, true},
		{"it goes", func() { x.node("n1", false, nodeState{kubelet: "v3"}) }, true},
	} {
		before := x.changes()
		step.do()
		if raised := x.changes() > before; raised != step.raised {
			t.Errorf("%s: the generation is raised: %t, want %t", step.what, raised, step.raised)
		}
	}
}
