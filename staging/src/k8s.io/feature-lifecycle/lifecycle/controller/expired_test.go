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

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	clients "k8s.io/feature-lifecycle/client/clientset/versioned/typed/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/leader"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	clocktesting "k8s.io/utils/clock/testing"
)

// hanging is a client whose deletions of reports never end by themselves. It tells of
// the first.
type hanging struct {
	versioned.Interface
	begun chan struct{}
}

// IsWatchListSemanticsUnSupported: the fake behind it does not support them.
func (hanging) IsWatchListSemanticsUnSupported() bool { return true }

type hangingFeatures struct {
	clients.FeaturesV1alpha1Interface
	begun chan struct{}
}

type hangingReports struct {
	clients.FeatureReportInterface
	begun chan struct{}
}

func (c hanging) FeaturesV1alpha1() clients.FeaturesV1alpha1Interface {
	return hangingFeatures{c.Interface.FeaturesV1alpha1(), c.begun}
}

func (c hangingFeatures) FeatureReports(namespace string) clients.FeatureReportInterface {
	return hangingReports{c.FeaturesV1alpha1Interface.FeatureReports(namespace), c.begun}
}

func (c hangingReports) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions) error {
	select {
	case c.begun <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestHangingDeletionDoesNotBlockNotice: reports are deleted of processes that
// ended in order, and the server that leads a feature dies without a word meanwhile.
func TestHangingDeletionDoesNotBlockNotice(t *testing.T) {
	inWorld(t, func(w *world) {
		begun := make(chan struct{}, 1)
		w.client = func(inner versioned.Interface) versioned.Interface { return hanging{inner, begun} }
		w.leased = true
		servers := []string{"s1", "s2"}
		for _, id := range servers {
			w.report("server", id, gate("A", true))
			w.serve(id)
		}
		w.until(time.Minute, "on", func() bool { return w.state("A") == v1alpha1.StateOn })
		dies := leader.Of("A", servers)
		survives := servers[1-slices.Index(servers, dies)]
		// The one that survives deletes some of them.
		w.annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
		for i := range 20 {
			w.report("comp", fmt.Sprint("ended-", i), asked(gate("A", false)))
		}
		w.annotations = nil
		w.stop(w.servers[dies])
		w.report("server", survives, gate("A", false))
		w.until(time.Minute, "a deletion", func() bool {
			select {
			case <-begun:
				return true
			default:
				return false
			}
		})
		w.until(10*time.Minute, "off", func() bool { return w.state("A") == v1alpha1.StateOff })
	}, lifecycle.Feature{Name: "A"})
}

// ended gives a server a live report of its own, and reports of processes that say that
// they end. Each names a Lease of its name.
func ended(t *testing.T, c *Controller, client *fake.Clientset, names ...string) {
	t.Helper()
	now := c.config.Clock.Now()
	own := lease(now, 40)
	own.Namespace, own.Name = "leases", "server.s1"
	c.tracker.SetLease(own, now)
	for _, name := range append([]string{own.Name}, names...) {
		component, instance, _ := strings.Cut(name, ".")
		r := report(component, instance)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: name}
		if name != own.Name {
			r.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
		}
		if err := client.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
		c.tracker.SetReport(r, now)
	}
}

// TestUnwatchedLeaseRead: reports say that their processes end, and no
// Lease of theirs was heard of. One has been renewed just now; the other has lost the
// label by which Leases are watched, and its process died long ago.
func TestUnwatchedLeaseRead(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	made := map[string]*coordinationv1.Lease{}
	for name, renewed := range map[string]time.Time{"comp.new": start, "comp.old": start.Add(-tracker.ReportRetention)} {
		made[name] = lease(renewed, 40)
		made[name].Namespace, made[name].Name = "leases", name
	}
	cluster := dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, made["comp.new"], made["comp.old"])
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1), Tasks: task.Clients{Dynamic: cluster}})
	if err != nil {
		t.Fatal(err)
	}
	ended(t, c, client, "comp.new", "comp.old")
	c.expirer.deleteExpired(t.Context())
	for name, want := range map[string]bool{"comp.new": true, "comp.old": false} {
		_, err := client.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), name, metav1.GetOptions{})
		_, leaseErr := cluster.Resource(leases).Namespace("leases").Get(t.Context(), name, metav1.GetOptions{})
		if (err == nil) != want || (leaseErr == nil) != want {
			t.Errorf("report %s: %v, its Lease: %v; want that they stay: %t", name, err, leaseErr, want)
		}
	}
}

