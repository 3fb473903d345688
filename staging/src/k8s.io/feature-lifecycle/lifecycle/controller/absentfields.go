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
	"context"
	"maps"
	"slices"
	"sync"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
)

// absentFields remembers the fields that this version does not have
// (task.ClearRemovedField) and no stored object holds. Finding that out reads a whole
// collection in etcd, all Pods for example. Servers of RemovedField.At and later versions
// cannot store the field, so one walk is enough while all live servers are such. It is
// forgotten when another server is seen, for however short a time: an older one, or one
// whose version is not known. Restoring etcd needs a restart of all servers, which begin
// with an empty memory. It is safe for concurrent use.
type absentFields struct {
	// servers returns the live servers. Nil means that they are not known, and nothing is
	// remembered.
	servers func() []tracker.Server

	mu sync.Mutex
	// walks are those since whose begin no such server was seen.
	walks map[removedTask]*removedWalk
}

// removedTask is a task for a field that this version does not have. Its name shows to
// which namespace it is limited, if it is.
type removedTask struct {
	name  string
	field task.RemovedField
}

// removedWalk is one search for a field.
type removedWalk struct {
	// clean is true when it has ended and found nothing.
	clean bool
}

func newAbsentFields() *absentFields {
	return &absentFields{walks: map[removedTask]*removedWalk{}}
}

// remember returns the tasks with finders that search for a field only if it may be there.
func (a *absentFields) remember(tasks lifecycle.Tasks) lifecycle.Tasks {
	if a.servers == nil {
		return tasks
	}
	tasks = slices.Clone(tasks)
	for i, t := range tasks {
		if t.Removed != nil {
			tasks[i].Find = a.finder(removedTask{t.Name, *t.Removed}, t.Find)
		}
	}
	return tasks
}

// finder returns a task's finder that finds nothing, at no cost, while the field is known
// to be absent.
func (a *absentFields) finder(of removedTask, find taskFinder) taskFinder {
	return func(ctx context.Context, clients task.Clients) ([]v1alpha1.ResourceLeftovers, error) {
		walk, absent := a.begin(of)
		if absent {
			return nil, nil
		}
		found, err := find(ctx, clients)
		a.end(of, walk, err == nil && len(found) == 0)
		return found, err
	}
}

// taskFinder is task.Task.Find.
type taskFinder = func(context.Context, task.Clients) ([]v1alpha1.ResourceLeftovers, error)

// begin returns true if the field is known to be absent. Otherwise a walk begins.
func (a *absentFields) begin(of removedTask) (walk *removedWalk, absent bool) {
	a.mu.Lock()
	walk = a.walks[of]
	if walk == nil || !walk.clean {
		walk = &removedWalk{}
		a.walks[of] = walk
	}
	a.mu.Unlock()
	// Afterwards: a server that is there now, or appears later, makes it forgotten.
	a.observe()
	a.mu.Lock()
	defer a.mu.Unlock()
	return walk, walk.clean && a.walks[of] == walk
}

// end records what a walk found, unless it is forgotten.
func (a *absentFields) end(of removedTask, walk *removedWalk, clean bool) {
	a.observe()
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.walks[of] != walk:
	case clean:
		walk.clean = true
	default:
		delete(a.walks, of)
	}
}

// observe forgets what live servers may have changed. It is to be called whenever there
// may be others, and within the time that one is live at least.
func (a *absentFields) observe() {
	a.mu.Lock()
	unused := len(a.walks) == 0
	a.mu.Unlock()
	if unused {
		return
	}
	servers := a.servers()
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.walks, func(of removedTask, _ *removedWalk) bool { return mayStore(servers, of.field) })
}

// mayStore returns true if one of the live servers may store a field that newer ones do
// not have.
func mayStore(servers []tracker.Server, field task.RemovedField) bool {
	at, err := utilversion.ParseGeneric(field.At)
	return err != nil || len(servers) == 0 || slices.ContainsFunc(servers, func(s tracker.Server) bool {
		// What a server emulates does not bring types back.
		binary, err := utilversion.ParseGeneric(s.Binary)
		return !s.Reported || err != nil || binary.LessThan(at)
	})
}
