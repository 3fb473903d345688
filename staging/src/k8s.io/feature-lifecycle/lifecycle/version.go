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

package lifecycle

import (
	"fmt"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/feature-lifecycle/lifecycle/task"
)

// Version is what happens to what a feature stores when the cluster's version,
// the lowest effective version of the live servers, passes a boundary: whatever
// the feature's value, since what is stored may be left from a time when it was
// another one.
//
//	Versions: lifecycle.Versions{{
//		At:          "1.36",
//		OnUpgrade:   lifecycle.Tasks{lifecycle.ClearCollection(workloads)},
//		OnDowngrade: lifecycle.Tasks{lifecycle.ClearCollection(workloads)},
//	}}
//
// A binary that emulates a version below At knows the forms on both sides: it is
// where OnDowngrade runs, before binaries are replaced by older ones (KEP-3920,
// "Upgrade and downgrade"; KEP-4330 for emulation). A transition that turns back
// half way runs the tasks of the other direction, and one that restarts runs
// all its tasks again, so each has to cope with objects of either form.
type Version struct {
	// At is the minor version above the boundary, for example 1.36.
	At string
	// OnUpgrade runs when the cluster's version changes from below At to At or above, once
	// no live server has the old one.
	OnUpgrade Tasks
	// OnDowngrade runs when it goes below At.
	OnDowngrade Tasks
}

// Versions are boundaries, in any order. A move over several of them runs the
// tasks of each, in the order in which they are passed.
type Versions []Version

// Upgrading returns OnUpgrade under the names that the tasks have in a Feature's
// list: a move over several boundaries may have one task for each.
func (v Version) Upgrading() Tasks { return v.OnUpgrade.named("Upgrade/" + v.At + "/") }

// Downgrading is the same for OnDowngrade.
func (v Version) Downgrading() Tasks { return v.OnDowngrade.named("Downgrade/" + v.At + "/") }

func (t Tasks) named(prefix string) Tasks {
	var named Tasks
	for _, task := range t {
		task.Name = prefix + task.Name
		named = append(named, task)
	}
	return named
}

// tasks returns those of all boundaries and both directions, under their names in a
// Feature's list.
func (v Versions) tasks() Tasks {
	var all Tasks
	for _, version := range v {
		all = append(all, version.Upgrading()...)
		all = append(all, version.Downgrading()...)
	}
	return all
}

// Task finds the task of a version transition by its name in a Feature's list.
func (v Versions) Task(name string) (task.Task, bool) {
	for _, t := range v.tasks() {
		if t.Name == name {
			return t, true
		}
	}
	return task.Task{}, false
}

// validate reports what is wrong with the boundaries.
func (v Versions) validate(problem func(format string, args ...any)) {
	seen := map[string]bool{}
	for _, version := range v {
		// The names of tasks and status.version have the same form.
		if parsed, err := utilversion.ParseMajorMinor(version.At); err != nil || fmt.Sprintf("%d.%d", parsed.Major(), parsed.Minor()) != version.At {
			problem("version boundary %q is no minor version; write it like 1.36", version.At)
		}
		if seen[version.At] {
			problem("version boundary %s is declared twice; merge the declarations", version.At)
		}
		seen[version.At] = true
		if len(version.OnUpgrade) == 0 && len(version.OnDowngrade) == 0 {
			problem("version boundary %s declares no task; leave it out, the version moves all the same", version.At)
		}
	}
	// A transition that is replaced may run both directions.
	if n := len(v.tasks()); n > maxTasks {
		problem("%d tasks are declared for all versions, %d are allowed", n, maxTasks)
	}
}
