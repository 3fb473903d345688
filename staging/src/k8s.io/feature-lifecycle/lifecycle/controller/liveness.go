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
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/utils/ptr"
)

// nodeMonitorGrace is how long a node is not heard of, at the least, before its
// condition Ready becomes Unknown. --node-monitor-grace-period of
// kube-controller-manager is 50 seconds by default and was 40 in earlier versions
// (pkg/controller/nodelifecycle/config/v1alpha1/defaults.go).
const nodeMonitorGrace = 40 * time.Second

// lastSeenDelay is more than the time between now and when a process that counts as
// alive now turns out to have been last seen, if it is dead: so long a Lease counts
// after it was seen, which may be that late after it was renewed, and a node is
// noticed no later.
const lastSeenDelay = 2 * max(tracker.MaxLeaseTimeout, nodeMonitorGrace)

// liveness judges processes by when their Lease was last *seen to change*, on
// this process's own clock, as client-go's leader election does, and nodes by
// their Ready condition. It is safe for concurrent use.
type liveness struct {
	mu     sync.Mutex
	leases map[types.NamespacedName]*observedLease
	// lost is when a process or node was noticed to be gone; the keys are
	// those of lostLease and lostNode.
	lost map[string]time.Time
	// ready are the nodes that were seen to be Ready.
	ready map[string]bool
}

type observedLease struct {
	// uid and version are those of the Lease that was observed last.
	uid     types.UID
	version string
	renewed time.Time
	seen    time.Time
	// alive is seen, or earlier if the Lease was not new when first seen.
	alive   time.Time
	timeout time.Duration
	// fresh is true when the process was alive at some time since the Lease is
	// watched: it was seen to change, or was young, by its own clock, when first
	// seen.
	fresh bool
}

// expires is when the Lease expires if nothing is heard of it any more. It is when nothing
// new was seen for so long: clocks of others do not matter.
func (o *observedLease) expires() time.Time { return o.seen.Add(o.timeout) }

func newLiveness() *liveness {
	return &liveness{leases: map[types.NamespacedName]*observedLease{}, lost: map[string]time.Time{}, ready: map[string]bool{}}
}

// observe records that a Lease was read at now.
func (l *liveness) observe(lease *coordinationv1.Lease, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	var renewed time.Time
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	timeout := tracker.LeaseTimeout(lease.Spec.LeaseDurationSeconds)
	seen := l.leases[key]
	switch {
	case seen == nil:
		seen = &observedLease{renewed: renewed, seen: now, alive: now, fresh: now.Sub(renewed).Abs() < timeout}
		if seen.fresh && renewed.Before(now) {
			seen.alive = renewed
		}
		l.leases[key] = seen
		delete(l.lost, lostLease(key))
	case !seen.renewed.Equal(renewed):
		seen.renewed, seen.seen, seen.alive, seen.fresh = renewed, now, now, true
	}
	seen.uid, seen.version, seen.timeout = lease.UID, lease.ResourceVersion, timeout
}

// forget records that a Lease was deleted.
func (l *liveness) forget(key types.NamespacedName, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.leases, key)
	l.lost[lostLease(key)] = now
}

// forgetLease drops when a Lease that is gone went: nothing names it any more.
func (l *liveness) forgetLease(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lost, lostLease(key))
}

// lease returns whether the process behind a Lease is alive at now, and if not, since
// when: this process noticed it then, or, if it never saw the process alive, the Lease
// expired then by the clock of whoever renewed it. A server that takes over so knows of a
// process that is long gone what the one before it knew. Clocks decide that alone: one that
// lives is alive whatever its clock says.
func (l *liveness) lease(key types.NamespacedName, now time.Time) (alive bool, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.leases[key]
	switch {
	case seen == nil:
		return false, l.noticed(lostLease(key), now)
	case now.Before(seen.expires()):
		return true, seen.expires()
	}
	since = seen.expires()
	if own := seen.renewed.Add(seen.timeout); !seen.fresh && !seen.renewed.IsZero() && own.Before(since) {
		since = own
	}
	return false, since
}

// expiredLease is which version of a Lease has expired at now: the one that was observed
// last, which need not be the one that an informer has stored, since handlers are told
// later. It is nil for one that has not expired; known is false for one that was not
// observed.
func (l *liveness) expiredLease(key types.NamespacedName, now time.Time) (version *metav1.Preconditions, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.leases[key]
	if seen == nil || now.Before(seen.expires()) {
		return nil, seen != nil
	}
	return &metav1.Preconditions{UID: ptr.To(seen.uid), ResourceVersion: ptr.To(seen.version)}, true
}

