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
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/kubernetes/pkg/features"
)

var (
	clusterTrustBundles    = certificatesv1beta1.Resource("clustertrustbundles")
	podCertificateRequests = certificatesv1beta1.Resource("podcertificaterequests")
)

// auth are the features of SIG Auth.
var auth = []Entry{
	{Feature: lifecycle.Feature{
		// The API goes away with the gate, and with it all bundles. Bundles are
		// kept while a volume names them. ClusterTrustBundleProjection needs this
		// gate, so both are turned off together. Both may be turned on again
		// while users still have to decide about the volumes.
		Name: features.ClusterTrustBundle,
		OnDisable: slices.Concat(
			lifecycle.WaitForNoneInPods("volume source clusterTrustBundle", "spec.volumes[*].projected.sources[*].clusterTrustBundle"),
			lifecycle.Tasks{lifecycle.ClearCollection(clusterTrustBundles)},
		),
	}, OtherCopies: templateCopies, APIs: []API{bundlesAPI}, BootstrapRBAC: true, Controller: "kube-apiserver-serving-clustertrustbundle-publisher"},
	{Feature: lifecycle.Feature{
		// A volume of a Pod cannot be changed. Removing the source from a
		// template would roll out pods without their trust anchors, so users
		// have to decide (KEP-3920, story 4).
		Name:      features.ClusterTrustBundleProjection,
		OnDisable: lifecycle.WaitForNoneInPods("volume source clusterTrustBundle", "spec.volumes[*].projected.sources[*].clusterTrustBundle"),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies, APIs: []API{bundlesAPI}},
	{Feature: lifecycle.Feature{
		// A volume of a Pod cannot be changed, and removing the source from a
		// template would roll its pods into ones without their certificate.
		// Requests are of pods that have one; kubelets make them, they live 15
		// minutes, and their API goes away with the gate.
		Name: features.PodCertificateRequest,
		OnDisable: slices.Concat(
			lifecycle.WaitForNoneInPods("volume source podCertificate", "spec.volumes[*].projected.sources[*].podCertificate"),
			lifecycle.Tasks{lifecycle.ClearCollection(podCertificateRequests)},
		),
	}, OtherCopies: templateCopies, APIs: []API{{
		GroupVersion: certificatesv1.SchemeGroupVersion, Resources: []string{podCertificateRequests.Resource},
		Without: neverReady + "authorizer of nodes waits for requests",
	}}, BootstrapRBAC: true, Controller: "podcertificaterequestcleaner"},
}
