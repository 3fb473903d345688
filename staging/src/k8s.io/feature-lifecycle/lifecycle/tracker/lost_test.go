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
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestOldestLostProcessForgottenFirst when there are too many.
func TestOldestLostProcessForgottenFirst(t *testing.T) {
	v := lostProcesses{}
	name := func(i int) string { return fmt.Sprintf("kubelet.n%d", i) }
	for i := range maxLost + 2 {
		at := start.Add(time.Duration(i) * time.Second)
		// The last is noted twice, which makes no difference.
		for range 2 {
			v.add(name(i), lostProcess{
				since: at, instance: Instance{Component: kubelet, Name: fmt.Sprintf("n%d", i)},
				gates: map[string]*v1alpha1.ReportedFeature{"A": {Name: "A", Queried: true}},
			}, at)
		}
	}
	found := v.of("A", nil)
	has := func(i int) bool {
		return slices.ContainsFunc(found, func(u Instance) bool { return u.Component+"."+u.Name == name(i) })
	}
	if len(found) != maxLost || has(0) || has(1) || !has(2) || !has(maxLost+1) {
		t.Errorf("%d are remembered, the first %t %t %t, the last %t", len(found), has(0), has(1), has(2), has(maxLost+1))
	}
}

// lostOf returns the names of the lost users of A.
func lostOf(t *Tracker, now time.Time) []string {
	var names []string
	for _, i := range t.Snapshot("A", now).Lost {
		names = append(names, i.Component+"."+i.Name)
	}
	return names
}

// TestProcessIsLostWhenItsLeaseIsDeletedFirst: so the report of a failed process is cleaned up.
func TestProcessIsLostWhenItsLeaseIsDeletedFirst(t *testing.T) {
	tracker := New(Config{Settings: DefaultSettings()})
	r := report("c", "1", queried(gate("A", true)))
	r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: "c.1"}
	tracker.SetReport(r, start)
	tracker.SetLease(leaseFor("c", "1", start), start)
	expired := start.Add(MaxLeaseTimeout)
	tracker.DeleteLease(leaseFor("c", "1", start), expired)
	tracker.DeleteReport(r, expired)
	if got := lostOf(tracker, expired); !slices.Equal(got, []string{"c.1"}) {
		t.Errorf("lost are %v, want c.1", got)
	}
}

// TestReturnedProcessIsNotLost, also after it has terminated.
func TestReturnedProcessIsNotLost(t *testing.T) {
	tracker := New(Config{Nodes: true, Settings: DefaultSettings()})
	r := report(kubelet, "n1", queried(gate("A", true)))
	r.Spec.NodeName = "n1"
	tracker.SetNode(node("n1", corev1.ConditionTrue), start)
	tracker.SetReport(r, start)
	tracker.SetNode(node("n1", corev1.ConditionUnknown), start.Add(time.Minute))
	tracker.DeleteNode(node("n1", corev1.ConditionUnknown), start.Add(2*time.Minute))
	tracker.DeleteReport(r, start.Add(2*time.Minute))
	now := start.Add(3 * time.Minute)
	if got := lostOf(tracker, now); !slices.Equal(got, []string{"kubelet.n1"}) {
		t.Fatalf("lost are %v, want kubelet.n1", got)
	}
	tracker.SetNode(node("n1", corev1.ConditionTrue), now)
	tracker.SetReport(r, now)
	tracker.DeleteReport(r, now)
	tracker.DeleteNode(node("n1", corev1.ConditionTrue), now)
	if got := lostOf(tracker, now); len(got) > 0 {
		t.Errorf("it has returned and terminated, and lost are %v", got)
	}
}
