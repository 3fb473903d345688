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
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Spec is a gate at one version. The zero value is a gate that the version does
// not have.
type Spec struct {
	// Known is false for a gate that is newer than the version, or removed: a
	// binary refuses to start that sets it.
	Known bool
	// Default and Locked are as in component-base's FeatureSpec.
	Default, Locked bool
	// Stage is the gate's maturity. When a gate that is generally available is
	// removed its feature stays; AllAlpha and AllBeta set those of their stage.
	Stage v1alpha1.FeatureStage
}

// SpecAt returns a gate's spec at a version, from its specs by version. Binaries of the
// version are taken to be compatible with the minor version before, as they are without
// the flag --min-compatibility-version: specs that require more do not hold (KEP-4330).
// The flags of binaries that do not run yet are unknown; of those that run see SpecOf.
func SpecAt(specs featuregate.VersionedSpecs, version *utilversion.Version) Spec {
	return specAt(specs, version, version.SubtractMinor(1))
}

// SpecOf returns the spec of a feature's gate in the cluster, whose version is given. That
// is the one of SpecAt, unless the default that servers report shows that they were started
// with another --min-compatibility-version.
func SpecOf(feature *v1alpha1.Feature, specs featuregate.VersionedSpecs, version *utilversion.Version) Spec {
	usual, reported := SpecAt(specs, version), feature.Status.Default
	if reported == nil || *reported == usual.Default {
		return usual
	}
	// Compatible with no version before, and with all.
	for _, compatible := range []*utilversion.Version{version, utilversion.MajorMinor(0, 0)} {
		if other := specAt(specs, version, compatible); other.Default == *reported {
			return other
		}
	}
	return usual
}

// specAt returns a gate's spec in binaries of a version that are compatible with another
// one.
func specAt(specs featuregate.VersionedSpecs, version, compatible *utilversion.Version) Spec {
	var at Spec
	for _, s := range specs {
		if s.Version.GreaterThan(version) {
			break
		}
		if s.MinCompatibilityVersion != nil && s.MinCompatibilityVersion.GreaterThan(compatible) {
			continue
		}
		if s.PreRelease == featuregate.PreAlpha {
			at = Spec{}
			continue
		}
		at = Spec{Known: true, Default: s.Default, Locked: s.LockToDefault}
		switch s.PreRelease {
		case featuregate.Alpha:
			at.Stage = v1alpha1.StageAlpha
		case featuregate.Beta:
			at.Stage = v1alpha1.StageBeta
		case featuregate.GA:
			at.Stage = v1alpha1.StageGA
		case featuregate.Deprecated:
			at.Stage = v1alpha1.StageDeprecated
		}
	}
	return at
}

// Setting is a value that a process was given explicitly.
type Setting struct {
	// Component and Instance name the process.
	Component, Instance string
	Enabled             bool
	// Server is true for processes that store objects. Their value is the configured one.
	Server bool
	// Foreign is true for a process that may have other dependencies between its gates
	// than the specs are of.
	Foreign bool
}

// Input is everything about one feature that the result depends on.
type Input struct {
	// Feature is the feature as it is stored.
	Feature *v1alpha1.Feature
	// To is the other minor version, for example 1.35, and Down true when it is
	// the lower one.
	To   string
	Down bool
	// Emulated is true when current servers emulate To instead of being replaced by
	// binaries of To: they still honor spec.enabled.
	Emulated bool
	// Current and Target are the gate's specs at the cluster's version and at To.
	Current, Target Spec
	// Explicit are the explicit settings in all processes' reports.
	Explicit []Setting
	// Dependences are the gates that the feature depends on, and those that depend on
	// it, directly; Stages is what processes were given of AllAlpha and AllBeta.
	Dependences []Dependence
	Stages      []StageSetting
	// Controlled are the servers that let others than their own command line
	// decide the value.
	Controlled []Controlled
	// Tasks are the declared tasks of the way to To.
	Tasks []string
	// StartupBlocking are those of Tasks that have to run before servers have the feature
	// on (task.Task.BlocksStartup). Looked is true when these tasks were inspected.
	// Obstacles is what the inspection found, "" for nothing.
	StartupBlocking []string
	Looked          bool
	Obstacles       string
	// Clears is true when the author declared tasks for turning the feature off: it stores
	// objects that they handle.
	Clears bool
	// Harmless is the reason why nothing that the feature stores does harm where it is
	// off, for example because it stores nothing. It is "" when that is unknown.
	Harmless string
	// Leftovers is the message of the condition Clean about objects that hold data of a
	// feature that is off; "" when there are none.
	Leftovers string
	// Unread is the message of the condition Clean about objects that hold what servers of
	// the cluster's version do not read, of a feature that is on; "" when there are none.
	Unread string
	// Lost is what stored objects have in fields of the feature that the other version does
	// not have, although it has the gate; "" for none.
	Lost string
	// Examined is true when stored objects were inspected for use of the feature. Used is
	// what was found, "" for none.
	Examined bool
	Used     string
}