// TestRefusedDeletionBacksOff: the report of a process that ended was
// written by another client, and the server flow may not delete it until an administrator
// permits that.
func TestRefusedDeletionBacksOff(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	tries, permitted := 0, false
	client.PrependReactor("delete", "featurereports", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries++
		return !permitted, nil, apierrors.NewForbidden(v1alpha1.Resource("featurereports"), "comp.i1", errors.New("another client wrote it"))
	})
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1), Tasks: emptyCluster()})
	if err != nil {
		t.Fatal(err)
	}
	ended(t, c, client, "comp.i1")
	look := func(during time.Duration) {
		for range during / noticePeriod {
			clock.Step(noticePeriod)
			own := lease(clock.Now(), 40)
			own.Namespace, own.Name = "leases", "server.s1"
			c.tracker.SetLease(own, clock.Now())
			c.expirer.deleteExpired(t.Context())
		}
	}
	look(time.Hour)
	// From 5 seconds to 15 minutes there are 8 pauses, which take 21 minutes together.
	if tries < 8 || tries > 12 {
		t.Errorf("%d tries in an hour, want 8 to 12", tries)
	}
	permitted = true
	look(maxDeleteBackoff)
	if _, err := client.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), "comp.i1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the report once deleting it is permitted: %v, want that it is gone", err)
	}
	// That of another process of the same name is not put off.
	permitted, tries = false, 0
	c.tracker.DeleteReport(report("comp", "i1"), clock.Now())
	look(noticePeriod)
	later := report("comp", "i1")
	later.Annotations = map[string]string{v1alpha1.AnnotationTerminating: "true"}
	later.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: later.Name}
	c.tracker.SetReport(later, clock.Now())
	if look(noticePeriod); tries != 1 {
		t.Errorf("%d tries of a report that came later, want 1", tries)
	}
}

// TestRenewedLeaseKept: an informer has stored that a process renewed its Lease,
// and its handlers are not told yet. What is deleted is the version that has expired, which
// the server does not have any more.
func TestRenewedLeaseKept(t *testing.T) {
	for name, test := range map[string]struct {
		// renewed and heard say whether the process has renewed its Lease, and whether the
		// handlers were told; waits is for how long nothing comes after that.
		renewed, heard bool
		waits          time.Duration
		want           bool
	}{
		"renewed, not heard of":         {renewed: true, want: true},
		"never heard again":             {},
		"renewed, and not again":        {renewed: true, heard: true, waits: time.Minute},
		"renewed, heard of and not due": {renewed: true, heard: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			expired := lease(start, 40)
			expired.Namespace, expired.Name, expired.UID, expired.ResourceVersion = "leases", "comp.i1", "uid-1", "1"
			now := expired.DeepCopy()
			if test.renewed {
				now.ResourceVersion, now.Spec.RenewTime = "2", &metav1.MicroTime{Time: start.Add(time.Minute)}
			}
			cluster := dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, now)
			cluster.PrependReactor("delete", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				// As a server does; the fake deletes whatever there is.
				p := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
				if p == nil || p.UID == nil || *p.UID != now.UID || p.ResourceVersion == nil || *p.ResourceVersion != now.ResourceVersion {
					return true, nil, apierrors.NewConflict(leases.GroupResource(), now.Name, errors.New("changed"))
				}
				return false, nil, nil
			})
			client := fake.NewClientset()
			informer := informers.NewSharedInformerFactory(kubefake.NewSimpleClientset(), 0).Coordination().V1().Leases().Informer()
			if err := informer.GetStore().Add(now); err != nil {
				t.Fatal(err)
			}
			c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1),
				Tasks: task.Clients{Dynamic: cluster}, Leases: []cache.SharedIndexInformer{informer}})
			if err != nil {
				t.Fatal(err)
			}
			c.tracker.SetLease(expired, clock.Now())
			clock.Step(time.Minute)
			if test.heard {
				c.tracker.SetLease(now, clock.Now())
			}
			clock.Step(test.waits)
			ended(t, c, client, "comp.i1")
			c.expirer.deleteExpired(t.Context())
			_, reportErr := client.FeaturesV1alpha1().FeatureReports("ns").Get(t.Context(), "comp.i1", metav1.GetOptions{})
			_, leaseErr := cluster.Resource(leases).Namespace("leases").Get(t.Context(), "comp.i1", metav1.GetOptions{})
			if (reportErr == nil) != test.want || (leaseErr == nil) != test.want {
				t.Errorf("the report: %v, its Lease: %v; want that they stay: %t", reportErr, leaseErr, test.want)
			}
			if !test.want {
				return
			}
			// Whoever found it dead may have done so before the process was heard of again.
			if err := c.expirer.removeLease(t.Context(), &v1alpha1.LeaseReference{Namespace: "leases", Name: "comp.i1"}); !apierrors.IsConflict(err) {
				t.Errorf("deleting the Lease of a process that has come back: %v, want a conflict", err)
			}
			if test.heard && slices.ContainsFunc(cluster.Actions(), func(a clienttesting.Action) bool { return a.Matches("delete", "leases") }) {
				t.Error("the Lease of a process that is known to live was to be deleted")
			}
		})
	}
}

