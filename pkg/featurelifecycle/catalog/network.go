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

package catalog

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

var (
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	ingresses      = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	services       = corev1.SchemeGroupVersion.WithResource("services")
)

// network are the features of SIG Network.
var network = []Entry{
	{Feature: lifecycle.Feature{
		// The server refuses every change of a Service with one of the values
		// while the gate is off. The controller writes the slices again
		// without hints for nodes.
		Name: features.PreferSameTrafficDistribution,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(services, "traffic distribution to the same node or zone",
				"spec.trafficDistribution="+corev1.ServiceTrafficDistributionPreferSameNode,
				"spec.trafficDistribution="+corev1.ServiceTrafficDistributionPreferSameZone),
			lifecycle.ClearField(endpointSlices, "endpoints[*].hints.forNodes"),
		},
	}, OtherCopies: "last-applied annotations and what GitOps tools apply again keep the value: the server refuses it; slices follow their Service"},
	{Feature: lifecycle.Feature{
		// Only kube-apiserver queries the gate. A name cannot be changed, and
		// deleting a Service takes its address from its clients, so users have
		// to create another one first. Ingresses come first, since they name
		// Services.
		Name: features.RelaxedServiceNameValidation,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNoneWhere(ingresses, "names of Services that begin with a digit", relaxedServiceName,
				"spec.defaultBackend.service.name", "spec.rules[*].http.paths[*].backend.service.name"),
			lifecycle.WaitForNoneWhere(services, "names that begin with a digit", relaxedServiceName, "metadata.name"),
		},
		Control: lifecycle.Dynamic,
	}, OtherCopies: "EndpointSlices and Endpoints have the name in theirs and go with the Service; what GitOps tools apply again is refused"},
}

// relaxedServiceName is true for the names that only the relaxed validation of
// KEP-5311 lets in: labels of DNS that begin with a digit.
func relaxedServiceName(value any) bool {
	name, _ := value.(string)
	return len(validation.IsDNS1035Label(name)) > 0
}
