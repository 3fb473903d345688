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

package features

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Feature describes the configured value of one gate and the observed state of
// the cluster. Its name is the gate's exact name. Features of Kubernetes live
// in the namespace kube-system; third parties use their own namespace.
type Feature struct {
	metav1.TypeMeta
	// Standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	metav1.ObjectMeta

	// spec is the requested value.
	Spec FeatureSpec

	// status is the observed state, set by the server flow only.
	Status FeatureStatus
}

// FeatureSpec is the requested value.
type FeatureSpec struct {
	// enabled is the value requested through the API. Only features that
	// kube-apiserver lists in --dynamic-features accept it; for all others
	// the value comes from the command line, and a request is refused with
	// the flag to set.
	Enabled *bool

	// rollout limits the requested value to a share of the instances.
	Rollout *FeatureRollout

	// paused holds the feature where it is: no transition starts and no task
	// runs until it is false again.
	Paused bool
}

// FeatureRollout is a canary: which instances take the requested value.
type FeatureRollout struct {
	// percent of the instances that take the requested value, 0 to 100. An
	// instance is chosen by a stable hash of instance and feature, so that
	// growing the percentage never takes the value away from an instance.
	// Unset means 100.
	Percent *int32

	// components limits the rollout to these components, for example
	// kube-scheduler. Empty means all.
	Components []string

	// attempt counts tries of the same rollout. A rollout that has been halted
	// (status.rollout.halted) is resumed by any change of spec.rollout; another
	// attempt is a change that changes nothing else.
	Attempt int32

	// at is the moment at which all instances take the requested value together.
	// Until then those have it that a canary gave it to, none without one. The others
	// get to know the moment ahead and confirm it: each switches by itself, by its own
	// clock, and one that gets to know it later switches then. A moment that has
	// passed is for all at once. It does not count while the feature is paused, while
	// the other value is requested, or while the canary is suspected or halted. It
	// excludes percent and components.
	At *metav1.Time
}

// FeatureStage is the maturity of a feature gate at the effective version.
type FeatureStage string

const (
	// StageAlpha is a gate that is off by default and may be removed.
	StageAlpha FeatureStage = "Alpha"
	// StageBeta is a gate whose feature is tested and may still change.
	StageBeta FeatureStage = "Beta"
	// StageGA is a gate whose feature is stable.
	StageGA FeatureStage = "GA"
	// StageDeprecated is a gate whose feature is to be removed.
	StageDeprecated FeatureStage = "Deprecated"
	// StagePreAlpha is a gate that the binary knows but the effective version
	// does not have yet.
	StagePreAlpha FeatureStage = "PreAlpha"
)

// FeatureState is the observed state of the cluster with respect to a feature.
type FeatureState string

const (
	// StateOn means that every user has the feature on and every task of
	// turning it on is done.
	StateOn FeatureState = "On"
	// StateOff means that every user has the feature off and every task of
	// turning it off is done.
	StateOff FeatureState = "Off"
	// StateTurningOn means that tasks are left before the feature is On.
	StateTurningOn FeatureState = "TurningOn"
	// StateTurningOff means that tasks are left before the feature is Off.
	StateTurningOff FeatureState = "TurningOff"
	// StateUpgrading means that what is stored for the feature is being moved
	// to the form of a higher minor version.
	StateUpgrading FeatureState = "Upgrading"
	// StateDowngrading means that what is stored for the feature is being
	// moved to the form of a lower minor version.
	StateDowngrading FeatureState = "Downgrading"
)

// FeatureValueSource is the source of a configured value.
type FeatureValueSource string

const (
	// SourceDefault is the gate's own default at the effective version.
	SourceDefault FeatureValueSource = "Default"
	// SourceCommandLine is --feature-gates of kube-apiserver, or its AllAlpha
	// and AllBeta.
	SourceCommandLine FeatureValueSource = "CommandLine"
	// SourceAPI is spec.enabled.
	SourceAPI FeatureValueSource = "API"
)

// FeatureControl names the source of the value that a binary uses.
type FeatureControl string

const (
	// ControlLocal means each binary's own command line.
	ControlLocal FeatureControl = "Local"
	// ControlCentral means that other binaries read the value here when they
	// start.
	ControlCentral FeatureControl = "Central"
	// ControlDynamic means that the value may change while binaries run.
	ControlDynamic FeatureControl = "Dynamic"
)

// FeatureStatus is the observed state, set by the server flow.
type FeatureStatus struct {
	// stage is the gate's maturity at the effective version.
	Stage FeatureStage

	// default is the gate's value when it is not set.
	Default *bool

	// lockedToDefault is true when the gate refuses any other value.
	LockedToDefault bool

	// configured is the value that all live apiservers agree on. It keeps the
	// last agreed value while they do not (condition Consistent).
	Configured *FeatureConfiguration

	// control names the source of the value that a binary uses.
	Control FeatureControl

	// state is the observed state of the cluster. It becomes On or Off only
	// after the last task of a transition is done.
	State FeatureState

	// stateSince is the time of the last change of state.
	StateSince *metav1.Time

	// version is the minor version whose representation is stored, for
	// example 1.36.
	Version string

	// transition is the transition under way, if any.
	Transition *FeatureTransition

	// tasks are the remaining tasks of the transition, in order; the first is
	// in progress. A finished task is removed.
	Tasks []FeatureTask

	// uses counts the instances that observed each value, by component, version
	// and value. It is cleared when a transition begins.
	Uses []FeatureUse

	// conditions: Consistent, UsesMatch, Clean, Progressing, UpgradeSafe,
	// DowngradeSafe and Known. Each reason names a cause, each message names
	// the next step.
	Conditions []metav1.Condition
	// storedVersions are the lowest and the highest minor version, apart from
	// version, that live apiservers have had since everything that is stored was
	// of version: their representations may be stored, too. It is kept for
	// features that declare tasks between these versions, and is empty once a
	// version transition has ended.
	StoredVersions []string

	// rollout is the canary under way: there is one while spec.rollout gives a
	// value to a part of the instances and the others have another one.
	Rollout *FeatureRolloutStatus
}

