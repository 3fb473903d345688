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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/pager"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
)

// visible finds, through the API of a cluster and as the caller, what the servers of
// another version do not read. It works on clusters without this system, too: their
// servers read what they stored.
type visible struct {
	clients task.Clients
}

// maxNamed is the number of objects that a message names.
const maxNamed = 5

// errNotServed is returned for what the cluster's API does not show.
var errNotServed = errors.New("the cluster does not serve it")

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
func (v *visible) fields(ctx context.Context, fields []task.RemovedField) (string, error) {
	var parts []string
	for _, f := range fields {
		field := task.Field{Resource: f.Resource.GroupResource(), Path: f.Path}
		found, err := v.objects(ctx, f.Resource, func(o *unstructured.Unstructured) (bool, error) { return field.In(o.Object) })
		if apierrors.IsNotFound(err) {
			err = errNotServed
		}
		if err != nil {
			return "", fmt.Errorf("looking for %s in %s: %w", f.Path, f.Resource.GroupResource(), err)
		}
		if found.Count > 0 {
			found.Field = f.Path
			parts = append(parts, fmt.Sprintf("%s; %s", describe(found), f))
		}
	}
	return strings.Join(parts, "; "), nil
}

// collections describes the objects of some resources, "" if there are none.
func (v *visible) collections(ctx context.Context, resources []schema.GroupResource) (string, error) {
	var parts []string
	for _, resource := range resources {
		served, err := v.clients.Mapper.ResourcesFor(resource.WithVersion(""))
		if err != nil && !meta.IsNoMatchError(err) {
			return "", fmt.Errorf("looking for %s: %w", resource, err)
		}
		served = slices.DeleteFunc(served, func(r schema.GroupVersionResource) bool { return r.GroupResource() != resource })
		if len(served) == 0 {
			return "", fmt.Errorf("looking for %s: %w", resource, errNotServed)
		}
		found, err := v.objects(ctx, served[0], func(*unstructured.Unstructured) (bool, error) { return true, nil })
		if err != nil {
			return "", fmt.Errorf("looking for %s: %w", resource, err)
		}
		if found.Count > 0 {
			parts = append(parts, describe(found))
		}
	}
	return strings.Join(parts, "; "), nil
}

// objects counts the objects of a resource that match.
func (v *visible) objects(ctx context.Context, resource schema.GroupVersionResource, matches func(*unstructured.Unstructured) (bool, error)) (v1alpha1.ResourceLeftovers, error) {
	found := v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return v.clients.Dynamic.Resource(resource).List(ctx, options)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the server sent a %T", object)
		}
		is, err := matches(o)
		if err != nil || !is {
			return err
		}
		found.Count++
		if len(found.Examples) < maxNamed {
			found.Examples = append(found.Examples, strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"))
		}
		return nil
	})
	return found, err
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
