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

	clientv3 "go.etcd.io/etcd/client/v3"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/rawobject"
)

// objectEdit is the edit of one stored object.
type objectEdit struct {
	task.StoredObject
	revision int64
	before   rawobject.Object
	field    *rawobject.Field
}

// write writes an object without the field.
func (f *fieldEdits) write(ctx context.Context, e objectEdit) error {
	after, err := f.inTurn(ctx, e)
	if err != nil {
		return err
	}
	stored, err := f.at.transformer().TransformToStorage(ctx, after.Bytes(), value.DefaultContext(e.Key))
	if err != nil {
		return fmt.Errorf("encrypting the stored object %s: %w", e.Key, err)
	}
	event := f.audit.begin(ctx, f.FieldEdit, e.StoredObject, f.kinds.content)
	err = f.put(ctx, e, string(stored))
	event.end(e.before, after, err)
	return err
}

// inTurn computes an edit when it is its turn. An error of the edit is a
// *task.ThroughAPIError.
func (f *fieldEdits) inTurn(ctx context.Context, e objectEdit) (rawobject.Object, error) {
	select {
	case f.turns <- struct{}{}:
	case <-ctx.Done():
		return rawobject.Object{}, ctx.Err()
	}
	defer func() { <-f.turns }()
	after, err := f.edited(ctx, e)
	if err != nil {
		return after, throughAPI(err)
	}
	return after, nil
}

// edited returns an object without the field, as the API would store it.
func (f *fieldEdits) edited(ctx context.Context, e objectEdit) (rawobject.Object, error) {
	after, removed, err := e.field.Remove(e.before)
	switch {
	case err != nil:
		return after, err
	case removed == 0:
		return after, errors.New("its bytes show the field in no place")
	}
	owners, err := e.field.Disown(e.before, f.Manager, f.kinds.hasField)
	if err != nil {
		return after, err
	}
	if after, err = after.WithOwners(owners); err != nil {
		return after, err
	}
	return f.kinds.update(ctx, f.at, e.before, after)
}

// put writes the bytes if the object is still the one that was read. Its key keeps its
// lease.
func (f *fieldEdits) put(ctx context.Context, e objectEdit, stored string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done, err := f.at.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(e.Key), "=", e.revision)).
		Then(clientv3.OpPut(e.Key, stored, clientv3.WithIgnoreLease())).
		Commit()
	switch {
	case err != nil:
		return fmt.Errorf("writing the stored object %s: %w", e.Key, err)
	case !done.Succeeded:
		return apierrors.NewConflict(f.at.resource, e.Name, errors.New("the stored object has changed"))
	}
	return nil
}
