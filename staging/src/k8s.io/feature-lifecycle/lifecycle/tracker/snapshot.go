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
	"cmp"
	"slices"
	"strings"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Snapshot is what is known of a feature at one time.
type Snapshot struct {
	// Servers are the live servers, whether they know the gate or not, sorted by ID.
	Servers []Server
	// Reporters are the live processes other than servers that report the gate and may
	// announce it, sorted by ID.
	Reporters []Server
	// Instances are the users of the feature and those that should exist and have not
	// reported.
	Instances []Instance
	// Replaced are users of the feature that other processes replaced that have not
	// reported it (Instance.ReplacedAt).
	Replaced []Instance
	// Lost are users of the feature that failed and whose reports are deleted since.
	Lost []Instance
	// Flags are what live processes set.
	Flags Flags
}

// Snapshot returns what is known of a feature at now.
func (t *Tracker) Snapshot(feature string, now time.Time) Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Snapshot{Servers: t.liveServers(feature, now)}
	uniform, others := t.index.of(feature)
	for _, r := range others {
		alive, since, exists := t.alive(r.report, now)
		if !exists {
			continue
		}
		if alive {
			t.addFlags(&s.Flags, r)
			if r.report.Spec.Component != t.config.Servers && announces(r.report) {
				s.Reporters = append(s.Reporters, serverOf(r))
			}
		}
		if r.gate.Queried || r.gate.Explicit {
			s.Instances = append(s.Instances, t.instance(r, alive, since, now))
		}
	}
	for _, group := range uniform {
		s.Flags.Explicit = append(s.Flags.Explicit, settingsOf(group)...)
		if group.gate.Queried || group.gate.Explicit {
			s.Instances = append(s.Instances, groupInstance(group))
		}
	}
	missing := t.missingInstances(now)
	s.Instances = append(s.Instances, missing...)
	s.Replaced = append(t.replaced(feature, now), t.notReturned(feature, missing, now)...)
	s.Lost = t.lost.of(feature, slices.Concat(s.Instances, s.Replaced))
	t.completeFlags(&s.Flags, feature, now)
	slices.SortFunc(s.Reporters, func(a, b Server) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// announces returns true for a process other than a server that may announce a gate
// unknown to servers: one that renews a Lease of its own. A node must not be able to
// make up features. The identity of a node cannot renew such a Lease, whatever its
// report contains.
func announces(report *v1alpha1.FeatureReport) bool {
	lease := report.Spec.Liveness.Lease
	return report.Spec.NodeName == "" && lease != nil && lease.Name == report.Name
}

// groupInstance returns uniform processes as users of a feature.
func groupInstance(group uniformGroup) Instance {
	return GroupOf(Instance{
		Component:  group.component,
		Version:    group.version,
		Reported:   true,
		Enabled:    group.gate.Enabled,
		Potential:  !group.gate.Queried,
		Alive:      true,
		Expected:   group.component == kubelet,
		Explicit:   group.gate.Explicit,
		SwitchTime: group.gate.SwitchTime,
	}, group.names)
}

// instance returns a process as a user of a feature.
func (t *Tracker) instance(r record, alive bool, since, now time.Time) Instance {
	spec := &r.report.Spec
	i := Instance{
		Component:  spec.Component,
		Name:       spec.Instance,
		Version:    spec.BinaryVersion,
		Reported:   true,
		Enabled:    r.gate.Enabled,
		Potential:  !r.gate.Queried,
		Alive:      alive,
		Since:      since,
		Expected:   spec.Component == kubelet || spec.Component == t.config.Servers,
		Explicit:   r.gate.Explicit,
		SwitchTime: r.gate.SwitchTime,
		Crashes:    r.crashes,
	}
	switch {
	case !alive:
		i.Failed, i.LastSeen = t.failed(r.report, now), t.lastSeen(r.report, since)
	case i.Potential:
		i.Since = r.since
	}
	return i
}

// replaced returns the processes that replaced users of a feature and have
// not lived long enough to report whether they use it. One that fails before that
// never reports it.
func (t *Tracker) replaced(feature string, now time.Time) []Instance {
	var instances []Instance
	for _, r := range t.index.replacementsOf(feature) {
		alive, since, exists := t.alive(r.report, now)
		if !exists {
			continue
		}
		i := t.instance(r.record, alive, since, now)
		if t.undecided(r, i, now) {
			i.ReplacedAt = r.replacedAt
			instances = append(instances, i)
		}
	}
	return instances
}

// notReturned returns the kubelets, among those whose reports are missing, that used a
// feature, terminated and did not return, although their Nodes exist and are not Ready.
// That is how a kubelet appears that restarts for a value and fails before it reports.
// Other components need not return.
func (t *Tracker) notReturned(feature string, missing []Instance, now time.Time) []Instance {
	var instances []Instance
	for _, d := range t.index.notReturnedOf(feature) {
		node, isKubelet := strings.CutPrefix(d.report, kubelet+".")
		at := slices.IndexFunc(missing, func(i Instance) bool { return i.Component == kubelet && i.Has(node) })
		if !isKubelet || at < 0 || missing[at].Starting || t.index.nodes[node].ready {
			continue
		}
		i := GroupOf(missing[at], []string{node})
		i.Since = noticed(t.absences.reports, d.report, now)
		// No process has replaced it, so its last report still shows what set the value.
		i.Reported, i.Enabled, i.Explicit, i.Failed, i.ReplacedAt = true, d.gate.Enabled, d.gate.Explicit, true, d.at
		instances = append(instances, i)
	}
	return instances
}

// undecided returns true while a process may have queried a feature without having
// reported it, or until its end.
func (t *Tracker) undecided(r replacement, i Instance, now time.Time) bool {
	end := now
	if !i.Alive {
		end = i.LastSeen
	}
	return end.Before(r.replacedAt.Add(t.config.Settings.ReportPeriod))
}

// Newcomers returns the live processes other than servers that were first seen less
// than Settings.ReportPeriod ago and have not reported a query of a feature. They are
// named <component>/<name> and sorted by the names of their reports.
func (t *Tracker) Newcomers(feature string, now time.Time) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, report := range t.index.since(now.Add(-t.config.Settings.ReportPeriod)) {
		r, listed := t.index.reported(report.Name, feature)
		if t.live(report, now) && report.Spec.Component != t.config.Servers && (!listed || !r.gate.Queried) {
			names = append(names, report.Spec.Component+"/"+report.Spec.Instance)
		}
	}
	return names
}
