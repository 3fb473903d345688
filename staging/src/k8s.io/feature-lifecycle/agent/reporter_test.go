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
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/featuregate"
	"k8s.io/feature-lifecycle/internal/backoff"
)

// source is a gate of which the test says what was asked.
type source struct {
	mu       sync.Mutex
	observed []featuregate.Observation
	news     chan struct{}
}

func (s *source) Observations() []featuregate.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.observed)
}

func (s *source) News() <-chan struct{} { return s.news }

func (s *source) EmulationVersion() *utilversion.Version { return utilversion.MustParse("1.36") }

// see makes the process ask for features together and find a value.
func (s *source) see(enabled bool, names ...string) {
	s.observe(featuregate.Observation{Enabled: enabled, Queried: true}, names)
}

// wait makes features wait for a moment at which they are turned on.
func (s *source) wait(moment time.Time, names ...string) {
	s.observe(featuregate.Observation{Queried: true, SwitchTime: moment}, names)
}

func (s *source) observe(observation featuregate.Observation, names []string) {
	s.mu.Lock()
	for _, name := range names {
		s.observed = slices.DeleteFunc(s.observed, func(o featuregate.Observation) bool { return o.Name == name })
		observation.Name = name
		s.observed = append(s.observed, observation)
	}
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// fixture is a reporter that runs against a fake server on a fake clock.
type fixture struct {
	t        *testing.T
	source   *source
	server   *fake.Clientset
	kube     *kubefake.Clientset
	reporter *Reporter
	stop     context.CancelFunc
	done     chan struct{}
}

// run starts a reporter in a synctest bubble.
func run(t *testing.T, change func(*ReporterConfig)) *fixture {
	t.Helper()
	f := prepare(t, change)
	f.start()
	return f
}

// prepare makes a reporter. Its fake of Kubernetes does not manage fields: that
// builds a REST mapper of all of Kubernetes at each renewal of a Lease.
func prepare(t *testing.T, change func(*ReporterConfig)) *fixture {
	t.Helper()
	f := &fixture{t: t, source: &source{news: make(chan struct{}, 1)}, server: fake.NewClientset(), kube: kubefake.NewSimpleClientset()}
	f.source.see(false, "A")
	config := ReporterConfig{Namespace: "ns", Component: "comp", Instance: "i1", Source: f.source, Clients: Clients{Features: f.server, Kube: f.kube}}
	if change != nil {
		change(&config)
	}
	reporter, err := NewReporter(config)
	if err != nil {
		t.Fatal(err)
	}
	f.reporter = reporter
	return f
}

func (f *fixture) start() { f.startWith(f.t.Context()) }

// startWith starts the reporter in a context.
func (f *fixture) startWith(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	f.stop, f.done = cancel, make(chan struct{})
	go func() {
		defer close(f.done)
		f.reporter.Run(ctx)
	}()
}

func (f *fixture) end() {
	f.stop()
	<-f.done
}

// pass lets time go by and everything settle.
func (f *fixture) pass(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
	synctest.Wait()
}

// writes counts creates and updates of reports.
func (f *fixture) writes() int {
	n := 0
	for _, a := range f.server.Actions() {
		if a.GetVerb() == "create" || a.GetVerb() == "update" {
			n++
		}
	}
	return n
}

func (f *fixture) report() *v1alpha1.FeatureReport {
	f.t.Helper()
	object, err := f.server.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1")
	if err != nil {
		f.t.Fatalf("reading the report: %v", err)
	}
	return object.(*v1alpha1.FeatureReport)
}

func (f *fixture) names() string {
	var names []string
	for _, r := range f.report().Spec.Features {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func TestReportIsWrittenSoonThenOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		if n := f.writes(); n != 1 || f.names() != "A" {
			t.Fatalf("%d writes, features %s; want one with A", n, f.names())
		}
		f.source.see(true, "B")
		f.source.see(true, "C")
		f.pass(30 * time.Second)
		if n := f.writes(); n != 1 {
			t.Errorf("%d writes within a minute, want 1", n)
		}
		f.pass(31*time.Second + batchJitter)
		if n := f.writes(); n != 2 || f.names() != "A,B,C" {
			t.Errorf("%d writes, features %s; want two, with A, B and C", n, f.names())
		}
		f.pass(time.Hour)
		if n := f.writes(); n != 2 {
			t.Errorf("%d writes although nothing changed, want 2", n)
		}
	})
}

