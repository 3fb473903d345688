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
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
)

const (
	// conflictRetries is how often one object is read and written again in one pass while
	// there are conflicts.
	conflictRetries = 5
	// maxPasses is how often one attempt reads the collection. The last pass has to find
	// nothing, since the field may be written meanwhile.
	maxPasses = 5
)

// ClearField removes a field from every stored object of a resource and changes nothing
// else in them (S7). Objects without the field are not written. It is for fields that
// may be removed from live objects; the author has to know how controllers react to the
// removal. A field of status is removed through the subresource status, since the
// resource itself keeps it.
//
// A field that ends in [*] stands for all elements of a list, and leaves an empty list. Use
// it where the server takes a list that is missing for one that an old client does not know
// and keeps it, but lets an empty one through (status.resourceClaimStatuses of Pods, say).
func ClearField(resource schema.GroupVersionResource, field string) Task {
	return newClearField(clearField{resource: resource}, field)
}

func newClearField(c clearField, field string) Task {
	path, err := ParsePath(field)
	c.path = path
	resource := c.resource
	rules := []rbacv1.PolicyRule{rule(resource.GroupResource(), "get", "list", "patch")}
	if err == nil && path.segments[0].key == "status" {
		c.subresources = []string{"status"}
		rules = []rbacv1.PolicyRule{
			// The owners of the fields of status are written through the resource itself.
			rule(resource.GroupResource(), "get", "list", "patch"),
			rule(schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/status"}, "patch"),
		}
	}
	rules = append(rules, definitionRules(resource.GroupResource())...)
	return Task{
		Name:        "ClearField/" + resource.GroupResource().String() + "/" + field,
		Description: fmt.Sprintf("remove %s from every stored object of %s", field, resource.GroupResource()),
		collection:  resource.GroupResource(),
		Find: findIn(resource, []Path{path}, func(ctx context.Context, clients Clients, served schema.GroupVersionResource) ([]v1alpha1.ResourceLeftovers, error) {
			return c.in(served).find(ctx, clients)
		}),
		Run: runIn(resource, []Path{path}, func(ctx context.Context, clients Clients, attempt Attempt, served schema.GroupVersionResource) error {
			return c.in(served).run(ctx, clients, attempt)
		}),
		Obstacles: outlookIn(resource, []Path{path}, func(ctx context.Context, clients Clients, served schema.GroupVersionResource) (Outlook, error) {
			return c.in(served).obstacles(ctx, clients)
		}),
		Try: tryIn(resource, []Path{path}, func(ctx context.Context, clients Clients, attempt Attempt, served schema.GroupVersionResource) (Trial, error) {
			return c.in(served).try(ctx, clients, attempt)
		}),
		Fields:  []Field{{Resource: resource.GroupResource(), Path: field}},
		matches: c.has,
		paths:   []Path{path},
		Rules:   rules,
		invalid: err,
		about:   resource.GroupResource(),
		version: resource.Version,

		throughStatus: len(c.subresources) > 0,
		inStorage: func(ctx context.Context, clients Clients) (stored bool, err error) {
			err = anyVersion(ctx, clients, resource, []Path{path}, func(served schema.GroupVersionResource) error {
				if stored, err = c.in(served).inStorage(ctx, clients); stored || err != nil {
					return err
				}
				return onlyElsewhere(clients, served)
			})
			return stored, err
		},
	}
}

type clearField struct {
	resource schema.GroupVersionResource
	path     Path
	// subresources are those through which objects are written, empty for themselves.
	subresources []string
	// uncontrolled leaves objects alone that a controller made.
	uncontrolled bool
	// exact makes a write fail in which the server changed something else, too.
	exact bool
}

// in returns the task in another version of the resource.
func (c clearField) in(resource schema.GroupVersionResource) clearField {
	c.resource = resource
	return c
}

func (c clearField) has(object *unstructured.Unstructured) bool {
	return !c.spares(object) && c.path.in(object.Object)
}

// spares returns true for an object that the task does not handle.
func (c clearField) spares(object *unstructured.Unstructured) bool {
	return c.uncontrolled && metav1.GetControllerOf(object) != nil
}

// unfinished returns true for an object that an earlier attempt, of whatever process,
// left without its field and with the taker in its managed fields.
func (c clearField) unfinished(object *unstructured.Unstructured, taker string) bool {
	return !c.spares(object) && hasTaken(object, taker)
}

func (c clearField) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage == nil {
		if err := findable(ctx, clients, c.resource, c.path, nil); err != nil {
			return nil, err
		}
	}
	search := FieldSearch{Fields: []SearchedField{{Path: c.path.String()}}, Uncontrolled: c.uncontrolled}
	return findSearched(ctx, clients, c.resource, c.path.String(), search, c.has)
}

