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

// FeatureReport lists the values that one process observed for its feature
// gates. Its name is <component>.<instance>.
type FeatureReport struct {
	metav1.TypeMeta
	// Standard object's metadata.
	metav1.ObjectMeta

	// spec is the report.
	Spec FeatureReportSpec
}

// FeatureReportSpec is the report of one process.
type FeatureReportSpec struct {
	// component is the kind of process, for example kube-scheduler. It cannot
	// be changed.
	Component string
	// instance identifies a process among those of its component: the node's
	// name for node components, the server's identity for kube-apiserver. It
	// cannot be changed.
	Instance string
	// nodeName is the node that a node component runs on. It cannot be
	// changed.
	NodeName string
	// binaryVersion is the version of the binary, for example v1.36.3.
	BinaryVersion string
	// emulationVersion is the minor version that the binary emulates, for
	// example 1.36.
	EmulationVersion string
	// features lists the observed values. kube-apiservers list every gate
	// they know, since they must agree on what is configured; all others list
	// the gates that they queried and those that were set explicitly.
	Features []ReportedFeature
	// liveness describes how the process's liveness is observed.
	Liveness ReportLiveness
	// username is the identity that created the report. The server sets it
	// from the request; only this identity may update the report.
	Username string
	// process is a random name of the process that wrote the report last. Two
	// processes of one instance live for a while when one is replaced: the one
	// that ends must not delete the other's report. A process that takes over
	// from one that did not announce its end shows that the other one crashed.
	Process string
}

// ReportedFeature is the value that a process observed for one gate.
type ReportedFeature struct {
	// name is the gate's exact name.
	Name string
	// enabled is the observed value.
	Enabled bool
	// queried is true once the process's code queried the value. Only then it
	// is a user of the feature.
	Queried bool
	// explicit is true when the value was set on the command line or in a
	// configuration file rather than taken from the default.
	Explicit bool
	// stage is the gate's maturity at the emulation version.
	Stage FeatureStage
	// default is the gate's value at the emulation version when it is not
	// set.
	Default bool
	// lockedToDefault is true when the gate refuses any other value.
	LockedToDefault bool
	// control names the source of the value at this server. Only servers report
	// it, and they must agree. Empty means Local.
	Control FeatureControl
	// overridden is true when the value was taken from the API and the process
	// would use the other one by itself.
	Overridden bool
	// switchTime is the moment, spec.rollout.at of the Feature, at which the process
	// takes the other value by itself. It is empty unless the process waits for that. It
	// is in RFC 3339 and UTC, with seconds; and a string, since lists of features are
	// compared as they are.
	SwitchTime string
}

// ReportLiveness describes how a process's liveness is observed. A process
// without a Lease is alive while the Node named in spec.nodeName is Ready.
type ReportLiveness struct {
	// lease is the Lease that the process renews. It has the report's name, and
	// is in the report's namespace; for reports in kube-system, but for those of
	// kube-apiserver, in kube-feature-lease. It may not be set together with
	// spec.nodeName; one of the two must be.
	Lease *LeaseReference
}

// LeaseReference names a coordination.k8s.io Lease.
type LeaseReference struct {
	// namespace of the Lease.
	Namespace string
	// name of the Lease.
	Name string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// FeatureReportList is a list of reports.
type FeatureReportList struct {
	metav1.TypeMeta
	// Standard list metadata.
	metav1.ListMeta

	// items is the list of reports.
	Items []FeatureReport
}
