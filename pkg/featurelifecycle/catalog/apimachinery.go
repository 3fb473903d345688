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
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsfeatures "k8s.io/apiextensions-apiserver/pkg/features"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericfeatures "k8s.io/apiserver/pkg/features"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	lifecyclefeatures "k8s.io/kubernetes-features/pkg/features"
	"k8s.io/kubernetes/pkg/features"
)

var (
	crds                     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	leases                   = coordinationv1.SchemeGroupVersion.WithResource("leases")
	mutatingPolicies         = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicies")
	mutatingPolicyBindings   = admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingadmissionpolicybindings")
	leaseCandidates          = schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leasecandidates"}
	configMaps               = schema.GroupResource{Resource: "configmaps"}
	storageVersions          = schema.GroupResource{Group: apiserverinternalv1alpha1.GroupName, Resource: "storageversions"}
	storageVersionMigrations = schema.GroupResource{Group: storagemigrationv1beta1.GroupName, Resource: "storageversionmigrations"}
)

// storageMigrating is the condition of a CustomResourceDefinition whose objects are migrated.
const storageMigrating = "StorageMigrating"

// ownLeases explains fields that servers write into their own Leases.
const ownLeases = "servers write their own Leases, and no other client has to; a Lease that another client applies is a Lease like any other, and no server searches it for peers while the gate is off"

// ownObjects explains the objects that this system stores about itself.
const ownObjects = "nothing is left to remove it, since this gate is the server flow itself; no server serves the API while it is off, and nothing reads what is stored. Turned on again, the flow resumes Features as they were, and deletes reports of processes that have ended"

