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
	"strings"
	"time"
)

const (
	// reportingDelay is the time that a process that has just appeared may take to report
	// before its report counts as missing.
	reportingDelay = time.Minute
	// startingDelay is the same for a server, which reports as soon as it serves. It is as
	// long as the identity of a failed server may seem alive.
	startingDelay = MaxLeaseTimeout
)

// missingCache holds the instances whose reports are missing. They are the same for all
// features, and are computed again only when they may have changed.
type missingCache struct {
	known     bool
	instances []Instance
	// generation is that of the index, and leases that of leaseChanges, for which the
	// instances are valid, from a time on until another. A zero until is no end.
	generation, leases uint64
	from, until        time.Time
	// leaseChanges counts changes of Leases that may matter.
	leaseChanges uint64
}

// requery calls for another computation at a time, if that is after now.
func (m *missingCache) requery(at, now time.Time) {
	if at.After(now) && (m.until.IsZero() || at.Before(m.until)) {
		m.until = at
	}
}

// missingInstances returns the processes that should exist and have not reported.
func (t *Tracker) missingInstances(now time.Time) []Instance {
	m := &t.missing
	if m.known && m.generation == t.index.generation && m.leases == m.leaseChanges && !now.Before(m.from) && (m.until.IsZero() || now.Before(m.until)) {
		return m.instances
	}
	m.known, m.generation, m.leases, m.from, m.until = true, t.index.generation, m.leaseChanges, now, time.Time{}
	m.instances = append(t.missingKubelets(now), t.missingProcesses(now)...)
	return m.instances
}

// missingKubelets returns the kubelets that should exist, because their Nodes do, and
// have not reported. Those that may still be starting, or rebooting if their
// Nodes are not Ready, hold transitions without being shown.
func (t *Tracker) missingKubelets(now time.Time) []Instance {
	if !t.config.Nodes {
		return nil
	}
	var missing []Instance
	// Kubelets of one version are a group once it does not matter since when they are missing.
	groups := map[string][]string{}
	for _, name := range t.index.missingKubelets() {
		node := t.index.nodes[name]
		since := noticed(t.absences.reports, kubelet+"."+name, now)
		delay := reportingDelay
		if !node.ready {
			delay = max(delay, t.config.Settings.Grace)
		}
		started := since.Add(delay)
		t.missing.requery(started, now)
		settled := since.Add(max(reportingDelay, t.config.Settings.Grace))
		if !now.Before(settled) {
			groups[node.kubelet] = append(groups[node.kubelet], name)
			continue
		}
		t.missing.requery(settled, now)
		missing = append(missing, Instance{
			Component: kubelet,
			Name:      name,
			Version:   node.kubelet,
			Since:     since,
			Starting:  now.Before(started),
			Expected:  true,
		})
	}
	for version, names := range groups {
		missing = append(missing, GroupOf(Instance{Component: kubelet, Version: version, Expected: true}, names))
	}
	return missing
}

// missingProcesses returns the processes that renew the Lease of a report that was deleted.
// They write it again within a minute or so, and hold transitions until then.
func (t *Tracker) missingProcesses(now time.Time) []Instance {
	var missing []Instance
	for key, lease := range t.leases {
		instance, ok := strings.CutPrefix(key.Name, lease.component+".")
		if lease.component == "" || lease.identity || !ok || lease.component == t.config.Servers {
			// A transition waits for servers as such (Tracker.liveServers).
			continue
		}
		if t.index.has(key.Name) || !lease.alive(now) {
			delete(t.absences.reports, key.Name)
			continue
		}
		since := noticed(t.absences.reports, key.Name, now)
		started := since.Add(2 * reportingDelay)
		t.missing.requery(started, now)
		t.missing.requery(lease.expires(), now)
		missing = append(missing, Instance{
			Component: lease.component,
			Name:      instance,
			Since:     since,
			Starting:  now.Before(started),
			Expected:  true,
		})
	}
	return missing
}

const (
	// MaxDeferrals is the number of calls of Advance in a row that may defer a change of
	// overdue reports.
	MaxDeferrals = 5
	// manyReports is the number of reports at once that defer a change: others follow.
	manyReports = 5
)

// overdue notices changes of the instances whose reports are overdue.
type overdue struct {
	// versions are those of the instances, by <component>/<name>.
	versions  map[string]string
	deferrals int
}

// changed records which of the missing instances are overdue, and returns whether every
// feature has to be reconciled: all of them show it. While very many report
// that did not, or one after the other is upgraded, only the last change counts.
func (o *overdue) changed(missing []Instance) bool {
	now := map[string]string{}
	for i := range Each(missing) {
		if !i.Reported && !i.Starting {
			now[i.Component+"/"+i.Name] = i.Version
		}
	}
	came, reported, upgraded := 0, len(o.versions), 0
	for name, version := range now {
		before, known := o.versions[name]
		if !known {
			came++
			continue
		}
		reported--
		if before != version {
			upgraded++
		}
	}
	o.versions = now
	several := reported > manyReports && len(now) > 0 || reported == 0 && upgraded > 0
	if came == 0 && several && o.deferrals < MaxDeferrals {
		o.deferrals++
		return false
	}
	late := o.deferrals > 0
	o.deferrals = 0
	return late || came+reported+upgraded > 0
}