// leaseExpired is when a Lease expired by the clock of the process that renewed it;
// false when it is not there or does not say.
func (l *liveness) leaseExpired(key types.NamespacedName) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.leases[key]
	if seen == nil || seen.renewed.IsZero() {
		return time.Time{}, false
	}
	return seen.renewed.Add(seen.timeout), true
}

// leaseDied is true when a process was seen alive and its Lease has expired. One
// that ends in order deletes its Lease.
func (l *liveness) leaseDied(key types.NamespacedName, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.leases[key]
	return seen != nil && seen.fresh && !now.Before(seen.expires())
}

// leaseSeen is when the process behind a Lease was last seen alive: when the Lease
// was seen to change, or, if it has not been, when it was renewed. It is since for
// a Lease that is not there any more.
func (l *liveness) leaseSeen(key types.NamespacedName, since time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen := l.leases[key]; seen != nil {
		return seen.alive
	}
	return since
}

// nodeSeen is when a node that is not Ready any more, as was noticed at since, was
// last seen alive. It says itself that it is not; that nobody knows, the node
// lifecycle controller says when it has not heard of it for so long. (The
// condition's last heartbeat does not help: it is written every 5 minutes.)
func nodeSeen(node *corev1.Node, since time.Time) time.Time {
	if c := readyCondition(node); c != nil && c.Status == corev1.ConditionUnknown {
		return since.Add(-nodeMonitorGrace)
	}
	return since
}

// nodeDied is true when a node was seen to be Ready and is not any more.
func (l *liveness) nodeDied(node *corev1.Node) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !ready(node) && l.ready[node.Name]
}

// node returns whether the processes of a node are alive, and if not, since when: this
// process noticed it then, or, if it never saw the node Ready, the node's condition says
// since when it is not.
func (l *liveness) node(node *corev1.Node, now time.Time) (alive bool, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ready(node) {
		delete(l.lost, lostNode(node.Name))
		l.ready[node.Name] = true
		return true, time.Time{}
	}
	since = l.noticed(lostNode(node.Name), now)
	if c := readyCondition(node); c != nil && !l.ready[node.Name] && !c.LastTransitionTime.IsZero() && c.LastTransitionTime.Time.Before(since) {
		since = c.LastTransitionTime.Time
	}
	return false, since
}

// missing says since when this process knows that a report is missing.
func (l *liveness) missing(report string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noticed(missingReport(report), now)
}

// arrived forgets that a report was missing: it came, or is awaited no more.
func (l *liveness) arrived(report string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lost, missingReport(report))
}

// forgetNode drops what was remembered of a node that was deleted.
func (l *liveness) forgetNode(name, kubeletReport string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lost, lostNode(name))
	delete(l.ready, name)
	delete(l.lost, missingReport(kubeletReport))
}

// nodeMissing says since when this process knows that the Node of a report does
// not exist.
func (l *liveness) nodeMissing(report string, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noticed(missingNode(report), now)
}

// nodeFound forgets that the Node of a report was missing: it is there, or the
// report has gone too.
func (l *liveness) nodeFound(report string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lost, missingNode(report))
}

// noticed needs the lock.
func (l *liveness) noticed(key string, now time.Time) time.Time {
	since, ok := l.lost[key]
	if !ok {
		since = now
		l.lost[key] = now
	}
	return since
}

func lostLease(key types.NamespacedName) string { return "lease/" + key.String() }
func lostNode(name string) string               { return "node/" + name }
func missingNode(report string) string          { return "node of report/" + report }
func missingReport(name string) string          { return "report/" + name }

func ready(node *corev1.Node) bool {
	c := readyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}

// readyCondition returns the condition Ready of a node, nil for none.
func readyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// lastSeen remembers a yes or no for each key, to notice when it changes. It is
// safe for concurrent use.
type lastSeen struct {
	mu   sync.Mutex
	last map[string]bool
}

func newLastSeen() *lastSeen { return &lastSeen{last: map[string]bool{}} }

// changed records a value and says whether it is another one than before; the
// first value of a key is a change.
func (l *lastSeen) changed(key string, value bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, ok := l.last[key]
	l.last[key] = value
	return !ok || old != value
}

// forget drops a key.
func (l *lastSeen) forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, key)
}
