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
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

const (
	// reportingDelay is how long a process that has just appeared may take to
	// report before anybody is told that it has not.
	reportingDelay = time.Minute
	// startingDelay is the same for a server, which reports as soon as it serves.
	// It is as long as the identity of a server that is gone may seem alive.
	startingDelay = tracker.MaxLeaseTimeout
	// kubelet is the component that every Node is expected to run.
	kubelet = "kubelet"
)

// gather collects what this server knows about a feature.
func (c *Controller) gather(name string, now time.Time) transition.View {
	view := transition.View{
		Declared:        c.declared(name),
		Leftovers:       c.finder.result(name),
		Inspected:       c.config.Tasks.Inspects(),
		Attempt:         c.runner.attempt(name),
		WatchingSince:   c.led.since(name, now),
		NewTransitionID: string(uuid.NewUUID()),
	}
	crowds, others := c.reports.of(name)
	view.Servers = c.liveServers(name, now)
	var given commandLines
	for _, e := range others {
		alive, since, exists := c.alive(e.report, now)
		if !exists {
			continue
		}
		spec := &e.report.Spec
		if alive && spec.Component != c.config.Component && announces(e.report) {
			view.Reporters = append(view.Reporters, reported(e))
		}
		if e.gate.Explicit && alive {
			given.explicit = append(given.explicit, c.setting(e))
		}
		if by, ok := c.controlled(e); ok && alive {
			given.controlled = append(given.controlled, by)
		}
		if e.gate.Queried || e.gate.Explicit {
			view.Instances = append(view.Instances, c.instance(e, alive, since, now))
		}
	}
	for _, crowd := range crowds {
		given.explicit = append(given.explicit, c.settings(crowd)...)
		if crowd.gate.Queried || crowd.gate.Explicit {
			view.Instances = append(view.Instances, c.instances(crowd))
		}
	}
	silent := c.silentNow(now)
	view.Instances = append(view.Instances, silent...)
	view.Replaced = append(c.replaced(name, now), c.departed(name, silent, now)...)
	view.Lost = c.vanished.of(name, slices.Concat(view.Instances, view.Replaced))
	c.completeDependences(&given, name, now)
	view.Upgrade, view.Downgrade = c.safety(name, given, view.Declared)
	if c.config.NotServed != nil {
		view.NotServed = c.config.NotServed(name)
	}
	slices.SortFunc(view.Reporters, func(a, b transition.Server) int { return cmp.Compare(a.ID, b.ID) })
	return view
}

// instances are usual processes as users of a feature.
func (c *Controller) instances(crowd crowd) tracker.Instance {
	return tracker.GroupOf(tracker.Instance{
		Component: crowd.component,
		Version:   crowd.version,
		Reported:  true,
		Enabled:   crowd.gate.Enabled,
		Potential: !crowd.gate.Queried,
		Alive:     true,
		Expected:  crowd.component == kubelet,
		Explicit:  crowd.gate.Explicit,
	}, crowd.names)
}

// instance is a process as a user of a feature.
func (c *Controller) instance(e entry, alive bool, since, now time.Time) tracker.Instance {
	spec := &e.report.Spec
	i := tracker.Instance{
		Component: spec.Component,
		Name:      spec.Instance,
		Version:   spec.BinaryVersion,
		Reported:  true,
		Enabled:   e.gate.Enabled,
		Potential: !e.gate.Queried,
		Alive:     alive,
		Since:     since,
		Expected:  spec.Component == kubelet || spec.Component == c.config.Component,
		Explicit:  e.gate.Explicit,
		Crashes:   e.crashes,
	}
	switch {
	case !alive:
		i.Failed, i.LastSeen = c.died(e.report, now), c.lastSeen(e.report, since)
	case i.Potential:
		i.Since = e.since
	}
	return i
}

