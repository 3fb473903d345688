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
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/feature-lifecycle/lifecycle/internal/phrase"
)

const (
	// storedBatch is the number of objects that are removed from storage after one check
	// that the transition is still wanted. batchPatience is how long that may take: a
	// server that was frozen in between must not continue.
	storedBatch   = 100
	batchPatience = 5 * time.Second
)

// stored returns what clearStored removes, and what it must not: objects that others
// hold by their finalizers. With served set, objects that decode are left to the API.
func (c clearCollection) stored(ctx context.Context, storage Storage, served bool) (removable, held []StoredObject, err error) {
	err = eachStored(ctx, storage, c.resource, func(object StoredObject) error {
		switch {
		case object.Unreadable != nil:
			removable = append(removable, object)
		case served:
		case len(c.holders(object.Finalizers)) > 0:
			held = append(held, object)
		default:
			removable = append(removable, object)
		}
		return nil
	})
	return removable, held, err
}

// holders returns the finalizers of a stored object on which its removal waits. Those of
// the garbage collector are not among them: it cannot act while the API is not served.
func (c clearCollection) holders(finalizers []string) []string {
	return slices.DeleteFunc(c.foreign(finalizers), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
}

// clearStored deletes what is stored and out of the API's reach: everything when this
// server serves no version of the resource, otherwise what it cannot decode. It is
// blocked by finalizers of others, as the API would be. Objects that no server can
// decode are deleted whatever finalizers they have, since these could never be removed.
func (c clearCollection) clearStored(ctx context.Context, clients Clients, served bool, attempt Attempt) (removed int64, err error) {
	storage := clients.Storage
	left, held, err := c.stored(ctx, storage, served)
	total := int64(len(left) + len(held))
	if err == nil && clients.Collector != nil {
		// First: an attempt that is cut short finds the owners again.
		err = clients.Collector.collect(ctx, c.resource, left, attempt)
	}
	for begin := 0; err == nil && begin < len(left); begin += storedBatch {
		var done int64
		done, err = c.clearBatch(ctx, storage, attempt, left[begin:min(begin+storedBatch, len(left))])
		removed += done
		attempt.Report(Progress{Done: removed, Total: total, Message: fmt.Sprintf("%d stored objects removed that the API does not reach", removed)})
	}
	if err == nil && len(held) > 0 {
		err = c.heldInStorage(clients, held)
	}
	return removed, err
}

// heldInStorage returns an error that names the objects that the finalizers of others
// hold, and the next step.
func (c clearCollection) heldInStorage(clients Clients, held []StoredObject) error {
	// It may wait for days, and needs no more than their number.
	number := len(held)
	message := fmt.Sprintf("%s, and no version is served, so that the owners of the finalizers cannot act: serve it again (turn the feature on, with its API if that is off), "+
		"delete the objects, or remove the finalizers if they are no longer needed, and turn the feature off again once they are gone", c.describeHeld(held))
	return &BlockedError{Message: message, Until: func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			if _, isServed, err := served(clients, c.resource); err == nil && isServed {
				return true
			}
			removable, still, err := c.stored(ctx, clients.Storage, false)
			return err == nil && (len(removable) > 0 || len(still) != number)
		})
	}}
}

// describeHeld names objects and the finalizers of others that they have.
func (c clearCollection) describeHeld(held []StoredObject) string {
	var names []string
	for _, object := range held[:min(len(held), maxExamples)] {
		names = append(names, fmt.Sprintf("%s (%s)", objectName(object.Namespace, object.Name), strings.Join(c.holders(object.Finalizers), ", ")))
	}
	return fmt.Sprintf("%s held by finalizers of others: %s", phrase.Objects(len(held), c.resource, "is", "are"), strings.Join(names, ", "))
}

// obstacles returns the objects that the finalizers of others would hold, and those
// that may not be deleted. It reads what is stored, or only what the API shows when
// storage is not available.
func (c clearCollection) obstacles(ctx context.Context, clients Clients) (outlook Outlook, err error) {
	resource, isServed, err := served(clients, c.resource)
	if err != nil {
		return outlook, err
	}
	if isServed {
		wanted := func(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil }
		outlook, err = tryEach(ctx, clients, resource, wanted, "to be deleted", func(ctx context.Context, o *unstructured.Unstructured) error {
			return clients.Dynamic.Resource(resource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), deletion(o, dryRun...))
		})
		if err != nil && clients.Storage == nil {
			return outlook, err
		}
		if err != nil {
			// One object that does not decode makes every LIST fail, and goes first.
			outlook.Unknown = append(outlook.Unknown, fmt.Sprintf("whether admission lets objects of %s be deleted: %s", c.resource, cut(err)))
		}
	}
	held, err := c.heldNow(ctx, clients)
	if err == nil && len(held) > 0 {
		outlook.Held = append(outlook.Held, c.describeHeld(held)+"; while the API is served, delete them and wait until they are gone, or remove the finalizers if they are no longer needed")
	}
	return outlook, err
}

// heldNow returns the objects that have finalizers of others.
func (c clearCollection) heldNow(ctx context.Context, clients Clients) (held []StoredObject, err error) {
	if clients.Storage != nil {
		_, held, err = c.stored(ctx, clients.Storage, false)
		return held, err
	}
	resource, isServed, err := served(clients, c.resource)
	if err != nil || !isServed {
		return nil, err
	}
	err = forEachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			if item := &page.Items[i]; len(c.holders(item.GetFinalizers())) > 0 {
				held = append(held, StoredObject{Namespace: item.GetNamespace(), Name: item.GetName(), Finalizers: item.GetFinalizers()})
			}
		}
		return nil
	})
	return held, err
}

// clearBatch deletes some stored objects and returns the first error.
func (c clearCollection) clearBatch(ctx context.Context, storage Storage, attempt Attempt, batch []StoredObject) (removed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchPatience)
	defer cancel()
	if err := attempt.check(ctx); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	inParallel(len(batch), func(i int) {
		deleteErr := storage.Delete(ctx, c.resource, batch[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case deleteErr == nil:
			removed++
		case err == nil:
			err = fmt.Errorf("deleting the stored %s: %w", objectName(batch[i].Namespace, batch[i].Name), deleteErr)
		}
	})
	return removed, err
}
