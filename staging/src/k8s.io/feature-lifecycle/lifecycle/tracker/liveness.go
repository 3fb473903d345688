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
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// nodeMonitorGrace is the minimum time without a heartbeat of a node before its
// condition Ready becomes Unknown. --node-monitor-grace-period of
// kube-controller-manager is 50 seconds by default and was 40 in earlier versions
// (pkg/controller/nodelifecycle/config/v1alpha1/defaults.go).
const nodeMonitorGrace = 40 * time.Second

// lastSeenDelay bounds how long before now a process was last seen that counts as alive
// now and is dead. A Lease counts for MaxLeaseTimeout after it was seen, which may be that
// long after it was renewed. The condition of a node is no slower.
const lastSeenDelay = 2 * max(MaxLeaseTimeout, nodeMonitorGrace)

// leases holds the Leases that exist. Liveness depends on when a Lease was last *seen
// to change*, on the clock of the observer, as in client-go's leader election.
type leases map[types.NamespacedName]*observedLease

type observedLease struct {
	// uid and version are those of the Lease that was observed last.
	uid     types.UID
	version string
	renewed time.Time
	seen    time.Time
	// lastAlive is seen, or earlier if the Lease was not new when first seen.
	lastAlive time.Time
	timeout   time.Duration
	// fresh is true when the process was alive at some time since the Lease is
	// watched: it was seen to change, or was young, by its own clock, when first
	// seen.
	fresh bool
	// component is that of the Lease's label. identity is true for the Lease of a server,
	// whose instance is server.
	component, server string
	identity          bool
	// wasAlive is what Advance found last, if checked is true.
	wasAlive, checked bool
}

// expires returns when the Lease expires if it does not change. It is when nothing new was
// seen for the timeout: clocks of others do not matter.
func (o *observedLease) expires() time.Time { return o.seen.Add(o.timeout) }

// alive returns true before the Lease expires.
func (o *observedLease) alive(now time.Time) bool { return now.Before(o.expires()) }

// observe records that a Lease was read at now.
func (l leases) observe(lease *coordinationv1.Lease, now time.Time) *observedLease {
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	var renewed time.Time
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	timeout := LeaseTimeout(lease.Spec.LeaseDurationSeconds)
	seen := l[key]
	switch {
	case seen == nil:
		seen = &observedLease{renewed: renewed, seen: now, lastAlive: now, fresh: now.Sub(renewed).Abs() < timeout}
		if seen.fresh && renewed.Before(now) {
			seen.lastAlive = renewed
		}
		l[key] = seen
	case !seen.renewed.Equal(renewed):
		seen.renewed, seen.seen, seen.lastAlive, seen.fresh = renewed, now, now, true
	}
	seen.uid, seen.version, seen.timeout = lease.UID, lease.ResourceVersion, timeout
	return seen
}

// expiredByOwner returns when a Lease expired by the clock of the process that renewed it;
// false when there is no Lease or it has no time.
func (l leases) expiredByOwner(key types.NamespacedName) (time.Time, bool) {
	seen := l[key]
	if seen == nil || seen.renewed.IsZero() {
		return time.Time{}, false
	}
	return seen.renewed.Add(seen.timeout), true
}

// failed returns true when a process was seen alive and its Lease has expired. One that
// terminates gracefully deletes its Lease.
func (l leases) failed(key types.NamespacedName, now time.Time) bool {
	seen := l[key]
	return seen != nil && seen.fresh && !seen.alive(now)
}

// lastSeen returns when the process behind a Lease was last seen alive: when the Lease
// was seen to change, or, if it has not been, when it was renewed. It is since for
// a Lease that does not exist.
func (l leases) lastSeen(key types.NamespacedName, since time.Time) time.Time {
	if seen := l[key]; seen != nil {
		return seen.lastAlive
	}
	return since
}

// absences are the times at which something was found to be missing or unreachable.
type absences struct {
	// leases are by Lease, nodes by Node: when they were found to be deleted or not Ready.
	leases map[types.NamespacedName]time.Time
	nodes  map[string]time.Time
	// reports are missing reports, nodesOf reports whose Node is missing, by report.
	reports, nodesOf map[string]time.Time
	// seenReady are the nodes that were seen to be Ready.
	seenReady map[string]bool
}

func newAbsences() absences {
	return absences{
		leases: map[types.NamespacedName]time.Time{}, nodes: map[string]time.Time{},
		reports: map[string]time.Time{}, nodesOf: map[string]time.Time{}, seenReady: map[string]bool{},
	}
}

// noticed returns when an absence was first noticed, now if it is new.
func noticed[K comparable](absences map[K]time.Time, key K, now time.Time) time.Time {
	since, ok := absences[key]
	if !ok {
		since = now
		absences[key] = now
	}
	return since
}

// node returns whether the processes of a node are alive, and if not, since when. That
// is when the observer noticed it, or, if it never saw the node Ready, the time in the
// condition.
func (a *absences) node(name string, node nodeState, now time.Time) (alive bool, since time.Time) {
	if node.ready {
		delete(a.nodes, name)
		a.seenReady[name] = true
		return true, time.Time{}
	}
	since = noticed(a.nodes, name, now)
	if !a.seenReady[name] && !node.changed.IsZero() && node.changed.Before(since) {
		since = node.changed
	}
	return false, since
}

