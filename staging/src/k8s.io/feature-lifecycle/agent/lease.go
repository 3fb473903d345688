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
	// LeaseDuration is the time that a process counts as alive after its Lease was observed to
	// change.
	LeaseDuration = 40 * time.Second
	// renewPeriod leaves room for three failures.
	renewPeriod = 10 * time.Second
	// maxDuplicateHolders is how many more times the Lease may be found renewed by another
	// process than by this one. A process that is being replaced renews it until it has
	// terminated, which may take a minute.
	maxDuplicateHolders = 6
)

// ensureLease writes the Lease before the first report. A controller may act on the report
// at once, and a process that crashes then has to leave a Lease that expires: a process
// without one counts as terminated in order. No controller reads the Lease where reports
// are not accepted, so the server has to serve reports first. It returns when to renew the
// Lease.
func (r *Reporter) ensureLease(ctx context.Context) (renewal time.Duration, err error) {
	if r.confirmed || r.config.LeaseNamespace == "" {
		return 0, nil
	}
	stored, err := r.reports().Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case err == nil:
		// An earlier process of this instance left it.
		r.stored = stored
		if err := r.takeOver(ctx); err != nil {
			return 0, err
		}
	case backoff.IsNotFound(err) && !backoff.IsAPINotServed(err):
	default:
		return 0, err
	}
	if r.config.Owner != nil {
		if r.owner, err = r.config.Owner(ctx); err != nil {
			return 0, err
		}
	}
	r.attempted = true
	return r.renew(ctx), nil
}

// confirm starts renewing the Lease with the first report.
func (r *Reporter) confirm(ctx context.Context, renewal time.Duration) {
	if r.confirmed {
		return
	}
	r.confirmed = true
	r.startedOnce.Do(func() { close(r.started) })
	if r.config.LeaseNamespace != "" {
		ctx, r.stopRenewing = context.WithCancel(ctx)
		r.renewing.Go(func() { r.renewLease(ctx, renewal) })
	}
}

// renewLease keeps the reporter's own Lease until the context ends. The Lease was just
// written, and pause is when to renew it.
func (r *Reporter) renewLease(ctx context.Context, pause time.Duration) {
	for {
		timer := r.config.Clock.NewTimer(pause + backoff.Jitter(pause/20))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		pause = r.renew(ctx)
	}
}

// renew writes the Lease and returns the pause until the next renewal.
func (r *Reporter) renew(ctx context.Context) time.Duration {
	err := r.renewOnce(ctx)
	if err == nil || ctx.Err() != nil {
		r.leaseFailures = 0
		return renewPeriod
	}
	if r.leaseFailures == 0 {
		klog.FromContext(ctx).Info("Failed to renew Lease of feature report, will retry", "lease", klog.KRef(r.config.LeaseNamespace, r.name), "err", err)
	}
	r.leaseFailures++
	if backoff.IsForbidden(err) || backoff.IsNotFound(err) {
		// A server without this system has neither the namespace nor the permission. A
		// new server has them soon.
		return backoff.Delay(r.leaseFailures, minReportBackoff, maxReportBackoff)
	}
	return renewPeriod
}

func (r *Reporter) renewOnce(ctx context.Context) error {
	client := r.config.Clients.Kube.CoordinationV1().Leases(r.config.LeaseNamespace)
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
	r.noteHolder(ctx, lease)
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

// noteHolder counts the renewals of another holder, and logs once when two processes keep
// renewing the same Lease. They overwrite each other's report: the features of one are
// unused in the report of the other. A Lease that was not renewed since it was read last
// has no other holder: the Lease of a lost process stays as it is while this process fails
// to write.
func (r *Reporter) noteHolder(ctx context.Context, lease *coordinationv1.Lease) {
	holder, changed := ptr.Deref(lease.Spec.HolderIdentity, ""), !lease.Spec.RenewTime.Equal(r.observedRenewal)
	r.observedRenewal = lease.Spec.RenewTime
	switch {
	case holder == "" || holder == r.process:
		r.duplicateHolders = max(r.duplicateHolders-1, 0)
		return
	case !changed:
		return
	}
	if r.duplicateHolders++; r.duplicateHolders > 1 {
		// The first one may have been an earlier process that has terminated.
		duplicateHoldersTotal.Inc()
	}
	if r.duplicateHolders > maxDuplicateHolders && !r.duplicatesLogged {
		r.duplicatesLogged = true
		klog.FromContext(ctx).Error(nil, "Another process reports feature gates under the same name, and each overwrites the other's report; unless one of them is terminating, give each its own instance name", "featureReport", klog.KRef(r.config.Namespace, r.name), "process", r.process, "other", holder)
	}
}

// leaseOwners returns the owners of the Lease. An owner with a namespace owns only objects
// of that namespace.
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
