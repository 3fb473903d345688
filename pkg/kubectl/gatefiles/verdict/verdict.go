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

package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/history"
	"k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes-features/pkg/kubectl/gatefiles"
)

// Verdict is the result for a setting.
type Verdict string

// These keep a process from starting. Safe is False.
const (
	// Removed: the component had the gate, and does not have it in the target version.
	Removed Verdict = "Removed"
	// NotYet: the component has the gate in a later version.
	NotYet Verdict = "NotYet"
	// UnknownGate: no component of any version has the gate.
	UnknownGate Verdict = "UnknownGate"
	// NotOfComponent: other components have the gate.
	NotOfComponent Verdict = "NotOfComponent"
	// Locked: the gate is locked to the other value.
	Locked Verdict = "Locked"
	// DependencyOff: with these settings a gate is on without another one that it depends on.
	DependencyOff Verdict = "DependencyOff"
	// BadPrefix: the component does not take the prefix before the gate's name.
	BadPrefix Verdict = "BadPrefix"
)

// These are about APIs that a gate needs.
const (
	// APINotServed: kube-apiserver does not serve it with these arguments. Safe is False.
	APINotServed Verdict = "APINotServed"
	// APIUnknown: the arguments of kube-apiserver are not among what was read. Safe is Unknown.
	APIUnknown Verdict = "APIUnknown"
)

// Safe is Unknown.
const (
	// Emulated: --emulated-version decides which gates the process has.
	Emulated Verdict = "Emulated"
	// VendorGate: the gates of Kubernetes lack it, and vendors add their own to this component.
	VendorGate Verdict = "VendorGate"
)

// Safe is True.
const (
	// LockedToSame: the gate is locked to the value that is set.
	LockedToSame Verdict = "LockedToSame"
	// DefaultChanges: the default changes, and the setting keeps the old value or becomes needless.
	DefaultChanges Verdict = "DefaultChanges"
	// GoingAway: the gate is GA or deprecated, or the next version does not have it.
	GoingAway Verdict = "GoingAway"
	// Overridden: a later value of the same command line takes its place.
	Overridden Verdict = "Overridden"
	// Ignored: the component does not read it.
	Ignored Verdict = "Ignored"
	// Works: the target version takes it as the present one does.
	Works Verdict = "Works"
)

// Descriptions has all verdicts with what they mean, for lists of rules.
var Descriptions = map[Verdict]string{
	Removed:        "The target version does not have the gate any more: the component refuses to start.",
	NotYet:         "The target version does not have the gate yet: the component refuses to start.",
	UnknownGate:    "No version of Kubernetes has the gate: the component refuses to start.",
	NotOfComponent: "Other components have the gate, and this one does not: it refuses to start.",
	Locked:         "The target version has the gate locked to the other value: the component refuses to start.",
	DependencyOff:  "A gate is on without another one that it depends on: the component refuses to start.",
	BadPrefix:      "The component does not take the prefix of the gate: it refuses to start.",
	APINotServed:   "The gate needs an API that kube-apiserver does not serve with these arguments.",
	APIUnknown:     "The gate needs an API that kube-apiserver serves only when it is told to; its arguments were not read.",
	Emulated:       "The process emulates another version, which decides the gates that it has.",
	VendorGate:     "The gates of Kubernetes lack it; it may be one of the vendor of the component.",
	LockedToSame:   "The gate is locked to the value that is set; the setting can be dropped.",
	DefaultChanges: "The default of the gate changes between the two versions.",
	GoingAway:      "The gate is to be removed; drop the setting before.",
	Overridden:     "A later value of the same command line takes its place.",
	Ignored:        "The component does not read the setting.",
	Works:          "The target version takes the setting as it is.",
}

// The gates that stand for all of a stage.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// Finding is the result for one setting.
type Finding struct {
	gatefiles.Setting
	Verdict Verdict
	Safe    metav1.ConditionStatus
	// Why explains the verdict, and Next is what to do; "" where nothing is.
	Why, Next string
}

// Evaluator decides for one move.
type Evaluator struct {
	History *history.History
	// From and To are minor versions that the history has.
	From, To string
	// Similar returns names that are similar to a wrong one, the nearest first. It may be nil.
	Similar func(name string, known []string) []string
	// APIs has the APIs that gates need, for versions that this build knows them of. It may be nil.
	APIs map[string]catalog.Entry
}

