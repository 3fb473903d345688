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
	"testing"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestReporterAnnouncesGateWithItsOwnLease(t *testing.T) {
	with := func(node string, lease *v1alpha1.LeaseReference) *v1alpha1.FeatureReport {
		r := report("c", "1")
		r.Spec.NodeName, r.Spec.Liveness.Lease = node, lease
		return r
	}
	own := &v1alpha1.LeaseReference{Namespace: "leases", Name: "c.1"}
	for name, tc := range map[string]struct {
		report *v1alpha1.FeatureReport
		want   bool
	}{
		"a process with a Lease of its own":           {with("", own), true},
		"a process on a node":                         {with("n1", nil), false},
		"one that says so and names a Lease":          {with("n1", own), false},
		"one that hides its node":                     {with("", nil), false},
		"one that hides its node and borrows a Lease": {with("", &v1alpha1.LeaseReference{Namespace: "leases", Name: "other.1"}), false},
	} {
		if got := announces(tc.report); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
