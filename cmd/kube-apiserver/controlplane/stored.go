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
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// Stored reads and deletes what is stored in etcd, beside the API, for tasks: a
// collection whose API went away with its feature cannot be reached otherwise.
// It connects when it is first used. It is safe for concurrent use.
type Stored struct {
	// builtIn and custom know where and how resources are stored: those that
	// are compiled in, and those of CustomResourceDefinitions.
	builtIn, custom generic.RESTOptionsGetter
	// serves returns whether this server has the resource in any version.
	serves func(schema.GroupResource) bool

	mu      sync.Mutex
	clients map[string]*clientv3.Client
	// places are the built-in ones that were asked for: finding one goes through
	// all types, and it stays where it is. Definitions may come and go. shared are those
	// whose keys may also be those of another group.
	places, shared map[schema.GroupResource]place
}

var _ task.Storage = &Stored{}

// callTimeout bounds one call to etcd.
const callTimeout = 30 * time.Second

// NewStored returns access to the storage of the options. Serves returns
// whether the server has a built-in resource, in any version.
func NewStored(builtIn, custom generic.RESTOptionsGetter, serves func(schema.GroupResource) bool) *Stored {
	return &Stored{builtIn: builtIn, custom: custom, serves: serves, clients: map[string]*clientv3.Client{}, places: map[schema.GroupResource]place{}, shared: map[schema.GroupResource]place{}}
}

// Close ends all connections.
func (s *Stored) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, client := range s.clients {
		errs = append(errs, client.Close())
	}
	clear(s.clients)
	clear(s.places)
	clear(s.shared)
	return errors.Join(errs...)
}

// place is the storage location of one resource.
type place struct {
	resource schema.GroupResource
	client   *clientv3.Client
	// prefix ends with a slash.
	prefix string
	config *storagebackend.ConfigForResource
	// builtIn is false for custom resources.
	builtIn bool
}

// place finds where a resource is stored, once for those that are built in.
func (s *Stored) place(resource schema.GroupResource) (place, error) {
	return s.placeIn(s.places, resource, s.sameKeys)
}

// sharedPlace is place also for a resource whose keys are those of another group's, such
// as deployments of apps and of extensions. The caller checks the kind of each object.
func (s *Stored) sharedPlace(resource schema.GroupResource) (place, error) {
	return s.placeIn(s.shared, resource, func(schema.GroupResource, schema.GroupResource) bool { return false })
}

func (s *Stored) placeIn(places map[schema.GroupResource]place, resource schema.GroupResource, sameKeys func(a, b schema.GroupResource) bool) (place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := places[resource]; ok {
		return at, nil
	}
	at, err := s.find(resource, sameKeys)
	if err == nil && at.builtIn {
		places[resource] = at
	}
	return at, err
}

// find needs the lock.
func (s *Stored) find(resource schema.GroupResource, sameKeys func(a, b schema.GroupResource) bool) (place, error) {
	at := place{resource: resource, builtIn: legacyscheme.Scheme.IsGroupRegistered(resource.Group)}
	options, example := s.custom, runtime.Object(nil)
	if at.builtIn {
		options = s.builtIn
		var err error
		if example, err = exampleOf(resource, sameKeys); err != nil {
			return place{}, err
		}
	}
	found, err := options.GetRESTOptions(resource, example)
	if err != nil {
		return place{}, fmt.Errorf("where %s is stored: %w", resource, err)
	}
	if at.client, err = s.client(found.StorageConfig.Transport); err != nil {
		return place{}, fmt.Errorf("connecting to where %s is stored: %w", resource, err)
	}
	at.prefix = path.Join("/", found.StorageConfig.Prefix, found.ResourcePrefix) + "/"
	at.config = found.StorageConfig
	return at, nil
}

