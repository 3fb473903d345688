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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/internal/stagger"
)

// manyPeers makes A a feature of many users, and every other one a feature of few.
func manyPeers(users int) func(*ReporterConfig) {
	return func(c *ReporterConfig) {
		c.Peers = func(feature string) int {
			if feature == "A" {
				return users
			}
			return 2
		}
	}
}

// TestReportsOfPeersAreSpread: each change is one of the whole fleet again. A value that is reverted
// before its delay has passed is not reported.
func TestReportsOfPeersAreSpread(t *testing.T) {
	const processes, users = 60, 2500
	first, last := stagger.Delay(users, 0), stagger.MaxDelay(users)
	half := (last - first) / 2
	synctest.Test(t, func(t *testing.T) {
		var fleet []*fixture
		for range processes {
			f := run(t, manyPeers(users))
			defer f.end()
			fleet = append(fleet, f)
		}
		reported := func() (n int) {
			for _, f := range fleet {
				n += f.writes()
			}
			return n
		}
		all := func(feature string, enabled bool) {
			for _, f := range fleet {
				f.source.see(enabled, feature)
			}
		}
		fleet[0].pass(3 * time.Second)
		if n := reported(); n != processes {
			t.Fatalf("%d of %d have reported first; what was never written does not wait", n, processes)
		}
		for i, enabled := range []bool{true, false} {
			before := reported()
			all("A", enabled)
			fleet[0].pass(first - time.Millisecond)
			if n := reported() - before; n != 0 {
				t.Errorf("change %d: %d report while others wait for it", i, n)
			}
			fleet[0].pass(half)
			// By chance it is less than a sixth or more than five in 10^7 runs once.
			if n := reported() - before; n < processes/6 || n > processes*5/6 {
				t.Errorf("change %d: after half the time %d of %d have reported", i, n, processes)
			}
			fleet[0].pass(half + 2*time.Millisecond)
			if n := reported() - before; n != processes {
				t.Errorf("change %d: %d of %d have reported", i, n, processes)
			}
		}
		before := reported()
		all("A", true)
		fleet[0].pass(first + half)
		reportedOn := reported() - before
		all("A", false)
		fleet[0].pass(last)
		if n := reported() - before; n != 2*reportedOn {
			t.Errorf("%d had reported a value that went back; there are %d reports, want %d", reportedOn, n, 2*reportedOn)
		}
	})
}

// TestOneOfFewPeersDoesNotWaitForManyOthers: its report has the value of the many peers as well.
func TestOneOfFewPeersDoesNotWaitForManyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, manyPeers(1_000_000))
		defer f.end()
		f.pass(3 * time.Second)
		f.source.see(false, "B")
		f.pass(v1alpha1.ReportPeriod + batchJitter)
		before := f.writes()
		f.source.see(true, "A")
		f.pass(stagger.Delay(1_000_000, 0) - time.Millisecond)
		if n := f.writes() - before; n != 0 {
			t.Errorf("%d writes before the first of the peers reports", n)
		}
		f.source.see(true, "B")
		f.pass(stagger.MaxDelay(2))
		if n := f.writes() - before; n != 1 {
			t.Errorf("%d writes, want the value of few reported", n)
		}
		for _, feature := range f.report().Spec.Features {
			if !feature.Enabled {
				t.Errorf("%s is reported off", feature.Name)
			}
		}
		f.pass(v1alpha1.MaxReportDelay)
		if n := f.writes() - before; n != 1 {
			t.Errorf("%d writes, want none for a turn in which there is nothing more to say", n)
		}
	})
}

// TestQueriedFeatureIsReportedWithinPeriod: the server flow expects it within ReportPeriod (KEP-3920,
// "Waiting for uses"), whatever else the process has to report.
func TestQueriedFeatureIsReportedWithinPeriod(t *testing.T) {
	for name, flips := range map[string]time.Duration{
		"the value of many changes just before it is due": v1alpha1.ReportPeriod - 5*time.Second,
		"when it is due": v1alpha1.ReportPeriod,
		"in between":     v1alpha1.ReportPeriod / 2,
		"with it":        0,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := run(t, manyPeers(1_000_000))
				defer f.end()
				f.pass(startJitter)
				before := f.writes()
				asked := time.Now()
				f.source.see(true, "B")
				f.pass(flips)
				f.source.see(true, "A")
				for f.writes() == before || len(f.report().Spec.Features) != 2 {
					f.pass(time.Second)
					if late := time.Since(asked); late > v1alpha1.ReportPeriod+batchJitter+time.Second {
						t.Fatalf("nothing was reported %s after B was asked for", late)
					}
				}
			})
		})
	}
}

// TestQueriesAfterNewValueAreSpread: with a value, peers get something that they query, long after
// their last report.
func TestQueriesAfterNewValueAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, manyPeers(1_000_000))
		defer f.end()
		f.pass(2 * v1alpha1.ReportPeriod)
		before := f.writes()
		f.source.see(true, "A", "B")
		f.pass(stagger.Delay(1_000_000, 0) - time.Millisecond)
		if n := f.writes() - before; n != 0 {
			t.Errorf("%d writes before the first of the peers reports", n)
		}
		f.pass(v1alpha1.MaxReportDelay)
		if n := f.writes() - before; n != 1 {
			t.Errorf("%d writes, want one", n)
		}
	})
}

func TestServerReportsWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, func(c *ReporterConfig) {
			manyPeers(1_000_000)(c)
			c.ListAll = true
		})
		defer f.end()
		f.pass(3 * time.Second)
		before := f.writes()
		f.source.see(true, "A")
		f.pass(0)
		if n := f.writes() - before; n != 1 {
			t.Errorf("%d writes, want the new value at once", n)
		}
	})
}

// TestFailedReportIsRetriedWithoutPacing: a process that terminates does not wait for its delay
// either.
func TestFailedReportIsRetriedWithoutPacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, manyPeers(1_000_000))
		var fails, failed atomic.Bool
		f.server.PrependReactor("update", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			if fails.CompareAndSwap(true, false) {
				failed.Store(true)
				return true, nil, errors.New("connection reset")
			}
			return false, nil, nil
		})
		f.start()
		f.pass(3 * time.Second)
		fails.Store(true)
		f.source.see(true, "A")
		for !failed.Load() {
			f.pass(time.Second)
		}
		f.pass(minReportBackoff)
		if !f.report().Spec.Features[0].Enabled {
			t.Error("the new value is not reported a second after a failure")
		}
		f.source.see(false, "A")
		f.pass(time.Second)
		begun := time.Now()
		f.end()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the reporter ended after %s", took)
		}
	})
}
