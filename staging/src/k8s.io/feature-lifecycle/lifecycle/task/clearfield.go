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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// fieldManager names the server flow in managed fields.
	fieldManager = "feature-lifecycle"
	// pageSize is how many objects one LIST returns. It bounds memory: at most
	// two pages are held, one being cleared and one being read.
	pageSize = 250
	// clearWorkers is how many writes are under way at once. Beyond 16 a
	// two-core server gains nothing (design: budgets).
	clearWorkers = 16
	// conflictRetries is how often one object is read and written again in one
	// pass when somebody else keeps writing it.
	conflictRetries = 5
	// maxPasses is how often one attempt goes through the collection. The last
	// pass has to find nothing, since somebody may write the field meanwhile.
	maxPasses = 5
	// maxExamples is how many objects a message or a finder names.
	maxExamples = 5
)

// ClearField removes a field from every stored object of a resource and changes
// nothing else in them (S7). Objects without the field are not written. It is
// for fields that may be removed from live objects; what a controller does when
// the field goes is for the author to know.
func ClearField(resource schema.GroupVersionResource, field string) Task {
	path, err := ParsePath(field)
	c := clearField{resource: resource, path: path}
	return Task{
		Name:        "ClearField/" + resource.GroupResource().String() + "/" + field,
		Description: fmt.Sprintf("remove %s from every stored object of %s", field, resource.GroupResource()),
		Find:        c.find,
		Run:         c.run,
		invalid:     err,
	}
}

type clearField struct {
	resource schema.GroupVersionResource
	path     Path
}

func (c clearField) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	found := v1alpha1.ResourceLeftovers{Group: c.resource.Group, Resource: c.resource.Resource, Field: c.path.String()}
	err := c.eachWithField(ctx, clients, func(object *unstructured.Unstructured) error {
		found.Count++
		if len(found.Examples) < maxExamples {
			found.Examples = append(found.Examples, objectName(object))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if found.Count == 0 {
		return nil, nil
	}
	return []v1alpha1.ResourceLeftovers{found}, nil
}

// run goes through the collection until a pass finds no object with the field.
func (c clearField) run(ctx context.Context, clients Clients, attempt Attempt) error {
	tally := &tally{report: attempt.Report}
	for range maxPasses {
		before := tally.found()
		if err := c.pass(ctx, clients, tally); err != nil {
			return err
		}
		if tally.found() == before {
			return nil
		}
		if err := tally.blocked(c); err != nil {
			return err
		}
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep getting %s again; find out who writes it", c.resource.GroupResource(), c.path)}
}

// pass clears what one walk through the collection finds. Objects that refuse
// are counted in the tally and do not keep others from being cleared.
func (c clearField) pass(ctx context.Context, clients Clients, tally *tally) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	objects := make(chan *unstructured.Unstructured)
	var workers sync.WaitGroup
	for range clearWorkers {
		workers.Go(func() {
			for object := range objects {
				tally.cleared(object, c.clear(ctx, clients, object))
			}
		})
	}
	err := c.eachWithField(ctx, clients, func(object *unstructured.Unstructured) error {
		tally.add()
		select {
		case objects <- object:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(objects)
	workers.Wait()
	return err
}

// eachWithField calls visit for every stored object that has the field, page by
// page.
func (c clearField) eachWithField(ctx context.Context, clients Clients, visit func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := clients.Dynamic.Resource(c.resource).List(ctx, options)
		if err != nil {
			// An expired continue token ends the walk; the next attempt starts
			// over and finds less.
			err = fmt.Errorf("listing %s: %w", c.resource.GroupResource(), err)
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
				// Permissions, or the API itself, have to come back first.
				return &BlockedError{Message: err.Error()}
			}
			return err
		}
		for i := range page.Items {
			if len(c.path.Pointers(page.Items[i].Object)) == 0 {
				continue
			}
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// clear removes the field from one object. The resourceVersion in the patch
// makes the server refuse it when the object is no longer the one that was
// read, and the uid when it is another one of the same name.
func (c clearField) clear(ctx context.Context, clients Clients, object *unstructured.Unstructured) error {
	client := clients.Dynamic.Resource(c.resource).Namespace(object.GetNamespace())
	for range conflictRetries {
		patch, err := c.patch(object)
		if err != nil {
			return err
		}
		if patch == nil {
			return nil
		}
		_, err = client.Patch(ctx, object.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{
			FieldManager:    fieldManager,
			FieldValidation: metav1.FieldValidationIgnore,
		})
		switch {
		case err == nil || apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsInvalid(err):
			return err
		}
		current, getErr := client.Get(ctx, object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			return nil
		case getErr != nil:
			return getErr
		case current.GetUID() != object.GetUID():
			// Another object took the name; the next pass looks at it.
			return nil
		case apierrors.IsInvalid(err) && current.GetResourceVersion() == object.GetResourceVersion():
			// The object is what it was, so it is the server that refuses. Else
			// the field may have gone first, and a patch that removes what is not
			// there is invalid (apiserver's endpoints/handlers/patch.go).
			return err
		}
		object = current
	}
	return errors.New("somebody else keeps writing it")
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
	for _, pointer := range pointers {
		operations = append(operations, jsonPatchOperation{Op: "remove", Path: pointer})
	}
	return json.Marshal(operations)
}

func objectName(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// tally counts what became of the objects of an attempt. It is safe for
// concurrent use.
type tally struct {
	report func(Progress)

	mu       sync.Mutex
	progress Progress
	// refused counts objects that the server does not let be changed so.
	// examples are the first of them in the order of their names, as
	// <name>: <cause>, so that the message is the same each time.
	refused  int
	examples []string
	// failure is the first error that is no refusal: the server's trouble.
	failure error
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Total++
}

func (t *tally) found() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.progress.Total
}

func (t *tally) cleared(object *unstructured.Unstructured, err error) {
	t.mu.Lock()
	switch {
	case err == nil:
		t.progress.Done++
	case refuses(err):
		t.refused++
		t.examples = append(t.examples, objectName(object)+": "+err.Error())
		slices.Sort(t.examples)
		t.examples = t.examples[:min(len(t.examples), maxExamples)]
	case t.failure == nil:
		t.failure = fmt.Errorf("clearing %s: %w", objectName(object), err)
	}
	progress := t.progress
	t.mu.Unlock()
	t.report(progress)
}

// refuses is true when somebody has to act before an object can be changed:
// permissions, validation or a webhook forbid it. Anything else, such as a
// server that is busy or gone, passes by itself.
func refuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// blocked returns why a pass was not enough, nil when it was: an error that
// names the objects that refused, or the server's trouble.
func (t *tally) blocked(c clearField) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failure != nil:
		return t.failure
	case t.refused > 0:
		return &BlockedError{Message: fmt.Sprintf("%d objects of %s refuse to have %s removed: %s",
			t.refused, c.resource.GroupResource(), c.path, strings.Join(t.examples, "; "))}
	default:
		return nil
	}
}
