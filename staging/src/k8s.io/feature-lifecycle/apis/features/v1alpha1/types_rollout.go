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

// FeatureRollout is a canary: which instances take the requested value.
type FeatureRollout struct {
	// percent of the instances that take the requested value, 0 to 100. An
	// instance is chosen by a stable hash of instance and feature, so that
	// growing the percentage never takes the value away from an instance.
	// Unset means 100.
	// +optional
	Percent *int32 `json:"percent,omitempty" protobuf:"varint,1,opt,name=percent"`

	// components limits the rollout to these components, for example
	// kube-scheduler. Empty means all.
	// +optional
	// +listType=set
	Components []string `json:"components,omitempty" protobuf:"bytes,2,rep,name=components"`

	// attempt counts tries of the same rollout. A rollout that has been halted
	// (status.rollout.halted) is resumed by any change of spec.rollout; another
	// attempt is a change that changes nothing else.
	// +optional
	Attempt int32 `json:"attempt,omitempty" protobuf:"varint,3,opt,name=attempt"`

	// at is the moment at which all instances take the requested value together.
	// Until then those have it that a canary gave it to, none without one. The others
	// get to know the moment ahead and confirm it: each switches by itself, by its own
	// clock, and one that gets to know it later switches then. A moment that has
	// passed is for all at once. It does not count while the feature is paused, while
	// the other value is requested, or while the canary is suspected or halted. It
	// excludes percent and components.
	// +optional
	At *metav1.Time `json:"at,omitempty" protobuf:"bytes,4,opt,name=at"`
}

// FeatureRolloutStatus is the observed state of a canary.
type FeatureRolloutStatus struct {
	// value is the value that the canary gives to its instances; all others have
	// the opposite.
	// +required
	Value bool `json:"value" protobuf:"varint,1,opt,name=value"`
	// observed is the spec.rollout that this status belongs to. When spec.rollout
	// changes, the canary restarts, and a halted one is resumed. With at, percent and
	// components are those that have the value until then; without them it has come,
	// and the value is for all.
	// +required
	Observed FeatureRollout `json:"observed" protobuf:"bytes,2,opt,name=observed"`
	// startTime is the time at which the canary began, was changed or was
	// resumed. Instances that had failed before do not count against it.
	// +required
	StartTime metav1.MicroTime `json:"startTime" protobuf:"bytes,3,opt,name=startTime"`
	// unhealthySince is the time since which more of the canary's instances have
	// failed than are allowed to. It is unset otherwise. The canary is halted if
	// this lasts for a moment: after an outage of everything, processes come back
	// one by one.
	// +optional
	UnhealthySince *metav1.MicroTime `json:"unhealthySince,omitempty" protobuf:"bytes,4,opt,name=unhealthySince"`
	// halted is true when the canary was halted: no instance takes its value, and
	// those that had taken it return to the other one. It stays true until
	// spec.rollout is changed or value is no longer requested.
	// +optional
	Halted bool `json:"halted,omitempty" protobuf:"varint,5,opt,name=halted"`
	// haltTime is the time at which the canary was halted.
	// +optional
	HaltTime *metav1.Time `json:"haltTime,omitempty" protobuf:"bytes,6,opt,name=haltTime"`
	// message describes the cause of the halt or of unhealthySince.
	// +optional
	Message string `json:"message,omitempty" protobuf:"bytes,7,opt,name=message"`
	// failedInstances names the instances that the canary was halted for, as
	// <component>/<name>, at most 20.
	// +optional
	// +listType=atomic
	FailedInstances []string `json:"failedInstances,omitempty" protobuf:"bytes,8,rep,name=failedInstances"`
	// momentHeld is true while observed.at does not count: the feature is paused, its
	// other value is requested, or the canary is suspected shortly before it.
	// +optional
	MomentHeld bool `json:"momentHeld,omitempty" protobuf:"varint,9,opt,name=momentHeld"`
}
