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
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Inspection compares declarations with what a server has. A task whose resource the
// server does not have, or whose path its schema does not have, finds nothing whatever
// is stored, and that would count as clean. An inspection queries the server for each
// thing once, so one is for tasks that are inspected at one time. It reads only, and is
// safe for concurrent use.
type Inspection struct {
	clients Clients
	// brought are the resources and kinds that manifests of tasks define. They may be
	// absent while their feature is off.
	brought map[schema.GroupResource]bool
	kinds   map[schema.GroupKind]bool

	mu sync.Mutex
	// asked is true once discovery has been refreshed.
	asked     bool
	resources map[schema.GroupResource]*inspected
	documents map[schema.GroupVersion]map[string]any
}

// inspected is what a server has of a resource.
type inspected struct {
	// served are the versions, the preferred one first; like are resources of the group
	// that the server takes the name for, such as the plural of a singular.
	served []schema.GroupVersionResource
	like   []string
	// definition is that of a custom resource; nil for others, and if it may not be read.
	definition *unstructured.Unstructured
	// hidden is true if it may have one that may not be read.
	hidden bool
	scope  meta.RESTScopeName
}

// NewInspection returns an inspection by clients that have a Mapper and OpenAPI;
// without them it finds no problem. All are the tasks of all features of the same
// controller: what their manifests or Own.Defines define may be absent.
func NewInspection(clients Clients, all []Task) *Inspection {
	i := &Inspection{
		clients: clients, brought: map[schema.GroupResource]bool{}, kinds: map[schema.GroupKind]bool{},
		resources: map[schema.GroupResource]*inspected{}, documents: map[schema.GroupVersion]map[string]any{},
	}
	for _, t := range all {
		for _, resource := range t.defines {
			i.brought[resource] = true
		}
		for _, o := range t.manifests {
			if o.GroupVersionKind().GroupKind() != definitionKind {
				continue
			}
			// The name contains what it defines, also where the manifest has no more than that.
			i.brought[schema.ParseGroupResource(o.GetName())] = true
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			i.kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return i
}

// Inspects returns true if declarations can be compared with the server: only with the
// clients' Mapper and OpenAPI.
func (c Clients) Inspects() bool { return c.Mapper != nil && c.OpenAPI != nil }

// Problems returns what of the tasks does not fit the server, a sentence for each with
// the next step. What the server does not publish is no problem. An error means that
// the server could not be queried.
func (i *Inspection) Problems(ctx context.Context, tasks []Task) ([]string, error) {
	if !i.clients.Inspects() {
		return nil, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	var problems []string
	for _, t := range tasks {
		problem, err := i.problem(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("comparing task %s with what the server has: %w", t.Name, err)
		}
		if problem != "" {
			problems = append(problems, t.Name+": "+problem)
		}
	}
	return problems, nil
}

// problem returns the first of a task, "" if it has none.
func (i *Inspection) problem(ctx context.Context, t Task) (string, error) {
	if t.Installs {
		return i.manifestProblem(t)
	}
	for _, resource := range t.resources() {
		has, err := i.inspect(ctx, resource)
		if err != nil {
			return "", err
		}
		switch {
		case len(has.served) == 0 && (has.definition != nil || i.brought[resource]):
			// The finders report it, or it is installed with a feature.
			continue
		case len(has.served) == 0:
			return absent(resource, has), nil
		case t.namespace != "" && has.scope == meta.RESTScopeNameRoot:
			return fmt.Sprintf("%s is in no namespace, and the task is limited to %s; declare it without InNamespace", resource, t.namespace), nil
		}
		version := has.version(t.version)
		if t.throughStatus && has.definition != nil && !hasStatus(has.definition, version.Version) {
			return fmt.Sprintf("%s %s has no subresource status, by which the field is removed; let its definition serve it, or declare a field of spec", resource, version.Version), nil
		}
		problem, err := i.fieldProblem(ctx, t, version, has)
		if problem != "" || err != nil {
			return problem, err
		}
	}
	return "", nil
}

// absent reports that the server does not have a resource.
func absent(resource schema.GroupResource, has *inspected) string {
	next := "correct the declaration, or let kube-apiserver serve it (--runtime-config)"
	if mayBeCustom(resource) {
		next = "correct the declaration, or install its definition"
	}
	if has.hidden {
		next = fmt.Sprintf("whether it has a definition may not be read: permit get on %s %s", crds.GroupResource(), resource)
	}
	if len(has.like) > 0 {
		next = fmt.Sprintf("it has %s: declare the task for that", strings.Join(has.like, ", "))
	}
	return fmt.Sprintf("the server has no resource %s; %s", resource, next)
}

// fieldProblem compares the fields of a task with the schema of a version.
func (i *Inspection) fieldProblem(ctx context.Context, t Task, version schema.GroupVersionResource, has *inspected) (string, error) {
	var s *objectSchema
	for _, f := range t.Fields {
		if f.Path == "" || f.Resource != version.GroupResource() {
			continue
		}
		if s == nil {
			var err error
			if s, err = i.schema(version, has.definition); err != nil || s == nil {
				return "", err
			}
		}
		if problem := s.lacks(f); problem != "" {
			next := "correct the path"
			if has.definition != nil {
				next = "correct the path, or let the definition have it"
			}
			return fmt.Sprintf("the schema of %s %s %s; what is stored of %s cannot be seen; %s", f.Resource, version.Version, problem, f.Path, next), nil
		}
	}
	return "", ctx.Err()
}

// manifestProblem names the first object that cannot be installed for want of its kind.
func (i *Inspection) manifestProblem(t Task) (string, error) {
	for _, o := range t.manifests {
		kind := o.GroupVersionKind()
		if i.kinds[kind.GroupKind()] {
			continue
		}
		i.ask()
		_, err := i.clients.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return fmt.Sprintf("the server has no kind %s in %s, of which %s is; install its definition, or correct the manifest", kind.Kind, kind.GroupVersion(), describe(o)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// resources returns those that the task reads.
func (t Task) resources() []schema.GroupResource {
	var all []schema.GroupResource
	if !t.about.Empty() {
		all = append(all, t.about)
	}
	for _, f := range t.Fields {
		if !slices.Contains(all, f.Resource) {
			all = append(all, f.Resource)
		}
	}
	return all
}

// ask refreshes discovery, once.
func (i *Inspection) ask() {
	if !i.asked {
		i.clients.Mapper.Reset()
		i.asked = true
	}
}

// inspect finds out what the server has of a resource.
func (i *Inspection) inspect(ctx context.Context, resource schema.GroupResource) (*inspected, error) {
	if has := i.resources[resource]; has != nil {
		return has, nil
	}
	i.ask()
	has := &inspected{}
	candidates, err := i.clients.Mapper.ResourcesFor(resource.WithVersion(""))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	for _, candidate := range candidates {
		switch name := candidate.GroupResource().String(); {
		case candidate.GroupResource() == resource:
			has.served = append(has.served, candidate)
		case candidate.Group == resource.Group && !slices.Contains(has.like, name):
			has.like = append(has.like, name)
		}
	}
	if has.scope, err = scopeOf(i.clients.Mapper, resource); err != nil {
		return nil, err
	}
	if mayBeCustom(resource) {
		definition, err := i.clients.Dynamic.Resource(crds).Get(ctx, resource.String(), metav1.GetOptions{})
		switch {
		case err == nil:
			has.definition = definition
		case apierrors.IsForbidden(err):
			has.hidden = true
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	i.resources[resource] = has
	return has, nil
}

// version returns the one that a task reads that is declared for a version, or for any.
func (has *inspected) version(declared string) schema.GroupVersionResource {
	for _, served := range has.served {
		if served.Version == declared {
			return served
		}
	}
	return has.served[0]
}

// hasStatus returns true if a version of a custom resource has the subresource status.
func hasStatus(definition *unstructured.Unstructured, name string) bool {
	_, has, _ := unstructured.NestedMap(versionOf(definition, name), "subresources", "status")
	return has
}

// schema returns that of the objects of a version, nil if the server does not publish
// it.
func (i *Inspection) schema(version schema.GroupVersionResource, definition *unstructured.Unstructured) (*objectSchema, error) {
	if definition != nil {
		root := schemaOf(definition, version.Version)
		if root == nil {
			return nil, nil
		}
		return &objectSchema{root: root, pruned: true}, nil
	}
	kind, err := i.clients.Mapper.KindFor(version)
	if err != nil {
		return nil, ignoreNoMatch(err)
	}
	document, err := i.document(version.GroupVersion())
	if err != nil {
		return nil, err
	}
	for _, s := range document {
		root, _ := s.(map[string]any)
		kinds, _ := root["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			of, _ := k.(map[string]any)
			if of["group"] == kind.Group && of["version"] == kind.Version && of["kind"] == kind.Kind {
				return &objectSchema{root: root, references: document}, nil
			}
		}
	}
	return nil, nil
}

// document returns the schemas that the server publishes for a version of a group
// (OpenAPI v3), nil if it publishes none, or not for this client.
func (i *Inspection) document(version schema.GroupVersion) (map[string]any, error) {
	if known, ok := i.documents[version]; ok {
		return known, nil
	}
	published, err := i.clients.OpenAPI.Paths()
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	path := "apis/" + version.String()
	if version.Group == "" {
		path = "api/" + version.Version
	}
	of, ok := published[path]
	if !ok {
		return nil, nil
	}
	data, err := of.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("the OpenAPI document of %s: %w", version, err)
	}
	i.documents[version] = document.Components.Schemas
	return document.Components.Schemas, nil
}
