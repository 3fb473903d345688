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
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

const (
	// LeaseDuration is how long others take the process for alive after the
	// Lease was seen to change.
	LeaseDuration = 40 * time.Second
	// renewPeriod leaves room for three failures.
	renewPeriod = 10 * time.Second
	// mostRivals is how many more times the Lease may be found renewed by another process
	// than by this one: one that is replaced renews it until it has ended, which may take
	// a minute.
	mostRivals = 6
)

// renewLease keeps the reporter's own Lease until the context ends. It was written
// just now, and wait is when to do so again.
func (r *Reporter) renewLease(ctx context.Context, wait time.Duration) {
	for {
		timer := r.config.Clock.NewTimer(wait + backoff.Jitter(wait/20))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		wait = r.renew(ctx)
	}
}

// renew writes the Lease and returns when to do so again.
func (r *Reporter) renew(ctx context.Context) time.Duration {
	err := r.renewOnce(ctx)
	if err == nil || ctx.Err() != nil {
		r.leaseFailures = 0
		return renewPeriod
	}
	if r.leaseFailures == 0 {
		klog.FromContext(ctx).Info("Renewing the Lease of the feature report failed; trying again", "lease", klog.KRef(r.config.LeaseNamespace, r.name), "err", err)
	}
	r.leaseFailures++
	if backoff.IsForbidden(err) || backoff.IsNotFound(err) {
		// A server without this system has neither the namespace nor the
		// permission; one that is new has them soon.
		return backoff.Delay(r.leaseFailures, minBackoff, maxBackoff)
	}
	return renewPeriod
}

func (r *Reporter) renewOnce(ctx context.Context) error {
	client := r.config.Kube.CoordinationV1().Leases(r.config.LeaseNamespace)
	now := metav1.NewMicroTime(r.config.Clock.Now())
	lease, err := client.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.config.LeaseNamespace, Name: r.name, Labels: map[string]string{v1alpha1.LabelComponent: r.config.Component}, OwnerReferences: r.leaseOwners()},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To(r.process),
				LeaseDurationSeconds: ptr.To(int32(LeaseDuration / time.Second)),
				AcquireTime:          &now,
				RenewTime:            &now,
			},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	r.noteRival(ctx, lease)
	lease = lease.DeepCopy()
	metav1.SetMetaDataLabel(&lease.ObjectMeta, v1alpha1.LabelComponent, r.config.Component)
	if owners := r.leaseOwners(); owners != nil {
		lease.OwnerReferences = owners
	}
	lease.Spec.HolderIdentity = ptr.To(r.process)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(LeaseDuration / time.Second))
	lease.Spec.RenewTime = &now
	_, err = client.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// noteRival says when two processes go on renewing one Lease: they overwrite each other's
// report, and whatever one of them uses, the other one says that nobody does. A Lease that
// nobody has renewed since the last look has no rival: that of a process which is gone stays as
// it is while this one fails to write.
func (r *Reporter) noteRival(ctx context.Context, lease *coordinationv1.Lease) {
	holder, changed := ptr.Deref(lease.Spec.HolderIdentity, ""), !lease.Spec.RenewTime.Equal(r.seenRenewal)
	r.seenRenewal = lease.Spec.RenewTime
	switch {
	case holder == "" || holder == r.process:
		r.rivals = max(r.rivals-1, 0)
		return
	case !changed:
		return
	}
	if r.rivals++; r.rivals > 1 {
		// The first may have been an earlier process that has ended.
		rivalsTotal.Inc()
	}
	if r.rivals > mostRivals && !r.rivalled {
		r.rivalled = true
		klog.FromContext(ctx).Error(nil, "Another process reports feature gates under the same name, and each overwrites what the other one says; unless one of them is ending, give each an instance of its own", "featureReport", klog.KRef(r.config.Namespace, r.name), "process", r.process, "other", holder)
	}
}

// leaseOwners are the owners of the Lease. An owner that has a namespace owns in that
// alone.
func (r *Reporter) leaseOwners() []metav1.OwnerReference {
	if r.owner == nil || r.config.LeaseNamespace != r.config.Namespace {
		return nil
	}
	return []metav1.OwnerReference{*r.owner}
}

func (r *Reporter) checkPeriod() time.Duration {
	if r.config.LeaseNamespace != "" {
		return leasedCheckPeriod
	}
	return checkPeriod
}

func (r *Reporter) lease() *v1alpha1.LeaseReference {
	if r.config.LeaseNamespace != "" {
		return &v1alpha1.LeaseReference{Namespace: r.config.LeaseNamespace, Name: r.name}
	}
	return nil
}
