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
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served finds the version that the API serves the resource in; served is false
// when it has none.
func served(clients Clients, resource schema.GroupResource) (found schema.GroupVersionResource, served bool, err error) {
	if clients.Mapper == nil {
		return found, false, fmt.Errorf("finding %s: no mapper is given to tasks", resource)
	}
	clients.Mapper.Reset()
	candidates, err := clients.Mapper.ResourcesFor(resource.WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return found, false, fmt.Errorf("finding the versions of %s: %w", resource, err)
	}
	for _, candidate := range candidates {
		// A mapper also finds groups that only begin alike, and any group for a
		// resource of the core group.
		if candidate.GroupResource() == resource {
			return candidate, true, nil
		}
	}
	return found, false, nil
}

// nothingStored is true when nothing of a resource can be left that the server
// answered to know nothing of: no version of it is served, and nothing is stored,
// as far as that can be seen.
func nothingStored(ctx context.Context, clients Clients, resource schema.GroupResource, listErr error) (bool, error) {
	if !apierrors.IsNotFound(listErr) || clients.Mapper == nil {
		return false, nil
	}
	if _, isServed, err := served(clients, resource); err != nil || isServed {
		return false, err
	}
	if clients.Storage == nil {
		// A custom resource's objects go with its definition.
		return undefined(ctx, clients, resource) == nil, nil
	}
	page, _, err := clients.Storage.List(ctx, resource, 1, "")
	return err == nil && len(page) == 0, err
}

// undefined returns an error when the resource has a definition. Discovery
// learns of one a moment after it was made, and its versions may be switched off
// for a while; what has finalizers must not be deleted behind the API's back
// then.
func undefined(ctx context.Context, clients Clients, resource schema.GroupResource) error {
	_, err := clients.Dynamic.Resource(crds).Get(ctx, resource.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("finding out why %s is not served: %w", resource, err)
	default:
		return fmt.Errorf("%s is defined and not served; the API has to decide about its objects", resource)
	}
}
