/*
Copyright 2026 The Kubernetes Authors.

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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/client/clientset/versioned/fake"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/feature-lifecycle/lifecycle/tracker"
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

func TestIndexTellsWhatChanged(t *testing.T) {
	a, aOn, b := v1alpha1.ReportedFeature{Name: "A"}, v1alpha1.ReportedFeature{Name: "A", Enabled: true}, v1alpha1.ReportedFeature{Name: "B"}
	x := newIndex(indexConfig{mostCrashes: 3})
	for _, step := range []struct {
		what string
		do   func() []string
		want []string
	}{
		{"a report comes", func() []string { return x.set(report("c", "1", a, b), start) }, []string{"A", "B"}},
		{"it comes again", func() []string { return x.set(report("c", "1", a, b), start) }, nil},
		{"one value changes", func() []string { return x.set(report("c", "1", aOn, b), start) }, []string{"A"}},
		{"a feature goes", func() []string { return x.set(report("c", "1", aOn), start) }, []string{"B"}},
		{"a feature comes", func() []string { return x.set(report("c", "1", aOn, b), start) }, []string{"B"}},
		{"the process is another version", func() []string {
			r := report("c", "1", aOn, b)
			r.Spec.BinaryVersion = "v2"
			return x.set(r, start)
		}, []string{"A", "B"}},
		{"it is another one of the same name", func() []string {
			r := report("c", "1", aOn, b)
			r.Spec.BinaryVersion, r.UID = "v2", "another"
			return x.set(r, start)
		}, []string{"A", "B"}},
		{"the report goes", func() []string { return x.remove("c.1", start) }, []string{"A", "B"}},
		{"it goes again", func() []string { return x.remove("c.1", start) }, nil},
	} {
		if diff := cmp.Diff(step.want, step.do()); diff != "" {
			t.Errorf("%s: unexpected features (-want +got):\n%s", step.what, diff)
		}
	}
	if all := x.all(); len(all) != 0 {
		t.Errorf("features %v are left", all)
	}
}

// TestIndexRemembersSinceWhen a process says what it has not asked for, as long as
// that matters.
func TestIndexRemembersSinceWhen(t *testing.T) {
	a, b := v1alpha1.ReportedFeature{Name: "A", Explicit: true}, v1alpha1.ReportedFeature{Name: "B", Explicit: true}
	x := newIndex(indexConfig{settled: 2 * time.Minute})
	check := func(what string, wantA, wantB time.Time) {
		t.Helper()
		for feature, want := range map[string]time.Time{"A": wantA, "B": wantB} {
			if e, listed := x.says("c.1", feature); !listed || !e.since.Equal(want) {
				t.Errorf("%s: %s is listed: %t, since %s, want %s", what, feature, listed, e.since, want)
			}
		}
	}
	x.set(report("c", "1", a), start)
	x.set(report("c", "1", a, b), start.Add(time.Minute))
	check("both are recent", start, start.Add(time.Minute))
	x.settle(start.Add(2 * time.Minute))
	check("A is not", time.Time{}, start.Add(time.Minute))
	x.set(report("c", "1", b, a), start.Add(2*time.Minute))
	check("it is said again", time.Time{}, start.Add(time.Minute))
	x.settle(start.Add(3 * time.Minute))
	check("none is", time.Time{}, time.Time{})
	if len(x.recent) != 0 {
		t.Errorf("%d processes have something recent", len(x.recent))
	}
	b.Enabled = true
	x.set(report("c", "1", a, b), start.Add(4*time.Minute))
	check("B changes", time.Time{}, start.Add(4*time.Minute))
}

func lease(renewed time.Time, seconds int32) *coordinationv1.Lease {
	t := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &t, LeaseDurationSeconds: ptr.To(seconds)},
	}
}

// TestWhenAProcessWasLastSeen is when its Lease was seen to change, or when it was
// renewed before that, if its clock may be believed.
func TestWhenAProcessWasLastSeen(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	for name, tc := range map[string]struct {
		renewals []time.Duration
		want     time.Duration
	}{
		"never":                         {nil, time.Hour},
		"renewed before it was watched": {[]time.Duration{-30 * time.Second}, -30 * time.Second},
		"long before, or another clock": {[]time.Duration{-time.Hour}, 0},
		"by a clock that is fast":       {[]time.Duration{30 * time.Second}, 0},
		"renewed since":                 {[]time.Duration{-30 * time.Second, -20 * time.Second}, 10 * time.Second},
		"read again, not renewed":       {[]time.Duration{-30 * time.Second, -30 * time.Second}, -30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiveness()
			for i, renewed := range tc.renewals {
				l.observe(lease(start.Add(renewed), 40), start.Add(time.Duration(i)*10*time.Second))
			}
			if got := l.leaseSeen(key, start.Add(time.Hour)).Sub(start); got != tc.want {
				t.Errorf("last seen at %s, want %s", got, tc.want)
			}
		})
	}
}

func TestLeasesAreJudgedByWhenTheyWereSeenToChange(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	l := newLiveness()
	alive := func(after time.Duration) bool {
		ok, _ := l.lease(key, start.Add(after))
		return ok
	}
	if alive(0) {
		t.Error("a Lease that was never seen is alive")
	}
	// The holder's clock is an hour behind, and the Lease says it lasts an hour.
	l.observe(lease(start.Add(-time.Hour), 3600), start)
	if !alive(tracker.MaxLeaseTimeout - 1) {
		t.Error("dead although it may still be renewed")
	}
	if alive(tracker.MaxLeaseTimeout) {
		t.Error("alive although it was not renewed")
	}
	l.observe(lease(start.Add(-time.Hour), 3600), start.Add(10*time.Second))
	if alive(tracker.MaxLeaseTimeout) {
		t.Error("alive although it was only read again")
	}
	l.observe(lease(start.Add(-time.Hour+time.Second), 3600), start.Add(30*time.Second))
	if !alive(30*time.Second + tracker.MaxLeaseTimeout - 1) {
		t.Error("dead although it was renewed")
	}
	l.observe(lease(start, 5), start.Add(time.Minute))
	if alive(time.Minute + 5*time.Second) {
		t.Error("alive although its own duration has passed")
	}
	l.forget(key, start.Add(2*time.Minute))
	ok, since := l.lease(key, start.Add(3*time.Minute))
	if ok || !since.Equal(start.Add(2*time.Minute)) {
		t.Errorf("alive %t since %s after it was deleted", ok, since)
	}
}

// TestSinceWhenAProcessIsGone: the clock of a process counts only when it was never seen
// alive, and never for longer than was watched.
func TestSinceWhenAProcessIsGone(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "l"}
	for name, tc := range map[string]struct {
		renewals []time.Duration
		want     time.Duration
	}{
		"gone before it was watched": {[]time.Duration{-time.Hour}, -time.Hour + 40*time.Second},
		"gone when it was watched":   {[]time.Duration{-30 * time.Second}, 40 * time.Second},
		"renewed since":              {[]time.Duration{-30 * time.Second, -20 * time.Second}, 50 * time.Second},
		"renewed by a slow clock":    {[]time.Duration{-time.Hour, -time.Hour + 10*time.Second}, 50 * time.Second},
		"by a clock that is fast":    {[]time.Duration{time.Hour}, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLiveness()
			for i, renewed := range tc.renewals {
				l.observe(lease(start.Add(renewed), 40), start.Add(time.Duration(i)*10*time.Second))
			}
			if alive, _ := l.lease(key, start.Add(39*time.Second)); !alive {
				t.Error("it is taken for gone before it had the time to renew its Lease")
			}
			if alive, since := l.lease(key, start.Add(time.Minute)); alive || since.Sub(start) != tc.want {
				t.Errorf("alive %t, gone since %s, want %s", alive, since.Sub(start), tc.want)
			}
		})
	}
}

func TestNodesAreJudgedByReady(t *testing.T) {
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	l := newLiveness()
	if ok, _ := l.node(node(corev1.ConditionTrue), start); !ok {
		t.Error("a Ready node is dead")
	}
	if ok, since := l.node(node(corev1.ConditionUnknown), start.Add(time.Second)); ok || !since.Equal(start.Add(time.Second)) {
		t.Errorf("alive %t since %s", ok, since)
	}
	// The first sight counts, not the last.
	if _, since := l.node(node(corev1.ConditionUnknown), start.Add(time.Minute)); !since.Equal(start.Add(time.Second)) {
		t.Errorf("since %s", since)
	}
	// What the condition says does not matter for a node that was seen to be Ready.
	long := node(corev1.ConditionUnknown)
	long.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-time.Hour))
	if _, since := l.node(long, start.Add(time.Minute)); !since.Equal(start.Add(time.Second)) {
		t.Errorf("of a node that was Ready: since %s", since)
	}
	long.Name = "n3"
	if _, since := l.node(long, start.Add(time.Minute)); !since.Equal(start.Add(-time.Hour)) {
		t.Errorf("of a node that was away before: since %s", since)
	}
	if ok, _ := l.node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}, start); ok {
		t.Error("a node without conditions is alive")
	}
}

func TestWhoMayMakeAGateKnown(t *testing.T) {
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

func TestChangesAreNoticedOnce(t *testing.T) {
	seen := newLastSeen()
	var got []bool
	for _, value := range []bool{true, true, false, false, true} {
		got = append(got, seen.changed("k", value))
	}
	seen.forget("k")
	got = append(got, seen.changed("k", true))
	if want := []bool{true, false, true, false, true, true}; !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
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

func TestReportsOfProcessesThatAreLongGoneAreDeleted(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	client := fake.NewClientset()
	c, err := New(Config{Namespace: "ns", Component: "server", ServerID: "s1", Tasks: emptyCluster(), Client: client, Clock: clock, Recorder: record.NewFakeRecorder(1)})
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "leases", Name: name} }
	add := func(component, instance string) {
		r := report(component, instance)
		r.Spec.Liveness.Lease = &v1alpha1.LeaseReference{Namespace: "leases", Name: r.Name}
		if err := client.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
		c.reports.set(r, clock.Now())
	}
	renew := func(name string) {
		l := lease(clock.Now(), 40)
		l.Namespace, l.Name = "leases", name
		c.liveness.observe(l, clock.Now())
	}
	add("server", "s1")
	add("comp", "alive")
	add("comp", "gone")
	onNode := report("kubelet", "n1")
	c.reports.set(onNode, clock.Now())
	c.liveness.forget(key("comp.gone"), clock.Now())
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
	}{{0, nil}, {reportRetention - time.Second, nil}, {time.Second, []string{"comp.gone"}}} {
		clock.Step(step.after)
		renew("server.s1")
		renew("comp.alive")
		c.retireReports(t.Context())
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
		c.reports.set(r, clock.Now())
	}
	renewed := func(name string, at time.Time) {
		l := lease(at, 40)
		l.Namespace, l.Name = "leases", name
		c.liveness.observe(l, clock.Now())
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
	renewed("comp.gone", start.Add(-reportRetention))
	for _, step := range []struct {
		after time.Duration
		want  []string
	}{{0, nil}, {39 * time.Second, nil}, {time.Second, []string{"comp.gone"}}} {
		clock.Step(step.after)
		renewed("server.s1", clock.Now())
		renewed("comp.slow", clock.Now().Add(-behind))
		c.retireReports(t.Context())
		if diff := cmp.Diff(step.want, deleted()); diff != "" {
			t.Errorf("after another %s: unexpected deletions (-want +got):\n%s", step.after, diff)
		}
	}
}

// BenchmarkIndex shows that one report costs what it lists, whatever else there
// is.
func BenchmarkIndex(b *testing.B) {
	for _, others := range []int{100, 10000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			var features []v1alpha1.ReportedFeature
			for i := range 50 {
				features = append(features, v1alpha1.ReportedFeature{Name: fmt.Sprintf("F%d", i)})
			}
			x := newIndex(indexConfig{mostCrashes: 3})
			for i := range others {
				x.set(report("c", fmt.Sprint(i), features...), start)
			}
			changed := slices.Clone(features)
			changed[0].Enabled = true
			for i := 0; b.Loop(); i++ {
				x.set(report("c", "0", [][]v1alpha1.ReportedFeature{features, changed}[i%2]...), start)
			}
		})
	}
}
