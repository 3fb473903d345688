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

package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// conflictingReport is a report under this process's name that another identity wrote: an
// earlier process of the instance, before its service account was renamed, for example.
// Only that identity may change it.
type conflictingReport struct {
	uid types.UID
	// err is the server's response to the attempt to change it.
	err error
	// lease is the version of its Lease that was observed last, "" for none, and since is
	// when it was observed first; zero until then.
	lease string
	since time.Time
}

// errDeleteFailed means that the report of another identity could not be deleted although
// its process is lost.
var errDeleteFailed = errors.New("its process is lost, and deleting it failed")

// noteConflict finds out whether the report could not be written because another identity
// wrote the stored one. From then on the Lease, which another process may renew, is left
// alone until takeOver has decided.
func (r *Reporter) noteConflict(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) || r.stored == nil || r.confirmed || r.config.LeaseNamespace == "" {
		return
	}
	// RBAC may have refused it as well: only the process's own identity tells these apart.
	me, reviewErr := r.config.Clients.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if reviewErr != nil || me.Status.UserInfo.Username == r.stored.Spec.Username {
		return
	}
	r.conflict = &conflictingReport{uid: r.stored.UID, err: err}
}

// takeOver deletes the stored report if another identity wrote it and its process is lost,
// so that this process can write its own. A process is lost when it has not renewed the
// Lease for LeaseDuration, by this process's clock. Without delete permission, takeOver
// waits for the report to be removed.
func (r *Reporter) takeOver(ctx context.Context) error {
	c := r.conflict
	if c == nil || c.uid != r.stored.UID {
		r.conflict = nil
		return nil
	}
	lease, err := r.config.Clients.Kube.CoordinationV1().Leases(r.config.LeaseNamespace).Get(ctx, r.name, metav1.GetOptions{})
	version := ""
	switch {
	case err == nil:
		version = lease.ResourceVersion
	case !apierrors.IsNotFound(err):
		return err
	}
	now := r.config.Clock.Now()
	if c.since.IsZero() || c.lease != version {
		c.lease, c.since = version, now
	}
	if now.Before(c.since.Add(LeaseDuration)) {
		return c.err
	}
	err = r.reports().Delete(ctx, r.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &r.stored.UID, ResourceVersion: &r.stored.ResourceVersion},
	})
	if apierrors.IsConflict(err) {
		// The process that wrote it is alive after all.
		c.since = time.Time{}
		return c.err
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; %w: %w", c.err, errDeleteFailed, err)
	}
	klog.FromContext(ctx).Info("Deleted the feature report of a lost process of another identity, to replace it", "featureReport", klog.KRef(r.config.Namespace, r.name), "by", r.stored.Spec.Username)
	r.stored, r.conflict = nil, nil
	return nil
}
