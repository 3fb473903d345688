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
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/feature"
)

// remotes are values from outside by name; those with a trailing '*' are dynamic.
func remotes(values map[string]bool) map[featuregate.Feature]Remote {
	result := map[featuregate.Feature]Remote{}
	for name, value := range values {
		plain := strings.TrimSuffix(name, "*")
		result[featuregate.Feature(plain)] = Remote{Value: value, Dynamic: plain != name}
	}
	return result
}

// summary is outcomes as "Name=enabled Reason".
func summary(outcomes []Outcome) []string {
	var lines []string
	for _, o := range outcomes {
		lines = append(lines, fmt.Sprintf("%s=%t %s", o.Feature, o.Enabled, o.Reason))
	}
	return lines
}

func TestSetRemoteReportsOutcomeOfEachValue(t *testing.T) {
	type values = map[string]bool
	for name, tc := range map[string]struct {
		// set is --feature-gates; queried is queried before; before is there when
		// the values become final, after comes later.
		set           string
		queried       []featuregate.Feature
		before, after values
		want          []string
	}{
		"none":                                      {},
		"a static value in time":                    {before: values{"Alpha": true}, want: []string{"Alpha=true InEffect"}},
		"the default":                               {before: values{"Beta": true}, want: []string{"Beta=true InEffect"}},
		"a dynamic value in time":                   {before: values{"Alpha*": true}, want: []string{"Alpha=true InEffect"}},
		"a static value too late":                   {after: values{"Alpha": true}, want: []string{"Alpha=false Outdated"}},
		"the value in use, late":                    {after: values{"Alpha": false}, want: []string{"Alpha=false InEffect"}},
		"a dynamic value late":                      {after: values{"Alpha*": true}, want: []string{"Alpha=true InEffect"}},
		"a static value that changed":               {before: values{"Alpha": true}, after: values{"Alpha": false}, want: []string{"Alpha=true Outdated"}},
		"a static value that was withdrawn":         {before: values{"Alpha": true}, after: values{}, want: []string{"Alpha=true Outdated"}},
		"the default, withdrawn":                    {before: values{"Beta": true}, after: values{}},
		"a dynamic value that was withdrawn":        {before: values{"Alpha*": true}, after: values{}},
		"static, then dynamic":                      {before: values{"Alpha": true}, after: values{"Alpha*": false}, want: []string{"Alpha=false InEffect"}},
		"dynamic, then static":                      {before: values{"Alpha*": true}, after: values{"Alpha": false}, want: []string{"Alpha=true Outdated"}},
		"unknown":                                   {before: values{"Nonsense": true}, want: []string{"Nonsense=false Unknown"}},
		"newer than the emulated version":           {before: values{"New": false}, want: []string{"New=false Unknown"}},
		"locked to the other value":                 {before: values{"Locked": false}, want: []string{"Locked=true Locked"}},
		"locked to this value":                      {before: values{"Locked": true}, want: []string{"Locked=true InEffect"}},
		"explicitly the other":                      {set: "Alpha=false", before: values{"Alpha": true}, want: []string{"Alpha=false ExplicitlySet"}},
		"explicitly the same":                       {set: "Alpha=true", before: values{"Alpha": true}, want: []string{"Alpha=true InEffect"}},
		"explicitly the other, dynamic":             {set: "Alpha=false", after: values{"Alpha*": true}, want: []string{"Alpha=false ExplicitlySet"}},
		"AllAlpha is no explicit value":             {set: "AllAlpha=true", before: values{"Alpha": false}, want: []string{"Alpha=false InEffect"}},
		"AllBeta is no explicit value":              {set: "AllBeta=false", before: values{"Beta": true}, want: []string{"Beta=true InEffect"}},
		"AllAlpha is no feature":                    {before: values{"AllAlpha": true}, want: []string{"AllAlpha=false KeptLocal"}},
		"kept by the binary":                        {before: values{"Deprecated": true}, want: []string{"Deprecated=false KeptLocal"}},
		"queried before":                            {queried: []featuregate.Feature{"Alpha"}, before: values{"Alpha": true}, want: []string{"Alpha=false QueriedBefore"}},
		"queried before, and late":                  {queried: []featuregate.Feature{"Alpha"}, after: values{"Alpha": true}, want: []string{"Alpha=false QueriedBefore"}},
		"queried before, with this answer":          {queried: []featuregate.Feature{"Beta"}, before: values{"Beta": true}, want: []string{"Beta=true InEffect"}},
		"queried before, dynamic":                   {queried: []featuregate.Feature{"Alpha"}, before: values{"Alpha*": true}, want: []string{"Alpha=true InEffect"}},
		"off, and another needs it":                 {before: values{"Beta": false}, want: []string{"Beta=true DependencyViolated"}},
		"off, with the one that needs it":           {before: values{"Beta": false, "Dependent": false}, want: []string{"Beta=false InEffect", "Dependent=false InEffect"}},
		"off late, and another needs it":            {after: values{"Beta*": false}, want: []string{"Beta=true DependencyViolated"}},
		"off, and the other is kept on":             {set: "Dependent=true", before: values{"Beta": false, "Dependent": false}, want: []string{"Beta=true DependencyViolated", "Dependent=true ExplicitlySet"}},
		"a restart would not help: dependency":      {after: values{"Beta": false}, want: []string{"Beta=true DependencyViolated"}},
		"a restart would help both":                 {after: values{"Beta": false, "Dependent": false}, want: []string{"Beta=true Outdated", "Dependent=true Outdated"}},
		"static needs what dynamic gave":            {set: "AllBeta=false", before: values{"Beta*": true, "Dependent": true}, after: values{"Dependent": true}, want: []string{"Dependent=true InEffect"}},
		"static holds a dynamic value":              {set: "AllBeta=false", before: values{"Beta*": true, "Dependent": true}, after: values{"Beta*": false, "Dependent": true}, want: []string{"Beta=true DependencyViolated", "Dependent=true InEffect"}},
		"both on, while one is off on the process":  {set: "Beta=false,Dependent=false", before: values{"Beta": true}, want: []string{"Beta=false ExplicitlySet"}},
		"on, while the other is off on the process": {set: "Beta=false,AllBeta=false", before: values{"Dependent*": true}, want: []string{"Dependent=false DependencyViolated"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := Wrap(upstream(t))
			g.KeepLocal("Deprecated")
			if tc.set != "" {
				if err := g.Set(tc.set); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range tc.queried {
				g.Enabled(f)
			}
			if tc.before != nil {
				g.BeforeFinal(func() { g.SetRemote(remotes(tc.before)) })
			}
			g.AddMetrics()
			if tc.after != nil {
				g.SetRemote(remotes(tc.after))
			}
			outcomes := g.RemoteOutcomes()
			if diff := cmp.Diff(tc.want, summary(outcomes)); diff != "" {
				t.Errorf("unexpected outcomes (-want +got):\n%s", diff)
			}
			for _, o := range outcomes {
				if _, known := g.GetAllVersioned()[o.Feature]; known && g.Enabled(o.Feature) != o.Enabled {
					t.Errorf("%s: the gate says %t, the outcome %t", o.Feature, g.Enabled(o.Feature), o.Enabled)
				}
				if (o.Message == "") != (o.Reason == OutcomeInEffect) {
					t.Errorf("%s is %s and says %q", o.Feature, o.Reason, o.Message)
				}
			}
			if errs := g.Validate(); len(errs) > 0 {
				t.Errorf("upstream refuses the gate: %v", errs)
			}
		})
	}
}

// TestAllReadersAgreeOnRemoteValue: Enabled, the copy, the string, the
// observation and the metric; nothing was set on the process itself.
func TestAllReadersAgreeOnRemoteValue(t *testing.T) {
	feature.ResetFeatureInfoMetric()
	g := Wrap(upstream(t))
	g.SetRemote(remotes(map[string]bool{"Alpha*": true, "Deprecated": true}))
	g.AddMetrics()
	for _, value := range []bool{true, false} {
		g.SetRemote(remotes(map[string]bool{"Alpha*": value, "Deprecated": true}))
		if g.Enabled("Alpha") != value || g.DeepCopy().Enabled("Alpha") != value || g.Snapshot().Enabled("Alpha") != value || g.Snapshot().DeepCopy().Enabled("Alpha") != value {
			t.Errorf("Alpha: not all say %t", value)
		}
		if text := g.String(); !strings.Contains(text, fmt.Sprintf("Alpha=%t", value)) || !strings.Contains(text, "Deprecated=true") {
			t.Errorf("the gate is %q", text)
		}
		if o := observation(t, g, "Alpha"); o.Enabled != value || o.Explicit {
			t.Errorf("observed %+v", o)
		}
		if got := metric(t, "Alpha"); got != value {
			t.Errorf("the metric says %t", got)
		}
	}
	if g.ExplicitlySet("Alpha") || g.inner.Enabled("Alpha") {
		t.Error("the value reached the wrapped gate")
	}
	if err := g.Set("Alpha=true"); err != nil {
		t.Fatal(err)
	}
	if !g.Enabled("Alpha") || g.RemoteOutcomes()[0].Reason != OutcomeExplicitlySet {
		t.Errorf("what was set on the process last does not win: %+v", g.RemoteOutcomes())
	}
}

// TestObservationsMarkOverridden: only what came from outside and changed
// something is.
func TestObservationsMarkOverridden(t *testing.T) {
	gate := Wrap(upstream(t))
	overridden := func() []string {
		var names []string
		for _, o := range gate.Observations() {
			if o.Overridden {
				names = append(names, o.Name)
			}
		}
		return names
	}
	for _, step := range []struct {
		set  map[string]bool
		want []string
	}{
		{nil, nil},
		{map[string]bool{"Alpha*": true, "Dependent*": true}, []string{"Alpha"}},
		{map[string]bool{"Alpha*": false, "Dependent*": false}, []string{"Dependent"}},
		{nil, nil},
	} {
		gate.SetRemote(remotes(step.set))
		if got := overridden(); !slices.Equal(got, step.want) {
			t.Errorf("with %v from outside, overridden are %v, want %v", step.set, got, step.want)
		}
	}
}

// TestObservationsHaveMoment at which the process takes the other value from outside, where
// it does.
func TestObservationsHaveMoment(t *testing.T) {
	gate := Wrap(upstream(t))
	gate.Finalize()
	moment := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	observed := func(f featuregate.Feature) time.Time {
		for _, o := range gate.Observations() {
			if o.Name == string(f) {
				return o.SwitchTime
			}
		}
		t.Fatalf("%s is not observed", f)
		return time.Time{}
	}
	news := func() bool {
		select {
		case <-gate.News():
			return true
		default:
			return false
		}
	}
	news()
	set := func(f featuregate.Feature, dynamic bool, at time.Time) {
		gate.SetRemote(map[featuregate.Feature]Remote{f: {Value: gate.Enabled(f), Dynamic: dynamic, SwitchTime: at}})
	}
	gate.Enabled("Alpha")
	news()
	set("Alpha", true, moment)
	if got := observed("Alpha"); !got.Equal(moment) || !news() {
		t.Errorf("the moment is %s, want %s, and news of it", got, moment)
	}
	if set("Alpha", true, moment); news() {
		t.Error("there is news of the same moment")
	}
	if set("Alpha", true, time.Time{}); !observed("Alpha").IsZero() || !news() {
		t.Errorf("a moment that was called off is %s, want none, and news of it", observed("Alpha"))
	}
	if set("Alpha", false, moment); !observed("Alpha").IsZero() {
		t.Error("a static value has a moment")
	}
	if err := gate.SetFromMap(map[string]bool{"Alpha": false}); err != nil {
		t.Fatal(err)
	}
	if set("Alpha", true, moment); !observed("Alpha").IsZero() {
		t.Error("a value that is set on the process has a moment")
	}
	if set("Locked", true, moment); !observed("Locked").IsZero() {
		t.Error("a locked gate has a moment")
	}
}

// TestLaterFlagOverridesRemoteValue, and what depends on the other value goes with
// it.
func TestLaterFlagOverridesRemoteValue(t *testing.T) {
	g := Wrap(upstream(t))
	if err := g.Set("AllBeta=false"); err != nil {
		t.Fatal(err)
	}
	g.SetRemote(remotes(map[string]bool{"Beta": true, "Dependent": true}))
	g.Finalize()
	if !g.Enabled("Beta") || !g.Enabled("Dependent") {
		t.Fatalf("%+v", g.RemoteOutcomes())
	}
	if err := g.Set("Beta=false"); err != nil {
		t.Fatal(err)
	}
	if g.Enabled("Beta") || g.Enabled("Dependent") || len(g.Validate()) > 0 {
		t.Errorf("Beta %t, Dependent %t, %v", g.Enabled("Beta"), g.Enabled("Dependent"), g.Validate())
	}
	if diff := cmp.Diff([]string{"Beta=false ExplicitlySet", "Dependent=false DependencyViolated"}, summary(g.RemoteOutcomes())); diff != "" {
		t.Errorf("unexpected outcomes (-want +got):\n%s", diff)
	}
}

// TestAnInvalidGateStaysAsItIs: upstream keeps what a failed Set was given, and
// refuses everything from then on; nothing is put on top of that.
func TestAnInvalidGateStaysAsItIs(t *testing.T) {
	g, plain := Wrap(upstream(t)), upstream(t)
	if g.Set("Beta=false") == nil || plain.Set("Beta=false") == nil {
		t.Fatal("upstream accepts a violated dependency")
	}
	outcomes := g.SetRemote(remotes(map[string]bool{"Alpha": true}))
	if diff := cmp.Diff([]string{"Alpha=false DependencyViolated"}, summary(outcomes)); diff != "" {
		t.Errorf("unexpected outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(picture(plain), picture(g)); diff != "" {
		t.Errorf("unexpected gate (-upstream +layer):\n%s", diff)
	}
}

func metric(t *testing.T, name string) bool {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == "kubernetes_feature_enabled" && label.GetValue() == name {
					return m.GetGauge().GetValue() == 1
				}
			}
		}
	}
	t.Fatalf("no metric of %s", name)
	return false
}

