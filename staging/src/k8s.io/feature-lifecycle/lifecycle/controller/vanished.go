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
	"k8s.io/feature-lifecycle/lifecycle/uses"
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
	// uses are the features that it used, or may have used, by name.
	uses map[string]uses.Instance
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
func (v *vanished) of(feature string, present []uses.Instance) []uses.Instance {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.known) == 0 {
		return nil
	}
	here := map[string]bool{}
	for _, i := range present {
		here[i.Component+"."+i.Name] = true
	}
	var instances []uses.Instance
	for name, process := range v.known {
		if i, ok := process.uses[feature]; ok && !here[name] {
			instances = append(instances, i)
		}
	}
	slices.SortFunc(instances, func(a, b uses.Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
	return instances
}

// noteVanished remembers the processes of reports, which died as was noticed at
// since and were last seen at seen, before what shows that goes.
func (c *Controller) noteVanished(match func(*v1alpha1.FeatureReport) bool, since, seen, now time.Time) {
	for _, report := range c.reports.matching(match) {
		if !uses.Ending(report) {
			c.vanish(report, since, seen, now)
		}
	}
}

// vanish remembers a process that died.
func (c *Controller) vanish(report *v1alpha1.FeatureReport, since, seen, now time.Time) {
	spec := &report.Spec
	process := vanishedProcess{since: since, uses: map[string]uses.Instance{}}
	add := func(gate *v1alpha1.ReportedFeature, takenOver time.Time) {
		process.uses[gate.Name] = uses.Instance{
			Component: spec.Component,
			Name:      spec.Instance,
			Version:   spec.BinaryVersion,
			Reported:  true,
			Enabled:   gate.Enabled,
			Explicit:  gate.Explicit,
			Since:     since,
			LastSeen:  seen,
			TakenOver: takenOver,
			Lost:      true,
		}
	}
	for _, h := range c.reports.inheritedBy(report.Name) {
		if c.undecided(h, uses.Instance{LastSeen: seen}, now) {
			add(h.gate, h.takenOver)
		}
	}
	for i := range spec.Features {
		if gate := &spec.Features[i]; gate.Asked {
			add(gate, time.Time{})
		}
	}
	c.vanished.add(report.Name, process, now)
}

// died is true when a process was seen alive by this server and went without an
// orderly end.
func (c *Controller) died(report *v1alpha1.FeatureReport, now time.Time) bool {
	if uses.Ending(report) {
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

// onNode matches the reports of processes that are alive while a Node is Ready.
func onNode(name string) func(*v1alpha1.FeatureReport) bool {
	return func(report *v1alpha1.FeatureReport) bool {
		return report.Spec.Liveness.Lease == nil && report.Spec.NodeName == name
	}
}
