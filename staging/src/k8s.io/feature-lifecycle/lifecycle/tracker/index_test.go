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
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// TestProcessIsUniformAgainAfterCrashWindow checks that, after an outage of everything,
// the cost of a query grows again with the kinds of reports.
func TestProcessIsUniformAgainAfterCrashWindow(t *testing.T) {
	x := newIndex(indexConfig{maxCrashes: 2, crashWindow: 15 * time.Minute})
	next := func(process int, at time.Duration) {
		r := report(kubelet, "n1", v1alpha1.ReportedFeature{Name: "A", Queried: true})
		r.Spec.NodeName, r.Spec.Process = "n1", fmt.Sprint(process)
		x.set(r, start.Add(at))
	}
	x.setNode("n1", nodeState{ready: true})
	next(0, 0)
	next(1, time.Minute)
	next(2, 10*time.Minute)
	for _, step := range []struct {
		after   time.Duration
		crashes int
	}{{10 * time.Minute, 2}, {16*time.Minute - 1, 2}, {16 * time.Minute, 1}, {25*time.Minute - 1, 1}, {25 * time.Minute, 0}} {
		x.settle(start.Add(step.after))
		crowds, others := x.of("A")
		if step.crashes == 0 {
			if len(others) > 0 || len(crowds) != 1 || !slices.Equal(crowds[0].names, []string{"n1"}) {
				t.Errorf("after %s it is not like others: %v, %v", step.after, crowds, others)
			}
		} else if len(others) != 1 || len(others[0].crashes) != step.crashes {
			t.Errorf("after %s these are not in a group, want n1 with %d crashes: %v", step.after, step.crashes, others)
		}
	}
	// It may crash again, and go.
	next(3, time.Hour)
	if _, others := x.of("A"); len(others) != 1 || len(others[0].crashes) != 1 {
		t.Errorf("it has crashed once more: %v", others)
	}
	x.remove(kubelet+".n1", start.Add(time.Hour))
	if len(x.crashed) > 0 {
		t.Errorf("%d processes are remembered as crashed, and none is there", len(x.crashed))
	}
}

// TestGenerationRaisedWhenMissingReportsMayChange checks that only these changes of a
// node raise the generation of an index: each causes all missing reports to be
// recomputed.
func TestGenerationRaisedWhenMissingReportsMayChange(t *testing.T) {
	x := newIndex(indexConfig{})
	kubeletReport := report(kubelet, "n1")
	for _, step := range []struct {
		what   string
		do     func()
		raised bool
	}{
		{"a node comes", func() { x.setNode("n1", nodeState{kubelet: "v1"}) }, true},
		{"nothing changes", func() { x.setNode("n1", nodeState{kubelet: "v1"}) }, false},
		{"it is Ready", func() { x.setNode("n1", nodeState{ready: true, kubelet: "v1"}) }, true},
		{"it is upgraded", func() { x.setNode("n1", nodeState{ready: true, kubelet: "v2"}) }, true},
		{"its kubelet reports", func() { x.set(kubeletReport, start) }, true},
		{"it is upgraded, and reports", func() { x.setNode("n1", nodeState{ready: true, kubelet: "v3"}) }, false},
		{"its report goes", func() { x.remove(kubeletReport.Name, start) }, true},
		{"it goes", func() { x.deleteNode("n1") }, true},
	} {
		before := x.generation
		step.do()
		if raised := x.generation > before; raised != step.raised {
			t.Errorf("%s: the generation is raised: %t, want %t", step.what, raised, step.raised)
		}
	}
}

func TestIndexReturnsChangedFeatures(t *testing.T) {
	a, aOn, b := v1alpha1.ReportedFeature{Name: "A"}, v1alpha1.ReportedFeature{Name: "A", Enabled: true}, v1alpha1.ReportedFeature{Name: "B"}
	x := newIndex(indexConfig{maxCrashes: 3})
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
	if all := slices.Collect(maps.Keys(x.features)); len(all) != 0 {
		t.Errorf("features %v are left", all)
	}
}

// TestIndexKeepsTimeOfUnqueriedValue checks that the time of a value that was not queried is
// kept as long as that matters.
func TestIndexKeepsTimeOfUnqueriedValue(t *testing.T) {
	a, b := v1alpha1.ReportedFeature{Name: "A", Explicit: true}, v1alpha1.ReportedFeature{Name: "B", Explicit: true}
	x := newIndex(indexConfig{settled: 2 * time.Minute})
	check := func(what string, wantA, wantB time.Time) {
		t.Helper()
		for feature, want := range map[string]time.Time{"A": wantA, "B": wantB} {
			if e, listed := x.reported("c.1", feature); !listed || !e.since.Equal(want) {
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

// BenchmarkIndex shows that one report costs what it lists, whatever else there
// is.
func BenchmarkIndex(b *testing.B) {
	for _, others := range []int{100, 10000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			var features []v1alpha1.ReportedFeature
			for i := range 50 {
				features = append(features, v1alpha1.ReportedFeature{Name: fmt.Sprintf("F%d", i)})
			}
			x := newIndex(indexConfig{maxCrashes: 3})
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
