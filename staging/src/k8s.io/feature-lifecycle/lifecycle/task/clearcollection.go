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

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/utils/ptr"
)

// ClearCollection removes every object of a resource. It is for collections that
// go away with their feature: whatever they hold is lost.
//
// While the API serves the resource, objects are deleted through it, in
// whatever version it has. Finalizers that are listed are removed first, since
// their controllers go with the feature, too; objects with others are waited
// for. What the API does not serve any more, or whose bytes no server can
// decode, is deleted where it is stored, if Clients.Storage is there.
func ClearCollection(resource schema.GroupResource, finalizers ...string) Task {
	c := clearCollection{resource: resource, finalizers: finalizers}
	return Task{
		Name:        "ClearCollection/" + resource.String(),
		Description: fmt.Sprintf("delete every object of %s", resource),
		Fields:      []Field{{Resource: resource}},
		Find:        c.find,
		Run:         c.run,
		Rules:       []rbacv1.PolicyRule{rule(resource, "get", "list", "watch", "patch", "delete"), rule(crds.GroupResource(), "get")},
	}
}

type clearCollection struct {
	resource   schema.GroupResource
	finalizers []string
}

// served finds the version that the API serves the resource in; served is false
// when it has none.
func served(clients Clients, resource schema.GroupResource) (found schema.GroupVersionResource, served bool, err error) {
	if clients.Mapper == nil {
		return found, false, fmt.Errorf("finding %s: no mapper is given to tasks", resource)
	}
	clients.Mapper.Reset()
	found, err = clients.Mapper.ResourceFor(resource.WithVersion(""))
	switch {
	case meta.IsNoMatchError(err):
		return found, false, nil
	case err != nil:
		return found, false, fmt.Errorf("finding the versions of %s: %w", resource, err)
	}
	return found, true, nil
}

// find counts what is stored, or what the API shows when that is all there is.
func (c clearCollection) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage != nil {
		return findStored(ctx, clients.Storage, c.resource, func(StoredObject) bool { return true })
	}
	resource, served, err := served(clients, c.resource)
	if err != nil || !served {
		return nil, err
	}
	return find(ctx, clients, resource, "", func(*unstructured.Unstructured) bool { return true })
}

// findStored counts the stored objects that match.
func findStored(ctx context.Context, storage Storage, resource schema.GroupResource, matches func(StoredObject) bool) ([]v1alpha1.ResourceLeftovers, error) {
	found := v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource}
	err := eachStored(ctx, storage, resource, func(object StoredObject) error {
		if matches(object) {
			count(&found, objectName(object.Namespace, object.Name))
		}
		return nil
	})
	return nonEmpty(found), err
}

// run deletes through the API what can be deleted so, and in storage the rest.
// The API comes first, so that finalizers, admission and audit have their say.
func (c clearCollection) run(ctx context.Context, clients Clients, attempt Attempt) error {
	resource, isServed, err := served(clients, c.resource)
	if err != nil {
		return err
	}
	var readable error
	if isServed {
		readable = c.clearServed(ctx, clients, resource, attempt)
	}
	if clients.Storage == nil {
		return readable
	}
	if !isServed {
		if err := c.undefined(ctx, clients); err != nil {
			return err
		}
	}
	// One object that does not decode makes every LIST fail. It goes first; the
	// others are for the next attempt.
	removed, err := c.clearStored(ctx, clients.Storage, isServed, attempt)
	switch {
	case err != nil:
		return errors.Join(readable, err)
	case readable != nil && removed > 0:
		return fmt.Errorf("%d objects of %s that no server could decode are removed; the next attempt looks after the others: %w", removed, c.resource, readable)
	default:
		return readable
	}
}

// undefined returns an error when the resource has a definition. Discovery
// learns of one a moment after it was made, and its versions may be switched off
// for a while; what has finalizers must not be deleted behind the API's back
// then.
func (c clearCollection) undefined(ctx context.Context, clients Clients) error {
	_, err := clients.Dynamic.Resource(crds).Get(ctx, c.resource.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("finding out why %s is not served: %w", c.resource, err)
	default:
		return fmt.Errorf("%s is defined and not served; the API has to decide about its objects", c.resource)
	}
}

// clearServed deletes through the API, until a walk finds nothing.
func (c clearCollection) clearServed(ctx context.Context, clients Clients, resource schema.GroupVersionResource, attempt Attempt) error {
	for range maxPasses {
		pass := &collectionPass{clearCollection: c, client: clients.Dynamic.Resource(resource), report: attempt.Report}
		err := eachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error { return pass.page(ctx, page) })
		switch {
		case err != nil:
			return err
		case pass.failure != nil:
			return pass.failure
		case len(pass.left) > 0:
			return c.blocked(clients, resource, pass.waiting, pass.left)
		case pass.progress.Total == 0:
			return nil
		}
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep being created; find out who creates them", c.resource)}
}

// collectionPass is one walk through a collection that is being emptied.
type collectionPass struct {
	clearCollection
	client   dynamic.NamespaceableResourceInterface
	report   func(Progress)
	progress Progress
	// waiting are the objects that are being deleted and not gone, left these
	// and those that cannot be deleted, each with the reason.
	waiting []object
	left    []string
	// failure is the server's trouble.
	failure error
}