// replaced are the processes that took the place of users of a feature and have
// not lived long enough to say whether they use it. One that dies before that
// never says it.
func (c *Controller) replaced(feature string, now time.Time) []tracker.Instance {
	var instances []tracker.Instance
	for _, h := range c.reports.heirsOf(feature) {
		alive, since, exists := c.alive(h.report, now)
		if !exists {
			continue
		}
		i := c.instance(h.entry, alive, since, now)
		if c.undecided(h, i, now) {
			i.ReplacedAt = h.takenOver
			instances = append(instances, i)
		}
	}
	return instances
}

// departed are the kubelets among those that are silent that used a feature, ended
// in order and did not come back, although their Nodes are there, and are not
// Ready. A kubelet that restarts for a value and fails before it reports is gone
// so. Of other components nobody knows whether they should come back.
func (c *Controller) departed(feature string, silent []tracker.Instance, now time.Time) []tracker.Instance {
	var instances []tracker.Instance
	for _, d := range c.reports.departedOf(feature) {
		node, isKubelet := strings.CutPrefix(d.report, kubelet+".")
		at := slices.IndexFunc(silent, func(i tracker.Instance) bool { return i.Component == kubelet && i.Has(node) })
		if !isKubelet || at < 0 || silent[at].Starting {
			continue
		}
		if n, err := c.config.Nodes.Lister().Get(node); err != nil || ready(n) {
			continue
		}
		i := tracker.GroupOf(silent[at], []string{node})
		i.Since = c.liveness.missing(d.report, now)
		// Nobody has taken its place, so its last report still says who set the value.
		i.Reported, i.Enabled, i.Explicit, i.Failed, i.ReplacedAt = true, d.gate.Enabled, d.gate.Explicit, true, d.at
		instances = append(instances, i)
	}
	return instances
}

// undecided is true while a process may have asked for a feature without having
// reported it, or until its end.
func (c *Controller) undecided(h heir, i tracker.Instance, now time.Time) bool {
	end := now
	if !i.Alive {
		end = i.LastSeen
	}
	return end.Before(h.takenOver.Add(c.config.Settings.ReportPeriod))
}

// forgetInherited drops what was inherited and is of no interest any more: nobody came
// to inherit it, or who did has lived long enough to say what it uses.
func (c *Controller) forgetInherited(now time.Time) {
	c.enqueue(c.reports.forgetInherited(now.Add(-inheritedRetention - c.config.Settings.Grace)))
	// Of a process that dies it is known that late when it was last seen.
	c.reports.decided(now.Add(-c.config.Settings.ReportPeriod-lastSeenDelay), func(report *v1alpha1.FeatureReport) bool {
		alive, _, exists := c.alive(report, now)
		return alive && exists
	})
}

// announces says whether a process that is no server may make a gate known that
// no server knows: one that renews a Lease of its own. A node must not be able
// to make up features, and the identities that run on nodes cannot renew such a
// Lease, whatever their report says.
func announces(report *v1alpha1.FeatureReport) bool {
	lease := report.Spec.Liveness.Lease
	return report.Spec.NodeName == "" && lease != nil && lease.Name == report.Name
}

// liveServers are those that report and those that only have an identity, with what
// they say of a feature; "" is none.
func (c *Controller) liveServers(feature string, now time.Time) []transition.Server {
	byID := map[string]transition.Server{}
	for _, report := range c.reports.ofComponent(c.config.Component) {
		if alive, _, exists := c.alive(report, now); !alive || !exists {
			continue
		}
		server := transition.Server{ID: report.Spec.Instance, Reported: true, Version: report.Spec.EmulationVersion, Binary: report.Spec.BinaryVersion}
		if e, ok := c.reports.says(report.Name, feature); ok {
			server = reported(e)
		}
		server.ControllerStopped = tracker.ControllerStopped(report)
		byID[server.ID] = server
	}
	for key, id := range c.identities() {
		name := c.config.Component + "." + id
		_, listed := byID[id]
		if alive, _ := c.liveness.lease(key, now); !alive || listed {
			c.liveness.arrived(name)
			continue
		}
		since := c.liveness.missing(name, now)
		byID[id] = transition.Server{ID: id, Starting: now.Before(since.Add(startingDelay))}
	}
	servers := make([]transition.Server, 0, len(byID))
	for _, server := range byID {
		servers = append(servers, server)
	}
	slices.SortFunc(servers, func(a, b transition.Server) int { return cmp.Compare(a.ID, b.ID) })
	return servers
}

