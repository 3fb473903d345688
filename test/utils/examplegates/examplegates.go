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

package examplegates

const (
	// Dynamic follows requests through the API while everything runs. kube-apiserver
	// and kubelet query it whenever they see a Pod. It is alpha since 1.33, so each
	// version that can be emulated knows it and has it off: kube-apiserver refuses
	// to make a gate dynamic that it does not know at its version. With the gate off
	// the server drops the field. Objects that have it are waited for, which holds a
	// transition until users act. kube-apiserver, kube-controller-manager and
	// kube-scheduler query every alpha gate when they start (component-base,
	// compatibility/registry.go), so all three report it at once.
	Dynamic = "ContainerStopSignals"
	// Central has the value of kube-apiserver in all components. It is alpha since
	// 1.26, and the three components report it as they do Dynamic.
	Central = "CrossNamespaceVolumeDataSource"
	// Cleared leaves nothing but a field that a task removes, without action by
	// users: spec.podPreemptionPolicy of Nodes. Real and hollow nodes have it
	// without a container. kube-apiserver queries it at each write of a Node, and
	// kube-scheduler when it starts.
	Cleared = "InPlacePodVerticalScalingSchedulerPreemption"
)

// All returns the gates that examples turn on.
func All() []string { return []string{Dynamic, Central, Cleared} }