// nodeFailed returns true when a node was seen to be Ready and is not.
func (a *absences) nodeFailed(name string, node nodeState) bool {
	return !node.ready && a.seenReady[name]
}

// forgetNode drops everything about a node that was deleted.
func (a *absences) forgetNode(name string) {
	delete(a.nodes, name)
	delete(a.seenReady, name)
	delete(a.reports, kubelet+"."+name)
}

// nodeState is what a Node reports of the processes on it.
type nodeState struct {
	// ready is true while the condition Ready is True, unknown while it is Unknown: the
	// node lifecycle controller received no heartbeat. changed is when it became so.
	ready, unknown bool
	changed        time.Time
	// kubelet is the version of its kubelet, the only source while that has no report.
	kubelet string
}

func stateOf(node *corev1.Node) nodeState {
	state := nodeState{kubelet: node.Status.NodeInfo.KubeletVersion}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			state.ready, state.unknown = c.Status == corev1.ConditionTrue, c.Status == corev1.ConditionUnknown
			state.changed = c.LastTransitionTime.Time
			break
		}
	}
	return state
}

// lastSeen returns when a node that was noticed at since not to be Ready was last seen
// alive. A node itself reports that it is not Ready. Only the node lifecycle controller
// sets Unknown, after a time without heartbeats. (The condition's last heartbeat does
// not help: it is written every 5 minutes.)
func (n nodeState) lastSeen(since time.Time) time.Time {
	if n.unknown {
		return since.Add(-nodeMonitorGrace)
	}
	return since
}

// leaseAlive returns whether the process behind a Lease is alive at now, and if not,
// since when. That is when the observer noticed it, or, if it never saw the process
// alive, when the Lease expired by the clock of its owner. So a server that takes over
// knows about a failed process what its predecessor knew. Other clocks decide only
// that: a process that renews its Lease is alive whatever its clock shows.
func (t *Tracker) leaseAlive(key types.NamespacedName, now time.Time) (alive bool, since time.Time) {
	seen := t.leases[key]
	switch {
	case seen == nil:
		return false, noticed(t.absences.leases, key, now)
	case seen.alive(now):
		return true, seen.expires()
	}
	since = seen.expires()
	if own := seen.renewed.Add(seen.timeout); !seen.fresh && !seen.renewed.IsZero() && own.Before(since) {
		since = own
	}
	return false, since
}

// ExpiredLease returns which version of a Lease has expired at now: the one that was
// observed last, which may be older than the informer's. It is nil for one that has not
// expired; known is false for one that was not observed.
func (t *Tracker) ExpiredLease(key types.NamespacedName, now time.Time) (version *metav1.Preconditions, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := t.leases[key]
	if seen == nil || seen.alive(now) {
		return nil, seen != nil
	}
	return &metav1.Preconditions{UID: ptr.To(seen.uid), ResourceVersion: ptr.To(seen.version)}, true
}

// leaseOf returns the key of the Lease that a report names, false for none.
func leaseOf(report *v1alpha1.FeatureReport) (types.NamespacedName, bool) {
	lease := report.Spec.Liveness.Lease
	if lease == nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, true
}

// alive returns whether a reporting process is alive, and if not, since when, as far as
// the observer can know. exists is false for a process whose Node is deleted: it counts
// as removed at once.
func (t *Tracker) alive(report *v1alpha1.FeatureReport, now time.Time) (alive bool, since time.Time, exists bool) {
	if lease, ok := leaseOf(report); ok {
		alive, since = t.leaseAlive(lease, now)
		return alive, since, true
	}
	if report.Spec.NodeName == "" || !t.config.Nodes {
		// Nothing shows its liveness: it counts as alive until its report is deleted.
		return true, time.Time{}, true
	}
	node, exists := t.index.nodes[report.Spec.NodeName]
	if !exists {
		return false, now, false
	}
	alive, since = t.absences.node(report.Spec.NodeName, node, now)
	return alive, since, true
}

// failed returns true when the process of a report was seen alive by this observer and
// is unreachable without a graceful end.
func (t *Tracker) failed(report *v1alpha1.FeatureReport, now time.Time) bool {
	if Terminating(report) {
		return false
	}
	if lease, ok := leaseOf(report); ok {
		return t.leases.failed(lease, now)
	}
	node, exists := t.index.nodes[report.Spec.NodeName]
	return t.config.Nodes && exists && t.absences.nodeFailed(report.Spec.NodeName, node)
}

// lastSeen returns when the process of a report was last seen alive that was noticed at
// since to be unreachable.
func (t *Tracker) lastSeen(report *v1alpha1.FeatureReport, since time.Time) time.Time {
	if lease, ok := leaseOf(report); ok {
		return t.leases.lastSeen(lease, since)
	}
	if node, exists := t.index.nodes[report.Spec.NodeName]; t.config.Nodes && exists {
		return node.lastSeen(since)
	}
	return since
}
