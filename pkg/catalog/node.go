/*
Copyright 2026 The Kubernetes Authors.

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

// nodeLocal are the features whose state is on nodes and not in etcd.
func nodeLocal() []Entry {
	return []Entry{
		{Feature: named("CPUManagerPolicyAlphaOptions"), Nothing: "its state is on nodes", Node: "cpu_manager_state; needs cpuManagerPolicyOptions (alpha option without gate: kubelet fails to start)", Config: "cpu_manager_state; needs cpuManagerPolicyOptions (alpha option without gate: kubelet fails to start)"},
		{Feature: named("CPUManagerPolicyBetaOptions"), Nothing: "its state is on nodes", Node: "cpu_manager_state; needs cpuManagerPolicyOptions (same check)", Config: "cpu_manager_state; needs cpuManagerPolicyOptions (same check)"},
		{Feature: named("ContainerCheckpoint"), Nothing: "its state is on nodes", Node: "checkpoint archives under <root>/checkpoints"},
		{Feature: named("GracefulNodeShutdown"), Nothing: "its state is on nodes", Node: "graceful_node_shutdown_state file; KubeletConfiguration shutdownGracePeriod* rejected when off", Config: "graceful_node_shutdown_state file; KubeletConfiguration shutdownGracePeriod* rejected when off"},
		{Feature: named("GracefulNodeShutdownBasedOnPodPriority"), Nothing: "its state is on nodes", Node: "KubeletConfiguration shutdownGracePeriodByPodPriority rejected when off", Config: "KubeletConfiguration shutdownGracePeriodByPodPriority rejected when off"},
		{Feature: named("InPlacePodVerticalScalingExclusiveCPUs"), Nothing: "its state is on nodes", Node: "allocated_pods_state/actuated_pods_state, cpu_manager_state"},
		{Feature: named("InPlacePodVerticalScalingExclusiveMemory"), Nothing: "its state is on nodes", Node: "allocated_pods_state/actuated_pods_state, memory_manager_state"},
		{Feature: named("InPlacePodVerticalScalingInitContainers"), Nothing: "its state is on nodes", Node: "allocated_pods_state/actuated_pods_state (+ resize validation relaxed in ValidatePodResize)"},
		{Feature: named("KubeletEnsureSecretPulledImages"), Nothing: "its state is on nodes", Node: "<root>/image_manager/{pulling,pulled} records; imagePullCredentialsVerificationPolicy / preloadedImagesVerificationAllowlist rejected when off", Config: "<root>/image_manager/{pulling,pulled} records; imagePullCredentialsVerificationPolicy / preloadedImagesVerificationAllowlist rejected when off"},
		{Feature: named("LocalStorageCapacityIsolationFSQuotaMonitoring"), Nothing: "its state is on nodes", Node: "project quotas on the node filesystem (/etc/projects, /etc/projid)"},
		{Feature: named("MemoryQoS"), Nothing: "its state is on nodes", Node: "cgroup v2 memory.min/high; memoryThrottlingFactor required when on, memoryReservationPolicy rejected when off", Config: "cgroup v2 memory.min/high; memoryThrottlingFactor required when on, memoryReservationPolicy rejected when off"},
		{Feature: named("PodLevelResourceManagers"), Nothing: "its state is on nodes", Node: "cpu_manager_state / memory_manager_state checkpoint format (pod-level entries)"},
		{Feature: named("PodsAPI"), Nothing: "its state is on nodes", Node: "gRPC unix socket under the kubelet root (getPodsAPIDir)"},
		{Feature: named("QOSReserved"), Nothing: "its state is on nodes", Node: "cgroup settings; --qos-reserved is silently ignored when off", Config: "cgroup settings; --qos-reserved is silently ignored when off"},
		{Feature: named("RotateKubeletServerCertificate"), Nothing: "its state is on nodes", Node: "serving cert under cert dir, CSR objects; serverTLSBootstrap / --rotate-server-certificates rejected when off", Config: "serving cert under cert dir, CSR objects; serverTLSBootstrap / --rotate-server-certificates rejected when off"},
		{Feature: named("TopologyManagerPolicyAlphaOptions"), Nothing: "its state is on nodes", Node: "needs topologyManagerPolicyOptions (CheckPolicyOptionAvailable)", Config: "needs topologyManagerPolicyOptions (CheckPolicyOptionAvailable)"},
		{Feature: named("TopologyManagerPolicyBetaOptions"), Nothing: "its state is on nodes", Node: "needs topologyManagerPolicyOptions (CheckPolicyOptionAvailable)", Config: "needs topologyManagerPolicyOptions (CheckPolicyOptionAvailable)"},
		{Feature: named("WindowsCPUAndMemoryAffinity"), Nothing: "its state is on nodes", Node: "cpu_manager_state/memory_manager_state on Windows"},
		{Feature: named("WindowsGracefulNodeShutdown"), Nothing: "its state is on nodes", Node: "graceful_node_shutdown_state file"},
	}
}
