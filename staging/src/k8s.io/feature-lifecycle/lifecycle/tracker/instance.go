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
	"iter"
	"slices"
	"time"
)

// Instance is one process that uses a feature, or one that should exist and has not
// reported whether it does. It may stand for a group of others that are alike, so that
// the cost of a query over thousands of kubelets grows with their kinds.
type Instance struct {
	// Component and Name identify the process, for example kubelet and the
	// node's name.
	Component, Name string
	// Group are the names of further processes of which all else here holds, too,
	// sorted, and all behind Name. They are shared and must not be changed.
	Group []string
	// Version is the binary version, "" when not known.
	Version string
	// Reported is false for a process that should exist and has not reported, for example
	// a kubelet whose Node exists.
	Reported bool
	// Enabled is the value found; without meaning when Reported is false.
	Enabled bool
	// Potential is true for a process that has the value set explicitly and has not
	// queried it. It is no user, but may have become one since its last report.
	Potential bool
	// Alive is true while the process shows signs of life.
	Alive bool
	// Since is the time at which the observer noticed that the process is not alive. For one that it
	// never saw alive, it is when its Lease expired, or its Node stopped being Ready, by
	// their own times. When Reported is false it is when the observer noticed that the
	// report is missing. When Potential is true it is when the observer noticed that the
	// process has this value. Unset otherwise.
	Since time.Time
	// Starting is true for a process that has not reported and may still be starting: it
	// holds a transition, and is not shown to users.
	Starting bool
	// Expected is true for components of which the cluster knows how many
	// there should be.
	Expected bool
	// Explicit is true for a process that has the value set explicitly: it takes
	// no other one from a rollout.
	Explicit bool
	// SwitchTime is the moment at which the process takes the other value by itself
	// (v1alpha1.ReportedFeature), "" for none.
	SwitchTime string
	// Failed is true for a process that the observer saw alive and that ended
	// ungracefully. Since is when that was noticed.
	Failed bool
	// LastSeen is the time at which a process that is not alive was last seen alive, as far as the
	// observer knows: earlier than Since. Unset when unknown.
	LastSeen time.Time
	// ReplacedAt is the time at which another process replaced this one and has not reported yet
	// whether it uses the feature, or when this one was to return and did not. Enabled is
	// what the predecessor found, all else is of the present process. Unset for what a
	// process reports of itself.
	ReplacedAt time.Time
	// Crashes are the last times at which another process took this one's place
	// without an orderly end, oldest first.
	Crashes []time.Time
}

// Count returns the number of processes that the instance stands for.
func (i Instance) Count() int { return 1 + len(i.Group) }

// Names returns those of all processes that the instance stands for, sorted.
func (i Instance) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(i.Name) {
			return
		}
		for _, name := range i.Group {
			if !yield(name) {
				return
			}
		}
	}
}

// Has returns true when the instance stands for the process of a name.
func (i Instance) Has(name string) bool {
	if i.Name == name {
		return true
	}
	_, found := slices.BinarySearch(i.Group, name)
	return found
}

// Each returns the processes that instances stand for, one by one. Use it only for what
// depends on names: its cost grows with processes, not with groups.
func Each(instances []Instance) iter.Seq[Instance] {
	return func(yield func(Instance) bool) {
		for _, i := range instances {
			one := i
			one.Group = nil
			for name := range i.Names() {
				one.Name = name
				if !yield(one) {
					return
				}
			}
		}
	}
}

// GroupOf returns an instance for all processes that are like one, with the names
// given, sorted, at least one. It does not copy them.
func GroupOf(one Instance, names []string) Instance {
	one.Name, one.Group = names[0], names[1:]
	return one
}
