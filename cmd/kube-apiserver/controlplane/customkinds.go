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

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// definitionKinds are those of CustomResourceDefinitions themselves.
func definitionKinds(resource schema.GroupVersionResource, path string) kinds {
	scheme := apiextensionsapiserver.Scheme
	of := &compiled{
		scheme: scheme, decoder: apiextensionsapiserver.Codecs.UniversalDeserializer(), resource: resource, path: path,
		strategy: customresourcedefinition.NewStrategy(scheme),
		codec:    apiextensionsapiserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion),
	}
	if isStatus(path) {
		of.strategy = customresourcedefinition.NewStatusStrategy(scheme)
	}
	return of
}

// custom are the kinds of a custom resource, in one version.
type custom struct {
	resource   schema.GroupVersionResource
	path       string
	definition *apiextensionsv1.CustomResourceDefinition
	// strategy is made by updatable: a search needs none, and schemas take long to compile.
	strategy rest.RESTUpdateStrategy
}

// customKinds returns the kinds of what a definition defines. The error is why its objects
// are reached through the API alone.
func customKinds(definition *apiextensionsv1.CustomResourceDefinition, resource schema.GroupVersionResource, path string) (kinds, error) {
	if !slices.ContainsFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }) || definition.DeletionTimestamp != nil {
		return nil, fmt.Errorf("%s is not served", resource.GroupResource())
	}
	return &custom{resource: resource, path: path, definition: definition}, nil
}

func (c *custom) updatable() (err error) {
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(c.definition, &internal, nil); err != nil {
		return fmt.Errorf("reading the definition of %s: %w", c.resource.GroupResource(), err)
	}
	validated, err := apiextensions.GetSchemaForVersion(&internal, c.resource.Version)
	if err != nil {
		return err
	}
	if validated == nil || validated.OpenAPIV3Schema == nil {
		return fmt.Errorf("the definition of %s has no schema of %s", c.resource.GroupResource(), c.resource.Version)
	}
	if c.strategy, err = customStrategy(c.definition, &internal, validated.OpenAPIV3Schema, c.resource, isStatus(c.path)); err != nil {
		return fmt.Errorf("the definition of %s: %w", c.resource.GroupResource(), err)
	}
	return nil
}

// customStrategy returns the strategy with which the server of custom resources updates
// objects or their status (pkg/apiserver/customresource_handler.go of
// k8s.io/apiextensions-apiserver).
func customStrategy(definition *apiextensionsv1.CustomResourceDefinition, internal *apiextensions.CustomResourceDefinition, props *apiextensions.JSONSchemaProps, resource schema.GroupVersionResource, ofStatus bool) (rest.RESTUpdateStrategy, error) {
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	subresources, err := apiextensions.GetSubresourcesForVersion(internal, resource.Version)
	if err != nil {
		return nil, err
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var scale *apiextensions.CustomResourceSubresourceScale
	var ofStatusAlone validation.SchemaValidator
	if subresources != nil {
		status, scale = subresources.Status, subresources.Scale
	}
	if of, ok := props.Properties["status"]; ok && status != nil {
		if ofStatusAlone, _, err = validation.NewSchemaValidator(&of); err != nil {
			return nil, err
		}
	}
	kind := resource.GroupVersion().WithKind(definition.Spec.Names.Kind)
	strategy := customresource.NewStrategy(unstructuredscheme.NewUnstructuredObjectTyper(), definition.Spec.Scope == apiextensionsv1.NamespaceScoped, kind,
		validator, ofStatusAlone, structural, status, scale, selectableFields(definition, resource.Version))
	switch {
	case !ofStatus:
		return strategy, nil
	case status == nil:
		return nil, errors.New("it has no subresource status")
	default:
		return customresource.NewStatusStrategy(strategy), nil
	}
}

// selectableFields are those of a version.
func selectableFields(definition *apiextensionsv1.CustomResourceDefinition, version string) []apiextensionsv1.SelectableField {
	for _, v := range definition.Spec.Versions {
		if v.Name == version {
			return v.SelectableFields
		}
	}
	return nil
}

// field finds it in the version of the path alone: conversion may move it.
func (c *custom) field(apiVersion, kind string) (*rawobject.Field, error) {
	if !c.hasField(apiVersion) || kind != c.definition.Spec.Names.Kind {
		return nil, fmt.Errorf("it is a %s of %s, and the field is that of a %s of %s", kind, apiVersion, c.definition.Spec.Names.Kind, c.resource.GroupVersion())
	}
	return rawobject.NewField(nil, c.path)
}

func (c *custom) hasField(apiVersion string) bool {
	return apiVersion == c.resource.GroupVersion().String()
}

// converted is left to the API: the definition's webhook may convert.
func (c *custom) converted(place, []byte) (rawobject.Object, error) {
	return rawobject.Object{}, errors.New("conversion of custom resources is left to the API")
}

// content has integers as int64, as clients of the API have them.
func (c *custom) content(object rawobject.Object) (content map[string]any, err error) {
	return content, utiljson.Unmarshal(object.Bytes(), &content)
}

// update leaves out defaults that the server adds to what it reads: an object that is not
// valid without them is for the API.
func (c *custom) update(ctx context.Context, _ place, before, after rawobject.Object) (rawobject.Object, error) {
	codec := unstructured.UnstructuredJSONScheme
	previous, err := runtime.Decode(codec, before.Bytes())
	if err != nil {
		return after, fmt.Errorf("decoding it: %w", withoutBytes(err))
	}
	updated, err := runtime.Decode(codec, after.Bytes())
	if err != nil {
		return after, fmt.Errorf("decoding it without the field: %w", withoutBytes(err))
	}
	return registryUpdate{strategy: c.strategy, codec: codec, resource: c.resource, path: c.path}.apply(ctx, previous, updated, after)
}
