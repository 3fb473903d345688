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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
	"k8s.io/utils/ptr"
)

// Collector deletes what stored objects own before these are removed without the API.
// It does what the garbage collector of Kubernetes does for objects that are served
// (attemptToDeleteItem in k8s.io/kubernetes/pkg/controller/garbagecollector). That one
// queries the API for an owner, without end where no version of its kind is served. Its
// methods may be called concurrently.
type Collector struct {
	// Discovery lists what may be owned: every resource that can be listed and deleted. A
	// group that does not answer blocks the task, as it blocks the deletion of namespaces.
	Discovery discovery.ServerResourcesInterface
	// Metadata lists, deletes and patches objects of all these resources. It should act as
	// the garbage collector, which has the permissions.
	Metadata metadata.Interface
}

// ownablePage is the number of objects that one LIST of metadata returns.
const ownablePage = 500

// collectorRun is a run of a collector for the objects of one resource that are about to be
// removed.
type collectorRun struct {
	*Collector
	resource schema.GroupResource
	owners   map[types.UID]StoredObject
	attempt  Attempt
	// refused are the objects that cannot be changed, each with the reason.
	refused []string
}

// collect deletes what the owners own, and removes their references from what others
// own, too. It reads every collection of the cluster once, and nothing if the owners
// have no UID. A *BlockedError names what could not be read, changed or deleted.
func (c *Collector) collect(ctx context.Context, resource schema.GroupResource, owners []StoredObject, attempt Attempt) error {
	run := &collectorRun{Collector: c, resource: resource, owners: map[types.UID]StoredObject{}, attempt: attempt}
	for _, owner := range owners {
		if owner.UID != "" {
			run.owners[owner.UID] = owner
		}
	}
	if len(run.owners) == 0 {
		return nil
	}
	ownable, err := c.ownable(resource)
	if err != nil {
		return err
	}
	for _, of := range ownable {
		if err := run.each(ctx, of); err != nil {
			return fmt.Errorf("collecting what objects of %s own: %w", resource, err)
		}
	}
	if n := len(run.refused); n > 0 {
		return &BlockedError{Message: fmt.Sprintf("%s owned by objects of %s and cannot be collected: %s", phrase.Count(n, "object is", "objects are"), resource,
			strings.Join(run.refused[:min(n, maxExamples)], "; "))}
	}
	return nil
}

// ownable returns the resources whose objects may be owned, each in the version that
// the server prefers.
func (c *Collector) ownable(except schema.GroupResource) ([]schema.GroupVersionResource, error) {
	lists, err := c.Discovery.ServerPreferredResources()
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		var names []string
		for version := range failed {
			names = append(names, version.String())
		}
		slices.Sort(names)
		return nil, &BlockedError{Message: fmt.Sprintf("what objects of %s own is collected before they go, and cannot be seen in %s, whose server does not answer: let it answer, or delete its APIService",
			except, strings.Join(names, ", "))}
	}
	if err != nil {
		return nil, fmt.Errorf("finding what may be owned by objects of %s: %w", except, err)
	}
	var found []schema.GroupVersionResource
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete", "patch"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("finding what may be owned by objects of %s: %w", except, err)
		}
		for _, r := range list.APIResources {
			// The garbage collector leaves events alone, too: they expire.
			if of := version.WithResource(r.Name); of.GroupResource() != except && r.Name != "events" {
				found = append(found, of)
			}
		}
	}
	return found, nil
}

