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
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
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
	found, served, err = known(clients.Mapper, resource)
	if err != nil {
		return found, false, fmt.Errorf("finding the versions of %s: %w", resource, err)
	}
	return found, served, nil
}

// known finds the version in which a mapper knows a resource.
func known(mapper meta.RESTMapper, resource schema.GroupResource) (found schema.GroupVersionResource, is bool, err error) {
	candidates, err := mapper.ResourcesFor(resource.WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return found, false, err
	}
	i := indexOf(candidates, resource)
	if i < 0 {
		return found, false, nil
	}
	return candidates[i], true, nil
}

// servedVersions returns those in which the API serves a resource, the preferred one
// first.
func servedVersions(clients Clients, resource schema.GroupResource) ([]string, error) {
	if clients.Mapper == nil {
		return nil, nil
	}
	clients.Mapper.Reset()
	candidates, err := clients.Mapper.ResourcesFor(resource.WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("finding the versions of %s: %w", resource, err)
	}
	var versions []string
	for _, candidate := range candidates {
		if candidate.GroupResource() == resource && !slices.Contains(versions, candidate.Version) {
			versions = append(versions, candidate.Version)
		}
	}
	return versions, nil
}

// toServe describes how to serve a resource in a version: a definition decides about a
// custom one, and the flags of kube-apiserver about all others.
func toServe(ctx context.Context, clients Clients, resource schema.GroupVersionResource) string {
	flags := flagsToServe(resource)
	definition := fmt.Sprintf("let its definition serve %s", resource.Version)
	if !mayBeCustom(resource.GroupResource()) {
		return flags
	}
	_, err := clients.Dynamic.Resource(crds).Get(ctx, resource.GroupResource().String(), metav1.GetOptions{})
	switch {
	case err == nil:
		return definition
	case apierrors.IsNotFound(err):
		return flags
	default:
		// Whether it has one is unknown.
		return definition + " if it is a custom resource, or " + flags
	}
}

// flagsToServe is toServe for a resource that is built in.
func flagsToServe(resource schema.GroupVersionResource) string {
	return fmt.Sprintf("serve it again (--runtime-config=%s=true; a server that emulates a version without it cannot)", resource.GroupVersion())
}

// indexOf returns where a resource is among those that a mapper offers, below 0 if it
// is missing. A mapper also finds groups with the same prefix, and any group for a
// resource of the core group.
func indexOf(candidates []schema.GroupVersionResource, resource schema.GroupResource) int {
	return slices.IndexFunc(candidates, func(candidate schema.GroupVersionResource) bool { return candidate.GroupResource() == resource })
}

// nothingStored returns true when nothing can be left of a resource unknown to the
// server: no version of it is served, and nothing is stored, as far as known. The error
// is why that is unknown.
func nothingStored(ctx context.Context, clients Clients, resource schema.GroupResource, listErr error) (bool, error) {
	if !apierrors.IsNotFound(listErr) || clients.Mapper == nil {
		return false, nil
	}
	if _, isServed, err := served(clients, resource); err != nil || isServed {
		return false, err
	}
	if clients.Storage == nil {
		// A custom resource's objects go with its definition.
		err := undefined(ctx, clients, resource)
		return err == nil, err
	}
	found := errors.New("there is one")
	err := eachStored(ctx, clients.Storage, resource, func(StoredObject) error { return found })
	if errors.Is(err, found) {
		return false, nil
	}
	return err == nil, err
}

// undefined returns an error when a resource that is not served has a definition, or
// when that cannot be seen. Discovery learns of a definition a moment after it was made,
// and its versions may be switched off for a while: objects stay in storage then, and
// what has finalizers must not be deleted behind the API's back.
func undefined(ctx context.Context, clients Clients, resource schema.GroupResource) error {
	if !mayBeCustom(resource) {
		return nil
	}
	look := func(ctx context.Context) error {
		_, err := clients.Dynamic.Resource(crds).Get(ctx, resource.String(), metav1.GetOptions{})
		return err
	}
	err := look(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		return &BlockedError{
			Message: fmt.Sprintf("%s is not served, and whether it still has a definition may not be read: permit get on %s %s, as lifecycle.Rules does: %s",
				resource, crds.GroupResource(), resource, cut(err)),
			Until: func(ctx context.Context) error {
				return probe(ctx, func(ctx context.Context) bool { return !apierrors.IsForbidden(look(ctx)) })
			},
		}
	case err != nil:
		return fmt.Errorf("finding out why %s is not served: %w", resource, err)
	}
	return &BlockedError{
		Message: fmt.Sprintf("%s is defined and not served, and objects of it may be stored, about which the API has to decide: let its definition serve a version again, or delete the definition, which deletes all objects of it", resource),
		Until: func(ctx context.Context) error {
			return probe(ctx, func(ctx context.Context) bool {
				_, isServed, err := served(clients, resource)
				return err == nil && isServed || apierrors.IsNotFound(look(ctx))
			})
		},
	}
}

// mayBeCustom is false for resources that no CustomResourceDefinition can define: their
// groups have a dot (ValidateCustomResourceDefinition in k8s.io/apiextensions-apiserver).
func mayBeCustom(resource schema.GroupResource) bool { return strings.Contains(resource.Group, ".") }

// definitionRules returns rules that permit to read the definition of a resource, as
// undefined does.
func definitionRules(resource schema.GroupResource) []rbacv1.PolicyRule {
	if !mayBeCustom(resource) {
		return nil
	}
	return []rbacv1.PolicyRule{named(rule(crds.GroupResource(), "get"), resource.String())}
}
