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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/backoff"
)

// TestMissingReportIsWrittenSoonBeforeNodeExists: a process reads its Node often, so a check
// was just made, and the next one is far.
func TestMissingReportIsWrittenSoonBeforeNodeExists(t *testing.T) {
	remove := func(f *fixture) {
		f.t.Helper()
		if err := f.server.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err != nil {
			f.t.Fatal(err)
		}
	}
	for name, failure := range map[string]error{
		"the server takes it":                       nil,
		"the server has too many requests at first": apierrors.NewTooManyRequests("later", 1),
		"the server is in trouble at first":         apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, func(c *ReporterConfig) { c.NodeName = "n1" })
				var broken atomic.Bool
				f.server.PrependReactor("create", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
					return broken.Load() && failure != nil, nil, failure
				})
				f.start()
				defer f.end()
				f.pass(2*time.Second + 4*ownerPeriod)
				remove(f)
				broken.Store(true)
				f.pass(3 * ownerPeriod)
				broken.Store(false)
				// The second pause after throttling is the longest one possible here.
				f.pass(4 * backoff.ThrottleWindow)
				f.report()
				if err := f.kube.Tracker().Add(node("n1")); err != nil {
					t.Fatal(err)
				}
				f.pass(checkPeriod + checkPeriod/5)
				if owners := f.report().OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-n1" {
					t.Errorf("owners %+v after the Node appeared", owners)
				}
			})
		})
	}
}

// gone is what client-go makes of "404 page not found".
var gone = apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1alpha1.Resource("featurereports"), "comp.i1", "404 page not found", 0, true)

// lacking makes the server one without the API while it is true. It is called before the
// process starts, which asks the server.
func (f *fixture) lacking(err error) *atomic.Bool {
	var lacks atomic.Bool
	f.server.PrependReactor("*", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
		return lacks.Load(), nil, err
	})
	return &lacks
}

// renewed is the time at which the Lease was renewed last.
func (f *fixture) renewed() time.Time {
	f.t.Helper()
	lease, err := f.kube.CoordinationV1().Leases("ns").Get(f.t.Context(), "comp.i1", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return lease.Spec.RenewTime.Time
}

// TestLeaseIsNotRenewedWithoutAPI: no controller checks meanwhile whether the process is alive. It
// renews its Lease before it reports again, and continues both after that.
func TestLeaseIsNotRenewedWithoutAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, nil)
		reporting := func() bool { is, _ := f.reporter.Reporting(); return is }
		if reporting() {
			t.Error("before the first report it says that it reports")
		}
		_, started := f.reporter.Reporting()
		var back, late atomic.Bool
		f.server.PrependReactor("update", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			late.Store(late.Load() || back.Load() && time.Since(f.renewed()) > LeaseDuration)
			return false, nil, nil
		})
		lacks := f.lacking(gone)
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		select {
		case <-started:
		default:
			t.Error("the channel was not closed when it reported")
		}
		_, stopped := f.reporter.Reporting()
		lacks.Store(true)
		f.pass(leasedCheckPeriod + leasedCheckPeriod/5)
		select {
		case <-stopped:
		default:
			t.Error("the channel was not closed when it stopped reporting")
		}
		f.pass(renewPeriod)
		last := f.renewed()
		f.pass(time.Hour)
		if now := f.renewed(); reporting() || !now.Equal(last) {
			t.Errorf("without the API it reports: %t, and the Lease of %s was renewed at %s", reporting(), last, now)
		}
		back.Store(true)
		f.source.see(true, "A")
		lacks.Store(false)
		f.pass(rejectionBackoff)
		if age := time.Since(f.renewed()); !reporting() || !f.report().Spec.Features[0].Enabled || age > 2*renewPeriod || late.Load() {
			t.Errorf("with the API again it reports: %t, found %+v; the Lease is %s old, and came after the report: %t", reporting(), f.report().Spec.Features, age, late.Load())
		}
		before := f.writes()
		f.pass(time.Hour)
		if age, n := time.Since(f.renewed()), f.writes()-before; age > 2*renewPeriod || n != 0 {
			t.Errorf("an hour later the Lease is %s old, and the report was written %d times", age, n)
		}
	})
}

// TestLeaseIsRenewedWhileServerFails: also while the namespace of the report does not exist.
func TestLeaseIsRenewedWhileServerFails(t *testing.T) {
	for name, err := range map[string]error{
		"the namespace is gone":       apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
		"the server is in trouble":    apierrors.NewInternalError(errors.New("etcd")),
		"the server does not answer":  errors.New("connection refused"),
		"it is not allowed any more":  apierrors.NewForbidden(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("no")),
		"the server asks for a pause": apierrors.NewTooManyRequests("later", 1),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				lacks := f.lacking(err)
				f.start()
				defer f.end()
				f.pass(3 * time.Second)
				lacks.Store(true)
				f.pass(10 * time.Minute)
				if is, _ := f.reporter.Reporting(); !is || time.Since(f.renewed()) > 2*renewPeriod {
					t.Errorf("it reports: %t, and the Lease is %s old", is, time.Since(f.renewed()))
				}
			})
		})
	}
}