// each takes away what is owned of one resource.
func (r *collectorRun) each(ctx context.Context, of schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: ownablePage}
	for {
		page, err := r.Metadata.Resource(of).List(ctx, options)
		if token, expired := continueAnyway(err); expired && options.Continue != token {
			options.Continue = token
			continue
		}
		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			// Its definition was deleted meanwhile.
			return nil
		case apierrors.IsForbidden(err):
			return &BlockedError{Message: fmt.Sprintf("%s may be owned and cannot be read; the garbage collector has to be permitted everything, as its role does with RBAC: %s", of.GroupResource(), cut(err))}
		case apierrors.IsInternalError(err):
			// Most often it has an object that does not decode, which fails every LIST.
			return &BlockedError{Message: fmt.Sprintf("%s may be owned and cannot be read; if an object does not decode, repair or delete it: %s", of.GroupResource(), cut(err))}
		case err != nil:
			return fmt.Errorf("listing %s: %w", of.GroupResource(), err)
		}
		if err := r.page(ctx, of, page); err != nil {
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// page takes away what is owned of one page.
func (r *collectorRun) page(ctx context.Context, of schema.GroupVersionResource, page *metav1.PartialObjectMetadataList) error {
	var owned []*metav1.PartialObjectMetadata
	for i := range page.Items {
		if item := &page.Items[i]; len(r.others(item)) < len(item.OwnerReferences) {
			owned = append(owned, item)
		}
	}
	if len(owned) == 0 {
		return ctx.Err()
	}
	if err := r.attempt.check(ctx); err != nil {
		return err
	}
	results := make([]error, len(owned))
	inParallel(len(owned), func(i int) { results[i] = r.take(ctx, of, owned[i]) })
	var failure error
	for i, err := range results {
		name := of.Resource + " " + objectName(owned[i].Namespace, owned[i].Name)
		switch {
		case err == nil:
		case refuses(err):
			r.refused = append(r.refused, name+": "+cut(err))
		case failure == nil:
			failure = fmt.Errorf("%s: %w", name, err)
		}
	}
	return failure
}

// owner returns the object that goes and to which a reference leads, as the garbage
// collector reads it: it is in the namespace of what it owns, or in none.
func (r *collectorRun) owner(reference metav1.OwnerReference, namespace string) (StoredObject, bool) {
	owner, ok := r.owners[reference.UID]
	version, err := schema.ParseGroupVersion(reference.APIVersion)
	return owner, ok && err == nil && version.Group == r.resource.Group && reference.Name == owner.Name && (owner.Namespace == "" || owner.Namespace == namespace)
}

// others returns the references of an object to all owners but those that are deleted.
func (r *collectorRun) others(item *metav1.PartialObjectMetadata) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(item.OwnerReferences), func(reference metav1.OwnerReference) bool {
		_, goes := r.owner(reference, item.Namespace)
		return goes
	})
}

// orphaned returns true when all deleted owners of an object orphan their dependents.
func (r *collectorRun) orphaned(item *metav1.PartialObjectMetadata) bool {
	return !slices.ContainsFunc(item.OwnerReferences, func(reference metav1.OwnerReference) bool {
		owner, goes := r.owner(reference, item.Namespace)
		return goes && !slices.Contains(owner.Finalizers, metav1.FinalizerOrphanDependents)
	})
}

// take deletes an object, or takes the references to owners that go from one that is
// owned by others, too, or is left behind.
func (r *collectorRun) take(ctx context.Context, of schema.GroupVersionResource, item *metav1.PartialObjectMetadata) error {
	client := r.Metadata.Resource(of).Namespace(item.Namespace)
	uid := item.UID
	for range conflictRetries {
		others := r.others(item)
		if item.UID != uid || len(others) == len(item.OwnerReferences) || item.DeletionTimestamp != nil {
			return nil
		}
		var err error
		if len(others) > 0 || r.orphaned(item) {
			err = r.patch(ctx, client, item, others)
		} else {
			err = client.Delete(ctx, item.Name, metav1.DeleteOptions{
				Preconditions:     &metav1.Preconditions{UID: &item.UID, ResourceVersion: &item.ResourceVersion},
				PropagationPolicy: ptr.To(propagation(item.Finalizers)),
			})
		}
		if err == nil || denied(err) || !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
		if item, err = client.Get(ctx, item.Name, metav1.GetOptions{}); err != nil {
			return ignoreGone(err)
		}
	}
	return errors.New("another client keeps writing it")
}

// propagation returns the policy for the dependents of the object itself: that of its
// finalizers, otherwise they are collected.
func propagation(finalizers []string) metav1.DeletionPropagation {
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}

// patch writes the references of the object that was read.
func (r *collectorRun) patch(ctx context.Context, client metadata.ResourceInterface, item *metav1.PartialObjectMetadata, references []metav1.OwnerReference) error {
	if references == nil {
		references = []metav1.OwnerReference{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": item.UID, "resourceVersion": item.ResourceVersion, "ownerReferences": references,
	}})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, item.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
