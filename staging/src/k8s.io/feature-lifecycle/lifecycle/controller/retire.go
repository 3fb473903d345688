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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/klog/v2"
)

// reportRetention is how long the report of a process is kept that ended
// without taking it away. Reports of node components go with their Node.
const reportRetention = time.Hour

// retireReports deletes the reports of processes that have been gone for long,
// so that instances with ever new names do not pile up. Each report is looked
// after by one server.
func (c *Controller) retireReports(ctx context.Context) {
	now := c.config.Clock.Now()
	var servers []string
	for _, server := range c.serversNow() {
		servers = append(servers, server.ID)
	}
	for _, report := range c.reports.matching(func(report *v1alpha1.FeatureReport) bool {
		if report.Spec.Liveness.Lease == nil || leader.Of(report.Name, servers) != c.config.ServerID {
			return false
		}
		alive, since, _ := c.alive(report, now)
		return !alive && !now.Before(since.Add(reportRetention))
	}) {
		err := c.config.Client.FeaturesV1alpha1().FeatureReports(report.Namespace).Delete(ctx, report.Name, metav1.DeleteOptions{
			// The process may have come back: then the object is another one.
			Preconditions: &metav1.Preconditions{UID: &report.UID, ResourceVersion: &report.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Info("The report of a process that is gone could not be deleted; trying again", "featureReport", klog.KObj(report), "err", err)
		}
	}
}