// Controlled is a server that names the feature in --central-features or
// --dynamic-features.
type Controlled struct {
	// Component and Instance name the server.
	Component, Instance string
	// Control is the source that decides the value; not Local.
	Control v1alpha1.FeatureControl
}

// Result is the answer.
type Result struct {
	Status metav1.ConditionStatus
	// Reason is one of those of ConditionUpgradeSafe.
	Reason string
	// Why is what is wrong, Next what makes it safe. Next is empty where no action is
	// needed.
	Why, Next string
}

// Message returns the message for a condition.
func (v Result) Message() string {
	if v.Next == "" {
		return v.Why
	}
	return v.Why + "; " + v.Next
}

// Evaluate returns the result for an input. What makes a binary refuse to start takes
// precedence.
func Evaluate(q Input) Result {
	if v, refuses := q.Refuses(); refuses {
		return v
	}
	if v, found := q.atRest(); !found {
		return v
	}
	state := q.Feature.Status.State
	switch {
	case q.Down && len(q.Tasks) > 0:
		return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNeedsTasks,
			Why:  fmt.Sprintf("what is stored is in the form of %s, and the tasks that bring it to that of %s have not run: %s", q.Feature.Status.Version, q.To, strings.Join(q.Tasks, ", ")),
			Next: fmt.Sprintf("restart all kube-apiservers of this version with --emulated-version=%s and wait until status.version is %s, before any binary is replaced", q.To, q.To)}
	case q.StartupBlocked():
		return q.obstacles()
	case state == v1alpha1.StateOff && q.Leftovers != "":
		return q.left()
	case !q.Down && state == v1alpha1.StateOn && q.Unread != "":
		return q.unread()
	case state == v1alpha1.StateOn && !q.onAtTarget():
		return q.settled(q.loses())
	case state == v1alpha1.StateOn && q.Lost != "":
		return q.lost()
	case len(q.Tasks) > 0:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("%s brings what is stored to its form: %s", q.To, strings.Join(q.Tasks, ", "))})
	default:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("%s can read what is stored", q.To)})
	}
}

// EvaluateAhead returns the result for a higher version without known specs, such as
// the one after a running server's own. It is safe where no version could object. One
// such case: the feature is off, stores nothing, and neither its gate is set nor one of
// its dependencies turned off. The other: it is generally available and locked.
// Problems that exist in any case are reported. All else is unknown, with a pointer to
// what knows it. Target, Tasks, StartupBlocking and Used are ignored.
func EvaluateAhead(q Input) Result {
	if v, found := q.atRest(); !found {
		return v
	}
	state := q.Feature.Status.State
	switch {
	case state == v1alpha1.StateOff && q.Leftovers != "":
		return q.left()
	case state == v1alpha1.StateOn && q.Unread != "":
		return q.unread()
	case len(q.Explicit) > 0:
		// No names: they change with every process.
		return q.ask(fmt.Sprintf("processes set the gate, and their binaries would refuse to start if %s removed it or locked it to the other value%s", q.To, q.orDependents()))
	case len(q.Controlled) > 0:
		return q.ask(fmt.Sprintf("servers name the feature in --central-features or --dynamic-features, and would refuse to start if %s removed or locked the gate", q.To))
	case len(q.needsSetOff()) > 0:
		return q.ask(fmt.Sprintf("processes set %s=false, on which the feature depends, and their binaries would refuse to start if %s turned it on", strings.Join(q.needsSetOff(), "=false, "), q.To))
	case state == v1alpha1.StateOff:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: "the feature is off, nothing is known to be left of it, and no process sets the gate"})
	case q.Current.Stage == v1alpha1.StageGA && q.Current.Locked && q.Current.Default:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: "the feature is generally available, and no process sets the gate"})
	default:
		return q.ask(fmt.Sprintf("the feature is on, and its behavior in %s is not known here", q.To))
	}
}

// Ahead returns, for a plan, what is unknown about a higher version without specs here.
// Known is the highest version with known specs.
func (q Input) Ahead(known *utilversion.Version) []string {
	unknown := []string{q.ask(fmt.Sprintf("what %s makes of the gate, and which tasks it declares, is not known to binaries of %d.%d", q.To, known.Major(), known.Minor())).Message()}
	if v := EvaluateAhead(q); len(q.Explicit)+len(q.Controlled)+len(q.needsSetOff()) > 0 && v.Status == metav1.ConditionUnknown {
		unknown = append(unknown, v.Why)
	}
	return unknown
}

