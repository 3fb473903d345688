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
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// kubelet is the component that every Node is expected to run.
const kubelet = "kubelet"

// Config is what a Tracker needs to know of its cluster.
type Config struct {
	// Namespace has the reports. Servers is the component whose processes are the servers,
	// for example kube-apiserver.
	Namespace, Servers string
	// IsIdentity decides which Leases are identities of servers, named as their instances.
	// Nil means that servers have none but the Leases of their reports, with the label
	// v1alpha1.LabelComponent.
	IsIdentity func(*coordinationv1.Lease) bool
	// Nodes is true when SetNode is called for every Node. Without it a node component
	// is alive until its report is deleted, and none is expected.
	Nodes bool
	// Settings are the periods that decide how long an instance matters.
	Settings Settings
	// MaxCrashes is the number of crashes of a process that are remembered, CrashWindow
	// for how long.
	MaxCrashes  int
	CrashWindow time.Duration
	// Dependences are the gates that each gate depends on or that depend on it: their
	// safety changes with what processes set for it.
	Dependences map[string][]versionskew.Dependence
}

// Tracker holds what reports, Leases and Nodes contain about processes. It is fed what
// the caller watches, and returns the instances that use a feature. It reads no clock:
// the caller passes the time, which must not decrease. It is safe for concurrent use.
// What it returns is shared and must not be changed.
type Tracker struct {
	config Config

	// mu guards everything below. Each exported method holds it once, so that callers
	// never see half of a change.
	mu       sync.Mutex
	index    *index
	leases   leases
	absences absences
	lost     lostProcesses
	missing  missingCache
	overdue  overdue
	// servers is the set of live servers at the last change.
	servers string
}

// Changes are the features that a change concerns.
type Changes struct {
	// Features are those that may have changed, sorted.
	Features []string
	// Transitions is true when the change may end the wait of any transition, whichever
	// features it concerns.
	Transitions bool
	// All is true when the change concerns every feature: other servers are alive.
	All bool
}

// New returns a Tracker that knows of no process.
func New(config Config) *Tracker {
	return &Tracker{
		config: config,
		index: newIndex(indexConfig{
			dependences: config.Dependences,
			servers:     config.Servers,
			maxCrashes:  config.MaxCrashes,
			crashWindow: config.CrashWindow,
			settled:     config.Settings.ReportPeriod,
		}),
		leases:   leases{},
		absences: newAbsences(),
		lost:     lostProcesses{},
	}
}

// SetReport records a report that was stored.
func (t *Tracker) SetReport(report *v1alpha1.FeatureReport, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.index.has(report.Name)
	delete(t.lost, report.Name)
	changes := Changes{Features: t.index.set(report, now), Transitions: !known}
	delete(t.absences.reports, report.Name)
	changes.All = report.Spec.Component == t.config.Servers && t.serversChanged(now)
	return changes
}

// DeleteReport records that a report was deleted.
func (t *Tracker) DeleteReport(report *v1alpha1.FeatureReport, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.index.has(report.Name)
	if alive, since, exists := t.alive(report, now); exists && !alive && t.failed(report, now) {
		t.keepLost(report, since, t.lastSeen(report, since), now)
	}
	// Absences count from now on, whatever was known of the process before.
	delete(t.absences.reports, report.Name)
	delete(t.absences.nodesOf, report.Name)
	changes := Changes{Features: t.index.remove(report.Name, now), Transitions: known}
	if lease := report.Spec.Liveness.Lease; lease != nil {
		delete(t.absences.leases, types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name})
	}
	changes.All = report.Spec.Component == t.config.Servers && t.serversChanged(now)
	return changes
}

// SetLease records a Lease that was stored.
func (t *Tracker) SetLease(lease *coordinationv1.Lease, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	wasAlive, _ := t.leaseAlive(key, now)
	observed := t.leases.observe(lease, now)
	delete(t.absences.leases, key)
	observed.component = lease.Labels[v1alpha1.LabelComponent]
	observed.server, observed.identity = t.config.identity(lease)
	isAlive, _ := t.leaseAlive(key, now)
	return t.leaseChanged(key, wasAlive, isAlive, now)
}

