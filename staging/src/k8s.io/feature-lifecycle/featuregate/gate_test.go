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

package featuregate

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

// upstream makes a gate of component-base with features of every kind.
func upstream(t testing.TB) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gate := featuregate.NewVersionedFeatureGate(utilversion.MustParse("1.36"))
	v := utilversion.MustParse
	err := gate.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{
		"Alpha":      {{Version: v("1.35"), PreRelease: featuregate.Alpha}},
		"Beta":       {{Version: v("1.34"), PreRelease: featuregate.Alpha}, {Version: v("1.36"), Default: true, PreRelease: featuregate.Beta}},
		"Dependent":  {{Version: v("1.36"), Default: true, PreRelease: featuregate.Beta}},
		"Locked":     {{Version: v("1.30"), Default: true, PreRelease: featuregate.GA, LockToDefault: true}},
		"Deprecated": {{Version: v("1.0"), PreRelease: featuregate.GA, Default: true}, {Version: v("1.36"), PreRelease: featuregate.Deprecated}},
		"New":        {{Version: v("1.37"), PreRelease: featuregate.Alpha}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.AddDependencies(map[featuregate.Feature][]featuregate.Feature{"Dependent": {"Beta"}}); err != nil {
		t.Fatal(err)
	}
	return gate
}

// panics returns what f panics with.
func panics(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// picture is everything that can be seen of a gate.
func picture(gate featuregate.MutableVersionedFeatureGate) map[string]string {
	result := map[string]string{
		"all":          fmt.Sprint(gate.GetAll()),
		"versioned":    fmt.Sprint(gate.GetAllVersioned()),
		"known":        fmt.Sprint(gate.KnownFeatures()),
		"dependencies": fmt.Sprint(gate.Dependencies()),
		"emulation":    gate.EmulationVersion().String(),
		"min":          gate.MinCompatibilityVersion().String(),
		"validate":     fmt.Sprint(gate.Validate()),
		"string":       fmt.Sprint(gate),
		"unknown":      panics(func() { gate.Enabled("Unknown") }),
	}
	for name := range gate.GetAllVersioned() {
		result["enabled "+string(name)] = fmt.Sprint(gate.Enabled(name))
		result["explicit "+string(name)] = fmt.Sprint(gate.ExplicitlySet(name))
	}
	return result
}

// operations are done to upstream's gate and to the layer alike.
var operations = map[string]func(featuregate.MutableVersionedFeatureGate) any{
	"nothing":                func(featuregate.MutableVersionedFeatureGate) any { return nil },
	"set":                    func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Alpha=true,Deprecated=true") },
	"set all alpha":          func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("AllAlpha=true") },
	"set all beta off":       func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("AllBeta=false") },
	"set unknown":            func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Unknown=true") },
	"set nonsense":           func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Alpha") },
	"set what is no boolean": func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Alpha=perhaps") },
	"set locked":             func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Locked=false") },
	"set what is too new":    func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("New=true") },
	"set against dependency": func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Beta=false") },
	"set good and bad":       func(g featuregate.MutableVersionedFeatureGate) any { return g.Set("Alpha=true,Locked=false") },
	"set from map": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.SetFromMap(map[string]bool{"Alpha": true})
	},
	"override default":        func(g featuregate.MutableVersionedFeatureGate) any { return g.OverrideDefault("Alpha", true) },
	"override locked default": func(g featuregate.MutableVersionedFeatureGate) any { return g.OverrideDefault("Locked", false) },
	"override unknown":        func(g featuregate.MutableVersionedFeatureGate) any { return g.OverrideDefault("Unknown", false) },
	"override at version": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.OverrideDefaultAtVersion("Beta", true, utilversion.MustParse("1.35"))
	},
	"emulate an older version": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.SetEmulationVersion(utilversion.MustParse("1.35"))
	},
	"set, then emulate": func(g featuregate.MutableVersionedFeatureGate) any {
		return []any{g.Set("Alpha=true"), g.SetEmulationVersionAndMinCompatibilityVersion(utilversion.MustParse("1.34"), utilversion.MustParse("1.33"))}
	},
	"add": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Added": {Default: true, PreRelease: featuregate.Beta}})
	},
	"add otherwise": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Alpha": {Default: true, PreRelease: featuregate.Beta}})
	},
	"add after close": func(g featuregate.MutableVersionedFeatureGate) any {
		g.Close()
		return g.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Added": {}})
	},
	"add dependency of an unknown feature": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.AddDependencies(map[featuregate.Feature][]featuregate.Feature{"Alpha": {"Unknown"}})
	},
	"set and reset": func(g featuregate.MutableVersionedFeatureGate) any {
		return []any{g.Set("Alpha=true"), g.ResetFeatureValueToDefault("Alpha")}
	},
	"set a copy": func(g featuregate.MutableVersionedFeatureGate) any {
		c := g.DeepCopy()
		return []any{c.Set("Alpha=true"), c.Enabled("Alpha")}
	},
	"set a copy that was reset": func(g featuregate.MutableVersionedFeatureGate) any {
		err := g.Set("Alpha=true")
		c := g.DeepCopyAndReset()
		return []any{err, c.Enabled("Alpha"), c.Set("Beta=false"), c.Enabled("Beta")}
	},
	"parse the flag": func(g featuregate.MutableVersionedFeatureGate) any {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		g.AddFlag(fs)
		f := fs.Lookup("feature-gates")
		return []any{fs.Parse([]string{"--feature-gates=Alpha=true"}), f.Usage, f.Value.String(), f.Value.Type(), f.Changed}
	},
	"parse a wrong flag": func(g featuregate.MutableVersionedFeatureGate) any {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		g.AddFlag(fs)
		return fs.Parse([]string{"--feature-gates=Unknown=true"})
	},
	"set with logger": func(g featuregate.MutableVersionedFeatureGate) any {
		l := g.(featuregate.MutableFeatureGateWithLogger)
		return []any{l.SetWithLogger(klog.Logger{}, "Alpha=true"), l.SetFromMapWithLogger(klog.Logger{}, map[string]bool{"Deprecated": true}), l.OverrideDefaultWithLogger(klog.Logger{}, "Beta", true)}
	},
	"emulate with logger": func(g featuregate.MutableVersionedFeatureGate) any {
		l := g.(featuregate.MutableVersionedFeatureGateWithLogger)
		return []any{l.SetEmulationVersionWithLogger(klog.Logger{}, utilversion.MustParse("1.35")), l.OverrideDefaultAtVersionWithLogger(klog.Logger{}, "Alpha", true, utilversion.MustParse("1.35"))}
	},
	"metrics": func(g featuregate.MutableVersionedFeatureGate) any { g.AddMetrics(); return nil },
}

