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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// duplicateHolders reads the counter, of which a process has one.
func duplicateHolders(t *testing.T) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "feature_lifecycle_report_duplicate_holders_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// TestLeaseOfLostProcessIsNoDuplicateHolder: however long it stays because this process
// fails to renew it.
func TestLeaseOfLostProcessIsNoDuplicateHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
		f := prepare(t, nil)
		f.left("me")
		failed := 0
		f.kube.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			failed++
			return true, nil, apierrors.NewInternalError(errors.New("no space"))
		})
		before := duplicateHolders(t)
		f.startWith(klog.NewContext(t.Context(), logger))
		defer f.end()
		f.pass(10 * time.Minute)
		if n := duplicateHolders(t) - before; n > 0 || strings.Contains(logs.String(), "Another process") || failed < 10 {
			t.Errorf("%v duplicate holders were counted, and %d renewals failed; the log says:\n%s", n, failed, logs)
		}
	})
}

// TestDuplicateHoldersAreLoggedOnceAndCounted: each process logs it. A process that replaces
// another one, which terminates soon or has terminated, logs nothing.
func TestDuplicateHoldersAreLoggedOnceAndCounted(t *testing.T) {
	for name, test := range map[string]struct {
		// together is for how long both live.
		together          time.Duration
		says              int
		fewest, mostTimes float64
	}{
		"both stay":                            {time.Hour, 2, 100, 1000},
		"one is replaced":                      {40 * time.Second, 0, 1, 10},
		"one had ended without taking it away": {0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
				logs := logger.GetSink().(ktesting.Underlier).GetBuffer()
				ctx := klog.NewContext(t.Context(), logger)
				f := prepare(t, nil)
				f.startWith(ctx)
				f.pass(time.Minute)
				before := duplicateHolders(t)
				second := prepare(t, func(c *ReporterConfig) { c.Clients = Clients{Features: f.server, Kube: f.kube} })
				if test.together == 0 {
					f.end()
				}
				second.startWith(ctx)
				defer second.end()
				f.pass(test.together)
				if test.together > 0 {
					f.end()
				}
				f.pass(10 * time.Minute)
				if said := logs.String(); strings.Count(said, "Another process reports feature gates under the same name") != test.says {
					t.Errorf("the log says:\n%swant it %d times", said, test.says)
				}
				if n := duplicateHolders(t) - before; n < test.fewest || n > test.mostTimes {
					t.Errorf("%v duplicate holders were counted, want %v to %v", n, test.fewest, test.mostTimes)
				}
			})
		})
	}
}
