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
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/utils/ptr"
)

// ClearCollection removes every object of a resource. It is for collections that are
// removed with their feature: all their data is lost.
//
// While the API serves the resource, objects are deleted through it, in whatever
// version it has. Listed finalizers are then removed, since their controllers are
// removed with the feature, too. Objects with other finalizers are waited for, wherever
// they are deleted.
//
// What this server does not serve any more, or cannot decode, is deleted in storage, if
// Clients.Storage is set. The finalizers of objects that do not decode are ignored,
// since no server can remove them. Dependents are deleted with the objects: by the
// garbage collector while the API is served, by Clients.Collector afterwards.
func ClearCollection(resource schema.GroupResource, finalizers ...string) Task {
	c := clearCollection{resource: resource, finalizers: finalizers}
	verbs := []string{"list", "watch", "delete"}
	if len(finalizers) > 0 {
		verbs = append(verbs, "get", "patch")
	}
	return Task{
		Name:        "ClearCollection/" + resource.String(),
		Description: fmt.Sprintf("delete every object of %s, and what they own", resource),
		Fields:      []Field{{Resource: resource}},
		collection:  resource,
		about:       resource,
		Find:        c.find,
		Run:         c.run,
		Obstacles:   c.obstacles,
		Try:         c.try,
		matches:     func(*unstructured.Unstructured) bool { return true },
		Rules:       append([]rbacv1.PolicyRule{rule(resource, verbs...)}, definitionRules(resource)...),
	}
}

type clearCollection struct {
	resource   schema.GroupResource
	finalizers []string
}

// find counts what is stored, or what the API shows when that is all there is.
func (c clearCollection) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage != nil {
		return findStored(ctx, clients.Storage, c.resource, func(StoredObject) bool { return true })
	}
	resource, isServed, err := served(clients, c.resource)
	switch {
	case err != nil:
		return nil, err
	case !isServed:
		return nil, undefined(ctx, clients, c.resource)
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

// run deletes through the API what can be deleted so, and in storage the rest. The API
// comes first, so that finalizers, admission and audit apply.
func (c clearCollection) run(ctx context.Context, clients Clients, attempt Attempt) error {
	resource, isServed, err := served(clients, c.resource)
	if err != nil {
		return err
	}
	var readable error
	if isServed {
		readable = c.clearServed(ctx, clients, resource, attempt)
	} else if err := undefined(ctx, clients, c.resource); err != nil {
		return err
	}
	if clients.Storage == nil {
		return readable
	}
	// One object that does not decode makes every LIST fail. It goes first; the
	// others are for the next attempt.
	removed, err := c.clearStored(ctx, clients, isServed, attempt)
	switch {
	case err != nil:
		return errors.Join(readable, err)
	case readable != nil && removed > 0:
		return fmt.Errorf("removed what no server could decode, %s of %s; the next attempt handles the others: %w", phrase.Count(removed, "object", "objects"), c.resource, readable)
	default:
		return readable
	}
}

// clearServed deletes through the API, until a walk finds nothing.
func (c clearCollection) clearServed(ctx context.Context, clients Clients, resource schema.GroupVersionResource, attempt Attempt) error {
	begun, limiter := time.Now(), newWriteLimiter()
	for range maxPasses {
		pass := &collectionPass{clearCollection: c, clients: clients, served: resource, attempt: attempt, limiter: limiter}
		err := forEachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error { return pass.page(ctx, page) })
		switch {
		case err != nil:
			return err
		case pass.failure != nil:
			return pass.failure
		case len(pass.left) > 0:
			return c.blocked(clients, resource, pass, time.Since(begun))
		case pass.progress.Total == 0:
			return nil
		}
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep being created; find out what creates them", c.resource)}
}

// collectionPass is one walk through a collection that is being emptied.
type collectionPass struct {
	clearCollection
	clients  Clients
	served   schema.GroupVersionResource
	attempt  Attempt
	limiter  *writeLimiter
	progress Progress
	// waiting are the objects that are being deleted and still exist, left these and those
	// that cannot be deleted, each with the reason. refused is the first of the latter.
	waiting []object
	left    []string
	refused *unstructured.Unstructured
	// failure is the server's trouble.
	failure error
}

// page deletes the objects of one page.
func (p *collectionPass) page(ctx context.Context, page *unstructured.UnstructuredList) error {
	if err := p.attempt.check(ctx); err != nil {
		return err
	}
	results := make([]error, len(page.Items))
	var problem firstProblem
	p.limiter.each(len(page.Items), func(i int) outcome {
		if p.attempt.StopAtFirst && problem.seen() != nil {
			return outcome{}
		}
		var took time.Duration
		took, results[i] = p.remove(ctx, p.clients, p.served, &page.Items[i])
		problem.note(page.Items[i].GetNamespace(), page.Items[i].GetName(), results[i])
		return outcomeOf(took, results[i])
	})
	if err := problem.seen(); err != nil && p.attempt.StopAtFirst {
		return fmt.Errorf("deleting objects of %s: %w", p.resource, err)
	}
	for i, err := range results {
		item := &page.Items[i]
		name := objectName(item.GetNamespace(), item.GetName())
		switch {
		case err == nil && p.lasts(item):
			p.waiting = append(p.waiting, object{item.GetNamespace(), item.GetName(), string(item.GetUID())})
			p.left = append(p.left, strings.TrimSuffix(name+": being deleted, finalizers: "+strings.Join(p.foreign(item.GetFinalizers()), ", "), ", finalizers: "))
		case err == nil:
			p.progress.Done++
		case refuses(err):
			p.left = append(p.left, name+": "+cut(err))
			if p.refused == nil {
				p.refused = item
			}
		case p.failure == nil:
			p.failure = fmt.Errorf("deleting %s: %w", name, err)
		}
	}
	p.progress.Total += int64(len(page.Items))
	p.attempt.Report(p.progress)
	return ctx.Err()
}

// lasts returns true for an object that still exists once it is deleted: others have
// finalizers on it, or it was being deleted before.
func (p *collectionPass) lasts(item *unstructured.Unstructured) bool {
	foreign := p.foreign(item.GetFinalizers())
	return len(foreign) > 0 || (item.GetDeletionTimestamp() != nil && len(foreign) == len(item.GetFinalizers()))
}

// blocked names what is left after a pass. It took so long to look.
func (c clearCollection) blocked(clients Clients, resource schema.GroupVersionResource, pass *collectionPass, took time.Duration) error {
	slices.Sort(pass.left)
	message := fmt.Sprintf("%s left: %s", phrase.Objects(len(pass.left), c.resource, "is", "are"), strings.Join(pass.left[:min(len(pass.left), maxExamples)], "; "))
	var ends []func(context.Context) error
	if waiting := pass.waiting[:min(len(pass.waiting), maxExamples)]; len(waiting) > 0 {
		ends = append(ends, func(ctx context.Context) error {
			return untilOneIsGone(ctx, clients, resource, waiting, func(*unstructured.Unstructured) bool { return true })
		})
	}
	if refused := pass.refused; refused != nil {
		ends = append(ends, func(ctx context.Context) error {
			return probe(ctx, func(ctx context.Context) bool {
				_, err := c.remove(ctx, clients, resource, refused)
				return err == nil
			})
		})
	}
	return &BlockedError{Message: message, Until: func(ctx context.Context) error {
		if err := first(ctx, ends...); err != nil {
			return err
		}
		return rest(ctx, took)
	}}
}

// foreign returns those of some finalizers that other controllers have to remove.
func (c clearCollection) foreign(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(name string) bool { return slices.Contains(c.finalizers, name) })
}

