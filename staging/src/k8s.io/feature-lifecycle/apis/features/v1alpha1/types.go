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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=CreatePlan,verb=create,subresource=plan,input=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeaturePlan,result=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeaturePlan
// +genclient:method=CreateCleanup,verb=create,subresource=cleanup,input=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeatureCleanup,result=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeatureCleanup
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Feature describes the configured value of one gate and the observed state of
// the cluster. Its name is the gate's exact name. Features of Kubernetes live
// in the namespace kube-system; third parties use their own namespace.
type Feature struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the requested value.
	// +optional
	Spec FeatureSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is the observed state, set by the server flow only.
	// +optional
	Status FeatureStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// FeatureSpec is the requested value.
type FeatureSpec struct {
	// enabled is the value requested through the API. Only features that
	// kube-apiserver lists in --dynamic-features accept it; for all others
	// the value comes from the command line, and a request is refused with
	// the flag to set.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,1,opt,name=enabled"`

	// rollout limits the requested value to a share of the instances.
	// +optional
	Rollout *FeatureRollout `json:"rollout,omitempty" protobuf:"bytes,2,opt,name=rollout"`

	// paused holds the feature where it is: no transition starts and no task
	// runs until it is false again.
	// +optional
	Paused bool `json:"paused,omitempty" protobuf:"varint,3,opt,name=paused"`
}

// FeatureStage is the maturity of a feature gate at the effective version.
// +enum
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
// +enum
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
// +enum
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
// +enum
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
	// +optional
	Stage FeatureStage `json:"stage,omitempty" protobuf:"bytes,1,opt,name=stage,casttype=FeatureStage"`

	// default is the gate's value when it is not set.
	// +optional
	Default *bool `json:"default,omitempty" protobuf:"varint,2,opt,name=default"`

	// lockedToDefault is true when the gate refuses any other value.
	// +optional
	LockedToDefault bool `json:"lockedToDefault,omitempty" protobuf:"varint,3,opt,name=lockedToDefault"`

	// configured is the value that all live apiservers agree on. It keeps the
	// last agreed value while they do not (condition Consistent).
	// +optional
	Configured *FeatureConfiguration `json:"configured,omitempty" protobuf:"bytes,4,opt,name=configured"`

	// control names the source of the value that a binary uses.
	// +optional
	Control FeatureControl `json:"control,omitempty" protobuf:"bytes,5,opt,name=control,casttype=FeatureControl"`

	// state is the observed state of the cluster. It becomes On or Off only
	// after the last task of a transition is done.
	// +optional
	State FeatureState `json:"state,omitempty" protobuf:"bytes,6,opt,name=state,casttype=FeatureState"`

	// stateSince is the time of the last change of state.
	// +optional
	StateSince *metav1.Time `json:"stateSince,omitempty" protobuf:"bytes,7,opt,name=stateSince"`

	// version is the minor version whose representation is stored, for
	// example 1.36.
	// +optional
	Version string `json:"version,omitempty" protobuf:"bytes,8,opt,name=version"`

	// transition is the transition under way, if any.
	// +optional
	Transition *FeatureTransition `json:"transition,omitempty" protobuf:"bytes,9,opt,name=transition"`

	// tasks are the remaining tasks of the transition, in order; the first is
	// in progress. A finished task is removed.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=name
	// +listType=map
	// +listMapKey=name
	Tasks []FeatureTask `json:"tasks,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,10,rep,name=tasks"`

	// uses counts the instances that observed each value, by component, version
	// and value. It is cleared when a transition begins.
	// +optional
	// +listType=atomic
	Uses []FeatureUse `json:"uses,omitempty" protobuf:"bytes,11,rep,name=uses"`

	// conditions: Consistent, UsesMatch, Clean, Progressing, UpgradeSafe,
	// DowngradeSafe and Known. Each reason names a cause, each message names
	// the next step.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,12,rep,name=conditions"`

	// storedVersions are the lowest and the highest minor version, apart from
	// version, that live apiservers have had since everything that is stored was
	// of version: their representations may be stored, too. It is kept for
	// features that declare tasks between these versions, and is empty once a
	// version transition has ended.
	// +optional
	// +listType=set
	StoredVersions []string `json:"storedVersions,omitempty" protobuf:"bytes,13,rep,name=storedVersions"`

	// rollout is the canary under way: there is one while spec.rollout gives a
	// value to a part of the instances and the others have another one.
	// +optional
	Rollout *FeatureRolloutStatus `json:"rollout,omitempty" protobuf:"bytes,14,opt,name=rollout"`
}

