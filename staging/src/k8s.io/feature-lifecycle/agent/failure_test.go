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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// TestFailureIsLoggedOnceWithCause: with the response of the server.
func TestFailureIsLoggedOnceWithCause(t *testing.T) {
	reports := v1alpha1.Resource("featurereports")
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"without the API":       {apierrors.NewNotFound(reports, ""), "the server does not have the API features.k8s.io/v1alpha1"},
		"without the namespace": {apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), "namespace ns does not exist; create it"},
		"forbidden":             {apierrors.NewForbidden(reports, "comp.i1", errors.New("no")), "the server does not allow it"},
		"in trouble":            {apierrors.NewInternalError(errors.New("etcd")), "Failed to report feature gates"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				lift := f.answering(test.err)
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
				f.startWith(klog.NewContext(t.Context(), logger))
				defer f.end()
				f.pass(10 * time.Minute)
				if said := logs.String(); strings.Count(said, test.says) != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), test.err.Error()) {
					t.Errorf("the log says:\n%swant one line that says %q and %q", said, test.says, test.err)
				}
				lift()
				f.pass(16 * time.Minute)
				if said := logs.String(); !strings.Contains(said, "Reporting feature gates again") {
					t.Errorf("the log does not say that the report is written again:\n%s", said)
				}
			})
		})
	}
}

// TestRejectionsOfReturningServerDelayReportLittle: a server rejects reports until it has read
// its roles. However long it was down, the report is written soon after that.
func TestRejectionsOfReturningServerDelayReportLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, nil)
		permit := f.answering(apierrors.NewForbidden(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("no")))
		// Asked before the other one.
		reach := f.answering(errors.New("connection refused"))
		f.start()
		defer f.end()
		f.pass(time.Hour)
		reach()
		// At the latest then it was refused.
		f.pass(maxReportBackoff)
		permit()
		f.pass(maxReportBackoff + 10*time.Second)
		f.report()
	})
}
