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

// SpecAt is a gate's spec at a version, from its specs by version.
func SpecAt(specs featuregate.VersionedSpecs, version *utilversion.Version) Spec {
	var at Spec
	for _, s := range specs {
		if s.Version.GreaterThan(version) {
			break
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
	// Server is true for processes that store objects, and whose value is the
	// configured one.
	Server bool
	// Foreign is true for a process that may have other dependencies between its gates
	// than the specs are of.
	Foreign bool
}

// Input is what has to be known of one feature.
type Input struct {
	// Feature is the feature as it is stored.
	Feature *v1alpha1.Feature
	// To is the other minor version, for example 1.35, and Down true when it is
	// the lower one.
	To   string
	Down bool
	// Emulated is true when servers of now emulate To, and not binaries of To take
	// their place: they still honour spec.enabled.
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
	// StartupBlocking are those of Tasks that have to run before servers have the
	// feature on (task.Task.BlocksStartup). Looked is true when somebody asked them
	// what they find; Obstacles is what was found, "" for nothing.
	StartupBlocking []string
	Looked          bool
	Obstacles       string
	// Clears is true when the author declared tasks for turning the feature
	// off: it stores something that they look after.
	Clears bool
	// Harmless says why nothing that the feature stores does harm where it is off,
	// for example because it stores nothing; "" when that is not known.
	Harmless string
	// Leftovers is what the condition Clean says of objects that hold something
	// of a feature that is off, "" when there are none.
	Leftovers string
	// Examined is true when somebody looked which stored objects use the
	// feature; Used is what was found, "" for none.
	Examined bool
	Used     string
}

// Controlled is a server that names the feature in --central-features or
// --dynamic-features.
type Controlled struct {
	// Component and Instance name the server.
	Component, Instance string
	// Control is who it lets decide the value; not Local.
	Control v1alpha1.FeatureControl
}

// Result is the answer.
type Result struct {
	Status metav1.ConditionStatus
	// Reason is one of those of ConditionUpgradeSafe.
	Reason string
	// Why says what is wrong, Next what makes it safe; Next is empty where
	// nothing is to be done.
	Why, Next string
}

// Message is what a condition says.
func (v Result) Message() string {
	if v.Next == "" {
		return v.Why
	}
	return v.Why + "; " + v.Next
}

// Evaluate answers a question. What makes a binary refuse to start goes first.
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
		return Result{metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks,
			fmt.Sprintf("what is stored is in the form of %s, and the tasks that bring it to that of %s have not run: %s", q.Feature.Status.Version, q.To, strings.Join(q.Tasks, ", ")),
			fmt.Sprintf("restart all kube-apiservers of this version with --emulated-version=%s and wait until status.version is %s, before any binary is replaced", q.To, q.To)}
	case q.StartupBlocked():
		return q.obstacles()
	case state == v1alpha1.StateOff && q.Leftovers != "":
		return q.left()
	case state == v1alpha1.StateOn && !q.onThere():
		return q.settled(q.loses())
	case len(q.Tasks) > 0:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("%s brings what is stored to its form: %s", q.To, strings.Join(q.Tasks, ", "))})
	default:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("%s can read what is stored", q.To)})
	}
}

// EvaluateAhead answers for a higher version whose specs nobody here knows, such as
// the one after a running server's own. It is safe where no version could object:
// the feature is off, stores nothing and nobody sets the gate or turns off what it
// depends on, or it is generally available and locked. What is wrong in any case is said, all else is unknown,
// with who can tell. Target, Tasks, StartupBlocking and Used are not looked at.
func EvaluateAhead(q Input) Result {
	if v, found := q.atRest(); !found {
		return v
	}
	state := q.Feature.Status.State
	switch {
	case state == v1alpha1.StateOff && q.Leftovers != "":
		return q.left()
	case len(q.Explicit) > 0:
		// No names: they change with every process.
		return q.ask(fmt.Sprintf("processes set the gate, and their binaries would refuse to start if %s removed it or locked it to the other value%s", q.To, q.orDependents()))
	case len(q.Controlled) > 0:
		return q.ask(fmt.Sprintf("servers name the feature in --central-features or --dynamic-features, and would refuse to start if %s removed or locked the gate", q.To))
	case len(q.needsSetOff()) > 0:
		return q.ask(fmt.Sprintf("processes set %s=false, on which the feature depends, and their binaries would refuse to start if %s turned it on", strings.Join(q.needsSetOff(), "=false, "), q.To))
	case state == v1alpha1.StateOff:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: "the feature is off, nothing is known to be left of it, and nobody sets the gate"})
	case q.Current.Stage == v1alpha1.StageGA && q.Current.Locked && q.Current.Default:
		return q.settled(Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: "the feature is generally available, and nobody sets the gate"})
	default:
		return q.ask(fmt.Sprintf("the feature is on, and what %s makes of it is not known here", q.To))
	}
}

