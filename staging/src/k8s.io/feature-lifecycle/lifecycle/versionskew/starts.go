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

package versionskew

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Dependence is a gate that a feature depends on, or that depends on the feature,
// directly. A binary refuses to start with the dependent one on and the other one off
// (component-base/featuregate, SetFromMap), whichever source set them.
type Dependence struct {
	// Name is the other gate. Needed is true when the feature depends on it, and
	// false when it depends on the feature.
	Name   string
	Needed bool
	// Target is its spec in the other version.
	Target Spec
	// Explicit are the explicit settings of it in all processes' reports.
	Explicit []Setting
}

// Dependences returns the dependences of all gates that have some, sorted by name,
// without specs and settings.
func (d Dependencies) Dependences() map[string][]Dependence {
	of := map[string][]Dependence{}
	for dependent, dependencies := range d {
		for _, dependency := range dependencies {
			of[string(dependent)] = append(of[string(dependent)], Dependence{Name: string(dependency), Needed: true})
			of[string(dependency)] = append(of[string(dependency)], Dependence{Name: string(dependent)})
		}
	}
	for _, dependences := range of {
		slices.SortFunc(dependences, func(a, b Dependence) int { return cmp.Compare(a.Name, b.Name) })
	}
	return of
}

// StageSetting is AllAlpha or AllBeta, as a process was given it.
type StageSetting struct {
	// Component and Instance name the process.
	Component, Instance string
	// Stage is StageAlpha or StageBeta.
	Stage   v1alpha1.FeatureStage
	Enabled bool
}

// Stages returns the values of AllAlpha and AllBeta that a process was given, by stage,
// as far as its report shows them. They are not reported themselves: a gate without an
// explicit setting that differs from its default was set by one of them. Stages returns
// nil where none is seen.
func Stages(reported []v1alpha1.ReportedFeature) map[v1alpha1.FeatureStage]bool {
	var stages map[v1alpha1.FeatureStage]bool
	for i := range reported {
		r := &reported[i]
		own := r.Enabled != r.Overridden
		if r.Explicit || own == r.Default || r.Stage != v1alpha1.StageAlpha && r.Stage != v1alpha1.StageBeta {
			continue
		}
		if stages == nil {
			stages = map[v1alpha1.FeatureStage]bool{}
		}
		stages[r.Stage] = own
	}
	return stages
}

// process names a process.
type process struct{ component, instance string }

// given holds the values that processes were given, for one gate or one stage.
type given map[process]bool

func settingsOf(explicit []Setting) given {
	of := make(given, len(explicit))
	for _, s := range explicit {
		if !s.Foreign {
			of[process{s.Component, s.Instance}] = s.Enabled
		}
	}
	return of
}

// targetGate is a gate in the other version, with the processes that set it.
type targetGate struct {
	name     string
	spec     Spec
	explicit given
}

// value returns the value that a gate has in a process of the other version, and the
// setting that causes it; "" means the gate's default.
func (g targetGate) value(p process, stages map[v1alpha1.FeatureStage]given) (value bool, setting string) {
	if !g.spec.Known {
		return false, ""
	}
	if g.spec.Locked {
		return g.spec.Default, ""
	}
	if value, set := g.explicit[p]; set {
		return value, fmt.Sprintf("%s=%t", g.name, value)
	}
	if value, set := stages[g.spec.Stage][p]; set {
		return value, fmt.Sprintf("All%s=%t", g.spec.Stage, value)
	}
	return g.spec.Default, ""
}

// conflict is other gates with which processes would refuse to start, the same ones
// for each.
type conflict struct {
	needed bool
	others []targetGate
	// refused lists what each process sets.
	refused []string
}