// exampleOf returns an object of a built-in resource. It is an error when there is
// none, or when another group's objects lie under the same keys: prefixes of
// built-in resources do not include the group, so a wrong one could lead to
// objects in use.
func exampleOf(resource schema.GroupResource, sameKeys func(a, b schema.GroupResource) bool) (runtime.Object, error) {
	scheme := legacyscheme.Scheme
	var example runtime.Object
	for _, version := range scheme.PrioritizedVersionsAllGroups() {
		for kind := range scheme.KnownTypes(version) {
			plural, _ := meta.UnsafeGuessKindToResource(version.WithKind(kind))
			// What is stored can be listed. A kind without lists, such as Eviction of policy, is a
			// body of requests alone.
			if plural.Resource != resource.Resource || !scheme.Recognizes(version.WithKind(kind+"List")) {
				continue
			}
			if version.Group == resource.Group && example == nil {
				var err error
				if example, err = scheme.New(version.WithKind(kind)); err != nil {
					return nil, err
				}
			}
			if version.Group != resource.Group && sameKeys(resource, plural.GroupResource()) {
				return nil, fmt.Errorf("%s and %s are stored under the same keys; their objects are reached through the API alone", resource, plural.GroupResource())
			}
		}
	}
	if example == nil {
		return nil, fmt.Errorf("no kind of group %q is stored as %s", resource.Group, resource.Resource)
	}
	return example, nil
}

// sameKeys is true when two resources have one prefix.
func (s *Stored) sameKeys(a, b schema.GroupResource) bool {
	one, errA := s.builtIn.GetRESTOptions(a, nil)
	other, errB := s.builtIn.GetRESTOptions(b, nil)
	return errA == nil && errB == nil && one.ResourcePrefix == other.ResourcePrefix
}