// Evaluate returns the findings for all settings, in their order.
func (e *Evaluator) Evaluate(read gatefiles.Result) []Finding {
	byProcess := map[*gatefiles.Process][]gatefiles.Setting{}
	for _, s := range read.Settings {
		byProcess[s.Process] = append(byProcess[s.Process], s)
	}
	var findings []Finding
	done := map[*gatefiles.Process]int{}
	for _, s := range read.Settings {
		p := &process{e, s.Process, byProcess[s.Process]}
		// A directory may have tens of thousands of settings, and a process has some.
		done[s.Process]++
		f := p.finding(s, overridden(s, p.settings[done[s.Process]:]))
		if f.Safe == metav1.ConditionTrue && f.Verdict != Overridden && f.Verdict != Ignored {
			e.limitByAPI(&f, read)
		}
		findings = append(findings, f)
	}
	return findings
}

// overridden returns the later setting of the same command line, or the same map, among those of the process that follow.
func overridden(s gatefiles.Setting, following []gatefiles.Setting) *gatefiles.Setting {
	for _, later := range following {
		if later.Gate == s.Gate && later.Flag == s.Flag && later.Prefix == s.Prefix {
			return &later
		}
	}
	return nil
}

// process evaluates the settings of one process.
type process struct {
	*Evaluator
	of       *gatefiles.Process
	settings []gatefiles.Setting
}

// refuses returns the words for what a component does with a wrong setting.
func (p *process) refuses() string {
	if p.of.Component == history.Kubeadm {
		return "kubeadm refuses the configuration"
	}
	return p.of.Component + " refuses to start"
}

// registry is true for components that take gates of several components in one flag.
func (p *process) registry() bool {
	return slices.Contains([]string{history.KubeAPIServer, history.KubeControllerManager, history.KubeScheduler}, p.of.Component) && minor(p.To) >= 31
}

func unsafe(s gatefiles.Setting, v Verdict, why, next string) Finding {
	return Finding{s, v, metav1.ConditionFalse, why, next}
}

func unknown(s gatefiles.Setting, v Verdict, why, next string) Finding {
	return Finding{s, v, metav1.ConditionUnknown, why, next}
}

func safe(s gatefiles.Setting, v Verdict, why, next string) Finding {
	return Finding{s, v, metav1.ConditionTrue, why, next}
}

func (p *process) finding(s gatefiles.Setting, by *gatefiles.Setting) Finding {
	component := p.of.Component
	switch {
	case by != nil:
		return safe(s, Overridden, fmt.Sprintf("line %d sets it to %t again, and the last value counts", by.Line, by.Enabled), "drop this one")
	case s.Flag && component == history.KubeProxy && p.of.ConfigFlag:
		return safe(s, Ignored, "kube-proxy reads no flag for gates where it has --config", "set the gate in its configuration file, or drop it here")
	case p.of.Emulated != "" && p.of.Emulated != p.To:
		return unknown(s, Emulated, fmt.Sprintf("with --emulated-version=%s the gates are those that a binary of %s has for that version", p.of.Emulated, p.To),
			fmt.Sprintf("check what is set for %s, too, and start a binary of %s with these arguments in a test cluster", p.of.Emulated, p.To))
	}
	if f, bad := p.prefix(s); bad {
		return f
	}
	if s.Gate == allAlpha || s.Gate == allBeta {
		return p.stage(s)
	}
	if s.Gate == string(features.FeatureLifecycle) && component != history.Kubeadm && component != history.CloudControllerManager {
		return safe(s, Works, "it is a gate of the binaries of this project; those of others refuse to start with it", "")
	}
	gate, known := p.History.Gate(s.Gate)
	if !known {
		return p.unknownGate(s)
	}
	spec, known := gate.At(component, p.To)
	switch {
	case !known:
		return p.without(s, gate)
	case spec.Locked && spec.Default != s.Enabled && component == history.Kubeadm:
		return safe(s, GoingAway, "kubeadm has it locked to "+fmt.Sprint(spec.Default)+" by name only, and a later version does not have it", "drop the setting")
	case spec.Locked && spec.Default != s.Enabled:
		return unsafe(s, Locked, fmt.Sprintf("%s %s has it locked to %t: it refuses to start", component, p.To, spec.Default), "drop the setting, and be ready for the feature to be "+onOff(spec.Default))
	}
	if f, bad := p.dependencies(s); bad {
		return f
	}
	return p.works(s, gate, spec)
}