// FeatureRolloutStatus is the observed state of a canary.
type FeatureRolloutStatus struct {
	// value is the value that the canary gives to its instances; all others have
	// the opposite.
	Value bool
	// observed is the spec.rollout that this status belongs to. When spec.rollout
	// changes, the canary restarts, and a halted one is resumed. With at, percent and
	// components are those that have the value until then; without them it has come,
	// and the value is for all.
	Observed FeatureRollout
	// startTime is the time at which the canary began, was changed or was
	// resumed. Instances that had failed before do not count against it.
	StartTime metav1.MicroTime
	// unhealthySince is the time since which more of the canary's instances have
	// failed than are allowed to. It is unset otherwise. The canary is halted if
	// this lasts for a moment: after an outage of everything, processes come back
	// one by one.
	UnhealthySince *metav1.MicroTime
	// halted is true when the canary was halted: no instance takes its value, and
	// those that had taken it return to the other one. It stays true until
	// spec.rollout is changed or value is no longer requested.
	Halted bool
	// haltTime is the time at which the canary was halted.
	HaltTime *metav1.Time
	// message describes the cause of the halt or of unhealthySince.
	Message string
	// failedInstances names the instances that the canary was halted for, as
	// <component>/<name>, at most 20.
	FailedInstances []string
	// momentHeld is true while observed.at does not count: the feature is paused, its
	// other value is requested, or the canary is suspected shortly before it.
	MomentHeld bool
}

// FeatureConfiguration is a desired value and its source.
type FeatureConfiguration struct {
	// value is the desired value.
	Value bool
	// source is the source of the value.
	Source FeatureValueSource
	// previous is the value that the feature had in its last state of rest.
	// While spec.rollout is limited, instances outside of it use this one. It
	// stays when the desired value changes again before that one was reached.
	// If unset, state holds that value.
	Previous *bool
}

// FeatureTransition is one change of state, from its first task to its last.
type FeatureTransition struct {
	// id identifies the transition; a new one is made for each.
	ID string
	// startTime is the time at which the transition was written.
	StartTime metav1.MicroTime
	// reason is the cause of the transition: Configuration, Clean or Version.
	Reason FeatureTransitionReason
	// fromVersion is the minor version whose representation was stored when a
	// version transition began, or the furthest from toVersion if there may be
	// several (storedVersions).
	FromVersion string
	// toVersion is the minor version that a version transition leads to.
	ToVersion string
	// fromState is the state that a version transition began in, On or Off. It
	// ends in the same: a version transition leaves the value alone.
	FromState FeatureState
	// interrupted is true when a live apiserver had another version than
	// toVersion after tasks of a version transition had begun, or one whose form
	// its tasks do not deal with. That server may have stored what the tasks are
	// there to change. The transition restarts once all apiservers have the same
	// version again.
	Interrupted bool
}

// FeatureTransitionReason is the cause of a transition.
type FeatureTransitionReason string

const (
	// TransitionConfiguration means that the configured value and the state
	// differed.
	TransitionConfiguration FeatureTransitionReason = "Configuration"
	// TransitionClean means that the removal of leftovers was requested through
	// the cleanup subresource.
	TransitionClean FeatureTransitionReason = "Clean"
	// TransitionVersion means that the cluster's version and the stored
	// version differed.
	TransitionVersion FeatureTransitionReason = "Version"
)

// TaskWaitForUses is the name of the task that every transition begins with:
// it ends when no live user reports the value that the transition leaves.
const TaskWaitForUses = "WaitForUses"

// FeatureTask is one step of a transition.
type FeatureTask struct {
	// name identifies the task among those of the feature. A server that does
	// not know the name skips the task and reports this in status.
	Name string
	// message describes the task's progress or the condition it waits for.
	Message string
	// done is the number of finished objects.
	Done int64
	// total is the number of objects that the task has to process, as far as
	// known.
	Total int64
	// attempts is the number of attempts that did not finish the task.
	Attempts int32
	// lastAttemptTime is the start time of the last attempt.
	LastAttemptTime *metav1.MicroTime
	// checkpoint is the position at which the task resumes after a crash, in a
	// form that is private to the task.
	Checkpoint string
}

// FeatureUse counts the instances of a component that observed one value.
type FeatureUse struct {
	// component is the reporting component, for example kubelet.
	Component string
	// version is the component's binary version.
	Version string
	// enabled is the value that these instances observed. It is unset for
	// instances that are expected and did not report: their value is not known.
	Enabled *bool
	// count is the number of live instances that observed this value.
	Count int32
	// expected is the number of instances of this component and version that
	// should report, as far as the cluster can know it: from Nodes and
	// apiserver identities.
	Expected int32
	// stale is the number of further instances that reported this value and are
	// no longer reachable.
	Stale int32
	// examples names some of the instances, at most 5.
	Examples []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureList is a list of features.
type FeatureList struct {
	metav1.TypeMeta
	// Standard list metadata.
	metav1.ListMeta

	// items is the list of features.
	Items []Feature
}
