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

package main

// What upstream did to the past of a gate, in the words of the differences.
const (
	removed = ", and emulated no such gate"
	// GangScheduling became a part of GenericWorkload in 1.37.
	gangScheduling = "Alpha, false by default, depends on GenericWorkload" + removed
	// Kubelets of 1.37 do this without a gate.
	staticPods = "Beta, true by default" + removed
	// Removed in 1.36.
	portworx = "Alpha, false by default" + removed
	// The gate came with 1.36, and for versions before it is declared off, as what it does was.
	wiping = "no such gate, and emulated GA, false by default"
	// It was locked later, with the version in which it became GA.
	topology = "GA, true by default, and emulated GA, true by default, locked"
)

// rewritten has, by version, the gates that this build's binaries have otherwise while they emulate it than
// the binaries of the version itself, and that no rule explains.
var rewritten = map[string]map[string]string{
	"1.36": {
		"GangScheduling":                gangScheduling,
		"PreventStaticPodAPIReferences": staticPods,
		"WorkloadAwarePreemption":       "Alpha, false by default, depends on GangScheduling" + removed,
	},
	"1.35": {
		"GangScheduling": gangScheduling,
		// It came with 1.36 and is declared from 1.35 on.
		"ImageVolumeWithDigest": "no such gate, and emulated Alpha, false by default, depends on ImageVolume",
		// Removed in 1.36.
		"InPlacePodVerticalScalingAllocatedStatus": "Deprecated, false by default, depends on InPlacePodVerticalScaling" + removed,
		"InTreePluginPortworxUnregister":           portworx,
		"PreventStaticPodAPIReferences":            staticPods,
		"ServiceCIDRStatusFieldWiping":             wiping,
		"TopologyManagerPolicyOptions":             topology,
	},
	"1.34": {
		"InPlacePodVerticalScalingAllocatedStatus": "Deprecated, false by default" + removed,
		"InTreePluginPortworxUnregister":           portworx,
		"PreventStaticPodAPIReferences":            staticPods,
		"ServiceCIDRStatusFieldWiping":             wiping,
		"TopologyManagerPolicyOptions":             topology,
		// Removed in 1.35.
		"UserNamespacesPodSecurityStandards": "Alpha, false by default" + removed,
		// kube-controller-manager of 1.34 overrides the default, and that of this build does not.
		"WatchListClient": "Beta, true by default, and emulated Beta, false by default",
	},
}
