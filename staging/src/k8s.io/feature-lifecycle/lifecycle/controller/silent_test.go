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
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// TestWhoIsSilentIsFoundAnewAsTimePasses: it is remembered, and nothing but time
// tells that a kubelet has been silent for too long.
func TestWhoIsSilentIsFoundAnewAsTimePasses(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.serve("s1").controller
		w.node("n1", corev1.ConditionTrue)
		w.pass(time.Second)
		grace := c.config.Settings.Grace
		for _, step := range []struct {
			after  time.Duration
			recent bool
			since  bool
		}{
			{after: 0, recent: true, since: true},
			{after: reportingDelay, recent: false, since: true},
			// By now all that have been silent for so long are alike.
			{after: max(reportingDelay, grace), recent: false, since: false},
		} {
			w.pass(step.after)
			// Twice: the second answer is the one that is remembered.
			for range 2 {
				silent := c.silentNow(time.Now())
				at := slices.IndexFunc(silent, func(i tracker.Instance) bool { return i.Component == kubelet && i.Has("n1") })
				if at < 0 {
					t.Fatalf("%s later n1 is not silent: %+v", step.after, silent)
				}
				if got := silent[at]; got.Starting != step.recent || got.Since.IsZero() == step.since {
					t.Errorf("%s later: recent is %t, since %s", step.after, got.Starting, got.Since)
				}
			}
		}
		w.report(kubelet, "n1")
		w.pass(time.Second)
		if silent := c.silentNow(time.Now()); len(silent) > 0 {
			t.Errorf("it has reported, and is silent: %+v", silent)
		}
	}, lifecycle.Feature{Name: "A"})
}

// TestWhoIsSilentIsFoundAnewWithItsLease: somebody has deleted the report.
func TestWhoIsSilentIsFoundAnewWithItsLease(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.serve("s1").controller
		w.pass(time.Second)
		if silent := c.silentNow(time.Now()); len(silent) > 0 {
			t.Fatalf("nobody is there, and silent: %+v", silent)
		}
		stop := w.lease("other", "i1")
		defer stop()
		w.pass(time.Second)
		if silent := c.silentNow(time.Now()); len(silent) != 1 || silent[0].Component != "other" || !silent[0].Has("i1") {
			t.Errorf("other/i1 has a Lease and no report: %+v", silent)
		}
		w.report("other", "i1")
		w.pass(time.Second)
		if silent := c.silentNow(time.Now()); len(silent) > 0 {
			t.Errorf("it has reported, and is silent: %+v", silent)
		}
	}, lifecycle.Feature{Name: "A"})
}

// TestAnUpgradeOfASilentKubeletIsShown although its Node stays what it is otherwise.
func TestAnUpgradeOfASilentKubeletIsShown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.report("server", "s1", gate("A", false))
		w.serve("s1")
		for _, version := range []string{"v1.34.0", "v1.35.0"} {
			w.put(nodesResource, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: version},
			}}, "")
			w.until(2*reportingDelay, "the version "+version+" is shown", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				f := w.stored("A")
				return f != nil && slices.ContainsFunc(f.Status.Uses, func(u v1alpha1.FeatureUse) bool {
					return u.Component == kubelet && u.Version == version && u.Expected == 1
				})
			})
		}
	}, lifecycle.Feature{Name: "A"})
}

// TestCohortsAreOfOneVersion and one component: uses are counted by both.
func TestCohortsAreOfOneVersion(t *testing.T) {
	x := newIndex(indexConfig{})
	for _, one := range []struct{ component, instance, version string }{
		{kubelet, "n1", "v1"}, {kubelet, "n2", "v2"}, {kubelet, "n3", "v1"}, {"kube-proxy", "n1", "v1"},
	} {
		x.node(one.instance, true, nodeState{ready: true})
		r := report(one.component, one.instance, v1alpha1.ReportedFeature{Name: "A", Queried: true})
		r.Spec.BinaryVersion, r.Spec.NodeName, r.Spec.Liveness.Lease = one.version, one.instance, nil
		x.set(r, start)
	}
	crowds, others := x.of("A")
	if len(others) > 0 {
		t.Errorf("processes like others are looked at one by one: %v", others)
	}
	got := map[string][]string{}
	for _, c := range crowds {
		got[c.component+" "+c.version] = c.names
	}
	want := map[string][]string{"kubelet v1": {"n1", "n3"}, "kubelet v2": {"n2"}, "kube-proxy v1": {"n1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cohorts (-want +got):\n%s", diff)
	}
}
