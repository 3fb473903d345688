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
	"maps"
	"slices"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// MaxExamples is the number of instances that a FeatureUse names.
	MaxExamples = 5
	// MaxRows is the number of rows that Aggregate returns at most. Versions are chosen by
	// reporters: one that reports ever new ones must not make a status longer than
	// validation, or etcd, accepts. That would stop all transitions of the feature.
	MaxRows = 200
	// fewRows is the number of rows that a component may have when there are too many.
	fewRows = 20
	// others is the component of rows when there are too many components.
	others = "others"
)

// Settings are the periods that decide how long an instance holds a transition. Here
// they count as they are: 0 is no time at all.
type Settings struct {
	// Grace is the time that an instance that is unreachable or missing holds a transition; 5
	// minutes by default.
	Grace time.Duration
	// RequireFullCoverage lets instances that never reported hold a transition
	// without end.
	RequireFullCoverage bool
	// ReportPeriod is how late a process may report that it queried a feature. A potential
	// user holds a transition for as long. The default is 70 seconds: the minute between
	// two reports of a process (v1alpha1.ReportPeriod) and a margin.
	ReportPeriod time.Duration
}

// DefaultSettings returns those of a kube-apiserver without flags.
func DefaultSettings() Settings {
	return Settings{Grace: 5 * time.Minute, ReportPeriod: 70 * time.Second}
}

// stale reports whether an instance has been away for the grace period.
func (s Settings) stale(i Instance, now time.Time) bool {
	return !i.Alive && !now.Before(i.Since.Add(s.Grace))
}

// Aggregate counts instances by component, version and value. Rows come sorted,
// so that equal input gives equal output and nothing is written when nothing
// changed. When there would be more than MaxRows, versions are left out, first of
// the components with many rows, and at last components.
func Aggregate(instances []Instance, settings Settings, now time.Time) []v1alpha1.FeatureUse {
	instances = slices.DeleteFunc(slices.Clone(instances), func(i Instance) bool { return i.Potential || i.Starting })
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

// key is what distinguishes rows.
type key struct {
	component, version, value string
}

// aggregate counts instances in the rows that coarser makes of what each is.
func aggregate(instances []Instance, settings Settings, now time.Time, coarser func(key) key) map[key]*v1alpha1.FeatureUse {
	rows := map[key]*v1alpha1.FeatureUse{}
	for _, i := range instances {
		count := int32(i.Count())
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
			row.Expected += count
		case settings.stale(i, now):
			row.Stale += count
		default:
			row.Count += count
			if i.Expected {
				row.Expected += count
			}
		}
		row.Examples = firstNames(row.Examples, i)
	}
	return rows
}

// firstNames adds the names of an instance to examples, which stay sorted, and no
// more than MaxExamples.
func firstNames(examples []string, i Instance) []string {
	add := func(name string) bool {
		at, _ := slices.BinarySearch(examples, name)
		if at >= MaxExamples {
			return false
		}
		examples = slices.Insert(examples, at, name)
		examples = examples[:min(len(examples), MaxExamples)]
		return true
	}
	for name := range i.Names() {
		// The rest is sorted behind it.
		if !add(name) {
			break
		}
	}
	return examples
}

// Wait lists the instances that hold a transition.
type Wait struct {
	// Opposing are instances with another value than the one wanted, named
	// <component>/<name>, sorted. Live ones have no time limit, others hold until their
	// grace period ends.
	Opposing []string
	// Switching are instances with the value wanted that take the other one by themselves
	// at a moment, as Opposing.
	Switching []string
	// Missing are instances that should exist and never reported and still
	// hold the transition.
	Missing []string
	// Away are those of Opposing and Switching that are not alive. AwayUntil and
	// MissingUntil are when the last of Away and of Missing stops holding the transition,
	// unless it returns.
	// They are zero where there are none, or where time alone changes nothing.
	Away                    []string
	AwayUntil, MissingUntil time.Time
	// Until is the time at which the first of them stops holding the transition, unless it returns.
	// Zero when time alone changes nothing.
	Until time.Time
}

// Over returns true when no instance holds the transition.
func (w Wait) Over() bool { return w.Holding() == 0 }

// Holding returns how many instances hold the transition.
func (w Wait) Holding() int { return len(w.Opposing) + len(w.Switching) + len(w.Missing) }