// TestFirstReportsAreSpread: every process queried a feature before its reporter runs, so there is
// news from the start.
func TestFirstReportsAreSpread(t *testing.T) {
	const processes = 60
	synctest.Test(t, func(t *testing.T) {
		var fleet []*fixture
		written := func() (first, second int) {
			for _, f := range fleet {
				n := f.writes()
				first += min(n, 1)
				second += max(n-1, 0)
			}
			return first, second
		}
		for range processes {
			f := run(t, nil)
			defer f.end()
			fleet = append(fleet, f)
		}
		fleet[0].pass(startJitter / 2)
		if first, _ := written(); first == 0 || first == processes {
			t.Errorf("after half the time %d of %d have reported", first, processes)
		}
		fleet[0].pass(startJitter)
		for _, f := range fleet {
			f.source.see(true, "B")
		}
		// The first one's minute is over, most others' is not.
		fleet[0].pass(v1alpha1.ReportPeriod - startJitter + batchJitter/2)
		if first, second := written(); first != processes || second == 0 || second == processes {
			t.Errorf("%d have reported, %d of them again", first, second)
		}
		fleet[0].pass(batchJitter)
		if _, second := written(); second != processes {
			t.Errorf("%d of %d have reported again", second, processes)
		}
	})
}

// TestThrottledStartSpreadsFirstReportsOverAMinute: on nodes. Other processes are few.
func TestThrottledStartSpreadsFirstReportsOverAMinute(t *testing.T) {
	const processes = 60
	for name, tc := range map[string]struct {
		change func(*ReporterConfig)
		spread bool
	}{
		"on a node":              {func(c *ReporterConfig) { c.NodeName, c.Throttled = "n1", func() bool { return true } }, true},
		"on a node, unthrottled": {func(c *ReporterConfig) { c.NodeName, c.Throttled = "n1", func() bool { return false } }, false},
		"on a node, unknown":     {func(c *ReporterConfig) { c.NodeName = "n1" }, false},
		"elsewhere":              {func(c *ReporterConfig) { c.Throttled = func() bool { return true } }, false},
		"a server":               {func(c *ReporterConfig) { c.NodeName, c.ListAll, c.Throttled = "n1", true, func() bool { return true } }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var fleet []*fixture
			for range processes {
				f := run(t, tc.change)
				defer f.end()
				fleet = append(fleet, f)
			}
			reported := func() (n int) {
				for _, f := range fleet {
					n += min(f.writes(), 1)
				}
				return n
			}
			fleet[0].pass(startJitter)
			if n := reported(); (n < processes/2) != tc.spread {
				t.Errorf("%s: %d of %d have reported after %s", name, n, processes, startJitter)
			}
			fleet[0].pass(backoff.ThrottleStartWindow/2 - startJitter)
			if n := reported(); tc.spread && (n < processes/6 || n > processes*5/6) {
				t.Errorf("%s: %d of %d have reported after half the time", name, n, processes)
			}
			fleet[0].pass(backoff.ThrottleStartWindow / 2)
			if n := reported(); n != processes {
				t.Errorf("%s: %d of %d have reported after %s", name, n, processes, backoff.ThrottleStartWindow)
			}
		})
	}
}

func TestFeatureQueriedLaterIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(time.Hour)
		f.source.see(true, "Late")
		f.pass(2 * time.Second)
		if f.names() != "A,Late" || f.writes() != 2 {
			t.Errorf("the report says %s after %d writes", f.names(), f.writes())
		}
	})
}

func TestChangedValueIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		f.source.see(true, "A")
		f.pass(time.Second)
		if n := f.writes(); n != 2 || !f.report().Spec.Features[0].Enabled {
			t.Errorf("%d writes, report %+v; want the new value at once", n, f.report().Spec.Features)
		}
	})
}

func TestDeletedReportIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		if err := f.server.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err != nil {
			t.Fatal(err)
		}
		f.pass(checkPeriod + checkPeriod/5)
		f.report()
	})
}