// FeatureConfiguration is a desired value and its source.
type FeatureConfiguration struct {
	// value is the desired value.
	// +required
	Value bool `json:"value" protobuf:"varint,1,opt,name=value"`
	// source is the source of the value.
	// +required
	Source FeatureValueSource `json:"source" protobuf:"bytes,2,opt,name=source,casttype=FeatureValueSource"`
	// previous is the value that the feature had in its last state of rest.
	// While spec.rollout is limited, instances outside of it use this one. It
	// stays when the desired value changes again before that one was reached.
	// If unset, state holds that value.
	// +optional
	Previous *bool `json:"previous,omitempty" protobuf:"varint,3,opt,name=previous"`
}

// FeatureTransition is one change of state, from its first task to its last.
type FeatureTransition struct {
	// id identifies the transition; a new one is made for each.
	// +required
	ID string `json:"id" protobuf:"bytes,1,opt,name=id"`
	// startTime is the time at which the transition was written.
	// +required
	StartTime metav1.MicroTime `json:"startTime" protobuf:"bytes,2,opt,name=startTime"`
	// reason is the cause of the transition: Configuration, Clean or Version.
	// +required
	Reason FeatureTransitionReason `json:"reason" protobuf:"bytes,3,opt,name=reason,casttype=FeatureTransitionReason"`
	// fromVersion is the minor version whose representation was stored when a
	// version transition began, or the furthest from toVersion if there may be
	// several (storedVersions).
	// +optional
	FromVersion string `json:"fromVersion,omitempty" protobuf:"bytes,4,opt,name=fromVersion"`
	// toVersion is the minor version that a version transition leads to.
	// +optional
	ToVersion string `json:"toVersion,omitempty" protobuf:"bytes,5,opt,name=toVersion"`
	// fromState is the state that a version transition began in, On or Off. It
	// ends in the same: a version transition leaves the value alone.
	// +optional
	FromState FeatureState `json:"fromState,omitempty" protobuf:"bytes,6,opt,name=fromState,casttype=FeatureState"`
	// interrupted is true when a live apiserver had another version than
	// toVersion after tasks of a version transition had begun, or one whose form
	// its tasks do not deal with. That server may have stored what the tasks are
	// there to change. The transition restarts once all apiservers have the same
	// version again.
	// +optional
	Interrupted bool `json:"interrupted,omitempty" protobuf:"varint,7,opt,name=interrupted"`
}

// FeatureTransitionReason is the cause of a transition.
// +enum
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
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// message describes the task's progress or the condition it waits for.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,2,opt,name=message"`
	// done is the number of finished objects.
	// +optional
	Done int64 `json:"done,omitempty" protobuf:"varint,3,opt,name=done"`
	// total is the number of objects that the task has to process, as far as
	// known.
	// +optional
	Total int64 `json:"total,omitempty" protobuf:"varint,4,opt,name=total"`
	// attempts is the number of attempts that did not finish the task.
	// +optional
	Attempts int32 `json:"attempts,omitempty" protobuf:"varint,5,opt,name=attempts"`
	// lastAttemptTime is the start time of the last attempt.
	// +optional
	LastAttemptTime *metav1.MicroTime `json:"lastAttemptTime,omitempty" protobuf:"bytes,6,opt,name=lastAttemptTime"`
	// checkpoint is the position at which the task resumes after a crash, in a
	// form that is private to the task.
	// +optional
	Checkpoint string `json:"checkpoint,omitempty" protobuf:"bytes,7,opt,name=checkpoint"`
}

// FeatureUse counts the instances of a component that observed one value.
type FeatureUse struct {
	// component is the reporting component, for example kubelet.
	// +required
	Component string `json:"component" protobuf:"bytes,1,opt,name=component"`
	// version is the component's binary version.
	// +optional
	Version string `json:"version,omitempty" protobuf:"bytes,2,opt,name=version"`
	// enabled is the value that these instances observed. It is unset for
	// instances that are expected and did not report: their value is not known.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,3,opt,name=enabled"`
	// count is the number of live instances that observed this value.
	// +optional
	Count int32 `json:"count,omitempty" protobuf:"varint,4,opt,name=count"`
	// expected is the number of instances of this component and version that
	// should report, as far as the cluster can know it: from Nodes and
	// apiserver identities.
	// +optional
	Expected int32 `json:"expected,omitempty" protobuf:"varint,5,opt,name=expected"`
	// stale is the number of further instances that reported this value and are
	// no longer reachable.
	// +optional
	Stale int32 `json:"stale,omitempty" protobuf:"varint,6,opt,name=stale"`
	// examples names some of the instances, at most 5.
	// +optional
	// +listType=atomic
	Examples []string `json:"examples,omitempty" protobuf:"bytes,7,rep,name=examples"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureList is a list of features.
type FeatureList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of features.
	Items []Feature `json:"items" protobuf:"bytes,2,rep,name=items"`
}
