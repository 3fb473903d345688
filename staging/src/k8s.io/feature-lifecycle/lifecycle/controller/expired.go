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

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/klog/v2"
)

// maxDeleteBackoff is the longest pause before deleting a report is tried again.
const maxDeleteBackoff = 15 * time.Minute

// The reasons for keeping a report whose process seemed lost.
var (
	errNotObserved = errors.New("the Lease exists and has not been observed yet")
	errReturned    = errors.New("the process has returned")
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// expirer deletes what processes left behind.
type expirer struct {
	config  *Config
	tracker *tracker.Tracker
	// backoff is that of reports and Leases that could not be deleted, by name.
	backoff map[string]deleteBackoff
}

// deleteExpired deletes the reports, and the Leases, of processes that terminated or
// have been unreachable for long, so that instances with ever new names do not
// accumulate. One server deletes each.
func (e *expirer) deleteExpired(ctx context.Context) {
	now := e.config.Clock.Now()
	servers := leader.Candidates(e.tracker.Servers("", now))
	mine := func(name string) bool { return leader.Of(name, servers) == e.config.ServerID }
	// The backoff of objects that are not to be deleted any more is dropped.
	failed := map[string]deleteBackoff{}
	try := func(name string, remove func() error, complain func(after time.Duration, err error)) {
		tried := e.backoff[name]
		if now.Before(tried.next) {
			failed[name] = tried
			return
		}
		if err := remove(); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			tried = tried.fail(now)
			failed[name] = tried
			complain(tried.next.Sub(now), err)
		}
	}
	logger := klog.FromContext(ctx)
	for _, report := range e.tracker.ExpiredReports(now, mine) {
		try(report.Name, func() error { return e.removeReport(ctx, report) }, func(after time.Duration, err error) {
			logger.Info("Failed to delete the report of a lost process, will retry; or delete it yourself", "featureReport", klog.KObj(report), "by", report.Spec.Username, "after", after, "err", err)
		})
	}
	for _, lease := range e.tracker.ExpiredLeases(now) {
		if !mine(lease.Name) {
			continue
		}
		reference := &v1alpha1.LeaseReference{Namespace: lease.Namespace, Name: lease.Name}
		try("lease/"+lease.String(), func() error { return e.removeLease(ctx, reference) }, func(after time.Duration, err error) {
			logger.Info("Failed to delete the Lease of a lost process, will retry; or delete it yourself", "lease", klog.KRef(lease.Namespace, lease.Name), "after", after, "err", err)
		})
	}
	e.backoff = failed
}

// deleteBackoff is the backoff of an object that could not be deleted: how often in a row, and
// when it is tried again.
type deleteBackoff struct {
	failures int
	next     time.Time
}

// fail counts another failure. The pause doubles: the server refuses the same until
// permissions change.
func (b deleteBackoff) fail(now time.Time) deleteBackoff {
	failures := b.failures + 1
	return deleteBackoff{failures, now.Add(backoff.Exponential(failures, noticePeriod, maxDeleteBackoff))}
}

// removeReport deletes a report, and its Lease first: one that no report names stays for long.
func (e *expirer) removeReport(ctx context.Context, report *v1alpha1.FeatureReport) error {
	if err := e.removeLease(ctx, report.Spec.Liveness.Lease); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	deletion := e.tracker.BeginDeletion(report)
	reports := e.config.Client.FeaturesV1alpha1().FeatureReports(deletion.Namespace)
	return reports.Delete(ctx, deletion.Name, metav1.DeleteOptions{Preconditions: &deletion.Preconditions})
}

// removeLease deletes a Lease. It returns an error for which apierrors.IsNotFound is true when
// there is none, whatever was observed of it.
func (e *expirer) removeLease(ctx context.Context, lease *v1alpha1.LeaseReference) error {
	if lease == nil {
		return nil
	}
	client := e.config.Tasks.Dynamic.Resource(leases).Namespace(lease.Namespace)
	// Delete the version that was found to have expired: a renewed Lease stays.
	version, known := e.tracker.ExpiredLease(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, e.config.Clock.Now())
	switch {
	case known && version == nil:
		return apierrors.NewConflict(leases.GroupResource(), lease.Name, errReturned)
	case !known:
		// Reports and Leases are watched separately: the process may have returned with a Lease
		// that was not observed yet, and its report be the old one.
		object, err := client.Get(ctx, lease.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored := &coordinationv1.Lease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored); err != nil {
			return fmt.Errorf("reading Lease %s/%s: %w", lease.Namespace, lease.Name, err)
		}
		if !tracker.LeaseAbandoned(stored, e.config.Clock.Now()) {
			return apierrors.NewConflict(leases.GroupResource(), lease.Name, errNotObserved)
		}
		version = &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion}
	}
	return client.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: version})
}
