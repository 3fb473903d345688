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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Apply installs objects by server-side apply, in the order of the YAML documents in
// the manifests: CustomResourceDefinitions on enablement, for example. It waits until
// definitions are established, since their objects may follow. A field that another
// manager owns with another value blocks the task: users decide which value holds.
func Apply(name string, manifests []byte) Task {
	objects, err := parseManifests(manifests)
	if err != nil {
		err = fmt.Errorf("manifests of Apply/%s: %w", name, err)
	}
	a := apply{objects: objects}
	var described []string
	for _, o := range objects {
		described = append(described, describe(o))
	}
	t := Task{
		Name:        "Apply/" + name,
		Description: "install " + strings.Join(described, ", "),
		unlimited:   manifestsNameTheirs,
		Installs:    true,
		manifests:   objects,
		Find:        a.find,
		Obstacles:   a.obstacles,
		Run:         a.run,
		invalid:     err,
	}
	t.Rules, t.NamespacedRules = manifestRules(objects, func(resource schema.GroupResource) []string {
		// Server-side apply of what is not there is authorized as a creation of that name
		// (createAuthorizerAttributes in k8s.io/apiserver/pkg/endpoints/handlers/patch.go).
		verbs := []string{"get", "create", "patch"}
		if resource == crds.GroupResource() {
			// They are watched until they are established.
			verbs = append(verbs, "list", "watch")
		}
		return verbs
	})
	return t
}

// manifestsNameTheirs is the reason why tasks of manifests cannot be limited to a namespace.
const manifestsNameTheirs = "its manifests name the namespaces of their objects"

var definitionKind = schema.GroupKind{Group: crds.Group, Kind: "CustomResourceDefinition"}

func parseManifests(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF) && len(objects) == 0:
			return nil, errors.New("there are none")
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) == 0:
			// An empty document, such as a comment before the first ---.
			continue
		case object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "":
			return nil, fmt.Errorf("document %d needs apiVersion, kind and metadata.name", len(objects)+1)
		}
		objects = append(objects, object)
	}
}

type apply struct {
	objects []*unstructured.Unstructured
}

// manifestRules returns rules that permit verbs on the very objects of manifests: those
// that are in a namespace there, by its name, and all others everywhere. A list and a
// watch of one name are authorized as of that name. Resources are guessed from kinds,
// since there is no server for discovery.
func manifestRules(objects []*unstructured.Unstructured, verbs func(schema.GroupResource) []string) (everywhere []rbacv1.PolicyRule, namespaced map[string][]rbacv1.PolicyRule) {
	namespaced = map[string][]rbacv1.PolicyRule{}
	for _, o := range objects {
		guess, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		resource := guess.GroupResource()
		rules := namespaced[o.GetNamespace()]
		i := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
			return r.APIGroups[0] == resource.Group && r.Resources[0] == resource.Resource
		})
		if i < 0 {
			i, rules = len(rules), append(rules, rule(resource, verbs(resource)...))
		}
		rules[i].ResourceNames = append(rules[i].ResourceNames, o.GetName())
		namespaced[o.GetNamespace()] = rules
	}
	everywhere = namespaced[""]
	delete(namespaced, "")
	return everywhere, namespaced
}

// find counts the objects that are missing or that applying would change.
func (a apply) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	var found []v1alpha1.ResourceLeftovers
	for _, wanted := range a.objects {
		client, resource, err := clientFor(clients, wanted)
		if meta.IsNoMatchError(err) {
			guess, _ := meta.UnsafeGuessKindToResource(wanted.GroupVersionKind())
			found = add(found, guess.GroupResource(), wanted)
			continue
		}
		if err != nil {
			return nil, err
		}
		is, err := client.Get(ctx, wanted.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found = add(found, resource, wanted)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", describe(wanted), err)
		}
		would, err := client.Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: clients.fieldManager(), DryRun: dryRun})
		if err != nil && !apierrors.IsConflict(err) && !refuses(err) {
			return nil, fmt.Errorf("trying to apply %s: %w", describe(wanted), err)
		}
		if err != nil || !sameButManaged(is, would) {
			found = add(found, resource, wanted)
		}
	}
	return found, nil
}