// obstacles returns the objects from which the field may not be removed. Admission decides
// that, which is not asked about edits in storage.
func (c clearField) obstacles(ctx context.Context, clients Clients) (Outlook, error) {
	if stored, err := c.inStorage(ctx, clients); stored || err != nil {
		return Outlook{}, err
	}
	return tryEach(ctx, clients, c.resource, c.has, fmt.Sprintf("to have %s removed", c.path), func(ctx context.Context, o *unstructured.Unstructured) error {
		patch, err := c.patch(o, nil)
		if err != nil {
			return err
		}
		_, err = c.send(ctx, clients, o, patch, metav1.PatchOptions{DryRun: dryRun}, c.subresources...)
		return err
	})
}

// run clears the collection where it is stored, if the server can, and otherwise through
// the API.
func (c clearField) run(ctx context.Context, clients Clients, attempt Attempt) error {
	if err := findable(ctx, clients, c.resource, c.path, nil); err != nil {
		return err
	}
	if clients.Editor != nil {
		err := c.runStored(ctx, clients, attempt)
		var through *ThroughAPIError
		if !errors.As(err, &through) {
			return err
		}
		klog.FromContext(ctx).Info("Clearing a field through the API, not in storage", "resource", c.resource.GroupResource(), "field", c.path.String(), "reason", through.Reason)
	}
	c.exact = attempt.StopAtFirst
	progress, limiter := newProgressTracker(attempt, apiTokens), newWriteLimiter()
	retry := func(ctx context.Context, namespace, name string) bool { return c.clears(ctx, clients, namespace, name) }
	return c.passes(progress, retry, func(from string) error {
		return c.pass(ctx, clients, from, attempt, progress, limiter)
	})
}