func onOff(value bool) string {
	if value {
		return "on"
	}
	return "off"
}

// prefix decides what a prefix means for the component.
func (p *process) prefix(s gatefiles.Setting) (Finding, bool) {
	mixed := func(other gatefiles.Setting) bool { return other.Flag && other.Prefix == "" }
	switch {
	case s.Prefix == "":
		return Finding{}, false
	case !p.registry():
		return unsafe(s, BadPrefix, fmt.Sprintf("%s %s takes no prefix, and has no gate %s:%s: it refuses to start", p.of.Component, p.To, s.Prefix, s.Gate), "write "+s.Gate+" alone"), true
	case s.Prefix != "kube":
		return unsafe(s, BadPrefix, fmt.Sprintf("%s has no gates of %s: it refuses to start", p.of.Component, s.Prefix), "drop the setting, or write kube: for a gate of Kubernetes"), true
	case slices.ContainsFunc(p.settings, mixed):
		return unsafe(s, BadPrefix, p.of.Component+" refuses to start where some gates have the prefix kube: and others have none", "write all of them in one way"), true
	default:
		return Finding{}, false
	}
}

// stage decides for AllAlpha and AllBeta.
func (p *process) stage(s gatefiles.Setting) Finding {
	if p.of.Component == history.Kubeadm {
		return unsafe(s, UnknownGate, "kubeadm does not have it: kubeadm refuses the configuration", "name the gates")
	}
	if f, bad := p.dependencies(s); bad {
		return f
	}
	stage := strings.TrimPrefix(s.Gate, "All")
	at := func(version string) (names []string) {
		for _, g := range p.History.Gates() {
			if spec, ok := g.At(p.of.Component, version); ok && spec.Stage == stage && spec.Default != s.Enabled {
				names = append(names, g.Name)
			}
		}
		return names
	}
	now, then := at(p.From), at(p.To)
	added := slices.DeleteFunc(slices.Clone(then), func(name string) bool { return slices.Contains(now, name) })
	why := fmt.Sprintf("it turns %d gates of %s %s %s that are not set otherwise", len(then), p.of.Component, p.To, onOff(s.Enabled))
	if len(added) == 0 || p.From == p.To {
		return safe(s, Works, why, "")
	}
	return safe(s, DefaultChanges, fmt.Sprintf("%s; %d of them are others than in %s: %s", why, len(added), p.From, strings.Join(added, ", ")), "look at these")
}

// unknownGate decides for a name that no version has.
func (p *process) unknownGate(s gatefiles.Setting) Finding {
	var known []string
	for _, g := range p.History.Gates() {
		if _, ok := g.At(p.of.Component, p.To); ok {
			known = append(known, g.Name)
		}
	}
	next := fmt.Sprintf("remove it, or see the gates of %s", p.To)
	if p.Similar != nil {
		if near := p.Similar(s.Gate, known); len(near) > 0 {
			next = fmt.Sprintf("did you mean %s?", strings.Join(near, ", "))
		}
	}
	versions := p.History.Versions()
	if p.of.Component == history.CloudControllerManager {
		return unknown(s, VendorGate, "Kubernetes has no such gate, and vendors add their own to cloud-controller-managers", "see what the vendor documents; "+next)
	}
	return unsafe(s, UnknownGate, fmt.Sprintf("no version from %s to %s has this gate: %s", versions[0], versions[len(versions)-1], p.refuses()), next)
}

