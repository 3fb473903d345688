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
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

const (
	// firstPage is the number of objects that the first LIST returns, and mostObjects the
	// number for any. Between them a page has about pageBytes of JSON. Two pages are held,
	// one in progress and one being read, and decoded ones take some three times as much.
	// A small page is slower to write, since its last writes are waited for.
	firstPage, mostObjects = 10, 250
	pageBytes              = 4 << 20
	// samples is the number of objects from which the size of those of the next page is
	// estimated.
	samples = 4
	// maxExamples is the number of objects that a message or a finder names.
	maxExamples = 5
)

// forEachPage reads a resource, of the namespace that the clients are for, page by page
// and calls visit for each, while the next one is being read. It begins where the
// continue token points, "" for the beginning.
func forEachPage(ctx context.Context, clients Clients, resource schema.GroupVersionResource, from string, visit func(*unstructured.UnstructuredList) error) error {
	if clients.shared != nil && from == "" {
		return clients.shared.read(ctx, clients.of(resource), visit)
	}
	read := func(ctx context.Context, pages chan<- *unstructured.UnstructuredList) error {
		return readPages(ctx, clients, resource, from, pages)
	}
	return readAhead(ctx, read, func(_ context.Context, page *unstructured.UnstructuredList) error { return visit(page) })
}

// readAhead calls visit for each page that read sends, while the next one is being read.
// The context of both ends when either fails.
func readAhead[P any](ctx context.Context, read func(ctx context.Context, pages chan<- P) error, visit func(ctx context.Context, page P) error) error {
	ctx, cancel := context.WithCancel(ctx)
	pages, failed := make(chan P), make(chan error, 1)
	// The reader has ended when this function returns.
	defer func() {
		cancel()
		for range pages {
		}
	}()
	go func() {
		defer close(pages)
		failed <- read(ctx, pages)
	}()
	for page := range pages {
		if err := visit(ctx, page); err != nil {
			return err
		}
	}
	return <-failed
}

// readPages sends the pages of a collection to a channel.
func readPages(ctx context.Context, clients Clients, resource schema.GroupVersionResource, from string, pages chan<- *unstructured.UnstructuredList) error {
	options := metav1.ListOptions{Limit: firstPage, Continue: from}
	for {
		// A page may be taken by the caller that ends the walk.
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := clients.of(resource).reader(clients.Dynamic).List(ctx, options)
		if token, expired := continueAnyway(err); expired && options.Continue != token {
			options.Continue = token
			continue
		}
		if err != nil && options.Continue != "" && options.Continue == from && tokenRefused(err) {
			// A checkpoint of long ago, or of another database.
			options.Continue = ""
			continue
		}
		if err != nil {
			if nothing, storedErr := nothingStored(ctx, clients, resource.GroupResource(), err); nothing || storedErr != nil {
				return storedErr
			}
			return listError(ctx, clients, resource, err)
		}
		// Before it is passed on: an author's function that changed what it reads, for
		// example by sorting it, would do so while this reads it.
		options.Continue = page.GetContinue()
		if options.Continue != "" {
			options.Limit = nextLimit(page.Items)
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
		if options.Continue == "" {
			return nil
		}
	}
}

// nextLimit is of how many objects the next page is, if they are as large as those of
// the last one.
func nextLimit(last []unstructured.Unstructured) int64 {
	size, sampled := 0, min(len(last), samples)
	for i := range sampled {
		// What has been decoded can be encoded.
		data, _ := json.Marshal(last[i*len(last)/sampled].Object)
		size += len(data)
	}
	if size == 0 {
		return firstPage
	}
	return int64(min(max(pageBytes*sampled/size, 1), mostObjects))
}

// continueAnyway returns where a walk resumes whose token has expired. With the token
// in the error the server continues behind the same key at its present version
// (apimachinery's ListMeta.Continue). That suffices here, since each object is written
// by its own version. Without one it restarts.
func continueAnyway(err error) (token string, expired bool) {
	if err == nil || !apierrors.IsResourceExpired(err) {
		return "", false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", true
	}
	return status.Status().Continue, true
}

// tokenRefused returns true when the server does not understand a continue token: it
// reports a bad request, and not a failure of its own.
func tokenRefused(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// listError describes a failed LIST: permissions, or the API itself, have to be
// restored first, or stored objects of a removed API have to be deleted, or the API is
// served in other versions alone (*servedElsewhereError), or the failure is transient.
func listError(ctx context.Context, clients Clients, resource schema.GroupVersionResource, err error) error {
	described := fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return described
	}
	message := described.Error()
	if apierrors.IsNotFound(err) {
		others, servedErr := servedVersions(clients, resource.GroupResource())
		switch {
		case slices.Contains(others, resource.Version):
			// It is served again meanwhile, and another attempt finds it.
			return described
		case servedErr == nil && len(others) > 0:
			return &servedElsewhereError{declared: resource, versions: others}
		default:
			how := toServe(ctx, clients, resource) + ", or turn off the feature that clears the collection"
			if by := clients.clearedBy(resource.GroupResource()); by != "" {
				// The API went with that feature's gate, whatever flags serve it otherwise.
				how = "it waits for " + by
			}
			message = fmt.Sprintf("%s %s is not served and objects of it may be stored, which cannot be read: %s", resource.GroupResource(), resource.Version, how)
		}
	}
	return &BlockedError{Message: message, Until: func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			_, err := clients.of(resource).reader(clients.Dynamic).List(ctx, metav1.ListOptions{Limit: 1})
			if err == nil {
				return true
			}
			nothing, storedErr := nothingStored(ctx, clients, resource.GroupResource(), err)
			return storedErr == nil && nothing
		})
	}}
}

// clearedBy is ClearedBy, if there is one.
func (c Clients) clearedBy(resource schema.GroupResource) string {
	if c.ClearedBy == nil {
		return ""
	}
	return c.ClearedBy(resource)
}

// find counts the objects of a resource that match, for a finder.
func find(ctx context.Context, clients Clients, resource schema.GroupVersionResource, field string, matches func(*unstructured.Unstructured) bool) ([]v1alpha1.ResourceLeftovers, error) {
	found := v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource, Field: field}
	err := forEachPage(ctx, clients, resource, "", func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			if matches(&page.Items[i]) {
				count(&found, objectName(page.Items[i].GetNamespace(), page.Items[i].GetName()))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return nonEmpty(found), nil
}

// count adds one object to what was found.
func count(found *v1alpha1.ResourceLeftovers, name string) {
	found.Count++
	if len(found.Examples) < maxExamples {
		found.Examples = append(found.Examples, name)
	}
}

func nonEmpty(found v1alpha1.ResourceLeftovers) []v1alpha1.ResourceLeftovers {
	if found.Count == 0 {
		return nil
	}
	return []v1alpha1.ResourceLeftovers{found}
}

func objectName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// inParallel calls do for 0 to n-1 from as many workers as write at once at most.
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