// TestOrphanedLeasesDeleted: a process that dies between writing its Lease and its first report
// leaves a Lease that no report names. It goes when a report would.
func TestOrphanedLeasesDeleted(t *testing.T) {
	const long = tracker.ReportRetention + 40*time.Second
	for name, test := range map[string]struct {
		// before is how long before the flow saw it the Lease was renewed last.
		before time.Duration
		change func(*coordinationv1.Lease)
		// reported is true for one that a report names.
		reported bool
		// after is how long nothing is heard of it.
		after time.Duration
		goes  bool
	}{
		"gone for long":                         {after: long, goes: true},
		"not gone for long":                     {after: long - time.Second},
		"gone for long when first seen":         {before: long, after: time.Minute, goes: true},
		"gone for long when first seen, just":   {before: long, after: 39 * time.Second},
		"named by a report of a process":        {before: long, after: time.Minute, reported: true},
		"of another owner":                      {after: long, change: func(l *coordinationv1.Lease) { l.Labels = nil }},
		"of another owner with a name":          {after: long, change: func(l *coordinationv1.Lease) { l.Name = "other.i1" }},
		"never renewed, seen for long":          {after: long, change: func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }, goes: true},
		"never renewed, not seen for very long": {after: long - time.Second, change: func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			left := lease(start.Add(-test.before), 40)
			left.Namespace, left.Name, left.UID, left.ResourceVersion = "leases", "comp.i1", "uid-1", "1"
			left.Labels = map[string]string{v1alpha1.LabelComponent: "comp"}
			if test.change != nil {
				test.change(left)
			}
			cluster := dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, left)
			refused := test.goes
			cluster.PrependReactor("delete", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
				p := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
				if p == nil || p.UID == nil || *p.UID != left.UID || p.ResourceVersion == nil || *p.ResourceVersion != left.ResourceVersion {
					t.Errorf("preconditions %+v, want those of the version that was seen to have expired", p)
				}
				if refused {
					return true, nil, apierrors.NewForbidden(leases.GroupResource(), left.Name, errors.New("not yet"))
				}
				return false, nil, nil
			})
			informer := informers.NewSharedInformerFactory(kubefake.NewSimpleClientset(), 0).Coordination().V1().Leases().Informer()
			if err := informer.GetStore().Add(left); err != nil {
				t.Fatal(err)
			}
			client := fake.NewClientset()
			c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1),
				Tasks: task.Clients{Dynamic: cluster}, Leases: []cache.SharedIndexInformer{informer}})
			if err != nil {
				t.Fatal(err)
			}
			ended(t, c, client)
			c.tracker.SetLease(left, clock.Now())
			if test.reported {
				r := report("comp", "i1")
				r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: left.Namespace, Name: left.Name}
				c.tracker.SetReport(r, clock.Now())
				if orphans := c.tracker.ExpiredLeases(start.Add(24 * time.Hour)); len(orphans) > 0 {
					t.Errorf("%v are orphaned, want none: a report names it", orphans)
				}
				return
			}
			look := func() bool {
				own := lease(clock.Now(), 40)
				own.Namespace, own.Name = "leases", "server.s1"
				c.tracker.SetLease(own, clock.Now())
				c.expirer.deleteExpired(t.Context())
				_, err := cluster.Resource(leases).Namespace(left.Namespace).Get(t.Context(), left.Name, metav1.GetOptions{})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
				return err == nil
			}
			if !look() {
				t.Error("it went at once")
			}
			clock.Step(test.after)
			if !look() {
				t.Error("it went although that is forbidden or it is too early")
			}
			tries := len(cluster.Actions())
			if look(); len(cluster.Actions()) != tries+1 {
				t.Errorf("what was refused was tried again at once: %v", cluster.Actions()[tries:])
			}
			if !test.goes {
				return
			}
			refused = false
			if clock.Step(noticePeriod); look() {
				t.Error("it has stayed, want that it goes")
			}
		})
	}
}
