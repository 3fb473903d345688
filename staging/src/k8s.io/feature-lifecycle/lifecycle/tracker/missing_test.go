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

package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// missingAt returns the missing instances at a time.
func missingAt(t *Tracker, now time.Time) []Instance {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missingInstances(now)
}

// TestMissingReportsRecomputedAsTimePasses: they are cached, and time alone makes the report
// of a kubelet overdue.
func TestMissingReportsRecomputedAsTimePasses(t *testing.T) {
	settings := DefaultSettings()
	tracker := New(Config{Nodes: true, Settings: settings})
	tracker.SetNode(node("n1", corev1.ConditionTrue), start)
	now := start
	for _, step := range []struct {
		after    time.Duration
		starting bool
		since    bool
	}{
		{after: 0, starting: true, since: true},
		{after: reportingDelay, starting: false, since: true},
		// By now all that have been missing for so long are a group.
		{after: max(reportingDelay, settings.Grace), starting: false, since: false},
	} {
		now = now.Add(step.after)
		// Twice: the second answer comes from the cache.
		for range 2 {
			missing := missingAt(tracker, now)
			at := slices.IndexFunc(missing, func(i Instance) bool { return i.Component == kubelet && i.Has("n1") })
			if at < 0 {
				t.Fatalf("%s later n1 is not missing: %+v", step.after, missing)
			}
			if got := missing[at]; got.Starting != step.starting || got.Since.IsZero() == step.since {
				t.Errorf("%s later: starting is %t, since %s", step.after, got.Starting, got.Since)
			}
		}
	}
	tracker.SetReport(report(kubelet, "n1"), now)
	if missing := missingAt(tracker, now); len(missing) > 0 {
		t.Errorf("it has reported, and is missing: %+v", missing)
	}
}

// TestReportMissingWhileItsLeaseIsRenewed: the report was deleted.
func TestReportMissingWhileItsLeaseIsRenewed(t *testing.T) {
	tracker := New(Config{Settings: DefaultSettings()})
	if missing := missingAt(tracker, start); len(missing) > 0 {
		t.Fatalf("without processes some are missing: %+v", missing)
	}
	if changes := tracker.SetLease(leaseFor("other", "i1", start), start); !changes.Transitions {
		t.Errorf("a Lease without a report is renewed: %+v, want transitions to wait for the report", changes)
	}
	if missing := missingAt(tracker, start); len(missing) != 1 || missing[0].Component != "other" || !missing[0].Has("i1") {
		t.Errorf("other/i1 has a Lease and no report: %+v", missing)
	}
	tracker.SetReport(report("other", "i1"), start)
	if missing := missingAt(tracker, start); len(missing) > 0 {
		t.Errorf("it has reported, and is missing: %+v", missing)
	}
	tracker.DeleteReport(report("other", "i1"), start)
	if missing := missingAt(tracker, start.Add(MaxLeaseTimeout)); len(missing) > 0 {
		t.Errorf("its Lease has expired, and it is missing: %+v", missing)
	}
}

// TestIdentityIsNoMissingReport: an identity shows that a server exists, whatever its labels.
func TestIdentityIsNoMissingReport(t *testing.T) {
	tracker := New(Config{Servers: "server", Settings: DefaultSettings(), IsIdentity: func(*coordinationv1.Lease) bool { return true }})
	tracker.SetLease(leaseFor("other", "i1", start), start)
	if missing := missingAt(tracker, start); len(missing) > 0 {
		t.Errorf("missing are %+v", missing)
	}
	if servers := tracker.Servers("", start); len(servers) != 1 || servers[0].ID != "other.i1" {
		t.Errorf("servers are %+v, want other.i1", servers)
	}
}

// TestKubeletMissingFromDeletionOfItsReport: an absence before the report came does not count.
func TestKubeletMissingFromDeletionOfItsReport(t *testing.T) {
	tracker := New(Config{Nodes: true, Settings: DefaultSettings()})
	tracker.SetNode(node("n1", corev1.ConditionTrue), start)
	missingAt(tracker, start)
	r := report(kubelet, "n1")
	r.Spec.NodeName = "n1"
	tracker.SetReport(r, start)
	deleted := start.Add(2 * reportingDelay)
	tracker.DeleteReport(r, deleted)
	tracker.Advance(deleted)
	for _, step := range []struct {
		after    time.Duration
		starting bool
	}{{reportingDelay - time.Second, true}, {reportingDelay, false}} {
		if missing := missingAt(tracker, deleted.Add(step.after)); len(missing) != 1 || missing[0].Starting != step.starting {
			t.Errorf("%s after its report was deleted: %+v, want starting %t", step.after, missing, step.starting)
		}
	}
}

