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

package observe

import (
	"cmp"
	"slices"
)

// Components whose gates are observed.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
)

// Value is the value of a gate in a process.
type Value struct {
	// Enabled is the value.
	Enabled bool
	// Stage is the gate's, as metrics have it: ALPHA, BETA, DEPRECATED, or empty for GA,
	// and for values that metrics do not have.
	Stage string
	// Explicit is true for a value that was set; nil if that is not known.
	Explicit *bool
	// Source says where the value was observed, for example "metrics of nodes/n1".
	Source string
	// Derived is true for a value that follows from the version of the process.
	Derived bool
}

// Process is one whose gates were observed.
type Process struct {
	// Component and Instance name it. A kubelet's instance is its Node, that of a Pod the
	// Pod, and that of a kube-apiserver its address, where it can be told.
	Component, Instance string
	// Node is the node on which it runs, if known.
	Node string
	// Version is that of its binary, if known, and Emulates the minor version that it
	// emulates, if it is told to.
	Version, Emulates string
	// Gates are by name.
	Gates map[string]Value
	// Complete is true if all its gates were observed, and not only those that are set.
	Complete bool
	// Unread is true if the process is told more than could be read: what is not among
	// Gates is not known then, and is not its default.
	Unread bool
}

// Gap is something that was not observed.
type Gap struct {
	// Component is what it is about.
	Component string
	// Instances are those concerned, as far as they have names.
	Instances []string
	// Why says why, and Next what is missing: a permission, an address, a setting.
	Why, Next string
}

// Setting is a value for processes that are still to come: kubeadm gives it to nodes that
// join.
type Setting struct {
	Component, Gate string
	Enabled         bool
	Source          string
}

// Cluster is what was observed of one.
type Cluster struct {
	// Version is that of the server that answered first.
	Version string
	// Processes are by component and instance.
	Processes []Process
	// Settings are those of nodes that join, and Joins the sources of all such settings, by
	// component: what a source does not set has the default of the version that joins.
	Settings []Setting
	Joins    map[string]string
	// Gaps are what was not observed.
	Gaps []Gap
	// Nodes is the number of Nodes, and Asked how many of them were asked.
	Nodes, Asked int
}

// sort orders what parallel reads found.
func (c *Cluster) sort() {
	slices.SortStableFunc(c.Processes, func(a, b Process) int {
		return cmp.Or(cmp.Compare(place(a.Component), place(b.Component)), cmp.Compare(a.Instance, b.Instance))
	})
	slices.SortStableFunc(c.Gaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(place(a.Component), place(b.Component)), cmp.Compare(a.Why, b.Why))
	})
	for _, g := range c.Gaps {
		slices.Sort(g.Instances)
	}
	slices.SortFunc(c.Settings, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(place(a.Component), place(b.Component)), cmp.Compare(a.Gate, b.Gate))
	})
}

// place is the order of components: those of the control plane first.
func place(component string) int {
	return slices.Index([]string{APIServer, ControllerManager, Scheduler, Kubelet, Proxy}, component)
}

// addGap adds a gap, together with another instance's of the same cause.
func (c *Cluster) addGap(gap Gap) {
	for i := range c.Gaps {
		if g := &c.Gaps[i]; g.Component == gap.Component && g.Why == gap.Why && g.Next == gap.Next {
			g.Instances = append(g.Instances, gap.Instances...)
			return
		}
	}
	c.Gaps = append(c.Gaps, gap)
}