func TestLayerBehavesAsTheGateItWraps(t *testing.T) {
	for name, operate := range operations {
		t.Run(name, func(t *testing.T) {
			plain, layered := upstream(t), featuregate.MutableVersionedFeatureGate(Wrap(upstream(t)))
			want, got := fmt.Sprint(operate(plain)), fmt.Sprint(operate(layered))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("unexpected result (-upstream +layer):\n%s", diff)
			}
			if diff := cmp.Diff(picture(plain), picture(layered)); diff != "" {
				t.Errorf("unexpected gate (-upstream +layer):\n%s", diff)
			}
		})
	}
}

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

func TestOnlyWhatIsAskedIsAsked(t *testing.T) {
	g := Wrap(upstream(t))
	g.AddMetrics()
	for _, o := range g.Observations() {
		if o.Asked {
			t.Errorf("%s counts as asked although nobody asked", o.Name)
		}
	}
	if taken(g) {
		t.Error("news although nobody asked")
	}
	g.Enabled("Beta")
	if !observation(t, g, "Beta").Asked || observation(t, g, "Alpha").Asked {
		t.Error("Beta should be asked, Alpha not")
	}
	if !taken(g) {
		t.Error("no news of the first question")
	}
	g.Enabled("Beta")
	if taken(g) {
		t.Error("news of the second question")
	}
}

// otherGate is a gate that is not upstream's own.
type otherGate struct {
	featuregate.MutableVersionedFeatureGate
}

// TestWhatWasAskedBeforeIsAsked: packages ask while they are initialised.
func TestWhatWasAskedBeforeIsAsked(t *testing.T) {
	inner := upstream(t)
	inner.Enabled("Beta")
	g := Wrap(inner)
	if !observation(t, g, "Beta").Asked || observation(t, g, "Alpha").Asked {
		t.Error("Beta should be asked, Alpha not")
	}
	if !taken(g) {
		t.Error("no news of what was asked before")
	}
	if observation(t, Wrap(otherGate{inner}), "Beta").Asked || observation(t, Wrap(&otherGate{inner}), "Beta").Asked {
		t.Error("a gate whose record cannot be read was asked for something")
	}
	if taken(Wrap(upstream(t))) {
		t.Error("news of a gate that was asked for nothing")
	}
}

func TestObservationsSayWhatTheGateIs(t *testing.T) {
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
	}
	if diff := cmp.Diff(want, g.Observations()); diff != "" {
		t.Errorf("unexpected observations (-want +got):\n%s", diff)
	}
}

func TestAskedSurvivesMutationAndValuesAreNew(t *testing.T) {
	g := Wrap(upstream(t))
	g.Enabled("Alpha")
	taken(g)
	if err := g.Set("Alpha=true"); err != nil {
		t.Fatal(err)
	}
	if !g.Enabled("Alpha") {
		t.Error("the value is stale after Set returned")
	}
	if !observation(t, g, "Alpha").Asked {
		t.Error("the question is forgotten")
	}
	if !taken(g) {
		t.Error("no news of a changed value")
	}
}

func TestFinalHooksRunOnce(t *testing.T) {
	g := Wrap(upstream(t))
	var calls []string
	g.OnFinal(func() { calls = append(calls, "before") })
	g.AddMetrics()
	g.AddMetrics()
	g.OnFinal(func() { calls = append(calls, "after") })
	if diff := cmp.Diff([]string{"before", "after"}, calls); diff != "" {
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

func BenchmarkEnabled(b *testing.B) {
	for _, gate := range []struct {
		name string
		gate featuregate.FeatureGate
	}{{"upstream", upstream(b)}, {"layer", Wrap(upstream(b))}} {
		b.Run(gate.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				gate.gate.Enabled("Beta")
			}
		})
		b.Run(gate.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					gate.gate.Enabled("Beta")
				}
			})
		})
	}
}
