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
// +genclient:noStatus
// +genclient:method=CreateConfirmation,verb=create,subresource=confirmation,input=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeatureConfirmation,result=k8s.io/feature-lifecycle/apis/features/v1alpha1.FeatureConfirmation
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureReport lists the values that one process observed for its feature
// gates. Its name is <component>.<instance>.
type FeatureReport struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is the report.
	// +required
	Spec FeatureReportSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

// FeatureReportSpec is the report of one process.
type FeatureReportSpec struct {
	// component is the kind of process, for example kube-scheduler. It cannot
	// be changed.
	// +required
	Component string `json:"component" protobuf:"bytes,1,opt,name=component"`
	// instance identifies a process among those of its component: the node's
	// name for node components, the server's identity for kube-apiserver. It
	// cannot be changed.
	// +required
	Instance string `json:"instance" protobuf:"bytes,2,opt,name=instance"`
	// nodeName is the node that a node component runs on. It cannot be
	// changed.
	// +optional
	NodeName string `json:"nodeName,omitempty" protobuf:"bytes,3,opt,name=nodeName"`
	// binaryVersion is the version of the binary, for example v1.36.3.
	// +optional
	BinaryVersion string `json:"binaryVersion,omitempty" protobuf:"bytes,4,opt,name=binaryVersion"`
	// emulationVersion is the minor version that the binary emulates, for
	// example 1.36.
	// +optional
	EmulationVersion string `json:"emulationVersion,omitempty" protobuf:"bytes,5,opt,name=emulationVersion"`
	// features lists the observed values. kube-apiservers list every gate they
	// know, since they must agree on what is configured; all others list the
	// gates that they queried and those that were set explicitly. The list is
	// written as a whole: a process owns all entries of its report.
	// +optional
	// +listType=atomic
	Features []ReportedFeature `json:"features,omitempty" protobuf:"bytes,6,rep,name=features"`
	// liveness describes how the process's liveness is observed.
	// +optional
	Liveness ReportLiveness `json:"liveness,omitempty" protobuf:"bytes,7,opt,name=liveness"`
	// username is the identity that created the report. The server sets it
	// from the request; only this identity may update the report.
	// +optional
	Username string `json:"username,omitempty" protobuf:"bytes,8,opt,name=username"`
	// process is a random name of the process that wrote the report last. Two
	// processes of one instance live for a while when one is replaced: the one
	// that ends must not delete the other's report. A process that takes over
	// from one that did not announce its end shows that the other one crashed.
	// +optional
	Process string `json:"process,omitempty" protobuf:"bytes,9,opt,name=process"`
}

// ReportedFeature is the value that a process observed for one gate.
type ReportedFeature struct {
	// name is the gate's exact name.
	// +required
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// enabled is the observed value.
	// +required
	Enabled bool `json:"enabled" protobuf:"varint,2,opt,name=enabled"`
	// queried is true once the process's code queried the value. Only then it
	// is a user of the feature.
	// +optional
	Queried bool `json:"queried,omitempty" protobuf:"varint,3,opt,name=queried"`
	// explicit is true when the value was set on the command line or in a
	// configuration file rather than taken from the default.
	// +optional
	Explicit bool `json:"explicit,omitempty" protobuf:"varint,4,opt,name=explicit"`
	// stage is the gate's maturity at the emulation version.
	// +optional
	Stage FeatureStage `json:"stage,omitempty" protobuf:"bytes,5,opt,name=stage,casttype=FeatureStage"`
	// default is the gate's value at the emulation version when it is not
	// set.
	// +optional
	Default bool `json:"default,omitempty" protobuf:"varint,6,opt,name=default"`
	// lockedToDefault is true when the gate refuses any other value.
	// +optional
	LockedToDefault bool `json:"lockedToDefault,omitempty" protobuf:"varint,7,opt,name=lockedToDefault"`
	// control names the source of the value at this server. Only servers report
	// it, and they must agree. Empty means Local.
	// +optional
	Control FeatureControl `json:"control,omitempty" protobuf:"bytes,8,opt,name=control,casttype=FeatureControl"`
	// overridden is true when the value was taken from the API and the process
	// would use the other one by itself.
	// +optional
	Overridden bool `json:"overridden,omitempty" protobuf:"varint,9,opt,name=overridden"`
	// switchTime is the moment, spec.rollout.at of the Feature, at which the process
	// takes the other value by itself. It is empty unless the process waits for that. It
	// is in RFC 3339 and UTC, with seconds; and a string, since lists of features are
	// compared as they are.
	// +optional
	SwitchTime string `json:"switchTime,omitempty" protobuf:"bytes,10,opt,name=switchTime"`
}

// ReportLiveness describes how a process's liveness is observed. A process
// without a Lease is alive while the Node named in spec.nodeName is Ready.
type ReportLiveness struct {
	// lease is the Lease that the process renews. It has the report's name, and
	// is in the report's namespace; for reports in kube-system, but for those of
	// kube-apiserver, in kube-feature-lease. It may not be set together with
	// spec.nodeName; one of the two must be.
	// +optional
	Lease *LeaseReference `json:"lease,omitempty" protobuf:"bytes,1,opt,name=lease"`
}

// LeaseReference names a coordination.k8s.io Lease.
type LeaseReference struct {
	// namespace of the Lease.
	// +required
	Namespace string `json:"namespace" protobuf:"bytes,1,opt,name=namespace"`
	// name of the Lease.
	// +required
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureReportList is a list of reports.
type FeatureReportList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items is the list of reports.
	Items []FeatureReport `json:"items" protobuf:"bytes,2,rep,name=items"`
}
