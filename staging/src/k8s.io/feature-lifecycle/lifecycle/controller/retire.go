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

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/retry"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/klog/v2"
)

// reportRetention is how long the report of a process is kept that ended
// without taking it away, so that people see what is gone.
const reportRetention = time.Hour

// mostRetirePause is the longest pause before deleting a report is tried again.
const mostRetirePause = 15 * time.Minute

// Why a report stays although its process was to be gone.
var (
	errNotHeardOf = errors.New("the Lease was made, and nothing was heard of it yet")
	errCameBack   = errors.New("the process has come back")
)

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

// retireReports deletes the reports, and the Leases, of processes that have been
// gone for long or ended in order, so that instances with ever new names do not
// pile up. Each is looked after by one server.
func (c *Controller) retireReports(ctx context.Context) {
	now := c.config.Clock.Now()
	servers := able(c.serversNow(), false)
	// What is known of those that are not to go any more is dropped.
	failed := map[string]postponement{}
	try := func(name string, retire func() error, complain func(again time.Duration, err error)) {
		tried := c.unretired[name]
		if now.Before(tried.next) {
			failed[name] = tried
			return
		}
		if err := retire(); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			tried = tried.fail(now)
			failed[name] = tried
			complain(tried.next.Sub(now), err)
		}
	}
	logger := klog.FromContext(ctx)
	for _, report := range c.reports.unusual() {
		if leader.Of(report.Name, servers) != c.config.ServerID || !c.retires(report, now) {
			continue
		}
		try(report.Name, func() error { return c.retire(ctx, report) }, func(again time.Duration, err error) {
			logger.Info("The report of a process that is gone could not be deleted; trying again later, or delete it yourself", "featureReport", klog.KObj(report), "by", report.Spec.Username, "after", again, "err", err)
		})
	}
	for _, lease := range c.orphans(now) {
		if leader.Of(lease.Name, servers) != c.config.ServerID {
			continue
		}
		reference := &v1alpha1.LeaseReference{Namespace: lease.Namespace, Name: lease.Name}
		try("lease/"+lease.String(), func() error { return c.retireLease(ctx, reference) }, func(again time.Duration, err error) {
			logger.Info("The Lease of a process that is gone could not be deleted; trying again later, or delete it yourself", "lease", klog.KRef(lease.Namespace, lease.Name), "after", again, "err", err)
		})
	}
	c.unretired = failed
}

// orphans are the Leases of reporters that no report names and nobody has renewed for
// long: a process that dies between writing its Lease and its first report leaves one.
func (c *Controller) orphans(now time.Time) []types.NamespacedName {
	var orphans []types.NamespacedName
	for _, informer := range c.config.Leases {
		for _, object := range informer.GetStore().List() {
			lease := asLease(object)
			if lease == nil || !strings.HasPrefix(lease.Name, lease.Labels[v1alpha1.LabelComponent]+".") {
				continue
			}
			key := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
			if c.reports.named(key) {
				continue
			}
			alive, since := c.liveness.lease(key, now)
			if !alive && !now.Before(c.expired(key, since).Add(reportRetention)) {
				orphans = append(orphans, key)
			}
		}
	}
	return orphans
}

// expired is when a Lease expired that was noticed to have at since. A server that started
// later has not seen the process go. Counted from there, reports would pile up where servers
// restart more often than once in the retention. For so long a time the process's own clock
// will do.
func (c *Controller) expired(lease types.NamespacedName, since time.Time) time.Time {
	if expired, ok := c.liveness.leaseExpired(lease); ok && expired.Before(since) {
		return expired
	}
	return since
}

// postponement is that of a report that could not be deleted: how often in a row, and
// when that is tried again.
type postponement struct {
	failures int
	next     time.Time
}

// fail counts another failure. The pause doubles: what the server refuses it refuses until
// somebody changes permissions.
func (p postponement) fail(now time.Time) postponement {
	failures := p.failures + 1
	return postponement{failures, now.Add(retry.Doubled(failures, noticePeriod, mostRetirePause))}
}

// retires says whether a report should go. That of a node component goes with
// its Node by itself, unless it was written when there was none.
func (c *Controller) retires(report *v1alpha1.FeatureReport, now time.Time) bool {
	alive, since, exists := c.alive(report, now)
	if !exists {
		return !now.Before(c.liveness.nodeMissing(report.Name, now).Add(reportRetention))
	}
	c.liveness.nodeFound(report.Name)
	lease := report.Spec.Liveness.Lease
	if alive || lease == nil {
		return false
	}
	since = c.expired(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, since)
	return tracker.Terminating(report) || !now.Before(since.Add(reportRetention))
}

// retire deletes the Lease first: one that no report names stays for long.
func (c *Controller) retire(ctx context.Context, report *v1alpha1.FeatureReport) error {
	if err := c.retireLease(ctx, report.Spec.Liveness.Lease); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	c.liveness.nodeFound(report.Name)
	return c.config.Client.FeaturesV1alpha1().FeatureReports(report.Namespace).Delete(ctx, report.Name, metav1.DeleteOptions{
		// The process may have come back: then the object is another one.
		Preconditions: &metav1.Preconditions{UID: &report.UID, ResourceVersion: &report.ResourceVersion},
	})
}

// retireLease returns an error for which apierrors.IsNotFound is true when there is no
// such Lease, whatever was heard of it.
func (c *Controller) retireLease(ctx context.Context, lease *v1alpha1.LeaseReference) error {
	if lease == nil {
		return nil
	}
	client := c.config.Tasks.Dynamic.Resource(leases).Namespace(lease.Namespace)
	// The version that was found to have expired, so that one which was renewed stays.
	version, known := c.liveness.expiredLease(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, c.config.Clock.Now())
	switch {
	case known && version == nil:
		return apierrors.NewConflict(leases.GroupResource(), lease.Name, errCameBack)
	case !known:
		// Reports and Leases are watched apart: the process may have come back with a Lease
		// of which nothing was heard yet, and its report be the one that was.
		object, err := client.Get(ctx, lease.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		stored := &coordinationv1.Lease{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stored); err != nil {
			return fmt.Errorf("reading Lease %s/%s: %w", lease.Namespace, lease.Name, err)
		}
		renewed := stored.CreationTimestamp.Time
		if stored.Spec.RenewTime != nil {
			renewed = stored.Spec.RenewTime.Time
		}
		if c.config.Clock.Now().Before(renewed.Add(reportRetention)) {
			return apierrors.NewConflict(leases.GroupResource(), lease.Name, errNotHeardOf)
		}
		// Nothing will be heard of it: it has lost the label by which Leases are watched, say,
		// and nobody renews it. For so long a time the process's own clock will do.
		version = &metav1.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion}
	}
	return client.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: version})
}
