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
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// NewMapper returns a mapper for Clients.Mapper. Unlike client-go's it does not treat
// failed discovery as absence. GetAPIGroupResources of client-go's restmapper leaves
// out the groups whose discovery fails, such as those of an aggregated API that does
// not answer. A task would consider their collections deleted. For these ResourcesFor
// and RESTMapping return an error that is none of meta.IsNoMatchError; for all others
// they do what client-go's do. The mapper runs discovery when it is first used and
// after each Reset, and is safe for concurrent use.
func NewMapper(client discovery.DiscoveryInterface) meta.ResettableRESTMapper {
	asked := &discovered{CachedDiscoveryInterface: memory.NewMemCacheClient(client)}
	return &wholeMapper{DeferredDiscoveryRESTMapper: restmapper.NewDeferredDiscoveryRESTMapper(asked), asked: asked}
}

// discovered remembers the versions of groups whose last discovery failed.
type discovered struct {
	discovery.CachedDiscoveryInterface

	mu     sync.Mutex
	failed map[schema.GroupVersion]error
}

func (d *discovered) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, resources, err := d.CachedDiscoveryInterface.ServerGroupsAndResources()
	failed, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = failed
	return groups, resources, err
}

// failure returns why the discovery of a version of a group failed, nil if none did.
func (d *discovered) failure(group string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for version, err := range d.failed {
		if version.Group == group {
			return fmt.Errorf("the server does not say what %s has: %w", version, err)
		}
	}
	return nil
}

type wholeMapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
	asked *discovered
	// mu prevents a reset of the mapper between an answer and the check for failures.
	mu sync.Mutex
}

func (m *wholeMapper) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.DeferredDiscoveryRESTMapper.Reset()
}

func (m *wholeMapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.DeferredDiscoveryRESTMapper.ResourcesFor(input)
	if err != nil && !meta.IsNoMatchError(err) || indexOf(found, input.GroupResource()) >= 0 {
		return found, err
	}
	if failure := m.asked.failure(input.Group); failure != nil {
		return nil, failure
	}
	return found, err
}

func (m *wholeMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mapping, err := m.DeferredDiscoveryRESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		if failure := m.asked.failure(kind.Group); failure != nil {
			return nil, failure
		}
	}
	return mapping, err
}