// TestDifferentReportOfAnotherProcessIsOverwritten: two processes of one instance
// live for a while when one is replaced.
func TestDifferentReportOfAnotherProcessIsOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		f.writtenBy("Other")
		f.pass(checkPeriod + checkPeriod/5)
		if f.names() != "A" {
			t.Errorf("the report says %s", f.names())
		}
	})
}

// TestEqualReportOfAnotherProcessStays: two running processes would overwrite each other without end, and
// each write would look like a crash.
func TestEqualReportOfAnotherProcessStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		f.takenOver(f.report().Spec.Features)
		f.pass(checkPeriod + checkPeriod/5)
		if got := f.report().Spec.Process; got != "another" {
			t.Errorf("the report was taken back: it is of process %q", got)
		}
	})
}

// writtenBy makes another process of the same instance write the report.
func (f *fixture) writtenBy(feature string) {
	f.t.Helper()
	f.takenOver([]v1alpha1.ReportedFeature{{Name: feature, Queried: true}})
}

func (f *fixture) takenOver(features []v1alpha1.ReportedFeature) {
	f.t.Helper()
	other := f.report().DeepCopy()
	other.ResourceVersion += "1"
	other.Spec.Process = "another"
	other.Spec.Features = features
	if err := f.server.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), other, "ns"); err != nil {
		f.t.Fatal(err)
	}
}

// TestRemoveDeletesOnlyOwnReport: the fake server ignores preconditions, and the test checks them.
func TestRemoveDeletesOnlyOwnReport(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*fixture)
		want   bool
	}{
		"its own report":                        {func(*fixture) {}, false},
		"one whose metadata was changed":        {func(f *fixture) { f.touched() }, false},
		"one that another process has written":  {func(f *fixture) { f.writtenBy("Other") }, true},
		"although that says the same":           {func(f *fixture) { f.writtenBy("A") }, true},
		"one that is gone, and another is made": {func(f *fixture) { f.replaced() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				f.server.PrependReactor("delete", "featurereports", func(a clienttesting.Action) (bool, runtime.Object, error) {
					wanted, stored := a.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions, f.report()
					if *wanted.UID != stored.UID || *wanted.ResourceVersion != stored.ResourceVersion {
						return true, nil, apierrors.NewConflict(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("precondition"))
					}
					return false, nil, nil
				})
				f.start()
				f.pass(3 * time.Second)
				tc.before(f)
				f.end()
				if err := f.reporter.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, err := f.server.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1")
				if left := err == nil; left != tc.want {
					t.Errorf("the report is left: %t, %v", left, err)
				}
				_, err = f.kube.Tracker().Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), "ns", "comp.i1")
				if left := err == nil; left != tc.want {
					t.Errorf("the Lease is left: %t, %v", left, err)
				}
			})
		})
	}
	t.Run("one that was written and not confirmed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := prepare(t, nil)
			f.server.PrependReactor("create", "featurereports", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if err := f.server.Tracker().Create(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), a.(clienttesting.CreateAction).GetObject(), "ns"); err != nil {
					return true, nil, err
				}
				return true, nil, errors.New("connection reset")
			})
			f.start()
			f.pass(2100 * time.Millisecond)
			f.end()
			f.report()
			if err := f.reporter.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := f.server.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err == nil {
				t.Error("the report is left")
			}
		})
	})
	t.Run("the server turns requests away at first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := prepare(t, nil)
			refusals := 2
			f.server.PrependReactor("delete", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
				refusals--
				return refusals >= 0, nil, apierrors.NewTooManyRequests("later", 0)
			})
			f.start()
			f.pass(3 * time.Second)
			f.end()
			if err := f.reporter.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := f.server.Tracker().Get(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err == nil {
				t.Error("the report is left")
			}
		})
	})
	t.Run("the server turns all requests away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := prepare(t, nil)
			f.server.PrependReactor("delete", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewTooManyRequests("later", 0)
			})
			f.start()
			f.pass(3 * time.Second)
			f.end()
			begun := time.Now()
			if err := f.reporter.Remove(t.Context()); !apierrors.IsTooManyRequests(err) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(begun); took != removeTimeout {
				t.Errorf("it took %s, want %s", took, removeTimeout)
			}
		})
	})
	t.Run("nothing was written", func(t *testing.T) {
		f := prepare(t, nil)
		if err := f.reporter.Remove(t.Context()); err != nil || len(f.server.Actions()) != 0 {
			t.Errorf("%v, %v", f.server.Actions(), err)
		}
	})
}

