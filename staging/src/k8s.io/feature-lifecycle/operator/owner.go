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

package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/feature-lifecycle/internal/retry"
	"k8s.io/klog/v2"
)

const (
	// minOwnerBackoff and maxOwnerBackoff bound the pause after the server did not say
	// who the replica is.
	minOwnerBackoff, maxOwnerBackoff = 250 * time.Millisecond, 30 * time.Second
	serviceAccountUser               = "system:serviceaccount:"
)

// errNotOwner means that what a replica makes cannot belong to whom it runs as.
var errNotOwner = errors.New("no service account of the operator's namespace")

// owner is the service account that this replica runs as. It asks until the server
// answers, and fails only for somebody who is no service account.
func (r *Replica) owner(ctx context.Context) (*metav1.OwnerReference, error) {
	for failures := 1; ; failures++ {
		review, err := r.clients.kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil {
			return serviceAccount(r.config.Namespace, review.Status.UserInfo)
		}
		pause := retry.After(err, failures, minOwnerBackoff, maxOwnerBackoff)
		if failures == 1 && ctx.Err() == nil {
			klog.FromContext(ctx).Info("The server does not say which service account this is, which Features are to belong to; asking again", "err", err, "nextAttemptIn", pause)
		}
		timer := r.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C():
		}
	}
}

// serviceAccount is a reference to a user that is a service account of a namespace.
func serviceAccount(namespace string, user authenticationv1.UserInfo) (*metav1.OwnerReference, error) {
	prefix := serviceAccountUser + namespace + ":"
	if len(user.Username) <= len(prefix) || user.Username[:len(prefix)] != prefix || user.UID == "" {
		return nil, fmt.Errorf("OwnedByServiceAccount: the operator runs as %s, %w %s; run it as one, or leave OwnedByServiceAccount out", user.Username, errNotOwner, namespace)
	}
	return &metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: user.Username[len(prefix):], UID: types.UID(user.UID)}, nil
}
