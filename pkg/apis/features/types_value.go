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

// FeatureValue is the value of a Feature of the same namespace and name, for the
// processes that follow it. The server flow derives it from the Feature and
// writes it when the value or its rollout changes, and for nothing else: thousands
// of processes receive each change. It has no labels, annotations and managed
// fields. Features whose values are not set centrally have none.
type FeatureValue struct {
	metav1.TypeMeta
	// Standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	metav1.ObjectMeta

	// control is Central, for a value that processes take when they start, or
	// Dynamic, for one that may change while they run.
	Control FeatureControl

	// value is the value that processes take.
	Value bool

	// previous is the value of instances that rollout leaves out. These take none
	// if it is unset. It is unset without a rollout.
	Previous *bool

	// rollout limits value to a share of the instances. Unset means all.
	Rollout *FeatureRollout

	// featureVersion is the resourceVersion of the Feature that this object was
	// derived from. The newer one of a Feature and its FeatureValue, by this
	// version, counts.
	FeatureVersion string

	// reportWithinSeconds is the time over which the processes that take the value
	// spread their reports, in seconds. 0 means that they report at once. The
	// server flow derives it from the number of these processes.
	ReportWithinSeconds int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureValueList is a list of values.
type FeatureValueList struct {
	metav1.TypeMeta
	// Standard list metadata.
	metav1.ListMeta

	// items is the list of values.
	Items []FeatureValue
}
