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
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureValue is the value of a Feature of the same namespace and name, for the
// processes that follow it. The server flow derives it from the Feature and
// writes it when the value or its rollout changes, and for nothing else: thousands
// of processes receive each change. It has no labels, annotations and managed
// fields. Features whose values are not set centrally have none.
type FeatureValue struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// control is Central, for a value that processes take when they start, or
	// Dynamic, for one that may change while they run.
	// +required
	Control FeatureControl `json:"control" protobuf:"bytes,2,opt,name=control,casttype=FeatureControl"`

	// value is the value that processes take.
	// +required
	Value bool `json:"value" protobuf:"varint,3,opt,name=value"`

	// previous is the value of instances that rollout leaves out. These take none
	// if it is unset. It is unset without a rollout.
	// +optional
	Previous *bool `json:"previous,omitempty" protobuf:"varint,4,opt,name=previous"`

	// rollout limits value to a share of the instances. Unset means all.
	// +optional
	Rollout *FeatureRollout `json:"rollout,omitempty" protobuf:"bytes,5,opt,name=rollout"`

	// featureVersion is the resourceVersion of the Feature that this object was
	// derived from. The newer one of a Feature and its FeatureValue, by this
	// version, counts.
	// +required
	FeatureVersion string `json:"featureVersion" protobuf:"bytes,6,opt,name=featureVersion"`

	// reportWithinSeconds is the time over which the processes that take the value
	// spread their reports, in seconds. 0 means that they report at once. The
	// server flow derives it from the number of these processes.
	// +optional
	ReportWithinSeconds int32 `json:"reportWithinSeconds,omitempty" protobuf:"varint,7,opt,name=reportWithinSeconds"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureValueList is a list of values.
type FeatureValueList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of values.
	Items []FeatureValue `json:"items" protobuf:"bytes,2,rep,name=items"`
}
