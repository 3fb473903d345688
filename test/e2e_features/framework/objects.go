//go:build linux

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

package framework

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Objects creates and reads objects of any kind as an administrator.
type Objects struct{ dynamic.Interface }

// Objects returns a client for any kind.
func (c *Cluster) Objects() Objects { return Objects{dynamic.NewForConfigOrDie(c.Config)} }

// Definitions are those of custom resources.
var Definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Definition defines a custom resource in namespaces with a schema of spec. The version
// of its kind is stored, and the given ones are served.
func Definition(kind schema.GroupVersionKind, plural string, spec map[string]any, served ...string) *unstructured.Unstructured {
	var versions []any
	for _, version := range served {
		versions = append(versions, map[string]any{
			"name": version, "served": true, "storage": version == kind.Version,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}},
		})
	}
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": kind.Group, "scope": "Namespaced", "versions": versions,
		"names": map[string]any{"kind": kind.Kind, "listKind": kind.Kind + "List", "plural": plural, "singular": strings.ToLower(kind.Kind)},
	}}}
	definition.SetGroupVersionKind(Definitions.GroupVersion().WithKind("CustomResourceDefinition"))
	definition.SetName(plural + "." + kind.Group)
	return definition
}

// Create creates an object in its namespace.
func (o Objects) Create(t testing.TB, resource schema.GroupVersionResource, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := o.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating %s %s/%s: %v", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return created
}

// Read reads an object.
func (o Objects) Read(t testing.TB, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	found, err := o.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading %s %s/%s: %v", resource.Resource, namespace, name, err)
	}
	return found
}

// Define makes a definition, or replaces it.
func (o Objects) Define(t testing.TB, definition *unstructured.Unstructured) {
	t.Helper()
	if _, err := o.Resource(Definitions).Apply(t.Context(), definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatalf("applying the definition %s: %v", definition.GetName(), err)
	}
}

// WaitUntilServed waits until a resource can be listed, and found by discovery, as tasks
// find it.
func (c *Cluster) WaitUntilServed(t testing.TB, resource schema.GroupVersionResource) {
	t.Helper()
	objects := c.Objects()
	Eventually(t, resource.Resource+" to be served", func() error {
		if _, err := objects.Resource(resource).List(t.Context(), metav1.ListOptions{}); err != nil {
			return err
		}
		list, err := c.Kube.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err == nil && !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
			err = errors.New("discovery does not have it")
		}
		return err
	})
}
