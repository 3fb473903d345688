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

package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle/transition"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/utils/ptr"
)

// Annotation marks Features and FeatureReports that no server has: they say what was
// observed. Its value is the version of the cluster.
const Annotation = "features.k8s.io/observed"

// AnnotationFrom says of such a Feature where its values were observed, by component.
const AnnotationFrom = "features.k8s.io/observed-from"

// stageGates set all gates of a stage that are not set by themselves.
var stageGates = map[string]string{"AllAlpha": "Alpha", "AllBeta": "Beta"}

// Minor is the minor version that decides which gates a process has: the one that it
// emulates, or that of its binary; "" if neither is known.
func (p *Process) Minor() string {
	for _, text := range []string{p.Emulates, p.Version} {
		if v, err := utilversion.ParseGeneric(text); err == nil {
			return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
		}
	}
	return ""
}

// Derive adds the gates of processes of which only those that are set were observed: all
// others have the default of the version. A process whose version the history does not
// have stays as it is, and is a gap; one that is told more than was read is one already.
func (c *Cluster) Derive(h *history.History) {
	for i := range c.Processes {
		p := &c.Processes[i]
		if p.Complete || p.Unread {
			continue
		}
		minor := p.Minor()
		if !slices.Contains(h.Versions(), minor) {
			c.addGap(Gap{
				Component: p.Component, Instances: []string{p.Instance}, Why: fmt.Sprintf("only gates that are set are known: the defaults of version %q are not", minor),
				Next: "its metrics, or kubectl feature of that version",
			})
			continue
		}
		for _, g := range h.Gates() {
			if _, set := p.Gates[g.Name]; set {
				continue
			}
			if spec, ok := g.At(p.Component, minor); ok {
				p.Gates[g.Name] = p.derived(spec, minor)
			}
		}
	}
	c.sort()
}

// derived is the value of a gate that a process does not set.
func (p *Process) derived(spec history.Spec, minor string) Value {
	v := Value{Enabled: spec.Default, Stage: strings.ToUpper(spec.Stage), Explicit: ptr.To(false), Source: "the default of " + minor, Derived: true}
	for name, stage := range stageGates {
		if all, ok := p.Gates[name]; ok && stage == spec.Stage && !spec.Locked && all.Enabled != spec.Default {
			v.Enabled, v.Source = all.Enabled, name+" by "+all.Source
		}
	}
	return v
}

// JoinsWith returns the value of a gate in a component that joins with a minor version, and
// where that follows from; false if it is not known, or the component does not have the gate.
func (c *Cluster) JoinsWith(h *history.History, component, gate, minor string) (v Value, known bool) {
	source, joins := c.Joins[component]
	g, _ := h.Gate(gate)
	spec, has := g.At(component, minor)
	if !joins || !has {
		return v, false
	}
	if set, ok := c.setting(component, gate, spec.Stage, &spec.Default, spec.Locked); ok {
		return Value{Enabled: set.Enabled, Source: set.Source}, true
	}
	v = (&Process{Component: component}).derived(spec, minor)
	v.Source += ", which " + source + " leaves"
	return v, true
}

// setting returns the setting that decides a gate in a component that joins: its own, and
// else that of its stage where it changes the default, which is nil if it is not known.
func (c *Cluster) setting(component, gate, stage string, byDefault *bool, locked bool) (Setting, bool) {
	var found Setting
	for _, s := range c.Settings {
		of, all := stageGates[s.Gate]
		switch {
		case s.Component != component:
		case s.Gate == gate:
			return s, true
		case all && of == stage && !locked && (byDefault == nil || *byDefault != s.Enabled):
			found = Setting{Component: component, Gate: gate, Enabled: s.Enabled, Source: s.Gate + " of " + s.Source}
		}
	}
	return found, found.Gate != ""
}

