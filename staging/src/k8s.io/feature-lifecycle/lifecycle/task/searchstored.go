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
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// matched are the objects that a search matches.
type matched struct {
	// total is their number, read that of all objects, and first are some of them.
	total, read int64
	first       []object
}

func (m *matched) add(found object) {
	m.total++
	if len(m.first) < maxExamples {
		m.first = append(m.first, found)
	}
}

// addStored is add for a stored object, of which no more is read than is kept.
func (m *matched) addStored(found FoundObject) {
	if len(m.first) == maxExamples {
		m.total++
		return
	}
	m.add(object{found.Namespace(), found.Name(), string(found.UID())})
}

// searchStored searches the stored objects of a resource, of the namespace that the clients
// are for, together with others that search them at the same time.
func searchStored(ctx context.Context, clients Clients, resource schema.GroupVersionResource, search FieldSearch) (*matched, error) {
	if clients.shared != nil {
		return clients.shared.search(ctx, clients.of(resource), search)
	}
	result := &matched{}
	var err error
	result.read, err = clients.Editor.Search(ctx, resource, clients.namespace, []FieldSearch{search}, func(_ int, found FoundObject) { result.addStored(found) })
	return result, err
}

func isThroughAPI(err error) bool {
	var through *ThroughAPIError
	return errors.As(err, &through)
}

// findSearched is find where objects are stored, if the server reads them there, and through
// the API otherwise.
func findSearched(ctx context.Context, clients Clients, resource schema.GroupVersionResource, field string, search FieldSearch, matches func(*unstructured.Unstructured) bool) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Editor == nil {
		return find(ctx, clients, resource, field, matches)
	}
	result, err := searchStored(ctx, clients, resource, search)
	switch {
	case isThroughAPI(err):
		return find(ctx, clients, resource, field, matches)
	case err != nil:
		return nil, err
	}
	found := v1alpha1.ResourceLeftovers{Group: resource.Group, Resource: resource.Resource, Field: field, Count: result.total}
	for _, o := range result.first {
		found.Examples = append(found.Examples, objectName(o.namespace, o.name))
	}
	return nonEmpty(found), nil
}
