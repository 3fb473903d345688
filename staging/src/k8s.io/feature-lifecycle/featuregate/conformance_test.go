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
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/feature"
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
		l := g.(interface {
			SetWithLogger(klog.Logger, string) error
			SetFromMapWithLogger(klog.Logger, map[string]bool) error
			OverrideDefaultWithLogger(klog.Logger, featuregate.Feature, bool) error
		})
		return []any{l.SetWithLogger(klog.Logger{}, "Alpha=true"), l.SetFromMapWithLogger(klog.Logger{}, map[string]bool{"Deprecated": true}), l.OverrideDefaultWithLogger(klog.Logger{}, "Beta", true)}
	},
	"emulate with logger": func(g featuregate.MutableVersionedFeatureGate) any {
		l := g.(featuregate.MutableVersionedFeatureGateWithLogger)
		return []any{l.SetEmulationVersionWithLogger(klog.Logger{}, utilversion.MustParse("1.35")), l.OverrideDefaultAtVersionWithLogger(klog.Logger{}, "Alpha", true, utilversion.MustParse("1.35"))}
	},
	"add versions": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"Added": {
			{Version: utilversion.MustParse("1.35"), PreRelease: featuregate.Alpha}, {Version: utilversion.MustParse("1.36"), Default: true, PreRelease: featuregate.Beta},
		}})
	},
	"add versions otherwise": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.AddVersioned(map[featuregate.Feature]featuregate.VersionedSpecs{"Alpha": {{Version: utilversion.MustParse("1.36"), PreRelease: featuregate.Beta}}})
	},
	"add dependency, then set against it": func(g featuregate.MutableVersionedFeatureGate) any {
		return []any{g.AddDependencies(map[featuregate.Feature][]featuregate.Feature{"Alpha": {"Deprecated"}}), g.Set("Alpha=true,Deprecated=false")}
	},
	// Upstream names any member of a longer circle.
	"add dependency in a circle": func(g featuregate.MutableVersionedFeatureGate) any {
		return g.AddDependencies(map[featuregate.Feature][]featuregate.Feature{"Beta": {"Beta"}})
	},
	"add after the flag": func(g featuregate.MutableVersionedFeatureGate) any {
		g.AddFlag(pflag.NewFlagSet("", pflag.ContinueOnError))
		return []any{g.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Added": {}}), g.OverrideDefault("Alpha", true)}
	},
	"reset what is unknown": func(g featuregate.MutableVersionedFeatureGate) any { return g.ResetFeatureValueToDefault("Unknown") },
	"query what is unknown": func(g featuregate.MutableVersionedFeatureGate) any {
		return panics(func() { g.Enabled("Unknown") })
	},
	"query, then emulate: the warning": func(g featuregate.MutableVersionedFeatureGate) any {
		g.Enabled("Beta")
		g.Enabled("Beta")
		g.Enabled("Locked")
		var warnings []string
		logger := funcr.New(func(prefix, args string) { warnings = append(warnings, prefix+args) }, funcr.Options{})
		err := g.(featuregate.MutableVersionedFeatureGateWithLogger).SetEmulationVersionWithLogger(logger, utilversion.MustParse("1.35"))
		slices.Sort(warnings)
		return []any{err, warnings}
	},
	"query, emulate, query, emulate: the warnings": func(g featuregate.MutableVersionedFeatureGate) any {
		var warnings []string
		logger := funcr.New(func(prefix, args string) { warnings = append(warnings, prefix+args) }, funcr.Options{})
		var errs []error
		for _, version := range []string{"1.35", "1.36", "1.35"} {
			g.Enabled("Beta")
			errs = append(errs, g.(featuregate.MutableVersionedFeatureGateWithLogger).SetEmulationVersionWithLogger(logger, utilversion.MustParse(version)))
		}
		return []any{errs, warnings}
	},
	"metrics": func(g featuregate.MutableVersionedFeatureGate) any {
		feature.ResetFeatureInfoMetric()
		err := g.Set("Alpha=true")
		g.AddMetrics()
		families, gatherErr := legacyregistry.DefaultGatherer.Gather()
		var lines []string
		for _, family := range families {
			if family.GetName() == "kubernetes_feature_enabled" {
				for _, m := range family.GetMetric() {
					lines = append(lines, m.String())
				}
			}
		}
		slices.Sort(lines)
		return []any{err, gatherErr, len(lines) > 0, lines}
	},
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