// Waiting returns the instances that hold a transition to the value wanted that began
// at start (KEP-3920, "Waiting for uses").
func Waiting(instances []Instance, wanted bool, start time.Time, settings Settings, now time.Time) Wait {
	var wait Wait
	until := func(t time.Time) {
		if wait.Until.IsZero() || t.Before(wait.Until) {
			wait.Until = t
		}
	}
	var opposing, switching, missing, away []Instance
	for _, i := range instances {
		opposes := &opposing
		if i.Enabled == wanted {
			opposes = &switching
		}
		switch {
		case !i.Reported:
			// Time before the transition does not count against a process that had nothing to
			// change then.
			end := later(i.Since, start).Add(settings.Grace)
			if settings.RequireFullCoverage {
				missing = append(missing, i)
			} else if now.Before(end) {
				missing = append(missing, i)
				until(end)
				wait.MissingUntil = later(wait.MissingUntil, end)
			}
		case i.Enabled == wanted && i.SwitchTime == "":
		case i.Potential:
			if end := later(i.Since, start).Add(settings.ReportPeriod); i.Alive && now.Before(end) {
				*opposes = append(*opposes, i)
				until(end)
			}
		case i.Alive:
			*opposes = append(*opposes, i)
		case !settings.stale(i, now):
			*opposes, away = append(*opposes, i), append(away, i)
			end := i.Since.Add(settings.Grace)
			until(end)
			wait.AwayUntil = later(wait.AwayUntil, end)
		}
	}
	wait.Opposing, wait.Switching, wait.Missing, wait.Away = fullNames(opposing), fullNames(switching), fullNames(missing), fullNames(away)
	return wait
}

// Differing returns the live instances with another value than the one given, named
// <component>/<name> and sorted.
func Differing(instances []Instance, value bool) []string {
	var differing []Instance
	for _, i := range instances {
		if i.Reported && !i.Potential && i.Alive && i.Enabled != value {
			differing = append(differing, i)
		}
	}
	return fullNames(differing)
}

// Unconfirmed returns the live instances that have another value than the one given, and
// do not take it by themselves at a moment (v1alpha1.ReportedFeature.SwitchTime), as far as
// they reported. They are named <component>/<name> and sorted. Those that have a value set
// explicitly never take another one, and are left out.
func Unconfirmed(instances []Instance, value bool, switchTime string) []string {
	var unconfirmed []Instance
	for _, i := range instances {
		if i.Reported && !i.Potential && i.Alive && !i.Explicit && i.Enabled != value && i.SwitchTime != switchTime {
			unconfirmed = append(unconfirmed, i)
		}
	}
	return fullNames(unconfirmed)
}

// Undecided returns the instances that may use another value than the one given and
// have not reported that yet, named <component>/<name> and sorted. These are processes
// that set it and may report late, that replaced a user, or that are starting.
func Undecided(instances []Instance, value bool, settings Settings, now time.Time) []string {
	var undecided []Instance
	for _, i := range instances {
		switch {
		case !i.Reported:
			if i.Starting {
				undecided = append(undecided, i)
			}
		case i.Enabled == value || !i.Alive:
		case !i.ReplacedAt.IsZero(), i.Potential && now.Before(i.Since.Add(settings.ReportPeriod)):
			undecided = append(undecided, i)
		}
	}
	return fullNames(undecided)
}

// Missing returns the instances that should exist, have had the time to
// report and have not, named
// <component>/<name> and sorted.
func Missing(instances []Instance) []string {
	var unreported []Instance
	for _, i := range instances {
		if !i.Reported && !i.Starting {
			unreported = append(unreported, i)
		}
	}
	return fullNames(unreported)
}

// fullNames names all processes of instances <component>/<name>, sorted by these.
func fullNames(instances []Instance) []string {
	if len(instances) == 0 {
		return nil
	}
	type process struct{ component, name string }
	var processes []process
	for _, i := range instances {
		for name := range i.Names() {
			processes = append(processes, process{i.Component, name})
		}
	}
	slices.SortFunc(processes, func(a, b process) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, len(processes))
	for _, p := range processes {
		names = append(names, p.component+"/"+p.name)
	}
	return names
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
