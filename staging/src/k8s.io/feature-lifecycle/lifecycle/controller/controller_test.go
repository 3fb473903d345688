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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func report(component, instance string, features ...v1alpha1.ReportedFeature) *v1alpha1.FeatureReport {
	return &v1alpha1.FeatureReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: component + "." + instance},
		Spec:       v1alpha1.FeatureReportSpec{Component: component, Instance: instance, EmulationVersion: "1.36", Features: features},
	}
}

func lease(renewed time.Time, seconds int32) *coordinationv1.Lease {
	t := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &t, LeaseDurationSeconds: ptr.To(seconds)},
	}
}

// TestSettingsAreWhole: what a configuration leaves out has its default, field by field,
// and what cannot work is refused.
func TestSettingsAreWhole(t *testing.T) {
	with := func(settings transition.Settings) Config {
		return Config{Namespace: "ns", Component: "server", ServerID: "s1", Tasks: emptyCluster(), Client: fake.NewClientset(), Recorder: record.NewFakeRecorder(1), Settings: settings}
	}
	config := with(transition.Settings{Settle: 30 * time.Second})
	if err := config.complete(); err != nil {
		t.Fatal(err)
	}
	want := transition.DefaultSettings()
	want.Settle = 30 * time.Second
	if diff := cmp.Diff(want, config.Settings); diff != "" {
		t.Errorf("with a settle period alone (-want +got):\n%s", diff)
	}
	_, err := New(with(transition.Settings{Settle: -time.Second, KeepUnknownMinors: -3}))
	for _, says := range []string{"Settings.Settle is -1s and has to be longer than 0", "Settings.KeepUnknownMinors is -3"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
}

func TestDeclarationsAreChecked(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a controller without anything is made")
	}
	// Without it a report of a process that is gone could not be deleted, an hour later.
	if _, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Client: fake.NewClientset(), Recorder: record.NewFakeRecorder(1)}); err == nil || !strings.Contains(err.Error(), "needs Tasks.Dynamic") {
		t.Errorf("without a dynamic client: %v", err)
	}
	// A third party cannot reach etcd; its transitions would be blocked for ever.
	unreadable := lifecycle.Feature{Name: "A", Versions: lifecycle.Versions{{At: "1.36", OnUpgrade: lifecycle.Tasks{lifecycle.ClearUnreadable(schema.GroupResource{Resource: "widgets"})}}}}
	_, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Tasks: emptyCluster(), Features: []lifecycle.Feature{unreadable}, Client: fake.NewClientset(), Recorder: record.NewFakeRecorder(1)})
	if err == nil || !strings.Contains(err.Error(), "A declares Upgrade/1.36/ClearUnreadable/widgets, which only kube-apiserver can run") {
		t.Errorf("a task that needs etcd: %v", err)
	}
}

func TestReportsOfStaleProcessesDeleted(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Tasks: emptyCluster(), Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1)})
	if err != nil {
		t.Fatal(err)
	}
	add := func(component, instance string) {
		r := report(component, instance)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: r.Name}
		if err := client.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
		c.tracker.SetReport(r, clock.Now())
	}
	renew := func(name string) {
		l := lease(clock.Now(), 40)
		l.Namespace, l.Name = "leases", name
		c.tracker.SetLease(l, clock.Now())
	}
	add("server", "s1")
	add("comp", "alive")
	add("comp", "gone")
	onNode := report("kubelet", "n1")
	c.tracker.SetReport(onNode, clock.Now())
	gone := lease(clock.Now(), 40)
	gone.Namespace, gone.Name = "leases", "comp.gone"
	c.tracker.DeleteLease(gone, clock.Now())
	deleted := func() []string {
		var names []string
		for _, a := range client.Actions() {
			if d, ok := a.(clienttesting.DeleteAction); ok {
				names = append(names, d.GetName())
			}
		}
		return names
	}
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{{0, nil}, {tracker.ReportRetention - time.Second, nil}, {time.Second, []string{"comp.gone"}}} {
		clock.Step(step.after)
		renew("server.s1")
		renew("comp.alive")
		c.expirer.deleteExpired(t.Context())
		if diff := cmp.Diff(step.want, deleted()); diff != "" {
			t.Errorf("after another %s: unexpected deletions (-want +got):\n%s", step.after, diff)
		}
	}
}

// TestRestartsOfServersDoNotKeepReports: a server that starts when a process is
// gone for most of the time that its report is kept, deletes it when that is over,
// and not as long again after it has started.
func TestRestartsOfServersDoNotKeepReports(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Tasks: emptyCluster(), Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.s1", "comp.gone", "comp.slow"} {
		component, instance, _ := strings.Cut(name, ".")
		r := report(component, instance)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: r.Name}
		if err := client.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
		c.tracker.SetReport(r, clock.Now())
	}
	renewed := func(name string, at time.Time) {
		l := lease(at, 40)
		l.Namespace, l.Name = "leases", name
		c.tracker.SetLease(l, clock.Now())
	}
	deleted := func() []string {
		var names []string
		for _, a := range client.Actions() {
			if d, ok := a.(clienttesting.DeleteAction); ok {
				names = append(names, d.GetName())
			}
		}
		return names
	}
	// The clock of one that lives is hours behind.
	const behind = 5 * time.Hour
	renewed("comp.gone", start.Add(-tracker.ReportRetention))
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{{0, nil}, {39 * time.Second, nil}, {time.Second, []string{"comp.gone"}}} {
		clock.Step(step.after)
		renewed("server.s1", clock.Now())
		renewed("comp.slow", clock.Now().Add(-behind))
		c.expirer.deleteExpired(t.Context())
		if diff := cmp.Diff(step.want, deleted()); diff != "" {
			t.Errorf("after another %s: unexpected deletions (-want +got):\n%s", step.after, diff)
		}
	}
}
