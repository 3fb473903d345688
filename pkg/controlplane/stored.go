/*
Copyright 2026 The Kubernetes Authors.

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
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// dialTimeout bounds connecting to etcd, as upstream's client does.
const dialTimeout = 20 * time.Second

// Stored reads and deletes what is stored in etcd, beside the API, for tasks: a
// collection whose API went away with its feature cannot be reached otherwise.
// It connects when it is first used. It is safe for concurrent use.
type Stored struct {
	// builtIn and custom know where and how resources are stored: those that
	// are compiled in, and those of CustomResourceDefinitions.
	builtIn, custom generic.RESTOptionsGetter
	// serves says whether this server has the resource in any version.
	serves func(schema.GroupResource) bool

	mu      sync.Mutex
	clients map[string]*clientv3.Client
}

var _ task.Storage = &Stored{}

// NewStored makes access to what is stored where the options say. Serves says
// whether the server has a built-in resource, in any version.
func NewStored(builtIn, custom generic.RESTOptionsGetter, serves func(schema.GroupResource) bool) *Stored {
	return &Stored{builtIn: builtIn, custom: custom, serves: serves, clients: map[string]*clientv3.Client{}}
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
	return errors.Join(errs...)
}

// place is where one resource is stored.
type place struct {
	client *clientv3.Client
	// prefix ends with a slash.
	prefix string
	config *storagebackend.ConfigForResource
}

func (s *Stored) place(resource schema.GroupResource) (place, error) {
	options := s.custom
	if legacyscheme.Scheme.IsGroupRegistered(resource.Group) {
		options = s.builtIn
	}
	found, err := options.GetRESTOptions(resource, nil)
	if err != nil {
		return place{}, fmt.Errorf("where %s is stored: %w", resource, err)
	}
	client, err := s.client(found.StorageConfig.Transport)
	if err != nil {
		return place{}, fmt.Errorf("connecting to where %s is stored: %w", resource, err)
	}
	prefix := path.Join("/", found.StorageConfig.Prefix, found.ResourcePrefix) + "/"
	return place{client, prefix, found.StorageConfig}, nil
}

// client connects once to each set of etcd servers.
func (s *Stored) client(config storagebackend.TransportConfig) (*clientv3.Client, error) {
	key := strings.Join(config.ServerList, ",")
	s.mu.Lock()
	defer s.mu.Unlock()
	if client := s.clients[key]; client != nil {
		return client, nil
	}
	var secure *tls.Config
	if config.CertFile != "" || config.KeyFile != "" || config.TrustedCAFile != "" {
		info := transport.TLSInfo{CertFile: config.CertFile, KeyFile: config.KeyFile, TrustedCAFile: config.TrustedCAFile}
		var err error
		if secure, err = info.ClientConfig(); err != nil {
			return nil, err
		}
	}
	dialing, err := egress(config)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: config.ServerList, TLS: secure, DialTimeout: dialTimeout, DialOptions: dialing})
	if err == nil {
		s.clients[key] = client
	}
	return client, err
}

// egress dials as --egress-selector-config-file says.
func egress(config storagebackend.TransportConfig) ([]grpc.DialOption, error) {
	if config.EgressLookup == nil {
		return nil, nil
	}
	dial, err := config.EgressLookup(egressselector.Etcd.AsNetworkContext())
	if err != nil || dial == nil {
		return nil, err
	}
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
		return dial(ctx, "tcp", address)
	})}, nil
}

// List returns a page of stored objects in the order of their keys. A value that
// cannot be decrypted is an error: it is not lost, its key is out of reach.
func (s *Stored) List(ctx context.Context, resource schema.GroupResource, limit int64, from string) ([]task.StoredObject, string, error) {
	at, err := s.place(resource)
	if err != nil {
		return nil, "", err
	}
	begin := at.prefix
	if from != "" {
		// The key right behind the last one.
		begin = at.prefix + from + "\x00"
	}
	found, err := at.client.Get(ctx, begin, clientv3.WithRange(clientv3.GetPrefixRangeEnd(at.prefix)), clientv3.WithLimit(limit))
	if err != nil {
		return nil, "", fmt.Errorf("reading the stored %s: %w", resource, err)
	}
	var page []task.StoredObject
	for _, kv := range found.Kvs {
		object, err := at.object(ctx, string(kv.Key), kv.Value)
		if err != nil {
			return nil, "", err
		}
		object.Revision = kv.ModRevision
		page = append(page, object)
	}
	next := ""
	if found.More && len(page) > 0 {
		next = strings.TrimPrefix(page[len(page)-1].Key, at.prefix)
	}
	return page, next, nil
}

// object says what one stored value is.
func (p place) object(ctx context.Context, key string, data []byte) (task.StoredObject, error) {
	object := task.StoredObject{Key: key}
	namespace, name, namespaced := strings.Cut(strings.TrimPrefix(key, p.prefix), "/")
	if namespaced {
		object.Namespace, object.Name = namespace, name
	} else {
		object.Name = namespace
	}
	plain, _, err := p.transformer().TransformFromStorage(ctx, data, value.DefaultContext(key))
	if err != nil {
		return object, fmt.Errorf("decrypting the stored object %s: %w", key, err)
	}
	decoded, err := runtime.Decode(p.config.Codec, plain)
	if err != nil {
		object.Unreadable = err
		return object, nil
	}
	if _, custom := decoded.(runtime.Unstructured); custom {
		object.APIVersion = decoded.GetObjectKind().GroupVersionKind().GroupVersion().String()
		object.MediaType = mediaType(plain)
	} else {
		object.Outdated = p.outdated(plain)
	}
	return object, nil
}

// mediaType is how the bytes of a custom resource are encoded. CBOR begins with
// the tag of self-described CBOR (RFC 8949, section 3.4.6), which no JSON does.
func mediaType(data []byte) string {
	if bytes.HasPrefix(data, []byte{0xd9, 0xd9, 0xf7}) {
		return runtime.ContentTypeCBOR
	}
	return runtime.ContentTypeJSON
}

func (p place) transformer() value.Transformer {
	if p.config.Transformer != nil {
		return p.config.Transformer
	}
	return identity.NewEncryptCheckTransformer()
}

// outdated is true when data is of another version than is written now.
func (p place) outdated(data []byte) bool {
	_, kind, err := legacyscheme.Codecs.UniversalDeserializer().Decode(bytes.Clone(data), nil, nil)
	if err != nil || kind == nil || p.config.EncodeVersioner == nil {
		return false
	}
	kinds := []schema.GroupVersionKind{*kind}
	for _, version := range legacyscheme.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		if k := version.WithKind(kind.Kind); legacyscheme.Scheme.Recognizes(k) && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	written, ok := p.config.EncodeVersioner.KindForGroupVersionKinds(kinds)
	return ok && written.GroupVersion() != kind.GroupVersion()
}

// Delete removes one stored object if its bytes are those that were listed. It
// refuses what the API can delete: a built-in object that this server serves and
// can decode. Discovery, which tasks ask, may be behind for a moment.
func (s *Stored) Delete(ctx context.Context, resource schema.GroupResource, object task.StoredObject) error {
	at, err := s.place(resource)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(object.Key, at.prefix) {
		return fmt.Errorf("%s is not a key of %s", object.Key, resource)
	}
	if object.Unreadable == nil && s.serves(resource) {
		return fmt.Errorf("%s is not deleted where it is stored: the server serves %s", object.Key, resource)
	}
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
