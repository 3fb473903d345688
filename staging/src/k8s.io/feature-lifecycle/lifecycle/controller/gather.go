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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// gather collects what this server knows about a feature.
func (c *Controller) gather(name string, now time.Time) transition.View {
	snapshot := c.tracker.Snapshot(name, now)
	view := transition.View{
		Servers:         snapshot.Servers,
		Reporters:       snapshot.Reporters,
		Instances:       snapshot.Instances,
		Replaced:        snapshot.Replaced,
		Lost:            snapshot.Lost,
		Declared:        c.declared(name),
		Leftovers:       c.finder.result(name),
		Inspected:       c.config.Tasks.Inspects(),
		Attempt:         c.runner.attempt(name),
		WatchingSince:   c.led.since(name, now),
		NewTransitionID: string(uuid.NewUUID()),
	}
	view.Upgrade, view.Downgrade = c.safety(name, snapshot.Flags, view.Declared)
	if c.config.NotServed != nil {
		view.NotServed = c.config.NotServed(name)
	}
	return view
}

// leads is true if this server leads a feature: the first by rendezvous
// hashing among the live servers that know the gate or, when none does, among
// all that report. Servers whose controller has stopped are left out. If all that know the
// gate are such, no server leads: the others lack the tasks of the feature.
func (c *Controller) leads(name string, servers []tracker.Server) bool {
	known := slices.ContainsFunc(servers, func(s tracker.Server) bool { return s.Knows })
	return leader.Of(name, candidates(servers, known)) == c.config.ServerID
}

// candidates returns the IDs of the servers that may lead something: they report, and run
// the controller. If knowing is true, only servers that know the gate are candidates.
func candidates(servers []tracker.Server, knowing bool) []string {
	var ids []string
	for _, server := range servers {
		// A server that does not report runs no controller either.
		if server.Reported && !server.ControllerStopped && (server.Knows || !knowing) {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// declared returns what the author of a feature declared.
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
