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
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Remove deletes the objects that manifests name, whatever created them, in the reverse
// of the order in which Apply installs them. It reverts Apply, for example on
// downgrade. Deleting a CustomResourceDefinition deletes all objects of its kind. Where
// these are to stay, leave it out of the manifests, or declare no Remove. Remove waits
// until the objects are deleted, and is blocked while a finalizer holds one.
func Remove(name string, manifests []byte) Task {
	objects, err := parseManifests(manifests)
	if err != nil {
		err = fmt.Errorf("manifests of Remove/%s: %w", name, err)
	}
	slices.Reverse(objects)
	r := remove{objects: objects}
	var described []string
	for _, o := range objects {
		described = append(described, describe(o))
	}
	t := Task{
		Name:        "Remove/" + name,
		Description: "delete " + strings.Join(described, ", "),
		unlimited:   manifestsNameTheirs,
		manifests:   objects,
		Find:        r.find,
		Obstacles:   r.obstacles,
		Run:         r.run,
		invalid:     err,
	}
	t.Rules, t.NamespacedRules = manifestRules(objects, func(schema.GroupResource) []string { return []string{"get", "list", "watch", "delete"} })
	t.Rules = append(t.Rules, alongRules(objects)...)
	return t
}

// alongRules returns rules that permit to count what is deleted with definitions, and
// to check whether the definitions of the other objects exist, which manifestRules do
// not cover.
func alongRules(objects []*unstructured.Unstructured) (rules []rbacv1.PolicyRule) {
	looked := map[schema.GroupResource]bool{crds.GroupResource(): true}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == definitionKind {
			// The name contains what it defines, also where the manifest has no more than that.
			resource := schema.ParseGroupResource(o.GetName())
			looked[resource] = true
			rules = append(rules, rule(resource, "list"))
		}
	}
	for _, o := range objects {
		guess, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if resource := guess.GroupResource(); !looked[resource] {
			looked[resource] = true
			rules = append(rules, definitionRules(resource)...)
		}
	}
	return rules
}

type remove struct {
	objects []*unstructured.Unstructured
}

// defined returns the resource of a CustomResourceDefinition, whose objects are deleted
// with it; false for what is none.
func defined(o *unstructured.Unstructured) (schema.GroupVersionResource, bool) {
	if o.GroupVersionKind().GroupKind() != definitionKind {
		return schema.GroupVersionResource{}, false
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if name, _ := version["name"].(string); version["served"] == true && name != "" {
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// find counts the objects that are there, and for definitions what goes with them.
func (r remove) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	var found []v1alpha1.ResourceLeftovers
	for _, unwanted := range r.objects {
		client, resource, err := clientForRemoval(ctx, clients, unwanted)
		if err != nil {
			return nil, err
		}
		if client == nil {
			continue
		}
		stored, err := client.Get(ctx, unwanted.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", describe(unwanted), err)
		}
		found = add(found, resource, unwanted)
		// The stored object shows which version is served now.
		if objects, ok := defined(stored); ok && stored.GetDeletionTimestamp() == nil {
			along, err := find(ctx, clients, objects, "", func(*unstructured.Unstructured) bool { return true })
			if err != nil {
				return nil, fmt.Errorf("looking for what goes with %s: %w", describe(unwanted), err)
			}
			found = append(found, along...)
		}
	}
	return found, nil
}

// obstacles returns the objects that may not be deleted.
func (r remove) obstacles(ctx context.Context, clients Clients) (outlook Outlook, err error) {
	for _, unwanted := range r.objects {
		client, _, err := clientForRemoval(ctx, clients, unwanted)
		if err != nil {
			return outlook, err
		}
		if client == nil {
			continue
		}
		found, err := client.Get(ctx, unwanted.GetName(), metav1.GetOptions{})
		if err == nil && found.GetDeletionTimestamp() == nil {
			err = client.Delete(ctx, unwanted.GetName(), deletion(found, dryRun...))
		}
		outlook.note("deleting "+describe(unwanted), err)
	}
	return outlook, nil
}

// clientForRemoval finds an object in whichever version the server has: that of the manifest may
// be one of before. It returns no client and no error when the object cannot be there: the
// server has no version of its kind, and nothing of it is stored, as far as can be seen.
func clientForRemoval(ctx context.Context, clients Clients, object *unstructured.Unstructured) (dynamic.ResourceInterface, schema.GroupResource, error) {
	client, resource, err := clientFor(clients, object)
	if meta.IsNoMatchError(err) {
		client, resource, err = clientForAny(clients, object)
	}
	if !meta.IsNoMatchError(err) {
		return client, resource, err
	}
	guess, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	resource = guess.GroupResource()
	if clients.Storage == nil {
		return nil, resource, undefined(ctx, clients, resource)
	}
	return nil, resource, eachStored(ctx, clients.Storage, resource, func(stored StoredObject) error {
		if stored.Namespace != object.GetNamespace() || stored.Name != object.GetName() {
			return nil
		}
		return &BlockedError{Message: fmt.Sprintf("%s is stored, and no version of %s is served, so it cannot be deleted as the API does: turn the API on again", describe(object), resource)}
	})
}

// removing is the time that an object that is being deleted is waited for before the task is
// reported as blocked: a definition takes its objects with it.
const removing = 10 * time.Second

func (r remove) run(ctx context.Context, clients Clients, attempt Attempt) error {
	total := int64(len(r.objects))
	for i, unwanted := range r.objects {
		attempt.Report(Progress{Done: int64(i), Total: total, Message: "deleting " + describe(unwanted)})
		client, _, err := clientForRemoval(ctx, clients, unwanted)
		if err != nil {
			return fmt.Errorf("deleting %s: %w", describe(unwanted), err)
		}
		if client == nil {
			// Its definition was deleted, and it was deleted with that.
			continue
		}
		if err := r.remove(ctx, clients, client, unwanted); err != nil {
			return err
		}
	}
	attempt.Report(Progress{Done: total, Total: total})
	return nil
}

// remove deletes one object and waits until it no longer exists.
func (r remove) remove(ctx context.Context, clients Clients, client dynamic.ResourceInterface, unwanted *unstructured.Unstructured) error {
	found, err := client.Get(ctx, unwanted.GetName(), metav1.GetOptions{})
	if err == nil && found.GetDeletionTimestamp() == nil {
		err = client.Delete(ctx, unwanted.GetName(), deletion(found))
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && refuses(err):
		return &BlockedError{Message: "deleting " + describe(unwanted) + ": " + cut(err)}
	case err != nil:
		return fmt.Errorf("deleting %s: %w", describe(unwanted), err)
	}
	gone := func(ctx context.Context) error {
		return watchOne(ctx, clients, client, unwanted.GetName(), func(o *unstructured.Unstructured) (bool, error) {
			return o == nil || o.GetUID() != found.GetUID(), nil
		})
	}
	wait, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	switch err := gone(wait); {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case wait.Err() == nil:
		// The watch failed, which shows nothing about the object.
		return fmt.Errorf("waiting until %s is gone: %w", describe(unwanted), err)
	}
	// Its holders now: a definition gets a finalizer as it is deleted.
	held, err := client.Get(ctx, unwanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && held.GetUID() != found.GetUID() {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for what holds %s: %w", describe(unwanted), err)
	}
	message := describe(unwanted) + " is being deleted and still there"
	if finalizers := held.GetFinalizers(); len(finalizers) > 0 {
		message = fmt.Sprintf("%s is being deleted; finalizers hold it: %s", describe(unwanted), strings.Join(finalizers, ", "))
	}
	return &BlockedError{Message: message, Until: gone}
}
