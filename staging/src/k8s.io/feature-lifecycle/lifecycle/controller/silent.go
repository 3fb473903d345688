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
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// silent remembers who should exist and has not reported. That is the same for all
// features, and is found anew only when it may have changed. It is safe for
// concurrent use.
type silent struct {
	mu        sync.Mutex
	known     bool
	instances []tracker.Instance
	// generation is that of the index, leases that of the Leases, for which the
	// instances are right, from a time on until another; the zero value of until is
	// no end.
	generation, leases uint64
	from, until        time.Time
	// leaseChanges counts changes of Leases that may matter.
	leaseChanges uint64
}

// leasesChanged says that what Leases tell may have changed.
func (s *silent) leasesChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaseChanges++
}

// silentNow are the processes that should exist and have not reported. The slice is
// shared and must not be changed.
func (c *Controller) silentNow(now time.Time) []tracker.Instance {
	s := &c.silence
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && s.generation == c.reports.changes() && s.leases == s.leaseChanges && !now.Before(s.from) && (s.until.IsZero() || now.Before(s.until)) {
		return s.instances
	}
	// It is looked at again when time alone changes something.
	var until time.Time
	again := func(at time.Time) {
		if at.After(now) && (until.IsZero() || at.Before(until)) {
			until = at
		}
	}
	s.leases, s.from = s.leaseChanges, now
	var kubelets []tracker.Instance
	kubelets, s.generation = c.silentKubelets(now, again)
	s.instances = append(kubelets, c.silentProcesses(now, again)...)
	s.known, s.until = true, until
	return s.instances
}

// silentKubelets are the kubelets that should exist, because their Nodes do, and
// have not reported. Those that may still be starting, or rebooting if their
// Nodes are not Ready, hold transitions without being shown. It returns the
// generation of the index as well, and calls again with times at which the answer
// may be another one.
func (c *Controller) silentKubelets(now time.Time, again func(time.Time)) (silent []tracker.Instance, generation uint64) {
	names, generation := c.reports.silentNodes()
	if c.config.Nodes == nil {
		return nil, generation
	}
	// Of one version those are alike that have been silent for so long that it does
	// not matter how long.
	given := map[string][]string{}
	for _, name := range names {
		node, err := c.config.Nodes.Lister().Get(name)
		if err != nil {
			// It has just gone.
			again(now.Add(time.Nanosecond))
			continue
		}
		report := kubelet + "." + name
		since := c.liveness.missing(report, now)
		if c.reports.has(report) {
			// It has just come, which is another generation.
			c.liveness.arrived(report)
			continue
		}
		delay := reportingDelay
		if !ready(node) {
			delay = max(delay, c.config.Settings.Grace)
		}
		recent, version := since.Add(delay), node.Status.NodeInfo.KubeletVersion
		again(recent)
		if settled := since.Add(max(reportingDelay, c.config.Settings.Grace)); now.Before(settled) {
			again(settled)
		} else {
			given[version] = append(given[version], name)
			continue
		}
		silent = append(silent, tracker.Instance{
			Component: kubelet,
			Name:      name,
			Version:   version,
			Since:     since,
			Starting:    now.Before(recent),
			Expected:  true,
		})
	}
	for version, names := range given {
		silent = append(silent, tracker.GroupOf(tracker.Instance{Component: kubelet, Version: version, Expected: true}, names))
	}
	return silent, generation
}

// silentProcesses are those that renew the Lease of a report that is not there:
// somebody has deleted it. They write it again within a minute or so, and hold
// transitions until then.
func (c *Controller) silentProcesses(now time.Time, again func(time.Time)) []tracker.Instance {
	var silent []tracker.Instance
	for _, informer := range c.config.Leases {
		for _, object := range informer.GetStore().List() {
			lease := asLease(object)
			if lease == nil || lease.Labels[v1alpha1.LabelComponent] == "" {
				continue
			}
			if _, is := c.config.identity(lease); is {
				// What holds is that a server has not reported.
				continue
			}
			component := lease.Labels[v1alpha1.LabelComponent]
			instance, ok := strings.CutPrefix(lease.Name, component+".")
			if !ok || component == c.config.Component {
				continue
			}
			alive, end := c.liveness.lease(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, now)
			if c.reports.has(lease.Name) || !alive {
				c.liveness.arrived(lease.Name)
				continue
			}
			since := c.liveness.missing(lease.Name, now)
			recent := since.Add(2 * reportingDelay)
			again(recent)
			again(end)
			silent = append(silent, tracker.Instance{
				Component: component,
				Name:      instance,
				Since:     since,
				Starting:    now.Before(recent),
				Expected:  true,
			})
		}
	}
	return silent
}

// identity is the server whose existence a Lease shows, false if it shows none.
func (c *Config) identity(lease *coordinationv1.Lease) (id string, is bool) {
	if c.IsIdentity != nil {
		return lease.Name, c.IsIdentity(lease)
	}
	id, is = strings.CutPrefix(lease.Name, c.Component+".")
	return id, is && lease.Namespace == c.Namespace && lease.Labels[v1alpha1.LabelComponent] == c.Component
}
