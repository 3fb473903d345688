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

package featuregate

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

func observation(t *testing.T, g *Gate, name string) Observation {
	t.Helper()
	all := g.Observations()
	i := slices.IndexFunc(all, func(o Observation) bool { return o.Name == name })
	if i < 0 {
		t.Fatalf("no observation of %s", name)
	}
	return all[i]
}

func taken(g *Gate) bool {
	select {
	case <-g.News():
		return true
	default:
		return false
	}
}

func TestEnabledForwardsOnlyFirstQuery(t *testing.T) {
	g := Wrap(upstream(t))
	g.AddMetrics()
	for _, o := range g.Observations() {
		if o.Queried {
			t.Errorf("%s counts as queried without a query", o.Name)
		}
	}
	if taken(g) {
		t.Error("news without a query")
	}
	g.Enabled("Beta")
	if !observation(t, g, "Beta").Queried || observation(t, g, "Alpha").Queried {
		t.Error("Beta should be queried, Alpha not")
	}
	if !taken(g) {
		t.Error("no news of the first query")
	}
	g.Enabled("Beta")
	if taken(g) {
		t.Error("news of the second query")
	}
}

// TestGatesAboveEmulatedVersionObserved: a binary that emulates an older version finds newer
// features off. Whether they were queried or not, they have to be turned off where
// they are on.
func TestGatesAboveEmulatedVersionObserved(t *testing.T) {
	g := Wrap(upstream(t))
	for _, queried := range []bool{false, true} {
		if diff := cmp.Diff(Observation{Name: "New", Queried: queried, Stage: v1alpha1.StagePreAlpha}, observation(t, g, "New")); diff != "" {
			t.Errorf("unexpected observation (-want +got):\n%s", diff)
		}
		g.Enabled("New")
	}
}

// otherGate is a gate that is not upstream's own.
type otherGate struct {
	featuregate.MutableVersionedFeatureGate
}

// TestQueriesBeforeWrapForwarded: packages query while they are initialized.
func TestQueriesBeforeWrapForwarded(t *testing.T) {
	inner := upstream(t)
	inner.Enabled("Beta")
	g := Wrap(inner)
	if !observation(t, g, "Beta").Queried || observation(t, g, "Alpha").Queried {
		t.Error("Beta should be queried, Alpha not")
	}
	if !taken(g) {
		t.Error("no news of what was queried before")
	}
	if observation(t, Wrap(otherGate{inner}), "Beta").Queried || observation(t, Wrap(&otherGate{inner}), "Beta").Queried {
		t.Error("a gate whose record cannot be read was queried")
	}
	if taken(Wrap(upstream(t))) {
		t.Error("news of a gate that was never queried")
	}
}

func TestObservationsDescribeGate(t *testing.T) {
	g := Wrap(upstream(t))
	if err := g.Set("Alpha=true"); err != nil {
		t.Fatal(err)
	}
	want := []Observation{
		{Name: "Alpha", Enabled: true, Explicit: true, Stage: "Alpha"},
		{Name: "Beta", Enabled: true, Stage: "Beta", Default: true},
		{Name: "Dependent", Enabled: true, Stage: "Beta", Default: true},
		{Name: "Deprecated", Stage: "Deprecated"},
		{Name: "Locked", Enabled: true, Stage: "GA", Default: true, LockedToDefault: true},
		{Name: "New", Stage: v1alpha1.StagePreAlpha},
	}
	if diff := cmp.Diff(want, g.Observations()); diff != "" {
		t.Errorf("unexpected observations (-want +got):\n%s", diff)
	}
}

func TestMutationKeepsQueriedAndChangesValues(t *testing.T) {
	g := Wrap(upstream(t))
	g.Enabled("Alpha")
	taken(g)
	if err := g.Set("Alpha=true"); err != nil {
		t.Fatal(err)
	}
	if !g.Enabled("Alpha") {
		t.Error("the value is stale after Set returned")
	}
	if !observation(t, g, "Alpha").Queried {
		t.Error("the query is forgotten")
	}
	if !taken(g) {
		t.Error("no news of a changed value")
	}
}

func TestHooksRunOnce(t *testing.T) {
	g := Wrap(upstream(t))
	var calls []string
	called := func(what string) func() { return func() { calls = append(calls, what) } }
	g.OnAddMetrics(called("when metrics are added"))
	g.BeforeFinal(called("before the values are final"))
	g.Finalize()
	calls = append(calls, "final")
	g.AddMetrics()
	g.AddMetrics()
	g.Finalize()
	g.OnAddMetrics(called("after that"))
	want := []string{"before the values are final", "final", "when metrics are added", "after that"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("unexpected calls (-want +got):\n%s", diff)
	}
}

func TestEnabledAllocatesNothing(t *testing.T) {
	g := Wrap(upstream(t))
	g.Enabled("Beta")
	if n := testing.AllocsPerRun(100, func() { g.Enabled("Beta") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestConcurrentUse is for the race detector; the value is never anything but
// what some mutation set.
func TestConcurrentUse(t *testing.T) {
	g := Wrap(upstream(t))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				g.Enabled("Alpha")
				g.Observations()
			}
		})
	}
	for i := range 50 {
		value := i%2 == 0
		if err := g.SetFromMap(map[string]bool{"Alpha": value}); err != nil {
			t.Error(err)
		}
		if got := g.Enabled("Alpha"); got != value {
			t.Errorf("stale value %t", got)
		}
	}
	group.Wait()
}