// List returns a page of stored objects in the order of their keys. A value that
// cannot be decrypted is an error: it is not lost, its key is out of reach.
func (s *Stored) List(ctx context.Context, resource schema.GroupResource, limit int64, from string) (page []task.StoredObject, next string, err error) {
	next, err = s.page(ctx, resource, limit, from, func(at place, object task.StoredObject, plain []byte) error {
		object, err := at.decoded(object, plain)
		page = append(page, object)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// ListHolding is List for the objects whose bytes hold a field. It decodes none of the
// others: that takes far longer than it takes to look for the field.
func (s *Stored) ListHolding(ctx context.Context, field task.RemovedField, limit int64, from string) (page []task.StoredObject, next string, err error) {
	removed := &removedField{RemovedField: field}
	next, err = s.page(ctx, field.Resource.GroupResource(), limit, from, func(_ place, object task.StoredObject, plain []byte) error {
		holds, err := removed.in(plain)
		switch {
		case err != nil:
			return fmt.Errorf("looking for %s in the stored object %s: %w; let it be written in an encoding that kube-apiserver reads, or delete it if no server can read it", field.Path, object.Key, err)
		case holds:
			object.UID = metadataIn(plain).UID
			page = append(page, object)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// page reads a page of what is stored of a resource. It calls visit for each object, of
// which it knows the key and the revision, with its decrypted bytes. They must not be kept.
func (s *Stored) page(ctx context.Context, resource schema.GroupResource, limit int64, from string, visit func(at place, object task.StoredObject, plain []byte) error) (next string, err error) {
	at, err := s.place(resource)
	if err != nil {
		return "", err
	}
	page, err := at.read(ctx, at.prefix, from, limit, func(stored storedObject) error {
		object := at.keyed(stored.key)
		object.Revision = stored.revision
		return visit(at, object, stored.plain)
	})
	return page.next, err
}

// keyed returns what the key of an object shows.
func (p place) keyed(key string) task.StoredObject {
	object := task.StoredObject{Key: key}
	namespace, name, namespaced := strings.Cut(strings.TrimPrefix(key, p.prefix), "/")
	if namespaced {
		object.Namespace, object.Name = namespace, name
	} else {
		object.Name = namespace
	}
	return object
}

// decoded adds what the bytes of an object show.
func (p place) decoded(object task.StoredObject, plain []byte) (task.StoredObject, error) {
	decoded, kind, err := p.config.Codec.Decode(plain, nil, nil)
	if err != nil {
		object.Unreadable = withoutBytes(err)
		about := metadataIn(plain)
		object.UID, object.Finalizers = about.UID, about.Finalizers
		return object, nil
	}
	if about, err := meta.Accessor(decoded); err == nil {
		object.UID, object.Finalizers = about.GetUID(), about.GetFinalizers()
	}
	if !p.builtIn {
		object.APIVersion = kind.GroupVersion().String()
		return object, nil
	}
	if err := isOf(*kind, p.resource); err != nil {
		return object, fmt.Errorf("the stored object %s: %w", object.Key, err)
	}
	object.Outdated = p.outdated(*kind)
	return object, nil
}

// isOf returns an error for a kind that a built-in resource does not have.
func isOf(kind schema.GroupVersionKind, resource schema.GroupResource) error {
	if plural, _ := meta.UnsafeGuessKindToResource(kind); plural.GroupResource() != resource {
		return fmt.Errorf("it is a %s and not one of %s", kind.GroupKind(), resource)
	}
	return nil
}

// maxUnreadable is how much of a decoder's error is kept.
const maxUnreadable = 500

// withoutBytes returns the text of a decoder's error. Some errors quote the whole object,
// which may be large and confidential.
func withoutBytes(err error) error {
	text := err.Error()
	switch {
	case runtime.IsMissingKind(err):
		text = "it names no kind"
	case runtime.IsMissingVersion(err):
		text = "it names no version of its API"
	case len(text) > maxUnreadable:
		text = strings.ToValidUTF8(text[:maxUnreadable], "") + "…"
	}
	return errors.New(text)
}

// metadataIn returns the metadata of an object that is not decoded, as far as its bytes
// show it: all kinds of Kubernetes have it in the same place (PartialObjectMetadata).
func metadataIn(plain []byte) metav1.ObjectMeta {
	var partial metav1.PartialObjectMetadata
	if raw, ok := bytes.CutPrefix(plain, protobufPrefix); ok {
		var unknown runtime.Unknown
		if unknown.Unmarshal(raw) != nil || partial.Unmarshal(unknown.Raw) != nil {
			return metav1.ObjectMeta{}
		}
		return partial.ObjectMeta
	}
	if json.Unmarshal(plain, &partial) == nil {
		return partial.ObjectMeta
	}
	content, err := contentOf(plain)
	if err != nil {
		return metav1.ObjectMeta{}
	}
	return metav1.ObjectMeta{UID: content.GetUID(), Finalizers: content.GetFinalizers()}
}

// protobufPrefix begins what is stored as protobuf (apimachinery's
// pkg/runtime/serializer/protobuf).
var protobufPrefix = []byte("k8s\x00")

func (p place) transformer() value.Transformer {
	if p.config.Transformer != nil {
		return p.config.Transformer
	}
	return identity.NewEncryptCheckTransformer()
}

// outdated is true for a kind of another version than is written now.
func (p place) outdated(kind schema.GroupVersionKind) bool {
	if p.config.EncodeVersioner == nil {
		return false
	}
	kinds := []schema.GroupVersionKind{kind}
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		if k := version.WithKind(kind.Kind); legacyscheme.Scheme.Recognizes(k) && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	written, ok := p.config.EncodeVersioner.KindForGroupVersionKinds(kinds)
	return ok && written.GroupVersion() != kind.GroupVersion()
}

// Delete removes one stored object if its bytes are those that were listed. It
// refuses what the API can delete: an object that decodes, of a resource that
// this server serves, or that a definition or another server may serve.
// Discovery, which tasks ask, may be behind for a moment.
func (s *Stored) Delete(ctx context.Context, resource schema.GroupResource, object task.StoredObject) error {
	at, err := s.place(resource)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(object.Key, at.prefix) {
		return fmt.Errorf("%s is not a key of %s", object.Key, resource)
	}
	if object.Unreadable == nil && (!at.builtIn || s.serves(resource)) {
		return fmt.Errorf("%s is not deleted where it is stored: %s is for the API to delete", object.Key, resource)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done, err := at.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(object.Key), "=", object.Revision)).
		Then(clientv3.OpDelete(object.Key)).
		Else(clientv3.OpGet(object.Key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil {
		return fmt.Errorf("deleting the stored object %s: %w", object.Key, err)
	}
	if !done.Succeeded && len(done.Responses[0].GetResponseRange().Kvs) > 0 {
		return apierrors.NewConflict(resource, object.Name, errors.New("the stored object has changed"))
	}
	return nil
}