// Ahead says for a plan what is not known of a higher version whose specs nobody
// here has; known is the highest version that somebody has.
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

// ask sends people to who knows the next version: the plugin does of Kubernetes' own
// features, which are in kube-system.
func (q Input) ask(why string) Result {
	who := fmt.Sprintf("kubectl feature upgrade-check --to %s, with the plugin of %s, can tell", q.To, q.To)
	if namespace := q.Feature.Namespace; namespace != "" && namespace != metav1.NamespaceSystem {
		who = fmt.Sprintf("the notes of release %s can tell", q.To)
	}
	return Result{metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, why, who}
}

// onThere is the value that the feature has there if nobody changes anything.
func (q Input) onThere() bool { return q.Value().Value }

// left is the answer for a feature that is off and left something.
func (q Input) left() Result {
	return Result{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNeedsTasks,
		Why: fmt.Sprintf("the feature is off and left something behind that may not be updated or deleted any more, here or in %s: %s", q.To, q.Leftovers)}
}

// StartupBlocked is true when servers of the other version have the feature on as soon
// as they start, while what keeps such a server from becoming ready is there, or may
// be. Tasks of an upgrade run only once the last server has the version.
func (q Input) StartupBlocked() bool {
	return !q.Down && len(q.StartupBlocking) > 0 && q.onThere() && (!q.Looked || q.Obstacles != "")
}

// obstacles is the answer for what is obstructed.
func (q Input) obstacles() Result {
	const never = "and a server of %s that has the feature on never becomes ready while it finds what %s removes"
	tasks := strings.Join(q.StartupBlocking, ", ")
	if !q.Looked {
		return q.ask(fmt.Sprintf("the feature is on in %s, "+never+"; nobody has looked for that", q.To, q.To, tasks))
	}
	off := q.off()
	if off == "" {
		off = fmt.Sprintf("start the servers of %s with --feature-gates=%s=false", q.To, q.Feature.Name)
	}
	return Result{metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks,
		fmt.Sprintf("the feature is on in %s, "+never+": %s", q.To, q.To, tasks, q.Obstacles),
		fmt.Sprintf("%s; turn it on again once status.version is %s", off, q.To)}
}

// loses is the answer for a feature that is on here and off there.
func (q Input) loses() Result {
	how := "is off in " + q.To
	if !q.Target.Known {
		how = "is not in " + q.To
	}
	switch {
	case q.Harmless != "":
		return Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("the feature is on and %s; %s", how, q.Harmless)}
	case !q.Clears:
		return Result{metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, fmt.Sprintf("the feature is on and %s; it does not declare what it stores", how), q.off()}
	case q.Examined && q.Used == "":
		return Result{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSafe, Why: fmt.Sprintf("the feature is on and %s; no stored object uses it now", how)}
	}
	used := "stored objects that use it"
	if q.Used != "" {
		used = "what uses it (" + q.Used + ")"
	}
	return Result{metav1.ConditionFalse, v1alpha1.ReasonNotInAdjacentVersion, fmt.Sprintf("the feature is on and %s, where %s may be lost, or stand in the way of updates and deletions", how, used), q.off()}
}

// off says how the feature gets off before binaries are replaced, while there is
// somebody who knows what it stored.
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

// turnOff says how the feature is turned off.
func (q Input) turnOff() string {
	if q.Feature.Status.Control == v1alpha1.ControlDynamic {
		return fmt.Sprintf(`kubectl patch features -n %s %s --type=merge -p '{"spec":{"enabled":false}}', and wait until the feature is Off`, q.Feature.Namespace, q.Feature.Name)
	}
	return fmt.Sprintf("set --feature-gates=%s=false in all components and wait until the feature is Off", q.Feature.Name)
}
