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

package tracker

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestDeletedProcessesForgotten: nodes and processes come and go, in order or not, and a
// tracker holds afterwards what it held before.
func TestDeletedProcessesForgotten(t *testing.T) {
	tracker := New(Config{Servers: "server", Nodes: true, Settings: DefaultSettings(), MaxCrashes: 3, CrashWindow: 10 * time.Minute})
	now := start
	reports := map[string]*v1alpha1.FeatureReport{}
	set := func(r *v1alpha1.FeatureReport) {
		reports[r.Name] = r
		tracker.SetReport(r, now)
	}
	remove := func(name string) {
		tracker.DeleteReport(reports[name], now)
		delete(reports, name)
	}
	// pass does every 5 seconds what the controller does, and deletes expired reports without
	// their Leases.
	pass := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(5 * time.Second)
			tracker.Advance(now)
			tracker.Snapshot("A", now)
			for _, r := range tracker.ExpiredReports(now, func(string) bool { return true }) {
				remove(tracker.BeginDeletion(r).Name)
			}
		}
	}
	pass(time.Minute)
	before := remembered(tracker)
	leases := map[string]*coordinationv1.Lease{}
	for i := range 5 {
		name, terminated, crashed := fmt.Sprint("n", i), fmt.Sprint("terminated-", i), fmt.Sprint("crashed-", i)
		tracker.SetNode(node(name, corev1.ConditionTrue), now)
		r := report(kubelet, name, queried(gate("A", false)))
		r.Spec.NodeName = name
		set(r)
		for _, process := range []string{terminated, crashed} {
			leases[process] = leaseFor("comp", process, now)
			tracker.SetLease(leases[process], now)
			r := report("comp", process, queried(gate("A", false)))
			r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: r.Name}
			set(r)
		}
		pass(20 * time.Second)
		if len(remembered(tracker)) <= len(before) {
			t.Error("this test does not see what is remembered")
		}
		tracker.SetNode(node(name, corev1.ConditionUnknown), now)
		tracker.DeleteLease(leases[terminated], now)
		remove("comp." + terminated)
		pass(20 * time.Second)
		tracker.DeleteNode(node(name, corev1.ConditionUnknown), now)
		pass(20 * time.Second)
		remove(kubelet + "." + name)
	}
	pass(ReportRetention)
	for i := range 5 {
		tracker.DeleteLease(leases[fmt.Sprint("crashed-", i)], now)
	}
	pass(predecessorRetention + time.Hour)
	if diff := cmp.Diff(before, remembered(tracker)); diff != "" {
		t.Errorf("unexpected memory (-before +after):\n%s", diff)
	}
}

// remembered returns what a tracker holds of nodes and processes, except lost ones, which it
// holds for a day.
func remembered(tracker *Tracker) []string {
	var keys []string
	add := func(of string, names ...string) {
		for _, name := range names {
			keys = append(keys, of+" "+name)
		}
	}
	for of, absent := range map[string]map[string]time.Time{"node": tracker.absences.nodes, "report": tracker.absences.reports, "node of": tracker.absences.nodesOf} {
		add("absent "+of, slices.Collect(maps.Keys(absent))...)
	}
	for key := range tracker.absences.leases {
		add("absent lease", key.String())
	}
	add("ready", slices.Collect(maps.Keys(tracker.absences.seenReady))...)
	for key := range tracker.leases {
		add("lease", key.String())
	}
	x := tracker.index
	add("report", slices.Collect(maps.Keys(x.processes))...)
	add("predecessors", slices.Collect(maps.Keys(x.predecessors))...)
	for name := range x.recent {
		// Those of existing processes are dropped in time.
		if x.processes[name] == nil {
			add("recent", name)
		}
	}
	add("known node", slices.Collect(maps.Keys(x.nodes))...)
	add("node without report", slices.Collect(maps.Keys(x.reportless))...)
	add("reports on node", slices.Collect(maps.Keys(x.byNode))...)
	add("component", slices.Collect(maps.Keys(x.byComponent))...)
	for lease := range x.byLease {
		add("report of lease", lease.String())
	}
	for feature, groups := range x.features {
		for g := range groups {
			add("process of a group of "+feature, slices.Collect(maps.Keys(g.uniform))...)
			add("other process of a group of "+feature, slices.Collect(maps.Keys(g.others))...)
			add("replacement of "+feature, slices.Collect(maps.Keys(g.replacements))...)
			if len(g.uniform)+len(g.others)+len(g.replacements) == 0 {
				add("empty group of", feature)
			}
		}
	}
	slices.Sort(keys)
	return keys
}
