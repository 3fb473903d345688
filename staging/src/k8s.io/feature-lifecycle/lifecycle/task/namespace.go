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
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// InNamespace returns the task limited to the objects of one namespace. It finds,
// reads, writes and waits for no others, whether through the API or in storage. The
// permissions that it needs for them are in that namespace alone (NamespacedRules). It
// is for a controller of one namespace: two installations of an operator may share a
// definition and have their own features. Turning a feature off in one must not change
// the objects of the other.
//
// Not every task can be limited (Validate): a storage version migration rewrites whole
// collections, manifests name their namespaces themselves, and the functions of Func
// are their author's. Whether a resource is namespaced is known only from a server. A
// limited task of a resource without namespaces is blocked, and finds nothing but an
// error.
//
// The task has another name than without the limit. An operator's new version may add
// or remove the limit while a transition is under way. The transition then waits for
// the old name, which is unknown (UnknownTask). It continues with a version that knows
// the name, or once the value is requested again, the other way and back.
func (t Task) InNamespace(namespace string) Task {
	if t.invalid != nil {
		return t
	}
	refuse := func(why string) Task {
		t.invalid = fmt.Errorf("task %s cannot be limited to namespace %q: %s", t.Name, namespace, why)
		return t
	}
	problems := validation.IsDNS1123Label(namespace)
	switch {
	case t.collection.Empty():
		return refuse(cmp.Or(t.unlimited, "its functions are its author's own; let them read no other namespace, and put what they need there into NamespacedRules"))
	case len(problems) > 0:
		return refuse(strings.Join(problems, "; "))
	case t.namespace != "":
		return refuse("it is limited to " + t.namespace + " already")
	case t.collection == crds.GroupResource():
		return refuse(t.collection.String() + " are in no namespace")
	}
	find, run, obstacles, try, resource := t.Find, t.Run, t.Obstacles, t.Try, t.collection
	t.namespace = namespace
	t.Name += "/InNamespace/" + namespace
	t.Description += " in namespace " + namespace
	t.Find = func(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
		limited, err := clients.in(namespace, resource)
		if err != nil {
			return nil, err
		}
		return find(ctx, limited)
	}
	t.Run = func(ctx context.Context, clients Clients, attempt Attempt) error {
		limited, err := clients.in(namespace, resource)
		if err != nil {
			return err
		}
		return run(ctx, limited, attempt)
	}
	if obstacles != nil {
		t.Obstacles = func(ctx context.Context, clients Clients) (Outlook, error) {
			limited, err := clients.in(namespace, resource)
			if err != nil {
				return Outlook{}, err
			}
			return obstacles(ctx, limited)
		}
	}
	if try != nil {
		t.Try = func(ctx context.Context, clients Clients, attempt Attempt) (Trial, error) {
			limited, err := clients.in(namespace, resource)
			if err != nil {
				return Trial{}, err
			}
			return try(ctx, limited, attempt)
		}
	}
	// FindObjects would read all namespaces.
	t.matches = nil
	if inStorage := t.inStorage; inStorage != nil {
		t.inStorage = func(ctx context.Context, clients Clients) (bool, error) {
			return inStorage(ctx, clients.limited(namespace))
		}
	}
	t.Rules, t.NamespacedRules = limitRules(t.Rules, namespace, resource)
	return t
}

// limitRules limits those about a resource and its subresources to a namespace.
func limitRules(rules []rbacv1.PolicyRule, namespace string, resource schema.GroupResource) (everywhere []rbacv1.PolicyRule, namespaced map[string][]rbacv1.PolicyRule) {
	namespaced = map[string][]rbacv1.PolicyRule{}
	for _, r := range rules {
		of, _, _ := strings.Cut(r.Resources[0], "/")
		if slices.Equal(r.APIGroups, []string{resource.Group}) && of == resource.Resource {
			namespaced[namespace] = append(namespaced[namespace], r)
		} else {
			everywhere = append(everywhere, r)
		}
	}
	return everywhere, namespaced
}

// in returns the clients for what a task does with the objects of a resource that are
// in one namespace. The error is a *BlockedError if the resource has no namespaces: a
// server answers a namespaced request as if it did not know the resource.
func (c Clients) in(namespace string, resource schema.GroupResource) (Clients, error) {
	if c.Mapper != nil {
		scope, err := scopeOf(c.Mapper, resource)
		if err == nil && scope == meta.RESTScopeNameRoot {
			// A definition may have been created again, with namespaces.
			c.Mapper.Reset()
			scope, err = scopeOf(c.Mapper, resource)
		}
		if err != nil {
			return c, fmt.Errorf("finding out whether %s is in namespaces: %w", resource, err)
		}
		if scope == meta.RESTScopeNameRoot {
			return c, &BlockedError{Message: fmt.Sprintf("%s is in no namespace, and the task is limited to %s; declare it without InNamespace", resource, namespace)}
		}
	}
	return c.limited(namespace), nil
}

// limited returns the clients for one namespace, or for all if that is "".
func (c Clients) limited(namespace string) Clients {
	c.namespace = namespace
	if c.Storage != nil && namespace != "" {
		c.Storage = namespacedStorage{c.Storage, namespace}
	}
	return c
}

// scopeOf returns the scope of a resource, "" if the server does not know it: that is
// reported elsewhere.
func scopeOf(mapper meta.RESTMapper, resource schema.GroupResource) (meta.RESTScopeName, error) {
	version, is, err := known(mapper, resource)
	if err != nil || !is {
		return "", err
	}
	kind, err := mapper.KindFor(version)
	if err != nil {
		return "", ignoreNoMatch(err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", ignoreNoMatch(err)
	}
	return mapping.Scope.Name(), nil
}

// ignoreNoMatch drops such errors: the mapper may have been reset concurrently.
func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// collection is what is read at once: the objects of a resource, of all namespaces or
// of one.
type collection struct {
	schema.GroupVersionResource
	// namespace is "" for all.
	namespace string
	// stored is true for what is read where it is stored.
	stored bool
}

func (c collection) String() string {
	text := c.GroupVersionResource.String() + ", Namespace=" + c.namespace
	if c.stored {
		text += ", stored"
	}
	return text
}

// of returns the collection of a resource that the clients are for.
func (c Clients) of(resource schema.GroupVersionResource) collection {
	return collection{GroupVersionResource: resource, namespace: c.namespace}
}

// reader reads a collection.
func (c collection) reader(client dynamic.Interface) dynamic.ResourceInterface {
	if c.namespace == "" {
		return client.Resource(c.GroupVersionResource)
	}
	return client.Resource(c.GroupVersionResource).Namespace(c.namespace)
}

// namespacedStorage has what is stored of one namespace.
type namespacedStorage struct {
	Storage
	namespace string
}

// List returns pages that may be empty although others follow.
func (s namespacedStorage) List(ctx context.Context, resource schema.GroupResource, limit int64, from string) ([]StoredObject, string, error) {
	page, next, err := s.Storage.List(ctx, resource, limit, from)
	return s.own(page), next, err
}

// ListHolding returns such pages, too.
func (s namespacedStorage) ListHolding(ctx context.Context, field RemovedField, limit int64, from string) ([]StoredObject, string, error) {
	page, next, err := s.Storage.ListHolding(ctx, field, limit, from)
	return s.own(page), next, err
}

// own returns the objects of the namespace.
func (s namespacedStorage) own(page []StoredObject) []StoredObject {
	return slices.DeleteFunc(page, func(o StoredObject) bool { return o.Namespace != s.namespace })
}
