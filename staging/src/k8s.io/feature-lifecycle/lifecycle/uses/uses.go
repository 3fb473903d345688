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

// Package uses answers who uses a feature with which value, and whether that
// holds a transition. It is pure: the controller gathers instances from
// FeatureReports, Leases and Nodes and calls Aggregate and Waiting; nothing here
// talks to anybody, reads a clock or remembers anything.
package uses

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// MaxExamples is how many instances a FeatureUse names.
	MaxExamples = 5
	// MaxRows is how many rows Aggregate returns. Versions are what reporters say:
	// one that says ever new ones must not make a status longer than validation, or
	// etcd, accepts, and so stop all transitions of the feature.
	MaxRows = 200
	// fewRows is how many rows a component may have when there are too many.
	fewRows = 20
	// others is the component of rows when there are too many components.
	others = "others"
)

// Instance is one process that uses a feature, or one that should exist and has
// not said whether it does.
type Instance struct {
	// Component and Name identify the process, for example kubelet and the
	// node's name.
	Component, Name string
	// Version is the binary version, "" when not known.
	Version string
	// Reported is false for a process that should exist, a kubelet whose Node
	// is there, say, and has not reported.
	Reported bool
	// Enabled is the value found; without meaning when Reported is false.
	Enabled bool
	// Potential is true for a process that has the value set explicitly and has
	// not asked for it: no user, but it may have become one since its last
	// report.
	Potential bool
	// Alive is true while the process shows signs of life.
	Alive bool
	// Since is when the observer noticed that the process is not alive, or,
	// when Reported is false, that its report is missing, or, when Potential is
	// true, that it has this value. Unset otherwise.
	Since time.Time
	// Recent is true for a process that has not reported and may yet be
	// starting: it holds a transition, and nobody is told.
	Recent bool
	// Expected is true for components of which the cluster knows how many
	// there should be.
	Expected bool
	// Explicit is true for a process that has the value set explicitly: it takes
	// no other one from a rollout.
	Explicit bool
	// Lost is true for a process that the observer saw alive and that went
	// without an orderly end; Since says when that was noticed.
	Lost bool
	// LastSeen is when a process that is not alive last showed a sign of life, as
	// far as the observer can tell: earlier than Since. Unset when it cannot.
	LastSeen time.Time
	// TakenOver is when another process took this one's place that has not said
	// yet whether it uses the feature, or should have and did not come. Enabled is
	// what the one before found, all else is of the present one. Unset for what a
	// process says of itself.
	TakenOver time.Time
	// Crashes are the last times at which another process took this one's place
	// without an orderly end, oldest first.
	Crashes []time.Time
}

// Settings are the periods that decide how long an instance holds a transition.
type Settings struct {
	// Grace is how long an instance that cannot be reached, or never reported,
	// holds a transition.
	Grace time.Duration
	// RequireFullCoverage lets instances that never reported hold a transition
	// without end.
	RequireFullCoverage bool
	// ReportPeriod is how late a process may report that it asked for a
	// feature. So long a potential user holds a transition.
	ReportPeriod time.Duration
}

// stale says whether an instance is given up: it has been away for the grace
// period.
func (s Settings) stale(i Instance, now time.Time) bool {
	return !i.Alive && !now.Before(i.Since.Add(s.Grace))
}

// Aggregate counts instances by component, version and value. Rows come sorted,
// so that equal input gives equal output and nothing is written when nothing
// changed. When there would be more than MaxRows, versions are left out, first of
// the components with many rows, and at last components.
func Aggregate(instances []Instance, settings Settings, now time.Time) []v1alpha1.FeatureUse {
	instances = slices.DeleteFunc(sorted(instances), func(i Instance) bool { return i.Potential || i.Recent })
	rows := aggregate(instances, settings, now, func(k key) key { return k })
	perComponent := map[string]int{}
	for k := range rows {
		perComponent[k.component]++
	}
	for _, coarser := range []func(key) key{
		func(k key) key {
			if perComponent[k.component] > fewRows {
				k.version = ""
			}
			return k
		},
		func(k key) key { return key{component: k.component, value: k.value} },
		func(k key) key { return key{component: others, value: k.value} },
	} {
		if len(rows) <= MaxRows {
			break
		}
		rows = aggregate(instances, settings, now, coarser)
	}
	var result []v1alpha1.FeatureUse
	for _, k := range slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.version, b.version), cmp.Compare(a.value, b.value))
	}) {
		result = append(result, *rows[k])
	}
	return result
}

