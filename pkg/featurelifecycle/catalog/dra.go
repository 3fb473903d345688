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

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

var (
	deviceClasses              = resourcev1.SchemeGroupVersion.WithResource("deviceclasses")
	resourceClaims             = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
	resourceClaimTemplates     = resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates")
	resourceSlices             = resourcev1.SchemeGroupVersion.WithResource("resourceslices")
	deviceTaintRules           = resourcev1beta2.SchemeGroupVersion.WithResource("devicetaintrules")
	resourcePoolStatusRequests = resourcev1alpha3.SchemeGroupVersion.WithResource("resourcepoolstatusrequests")
)

const (
	// sliceCopies: fields that drivers publish.
	sliceCopies = "drivers publish their slices again: the server drops the fields from a slice without them, and a driver that is to publish without them needs a restart with other settings; managed fields lose them with the fields, and name them again for a manager that applies them with the gate off, until it applies without them"
	// shareCopies: what answers about pools have of devices with shares. They are deleted as
	// a whole by DRAResourcePoolStatus (controller/resourcepoolstatusrequest).
	shareCopies = "; an answered ResourcePoolStatusRequest sums the shares of a pool up in shareableSummary, and DRAResourcePoolStatus's controller deletes it after an hour"
	// claimCopies: fields of claims, templates and slices.
	claimCopies = "a template's fields are copied to the claims that are made of it, and what the scheduler chose to a claim's status; all are waited for. Last-applied annotations keep them: the server drops them from a new object. " + sliceCopies
)