// touched changes the metadata of the report, as another client does.
func (f *fixture) touched() {
	f.t.Helper()
	changed := f.report().DeepCopy()
	changed.ResourceVersion += "1"
	changed.Labels = map[string]string{"a": "b"}
	if err := f.server.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), changed, "ns"); err != nil {
		f.t.Fatal(err)
	}
}

// replaced makes the report another object of the same name.
func (f *fixture) replaced() {
	f.t.Helper()
	other := f.report().DeepCopy()
	other.UID, other.ResourceVersion = "another", other.ResourceVersion+"1"
	other.Spec.Process = "another"
	if err := f.server.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), other, "ns"); err != nil {
		f.t.Fatal(err)
	}
}

// TestTerminatingProcessKeepsRenewingLease: until it has terminated.
func TestTerminatingProcessKeepsRenewingLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, func(c *ReporterConfig) { c.LeaseNamespace = "leases" })
		f.pass(3 * time.Second)
		f.reporter.MarkTerminating(t.Context())
		if got := f.report().Annotations[v1alpha1.AnnotationTerminating]; got != "true" {
			t.Fatalf("the annotation is %q", got)
		}
		f.reporter.MarkTerminating(t.Context())
		// Later writes have it as well.
		f.source.see(true, "A")
		f.pass(time.Minute)
		if got := f.report(); got.Annotations[v1alpha1.AnnotationTerminating] != "true" || !got.Spec.Features[0].Enabled {
			t.Errorf("later it says %+v, %+v", got.Annotations, got.Spec)
		}
		lease, err := f.kube.CoordinationV1().Leases("leases").Get(t.Context(), "comp.i1", metav1.GetOptions{})
		if err != nil || time.Since(lease.Spec.RenewTime.Time) > 2*renewPeriod {
			t.Errorf("the Lease is not renewed: %+v, %v", lease, err)
		}
		f.end()
		// The next process of the instance does not end.
		next := prepare(t, nil)
		next.server = f.server
		reporter, err := NewReporter(ReporterConfig{Namespace: "ns", Component: "comp", Instance: "i1", Source: next.source, Clients: Clients{Features: f.server, Kube: f.kube}})
		if err != nil {
			t.Fatal(err)
		}
		next.reporter = reporter
		next.start()
		defer next.end()
		next.pass(3 * time.Second)
		if got := next.report().Annotations[v1alpha1.AnnotationTerminating]; got != "" {
			t.Errorf("the next process's annotation is %q", got)
		}
	})
}

// TestDeletedReportIsWrittenSoonAfterFailure: not at the next check.
func TestDeletedReportIsWrittenSoonAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, func(c *ReporterConfig) { c.NodeName = "n1" })
		if err := f.kube.Tracker().Add(node("n1")); err != nil {
			t.Fatal(err)
		}
		// A reactor may only be added before the reporter runs.
		var broken atomic.Bool
		f.server.PrependReactor("create", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			return broken.Load(), nil, apierrors.NewInternalError(errors.New("etcd"))
		})
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		if err := f.server.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("featurereports"), "ns", "comp.i1"); err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		f.pass(checkPeriod + checkPeriod/5)
		broken.Store(false)
		f.pass(2 * maxReportBackoff)
		f.report()
	})
}

func TestReportOfEarlierProcessIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := prepare(t, nil)
		old := &v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "comp.i1"}, Spec: v1alpha1.FeatureReportSpec{Username: "me", Features: []v1alpha1.ReportedFeature{{Name: "Old"}}}}
		if err := f.server.Tracker().Add(old); err != nil {
			t.Fatal(err)
		}
		f.start()
		defer f.end()
		f.pass(3 * time.Second)
		if got := f.report(); f.names() != "A" || got.Spec.Username != "me" {
			t.Errorf("report %+v, want A by me", got.Spec)
		}
	})
}

