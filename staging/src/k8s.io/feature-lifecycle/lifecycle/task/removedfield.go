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

// run rewrites through the API, until a walk finds nothing. What is refused does not keep
// others from being written.
func (c clearRemovedField) run(ctx context.Context, clients Clients, attempt Attempt) error {
	if clients.Storage == nil {
		return c.unreachable()
	}
	limiter := newWriteLimiter()
	var progress Progress
	var missing []string
	for range maxPasses {
		left, err := c.holders(ctx, clients.Storage)
		if err != nil || len(left) == 0 {
			return err
		}
		through, err := c.through(clients, len(left))
		if err != nil {
			return err
		}
		progress.Total = progress.Done + int64(len(left))
		pass := &rewritePass{clearRemovedField: c, clients: clients, resource: through, limiter: limiter}
		for batch := range slices.Chunk(left, storedBatch) {
			if err := attempt.check(ctx); err != nil {
				return err
			}
			progress.Done += pass.rewrite(ctx, batch)
			if err := ctx.Err(); err != nil {
				return err
			}
			attempt.Report(progress)
		}
		if err := pass.blocked(); err != nil {
			return err
		}
		missing = pass.missing
	}
	return c.unfinished(missing)
}

// holders returns the objects that hold the field.
func (c clearRemovedField) holders(ctx context.Context, storage Storage) (holders []StoredObject, err error) {
	err = eachHolding(ctx, storage, c.field, func(object StoredObject) error {
		holders = append(holders, object)
		return nil
	})
	return holders, err
}

// through returns the resource in the version through which objects are written: any that
// is served will do, since the server encodes what it stores in one version. A number of
// objects is left.
func (c clearRemovedField) through(clients Clients, left int) (schema.GroupVersionResource, error) {
	resource := c.field.Resource.GroupResource()
	versions, err := servedVersions(clients, resource)
	switch {
	case err != nil:
		return schema.GroupVersionResource{}, err
	case clients.Mapper == nil || slices.Contains(versions, c.field.Resource.Version):
		return c.field.Resource, nil
	case len(versions) > 0:
		return resource.WithVersion(versions[0]), nil
	}
	how := flagsToServe(c.field.Resource) + ", or turn off the feature that clears the collection"
	if by := clients.clearedBy(resource); by != "" {
		// The API went with that feature's gate, whatever flags serve it otherwise.
		how = "it waits for " + by
	}
	return schema.GroupVersionResource{}, &BlockedError{
		Message: fmt.Sprintf("%s stored with %s, and no version of it is served through which to rewrite them: %s", phrase.Objects(left, resource, "is", "are"), c.field.Path, how),
		Until: func(ctx context.Context) error {
			return probe(ctx, func(ctx context.Context) bool {
				now, err := servedVersions(clients, resource)
				if err == nil && len(now) > 0 {
					return true
				}
				held := errors.New("there is one")
				return eachHolding(ctx, clients.Storage, c.field, func(StoredObject) error { return held }) == nil
			})
		},
	}
}

// unfinished returns why objects still hold the field after all passes. The server did not
// find some of them in the last one.
func (c clearRemovedField) unfinished(missing []string) error {
	resource := c.field.Resource.GroupResource()
	if len(missing) > 0 {
		return &BlockedError{Message: fmt.Sprintf("%s stored with %s, and the API does not find them: %s; let kube-apiserver itself serve %s, in the version and the namespaces in which they are stored",
			phrase.Objects(len(missing), resource, "is", "are"), c.field.Path, strings.Join(missing[:min(len(missing), maxExamples)], ", "), resource)}
	}
	return &BlockedError{Message: fmt.Sprintf("objects of %s keep being stored with %s; a server older than %s writes them: replace it", resource, c.field.Path, c.field.At)}
}

// rewritePass is one walk in which objects are written as they are.
type rewritePass struct {
	clearRemovedField
	clients Clients
	// resource has the version through which they are written.
	resource schema.GroupVersionResource
	limiter  *writeLimiter
	// refused are the objects that the server does not let be written, and causes why, for
	// the first of them.
	refused []StoredObject
	causes  []string
	// missing are those that the server does not find. The next walk shows whether they are
	// gone.
	missing []string
	// failures are the server's trouble.
	failures []error
}

// rewrite writes some objects, and returns how many were written. Those that changed
// meanwhile are for the next walk.
func (p *rewritePass) rewrite(ctx context.Context, batch []StoredObject) (done int64) {
	results := make([]error, len(batch))
	p.limiter.each(len(batch), func(i int) outcome {
		var took time.Duration
		took, results[i] = timed(func() error { return p.write(ctx, batch[i]) })
		return outcomeOf(took, results[i])
	})
	for i, err := range results {
		name := objectName(batch[i].Namespace, batch[i].Name)
		switch {
		case err == nil:
			done++
		case !denied(err) && apierrors.IsNotFound(err):
			p.missing = append(p.missing, name)
		case !denied(err) && apierrors.IsConflict(err):
		case refuses(err):
			p.refused = append(p.refused, batch[i])
			if len(p.causes) < maxExamples {
				p.causes = append(p.causes, name+": "+cut(err))
			}
		case len(p.failures) < maxExamples:
			p.failures = append(p.failures, fmt.Errorf("rewriting %s: %w", name, err))
		}
	}
	return done
}

// blocked returns why a pass was not enough, nil if the next walk will show it: the
// server's trouble, or an error that names the objects that may not be written.
func (p *rewritePass) blocked() error {
	if len(p.failures) > 0 {
		return errors.Join(p.failures...)
	}
	if len(p.refused) == 0 {
		return nil
	}
	return &BlockedError{
		Message: fmt.Sprintf("%s not be written, which would drop %s: %s; let admission and permissions accept an update that changes nothing, or delete them",
			phrase.Objects(len(p.refused), p.field.Resource.GroupResource(), "may", "may"), p.field.Path, strings.Join(p.causes, "; ")),
		Until: p.untilWritten(p.refused[0]),
	}
}

// untilWritten returns a wait for an object that may not be written: it shows when it is
// worth retrying all.
func (p *rewritePass) untilWritten(refused StoredObject) func(context.Context) error {
	// Not the pass itself, which has all that were refused: the wait may last for days.
	one := &rewritePass{clearRemovedField: p.clearRemovedField, clients: p.clients, resource: p.resource}
	return func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			err := one.write(ctx, refused)
			// Another version of it, or none, is for the next walk.
			return err == nil || !denied(err) && (apierrors.IsConflict(err) || apierrors.IsNotFound(err))
		})
	}
}

// write writes one object as it is, if it still is what was read. The server encodes it
// again, and so the bytes differ.
func (p *rewritePass) write(ctx context.Context, object StoredObject) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID, "resourceVersion": fmt.Sprint(object.Revision)}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: p.clients.fieldManager(), FieldValidation: metav1.FieldValidationIgnore}
	if p.clients.Metadata != nil {
		_, err = p.clients.Metadata.Resource(p.resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, options)
	} else {
		_, err = p.clients.Dynamic.Resource(p.resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, options)
	}
	return err
}

// unreachable returns the error of a server without access to storage: "nothing found"
// or "done" would be wrong.
func (c clearRemovedField) unreachable() error {
	return &BlockedError{Message: fmt.Sprintf("only kube-apiserver can reach etcd, whose objects of %s may hold %s; take ClearRemovedField out of the declaration", c.field.Resource.GroupResource(), c.field.Path)}
}
