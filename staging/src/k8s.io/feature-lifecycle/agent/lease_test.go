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
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func TestOwnLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, func(c *ReporterConfig) { c.LeaseNamespace = "leases" })
		f.pass(3 * time.Second)
		if lease := f.report().Spec.Liveness.Lease; lease == nil || *lease != (v1alpha1.LeaseReference{Namespace: "leases", Name: "comp.i1"}) {
			t.Fatalf("the report names Lease %+v", lease)
		}
		first, err := f.kube.CoordinationV1().Leases("leases").Get(t.Context(), "comp.i1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.pass(30 * time.Second)
		later, err := f.kube.CoordinationV1().Leases("leases").Get(t.Context(), "comp.i1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if age := later.Spec.RenewTime.Sub(first.Spec.RenewTime.Time); age < 15*time.Second {
			t.Errorf("renewed %s later, want within the duration of %s", age, LeaseDuration)
		}
		f.end()
		if err := f.reporter.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := f.kube.CoordinationV1().Leases("leases").Get(t.Context(), "comp.i1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Lease is left: %v", err)
		}
		if _, err := f.server.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), "comp.i1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the report is left: %v", err)
		}
		if err := f.reporter.Remove(t.Context()); err != nil {
			t.Errorf("removing what is gone: %v", err)
		}
	})
}

// hasLease reports whether the reporter has written its Lease.
func (f *fixture) hasLease() bool {
	_, err := f.kube.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "ns", "comp.i1")
	return err == nil
}

// TestLeaseIsWrittenBeforeReport: a process that crashes as soon as its report can be
// read leaves a Lease, whose expiry shows the crash.
func TestLeaseIsWrittenBeforeReport(t *testing.T) {
	for name, before := range map[string]func(*fixture){
		"the first report": func(*fixture) {},
		"that of an earlier process": func(f *fixture) {
			if err := f.server.Tracker().Add(&v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "comp.i1"}}); err != nil {
				f.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				before(f)
				var late atomic.Bool
				f.server.PrependReactor("*", "featurereports", func(a clienttesting.Action) (bool, runtime.Object, error) {
					if slices.Contains([]string{"create", "update"}, a.GetVerb()) && !f.hasLease() {
						late.Store(true)
					}
					return false, nil, nil
				})
				f.start()
				defer f.end()
				f.pass(3 * time.Second)
				if f.names() != "A" || !f.hasLease() || late.Load() {
					t.Errorf("report of %s, Lease %t, after the report %t", f.names(), f.hasLease(), late.Load())
				}
			})
		})
	}
}

// TestLeaseIsNotWrittenWithoutReports: a server that does not accept reports gets no Lease.
func TestLeaseIsNotWrittenWithoutReports(t *testing.T) {
	resource := v1alpha1.Resource("featurereports")
	for name, err := range map[string]error{
		// The error that client-go makes of "404 page not found".
		"without the API": apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "comp.i1", "404 page not found", 0, true),
		"that forbid it":  apierrors.NewForbidden(resource, "comp.i1", errors.New("no")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				var lifted atomic.Bool
				f.server.PrependReactor("*", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
					return !lifted.Load(), nil, err
				})
				f.start()
				defer f.end()
				f.pass(time.Hour)
				if f.hasLease() || f.writes() != 0 {
					t.Errorf("Lease %t, %d writes of reports", f.hasLease(), f.writes())
				}
				lifted.Store(true)
				f.pass(rejectionBackoff)
				if f.names() != "A" || !f.hasLease() {
					t.Errorf("report of %s, Lease %t", f.names(), f.hasLease())
				}
			})
		})
	}
}

// TestReportIsWrittenWithoutLease: a process that cannot write the Lease reports all the same,
// and writes the Lease as soon as possible.
func TestReportIsWrittenWithoutLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, nil)
		var lifted atomic.Bool
		f.kube.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !lifted.Load(), nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "comp.i1", errors.New("no"))
		})
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		if f.names() != "A" || f.hasLease() {
			t.Errorf("report of %s, Lease %t", f.names(), f.hasLease())
		}
		select {
		case <-f.reporter.Started():
		default:
			t.Error("the reporter has reported and not started")
		}
		lifted.Store(true)
		f.pass(maxReportBackoff)
		if !f.hasLease() {
			t.Error("the Lease was not written")
		}
	})
}

// TestLivenessNamesNodeOrLease: a process has one of them.
func TestLivenessNamesNodeOrLease(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*ReporterConfig)
		want   *v1alpha1.LeaseReference
	}{
		"nothing said":          {nil, &v1alpha1.LeaseReference{Namespace: "ns", Name: "comp.i1"}},
		"a place for its Lease": {func(c *ReporterConfig) { c.LeaseNamespace = "leases" }, &v1alpha1.LeaseReference{Namespace: "leases", Name: "comp.i1"}},
		"a Node":                {func(c *ReporterConfig) { c.NodeName, c.LeaseNamespace = "n1", "leases" }, nil},
	} {
		if diff := cmp.Diff(tc.want, prepare(t, tc.change).reporter.observe().Liveness.Lease); diff != "" {
			t.Errorf("%s: unexpected Lease (-want +got):\n%s", name, diff)
		}
	}
}