// apiMachinery are the features of SIG API Machinery.
var apiMachinery = []Entry{
	{Feature: lifecycle.Feature{
		// Turning it off takes StorageVersionAPI and
		// UnknownVersionInteroperabilityProxy with it.
		Name:      genericfeatures.APIServerIdentity,
		OnDisable: lifecycle.Tasks{deleteIdentityLeases()},
	}, OtherCopies: "Leases are not copied", OnReapply: ownLeases},
	// Rewriting every custom resource would need permission to change any
	// resource there is.
	{Feature: named(genericfeatures.CBORServingAndStorage), Retained: []Remainder{{
		Field:     task.Field{Resource: crds.GroupResource()},
		Why:       "custom resources that were written meanwhile are stored as CBOR; every server since 1.32 decodes it whatever the gate's value, and the next write of each object stores JSON",
		MediaType: runtime.ContentTypeCBOR,
	}}},
	{Feature: lifecycle.Feature{
		// With the gate off nothing reads the field. The server drops none
		// while an object has any.
		Name: apiextensionsfeatures.CRDObservedGenerationTracking,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(crds, "status.observedGeneration"),
			lifecycle.ClearField(crds, "status.conditions[*].observedGeneration"),
		},
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// A Lease without the fields is elected for by holders, as before.
		// Processes describe themselves in candidates, for kube-apiserver
		// alone, for 30 minutes. The collection is cleared although
		// --runtime-config may continue to serve it: the controller that
		// deletes expired ones stops with the gate.
		Name: genericfeatures.CoordinatedLeaderElection,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(leases, "spec.preferredHolder"),
			lifecycle.ClearField(leases, "spec.strategy"),
			lifecycle.ClearCollection(leaseCandidates),
		},
	}, OtherCopies: "Leases are not copied", OnReapply: "processes write their own candidates; while --runtime-config serves the API, one that another client applies is stored, and nothing reads it", APIs: []API{{
		GroupVersion: coordinationv1beta1.SchemeGroupVersion, Resources: []string{leaseCandidates.Resource},
		Without: neverReady + "election waits for candidates",
	}}},
	{Feature: named(lifecyclefeatures.FeatureLifecycle), Retained: []Remainder{
		{Field: task.Field{Resource: v1alpha1.Resource("features")}, Why: ownObjects},
		{Field: task.Field{Resource: v1alpha1.Resource("featurereports")}, Why: ownObjects},
		{Field: task.Field{Resource: v1alpha1.Resource("featurevalues")}, Why: ownObjects},
	}, Config: "--central-features and --dynamic-features of kube-apiserver"},
	{Feature: lifecycle.Feature{
		// The API stays while it is served, and users wrote the policies. A
		// forgotten one changes objects as soon as the gate is on again.
		// Bindings come first: a policy without one does nothing.
		Name: genericfeatures.MutatingAdmissionPolicy,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(mutatingPolicyBindings, "the feature", "metadata.name"),
			lifecycle.WaitForNone(mutatingPolicies, "the feature", "metadata.name"),
		},
	}, OtherCopies: "policies are not copied", OnReapply: "while the API is served, a policy that is applied again is stored and without effect; condition Clean names it", APIs: []API{{
		GroupVersion: admissionregistrationv1.SchemeGroupVersion, Resources: []string{mutatingPolicies.Resource, mutatingPolicyBindings.Resource},
		Without: neverReady + "admission waits for policies",
	}}},
	{Feature: lifecycle.Feature{Name: genericfeatures.RemoteRequestHeaderUID}, Retained: []Remainder{{
		Field: task.Field{Resource: configMaps, Path: "data{requestheader-uid-headers}"},
		Why:   "only ConfigMap kube-system/extension-apiserver-authentication has it, which every kube-apiserver rewrites when it starts, without the key while the gate is off; any other ConfigMap with that key must not be touched",
	}}, OtherCopies: "extension servers read the ConfigMap again when it changes", Config: "--requestheader-uid-headers"},
	{Feature: lifecycle.Feature{
		// Only kube-apiservers write the collection, about themselves. The
		// controller that deletes records of ended servers stops with the gate.
		// So the collection is cleared although --runtime-config may continue
		// to serve it. Left there, it would be outdated in a year.
		Name:      genericfeatures.StorageVersionAPI,
		OnDisable: lifecycle.Tasks{lifecycle.ClearCollection(storageVersions)},
	}, OnReapply: "servers write their own records; while --runtime-config serves the API, one that another client applies is stored, and nothing reads it", APIs: []API{{
		GroupVersion: apiserverinternalv1alpha1.SchemeGroupVersion, Resources: []string{storageVersions.Resource},
		Without: "a kube-apiserver that has the gate on refuses all writes, since it cannot record its storage versions, and ends",
	}}, BootstrapRBAC: true, Controller: "storage-version-garbage-collector"},
	{Feature: lifecycle.Feature{
		// The API goes away with the gate. A migration in progress stops;
		// objects that it rewrote have the same contents. Nothing else writes
		// the condition, which would continue to report the migration.
		Name: features.StorageVersionMigrator,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearCollection(storageVersionMigrations),
			lifecycle.ClearField(crds, "status.conditions[type="+storageMigrating+"]"),
		},
	}, OtherCopies: statusCopies, APIs: []API{{
		GroupVersion: storagemigrationv1.SchemeGroupVersion, Resources: []string{storageVersionMigrations.Resource},
		Without: "kube-controller-manager waits for requests and does none",
	}}, BootstrapRBAC: true, Controller: "storage-version-migrator-controller"},
	{Feature: lifecycle.Feature{
		// A starting server recreates its Lease, so this clears those of
		// crashed servers. Addresses of peers are also in etcd below
		// /peerserverleases/, which is no API and expires within seconds.
		Name:      genericfeatures.UnknownVersionInteroperabilityProxy,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(leases, "metadata.annotations{"+corev1.AnnotationPeerAdvertiseAddress+"}")},
	}, OtherCopies: "Leases are not copied", OnReapply: ownLeases, Config: "--peer-ca-file, --peer-advertise-ip and --peer-advertise-port of kube-apiserver"},
}