// passes walks through the collection until a whole pass finds no object with the field.
// The first pass resumes where an earlier attempt stopped, even one of a server that
// crashed. Retry tries an object that refused, for progressTracker.blocked.
func (c clearField) passes(progress *progressTracker, retry func(ctx context.Context, namespace, name string) bool, pass func(from string) error) error {
	from := progress.from
	for range maxPasses {
		before := progress.foundSoFar()
		if err := pass(from); err != nil {
			return err
		}
		if from == "" && progress.foundSoFar() == before {
			return nil
		}
		if err := progress.blocked(c, retry); err != nil {
			return err
		}
		from = ""
		progress.verify()
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep getting %s again; find out what writes it", c.resource.GroupResource(), c.path)}
}

// pass clears what one walk through the collection finds. Objects that refuse
// are counted in the progress and do not keep others from being cleared.
func (c clearField) pass(ctx context.Context, clients Clients, from string, attempt Attempt, progress *progressTracker, limiter *writeLimiter) error {
	return forEachPage(ctx, clients, c.resource, from, func(page *unstructured.UnstructuredList) error {
		if err := attempt.check(ctx); err != nil {
			return err
		}
		var objects []*unstructured.Unstructured
		for i := range page.Items {
			if c.has(&page.Items[i]) || c.unfinished(&page.Items[i], clients.fieldManager()) {
				progress.add()
				objects = append(objects, &page.Items[i])
			}
		}
		var problem firstProblem
		limiter.each(len(objects), func(i int) outcome {
			if attempt.StopAtFirst && problem.seen() != nil {
				return outcome{}
			}
			took, err := c.clear(ctx, clients, objects[i])
			progress.cleared(objects[i].GetNamespace(), objects[i].GetName(), err)
			problem.note(objects[i].GetNamespace(), objects[i].GetName(), err)
			return outcomeOf(took, err)
		})
		// A page that the end of the context cut short is not done.
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := problem.seen(); err != nil && attempt.StopAtFirst {
			return fmt.Errorf("removing %s of %s: %w", c.path, c.resource.GroupResource(), err)
		}
		remaining := int64(0)
		if rest := page.GetRemainingItemCount(); rest != nil {
			remaining = *rest
		}
		progress.pageDone(int64(len(page.Items)), remaining, page.GetContinue())
		return nil
	})
}

// clears returns whether an object that refused is cleared now, or is gone.
func (c clearField) clears(ctx context.Context, clients Clients, namespace, name string) bool {
	current, err := clients.Dynamic.Resource(c.resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	_, err = c.clear(ctx, clients, current)
	return err == nil
}

// clear removes the field from one object, and leaves all else with its owners. The
// resourceVersion in a patch makes the server refuse it when the object is no longer
// the one that was read, and the uid when it is another one of the same name. It
// returns how long the patch took, 0 if none succeeded.
func (c clearField) clear(ctx context.Context, clients Clients, object *unstructured.Unstructured) (time.Duration, error) {
	client := clients.Dynamic.Resource(c.resource).Namespace(object.GetNamespace())
	for range conflictRetries {
		took, err := c.clearOnce(ctx, clients, object)
		switch {
		case err == nil:
			return took, nil
		case apierrors.IsNotFound(err):
			// The object was deleted, or its resource has no status to write.
		case denied(err) || (!apierrors.IsConflict(err) && !apierrors.IsInvalid(err)):
			return 0, err
		}
		current, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			return 0, nil
		case getErr != nil:
			return 0, getErr
		case current.GetUID() != object.GetUID():
			// Another object took the name; the next pass handles it.
			return 0, nil
		case apierrors.IsNotFound(err):
			return 0, fmt.Errorf("%s has no subresource status: %w", c.resource.GroupResource(), err)
		case apierrors.IsInvalid(err) && current.GetResourceVersion() == object.GetResourceVersion():
			// The object is unchanged, so it is the server that refuses. Otherwise the field may
			// have been removed first: a patch that removes a missing field is invalid
			// (apiserver's endpoints/handlers/patch.go).
			return 0, err
		}
		object = current
	}
	return 0, errWrittenByOthers
}

var errWrittenByOthers = errors.New("another client keeps writing it")

// clearOnce is clear for the object as it was read: conflicts are for the caller. An
// object without the field may come from an attempt that ended between its two writes.
func (c clearField) clearOnce(ctx context.Context, clients Clients, object *unstructured.Unstructured) (time.Duration, error) {
	taker := clients.fieldManager()
	has, taken := c.path.in(object.Object), hasTaken(object, taker)
	if !has && !taken {
		return 0, nil
	}
	careful := taken || mayLose(object, c.path, c.resource.GroupVersion().String())
	var before, noted []fieldOwner
	if careful {
		before = giveBack(ownersOf(object.GetManagedFields()), taker)
		noted = noteTaken(before, c.path, taker)
	}
	switch {
	case !has:
		_, err := c.setOwners(ctx, clients, object, before)
		return 0, err
	case noted != nil && len(c.subresources) > 0:
		// Managed fields that come through a subresource are ignored.
		written, err := c.setOwners(ctx, clients, object, noted)
		if err != nil {
			return 0, err
		}
		object = object.DeepCopy()
		object.SetResourceVersion(written.GetResourceVersion())
		noted = nil
	}
	patch, err := c.patch(object, noted)
	if err != nil {
		return 0, err
	}
	var after metav1.Object
	took, err := timed(func() (err error) {
		after, err = c.send(ctx, clients, object, patch, metav1.PatchOptions{}, c.subresources...)
		return err
	})
	if err != nil {
		return 0, err
	}
	if c.exact {
		if err := c.sideEffects(object, after); err != nil {
			return 0, err
		}
	}
	isTakers := func(entry metav1.ManagedFieldsEntry) bool { return isTaker(entry, taker) }
	if !careful && !slices.ContainsFunc(after.GetManagedFields(), isTakers) {
		return took, nil
	}
	if !careful {
		before = ownersOf(object.GetManagedFields())
	}
	is := ownersOf(after.GetManagedFields())
	if wanted := withoutField(before, is, c.path); !sameOwners(wanted, is) {
		_, err = c.setOwners(ctx, clients, after, wanted)
	}
	return took, err
}

// setOwners writes the managed fields of an object, and returns it as it is then. This
// goes through the resource itself also for a field of status.
func (c clearField) setOwners(ctx context.Context, clients Clients, object metav1.Object, owners []fieldOwner) (metav1.Object, error) {
	operation, err := ownedBy(owners)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(append(onlyIf(object), operation))
	if err != nil {
		return nil, err
	}
	written, err := c.send(ctx, clients, object, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("leaving to field managers what they own: %w", err)
	}
	return written, nil
}

// send sends a patch of an object, and returns the metadata of the result. The rest of
// the result is not needed.
func (c clearField) send(ctx context.Context, clients Clients, object metav1.Object, patch []byte, options metav1.PatchOptions, subresources ...string) (metav1.Object, error) {
	options.FieldManager, options.FieldValidation = clients.fieldManager(), metav1.FieldValidationIgnore
	namespace, name := object.GetNamespace(), object.GetName()
	if clients.Metadata != nil {
		return clients.Metadata.Resource(c.resource).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, options, subresources...)
	}
	return clients.Dynamic.Resource(c.resource).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, options, subresources...)
}