// dra are the features of dynamic resource allocation (SIG Node and
// SIG Scheduling).
//
// A claim's spec, a template's spec and an allocation cannot be changed, so
// claims are waited for; templates come first, since they make claims. A slice
// may be changed. A field of slices is cleared if the scheduler ignores it once
// the gate is off. Where the scheduler takes such a device for unusable then,
// clearing the field would make it usable without the field's demands.
var dra = []Entry{
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler refuses a claim that asks for
		// access to devices that others use.
		Name: features.DRAAdminAccess,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaimTemplates, "administrative access", "spec.spec.devices.requests[*].exactly.adminAccess"),
			lifecycle.WaitForNone(resourceClaims, "administrative access", "spec.devices.requests[*].exactly.adminAccess", "status.allocation.devices.results[*].adminAccess"),
		},
	}, OtherCopies: claimCopies},
	{Feature: lifecycle.Feature{
		// Without the feature a device belongs to one claim, with the field
		// or without it. That is right once no claim has a share of one.
		// Selectors come first: without the slices' field they would select
		// other devices. A policy is valid only beside allowMultipleAllocations,
		// so it goes before that.
		Name: features.DRAConsumableCapacity,
		OnDisable: slices.Concat(waitForNoneInSelectors("device.allowMultipleAllocations in selectors", withoutConsumableCapacity), lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaimTemplates, "consumable capacity",
				"spec.spec.devices.constraints[*].distinctAttribute",
				"spec.spec.devices.requests[*].exactly.capacity",
				"spec.spec.devices.requests[*].firstAvailable[*].capacity"),
			lifecycle.WaitForNone(resourceClaims, "consumable capacity",
				"spec.devices.constraints[*].distinctAttribute",
				"spec.devices.requests[*].exactly.capacity",
				"spec.devices.requests[*].firstAvailable[*].capacity",
				"status.allocation.devices.results[*].shareID",
				"status.allocation.devices.results[*].consumedCapacity",
				"status.devices[*].shareID"),
			lifecycle.ClearField(resourceSlices, "spec.devices[*].capacity{*}.requestPolicy"),
			lifecycle.ClearField(resourceSlices, "spec.devices[*].allowMultipleAllocations"),
		}),
		Control: lifecycle.Central,
	}, OtherCopies: claimCopies + shareCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler refuses a claim that computes
		// attributes, since it would ignore its constraints.
		Name: features.DRADerivedAttributes,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaimTemplates, "derived attributes",
				"spec.spec.devices.requests[*].exactly.derivedAttributes",
				"spec.spec.devices.requests[*].firstAvailable[*].derivedAttributes"),
			lifecycle.WaitForNone(resourceClaims, "derived attributes",
				"spec.devices.requests[*].exactly.derivedAttributes",
				"spec.devices.requests[*].firstAvailable[*].derivedAttributes"),
		},
		Control: lifecycle.Central,
	}, OtherCopies: claimCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler does not allocate a device with
		// conditions. Without the conditions it would, and pods would start
		// before their device is attached.
		Name: features.DRADeviceBindingConditions,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaims, "binding conditions",
				"status.allocation.devices.results[*].bindingConditions",
				"status.allocation.devices.results[*].bindingFailureConditions"),
			lifecycle.WaitForNone(resourceSlices, "binding conditions",
				"spec.devices[*].bindingConditions",
				"spec.devices[*].bindingFailureConditions",
				"spec.devices[*].bindsToNode"),
		},
	}, Retained: []Remainder{{
		Field: task.Field{Resource: resourceClaims.GroupResource(), Path: "status.allocation.allocationTimestamp"},
		Why:   "the scheduler writes it into every allocation while the feature is on, conditions or not; an allocation cannot be changed, no other component reads the time, and it goes with the allocation",
	}}, OtherCopies: claimCopies, Config: "DynamicResourcesArgs.bindingTimeout of kube-scheduler"},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler ignores a slice with groups. Without
		// the groups it would allocate parts that exclude each other.
		Name:      features.DRADeviceCompatibilityGroups,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(resourceSlices, "compatibility groups", "spec.devices[*].consumesCounters[*].compatibilityGroups")},
		Control:   lifecycle.Central,
	}, OtherCopies: sliceCopies},
	{Feature: lifecycle.Feature{
		// The API stays while it is served, and users wrote the rules. A
		// forgotten rule evicts pods as soon as the gate is on again.
		Name:      features.DRADeviceTaintRules,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(deviceTaintRules, "the feature", "metadata.name")},
	}, OtherCopies: "rules are not copied", OnReapply: "while the API is served, a rule that is applied again is stored and without effect; condition Clean names it", APIs: []API{taintRulesAPI}, BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler ignores taints.
		Name: features.DRADeviceTaints,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaimTemplates, "tolerations of device taints",
				"spec.spec.devices.requests[*].exactly.tolerations",
				"spec.spec.devices.requests[*].firstAvailable[*].tolerations"),
			lifecycle.WaitForNone(resourceClaims, "tolerations of device taints",
				"spec.devices.requests[*].exactly.tolerations",
				"spec.devices.requests[*].firstAvailable[*].tolerations",
				"status.allocation.devices.results[*].tolerations"),
			lifecycle.ClearField(resourceSlices, "spec.devices[*].taints"),
		},
	}, OtherCopies: claimCopies, BootstrapRBAC: true, Controller: "device-taint-eviction-controller"},
	{Feature: lifecycle.Feature{
		// The pods run with devices of claims that the scheduler made for
		// them, and only their status records that. The claims go with their
		// pods. Then no pod requests the name in the class's field.
		Name: features.DRAExtendedResource,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(pods, "devices of an extended resource", "status.extendedResourceClaimStatus"),
			lifecycle.WaitForNone(resourceClaims, "an extended resource", "metadata.annotations{"+resourcev1.ExtendedResourceClaimAnnotation+"}"),
			lifecycle.ClearField(deviceClasses, "spec.extendedResourceName"),
		},
		Control: lifecycle.Central,
	}, OtherCopies: appliedCopies, OnReapply: "a claim that is applied again keeps the annotation; no pod's status names it, so it is a claim like any other unused one", BootstrapRBAC: true},
	{Feature: lifecycle.Feature{
		// An attribute without its value is not valid, and one that is gone
		// changes which claims a device fits: the driver has to publish another.
		// Selectors that look into lists are refused in new claims.
		Name: features.DRAListTypeAttributes,
		OnDisable: slices.Concat(waitForNoneInSelectors("lists in selectors", withoutListTypeAttributes), lifecycle.Tasks{
			lifecycle.WaitForNone(resourceSlices, "lists as attributes",
				"spec.devices[*].attributes{*}.bools",
				"spec.devices[*].attributes{*}.ints",
				"spec.devices[*].attributes{*}.strings",
				"spec.devices[*].attributes{*}.versions"),
		}),
		Control: lifecycle.Central,
	}, OtherCopies: sliceCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler ignores both. But a Pod whose
		// status has them cannot be resized, gate or not.
		Name:      features.DRANodeAllocatableResources,
		OnDisable: slices.Concat(clearNodeAllocatable(), clearRemoved(nodeAllocatableMappings, nodeAllocatableOfPods)),
		// 1.36 has the gate and other fields, and loses these without an error.
		Versions: lifecycle.Versions{{At: "1.37", OnDowngrade: clearNodeAllocatable()}},
		Control:  lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: sliceCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler does not allocate a device whose
		// slice skips operations, and kubelet does not start pods with one.
		// Without the field kubelet would call a driver that is not on the node.
		Name: features.DRAOptionalNodeOperations,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaims, "skipped operations on nodes", "status.allocation.devices.results[*].skipNodeOperations"),
			lifecycle.WaitForNone(resourceSlices, "skipped operations on nodes", "spec.skipNodeOperations"),
		},
		Control: lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: claimCopies},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler does not allocate a device that
		// takes from counters, nor one whose node stands beside it. Without
		// the counters it would allocate parts that overlap; without the
		// nodes the slice is not valid.
		Name: features.DRAPartitionableDevices,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(resourceSlices, "partitionable devices",
			"spec.sharedCounters",
			"spec.perDeviceNodeSelection",
			"spec.devices[*].consumesCounters",
			"spec.devices[*].nodeName",
			"spec.devices[*].nodeSelector",
			"spec.devices[*].allNodes")},
		Control: lifecycle.Central,
	}, OtherCopies: sliceCopies},
	{Feature: lifecycle.Feature{
		// The attribute is for reports about pools; no allocation depends on
		// it. A request's spec cannot be changed.
		Name: features.DRAPartitionableDevicesType,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourcePoolStatusRequests, "a partition type", "spec.defaultPartitionTypeAttribute"),
			lifecycle.ClearField(resourceSlices, "spec.partitionTypeAttribute"),
		},
		Control: lifecycle.Central,
	}, Retained: []Remainder{{
		// The controller writes it wherever a slice or a request names an
		// attribute, and queries no gate (controller/resourcepoolstatusrequest).
		Field: task.Field{Resource: resourcePoolStatusRequests.GroupResource(), Path: "status.pools[*].partitionSummary"},
		Why:   "an answer cannot be changed; it says how a pool was, nothing but its reader uses it, and DRAResourcePoolStatus's controller deletes an answered request after an hour",
	}}, OtherCopies: sliceCopies, APIs: []API{poolRequestsAPI}},
	{Feature: lifecycle.Feature{
		// Without the feature the scheduler refuses a claim with alternatives.
		Name: features.DRAPrioritizedList,
		OnDisable: lifecycle.Tasks{
			lifecycle.WaitForNone(resourceClaimTemplates, "alternatives", "spec.spec.devices.requests[*].firstAvailable"),
			lifecycle.WaitForNone(resourceClaims, "alternatives", "spec.devices.requests[*].firstAvailable"),
		},
	}, OtherCopies: claimCopies},
	{Feature: lifecycle.Feature{
		// Drivers publish data about devices here, such as addresses in their
		// networks. Routing by those would lose them, and no driver could
		// write them again. The data goes when the claim is released. The
		// conditions that pods wait for belong to DRADeviceBindingConditions.
		Name:      features.DRAResourceClaimDeviceStatus,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(resourceClaims, "device status of drivers", "status.devices")},
	}, Retained: afterBindingConditions(
		task.Field{Resource: resourceClaims.GroupResource(), Path: "status.allocation.allocationTimestamp"},
		task.Field{Resource: resourceClaims.GroupResource(), Path: "status.allocation.devices.results[*].bindingConditions"},
		task.Field{Resource: resourceClaims.GroupResource(), Path: "status.allocation.devices.results[*].bindingFailureConditions"},
		task.Field{Resource: resourceSlices.GroupResource(), Path: "spec.devices[*].bindingConditions"},
		task.Field{Resource: resourceSlices.GroupResource(), Path: "spec.devices[*].bindingFailureConditions"},
		task.Field{Resource: resourceSlices.GroupResource(), Path: "spec.devices[*].bindsToNode"},
	), OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// The API stays while --runtime-config serves it; the controller that
		// deletes answered requests goes with the gate.
		Name:      features.DRAResourcePoolStatus,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(resourcePoolStatusRequests, "the feature", "metadata.name")},
	}, OtherCopies: "requests are not copied", OnReapply: "while --runtime-config serves the API, a request that is applied again is stored and never answered", APIs: []API{poolRequestsAPI}, BootstrapRBAC: true, Controller: "resourcepoolstatusrequest-controller"},
}

// afterBindingConditions returns fields that the tasks of
// DRADeviceBindingConditions handle.
func afterBindingConditions(fields ...task.Field) []Remainder {
	var remains []Remainder
	for _, f := range fields {
		remains = append(remains, Remainder{Field: f, With: features.DRADeviceBindingConditions, Why: "DRADeviceBindingConditions has it, too: it needs this gate, so it is turned off with it, and handles it"})
	}
	return remains
}

// clearNodeAllocatable removes what 1.37 stores of node-allocatable resources.
func clearNodeAllocatable() lifecycle.Tasks {
	return lifecycle.Tasks{
		lifecycle.ClearField(resourceSlices, "spec.devices[*].nodeAllocatableResources"),
		// The server takes a list that is missing for one that an old client does not
		// know, and keeps it; an empty one clears it (registry/core/pod).
		lifecycle.ClearField(pods, "status.nodeAllocatableResourceClaimStatuses[*]"),
	}
}