// key is what a row counts.
type key struct {
	component, version, value string
}

// aggregate counts instances in the rows that coarser makes of what each is.
func aggregate(instances []Instance, settings Settings, now time.Time, coarser func(key) key) map[key]*v1alpha1.FeatureUse {
	rows := map[key]*v1alpha1.FeatureUse{}
	for _, i := range instances {
		k := key{i.Component, i.Version, "unknown"}
		if i.Reported {
			k.value = map[bool]string{true: "on", false: "off"}[i.Enabled]
		}
		k = coarser(k)
		row := rows[k]
		if row == nil {
			row = &v1alpha1.FeatureUse{Component: k.component, Version: k.version}
			if i.Reported {
				enabled := i.Enabled
				row.Enabled = &enabled
			}
			rows[k] = row
		}
		switch {
		case !i.Reported:
			row.Expected++
		case settings.stale(i, now):
			row.Stale++
		default:
			row.Count++
			if i.Expected {
				row.Expected++
			}
		}
		if len(row.Examples) < MaxExamples {
			row.Examples = append(row.Examples, i.Name)
		}
	}
	return rows
}

// Wait says who holds a transition.
type Wait struct {
	// Opposing are instances with another value than the one wanted, named
	// <component>/<name>, sorted. Live ones come without a limit in time,
	// others until their grace period ends.
	Opposing []string
	// Missing are instances that should exist and never reported and still
	// hold the transition.
	Missing []string
	// Until is when the first of them stops holding the transition if nothing
	// is heard of it. Zero when time alone changes nothing.
	Until time.Time
}

// Over is true when nobody holds the transition.
func (w Wait) Over() bool { return len(w.Opposing) == 0 && len(w.Missing) == 0 }

// Waiting says who holds a transition to the value wanted that began at start
// (KEP-3920, "Waiting for uses").
func Waiting(instances []Instance, wanted bool, start time.Time, settings Settings, now time.Time) Wait {
	var wait Wait
	until := func(t time.Time) {
		if wait.Until.IsZero() || t.Before(wait.Until) {
			wait.Until = t
		}
	}
	for _, i := range sorted(instances) {
		name := i.Component + "/" + i.Name
		switch {
		case !i.Reported:
			// Time before the transition does not count against a process that
			// was not asked anything then.
			end := later(i.Since, start).Add(settings.Grace)
			if settings.RequireFullCoverage {
				wait.Missing = append(wait.Missing, name)
			} else if now.Before(end) {
				wait.Missing = append(wait.Missing, name)
				until(end)
			}
		case i.Enabled == wanted:
		case i.Potential:
			if end := later(i.Since, start).Add(settings.ReportPeriod); i.Alive && now.Before(end) {
				wait.Opposing = append(wait.Opposing, name)
				until(end)
			}
		case i.Alive:
			wait.Opposing = append(wait.Opposing, name)
		case !settings.stale(i, now):
			wait.Opposing = append(wait.Opposing, name)
			until(i.Since.Add(settings.Grace))
		}
	}
	return wait
}

// Differing returns the live instances with another value than the one given,
// named <component>/<name> and sorted.
func Differing(instances []Instance, value bool) []string {
	var names []string
	for _, i := range sorted(instances) {
		if i.Reported && !i.Potential && i.Alive && i.Enabled != value {
			names = append(names, i.Component+"/"+i.Name)
		}
	}
	return names
}

// Unreported returns the instances that should exist, have had the time to
// report and have not, named
// <component>/<name> and sorted.
func Unreported(instances []Instance) []string {
	var names []string
	for _, i := range sorted(instances) {
		if !i.Reported && !i.Recent {
			names = append(names, i.Component+"/"+i.Name)
		}
	}
	return names
}

func sorted(instances []Instance) []Instance {
	return slices.SortedFunc(slices.Values(instances), func(a, b Instance) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
