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
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// ClearUnreadable removes the objects of a resource whose bytes this server cannot
// decode, where they are stored. An old version stored them in a form that is no longer
// known, for example an alpha version that was removed. One such object makes every
// LIST of its collection fail. Objects that decode are left alone. Finalizers hold
// none, since no server could remove them. It needs Clients.Storage, which only
// kube-apiserver has.
func ClearUnreadable(resource schema.GroupResource) Task {
	c := clearUnreadable{clearCollection{resource: resource}}
	return Task{
		Name:        "ClearUnreadable/" + resource.String(),
		Description: fmt.Sprintf("delete the stored objects of %s that no server can decode", resource),
		Fields:      []Field{{Resource: resource}},
		collection:  resource,
		Find:        c.find,
		Run:         c.run,

		BlocksStartup: true,
		NeedsStorage:  true,
		Unread:        "no server of this version can decode it, and one such object makes every LIST of its collection fail",
	}
}

type clearUnreadable struct {
	clearCollection
}

func (c clearUnreadable) find(ctx context.Context, clients Clients) ([]v1alpha1.ResourceLeftovers, error) {
	if clients.Storage == nil {
		return nil, c.unreachable()
	}
	return findStored(ctx, clients.Storage, c.resource, func(object StoredObject) bool { return object.Unreadable != nil })
}

func (c clearUnreadable) run(ctx context.Context, clients Clients, attempt Attempt) error {
	if clients.Storage == nil {
		return c.unreachable()
	}
	// Served or not: those that decode are kept.
	_, err := c.clearStored(ctx, clients, true, attempt)
	return err
}

// unreachable returns the error of a server without access to storage: "nothing found"
// or "done" would be wrong.
func (c clearUnreadable) unreachable() error {
	return &BlockedError{Message: fmt.Sprintf("only kube-apiserver can reach etcd, where the objects of %s are that no server can decode; take ClearUnreadable out of the declaration", c.resource)}
}
