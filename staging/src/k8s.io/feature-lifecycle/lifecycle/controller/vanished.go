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
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

const (
	// vanishedRetention is how long a process that died is remembered after its
	// report has gone. Machines that are replaced one by one when they fail would
	// otherwise never add up.
	vanishedRetention = 24 * time.Hour
	// maxVanished bounds how many are remembered.
	maxVanished = 1000
)

// vanished remembers processes that died, and whose reports have gone since: with
// their Node, say, or because they were gone for long. Each server remembers what
// it saw itself. It is safe for concurrent use.
type vanished struct {
	mu    sync.Mutex
	known map[string]vanishedProcess
}

// vanishedProcess is a process that died.
type vanishedProcess struct {
	// since is when that was noticed.
	since time.Time
	// instance is the process, without what depends on the feature.
	instance tracker.Instance
	// gates are what it reported, shared with those that reported the same, and
	// inherited what it may have used besides.
	gates     map[string]*v1alpha1.ReportedFeature
	inherited map[string]heir
}

// as is the process as a user of a feature, false if it was none.
func (p vanishedProcess) as(feature string) (tracker.Instance, bool) {
	i, gate := p.instance, p.gates[feature]
	if gate == nil || !gate.Queried {
		h, ok := p.inherited[feature]
		if !ok {
			return i, false
		}
		gate, i.ReplacedAt = h.gate, h.takenOver
	}
	i.Enabled, i.Explicit = gate.Enabled, gate.Explicit
	return i, true
}

func newVanished() *vanished { return &vanished{known: map[string]vanishedProcess{}} }

// add remembers a process that died, and forgets what is too old or, when that is
// too much, the oldest.
func (v *vanished) add(report string, process vanishedProcess, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, report)
	oldest := ""
	for name, other := range v.known {
		if !now.Before(other.since.Add(vanishedRetention)) {
			delete(v.known, name)
		} else if oldest == "" || other.since.Before(v.known[oldest].since) {
			oldest = name
		}
	}
	if len(v.known) >= maxVanished {
		delete(v.known, oldest)
	}
	v.known[report] = process
}

// forget drops a process: it has come back.
func (v *vanished) forget(report string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, report)
}

// of returns the users of a feature that have vanished and are not among those
// present, sorted.
func (v *vanished) of(feature string, present []tracker.Instance) []tracker.Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) == 0 {
		return nil
	}
	var instances []tracker.Instance
	for _, process := range v.known {
		i, ok := process.as(feature)
		if ok && !slices.ContainsFunc(present, func(other tracker.Instance) bool { return other.Component == i.Component && other.Has(i.Name) }) {
			instances = append(instances, i)
		}
	}
	slices.SortFunc(instances, func(a, b tracker.Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
	return instances
}

// noteVanished remembers the processes of reports, which died as was noticed at
// since and were last seen at seen, before what shows that goes.
func (c *Controller) noteVanished(reports []*v1alpha1.FeatureReport, since, seen, now time.Time) {
	for _, report := range reports {
		if !tracker.Terminating(report) {
			c.vanish(report, since, seen, now)
		}
	}
}

// vanish remembers a process that died.
func (c *Controller) vanish(report *v1alpha1.FeatureReport, since, seen, now time.Time) {
	spec := &report.Spec
	process := vanishedProcess{
		since: since,
		instance: tracker.Instance{
			Component: spec.Component,
			Name:      spec.Instance,
			Version:   spec.BinaryVersion,
			Reported:  true,
			Since:     since,
			LastSeen:  seen,
			Failed:      true,
		},
		gates:     c.reports.gates(report.Name),
		inherited: map[string]heir{},
	}
	for _, h := range c.reports.inheritedBy(report.Name) {
		if c.undecided(h, tracker.Instance{LastSeen: seen}, now) {
			process.inherited[h.gate.Name] = h
		}
	}
	c.vanished.add(report.Name, process, now)
}

// died is true when a process was seen alive by this server and went without an
// orderly end.
func (c *Controller) died(report *v1alpha1.FeatureReport, now time.Time) bool {
	if tracker.Terminating(report) {
		return false
	}
	if lease := report.Spec.Liveness.Lease; lease != nil {
		return c.liveness.leaseDied(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, now)
	}
	if report.Spec.NodeName == "" || c.config.Nodes == nil {
		return false
	}
	node, err := c.config.Nodes.Lister().Get(report.Spec.NodeName)
	return err == nil && c.liveness.nodeDied(node)
}

// lastSeen is when the process of a report was last seen alive, of which was
// noticed at since that it is not.
func (c *Controller) lastSeen(report *v1alpha1.FeatureReport, since time.Time) time.Time {
	if lease := report.Spec.Liveness.Lease; lease != nil {
		return c.liveness.leaseSeen(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, since)
	}
	if report.Spec.NodeName == "" || c.config.Nodes == nil {
		return since
	}
	node, err := c.config.Nodes.Lister().Get(report.Spec.NodeName)
	if err != nil {
		return since
	}
	return nodeSeen(node, since)
}
