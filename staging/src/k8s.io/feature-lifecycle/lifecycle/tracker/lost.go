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
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// lostRetention is the time that a failed process is remembered after its report was
	// deleted. Machines that are replaced one by one when they fail would otherwise never
	// add up.
	lostRetention = 24 * time.Hour
	// maxLost bounds how many are remembered.
	maxLost = 1000
)

// lostProcesses holds processes that failed and whose reports are deleted since: with
// their Node, for example, or after the retention. Each server remembers what it saw
// itself. The key is the report's name.
type lostProcesses map[string]lostProcess

// lostProcess is a process that failed.
type lostProcess struct {
	// since is the time at which that was noticed.
	since time.Time
	// instance is the process, without what depends on the feature.
	instance Instance
	// gates are what it reported, shared with those that reported the same. replaced is
	// what it may have used besides.
	gates    map[string]*v1alpha1.ReportedFeature
	replaced map[string]replacement
}

// as returns the process as a user of a feature, false if it was none.
func (p lostProcess) as(feature string) (Instance, bool) {
	i, gate := p.instance, p.gates[feature]
	if gate == nil || !gate.Queried {
		r, ok := p.replaced[feature]
		if !ok {
			return i, false
		}
		gate, i.ReplacedAt = r.gate, r.replacedAt
	}
	i.Enabled, i.Explicit = gate.Enabled, gate.Explicit
	return i, true
}

// add remembers a process, and drops those that are too old or, when there are too many, the
// oldest.
func (l lostProcesses) add(report string, process lostProcess, now time.Time) {
	delete(l, report)
	oldest := ""
	for name, other := range l {
		if !now.Before(other.since.Add(lostRetention)) {
			delete(l, name)
		} else if oldest == "" || other.since.Before(l[oldest].since) {
			oldest = name
		}
	}
	if len(l) >= maxLost {
		delete(l, oldest)
	}
	l[report] = process
}

// of returns the lost users of a feature that are not among the present instances, sorted.
func (l lostProcesses) of(feature string, present []Instance) []Instance {
	var instances []Instance
	for _, process := range l {
		i, ok := process.as(feature)
		if ok && !slices.ContainsFunc(present, func(other Instance) bool { return other.Component == i.Component && other.Has(i.Name) }) {
			instances = append(instances, i)
		}
	}
	slices.SortFunc(instances, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
	return instances
}

// keepAllLost remembers the processes of reports that were noticed at since to have failed
// and were last seen at seen, before what shows that is deleted.
func (t *Tracker) keepAllLost(reports []*v1alpha1.FeatureReport, since, seen, now time.Time) {
	for _, report := range reports {
		if !Terminating(report) {
			t.keepLost(report, since, seen, now)
		}
	}
}

// keepLost remembers a process that failed.
func (t *Tracker) keepLost(report *v1alpha1.FeatureReport, since, seen, now time.Time) {
	spec := &report.Spec
	process := lostProcess{
		since: since,
		instance: Instance{
			Component: spec.Component,
			Name:      spec.Instance,
			Version:   spec.BinaryVersion,
			Reported:  true,
			Since:     since,
			LastSeen:  seen,
			Failed:    true,
		},
		gates:    t.index.gates(report.Name),
		replaced: map[string]replacement{},
	}
	for _, r := range t.index.replacing(report.Name) {
		if t.undecided(r, Instance{LastSeen: seen}, now) {
			process.replaced[r.gate.Name] = r
		}
	}
	t.lost.add(report.Name, process, now)
}