// TestGroupsAreOfOneVersion and one component: uses are counted by both.
func TestGroupsAreOfOneVersion(t *testing.T) {
	x := newIndex(indexConfig{})
	for _, one := range []struct{ component, instance, version string }{
		{kubelet, "n1", "v1"}, {kubelet, "n2", "v2"}, {kubelet, "n3", "v1"}, {"kube-proxy", "n1", "v1"},
	} {
		x.setNode(one.instance, nodeState{ready: true})
		r := report(one.component, one.instance, v1alpha1.ReportedFeature{Name: "A", Queried: true})
		r.Spec.BinaryVersion, r.Spec.NodeName, r.Spec.Liveness.Lease = one.version, one.instance, nil
		x.set(r, start)
	}
	uniform, others := x.of("A")
	if len(others) > 0 {
		t.Errorf("processes like others are not in a group: %v", others)
	}
	got := map[string][]string{}
	for _, c := range uniform {
		got[c.component+" "+c.version] = c.names
	}
	want := map[string][]string{"kubelet v1": {"n1", "n3"}, "kubelet v2": {"n2"}, "kube-proxy v1": {"n1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// missingKubelets are some, of which the first are upgraded.
func missingKubelets(n, upgraded int) []Instance {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%06d", i))
	}
	var missing []Instance
	for version, names := range map[string][]string{"v2": names[:upgraded], "v1": names[upgraded:]} {
		if len(names) > 0 {
			missing = append(missing, GroupOf(Instance{Component: kubelet, Version: version}, names))
		}
	}
	return missing
}

// TestUpgradeOfOverdueKubeletsNoticed, of one after the other now and then.
func TestUpgradeOfOverdueKubeletsNoticed(t *testing.T) {
	for _, test := range []struct {
		what string
		// upgraded is how many of 30 are upgraded each time.
		upgraded []int
		want     []bool
	}{
		{"one", []int{0, 1, 1, 1}, []bool{true, false, true, false}},
		{"one after the other", []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 8}, []bool{true, false, false, false, false, false, true, false, false, true}},
	} {
		var u overdue
		for i, n := range test.upgraded {
			if got := u.changed(missingKubelets(30, n)); got != test.want[i] {
				t.Errorf("%s: %d are upgraded: noticed %t, want %t", test.what, n, got, test.want[i])
			}
		}
	}
	var u overdue
	u.changed(missingKubelets(30, 0))
	if !u.changed(slices.Concat(missingKubelets(30, 1), []Instance{{Component: kubelet, Name: "z"}})) {
		t.Error("another one is missing, too, and that is not noticed at once")
	}
	if u.changed([]Instance{{Component: kubelet, Name: "z", Starting: true}}); len(u.versions) > 0 {
		t.Errorf("instances that may be starting are missing: %v", u.versions)
	}
}

// TestOverdueReportsNoticed: every change is, and while very many report, the last.
func TestOverdueReportsNoticed(t *testing.T) {
	const many = manyReports + 1
	for _, test := range []struct {
		what string
		// missing is how many are missing each time.
		missing []int
		want    []bool
	}{
		{"none", []int{0, 0}, []bool{false, false}},
		{"some come and go", []int{5, 5, 4, 9, 0, 0}, []bool{true, false, true, true, true, false}},
		{"very many report, the last of them", []int{10 * many, 8 * many, 6 * many, 0, 0}, []bool{true, false, false, true, false}},
		{"very many report, and some do not", []int{10 * many, 6 * many, 3, 3, 3}, []bool{true, false, false, true, false}},
		{"very many report, then few", []int{10 * many, 6 * many, 6*many - 1, 6*many - 1}, []bool{true, false, true, false}},
		{"others fall missing meanwhile", []int{10 * many, 6 * many, 6*many + 1}, []bool{true, false, true}},
		{"it takes long", []int{20 * many, 18 * many, 16 * many, 14 * many, 12 * many, 10 * many, 8 * many, 6 * many}, []bool{true, false, false, false, false, false, true, false}},
	} {
		var u overdue
		for i, n := range test.missing {
			if got := u.changed(missingKubelets(n, 0)); got != test.want[i] {
				t.Errorf("%s: %d are missing: noticed %t, want %t", test.what, n, got, test.want[i])
			}
		}
	}
}
