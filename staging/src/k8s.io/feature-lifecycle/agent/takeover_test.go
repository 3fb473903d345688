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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"
)

// another is the identity of an earlier process of the instance.
const another = "system:serviceaccount:ns:earlier"

// whose makes the server decide as the storage does: only the identity that wrote a report
// may change it, and others may delete it with that permission.
func (f *fixture) whose(me string, mayDelete bool) {
	refuse := func(because string) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(v1alpha1.Resource("featurereports"), "comp.i1", errors.New(because))
	}
	stored := func(action clienttesting.Action) string {
		object, err := f.server.Tracker().Get(action.GetResource(), "ns", "comp.i1")
		if err != nil {
			return me
		}
		return object.(*v1alpha1.FeatureReport).Spec.Username
	}
	f.server.PrependReactor("update", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if stored(action) != me {
			return refuse("only who created the report may change it")
		}
		return false, nil, nil
	})
	f.server.PrependReactor("delete", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if stored(action) != me && !mayDelete {
			return refuse("that needs the verb delete on featurereports/any")
		}
		return false, nil, nil
	})
	f.server.PrependReactor("create", "featurereports", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*v1alpha1.FeatureReport).Spec.Username = me
		return false, nil, nil
	})
	f.kube.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: me}}}, nil
	})
}

// left has the server have the report of an earlier process and its Lease.
func (f *fixture) left(username string) *coordinationv1.Lease {
	f.t.Helper()
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "comp.i1", UID: "uid-1", ResourceVersion: "1"}
	renewed := metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: meta, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("earlier"), RenewTime: &renewed}}
	report := &v1alpha1.FeatureReport{ObjectMeta: meta, Spec: v1alpha1.FeatureReportSpec{Username: username, Features: []v1alpha1.ReportedFeature{{Name: "Old"}}}}
	if err := errors.Join(f.server.Tracker().Add(report), f.kube.Tracker().Add(lease)); err != nil {
		f.t.Fatal(err)
	}
	return lease
}

// renewals are how often the reporter itself has written the Lease.
func (f *fixture) renewals() int {
	n := 0
	for _, a := range f.kube.Actions() {
		if a.Matches("update", "leases") || a.Matches("create", "leases") {
			n++
		}
	}
	return n
}

// TestReportOfAnotherIdentityIsTakenOver: once its process is lost, with permission to delete it.
func TestReportOfAnotherIdentityIsTakenOver(t *testing.T) {
	for name, test := range map[string]struct {
		wrote            string
		lives, may, rbac bool
		taken            bool
		says             string
	}{
		"its process is lost":                       {wrote: another, may: true, taken: true, says: "to replace it"},
		"its process is lost, and it may not go":    {wrote: another, says: "another identity wrote the report of this name; delete it, or permit delete on featurereports/any"},
		"its process lives":                         {wrote: another, may: true, lives: true},
		"it is one's own, and RBAC refuses a while": {wrote: "me", may: true, rbac: true, taken: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				f.whose("me", test.may)
				lease := f.left(test.wrote)
				until := time.Now().Add(10 * time.Second)
				f.server.PrependReactor("update", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
					return test.rbac && time.Now().Before(until), nil, apierrors.NewForbidden(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("no role"))
				})
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
				f.startWith(klog.NewContext(t.Context(), logger))
				defer f.end()
				f.pass(LeaseDuration / 2)
				if !test.rbac {
					// Whoever looks is not to take the earlier process for one that lives.
					if n := f.renewals(); n != 1 || f.report().Spec.Username != another {
						t.Errorf("the Lease was written %d times, the report is %s's; want once, before it was known whose it is", n, f.report().Spec.Username)
					}
				}
				for i := range 30 {
					if test.lives {
						// Written behind the reporter's back, as by another process.
						lease.ResourceVersion = string(rune('a' + i))
						if err := f.kube.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease.DeepCopy(), "ns"); err != nil {
							t.Fatal(err)
						}
					}
					f.pass(10 * time.Second)
				}
				started := false
				select {
				case <-f.reporter.Started():
					started = true
				default:
				}
				if by := f.report().Spec.Username; started != test.taken || (by == "me") != test.taken || (f.names() == "A") != test.taken {
					t.Errorf("after 5 minutes reporting has started: %t, and the report is %s's, with %s; want that it was taken over: %t", started, by, f.names(), test.taken)
				}
				if !strings.Contains(logs.String(), test.says) {
					t.Errorf("the log does not say %q:\n%s", test.says, logs)
				}
				deleted := 0
				for _, a := range f.server.Actions() {
					if a.Matches("delete", "featurereports") {
						deleted++
					}
				}
				if want := test.wrote == another && !test.lives; (deleted > 0) != want {
					t.Errorf("%d attempts to delete the report; want any: %t", deleted, want)
				}
			})
		})
	}
}