// names are those of all gates that processes have, but for those of stages.
func (c *Cluster) names() []string {
	all := map[string]bool{}
	for _, p := range c.Processes {
		for name := range p.Gates {
			if _, stage := stageGates[name]; !stage {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Features returns the Feature of each gate, as far as it was observed: the value that
// kube-apiservers have, how many processes have which, and who differs. There is no state
// and no task.
func (c *Cluster) Features(h *history.History) []v1alpha1.Feature {
	var features []v1alpha1.Feature
	for _, name := range c.names() {
		features = append(features, c.feature(h, name))
	}
	return features
}

func (c *Cluster) feature(h *history.History, name string) v1alpha1.Feature {
	f := v1alpha1.Feature{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Annotations: map[string]string{Annotation: c.Version}}}
	if from := c.From(name); from != "" {
		f.Annotations[AnnotationFrom] = from
	}
	f.Status.Stage, f.Status.Default, f.Status.LockedToDefault = c.declared(h, name)
	var on, off []string
	explicit := false
	for i := range c.Processes {
		p := &c.Processes[i]
		v, ok := p.Gates[name]
		if !ok {
			continue
		}
		count(&f.Status, p, v.Enabled)
		if p.Component != APIServer {
			continue
		}
		explicit = explicit || ptr.Deref(v.Explicit, f.Status.Default != nil && *f.Status.Default != v.Enabled)
		if v.Enabled {
			on = append(on, p.Instance)
		} else {
			off = append(off, p.Instance)
		}
	}
	if len(on) > 0 && len(off) > 0 {
		f.Status.Conditions = append(f.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionConsistent, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonServersDisagree,
			Message: fmt.Sprintf("on in %s, off in %s; set --feature-gates to the same everywhere", strings.Join(on, ", "), strings.Join(off, ", ")),
		})
		return f
	}
	if len(on)+len(off) == 0 {
		return f
	}
	f.Status.Configured = &v1alpha1.FeatureConfiguration{Value: len(on) > 0, Source: v1alpha1.SourceDefault}
	if explicit {
		f.Status.Configured.Source = v1alpha1.SourceCommandLine
	}
	if differ := c.Differing(name, len(on) > 0); len(differ) > 0 {
		f.Status.Conditions = append(f.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionUsesMatch, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUsersDiffer,
			Message: fmt.Sprintf("kube-apiserver has it %s, and these have not: %s", transition.OnOff(len(on) > 0), shortList(differ)),
		})
	}
	return f
}

// declared is what the version of kube-apiserver says of a gate, or else its metrics.
func (c *Cluster) declared(h *history.History, name string) (stage v1alpha1.FeatureStage, def *bool, locked bool) {
	gate, _ := h.Gate(name)
	for _, p := range c.Processes {
		v, ok := p.Gates[name]
		if !ok {
			continue
		}
		if spec, ok := gate.At(p.Component, p.Minor()); ok {
			return v1alpha1.FeatureStage(spec.Stage), ptr.To(spec.Default), spec.Locked
		}
		if p.Complete && stage == "" {
			stage = stageOf(v.Stage)
		}
	}
	return stage, nil, false
}

// stageOf is the stage that metrics have.
func stageOf(text string) v1alpha1.FeatureStage {
	switch text {
	case "ALPHA":
		return v1alpha1.StageAlpha
	case "BETA":
		return v1alpha1.StageBeta
	case "DEPRECATED":
		return v1alpha1.StageDeprecated
	case "":
		return v1alpha1.StageGA
	}
	return ""
}

// count counts a process among those of its component and version with the same value.
func count(status *v1alpha1.FeatureStatus, p *Process, enabled bool) {
	for i := range status.Uses {
		if u := &status.Uses[i]; u.Component == p.Component && u.Version == p.Version && ptr.Deref(u.Enabled, !enabled) == enabled {
			u.Count++
			return
		}
	}
	status.Uses = append(status.Uses, v1alpha1.FeatureUse{Component: p.Component, Version: p.Version, Enabled: ptr.To(enabled), Count: 1})
}

// Differing are the processes that have another value of a gate, as component/instance.
func (c *Cluster) Differing(name string, value bool) []string {
	var differ []string
	for _, p := range c.Processes {
		if v, ok := p.Gates[name]; ok && v.Enabled != value {
			differ = append(differ, p.Component+"/"+p.Instance)
		}
	}
	return differ
}

// From says where the values of a gate were observed: the sources of each component, or of
// those that are named.
func (c *Cluster) From(name string, components ...string) string {
	var order []string
	sources := map[string][]string{}
	for _, p := range c.Processes {
		v, ok := p.Gates[name]
		if !ok || v.Source == "" || len(components) > 0 && !slices.Contains(components, p.Component) {
			continue
		}
		if sources[p.Component] == nil {
			order = append(order, p.Component)
		}
		if !slices.Contains(sources[p.Component], v.Source) {
			sources[p.Component] = append(sources[p.Component], v.Source)
		}
	}
	var texts []string
	for _, component := range order {
		texts = append(texts, component+": "+shortList(sources[component]))
	}
	return strings.Join(texts, "; ")
}

// Joining are the settings that decide a gate on nodes that join (JoinsWith), without what
// follows from defaults.
func (c *Cluster) Joining(f *v1alpha1.Feature) []Setting {
	components := map[string]bool{}
	for _, s := range c.Settings {
		components[s.Component] = true
	}
	var found []Setting
	for component := range components {
		if s, ok := c.setting(component, f.Name, string(f.Status.Stage), f.Status.Default, f.Status.LockedToDefault); ok {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Setting) int { return cmp.Compare(place(a.Component), place(b.Component)) })
	return found
}

// maxNames is how many names a message has.
const maxNames = 5

func shortList(names []string) string {
	if len(names) <= maxNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
}

// Reports returns a FeatureReport for each process. Which gates it queries is not observed.
func (c *Cluster) Reports() []v1alpha1.FeatureReport {
	var reports []v1alpha1.FeatureReport
	for _, p := range c.Processes {
		r := v1alpha1.FeatureReport{ObjectMeta: metav1.ObjectMeta{
			Name: p.Component + "." + p.Instance, Namespace: metav1.NamespaceSystem, Annotations: map[string]string{Annotation: c.Version},
		}}
		r.Spec = v1alpha1.FeatureReportSpec{Component: p.Component, Instance: p.Instance, NodeName: p.Node, BinaryVersion: p.Version, EmulationVersion: p.Minor()}
		for _, name := range slices.Sorted(maps.Keys(p.Gates)) {
			v := p.Gates[name]
			r.Spec.Features = append(r.Spec.Features, v1alpha1.ReportedFeature{
				Name: name, Enabled: v.Enabled, Explicit: ptr.Deref(v.Explicit, false), Stage: stageOf(v.Stage),
			})
		}
		reports = append(reports, r)
	}
	return reports
}
