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

package operator

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const serviceAccountUser = "system:serviceaccount:"

// errNotOwner means that the user of a replica cannot own what it creates.
var errNotOwner = errors.New("no service account of the operator's namespace")

// owner returns the lookup of the service account of this replica, nil if it is not
// needed. The reporter calls it, once the server is known to have the API.
func (r *Replica) owner() func(context.Context) (*metav1.OwnerReference, error) {
	if !r.config.OwnedByServiceAccount {
		return nil
	}
	return func(ctx context.Context) (*metav1.OwnerReference, error) {
		review, err := r.clients.ownKube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		found, err := serviceAccount(r.config.Namespace, review.Status.UserInfo)
		if err != nil {
			// It stays so: Start ends for it.
			select {
			case r.misfit <- err:
			default:
			}
			return nil, err
		}
		r.belongs.Store(found)
		return found, nil
	}
}

// serviceAccount returns a reference to a user that is a service account of a
// namespace.
func serviceAccount(namespace string, user authenticationv1.UserInfo) (*metav1.OwnerReference, error) {
	prefix := serviceAccountUser + namespace + ":"
	if len(user.Username) <= len(prefix) || user.Username[:len(prefix)] != prefix || user.UID == "" {
		return nil, fmt.Errorf("OwnedByServiceAccount: the operator runs as %s, %w %s; run it as one, or leave OwnedByServiceAccount out", user.Username, errNotOwner, namespace)
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: user.Username[len(prefix):], UID: types.UID(user.UID)}, nil
}
