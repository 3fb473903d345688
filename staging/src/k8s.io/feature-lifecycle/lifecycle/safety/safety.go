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

// Package safety answers whether a cluster may move to a neighbouring minor
// version as far as one feature is concerned: whether every binary would start
// there, and whether it could read what is stored. It is pure. Whoever asks brings
// the specs of the other version: for a downgrade this binary's own, for an upgrade
// those of the newer one (KEP-3920, "Upgrade and downgrade").
package safety

import (
	"fmt"
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
	// GA is true for a gate that is generally available. When such a one is
	// removed its feature stays.
	GA bool
}

// SpecAt is a gate's spec at a version, from its specs by version.
func SpecAt(specs featuregate.VersionedSpecs, version *utilversion.Version) Spec {
	var at Spec
	for _, s := range specs {
		if s.Version.GreaterThan(version) {
			break
		}
		at = Spec{Known: s.PreRelease != featuregate.PreAlpha, Default: s.Default, Locked: s.LockToDefault, GA: s.PreRelease == featuregate.GA}
	}
	return at
}

// Setting is a value that a process was given explicitly.
type Setting struct {
	// Component and Instance name the process.
	Component, Instance string
	Enabled             bool
}

// Question is what has to be known of one feature.
type Question struct {
	// Feature is the feature as it is stored.
	Feature *v1alpha1.Feature
	// To is the other minor version, for example 1.35, and Down true when it is
	// the lower one.
	To   string
	Down bool
	// Here and There are the gate's specs at the cluster's version and at To.
	Here, There Spec
	// Explicit are the explicit settings in all processes' reports.
	Explicit []Setting
	// Tasks are the declared tasks of the way to To.
	Tasks []string
	// Clears is true when the author declared tasks for turning the feature
	// off: it stores something.
	Clears bool
	// Leftovers is what the condition Clean says of objects that hold something
	// of a feature that is off, "" when there are none.
	Leftovers string
}

// Verdict is the answer. Its message says why, and the command that makes it
// safe.
type Verdict struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Judge answers a question. What makes a binary refuse to start goes first.
func Judge(q Question) Verdict {
	if v, refuses := q.refuses(); refuses {
		return v
	}
	state := q.Feature.Status.State
	switch {
	case state == "":
		return Verdict{metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, "the feature has no state yet"}
	case state != v1alpha1.StateOn && state != v1alpha1.StateOff:
		return Verdict{metav1.ConditionFalse, v1alpha1.ReasonInTransition, fmt.Sprintf("the feature is %s; wait until it is On or Off (kubectl get features -n %s %s)", state, q.Feature.Namespace, q.Feature.Name)}
	case q.Down && len(q.Tasks) > 0:
		return q.unsafe(fmt.Sprintf("what is stored is in the form of %s, and the tasks that bring it to that of %s have not run: %s; restart all kube-apiservers of this version with --emulated-version=%s and wait until status.version is %s, before any binary is replaced",
			q.Feature.Status.Version, q.To, strings.Join(q.Tasks, ", "), q.To, q.To))
	case state == v1alpha1.StateOff && q.Leftovers != "":
		return q.unsafe(fmt.Sprintf("the feature is off and left something behind that %s may refuse or not understand: %s", q.To, q.Leftovers))
	case state == v1alpha1.StateOn && !q.onThere():
		return q.loses()
	default:
		return Verdict{metav1.ConditionTrue, v1alpha1.ReasonSafe, fmt.Sprintf("%s can read what is stored", q.To)}
	}
}

// refuses says whether a binary of the other version would refuse its command
// line (component-base/featuregate, SetFromMap).
func (q Question) refuses() (Verdict, bool) {
	var refused []string
	for _, s := range q.Explicit {
		if !q.There.Known || q.There.Locked && s.Enabled != q.There.Default {
			refused = append(refused, fmt.Sprintf("%s/%s sets %s=%t", s.Component, s.Instance, q.Feature.Name, s.Enabled))
		}
	}
	if len(refused) == 0 {
		return Verdict{}, false
	}
	why := "does not have the gate"
	if q.There.Known {
		why = fmt.Sprintf("has the gate locked to %t", q.There.Default)
	}
	const most = 5
	if n := len(refused); n > most {
		refused = append(refused[:most:most], fmt.Sprintf("%d more", n-most))
	}
	return Verdict{metav1.ConditionFalse, v1alpha1.ReasonRefusesToStart,
		fmt.Sprintf("%s %s and its binaries would refuse to start: %s; take %s out of --feature-gates, or of featureGates in the configuration file, before the binary is replaced",
			q.To, why, strings.Join(refused, ", "), q.Feature.Name)}, true
}

// onThere is the value that the feature has there if nobody changes anything.
func (q Question) onThere() bool {
	switch {
	case !q.There.Known:
		// A GA gate is removed when its feature can no longer be turned off.
		return !q.Down && q.Here.GA && q.Here.Default
	case q.There.Locked || len(q.Explicit) == 0:
		return q.There.Default
	default:
		return q.Explicit[0].Enabled
	}
}

// loses is the answer for a feature that is on here and off there.
func (q Question) loses() Verdict {
	how := "is off by default in " + q.To
	if !q.There.Known {
		how = "is not in " + q.To
	}
	if !q.Clears {
		return Verdict{metav1.ConditionUnknown, v1alpha1.ReasonNotExaminedForVersion, fmt.Sprintf("the feature is on and %s; it does not declare what it stores", how)}
	}
	command := fmt.Sprintf("set --feature-gates=%s=false in all components and wait until the feature is Off", q.Feature.Name)
	if q.Down {
		command = fmt.Sprintf("restart all kube-apiservers of this version with --emulated-version=%s and wait until the feature is Off, or %s", q.To, command)
	}
	return Verdict{metav1.ConditionFalse, v1alpha1.ReasonNotInNeighbour,
		fmt.Sprintf("the feature is on and %s, where stored objects that use it may not be updated or deleted any more; %s", how, command)}
}

func (q Question) unsafe(message string) Verdict {
	return Verdict{metav1.ConditionFalse, v1alpha1.ReasonNeedsTasks, message}
}