// identities are the Leases that say which servers exist, with their names.
func (c *Controller) identities() map[types.NamespacedName]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.identityLeases)
}

// serversNow are the live servers, without what they say of any feature.
func (c *Controller) serversNow() []transition.Server {
	return c.liveServers("", c.config.Clock.Now())
}

func reported(e entry) transition.Server {
	return transition.Server{
		ID:       e.report.Spec.Instance,
		Reported: true,
		Knows:    true,
		Gate:     *e.gate,
		Version:  e.report.Spec.EmulationVersion,
		Binary:   e.report.Spec.BinaryVersion,
	}
}

// alive says whether a reporting process is alive, and if not, since when, as far as this
// server can know (liveness.lease, liveness.node). exists is false for a process whose Node is gone: it leaves at
// once.
func (c *Controller) alive(report *v1alpha1.FeatureReport, now time.Time) (alive bool, since time.Time, exists bool) {
	if lease := report.Spec.Liveness.Lease; lease != nil {
		alive, since = c.liveness.lease(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, now)
		return alive, since, true
	}
	if report.Spec.NodeName == "" || c.config.Nodes == nil {
		// Nobody can tell: a report is taken for what it says until it is gone.
		return true, time.Time{}, true
	}
	node, err := c.config.Nodes.Lister().Get(report.Spec.NodeName)
	if err != nil {
		return false, now, false
	}
	alive, since = c.liveness.node(node, now)
	return alive, since, true
}

// leads says whether this server looks after a feature: the first by rendezvous
// hashing among the live servers that know the gate, or, when none does, among
// all that report. Those whose flow has ended are left out. If all that know the gate
// are such, nobody leads: what the others would do lacks the tasks of the feature.
func (c *Controller) leads(name string, servers []transition.Server) bool {
	known := slices.ContainsFunc(servers, func(s transition.Server) bool { return s.Knows })
	return leader.Of(name, able(servers, known)) == c.config.ServerID
}

// able are the IDs of the servers that may look after something: they report, and run the
// server flow. With knowing only those that know the gate are.
func able(servers []transition.Server, knowing bool) []string {
	var ids []string
	for _, server := range servers {
		// One that does not report runs no server flow either.
		if server.Reported && !server.ControllerStopped && (server.Knows || !knowing) {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

func (c *Controller) declared(name string) transition.Declared {
	feature := c.features[name]
	declared := transition.Declared{
		OnEnable:  feature.OnEnable.Names(),
		OnDisable: feature.OnDisable.Names(),
		Removes:   slices.ContainsFunc(feature.OnDisable, func(t task.Task) bool { return !t.Waits }),
	}
	for _, v := range feature.Versions {
		declared.Versions = append(declared.Versions, transition.VersionTasks{
			At: v.At, OnUpgrade: v.Upgrading().Names(), OnDowngrade: v.Downgrading().Names(),
		})
		declared.Obstructing = append(declared.Obstructing, v.Upgrading().Obstructing()...)
	}
	return declared
}

// taskOf finds a task that is declared for the transition under way.
func (c *Controller) taskOf(feature *v1alpha1.Feature, name string) (task.Task, bool) {
	return c.declaredTask(feature.Name, feature.Status.State, name)
}

// declaredTask finds a task that is declared for the transition that a state is of.
func (c *Controller) declaredTask(feature string, state v1alpha1.FeatureState, name string) (task.Task, bool) {
	declared := c.features[feature]
	if transition.OfVersion(state) {
		return declared.Versions.Task(name)
	}
	tasks := declared.OnDisable
	if goal, _ := transition.Goal(state); goal {
		tasks = declared.OnEnable
	}
	i := slices.IndexFunc(tasks, func(t task.Task) bool { return t.Name == name })
	if i < 0 {
		return task.Task{}, false
	}
	return tasks[i], true
}