// answering makes the server answer creates with an error until it is lifted.
func (f *fixture) answering(err error) (lift func()) {
	var mu sync.Mutex
	lifted := false
	f.server.PrependReactor("create", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		return !lifted, nil, err
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		lifted = true
	}
}

func TestPausesGrowWhileReportsAreNotAccepted(t *testing.T) {
	resource := v1alpha1.Resource("featurereports")
	for name, tc := range map[string]struct {
		err         error
		most, least int
	}{
		// Backing off from a second to ten minutes leaves some 15 tries in an
		// hour; to a minute some 80.
		"without the API":        {apierrors.NewNotFound(resource, ""), 18, 8},
		"without the namespace":  {apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), 110, 60},
		"that forbid it":         {apierrors.NewForbidden(resource, "comp.i1", errors.New("no")), 18, 8},
		"in trouble":             {apierrors.NewInternalError(errors.New("etcd")), 110, 60},
		"that name a time":       {apierrors.NewTooManyRequests("busy", 600), 7, 6},
		"that name a short one":  {apierrors.NewTooManyRequests("busy", 1), 110, 60},
		"that cannot reach etcd": {apierrors.NewServerTimeout(resource, "create", 2), 110, 60},
		"that cannot be reached": {errors.New("connection refused"), 110, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := prepare(t, nil)
				lift := f.answering(tc.err)
				f.start()
				defer f.end()
				// News does not make a reporter impatient.
				for i := range 120 {
					f.source.see(false, fmt.Sprintf("F%d", i))
					f.pass(30 * time.Second)
				}
				if n := f.writes(); n > tc.most || n < tc.least {
					t.Errorf("%d tries in an hour, want %d to %d", n, tc.least, tc.most)
				}
				lift()
				f.pass(16 * time.Minute)
				f.report()
			})
		})
	}
}

func TestConflictIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := run(t, nil)
		defer f.end()
		f.pass(3 * time.Second)
		conflicts := 2
		f.server.PrependReactor("update", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
			conflicts--
			return conflicts >= 0, nil, apierrors.NewConflict(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("changed"))
		})
		f.source.see(true, "A")
		f.pass(time.Second)
		if !f.report().Spec.Features[0].Enabled {
			t.Error("the new value did not arrive")
		}
	})
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

func TestReportIsOwnedByNode(t *testing.T) {
	onNode := func(c *ReporterConfig) { c.NodeName = "n1" }
	t.Run("that exists", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := prepare(t, onNode)
			if err := f.kube.Tracker().Add(node("n1")); err != nil {
				t.Fatal(err)
			}
			f.start()
			defer f.end()
			f.pass(2*time.Second + 3*ownerPeriod)
			if owners := f.report().OwnerReferences; len(owners) != 1 || owners[0].UID != "uid-n1" {
				t.Errorf("owners %+v", owners)
			}
			if lease := f.report().Spec.Liveness.Lease; lease != nil {
				t.Errorf("a node component has Lease %+v", lease)
			}
		})
	})
	t.Run("that appears soon", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := run(t, onNode)
			defer f.end()
			f.pass(20 * time.Second)
			if err := f.kube.Tracker().Add(node("n1")); err != nil {
				t.Fatal(err)
			}
			f.pass(3 * ownerPeriod)
			if owners, n := f.report().OwnerReferences, f.writes(); len(owners) != 1 || n != 2 {
				t.Errorf("owners %+v after %d writes", owners, n)
			}
		})
	})
	t.Run("that appears while something waits for its time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := run(t, onNode)
			defer f.end()
			f.pass(3 * time.Second)
			f.source.see(true, "B")
			f.pass(time.Second)
			if err := f.kube.Tracker().Add(node("n1")); err != nil {
				t.Fatal(err)
			}
			f.pass(3 * ownerPeriod)
			if owners, n := f.report().OwnerReferences, f.writes(); len(owners) != 1 || n != 2 || f.names() != "A" {
				t.Errorf("owners %+v after %d writes, features %s; want the Node at once, and what is new not yet", owners, n, f.names())
			}
			f.pass(v1alpha1.ReportPeriod + batchJitter)
			if owners, n := f.report().OwnerReferences, f.writes(); len(owners) != 1 || n != 3 || f.names() != "A,B" {
				t.Errorf("owners %+v after %d writes, features %s", owners, n, f.names())
			}
		})
	})
	t.Run("as the server says", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := prepare(t, onNode)
			f.server.PrependReactor("create", "featurereports", func(a clienttesting.Action) (bool, runtime.Object, error) {
				a.(clienttesting.CreateAction).GetObject().(*v1alpha1.FeatureReport).OwnerReferences = []metav1.OwnerReference{{UID: "uid-n1"}}
				return false, nil, nil
			})
			f.start()
			defer f.end()
			f.pass(2 * nodeTimeout)
			if n := f.writes(); n != 1 {
				t.Errorf("%d writes", n)
			}
			if asked := f.kube.Actions(); len(asked) != 0 {
				t.Errorf("the server was asked %v", asked)
			}
		})
	})
	t.Run("that appears late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := run(t, onNode)
			defer f.end()
			f.pass(30 * time.Second)
			if owners, n := f.report().OwnerReferences, f.writes(); len(owners) != 0 || n != 1 {
				t.Fatalf("owners %+v and %d writes before the node exists", owners, n)
			}
			f.pass(40 * time.Second)
			if err := f.kube.Tracker().Add(node("n1")); err != nil {
				t.Fatal(err)
			}
			f.pass(checkPeriod + checkPeriod/5)
			if owners := f.report().OwnerReferences; len(owners) != 1 {
				t.Errorf("owners %+v after the node appeared", owners)
			}
		})
	})
}

