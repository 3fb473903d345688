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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "features.k8s.io"

// AnnotationTerminating is set to "true" on the FeatureReport of a process that ends
// in order and cannot take its report away afterwards: a kube-apiserver, which
// serves requests until its end. Such a report goes with the process's Lease.
const AnnotationTerminating = GroupName + "/terminating"

// AnnotationControllerStopped is set to "true" on the FeatureReport of a process that would run
// the server flow of its namespace, and does not any more, although it is still at work: a
// replica of an operator between the end of its flow and its own. It counts like others
// that use features and agree on values, and looks after none.
const AnnotationControllerStopped = GroupName + "/controller-stopped"

// AnnotationRequestedBy names the user who last changed spec.enabled, spec.rollout
// or spec.paused of a Feature. It stays when a request is withdrawn, and then names
// the user who withdrew it. Only the server writes it.
const AnnotationRequestedBy = GroupName + "/requested-by"

// LabelComponent is on the Lease that a reporting process renews; its value is
// the component.
const LabelComponent = GroupName + "/component"

// LeaseNamespace has the Leases of Kubernetes' reporting processes that are
// neither node components nor kube-apiservers. It is a namespace of its own,
// like kube-node-lease, so that reporters need no permission on the Leases of
// kube-system, by which leaders are elected.
const LeaseNamespace = "kube-feature-lease"

// SchemeGroupVersion is the group and version registered here.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Resource qualifies a resource name with this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

var (
	// SchemeBuilder collects the functions that add this group to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types of this group and version to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Feature{},
		&FeatureList{},
		&FeatureReport{},
		&FeatureReportList{},
		&FeatureValue{},
		&FeatureValueList{},
		&FeaturePlan{},
		&FeatureCleanup{},
		&FeatureConfirmation{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