// TestUpstreamNeverRefusesTheGate draws gates, dependencies, what was set on the
// process, and values from outside before and after the values are final.
func TestUpstreamNeverRefusesTheGate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 6
		inner := featuregate.NewVersionedFeatureGate(utilversion.MustParse("1.36"))
		specs := map[featuregate.Feature]featuregate.FeatureSpec{}
		name := func(i int) featuregate.Feature { return featuregate.Feature(fmt.Sprintf("F%d", i)) }
		for i := range n {
			specs[name(i)] = featuregate.FeatureSpec{PreRelease: featuregate.Beta, Default: i < n/2}
		}
		if err := inner.Add(specs); err != nil {
			t.Fatal(err)
		}
		dependencies := map[featuregate.Feature][]featuregate.Feature{}
		for i := 1; i < n; i++ {
			for j := range i {
				if rapid.Bool().Draw(t, fmt.Sprintf("%d needs %d", i, j)) {
					dependencies[name(i)] = append(dependencies[name(i)], name(j))
				}
			}
		}
		if err := inner.AddDependencies(dependencies); err != nil {
			t.Fatal(err)
		}
		g := Wrap(inner)
		values := func(what string) map[string]bool {
			return rapid.MapOf(rapid.SampledFrom([]string{"F0", "F1", "F2", "F3", "F4", "F5"}), rapid.Bool()).Draw(t, what)
		}
		if local := values("local"); inner.DeepCopy().SetFromMap(local) == nil {
			if err := g.SetFromMap(local); err != nil {
				t.Fatal(err)
			}
		}
		static := map[string]bool{}
		for step := range 6 {
			if step == 2 {
				g.Finalize()
			}
			outside := map[featuregate.Feature]Remote{}
			for f, v := range values("outside") {
				outside[featuregate.Feature(f)] = Remote{Value: v, Dynamic: rapid.Bool().Draw(t, f+" is dynamic")}
			}
			outcomes := g.SetRemote(outside)
			if errs := g.Validate(); len(errs) > 0 {
				t.Fatalf("upstream refuses the gate: %v", errs)
			}
			for _, o := range outcomes {
				f := string(o.Feature)
				if o.Enabled != g.values.Load().find(o.Feature).enabled || (o.Reason == OutcomeInEffect) != (o.Enabled == o.Wanted) {
					t.Fatalf("%+v, and the gate says %t", o, g.values.Load().find(o.Feature).enabled)
				}
				if before, ok := static[f]; ok && !o.Dynamic && before != o.Enabled {
					t.Fatalf("the static %s changed to %t", f, o.Enabled)
				}
				if o.Reason == OutcomeOutdated && (o.Dynamic || step < 2) {
					t.Fatalf("outdated: %+v", o)
				}
			}
			static = map[string]bool{}
			for i := range n {
				f := name(i)
				if _, dynamic := outside[f]; step >= 2 && (!dynamic || !outside[f].Dynamic) && g.remote.frozen[f] {
					static[string(f)] = g.values.Load().find(f).enabled
				}
			}
		}
	})
}

func TestAcceptRefusesNoMoreThanItMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []featuregate.Feature{"A", "B", "C", "D", "E"}
		dependencies := map[featuregate.Feature][]featuregate.Feature{}
		values, changes := map[featuregate.Feature]bool{}, map[featuregate.Feature]bool{}
		for i, f := range names {
			values[f] = rapid.Bool().Draw(t, string(f))
			for _, d := range names[:i] {
				if rapid.Bool().Draw(t, string(f+" needs "+d)) {
					dependencies[f] = append(dependencies[f], d)
					values[f] = values[f] && values[d]
				}
			}
			if rapid.Bool().Draw(t, string(f)+" changes") {
				changes[f] = rapid.Bool().Draw(t, string(f)+" to")
			}
		}
		valid := func(changes map[featuregate.Feature]bool, extra ...featuregate.Feature) bool {
			value := func(f featuregate.Feature) bool {
				for _, e := range extra {
					if e == f {
						return !values[f]
					}
				}
				if v, ok := changes[f]; ok {
					return v
				}
				return values[f]
			}
			for f, needs := range dependencies {
				for _, d := range needs {
					if value(f) && !value(d) {
						return false
					}
				}
			}
			return true
		}
		wanted := len(changes)
		refused := accept(values, dependencies, changes)
		if !valid(changes) || len(changes)+len(refused) != wanted {
			t.Fatalf("accepted %v, refused %v", changes, refused)
		}
		for f := range refused {
			if valid(changes, f) {
				t.Fatalf("%s was refused and can be changed: accepted %v, refused %v", f, changes, refused)
			}
		}
	})
}