// orDependents adds to what the next version may do to a gate that processes have off
// explicitly: it may have on what depends on it.
func (q Input) orDependents() string {
	if slices.ContainsFunc(q.Explicit, func(s Setting) bool { return !s.Enabled }) {
		return ", or turned on what depends on it"
	}
	return ""
}

// ask refers users to a source that knows the next version. For Kubernetes' own
// features, which are in kube-system, that is the plugin.
func (q Input) ask(why string) Result {
	source := fmt.Sprintf("kubectl feature upgrade-check --to %s, with the plugin of %s, can tell", q.To, q.To)
	if namespace := q.Feature.Namespace; namespace != "" && namespace != metav1.NamespaceSystem {
		source = fmt.Sprintf("the notes of release %s can tell", q.To)
	}
	return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion, Why: why, Next: source}
}

// onAtTarget returns the value that the feature has there if nothing is changed.
func (q Input) onAtTarget() bool { return q.Value().Value }

// left returns the result for a feature that is off and left objects behind.
func (q Input) left() Result {
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNeedsTasks,
		Why: fmt.Sprintf("the feature is off and left something behind that may not be updated or deleted any more, here or in %s: %s", q.To, q.Leftovers)}
}

// unread returns the result for objects that the cluster's own version does not read. Its
// message has the next step.
func (q Input) unread() Result {
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNeedsTasks, Why: q.Unread}
}

// lost returns the result for fields that the other version lost while it kept the gate.
func (q Input) lost() Result {
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotInAdjacentVersion,
		Why:  fmt.Sprintf("the feature is on, and %s loses what stored objects have of it: %s", q.To, q.Lost),
		Next: q.off() + ", before any binary is replaced"}
}

// StartupBlocked returns true when servers of the other version have the feature on as
// soon as they start, while there is, or may be, something that keeps such a server
// from becoming ready. Tasks of an upgrade run only once the last server has the
// version.
func (q Input) StartupBlocked() bool {
	return !q.Down && len(q.StartupBlocking) > 0 && q.onAtTarget() && (!q.Looked || q.Obstacles != "")
}

// obstacles returns the result for startup-blocking leftovers.
func (q Input) obstacles() Result {
	const never = "and a server of %s that has the feature on may never become ready while it finds what %s removes"
	tasks := strings.Join(q.StartupBlocking, ", ")
	if !q.Looked {
		return q.ask(fmt.Sprintf("the feature is on in %s, "+never+"; that was not checked", q.To, q.To, tasks))
	}
	off := q.off()
	if off == "" {
		off = fmt.Sprintf("start the servers of %s with --feature-gates=%s=false", q.To, q.Feature.Name)
	}
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNeedsTasks,
		Why:  fmt.Sprintf("the feature is on in %s, "+never+": %s", q.To, q.To, tasks, q.Obstacles),
		Next: fmt.Sprintf("%s; turn it on again once status.version is %s", off, q.To)}
}

// loses returns the result for a feature that is on here and off there.
func (q Input) loses() Result {
	how := "is off in " + q.To
	if !q.Target.Known {
		how = "is not in " + q.To
	}
	switch {
	case q.Harmless != "":
		return Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("the feature is on and %s; %s", how, q.Harmless)}
	case !q.Clears:
		return Result{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotExaminedForVersion, Why: fmt.Sprintf("the feature is on and %s; it does not declare what it stores", how), Next: q.off()}
	case q.Examined && q.Used == "":
		return Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("the feature is on and %s; no stored object uses it now", how)}
	}
	used := "stored objects that use it"
	if q.Used != "" {
		used = "what uses it (" + q.Used + ")"
	}
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotInAdjacentVersion,
		Why: fmt.Sprintf("the feature is on and %s, where %s may be lost, or stand in the way of updates and deletions", how, used), Next: q.off()}
}

// off describes how the feature is turned off before binaries are replaced, while a
// running version still knows what it stored.
func (q Input) off() string {
	var ways []string
	if q.Down {
		ways = append(ways, fmt.Sprintf("restart all kube-apiservers of this version with --emulated-version=%s and wait until the feature is Off", q.To))
	}
	if !q.Current.Locked {
		ways = append(ways, q.turnOff())
	}
	return strings.Join(ways, ", or ")
}

// turnOff describes how the feature is turned off.
func (q Input) turnOff() string {
	if q.Feature.Status.Control == v1alpha1.ControlDynamic {
		return fmt.Sprintf(`kubectl patch features -n %s %s --type=merge -p '{"spec":{"enabled":false}}', and wait until the feature is Off`, q.Feature.Namespace, q.Feature.Name)
	}
	return fmt.Sprintf("set --feature-gates=%s=false in all components and wait until the feature is Off", q.Feature.Name)
}
