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
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/versionskew"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// visible finds, through the API of a cluster and as the caller, what the servers of
// another version do not read. It works on clusters without this system, too: their
// servers read what they stored. What fails for one resource does not hide what others
// have.
type visible struct {
	clients task.Clients
}

// gap is what could not be examined.
type gap struct {
	resources []schema.GroupResource
	// path is the field that was looked for, "" for the objects themselves.
	path string
	err  error
}

// errInStorage is the reason of a gap that only servers with this system do not have.
var errInStorage = errors.New("the API does not show it: it is found in storage, by servers with this system")

// gaps are all of an examination. The zero value is a complete one.
type gaps []gap

// String describes the gaps in a clause, "" if there are none.
func (g gaps) String() string {
	var parts []string
	for _, gap := range g {
		what := strings.Join(names(gap.resources), ", ")
		if gap.path != "" {
			what = gap.path + " in " + what
		}
		parts = append(parts, fmt.Sprintf("looking for %s: %v", what, gap.err))
	}
	return strings.Join(parts, "; ")
}

// next describes how the gaps are closed, "" if there are none.
func (g gaps) next() string {
	var hidden, failed []string
	others := false
	for _, gap := range g {
		switch {
		case errors.Is(gap.err, task.ErrNotServed):
			hidden = append(hidden, names(gap.resources)...)
		case errors.Is(gap.err, errInStorage):
			// No client can close it.
		case forbidden(gap.err):
			failed = append(failed, names(gap.resources)...)
		default:
			others = true
		}
	}
	var next []string
	if len(hidden) > 0 {
		next = append(next, fmt.Sprintf("serve %s for the check (--runtime-config of kube-apiserver)", unique(hidden)))
	}
	if len(failed) > 0 {
		next = append(next, fmt.Sprintf("let the check list %s in all namespaces (verb list)", unique(failed)))
	}
	switch {
	case len(next) == 0 && others:
		return "repeat it"
	case len(next) == 0:
		return ""
	}
	return strings.Join(next, ", ") + ", and repeat it"
}

// forbidden is true for a missing permission. A task that is blocked by it has the server's
// words alone.
func forbidden(err error) bool {
	return apierrors.IsForbidden(err) || strings.Contains(err.Error(), " is forbidden: ")
}

// limit adds to a result that something was not examined. What was found decides.
func (g gaps) limit(v versionskew.Result) versionskew.Result {
	v.Why, v.Next = g.amend(v.Why, v.Next)
	return v
}

// amend adds the same to the two texts of a result.
func (g gaps) amend(why, next string) (string, string) {
	if len(g) == 0 {
		return why, next
	}
	why += "; not everything was examined: " + g.String()
	if next != "" {
		next += "; "
	}
	return why, next + g.next()
}

// names returns the names of resources.
func names(resources []schema.GroupResource) []string {
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return names
}

// unique joins names, each once.
func unique(names []string) string {
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// passed returns the boundaries of an entry that a move passes.
func (m move) passed(entry catalog.Entry) []lifecycle.Version {
	return slices.DeleteFunc(slices.Clone(entry.Versions), func(v lifecycle.Version) bool { return !m.passes(v.At) })
}

// passes returns true for a minor version whose boundary is between those of the move.
func (m move) passes(minor string) bool {
	at, err := utilversion.ParseMajorMinor(minor)
	if err != nil {
		return false
	}
	if m.to.LessThan(m.from) {
		return m.to.LessThan(at) && !m.from.LessThan(at)
	}
	return m.from.LessThan(at) && !m.to.LessThan(at)
}

// removedFields returns the fields of an entry that a move upwards loses, each once.
func (m move) removedFields(entry catalog.Entry) []task.RemovedField {
	var fields []task.RemovedField
	if m.to.LessThan(m.from) {
		return nil
	}
	for _, t := range entry.AllTasks() {
		if t.Removed != nil && m.passes(t.Removed.At) && !slices.Contains(fields, *t.Removed) {
			fields = append(fields, *t.Removed)
		}
	}
	return fields
}

// fields describes the objects that have one of some fields, "" if none does.
func (v *visible) fields(ctx context.Context, fields []task.RemovedField) (found string, unseen gaps) {
	var parts []string
	for _, f := range fields {
		field := task.Field{Resource: f.Resource.GroupResource(), Path: f.Path}
		have, err := field.FindIn(ctx, v.clients, f.Resource.Version)
		switch {
		case err != nil:
			unseen = append(unseen, gap{[]schema.GroupResource{field.Resource}, f.Path, err})
		case have.Count > 0:
			parts = append(parts, fmt.Sprintf("%s; %s", describe(have), f))
		}
	}
	return strings.Join(parts, "; "), unseen
}

// collections describes the objects of some resources, "" if there are none.
func (v *visible) collections(ctx context.Context, resources []schema.GroupResource) (found string, unseen gaps) {
	var parts []string
	for _, resource := range resources {
		objects, err := task.Field{Resource: resource}.FindIn(ctx, v.clients, "")
		switch {
		case err != nil:
			unseen = append(unseen, gap{[]schema.GroupResource{resource}, "", err})
		case objects.Count > 0:
			parts = append(parts, describe(objects))
		}
	}
	return strings.Join(parts, "; "), unseen
}

// tasks describes what some tasks would find, "" if that is nothing. Without access to
// storage a finder takes a resource that is not served for an empty one, so those are
// gaps.
func (v *visible) tasks(ctx context.Context, tasks lifecycle.Tasks) (found string, unseen gaps) {
	v.clients.Mapper.Reset()
	var parts []string
	for _, t := range tasks {
		resources := resourcesOf(t)
		hidden, err := v.hidden(resources)
		if err == nil && len(hidden) > 0 {
			unseen = append(unseen, gap{hidden, "", task.ErrNotServed})
			continue
		}
		var leftovers []v1alpha1.ResourceLeftovers
		if err == nil {
			leftovers, err = t.Find(ctx, v.clients)
		}
		if err != nil {
			unseen = append(unseen, gap{resources, "", err})
		}
		for _, l := range leftovers {
			parts = append(parts, describe(l))
		}
	}
	return strings.Join(parts, "; "), unseen
}

// closed returns why a task cannot be examined through the API; false for one that can.
func (v *visible) closed(t task.Task) (gap, bool) {
	resources := resourcesOf(t)
	if t.NeedsStorage {
		return gap{resources, "", errInStorage}, true
	}
	hidden, err := v.hidden(resources)
	switch {
	case err != nil:
		return gap{resources, "", err}, true
	case len(hidden) > 0:
		return gap{hidden, "", task.ErrNotServed}, true
	}
	return gap{}, false
}

// hidden returns those of some resources that the API serves in no version.
func (v *visible) hidden(resources []schema.GroupResource) ([]schema.GroupResource, error) {
	var hidden []schema.GroupResource
	for _, resource := range resources {
		served, err := v.clients.Mapper.ResourcesFor(resource.WithVersion(""))
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
		// A mapper also finds groups with the same prefix.
		if !slices.ContainsFunc(served, func(r schema.GroupVersionResource) bool { return r.GroupResource() == resource }) {
			hidden = append(hidden, resource)
		}
	}
	return hidden, nil
}

// unreadable returns the resources whose objects the other version cannot decode: those
// of tasks of the move that remove what does not decode.
func unreadable(versions []lifecycle.Version) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, version := range versions {
		for _, t := range version.OnUpgrade {
			for _, f := range t.Fields {
				if t.BlocksStartup && !slices.Contains(resources, f.Resource) {
					resources = append(resources, f.Resource)
				}
			}
		}
	}
	return resources
}