// conflicts returns the dependences that would not hold in some process, grouped where
// these are the same.
func (q Input) conflicts() []conflict {
	if len(q.Dependences) == 0 {
		return nil
	}
	stages := map[v1alpha1.FeatureStage]given{}
	for _, s := range q.Stages {
		if stages[s.Stage] == nil {
			stages[s.Stage] = given{}
		}
		stages[s.Stage][process{s.Component, s.Instance}] = s.Enabled
	}
	this := targetGate{q.Feature.Name, q.Target, settingsOf(q.Explicit)}
	var found []conflict
	for _, d := range q.Dependences {
		other := targetGate{d.Name, d.Target, settingsOf(d.Explicit)}
		refused := refusedPair(this, other, d.Needed, stages)
		if len(refused) == 0 {
			continue
		}
		same := slices.IndexFunc(found, func(c conflict) bool { return c.needed == d.Needed && slices.Equal(c.refused, refused) })
		if same < 0 {
			found = append(found, conflict{needed: d.Needed, refused: refused})
			same = len(found) - 1
		}
		found[same].others = append(found[same].others, other)
	}
	return found
}

// refusedPair returns the processes that would have the dependent one of two gates on
// and the other one off, sorted, and what they set. Defaults alone never conflict
// (component-base/featuregate, AddDependencies).
func refusedPair(this, other targetGate, needed bool, stages map[v1alpha1.FeatureStage]given) []string {
	processes := maps.Clone(this.explicit)
	maps.Copy(processes, other.explicit)
	for _, of := range stages {
		maps.Copy(processes, of)
	}
	var refused []string
	for _, p := range slices.SortedFunc(maps.Keys(processes), func(a, b process) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.instance, b.instance))
	}) {
		own, ownSetting := this.value(p, stages)
		value, setting := other.value(p, stages)
		if dependent, dependency := pick(needed, own, value); !dependent || dependency {
			continue
		}
		settings := slices.DeleteFunc([]string{ownSetting, setting}, func(s string) bool { return s == "" })
		refused = append(refused, fmt.Sprintf("%s/%s sets %s", p.component, p.instance, strings.Join(slices.Compact(settings), ", ")))
	}
	return refused
}

// pick returns the one of this and another gate that depends on the other one first.
func pick[T any](needed bool, this, other T) (dependent, dependency T) {
	if needed {
		return this, other
	}
	return other, this
}

// RefusesDependencies returns the processes that would refuse to start in the other
// version because one gate would be on without another one that it depends on. Next
// names the flags with which they would start. Both are "" when none would refuse.
func (q Input) RefusesDependencies() (why, next string) {
	this := targetGate{name: q.Feature.Name, spec: q.Target}
	var whys, nexts []string
	for _, c := range q.conflicts() {
		var names []string
		for _, other := range c.others {
			names = append(names, other.name)
		}
		on, off := pick(c.needed, q.Feature.Name, strings.Join(names, ", "))
		they := map[bool]string{true: "they depend", false: "it depends"}[!c.needed && len(names) > 1]
		whys = append(whys, fmt.Sprintf("binaries would refuse to start in %s with %s on and %s off, on which %s: %s", q.To, on, off, they, few(c.refused)))
		dependents, dependencies := pick(c.needed, []targetGate{this}, c.others)
		var ways []string
		for _, value := range []bool{false, true} {
			if flag := together(append(slices.Clone(dependents), dependencies...), value); flag != "" {
				ways = append(ways, flag)
			}
		}
		nexts = append(nexts, fmt.Sprintf("start them in %s with %s", q.To, strings.Join(ways, ", or with ")))
	}
	return strings.Join(whys, "; "), strings.Join(nexts, "; ")
}

// together returns the flag that gives gates one value, "" where one of them cannot
// have it. A gate that is off because it does not exist is left out.
func together(gates []targetGate, value bool) string {
	var settings []string
	for _, g := range gates {
		switch {
		case !g.spec.Known && !value:
		case !g.spec.Known, g.spec.Locked && g.spec.Default != value:
			return ""
		default:
			settings = append(settings, fmt.Sprintf("%s=%t", g.name, value))
		}
	}
	return "--feature-gates=" + strings.Join(settings, ",")
}

// needsSetOff names the gates that the feature depends on and that a process has off
// explicitly, sorted.
func (q Input) needsSetOff() []string {
	var names []string
	for _, d := range q.Dependences {
		if d.Needed && slices.ContainsFunc(d.Explicit, func(s Setting) bool { return !s.Enabled }) {
			names = append(names, d.Name)
		}
	}
	return names
}
