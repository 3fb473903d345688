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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// anyVersion reads a resource in the version for which a task is declared, or if the
// API does not serve that one, in another in which objects have the same fields. A
// server may emulate a version of Kubernetes that lacks it, or have it switched off.
// Where no served version has the fields the task is blocked, unless the collection is
// empty.
func anyVersion(ctx context.Context, clients Clients, declared schema.GroupVersionResource, fields []Path, look func(schema.GroupVersionResource) error) error {
	err := look(declared)
	var elsewhere *servedElsewhereError
	if !errors.As(err, &elsewhere) {
		return err
	}
	version, err := sameFields(ctx, clients, declared.GroupResource(), elsewhere.versions, fields)
	if err != nil {
		return err
	}
	if version != "" {
		return look(declared.GroupResource().WithVersion(version))
	}
	other := declared.GroupResource().WithVersion(elsewhere.versions[0])
	empty, err := isEmpty(ctx, clients, other)
	switch {
	case err != nil:
		return listError(ctx, clients, other, err)
	case empty:
		return nil
	}
	return blockedElsewhere(ctx, clients, declared, elsewhere.versions, fields)
}

// blockedElsewhere returns an error that names the version to serve so that fields can
// be read.
func blockedElsewhere(ctx context.Context, clients Clients, declared schema.GroupVersionResource, versions []string, fields []Path) error {
	var paths []string
	for _, field := range fields {
		paths = append(paths, field.String())
	}
	message := fmt.Sprintf("%s is served in %s and not in %s, and objects are there that show no %s in it: %s", declared.GroupResource(),
		strings.Join(versions, ", "), declared.Version, strings.Join(paths, ", "), toServe(ctx, clients, declared))
	if clients.Storage == nil {
		// The declarations of kube-apiserver's own tasks cannot be changed by an
		// administrator.
		message += fmt.Sprintf(", or declare the task for %s", versions[0])
	}
	return &BlockedError{Message: message, Until: func(ctx context.Context) error {
		return probe(ctx, func(ctx context.Context) bool {
			now, err := servedVersions(clients, declared.GroupResource())
			if err != nil {
				return false
			}
			empty, err := isEmpty(ctx, clients, declared.GroupResource().WithVersion(versions[0]))
			return !slices.Equal(now, versions) || err == nil && empty
		})
	}}
}

// shownIn returns the version of a resource in which the API shows what a task found in
// storage, which has objects in versions that the API does not serve. That is the declared
// one, or if it is not served, one with the same fields. If none is served it is the
// declared one, too: the API's answer tells what is wrong. The error is a
// *servedElsewhereError if no served version has the fields.
func shownIn(ctx context.Context, clients Clients, declared schema.GroupVersionResource, fields []Path) (schema.GroupVersionResource, error) {
	err := onlyElsewhere(clients, declared)
	var elsewhere *servedElsewhereError
	if !errors.As(err, &elsewhere) {
		return declared, err
	}
	version, err := sameFields(ctx, clients, declared.GroupResource(), elsewhere.versions, fields)
	switch {
	case err != nil:
		return declared, err
	case version == "":
		return declared, elsewhere
	}
	return declared.GroupResource().WithVersion(version), nil
}

// onlyElsewhere returns a *servedElsewhereError if a resource is served, and not in the
// declared version.
func onlyElsewhere(clients Clients, declared schema.GroupVersionResource) error {
	versions, err := servedVersions(clients, declared.GroupResource())
	if err != nil || len(versions) == 0 || slices.Contains(versions, declared.Version) {
		return err
	}
	return &servedElsewhereError{declared: declared, versions: versions}
}

// servedElsewhereError is returned for a resource that is not served in the version for
// which a task is declared. It has the versions in which it is, the preferred one
// first.
type servedElsewhereError struct {
	declared schema.GroupVersionResource
	versions []string
}

func (e *servedElsewhereError) Error() string {
	return fmt.Sprintf("%s is served in %s and not in %s", e.declared.GroupResource(), strings.Join(e.versions, ", "), e.declared.Version)
}

// isEmpty returns true when a collection has no object.
func isEmpty(ctx context.Context, clients Clients, resource schema.GroupVersionResource) (bool, error) {
	page, err := clients.of(resource).reader(clients.Dynamic).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(page.Items) == 0, err
}

// sameFields returns the first of some versions in which objects of a resource have all
// the fields, "" if none is known to. Metadata is the same in all versions.
// Clients.HasField covers built-in resources, and the schemas of their definition
// custom ones.
func sameFields(ctx context.Context, clients Clients, resource schema.GroupResource, versions []string, fields []Path) (string, error) {
	fields = slices.DeleteFunc(slices.Clone(fields), func(p Path) bool { return p.segments[0].key == "metadata" })
	if len(fields) == 0 {
		return versions[0], nil
	}
	var definition *unstructured.Unstructured
	if mayBeCustom(resource) {
		var err error
		definition, err = clients.Dynamic.Resource(crds).Get(ctx, resource.String(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return "", fmt.Errorf("finding out in which versions %s has the fields: %w", resource, err)
		}
		if err != nil {
			definition = nil
		}
	}
	for _, version := range versions {
		if !slices.ContainsFunc(fields, func(p Path) bool {
			if definition != nil {
				root := withMetadata(schemaOf(definition, version))
				return root != nil && definedIn(root, p.segments).absent
			}
			return clients.HasField == nil || !clients.HasField(resource.WithVersion(version), p.String())
		}) {
			return version, nil
		}
	}
	return "", nil
}

// findIn returns a finder that reads whichever version of a resource has the fields.
func findIn(declared schema.GroupVersionResource, fields []Path, find func(context.Context, Clients, schema.GroupVersionResource) ([]v1alpha1.ResourceLeftovers, error)) func(context.Context, Clients) ([]v1alpha1.ResourceLeftovers, error) {
	return func(ctx context.Context, clients Clients) (found []v1alpha1.ResourceLeftovers, err error) {
		err = anyVersion(ctx, clients, declared, fields, func(resource schema.GroupVersionResource) error {
			found, err = find(ctx, clients, resource)
			return err
		})
		if err != nil {
			return nil, err
		}
		return found, nil
	}
}

// runIn is findIn for what runs a task.
func runIn(declared schema.GroupVersionResource, fields []Path, run func(context.Context, Clients, Attempt, schema.GroupVersionResource) error) func(context.Context, Clients, Attempt) error {
	return func(ctx context.Context, clients Clients, attempt Attempt) error {
		return anyVersion(ctx, clients, declared, fields, func(resource schema.GroupVersionResource) error {
			return run(ctx, clients, attempt, resource)
		})
	}
}