// page deletes the objects of one page.
func (p *collectionPass) page(ctx context.Context, page *unstructured.UnstructuredList) error {
	results := make([]error, len(page.Items))
	inParallel(len(page.Items), func(i int) { results[i] = p.remove(ctx, p.client, &page.Items[i]) })
	for i, err := range results {
		item := &page.Items[i]
		name := objectName(item.GetNamespace(), item.GetName())
		switch {
		case err == nil && p.lasts(item):
			p.waiting = append(p.waiting, object{item.GetNamespace(), item.GetName(), string(item.GetUID())})
			p.left = append(p.left, strings.TrimSuffix(name+": being deleted, finalizers: "+strings.Join(p.foreign(item), ", "), ", finalizers: "))
		case err == nil:
			p.progress.Done++
		case refuses(err):
			p.left = append(p.left, name+": "+cut(err))
		case p.failure == nil:
			p.failure = fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	p.progress.Total += int64(len(page.Items))
	p.report(p.progress)
	return ctx.Err()
}

// lasts is true for an object that is not gone once it is deleted: others have
// finalizers on it, or it was being deleted before.
func (p *collectionPass) lasts(item *unstructured.Unstructured) bool {
	foreign := p.foreign(item)
	return len(foreign) > 0 || (item.GetDeletionTimestamp() != nil && len(foreign) == len(item.GetFinalizers()))
}

func (c clearCollection) blocked(clients Clients, resource schema.GroupVersionResource, waiting []object, refusals []string) error {
	slices.Sort(refusals)
	blocked := &BlockedError{Message: fmt.Sprintf("%d objects of %s are left: %s", len(refusals), c.resource, strings.Join(refusals[:min(len(refusals), maxExamples)], "; "))}
	if len(waiting) > 0 {
		waiting = waiting[:min(len(waiting), maxExamples)]
		blocked.Until = func(ctx context.Context) error {
			return untilOneIsGone(ctx, clients, resource, waiting, func(*unstructured.Unstructured) bool { return true })
		}
		return blocked
	}
	blocked.Until = func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			page, err := clients.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil && (len(page.Items) == 0 || c.remove(ctx, clients.Dynamic.Resource(resource), &page.Items[0]) == nil)
		})
	}
	return blocked
}

// foreign are the finalizers that somebody else has to remove.
func (c clearCollection) foreign(object *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool { return slices.Contains(c.finalizers, name) })
}

// remove deletes one object, if it is still the one that was read. Gone is no
// error.
func (c clearCollection) remove(ctx context.Context, client dynamic.NamespaceableResourceInterface, object *unstructured.Unstructured) error {
	in := client.Namespace(object.GetNamespace())
	if object.GetDeletionTimestamp() == nil {
		err := in.Delete(ctx, object.GetName(), metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: ptr.To(object.GetUID())},
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
		if err != nil {
			return ignoreGone(err)
		}
	}
	if len(c.foreign(object)) == len(object.GetFinalizers()) {
		return nil
	}
	// Last: a controller that is alive must not see the object without its
	// finalizer and not being deleted. It is read again, since the list is
	// written as a whole and somebody may have added to it.
	current, err := in.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil || current.GetUID() != object.GetUID() {
		return ignoreGone(err)
	}
	keep := c.foreign(current)
	if keep == nil {
		keep = []string{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": current.GetUID(), "resourceVersion": current.GetResourceVersion(), "finalizers": keep,
	}})
	if err != nil {
		return err
	}
	_, err = in.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return ignoreGone(err)
}

// ignoreGone: another object of the same name is a conflict and looked at when
// the collection is read again.
func ignoreGone(err error) error {
	if err == nil || (!denied(err) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err))) {
		return nil
	}
	return err
}

// clearStored deletes what is stored and out of the API's reach: everything when
// it serves no version of the resource, else what does not decode.
func (c clearCollection) clearStored(ctx context.Context, storage Storage, served bool, attempt Attempt) (removed int64, err error) {
	var left []StoredObject
	err = eachStored(ctx, storage, c.resource, func(object StoredObject) error {
		if !served || object.Unreadable != nil {
			left = append(left, object)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	inParallel(len(left), func(i int) {
		deleteErr := storage.Delete(ctx, c.resource, left[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case deleteErr == nil:
			removed++
		case err == nil:
			err = fmt.Errorf("deleting the stored %s: %w", objectName(left[i].Namespace, left[i].Name), deleteErr)
		}
	})
	if len(left) > 0 {
		attempt.Report(Progress{Done: removed, Total: int64(len(left)), Message: fmt.Sprintf("%d stored objects removed that the API does not reach", removed)})
	}
	return removed, err
}

// inParallel calls do for 0 to n-1 from as many workers as write at once.
func inParallel(n int, do func(i int)) {
	indexes := make(chan int)
	var workers sync.WaitGroup
	for range min(n, clearWorkers) {
		workers.Go(func() {
			for i := range indexes {
				do(i)
			}
		})
	}
	for i := range n {
		indexes <- i
	}
	close(indexes)
	workers.Wait()
}
