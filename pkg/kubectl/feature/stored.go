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

package feature

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// taskClients makes clients for tasks that run as the caller. They are without a limit of
// rate: reads are paged, and the server's priority and fairness decides.
func taskClients(config *rest.Config) (task.Clients, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0
	versions, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return task.Clients{}, err
	}
	objects, err := task.NewDynamicClient(config)
	if err != nil {
		return task.Clients{}, err
	}
	return task.Clients{
		Dynamic: objects, Mapper: task.NewMapper(versions),
		HasField: func(resource schema.GroupVersionResource, path string) bool {
			return catalog.HasField(scheme.Scheme, resource, path)
		},
	}, nil
}

// taskFound is what one task would handle.
type taskFound struct {
	task  task.Task
	found []v1alpha1.ResourceLeftovers
}

// gateObjects is what the objects of a cluster have of one gate.
type gateObjects struct {
	entry catalog.Entry
	// tasks are those that turning the gate off runs, in order, with what they find.
	tasks []taskFound
	// found counts each object once, unlike tasks.
	found []v1alpha1.ResourceLeftovers
	// retained is what stays on purpose.
	retained []retainedFound
	unseen   gaps
	// unobserved are processes that may have the gate on.
	unobserved []string
}

// retainedFound are the objects that keep a field on purpose.
type retainedFound struct {
	why string
	// with is another gate whose tasks remove it, "" for none.
	with  string
	found v1alpha1.ResourceLeftovers
}

// examination is what is looked for. The zero value looks for what each task that turning
// a gate off runs would handle.
type examination struct {
	// once counts each object once, whichever task finds it.
	once bool
	// retained also looks for what stays on purpose.
	retained bool
}

// left is true if a task finds something.
func (g *gateObjects) left() bool {
	return slices.ContainsFunc(g.tasks, func(t taskFound) bool { return len(t.found) > 0 })
}

// examine finds what objects have of gates. Collections are read once for all gates.
// Progress is called with how many gates are done.
func (v *visible) examine(ctx context.Context, entries []catalog.Entry, what examination, progress func(done, all int)) []gateObjects {
	v.clients.Mapper.Reset()
	results := make([]gateObjects, len(entries))
	finders := make([]func(task.Clients), len(entries))
	var mu sync.Mutex
	done := 0
	for i, entry := range entries {
		finders[i] = func(clients task.Clients) {
			results[i] = v.examineOne(ctx, clients, entry, what)
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(entries))
		}
	}
	task.FindShared(ctx, v.clients, finders)
	return results
}

// examineOne does so for one gate, with the clients that it shares.
func (v *visible) examineOne(ctx context.Context, clients task.Clients, entry catalog.Entry, what examination) gateObjects {
	g := gateObjects{entry: entry}
	var seen []task.Task
	for _, t := range entry.OnDisable {
		if missing, closed := v.closed(t); closed {
			g.unseen = append(g.unseen, missing)
			continue
		}
		if what.once {
			seen = append(seen, t)
			continue
		}
		found, err := t.Find(ctx, clients)
		if err != nil {
			g.unseen = append(g.unseen, gap{resourcesOf(t), "", err})
			continue
		}
		g.tasks = append(g.tasks, taskFound{t, found})
	}
	found, problems := task.FindObjects(ctx, clients, seen)
	g.found = found
	for _, p := range problems {
		g.unseen = append(g.unseen, gap{p.Resources, "", p.Err})
	}
	if what.retained || what.once {
		g.examineRetained(ctx, clients)
	}
	if what.once {
		for _, r := range g.retained {
			g.found = including(g.found, r.found)
		}
		g.retained = nil
	}
	return g
}

// including adds the objects of one more field. Those of a resource that is there already may
// be the same ones, so that the larger number counts.
func including(all []v1alpha1.ResourceLeftovers, more v1alpha1.ResourceLeftovers) []v1alpha1.ResourceLeftovers {
	more.Field = ""
	for i := range all {
		if all[i].Group == more.Group && all[i].Resource == more.Resource {
			if all[i].Count < more.Count {
				all[i] = more
			}
			return all
		}
	}
	return append(all, more)
}

// examineRetained looks for what stays on purpose.
func (g *gateObjects) examineRetained(ctx context.Context, clients task.Clients) {
	for _, r := range g.entry.Retained {
		if r.Unstored {
			continue
		}
		if r.MediaType != "" || r.Chosen {
			g.unseen = append(g.unseen, gap{[]schema.GroupResource{r.Resource}, r.Path, errInStorage})
			continue
		}
		found, err := r.Field.FindIn(ctx, clients, "")
		switch {
		case err != nil:
			g.unseen = append(g.unseen, gap{[]schema.GroupResource{r.Resource}, r.Path, err})
		case found.Count > 0:
			g.retained = append(g.retained, retainedFound{r.Why, string(r.With), found})
		}
	}
}

// resourcesOf are those that a task reads, each once.
func resourcesOf(t task.Task) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, f := range t.Fields {
		if !slices.Contains(resources, f.Resource) {
			resources = append(resources, f.Resource)
		}
	}
	if t.Removed != nil && len(resources) == 0 {
		resources = append(resources, t.Removed.Resource.GroupResource())
	}
	return resources
}