// obstacles returns the objects that may not be applied as they are. Objects whose
// namespace or definition is applied, too, cannot be checked.
func (a apply) obstacles(ctx context.Context, clients Clients) (outlook Outlook, err error) {
	for _, wanted := range a.objects {
		client, _, err := clientFor(clients, wanted)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return outlook, err
		}
		_, err = client.Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: clients.fieldManager(), DryRun: dryRun})
		if apierrors.IsConflict(err) {
			outlook.Held = append(outlook.Held, "applying "+describe(wanted)+": "+cut(err))
			continue
		}
		outlook.note("applying "+describe(wanted), err)
	}
	return outlook, nil
}

// add counts an object among those of its resource.
func add(found []v1alpha1.ResourceLeftovers, resource schema.GroupResource, object *unstructured.Unstructured) []v1alpha1.ResourceLeftovers {
	name := objectName(object.GetNamespace(), object.GetName())
	for i := range found {
		if found[i].Group == resource.Group && found[i].Resource == resource.Resource {
			count(&found[i], name)
			return found
		}
	}
	return append(found, v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource, Count: 1, Examples: []string{name}})
}

func sameButManaged(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, o := range []*unstructured.Unstructured{a, b} {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

func (a apply) run(ctx context.Context, clients Clients, attempt Attempt) error {
	for i, wanted := range a.objects {
		attempt.Report(Progress{Done: int64(i), Total: int64(len(a.objects)), Message: "applying " + describe(wanted)})
		client, _, err := clientFor(clients, wanted)
		if err != nil {
			// Discovery may be behind a definition that was just established.
			return fmt.Errorf("applying %s: %w", describe(wanted), err)
		}
		applied, err := client.Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: clients.fieldManager()})
		switch {
		case apierrors.IsConflict(err) || (err != nil && refuses(err)):
			return &BlockedError{Message: "applying " + describe(wanted) + ": " + cut(err), Until: func(ctx context.Context) error {
				return probe(ctx, func(ctx context.Context) bool {
					_, err := client.Apply(ctx, wanted.GetName(), wanted, metav1.ApplyOptions{FieldManager: clients.fieldManager()})
					return err == nil
				})
			}}
		case err != nil:
			return fmt.Errorf("applying %s: %w", describe(wanted), err)
		}
		if applied.GroupVersionKind().GroupKind() == definitionKind {
			if err := established(ctx, clients, client, wanted.GetName()); err != nil {
				return fmt.Errorf("applying %s: %w", describe(wanted), err)
			}
		}
	}
	attempt.Report(Progress{Done: int64(len(a.objects)), Total: int64(len(a.objects))})
	return nil
}

// establishing is the time that a definition may take to be established: the server needs
// seconds.
const establishing = time.Minute

// established waits until a definition's objects can be made.
func established(ctx context.Context, clients Clients, client dynamic.ResourceInterface, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, establishing, fmt.Errorf("not established within %s", establishing))
	defer cancel()
	err := watchOne(ctx, clients, client, name, func(definition *unstructured.Unstructured) (bool, error) {
		if definition == nil {
			return false, errors.New("it was deleted by another client")
		}
		_, is := hasCondition(definition, "Established")
		return is, nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// clientFor finds the resource of an object. The error is one of
// meta.IsNoMatchError when the server has none.
func clientFor(clients Clients, object *unstructured.Unstructured) (dynamic.ResourceInterface, schema.GroupResource, error) {
	if clients.Mapper == nil {
		return nil, schema.GroupResource{}, fmt.Errorf("finding the resource of %s: no mapper is given to tasks", object.GetKind())
	}
	kind := object.GroupVersionKind()
	mapping, err := clients.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		clients.Mapper.Reset()
		mapping, err = clients.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return mapped(clients, object, mapping, err)
}

// clientForAny is clientFor in whichever version of the kind the server prefers.
func clientForAny(clients Clients, object *unstructured.Unstructured) (dynamic.ResourceInterface, schema.GroupResource, error) {
	mapping, err := clients.Mapper.RESTMapping(object.GroupVersionKind().GroupKind())
	return mapped(clients, object, mapping, err)
}

func mapped(clients Clients, object *unstructured.Unstructured, mapping *meta.RESTMapping, err error) (dynamic.ResourceInterface, schema.GroupResource, error) {
	if err != nil {
		return nil, schema.GroupResource{}, err
	}
	client := clients.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client, mapping.Resource.GroupResource(), nil
	}
	return client.Namespace(object.GetNamespace()), mapping.Resource.GroupResource(), nil
}

func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + objectName(object.GetNamespace(), object.GetName())
}
