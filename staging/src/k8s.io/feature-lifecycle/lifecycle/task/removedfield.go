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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

// RemovedField is a field that a minor version no longer has in an API version that both
// it and the one before store: upstream renames and replaces alpha fields in place.
// Decoding drops it without an error, so the value is lost with the next write. Until
// then it is in the stored bytes.
type RemovedField struct {
	// Resource is that of the objects, in the version in which they are stored.
	Resource schema.GroupVersionResource
	// Path is the field's in the versions that had it, written as for ClearField with no
	// other selectors than [*] and {*}.
	Path string
	// Number is its protobuf number in the message that had it.
	Number int
	// At is the first minor version without it, for example 1.37.
	At string
	// Instead is the path of the field that took its place; "" if none did.
	Instead string
}

// Keys returns the keys of the path, each with what it selects: "", "[*]" or "{*}".
func (f RemovedField) Keys() (keys, selectors []string) {
	for _, part := range splitPath(f.Path) {
		at := strings.IndexAny(part+"[", "[{")
		keys, selectors = append(keys, part[:at]), append(selectors, part[at:])
	}
	return keys, selectors
}

// validate returns what is wrong with the declaration.
func (f RemovedField) validate() error {
	path, err := ParsePath(f.Path)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(path.segments, func(s segment) bool { return s.which == someElements || s.which == oneEntry }):
		return fmt.Errorf("removed field %q: it may select all elements or entries, [*] or {*}, and nothing else", f.Path)
	case path.segments[len(path.segments)-1].which == eachElement:
		return fmt.Errorf("removed field %q: the last part must name a field, not all that is in it", f.Path)
	case f.Number <= 0:
		return fmt.Errorf("removed field %q: its protobuf number is %d, and numbers begin with 1", f.Path, f.Number)
	case f.At == "":
		return fmt.Errorf("removed field %q: set At to the first minor version without it, like 1.37", f.Path)
	}
	return nil
}

// String describes the field and its fate in a clause.
func (f RemovedField) String() string {
	text := fmt.Sprintf("%s does not have the field %s of %s and drops it without an error", f.At, f.Path, f.Resource.GroupResource())
	if f.Instead != "" {
		text += "; " + f.Instead + " took its place"
	}
	return text
}

// ClearRemovedField rewrites the stored objects that hold a field which servers of this
// version do not have. The write through the API changes nothing else: such a server has
// dropped the field when it decoded the object. It is for the OnDisable of the feature
// that stored the field. While the feature is on, the objects are named (Task.Unread), and
// nothing removes the value: servers of the version before still read it. It needs
// Clients.Storage, which only kube-apiserver has.
func ClearRemovedField(field RemovedField) Task {
	c := clearRemovedField{field}
	resource := field.Resource.GroupResource()
	return Task{
		Name:        "ClearRemovedField/" + resource.String() + "/" + field.Path,
		Description: fmt.Sprintf("rewrite every stored object of %s that holds %s, which no server has from %s on", resource, field.Path, field.At),
		Find:        c.find,
		Run:         c.run,
		// Not in Fields: those are fields that this version has.
		Rules:        []rbacv1.PolicyRule{rule(resource, "patch")},
		collection:   resource,
		about:        resource,
		version:      field.Resource.Version,
		invalid:      field.validate(),
		NeedsStorage: true,
		Unread:       field.String(),
		Removed:      &field,
	}
}

type clearRemovedField struct{ field RemovedField }

func (c clearRemovedField) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage == nil {
		return nil, c.unreachable()
	}
	found := v1alpha1.ResourceLeftovers{Group: c.field.Resource.Group, Resource: c.field.Resource.Resource, Field: c.field.Path}
	err := eachHolding(ctx, clients.Storage, c.field, func(object StoredObject) error {
		count(&found, objectName(object.Namespace, object.Name))
		return nil
	})
	return nonEmpty(found), err
}

// run rewrites through the API, until a walk finds nothing.
func (c clearRemovedField) run(ctx context.Context, clients Clients, attempt Attempt) error {
	if clients.Storage == nil {
		return c.unreachable()
	}
	limiter := newWriteLimiter()
	var progress Progress
	for range maxPasses {
		var left []StoredObject
		err := eachHolding(ctx, clients.Storage, c.field, func(object StoredObject) error {
			left = append(left, object)
			return nil
		})
		if err != nil || len(left) == 0 {
			return err
		}
		progress.Total = progress.Done + int64(len(left))
		for batch := range slices.Chunk(left, storedBatch) {
			if err := attempt.check(ctx); err != nil {
				return err
			}
			done, err := c.rewrite(ctx, clients, limiter, batch)
			progress.Done += done
			attempt.Report(progress)
			if err != nil {
				return err
			}
		}
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep being stored with %s; a server older than %s writes them: replace it", c.field.Resource.GroupResource(), c.field.Path, c.field.At)}
}

// rewrite writes some objects as they are. What the server refuses blocks the task;
// objects that changed meanwhile are for the next walk.
func (c clearRemovedField) rewrite(ctx context.Context, clients Clients, limiter *writeLimiter, batch []StoredObject) (done int64, err error) {
	results := make([]error, len(batch))
	limiter.each(len(batch), func(i int) outcome {
		var took time.Duration
		took, results[i] = timed(func() error { return c.write(ctx, clients, batch[i]) })
		return outcomeOf(took, results[i])
	})
	var refused []string
	var failed []error
	for i, err := range results {
		name := objectName(batch[i].Namespace, batch[i].Name)
		switch {
		case err == nil || !denied(err) && apierrors.IsNotFound(err):
			done++
		case !denied(err) && apierrors.IsConflict(err):
		case refuses(err):
			refused = append(refused, name+": "+cut(err))
		default:
			failed = append(failed, fmt.Errorf("rewriting %s: %w", name, err))
		}
	}
	if len(failed) > 0 {
		return done, errors.Join(failed[:min(len(failed), maxExamples)]...)
	}
	if len(refused) == 0 {
		return done, nil
	}
	return done, &BlockedError{
		Message: fmt.Sprintf("%s not be rewritten: %s", phrase.Objects(len(refused), c.field.Resource.GroupResource(), "may", "may"), strings.Join(refused[:min(len(refused), maxExamples)], "; ")),
	}
}

// write writes one object as it is, if it still is what was read. The server encodes it
// again, and so the bytes differ.
func (c clearRemovedField) write(ctx context.Context, clients Clients, object StoredObject) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "resourceVersion": fmt.Sprint(object.Revision)}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: clients.fieldManager(), FieldValidation: metav1.FieldValidationIgnore}
	if clients.Metadata != nil {
		_, err = clients.Metadata.Resource(c.field.Resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, options)
	} else {
		_, err = clients.Dynamic.Resource(c.field.Resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, options)
	}
	return err
}

// unreachable returns the error of a server without access to storage: "nothing found"
// or "done" would be wrong.
func (c clearRemovedField) unreachable() error {
	return &BlockedError{Message: fmt.Sprintf("only kube-apiserver can reach etcd, whose objects of %s may hold %s; take ClearRemovedField out of the declaration", c.field.Resource.GroupResource(), c.field.Path)}
}