func TestIncompleteReporterConfigIsRefused(t *testing.T) {
	for name, config := range map[string]ReporterConfig{
		"without a namespace": {Component: "c", Instance: "i"},
		"without clients":     {Namespace: "ns", Component: "c", Instance: "i"},
	} {
		if _, err := NewReporter(config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestReportIsOwnedByConfiguredOwner: which is determined once the server accepts reports, until there is a
// result.
func TestReportIsOwnedByConfiguredOwner(t *testing.T) {
	for namespace, owned := range map[string]int{"ns": 1, "leases": 0} {
		synctest.Test(t, func(t *testing.T) {
			asked, want := 0, metav1.OwnerReference{APIVersion: "v1", Kind: "ServiceAccount", Name: "operator", UID: "1"}
			f := run(t, func(c *ReporterConfig) {
				c.LeaseNamespace = namespace
				c.Owner = func(context.Context) (*metav1.OwnerReference, error) {
					if asked++; asked < 3 {
						return nil, apierrors.NewServiceUnavailable("not yet")
					}
					return &want, nil
				}
			})
			defer f.end()
			f.pass(time.Minute)
			if got := f.report().OwnerReferences; asked != 3 || len(got) != 1 || got[0] != want {
				t.Errorf("asked %d times the report belongs to %+v", asked, got)
			}
			lease, err := f.kube.CoordinationV1().Leases(namespace).Get(t.Context(), "comp.i1", metav1.GetOptions{})
			if err != nil || len(lease.OwnerReferences) != owned {
				t.Errorf("the Lease in %s belongs to %+v, want %d owners: %v", namespace, lease.OwnerReferences, owned, err)
			}
			f.source.see(true, "A")
			f.pass(2 * time.Minute)
			if got := f.report(); asked != 3 || len(got.OwnerReferences) != 1 || !got.Spec.Features[0].Enabled {
				t.Errorf("written again, asked %d times, the report is %+v of %+v", asked, got.Spec, got.OwnerReferences)
			}
		})
	}
	owner := func(context.Context) (*metav1.OwnerReference, error) { return nil, nil }
	_, err := NewReporter(ReporterConfig{Namespace: "ns", Component: "comp", Instance: "i1", Source: &source{}, Clients: Clients{Features: fake.NewClientset(), Kube: kubefake.NewSimpleClientset()}, NodeName: "node", Owner: owner})
	if err == nil || !strings.Contains(err.Error(), "belongs to its Node") {
		t.Errorf("a process on a node with another owner: %v", err)
	}
}
