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

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

var (
	csiDrivers        = storagev1.SchemeGroupVersion.WithResource("csidrivers")
	csiNodes          = storagev1.SchemeGroupVersion.WithResource("csinodes")
	volumeAttachments = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
	volumeClaims      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
)

// storage are the features of SIG Storage.
var storage = []Entry{
	{Feature: lifecycle.Feature{
		// A driver that expects tokens among the secrets finds none there
		// without the gate, so its owner has to change it first.
		Name:      features.CSIServiceAccountTokenSecrets,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(csiDrivers, "tokens among the secrets", "spec.serviceAccountTokenInSecrets")},
	}, OtherCopies: appliedCopies},
	{Feature: lifecycle.Feature{
		// kubelets write all three and stop writing with the gate; what they
		// wrote would say that a volume is unhealthy forever. A kubelet whose
		// gate is off does not write them again.
		Name: features.CSIVolumeHealth,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(csiNodes, "status.storageHealth"),
			lifecycle.ClearField(volumeClaims, "status.healthStatus"),
			lifecycle.ClearField(pods, "status.volumeHealth"),
		},
		Control: lifecycle.Central,
	}, Retained: []Remainder{{
		Field: task.Field{Resource: statefulSets.GroupResource(), Path: "spec.volumeClaimTemplates[*].status.healthStatus"},
		Why:   "the type of a claim template has a status, which nothing reads: a claim that is made of it begins without one",
	}}, OtherCopies: statusCopies, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// A claim's spec cannot be changed, nor a StatefulSet's claim
		// templates. Deleting a claim deletes a volume, so users have to
		// decide. Templates of claims come first. With the gate off the server
		// drops the whole source of a new claim. So a template then makes an
		// empty volume instead of a filled one. The server drops nothing from
		// templates.
		Name: features.CrossNamespaceVolumeDataSource,
		OnDisable: slices.Concat(
			lifecycle.WaitForNoneInPods("a volume source of another namespace", "spec.volumes[*].ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace"),
			lifecycle.Tasks{
				lifecycle.WaitForNone(statefulSets, "claim templates with a volume source of another namespace", "spec.volumeClaimTemplates[*].spec.dataSourceRef.namespace"),
				lifecycle.WaitForNone(volumeClaims, "a volume source of another namespace", "spec.dataSourceRef.namespace"),
			},
		),
		Control: lifecycle.Central,
	}, OtherCopies: "nothing of templates, whose every kind is waited for, is dropped; last-applied annotations, ControllerRevisions and what GitOps tools apply again keep the source, and bring it back into templates; the server drops it from new claims",
		OnReapply: "a template that is applied again has the source, and the server drops it from the claims that are made of it: their volumes are empty; condition Clean names the template"},
	{Feature: lifecycle.Feature{
		// Without the gate kubelet asks a driver once how many volumes fit.
		// Attachments keep the code of an error that the feature acted on.
		Name: features.MutableCSINodeAllocatableCount,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(csiDrivers, "spec.nodeAllocatableUpdatePeriodSeconds"),
			lifecycle.ClearField(volumeAttachments, "status.attachError.errorCode"),
			lifecycle.ClearField(volumeAttachments, "status.detachError.errorCode"),
		},
	}, OtherCopies: appliedCopies + "; " + statusCopies},
	{Feature: lifecycle.Feature{
		// The controller stops writing the condition and never removes it: a
		// claim that is used again would still be marked unused.
		Name:      features.PersistentVolumeClaimUnusedSinceTime,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(volumeClaims, "status.conditions[type=Unused]")},
		Control:   lifecycle.Dynamic,
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// While it is on, defaulting writes false into every CSIDriver on
		// every write. With the gate off the scheduler lets pods pass whatever
		// the field's value.
		Name:      features.VolumeLimitScaling,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(csiDrivers, "spec.preventPodSchedulingIfMissing")},
		Control:   lifecycle.Central,
	}, OtherCopies: appliedCopies},
}
