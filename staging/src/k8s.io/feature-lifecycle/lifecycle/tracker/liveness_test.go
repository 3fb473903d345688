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
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestLastSeenOfALease checks that it is when the Lease was seen to change, or when it
// was renewed before that, if its clock is plausible.
func TestLastSeenOfALease(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	for name, tc := range map[string]struct {
		renewals []time.Duration
		want     time.Duration
	}{
		"never":                         {nil, time.Hour},
		"renewed before it was watched": {[]time.Duration{-30 * time.Second}, -30 * time.Second},
		"long before, or another clock": {[]time.Duration{-time.Hour}, 0},
		"by a clock that is fast":       {[]time.Duration{30 * time.Second}, 0},
		"renewed since":                 {[]time.Duration{-30 * time.Second, -20 * time.Second}, 10 * time.Second},
		"read again, not renewed":       {[]time.Duration{-30 * time.Second, -30 * time.Second}, -30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Config{Nodes: true})
			for i, renewed := range tc.renewals {
				l.SetLease(lease(start.Add(renewed), 40), start.Add(time.Duration(i)*10*time.Second))
			}
			if got := l.leases.lastSeen(key, start.Add(time.Hour)).Sub(start); got != tc.want {
				t.Errorf("last seen at %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLeaseExpiresUnlessSeenToChange(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	l := New(Config{Nodes: true})
	// The time of deletion is kept while a report names the Lease.
	holder := report("c", "1")
	holder.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "ns", Name: "l"}
	alive := func(after time.Duration) bool {
		ok, _ := l.leaseAlive(key, start.Add(after))
		return ok
	}
	if alive(0) {
		t.Error("a Lease that was never seen is alive")
	}
	// The holder's clock is an hour behind, and the Lease lasts an hour.
	l.SetLease(lease(start.Add(-time.Hour), 3600), start)
	if !alive(MaxLeaseTimeout - 1) {
		t.Error("dead although it may still be renewed")
	}
	if alive(MaxLeaseTimeout) {
		t.Error("alive although it was not renewed")
	}
	l.SetLease(lease(start.Add(-time.Hour), 3600), start.Add(10*time.Second))
	if alive(MaxLeaseTimeout) {
		t.Error("alive although it was only read again")
	}
	l.SetLease(lease(start.Add(-time.Hour+time.Second), 3600), start.Add(30*time.Second))
	if !alive(30*time.Second + MaxLeaseTimeout - 1) {
		t.Error("dead although it was renewed")
	}
	l.SetLease(lease(start, 5), start.Add(time.Minute))
	if alive(time.Minute + 5*time.Second) {
		t.Error("alive although its own duration has passed")
	}
	l.index.set(holder, start)
	l.DeleteLease(lease(start, 5), start.Add(2*time.Minute))
	ok, since := l.leaseAlive(key, start.Add(3*time.Minute))
	if ok || !since.Equal(start.Add(2*time.Minute)) {
		t.Errorf("alive %t since %s after it was deleted", ok, since)
	}
}

// TestUnreachableSince: the clock of a process counts only when it was never seen
// alive, and never for longer than was watched.
func TestUnreachableSince(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	for name, tc := range map[string]struct {
		renewals []time.Duration
		want     time.Duration
	}{
		"not Ready before it was watched": {[]time.Duration{-time.Hour}, -time.Hour + 40*time.Second},
		"not Ready when it was watched":   {[]time.Duration{-30 * time.Second}, 40 * time.Second},
		"renewed since":                   {[]time.Duration{-30 * time.Second, -20 * time.Second}, 50 * time.Second},
		"renewed by a slow clock":         {[]time.Duration{-time.Hour, -time.Hour + 10*time.Second}, 50 * time.Second},
		"by a clock that is fast":         {[]time.Duration{time.Hour}, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(Config{Nodes: true})
			for i, renewed := range tc.renewals {
				l.SetLease(lease(start.Add(renewed), 40), start.Add(time.Duration(i)*10*time.Second))
			}
			if alive, _ := l.leaseAlive(key, start.Add(39*time.Second)); !alive {
				t.Error("it is unreachable before it had the time to renew its Lease")
			}
			if alive, since := l.leaseAlive(key, start.Add(time.Minute)); alive || since.Sub(start) != tc.want {
				t.Errorf("alive %t, unreachable since %s, want %s", alive, since.Sub(start), tc.want)
			}
		})
	}
}

func TestNodeUnreachableUnlessReady(t *testing.T) {
	a := newAbsences()
	look := func(n *corev1.Node, now time.Time) (bool, time.Time) { return a.node(n.Name, stateOf(n), now) }
	if ok, _ := look(node("n1", corev1.ConditionTrue), start); !ok {
		t.Error("a Ready node is dead")
	}
	if ok, since := look(node("n1", corev1.ConditionUnknown), start.Add(time.Second)); ok || !since.Equal(start.Add(time.Second)) {
		t.Errorf("alive %t since %s", ok, since)
	}
	// The first sight counts, not the last.
	if _, since := look(node("n1", corev1.ConditionUnknown), start.Add(time.Minute)); !since.Equal(start.Add(time.Second)) {
		t.Errorf("since %s", since)
	}
	// The condition's time does not matter for a node that was seen to be Ready.
	long := node("n1", corev1.ConditionUnknown)
	long.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-time.Hour))
	if _, since := look(long, start.Add(time.Minute)); !since.Equal(start.Add(time.Second)) {
		t.Errorf("of a node that was Ready: since %s", since)
	}
	long.Name = "n3"
	if _, since := look(long, start.Add(time.Minute)); !since.Equal(start.Add(-time.Hour)) {
		t.Errorf("of a node that was away before: since %s", since)
	}
	if ok, _ := look(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, start); ok {
		t.Error("a node without conditions is alive")
	}
}

func TestNodeChangesReportedOnce(t *testing.T) {
	tracker := New(Config{Nodes: true})
	r := report(kubelet, "n1", v1alpha1.ReportedFeature{Name: "A"})
	r.Spec.NodeName = "n1"
	tracker.SetReport(r, start)
	var got []bool
	set := func(status corev1.ConditionStatus) {
		got = append(got, len(tracker.SetNode(node("n1", status), start).Features) > 0)
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionTrue} {
		set(status)
	}
	tracker.DeleteNode(node("n1", corev1.ConditionTrue), start)
	set(corev1.ConditionTrue)
	if want := []bool{true, false, true, false, true, true}; !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLeaseExpiryReportedOnce(t *testing.T) {
	tracker := New(Config{})
	r := report("c", "1", v1alpha1.ReportedFeature{Name: "A"})
	r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: "c.1"}
	tracker.SetReport(r, start)
	tracker.SetLease(leaseFor("c", "1", start), start)
	var got []bool
	advance := func(after time.Duration) {
		got = append(got, slices.Contains(tracker.Advance(start.Add(after)).Features, "A"))
	}
	for _, after := range []time.Duration{0, time.Second, 40 * time.Second, 41 * time.Second} {
		advance(after)
	}
	tracker.SetLease(leaseFor("c", "1", start.Add(42*time.Second)), start.Add(42*time.Second))
	advance(43 * time.Second)
	tracker.DeleteLease(leaseFor("c", "1", start), start.Add(44*time.Second))
	tracker.SetLease(leaseFor("c", "1", start.Add(45*time.Second)), start.Add(45*time.Second))
	advance(46 * time.Second)
	if want := []bool{true, false, true, false, true, true}; !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}
