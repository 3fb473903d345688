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

// FeaturePlan is posted to the plan subresource of a Feature and returns the
// effect of a change. Nothing is stored.
type FeaturePlan struct {
	metav1.TypeMeta
	// Standard object's metadata; the name, if given, is the feature's.
	metav1.ObjectMeta

	// spec is the proposed change.
	Spec FeaturePlanSpec

	// status is the answer.
	Status FeaturePlanStatus
}

// FeaturePlanSpec is the proposed change; exactly one field is set.
type FeaturePlanSpec struct {
	// enabled is the proposed value.
	Enabled *bool
	// targetVersion is the proposed minor version, for example 1.37.
	TargetVersion string
}

// FeaturePlanStatus describes the effect of the change.
type FeaturePlanStatus struct {
	// tasks are the tasks that would run, in order: those of a change of the
	// value and those of a change of the stored version, if both come about.
	// Each transition has its own WaitForUses, so names are not unique.
	Tasks []PlannedTask
	// uses count the instances with another value than the feature would have. It is
	// empty when a move to another version leaves the value alone.
	Uses []FeatureUse
	// dependents are the gates that would be on, and depend on this one, which
	// would be off, directly or through others.
	Dependents []string
	// blockers describe what would block the transition until a person acts.
	Blockers []string
	// configured is the value that the feature would have and its source.
	// It is unset when that cannot be determined (unknown).
	Configured *FeatureConfiguration
	// dependencies are the gates that would be off, and that this one, which would
	// be on, depends on, directly or through others.
	Dependencies []string
	// unknown describes facts that the answering server cannot know, and who
	// can provide them.
	Unknown []string
}

// PlannedTask describes the effect of one task of the transition.
type PlannedTask struct {
	// name of the task.
	Name string
	// message describes what the task would do.
	Message string
	// leftovers are the objects that the task would process, per resource.
	Leftovers []ResourceLeftovers
	// state is the state in which the task would run: TurningOn, TurningOff,
	// Upgrading or Downgrading. It is unset for tasks that would not run because
	// the feature has the proposed value: what they find is left over.
	State FeatureState
}

// ResourceLeftovers counts the objects of one resource that hold something of
// a feature.
type ResourceLeftovers struct {
	// group of the resource; empty for the core group.
	Group string
	// resource is the plural name, for example statefulsets.
	Resource string
	// field is the path that the objects have set, if the leftover is a field.
	Field string
	// count is the number of objects.
	Count int64
	// examples names some of the objects as <namespace>/<name>, at most 5.
	Examples []string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureCleanup is posted to the cleanup subresource of a Feature that is Off
// but not Clean. It starts the removal of what the feature left behind, as a
// transition like any other.
type FeatureCleanup struct {
	metav1.TypeMeta
	// Standard object's metadata; the name, if given, is the feature's.
	metav1.ObjectMeta

	// status is the transition that was started.
	Status FeatureCleanupStatus
}

// FeatureCleanupStatus is the transition that was started.
type FeatureCleanupStatus struct {
	// transitionID is the id of the transition; follow it in the Feature's
	// status.
	TransitionID string
	// tasks are what the transition will do, in order.
	Tasks []FeatureTask
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureConfirmation is posted to the confirmation subresource of a
// FeatureReport by the process that wrote it, after values have changed in the
// process and nothing else has. The server stores the values in the report, as
// if the process had written it as a whole.
type FeatureConfirmation struct {
	metav1.TypeMeta
	// Standard object's metadata; the name, if given, is the report's. An answer
	// has the resource version of the report.
	metav1.ObjectMeta

	// spec is what is confirmed.
	Spec FeatureConfirmationSpec
}

// FeatureConfirmationSpec is what is confirmed.
type FeatureConfirmationSpec struct {
	// process is spec.process of the report. If another process has written
	// the report since, nothing is stored.
	Process string
	// values are those that changed. The report has to list each name.
	Values []ConfirmedValue
}

// ConfirmedValue is the value that a process has of one gate.
type ConfirmedValue struct {
	// name is the gate's exact name.
	Name string
	// enabled is the observed value.
	Enabled bool
	// overridden is true when the value was taken from the API and the process
	// would use the other one by itself.
	Overridden bool
	// switchTime is the moment at which the process takes the other value by itself,
	// as spec.features of a report has it. Empty means that it waits for none.
	SwitchTime string
}
