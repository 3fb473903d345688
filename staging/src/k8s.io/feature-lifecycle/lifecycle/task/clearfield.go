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
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// conflictRetries is how often one object is read and written again in one
	// pass when somebody else keeps writing it.
	conflictRetries = 5
	// maxPasses is how often one attempt goes through the collection. The last
	// pass has to find nothing, since somebody may write the field meanwhile.
	maxPasses = 5
)

// ClearField removes a field from every stored object of a resource and changes
// nothing else in them (S7). Objects without the field are not written. It is
// for fields that may be removed from live objects; what a controller does when
// the field goes is for the author to know. A field of status is removed through
// the subresource status, since the resource itself keeps it.
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
			rule(resource.GroupResource(), "get", "list"),
			rule(schema.GroupResource{Group: resource.Group, Resource: resource.Resource + "/status"}, "patch"),
		}
	}
	rules = append(rules, definitionRules(resource.GroupResource())...)
	return Task{
		Name:        "ClearField/" + resource.GroupResource().String() + "/" + field,
		Description: fmt.Sprintf("remove %s from every stored object of %s", field, resource.GroupResource()),
		collection:  resource.GroupResource(),
		Find:        c.find,
		Run:         c.run,
		Fields:      []Field{{Resource: resource.GroupResource(), Path: field}},
		Rules:       rules,
		about:       resource.GroupResource(),
		version:     resource.Version,
		invalid:     err,

		throughStatus: len(c.subresources) > 0,
	}
}

type clearField struct {
	resource schema.GroupVersionResource
	path     Path
	// subresources is what objects are written through, empty for themselves.
	subresources []string
	// uncontrolled leaves objects alone that a controller made.
	uncontrolled bool
}

func (c clearField) has(object *unstructured.Unstructured) bool {
	if c.uncontrolled && metav1.GetControllerOf(object) != nil {
		return false
	}
	return c.path.in(object.Object)
}

func (c clearField) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	return find(ctx, clients, c.resource, c.path.String(), c.has)
}

// run goes through the collection until a whole pass finds no object with the
// field. The first pass goes on where an earlier attempt got, even one of a
// server that crashed.
func (c clearField) run(ctx context.Context, clients Clients, attempt Attempt) error {
	tally, pace := newTally(attempt), newPace()
	from := tally.from
	for range maxPasses {
		before := tally.foundSoFar()
		if err := c.pass(ctx, clients, from, attempt, tally, pace); err != nil {
			return err
		}
		if from == "" && tally.foundSoFar() == before {
			return nil
		}
		if err := tally.blocked(c, clients); err != nil {
			return err
		}
		from = ""
		tally.verify()
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep getting %s again; find out who writes it", c.resource.GroupResource(), c.path)}
}

// pass clears what one walk through the collection finds. Objects that refuse
// are counted in the tally and do not keep others from being cleared.
func (c clearField) pass(ctx context.Context, clients Clients, from string, attempt Attempt, tally *tally, pace *pace) error {
	return eachPage(ctx, clients, c.resource, from, func(page *unstructured.UnstructuredList) error {
		if err := attempt.check(ctx); err != nil {
			return err
		}
		var objects []*unstructured.Unstructured
		for i := range page.Items {
			if c.has(&page.Items[i]) {
				tally.add()
				objects = append(objects, &page.Items[i])
			}
		}
		pace.each(len(objects), func(i int) outcome {
			took, err := c.clear(ctx, clients, objects[i])
			tally.cleared(objects[i], err)
			return outcomeOf(took, err)
		})
		// A page that the end of the context cut short is not done.
		if err := ctx.Err(); err != nil {
			return err
		}
		tally.pageDone(page)
		return nil
	})
}

// clear removes the field from one object. The resourceVersion in the patch
// makes the server refuse it when the object is no longer the one that was
// read, and the uid when it is another one of the same name. It returns how long
// the patch took, 0 if none succeeded.
func (c clearField) clear(ctx context.Context, clients Clients, object *unstructured.Unstructured) (time.Duration, error) {
	client := clients.Dynamic.Resource(c.resource).Namespace(object.GetNamespace())
	for range conflictRetries {
		patch, err := c.patch(object)
		if err != nil || patch == nil {
			return 0, err
		}
		took, err := timed(func() error { return c.send(ctx, clients, object, patch) })
		switch {
		case err == nil:
			return took, nil
		case apierrors.IsNotFound(err):
			// The object is gone, or its resource has no status to write.
		case denied(err) || (!apierrors.IsConflict(err) && !apierrors.IsInvalid(err)):
			return 0, err
		}
		current, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			return 0, nil
		case getErr != nil:
			return 0, getErr
		case apierrors.IsNotFound(err):
			return 0, fmt.Errorf("%s has no subresource status: %w", c.resource.GroupResource(), err)
		case current.GetUID() != object.GetUID():
			// Another object took the name; the next pass looks at it.
			return 0, nil
		case apierrors.IsInvalid(err) && current.GetResourceVersion() == object.GetResourceVersion():
			// The object is what it was, so it is the server that refuses. Else
			// the field may have gone first, and a patch that removes what is not
			// there is invalid (apiserver's endpoints/handlers/patch.go).
			return 0, err
		}
		object = current
	}
	return 0, errWrittenByOthers
}

var errWrittenByOthers = errors.New("somebody else keeps writing it")

// send sends a patch of an object. What becomes of the object is not of interest.
func (c clearField) send(ctx context.Context, clients Clients, object *unstructured.Unstructured, patch []byte) (err error) {
	options := metav1.PatchOptions{FieldManager: clients.fieldManager(), FieldValidation: metav1.FieldValidationIgnore}
	namespace, name := object.GetNamespace(), object.GetName()
	if clients.Metadata != nil {
		_, err = clients.Metadata.Resource(c.resource).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, options, c.subresources...)
	} else {
		_, err = clients.Dynamic.Resource(c.resource).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, options, c.subresources...)
	}
	return err
}

type jsonPatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch returns the JSON patch that removes the field, nil when the object does
// not have it.
func (c clearField) patch(object *unstructured.Unstructured) ([]byte, error) {
	pointers := c.path.Pointers(object.Object)
	if len(pointers) == 0 {
		return nil, nil
	}
	operations := []jsonPatchOperation{
		{Op: "replace", Path: "/metadata/uid", Value: object.GetUID()},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()},
	}
	// From the last one on: an element that goes moves those behind it.
	for _, pointer := range slices.Backward(pointers) {
		operations = append(operations, jsonPatchOperation{Op: "remove", Path: pointer})
	}
	return json.Marshal(operations)
}