// without decides for a gate that the component does not have in the target version.
func (p *process) without(s gatefiles.Setting, gate history.Gate) Finding {
	component := p.of.Component
	switch removed, added := gate.Removed(component), gate.Added(component); {
	case removed != "" && minor(removed) <= minor(p.To):
		why := fmt.Sprintf("%s does not have it since %s: %s", component, removed, p.refuses())
		next := "drop the setting"
		if last, ok := gate.At(component, fmt.Sprintf("1.%d", minor(removed)-1)); ok {
			switch {
			case last.Stage == "GA" && last.Default:
				next += "; the feature is always on"
			case last.Stage == "GA" || last.Stage == "Deprecated" && !last.Default:
				next += "; the feature does not exist any more"
			default:
				next += fmt.Sprintf("; the gate was %s and %s by default in %s", strings.ToLower(last.Stage), onOff(last.Default), fmt.Sprintf("1.%d", minor(removed)-1))
			}
		}
		return unsafe(s, Removed, why, next)
	case added != "":
		return unsafe(s, NotYet, fmt.Sprintf("%s has it since %s: %s with %s", component, cmp.Or(p.nextAdded(gate), added), p.refuses(), p.To), "drop the setting until then")
	default:
		others := gate.Components()
		next := "move it to " + strings.Join(others, " or ")
		if component == history.CloudControllerManager {
			return unknown(s, VendorGate, "Kubernetes has this gate for "+strings.Join(others, ", ")+", and vendors add theirs to cloud-controller-managers", "see what the vendor documents, or "+next)
		}
		return unsafe(s, NotOfComponent, fmt.Sprintf("%s does not have it: %s", component, p.refuses()), next)
	}
}

// nextAdded returns the first version after the target that has the gate.
func (p *process) nextAdded(gate history.Gate) string {
	for _, v := range p.History.Versions() {
		if _, ok := gate.At(p.of.Component, v); ok && minor(v) > minor(p.To) {
			return v
		}
	}
	return ""
}

// works decides for a setting that the target version takes.
func (p *process) works(s gatefiles.Setting, gate history.Gate, spec history.Spec) Finding {
	component := p.of.Component
	before, existed := gate.At(component, p.From)
	gone := fmt.Sprintf("1.%d", minor(p.To)+1)
	_, stays := gate.At(component, gone)
	removedNext := slices.Contains(p.History.Versions(), gone) && !stays
	switch {
	case spec.Locked:
		why := fmt.Sprintf("%s %s has it locked to %t", component, p.To, spec.Default)
		if removedNext {
			why += fmt.Sprintf(", and %s does not have it: a setting keeps it from starting then", gone)
		}
		return safe(s, LockedToSame, why, "drop the setting")
	case removedNext:
		return safe(s, GoingAway, fmt.Sprintf("%s %s does not have it: a setting keeps it from starting then", component, gone), "drop the setting before "+gone)
	case existed && before.Default != spec.Default && s.Enabled == spec.Default:
		return safe(s, DefaultChanges, fmt.Sprintf("it is %s by default from %s on, as it is set here", onOff(spec.Default), p.To), fmt.Sprintf("the setting can be dropped once nothing has %s", p.From))
	case existed && before.Default != spec.Default:
		return safe(s, DefaultChanges, fmt.Sprintf("it is %s by default from %s on, and this setting keeps it %s", onOff(spec.Default), p.To, onOff(s.Enabled)), "drop the setting for the new default")
	case spec.Stage == "GA", spec.Stage == "Deprecated":
		return safe(s, GoingAway, fmt.Sprintf("it is %s, and a later version does not have it", map[string]string{"GA": "GA", "Deprecated": "deprecated"}[spec.Stage]), nextOfAge(s, spec))
	case s.Enabled == spec.Default:
		return safe(s, Works, fmt.Sprintf("%s, and %s by default", strings.ToLower(spec.Stage), onOff(spec.Default)), "")
	default:
		return safe(s, Works, fmt.Sprintf("%s, and %s by default, which the setting changes", strings.ToLower(spec.Stage), onOff(spec.Default)), "")
	}
}

func nextOfAge(s gatefiles.Setting, spec history.Spec) string {
	if s.Enabled == spec.Default {
		return "drop the setting, which is the default"
	}
	return "find out what needs this value before the gate is removed"
}

// minor returns the number of a version such as 1.37, -1 for others.
func minor(version string) int {
	v, err := utilversion.ParseMajorMinor(version)
	if err != nil {
		return -1
	}
	return int(v.Minor())
}
