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

package task

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// FindObjects returns how many objects of each resource tasks would handle or wait for. It
// counts an object once, however many of the tasks find something in it; Find counts for
// each task. Objects that only an author's own function finds (Func) are counted by it.
// Resources are in the order in which tasks name them first. It reads through the API. What
// fails for one resource does not hide what others have.
func FindObjects(ctx context.Context, clients Clients, tasks []Task) (found []v1alpha1.ResourceLeftovers, problems []ObjectsProblem) {
	for _, group := range byResource(tasks) {
		of, err := group.find(ctx, clients)
		if err != nil {
			problem := ObjectsProblem{Err: err}
			for _, f := range group.tasks[0].Fields {
				if !slices.Contains(problem.Resources, f.Resource) {
					problem.Resources = append(problem.Resources, f.Resource)
				}
			}
			problems = append(problems, problem)
		}
		found = append(found, of...)
	}
	return found, problems
}

// ObjectsProblem is why some resources could not be read.
type ObjectsProblem struct {
	Resources []schema.GroupResource
	Err       error
}

// sameResource are tasks whose objects are read together: those of one version of a
// resource. A task without matches is alone.
type sameResource struct {
	resource schema.GroupVersionResource
	tasks    []Task
}

func byResource(tasks []Task) []sameResource {
	var groups []sameResource
	for _, t := range tasks {
		resource := t.about.WithVersion(t.version)
		at := slices.IndexFunc(groups, func(g sameResource) bool { return g.resource == resource && g.tasks[0].matches != nil })
		if at < 0 || t.matches == nil {
			groups = append(groups, sameResource{resource, []Task{t}})
		} else {
			groups[at].tasks = append(groups[at].tasks, t)
		}
	}
	return groups
}

func (g sameResource) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if len(g.tasks) == 1 {
		found, err := g.tasks[0].Find(ctx, clients)
		for i := range found {
			found[i].Field = ""
		}
		return found, err
	}
	var paths []Path
	for _, t := range g.tasks {
		paths = append(paths, t.paths...)
	}
	return findIn(g.resource, paths, func(ctx context.Context, clients Clients, served schema.GroupVersionResource) ([]v1alpha1.ResourceLeftovers, error) {
		return find(ctx, clients, served, "", func(o *unstructured.Unstructured) bool {
			return slices.ContainsFunc(g.tasks, func(t Task) bool { return t.matches(o) })
		})
	})(ctx, clients)
}
