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
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	listers "k8s.io/feature-lifecycle/client/listers/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
)

// observer reads what this server knows. It changes nothing.
type observer struct {
	config   *Config
	binary   versionskew.Binary
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
	view.Upgrade, view.Downgrade = o.evaluateSkew(name, snapshot.Flags, view.Declared)
	if o.config.NotServed != nil {
		view.NotServed = o.config.NotServed(name)
	}
	return view
}

// leads returns true if this server leads a feature.
func (o *observer) leads(name string, servers []tracker.Server) bool {
	return leader.OfServers(name, servers) == o.config.ServerID
}