// remove deletes one object, if it is still the one that was read. NotFound is no
// error. It returns how long the deletion took, 0 if there was none.
func (c clearCollection) remove(ctx context.Context, clients Clients, resource schema.GroupVersionResource, object *unstructured.Unstructured) (took time.Duration, err error) {
	in := clients.Dynamic.Resource(resource).Namespace(object.GetNamespace())
	if object.GetDeletionTimestamp() == nil {
		took, err = timed(func() error {
			return in.Delete(ctx, object.GetName(), deletion(object))
		})
		if err != nil {
			return 0, ignoreGone(err)
		}
	}
	if len(c.foreign(object.GetFinalizers())) == len(object.GetFinalizers()) {
		return took, nil
	}
	// Last: a live controller must not see the object without its finalizer and not being
	// deleted. It is read again, since the list is written as a whole and may have been
	// extended.
	current, err := in.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil || current.GetUID() != object.GetUID() {
		return took, ignoreGone(err)
	}
	keep := c.foreign(current.GetFinalizers())
	if keep == nil {
		keep = []string{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": current.GetUID(), "resourceVersion": current.GetResourceVersion(), "finalizers": keep,
	}})
	if err != nil {
		return took, err
	}
	_, err = in.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: clients.fieldManager()})
	return took, ignoreGone(err)
}

// deletion deletes an object, and none of the same name.
func deletion(object *unstructured.Unstructured, dryRun ...string) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(object.GetUID())},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		DryRun:            dryRun,
	}
}

// ignoreGone drops NotFound errors. Another object of the same name is a conflict and
// handled when the collection is read again.
func ignoreGone(err error) error {
	if err == nil || (!denied(err) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err))) {
		return nil
	}
	return err
}