// DeleteLease records that a Lease was deleted.
func (t *Tracker) DeleteLease(lease *coordinationv1.Lease, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	wasAlive, since := t.leaseAlive(key, now)
	if t.leases.failed(key, now) {
		// A report that is cleaned up loses its Lease first.
		t.keepAllLost(t.index.naming(key), since, t.leases.lastSeen(key, since), now)
	}
	delete(t.leases, key)
	if t.index.named(key) {
		t.absences.leases[key] = now
	} else {
		delete(t.absences.leases, key)
	}
	delete(t.absences.reports, t.config.Servers+"."+key.Name)
	delete(t.absences.reports, key.Name)
	return t.leaseChanged(key, wasAlive, false, now)
}

// leaseChanged returns what depends on a Lease. It needs the lock, as every function below
// that is not exported.
func (t *Tracker) leaseChanged(key types.NamespacedName, wasAlive, isAlive bool, now time.Time) Changes {
	if isAlive != wasAlive || !t.index.has(key.Name) {
		t.missing.leaseChanges++
	}
	if isAlive == wasAlive {
		return Changes{}
	}
	return Changes{
		Features:    t.index.featuresOf(t.index.naming(key)),
		Transitions: !t.index.named(key),
		All:         t.serversChanged(now),
	}
}

// SetNode records a Node that was stored.
func (t *Tracker) SetNode(node *corev1.Node, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := stateOf(node)
	// A canary counts a process from when its Node was seen to be Ready.
	t.absences.node(node.Name, state, now)
	if !t.index.setNode(node.Name, state) {
		return Changes{}
	}
	return t.nodeChanged(node.Name)
}

// DeleteNode records that a Node was deleted.
func (t *Tracker) DeleteNode(node *corev1.Node, now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := stateOf(node)
	_, since := t.absences.node(node.Name, state, now)
	if t.absences.nodeFailed(node.Name, state) {
		t.keepAllLost(t.index.onNode(node.Name), since, state.lastSeen(since), now)
	}
	t.absences.forgetNode(node.Name)
	t.index.deleteNode(node.Name)
	return t.nodeChanged(node.Name)
}

// nodeChanged returns what depends on a Node.
func (t *Tracker) nodeChanged(name string) Changes {
	reports := t.index.onNode(name)
	for _, report := range reports {
		delete(t.absences.nodesOf, report.Name)
	}
	return Changes{Features: t.index.featuresOf(reports), Transitions: !t.index.has(kubelet + "." + name)}
}

// Advance drops what is too old at now and returns what time alone has changed: Leases that
// expired, reports that are overdue. It is to be called every few seconds.
func (t *Tracker) Advance(now time.Time) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes := Changes{All: t.serversChanged(now)}
	var reports []*v1alpha1.FeatureReport
	for key, lease := range t.leases {
		if alive := lease.alive(now); !lease.checked || lease.wasAlive != alive {
			lease.checked, lease.wasAlive = true, alive
			reports = append(reports, t.index.naming(key)...)
			// Without a report, its process was expected to write another.
			changes.Transitions = changes.Transitions || !alive && !t.index.named(key)
		}
	}
	changes.All = t.overdue.changed(t.missingInstances(now)) || changes.All
	features := slices.Concat(t.index.featuresOf(reports), t.dropPredecessors(now))
	slices.Sort(features)
	changes.Features = slices.Compact(features)
	t.index.settle(now)
	return changes
}

// Features returns every feature that a report lists, or that an earlier process of one
// queried, sorted.
func (t *Tracker) Features() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.index.features))
}

// Reports returns the number of reports by component.
func (t *Tracker) Reports() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.index.counts()
}

// identity returns the server whose existence a Lease shows, false if it shows none.
func (c *Config) identity(lease *coordinationv1.Lease) (id string, is bool) {
	if c.IsIdentity != nil {
		return lease.Name, c.IsIdentity(lease)
	}
	id, is = strings.CutPrefix(lease.Name, c.Servers+".")
	return id, is && lease.Namespace == c.Namespace && lease.Labels[v1alpha1.LabelComponent] == c.Servers
}
