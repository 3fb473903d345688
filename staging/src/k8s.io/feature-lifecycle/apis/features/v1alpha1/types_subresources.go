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

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeaturePlan is posted to the plan subresource of a Feature and returns the
// effect of a change. Nothing is stored.
type FeaturePlan struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata; the name, if given, is the feature's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the proposed change.
	// +required
	Spec FeaturePlanSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`

	// status is the answer.
	// +optional
	Status FeaturePlanStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// FeaturePlanSpec is the proposed change; exactly one field is set.
type FeaturePlanSpec struct {
	// enabled is the proposed value.
	// +optional
	Enabled *bool `json:"enabled,omitempty" protobuf:"varint,1,opt,name=enabled"`
	// targetVersion is the proposed minor version, for example 1.37.
	// +optional
	TargetVersion string `json:"targetVersion,omitempty" protobuf:"bytes,2,opt,name=targetVersion"`
}

// FeaturePlanStatus describes the effect of the change.
type FeaturePlanStatus struct {
	// tasks are the tasks that would run, in order: those of a change of the
	// value and those of a change of the stored version, if both come about.
	// Each transition has its own WaitForUses, so names are not unique.
	// +optional
	// +listType=atomic
	Tasks []PlannedTask `json:"tasks,omitempty" protobuf:"bytes,1,rep,name=tasks"`
	// uses count the instances with another value than the feature would have. It is
	// empty when a move to another version leaves the value alone.
	// +optional
	// +listType=atomic
	Uses []FeatureUse `json:"uses,omitempty" protobuf:"bytes,2,rep,name=uses"`
	// dependents are the gates that would be on, and depend on this one, which
	// would be off, directly or through others.
	// +optional
	// +listType=set
	Dependents []string `json:"dependents,omitempty" protobuf:"bytes,3,rep,name=dependents"`
	// blockers describe what would block the transition until a person acts.
	// +optional
	// +listType=atomic
	Blockers []string `json:"blockers,omitempty" protobuf:"bytes,4,rep,name=blockers"`
	// configured is the value that the feature would have and its source.
	// It is unset when that cannot be determined (unknown).
	// +optional
	Configured *FeatureConfiguration `json:"configured,omitempty" protobuf:"bytes,5,opt,name=configured"`
	// dependencies are the gates that would be off, and that this one, which would
	// be on, depends on, directly or through others.
	// +optional
	// +listType=set
	Dependencies []string `json:"dependencies,omitempty" protobuf:"bytes,6,rep,name=dependencies"`
	// unknown describes facts that the answering server cannot know, and who
	// can provide them.
	// +optional
	// +listType=atomic
	Unknown []string `json:"unknown,omitempty" protobuf:"bytes,7,rep,name=unknown"`
}

// PlannedTask describes the effect of one task of the transition.
type PlannedTask struct {
	// name of the task.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// message describes what the task would do.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,2,opt,name=message"`
	// leftovers are the objects that the task would process, per resource.
	// +optional
	// +listType=atomic
	Leftovers []ResourceLeftovers `json:"leftovers,omitempty" protobuf:"bytes,3,rep,name=leftovers"`
	// state is the state in which the task would run: TurningOn, TurningOff,
	// Upgrading or Downgrading. It is unset for tasks that would not run because
	// the feature has the proposed value: what they find is left over.
	// +optional
	State FeatureState `json:"state,omitempty" protobuf:"bytes,4,opt,name=state,casttype=FeatureState"`
}

// ResourceLeftovers counts the objects of one resource that hold something of
// a feature.
type ResourceLeftovers struct {
	// group of the resource; empty for the core group.
	// +optional
	Group string `json:"group,omitempty" protobuf:"bytes,1,opt,name=group"`
	// resource is the plural name, for example statefulsets.
	// +required
	Resource string `json:"resource" protobuf:"bytes,2,opt,name=resource"`
	// field is the path that the objects have set, if the leftover is a field.
	// +optional
	Field string `json:"field,omitempty" protobuf:"bytes,3,opt,name=field"`
	// count is the number of objects.
	// +optional
	Count int64 `json:"count,omitempty" protobuf:"varint,4,opt,name=count"`
	// examples names some of the objects as <namespace>/<name>, at most 5.
	// +optional
	// +listType=atomic
	Examples []string `json:"examples,omitempty" protobuf:"bytes,5,rep,name=examples"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureCleanup is posted to the cleanup subresource of a Feature that is Off
// but not Clean. It starts the removal of what the feature left behind, as a
// transition like any other.
type FeatureCleanup struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata; the name, if given, is the feature's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// status is the transition that was started.
	// +optional
	Status FeatureCleanupStatus `json:"status,omitempty" protobuf:"bytes,2,opt,name=status"`
}

// FeatureCleanupStatus is the transition that was started.
type FeatureCleanupStatus struct {
	// transitionID is the id of the transition; follow it in the Feature's
	// status.
	// +optional
	TransitionID string `json:"transitionID,omitempty" protobuf:"bytes,1,opt,name=transitionID"`
	// tasks are what the transition will do, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Tasks []FeatureTask `json:"tasks,omitempty" protobuf:"bytes,2,rep,name=tasks"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureConfirmation is posted to the confirmation subresource of a
// FeatureReport by the process that wrote it, after values have changed in the
// process and nothing else has. The server stores the values in the report, as
// if the process had written it as a whole.
type FeatureConfirmation struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata; the name, if given, is the report's. An answer
	// has the resource version of the report.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what is confirmed.
	// +required
	Spec FeatureConfirmationSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// FeatureConfirmationSpec is what is confirmed.
type FeatureConfirmationSpec struct {
	// process is spec.process of the report. If another process has written
	// the report since, nothing is stored.
	// +required
	Process string `json:"process" protobuf:"bytes,1,opt,name=process"`
	// values are those that changed. The report has to list each name.
	// +listType=map
	// +listMapKey=name
	// +required
	Values []ConfirmedValue `json:"values" protobuf:"bytes,2,rep,name=values"`
}

// ConfirmedValue is the value that a process has of one gate.
type ConfirmedValue struct {
	// name is the gate's exact name.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// enabled is the observed value.
	// +required
	Enabled bool `json:"enabled" protobuf:"varint,2,opt,name=enabled"`
	// overridden is true when the value was taken from the API and the process
	// would use the other one by itself.
	// +optional
	Overridden bool `json:"overridden,omitempty" protobuf:"varint,3,opt,name=overridden"`
	// switchTime is the moment at which the process takes the other value by itself,
	// as spec.features of a report has it. Empty means that it waits for none.
	// +optional
	SwitchTime string `json:"switchTime,omitempty" protobuf:"bytes,4,opt,name=switchTime"`
}
