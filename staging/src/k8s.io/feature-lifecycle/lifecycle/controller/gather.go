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

package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	listers "k8s.io/feature-lifecycle/client/listers/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
)

// observer reads what this server knows. It changes nothing.
type observer struct {
	config   *Config
	features declarations
	lister   listers.FeatureNamespaceLister
	tracker  *tracker.Tracker
	runner   *runner
	finder   *finder
	led      *ledFeatures
}

// gather collects what this server knows about a feature.
func (o *observer) gather(name string, now time.Time) transition.View {
	snapshot := o.tracker.Snapshot(name, now)
	view := transition.View{
		Servers:         snapshot.Servers,
		Reporters:       snapshot.Reporters,
		Instances:       snapshot.Instances,
		Replaced:        snapshot.Replaced,
		Lost:            snapshot.Lost,
		Declared:        o.features.declared(name),
		Leftovers:       o.finder.result(name),
		Inspected:       o.config.Tasks.Inspects(),
		Attempt:         o.runner.attempt(name),
		WatchingSince:   o.led.since(name, now),
		NewTransitionID: string(uuid.NewUUID()),
	}
	view.Upgrade, view.Downgrade = o.safety(name, snapshot.Flags, view.Declared)
	if o.config.NotServed != nil {
		view.NotServed = o.config.NotServed(name)
	}
	return view
}

// leads returns true if this server leads a feature: the first by rendezvous hashing
// among the live servers that know the gate or, when none does, among all that report.
// Servers whose controller has stopped are left out. If all that know the gate have
// stopped, no server leads: the others lack the tasks of the feature.
func (o *observer) leads(name string, servers []tracker.Server) bool {
	known := slices.ContainsFunc(servers, func(s tracker.Server) bool { return s.Knows })
	return leader.Of(name, candidates(servers, known)) == o.config.ServerID
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
