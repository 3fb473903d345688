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

package tracker

import (
	"cmp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// ReportRetention is the time that the report of a failed process is kept, so that users see
// what failed.
const ReportRetention = time.Hour

// ExpiredReports returns the reports of processes that terminated or have been unreachable
// for the retention, sorted by name, as far as a function selects their names. Without
// deletion, instances with ever new names would pile up. The report of a node component is
// deleted with its Node, unless it was written when there was none.
func (t *Tracker) ExpiredReports(now time.Time, selected func(report string) bool) []*v1alpha1.FeatureReport {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(t.index.notUniform(), func(report *v1alpha1.FeatureReport) bool {
		return !selected(report.Name) || !t.reportExpired(report, now)
	})
}

// reportExpired returns true for a report that is to be deleted.
func (t *Tracker) reportExpired(report *v1alpha1.FeatureReport, now time.Time) bool {
	alive, since, exists := t.alive(report, now)
	if !exists {
		return !now.Before(noticed(t.absences.nodesOf, report.Name, now).Add(ReportRetention))
	}
	delete(t.absences.nodesOf, report.Name)
	lease, ok := leaseOf(report)
	if alive || !ok {
		return false
	}
	return Terminating(report) || !now.Before(t.expiredSince(lease, since).Add(ReportRetention))
}

// ExpiredLeases returns the Leases of reporters that no report names and that were not
// renewed for the retention, sorted. A process that crashes between writing its Lease
// and its first report leaves one.
func (t *Tracker) ExpiredLeases(now time.Time) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	var expired []types.NamespacedName
	for key, lease := range t.leases {
		if !strings.HasPrefix(key.Name, lease.component+".") || t.index.named(key) {
			continue
		}
		if alive, since := t.leaseAlive(key, now); !alive && !now.Before(t.expiredSince(key, since).Add(ReportRetention)) {
			expired = append(expired, key)
		}
	}
	slices.SortFunc(expired, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return expired
}

// expiredSince returns when a Lease expired that was noticed at since to have. A server that
// started later has not seen the process end. Counted from its start, reports would pile up
// where servers restart more often than once in the retention. For so long a time the clock
// of the process will do.
func (t *Tracker) expiredSince(lease types.NamespacedName, since time.Time) time.Time {
	if expired, ok := t.leases.expiredByOwner(lease); ok && expired.Before(since) {
		return expired
	}
	return since
}

// LeaseAbandoned returns true for a stored Lease that was not observed, and was not
// renewed for the retention. It will never be observed: for example, it has lost the
// label by which Leases are watched. For so long a time the clock of the process will do.
func LeaseAbandoned(stored *coordinationv1.Lease, now time.Time) bool {
	renewed := stored.CreationTimestamp.Time
	if stored.Spec.RenewTime != nil {
		renewed = stored.Spec.RenewTime.Time
	}
	return !now.Before(renewed.Add(ReportRetention))
}

// Deletion is the version of a report to delete.
type Deletion struct {
	Namespace, Name string
	// Preconditions are those of that version: if the process has returned, the object is
	// another one.
	Preconditions metav1.Preconditions
}

// BeginDeletion records that the caller is about to delete a report, and returns what to
// delete. The absence of its Node counts from the next report of this name.
func (t *Tracker) BeginDeletion(report *v1alpha1.FeatureReport) Deletion {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.absences.nodesOf, report.Name)
	return Deletion{report.Namespace, report.Name, metav1.Preconditions{UID: &report.UID, ResourceVersion: &report.ResourceVersion}}
}
