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
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
	featurestorage "k8s.io/kubernetes-features/pkg/registry/features/feature/storage"
)

// compiled are kinds with Go types.
type compiled struct {
	scheme *runtime.Scheme
	// decoder decodes without conversion or defaults.
	decoder  runtime.Decoder
	resource schema.GroupVersionResource
	path     string
	// strategy is nil if it is not known.
	strategy rest.RESTUpdateStrategy
	// codec decodes and encodes objects, that of the storage if nil.
	codec runtime.Codec
}

func (c *compiled) updatable() error {
	if c.strategy == nil {
		return fmt.Errorf("how the registry updates %s of %s is not known beside the API", c.path, c.resource.GroupResource())
	}
	return nil
}

func (c *compiled) field(apiVersion, kind string) (*rawobject.Field, error) {
	goType, err := goTypeOf(c.scheme, apiVersion, kind, c.resource.GroupResource())
	if err != nil {
		return nil, err
	}
	if !c.hasField(apiVersion) {
		return nil, fmt.Errorf("it is stored in %s, in which objects do not have %s", apiVersion, c.path)
	}
	return rawobject.NewField(goType, c.path)
}

func (c *compiled) hasField(apiVersion string) bool {
	version, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && (version == c.resource.GroupVersion() || catalog.HasField(c.scheme, version.WithResource(c.resource.Resource), c.path))
}

// converted encodes the object in the version of the path, with defaults, as the API would
// show it.
func (c *compiled) converted(at place, plain []byte) (rawobject.Object, error) {
	decoded, err := runtime.Decode(c.storageCodec(at), plain)
	if err != nil {
		return rawobject.Object{}, fmt.Errorf("decoding it: %w", withoutBytes(err))
	}
	versioned, err := c.scheme.UnsafeConvertToVersion(decoded, c.resource.GroupVersion())
	if err != nil {
		return rawobject.Object{}, err
	}
	var encoded bytes.Buffer
	if err := protobuf.NewSerializer(c.scheme, c.scheme).Encode(versioned, &encoded); err != nil {
		return rawobject.Object{}, err
	}
	return rawobject.Parse(encoded.Bytes())
}

// storageCodec decodes and encodes what is stored at a place.
func (c *compiled) storageCodec(at place) runtime.Codec {
	if c.codec != nil {
		return c.codec
	}
	return at.config.Codec
}

