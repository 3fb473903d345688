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

package report

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

// foreign is a report under this process's name that another identity has written: a
// process of the same instance, before its service account got another name say. Nobody
// but that identity may change it.
type foreign struct {
	uid types.UID
	// err is the server's answer to the attempt to change it.
	err error
	// lease is the version of its Lease, "" for none, that was seen last, and since is
	// when it was seen first; zero until then.
	lease string
	since time.Time
}

// errStays: the report of another identity, whose process is gone, could not be deleted.
var errStays = errors.New("its process is gone, and deleting it failed")

// noteForeign finds out whether the report could not be written because somebody else
// wrote the one that is there. From then on the Lease is left alone, which another process
// may renew, until takeOver has decided.
func (r *Reporter) noteForeign(ctx context.Context, err error) {
	if !apierrors.IsForbidden(err) || r.stored == nil || r.confirmed || r.config.LeaseNamespace == "" {
		return
	}
	// RBAC may have refused it, too: only who one is tells these apart.
	me, reviewErr := r.config.Kube.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if reviewErr != nil || me.Status.UserInfo.Username == r.stored.Spec.Username {
		return
	}
	r.foreign = &foreign{uid: r.stored.UID, err: err}
}

// takeOver deletes the stored report if another identity wrote it and its process is gone,
// so that this process can write its own. Gone is who has not renewed the Lease for as
// long as it counts, by this process's clock. Who may not delete it waits until it is gone.
func (r *Reporter) takeOver(ctx context.Context) error {
	f := r.foreign
	if f == nil || f.uid != r.stored.UID {
		r.foreign = nil
		return nil
	}
	lease, err := r.config.Kube.CoordinationV1().Leases(r.config.LeaseNamespace).Get(ctx, r.name, metav1.GetOptions{})
	version := ""
	switch {
	case err == nil:
		version = lease.ResourceVersion
	case !apierrors.IsNotFound(err):
		return err
	}
	now := r.config.Clock.Now()
	if f.since.IsZero() || f.lease != version {
		f.lease, f.since = version, now
	}
	if now.Before(f.since.Add(LeaseDuration)) {
		return f.err
	}
	err = r.config.Features.FeaturesV1alpha1().FeatureReports(r.config.Namespace).Delete(ctx, r.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &r.stored.UID, ResourceVersion: &r.stored.ResourceVersion},
	})
	if apierrors.IsConflict(err) {
		// Who wrote it lives after all.
		f.since = time.Time{}
		return f.err
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("%w; %w: %w", f.err, errStays, err)
	}
	klog.FromContext(ctx).Info("The feature report of a process that is gone was deleted; this one takes its place", "featureReport", klog.KRef(r.config.Namespace, r.name), "by", r.stored.Spec.Username)
	r.stored, r.foreign = nil, nil
	return nil
}