// content decodes without conversion or defaults.
func (c *compiled) content(object rawobject.Object) (map[string]any, error) {
	decoded, _, err := c.decoder.Decode(object.Bytes(), nil, nil)
	if err != nil {
		return nil, withoutBytes(err)
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(decoded)
}

// update returns the object as the registry would store it: with another generation at
// most. It is an error if the registry refuses the change, or changes anything else.
func (c *compiled) update(ctx context.Context, at place, before, after rawobject.Object) (rawobject.Object, error) {
	codec := c.storageCodec(at)
	previous, err := runtime.Decode(codec, before.Bytes())
	if err != nil {
		return after, fmt.Errorf("decoding it: %w", withoutBytes(err))
	}
	updated, err := c.decode(codec, before, after)
	if err != nil {
		return after, fmt.Errorf("decoding it without the field: %w", withoutBytes(err))
	}
	return registryUpdate{strategy: c.strategy, codec: codec, resource: c.resource, path: c.path}.apply(ctx, previous, updated, after)
}

// decode decodes an edited object. A list of which all elements were removed is there and
// empty, as in a request, which bytes do not show: for some lists the registry takes one
// that is not there for that of an old client, and keeps the elements.
func (c *compiled) decode(codec runtime.Codec, before, after rawobject.Object) (runtime.Object, error) {
	list, all := strings.CutSuffix(c.path, "[*]")
	if !all {
		return runtime.Decode(codec, after.Bytes())
	}
	path, err := task.ParsePath(list)
	if err != nil {
		return nil, err
	}
	previous, err := c.content(before)
	if err != nil {
		return nil, err
	}
	content, err := c.content(after)
	if err != nil {
		return nil, err
	}
	for _, pointer := range path.Pointers(previous) {
		setEmptyList(content, strings.Split(pointer, "/")[1:])
	}
	kind := schema.FromAPIVersionAndKind(after.APIVersion(), after.Kind())
	versioned, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, versioned); err != nil {
		return nil, err
	}
	c.scheme.Default(versioned)
	updated, err := c.scheme.UnsafeConvertToVersion(versioned, schema.GroupVersion{Group: kind.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return nil, err
	}
	return updated, sameManagedFields(after, updated)
}

// sameManagedFields gives a decoded object the managed fields of its bytes. Maps do not keep
// the order of keys in their text.
func sameManagedFields(of rawobject.Object, decoded runtime.Object) error {
	stored, err := of.Metadata()
	if err != nil {
		return err
	}
	metadata, err := meta.Accessor(decoded)
	if err != nil {
		return err
	}
	metadata.SetManagedFields(stored.ManagedFields)
	return nil
}

// pointerKeys unescapes the keys of JSON pointers.
var pointerKeys = strings.NewReplacer("~1", "/", "~0", "~")

// setEmptyList puts an empty list where the keys of a JSON pointer lead to.
func setEmptyList(value any, keys []string) {
	for i, key := range keys {
		switch v := value.(type) {
		case map[string]any:
			key = pointerKeys.Replace(key)
			if i == len(keys)-1 {
				v[key] = []any{}
			}
			value = v[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(v) {
				return
			}
			value = v[n]
		}
	}
}

// registryUpdate is the change of one object by a registry's strategy.
type registryUpdate struct {
	strategy rest.RESTUpdateStrategy
	codec    runtime.Codec
	resource schema.GroupVersionResource
	path     string
}

// anyRevision stands for the resourceVersion, which stored bytes do not have and
// validation wants.
const anyRevision = "1"

// apply runs the strategy with decoded objects, of which updated is the edited one, and
// returns the edited bytes with the generation that the strategy gives them. Objects are
// changed.
func (u registryUpdate) apply(ctx context.Context, previous, updated runtime.Object, edited rawobject.Object) (rawobject.Object, error) {
	old, errOld := meta.Accessor(previous)
	is, err := meta.Accessor(updated)
	if err := errors.Join(errOld, err); err != nil {
		return edited, err
	}
	generation := is.GetGeneration()
	old.SetResourceVersion(anyRevision)
	is.SetResourceVersion(anyRevision)
	if err := rest.BeforeUpdate(u.strategy, u.request(ctx, is), updated, previous); err != nil {
		return edited, fmt.Errorf("the registry refuses the change: %w", withoutBytes(err))
	}
	is.SetResourceVersion("")
	if is.GetGeneration() != generation {
		if edited, err = edited.WithGeneration(is.GetGeneration()); err != nil {
			return edited, err
		}
	}
	return edited, u.sameAs(updated, edited)
}

// sameAs returns an error unless edited bytes are those of an object. They may be encoded
// in another way, or have fields that this binary does not know.
func (u registryUpdate) sameAs(updated runtime.Object, edited rawobject.Object) error {
	wanted, err := runtime.Encode(u.codec, updated)
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	raw := edited.Bytes()
	if bytes.Equal(wanted, raw) {
		return nil
	}
	decoded, err := runtime.Decode(u.codec, raw)
	if err != nil {
		return fmt.Errorf("decoding it without the field: %w", withoutBytes(err))
	}
	is, err := runtime.Encode(u.codec, decoded)
	switch {
	case err != nil:
		return fmt.Errorf("encoding it: %w", err)
	case !bytes.Equal(wanted, is):
		return errors.New("the registry changes more than the field when the object is written")
	}
	return nil
}

// flowUser is the server flow's identity.
func flowUser() user.Info {
	return &user.DefaultInfo{Name: featurestorage.FlowUser, Groups: []string{user.AllAuthenticated}}
}

// request returns the context of a request of the server flow that updates the object.
func (u registryUpdate) request(ctx context.Context, object metav1.Object) context.Context {
	info := requestInfo(u.resource, u.path, object.GetNamespace(), object.GetName())
	ctx = genericapirequest.WithNamespace(ctx, object.GetNamespace())
	return genericapirequest.WithUser(genericapirequest.WithRequestInfo(ctx, info), flowUser())
}

// requestInfo is that of a patch that removes a field from an object.
func requestInfo(resource schema.GroupVersionResource, path, namespace, name string) *genericapirequest.RequestInfo {
	info := &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: "patch", APIPrefix: "apis", APIGroup: resource.Group, APIVersion: resource.Version,
		Namespace: namespace, Resource: resource.Resource, Name: name,
	}
	if resource.Group == "" {
		info.APIPrefix = "api"
	}
	info.Path = "/" + info.APIPrefix
	parts := []string{resource.Group, resource.Version}
	if namespace != "" {
		parts = append(parts, "namespaces", namespace)
	}
	parts = append(parts, resource.Resource, name)
	if isStatus(path) {
		info.Subresource = "status"
		parts = append(parts, "status")
	}
	for _, part := range parts {
		if part != "" {
			info.Path += "/" + part
		}
	}
	return info
}
