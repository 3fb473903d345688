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

import "k8s.io/component-base/featuregate"

// Trial is what was tried of a gate on a real node (test/e2e_kind). Gates that kubelet or
// kube-proxy query and that leave something have one.
type Trial struct {
	// Writes is what the node writes while the gate is on.
	Writes string
	// Seen is what a test sees there, Untried why nothing was seen. One of them is set.
	Seen, Untried string
	// Pods is what becomes of a running Pod that uses the gate when the node's processes
	// start with the gate off.
	Pods string
}

// Reasons why nothing was seen of a gate.
const (
	locked   = "kubelet and kube-proxy of this version have the gate locked on, and emulate no other version"
	noDriver = "no test installs a CSI driver, and nodes of kind come without one"
	windows  = "nodes of kind run Linux"
)

// What becomes of Pods.
const (
	runsOn     = "runs on"
	ends       = "ends, as kubelet refuses it like a new one; the object is waited for. Drain the node, or delete the Pods, before kubelet gets the value"
	mountsFail = "runs on with its file and is waited for. kubelet renews nothing in that volume, tokens among it, and starts no container of the Pod again"
)

// Trials has the trials by gates.
var Trials = map[featuregate.Feature]Trial{
	"AtomicWriteVolumeUserFields": {Writes: "the owner of files in volumes",
		Seen: "the container read a file of its user; with the gate off kubelet gave the file to root when the Secret changed, and reading it failed: permission denied",
		Pods: "runs on and is waited for; it can no longer read what kubelet writes again"},
	"CPUManagerPolicyAlphaOptions": {Writes: "cpu_manager_state",
		Seen: "a Pod got a CPU alone under align-by-socket; kubelet started with the gate and the option off, and the Pod kept its CPU",
		Pods: runsOn},
	"CPUManagerPolicyBetaOptions": {Writes: "cpu_manager_state",
		Seen: "a Pod got a CPU alone under distribute-cpus-across-numa; kubelet started with the gate and the option off, and the Pod kept its CPU",
		Pods: runsOn},
	"CSIVolumeHealth": {Writes: "status of CSINodes, PersistentVolumeClaims and Pods",
		Untried: noDriver,
		Pods:    runsOn},
	"ClusterTrustBundleProjection": {Writes: "the file with the bundle",
		Seen: "the file stayed as it was; kubelet cannot set the volume up any more (event FailedMount), and did not start a container again that had ended",
		Pods: mountsFail},
	"ContainerCheckpoint": {Writes: "archives in checkpoints/",
		Seen: "with Debian's CRIU installed, kubelet wrote an archive of a container, which ran on; the archive stayed",
		Pods: runsOn},
	"ContainerRestartRules": {Writes: "restarts by rules, in the status of containers",
		Seen: "a rule started a container again whose policy is Never; with the gate off the same exit ended the Pod",
		Pods: "runs on and is waited for; a container that exits is not started again by its rules"},
	"ContainerStopSignals": {Writes: "stopSignal in the status of each container",
		Seen: "kubelet wrote the signal of each container; it was cleared while the Pod with one of its own ran on, which was named until it was deleted",
		Pods: "runs on with its signal and is waited for"},
	"DRAExtendedResource": {Writes: "dra_manager_state, as for all claims",
		Untried: locked,
		Pods:    runsOn},
	"DRANodeAllocatableResources": {Writes: "its name in status.declaredFeatures of the Node; cgroups with what claims give",
		Seen: "the name came with the gate and went with it; a container got the memory of its claim beside its own, and kept that limit while the fields of the slice and of the Pod were cleared",
		Pods: "runs on with what its cgroups have"},
	"DRAOptionalNodeOperations": {Writes: "its name in status.declaredFeatures of the Node, skipNodeOperations in dra_manager_state",
		Seen: "the name came with the gate and went with it; a claim of a driver that runs nowhere was in dra_manager_state, also with the gate off, until Pod and claim were deleted",
		Pods: "runs on; its claim is waited for, and so is the slice"},
	"DRAWorkloadResourceClaims": {Writes: "dra_manager_state, as for all claims",
		Seen: "a Pod got the device of a claim that its PodGroup had reserved, and that stayed in dra_manager_state with the gate off, until Pod and group were deleted; the reservation was cleared, and the claim went",
		Pods: "runs on; its PodGroup is waited for"},
	"DisableCPUQuotaWithExclusiveCPUs": {Writes: "no CPU quota in cgroups with exclusive CPUs",
		Untried: locked,
		Pods:    runsOn},
	"EmptyDirVolumeMode": {Writes: "the mode of the directory",
		Seen: "the directory kept its mode",
		Pods: "runs on and is waited for"},
	"EnvFiles": {Writes: "the environment of containers",
		Seen: "the variable of a running container stayed; after it ended, kubelet started it again with an empty one",
		Pods: "runs on and is waited for; a container that starts again has empty variables"},
	"ExtendWebSocketsToKubelet": {Writes: "its name in status.declaredFeatures of the Node",
		Seen: "the name went with the gate",
		Pods: runsOn},
	"GRPCContainerProbeTLS": {Writes: "the condition Ready, by probes",
		Seen: "a server with TLS was ready, and not any more with the gate off; no liveness probe was tried",
		Pods: "runs on and is waited for; probes fail, so it is not ready, and a liveness probe restarts its container"},
	"GracefulNodeShutdown": {Writes: "/etc/systemd/logind.conf.d/99-kubelet.conf",
		Seen: "with Debian's dbus installed, logind ran; kubelet wrote the file, inhibited shutdowns, and ended all Pods as one was announced. The file stayed. kubelet did not start with this gate off before WindowsGracefulNodeShutdown was off, too",
		Pods: runsOn},
	"GracefulNodeShutdownBasedOnPodPriority": {Writes: "graceful_node_shutdown_state",
		Seen: "kubelet noted when the announced shutdown began and ended; the file stayed",
		Pods: runsOn},
	"H2CContainerProbe": {Writes: "the condition Ready, by probes",
		Seen: "the probe asked by HTTP/2, to which the server answered with an error, and by HTTP/1.1 with the gate off. etcd, a static Pod, started again as kubelet got another value, either way. No server without HTTP/1.1 was tried",
		Pods: "runs on and is waited for; a server without HTTP/1.1 fails its probes. Static Pods with probes by HTTP start again"},
	"ImageVolume": {Writes: "the mount of the image",
		Untried: locked,
		Pods:    "runs on and is waited for"},
	"ImageVolumeWithDigest": {Writes: "nothing up to 1.37.2",
		Seen: "the container had the files of an image, and its status no digest",
		Pods: "runs on with its files; nothing is waited for"},
	"InPlacePodLevelResourcesVerticalScaling": {Writes: "status.resources and status.allocatedResources of Pods, allocated_pods_state, cgroups",
		Seen: "a Pod was resized, on cgroup v1; with the gate off both fields were cleared, its cgroup kept the new limit; allocated_pods_state had the Pod after its end, until the next one started",
		Pods: "runs on with what it was given"},
	"InPlacePodVerticalScaling": {Writes: "resources and conditions in status, allocated_pods_state and actuated_pods_state, cgroups",
		Untried: locked,
		Pods:    "runs on with what it was given"},
	"InPlacePodVerticalScalingExclusiveCPUs": {Writes: "allocated_pods_state and cpu_manager_state",
		Seen: "kubelet noted the CPU that a Pod had alone as its baseline, too, and started with the gate off; the Pod kept its CPU. It cannot get a second one on two cores",
		Pods: "runs on with what it was given"},
	"InPlacePodVerticalScalingExclusiveMemory": {Writes: "allocated_pods_state and memory_manager_state",
		Seen: "a Guaranteed Pod was resized under the static policy, and memory_manager_state kept its first size; with the gate off it kept what it had, and the next resize was refused",
		Pods: "runs on with what it was given"},
	"InPlacePodVerticalScalingInitContainers": {Writes: "its name in status.declaredFeatures of the Node, allocated_pods_state",
		Untried: locked,
		Pods:    "runs on with what it was given"},
	"InPlacePodVerticalScalingMemoryBackedVolumes": {Writes: "its name in status.declaredFeatures of the Node, limits of volumes in allocated_pods_state",
		Seen: "the limit was recorded and the name went with the gate; kubelet refuses the resize itself on cgroup v1",
		Pods: "runs on with what it was given"},
	"InPlacePodVerticalScalingSchedulerPreemption": {Writes: "nothing: kubelet reads spec.podPreemptionPolicy of the Node",
		Untried: "there is nothing to see on a node",
		Pods:    runsOn},
	"KubeProxyNFTablesLocalhostNodePorts": {Writes: "rules and counters in the table kube-proxy",
		Seen: "with localhost in nodePortAddresses they were there with the gate on, and a Pod answered on localhost at its node port; after kube-proxy had started without the gate they were gone, and nothing listened there",
		Pods: "runs on; its node port is no longer served on localhost"},
	"KubeletEnsureSecretPulledImages": {Writes: "image_manager/pulling and image_manager/pulled",
		Seen: "kubelet recorded an image with its Secret and refused it to a Pod without; with the gate off that Pod got it, the record stayed, and counted again with the gate on",
		Pods: "runs on; Pods without the Secret get the image, too"},
	"KubeletInUserNamespace": {Writes: "status.nodeInfo.runningInUserNamespace of the Node",
		Seen: "kubelet wrote what is true of the node, here false, and the field was gone with the gate off",
		Pods: runsOn},
	"KubeletServiceAccountTokenForCredentialProviders": {Writes: "image_manager/pulled",
		Seen: "a plugin got a token of a Pod's service account, and kubelet recorded the image with the account; with the gate off it did not start while the plugin's configuration had tokenAttributes, left the record without them, and refused the image to another Pod of the account, which got it with the gate on again",
		Pods: runsOn},
	"LocalStorageCapacityIsolationFSQuotaMonitoring": {Writes: "project quotas, /etc/projects and /etc/projid",
		Untried: "the file system of the node is mounted without project quotas",
		Pods:    runsOn},
	"MemoryQoS": {Writes: "memory.min, memory.low and memory.high of cgroups",
		Untried: "the trial of it needs a machine with cgroup v2, and has run on none; cgroup v1 has no such files",
		Pods:    "runs on with what its cgroups have"},
	"MutableCSINodeAllocatableCount": {Writes: "spec.drivers[*].allocatable.count of CSINodes",
		Untried: locked,
		Pods:    runsOn},
	"NodeDeclaredFeatures": {Writes: "status.declaredFeatures of the Node",
		Untried: locked,
		Pods:    runsOn},
	"PodCertificateRequest": {Writes: "PodCertificateRequests, and the file with key and certificate",
		Seen: "the file stayed as it was; kubelet cannot set the volume up any more (event FailedMount)",
		Pods: mountsFail},
	"PodLevelResourceManagers": {Writes: "cpu_manager_state and memory_manager_state",
		Seen: "both files are the same with the gate on and off without policies. Under static policies a Pod got a CPU and memory as a whole, and kept them as kubelet started with the gate off. Where two of its containers had none of their own, kubelet did not start (the expected machine state is different from the real one) until both files were deleted; the Pod ran on. memory_manager_state names a Pod after its end, until another starts",
		Pods: runsOn},
	"PodLevelResources": {Writes: "limits of the whole Pod in its cgroup",
		Seen: "kubelet that started with the gate off ended the running Pod (PodLevelResourcesNotSupported); its cgroup went with it",
		Pods: ends},
	"PodReadyToStartContainersCondition": {Writes: "the condition in the status of Pods",
		Untried: locked,
		Pods:    runsOn},
	"PodsAPI": {Writes: "the socket pods-api/pods-api.sock",
		Seen: "the file stayed after an end in order and after a crash, without a listener",
		Pods: runsOn},
	"PreferSameTrafficDistribution": {Writes: "rules for endpoints of the same node",
		Untried: locked,
		Pods:    runsOn},
	"QOSReserved": {Writes: "memory limits of the cgroups of QoS classes",
		Seen: "kubelet lowered the limits of Burstable and BestEffort, which stayed with the gate off",
		Pods: "runs on below the limit"},
	"ResourceHealthStatus": {Writes: "allocatedResourcesStatus in the status of containers",
		Seen: "kubelet wrote the health of a device of a plugin, and the field was cleared; device-plugins/kubelet_internal_checkpoint kept the device of the Pod",
		Pods: runsOn},
	"ResourceHealthStatusMessage": {Writes: "message in allocatedResourcesStatus",
		Seen: "kubelet wrote what a driver of devices said of the health of one, and the field was cleared; dra_manager_state kept the claim of the Pod",
		Pods: runsOn},
	"RestartAllContainersOnContainerExits": {Writes: "its name in status.declaredFeatures of the Node, the condition AllContainersRestarting",
		Seen: "all containers started again; kubelet that started with the gate off ended the running Pod (PodFeatureUnsupported)",
		Pods: ends},
	"RotateKubeletServerCertificate": {Writes: "kubelet-server-current.pem",
		Seen: "kubelet requested a certificate, which was approved by hand, and which stayed",
		Pods: runsOn},
	"SELinuxChangePolicy": {Writes: "labels of volumes, by mount options",
		Untried: locked,
		Pods:    "runs on with the labels that its volumes have"},
	"SELinuxMount": {Writes: "labels of volumes, by mount options",
		Untried: "the kernel of the machine has no SELinux",
		Pods:    "runs on with the labels that its volumes have, and is waited for"},
	"SELinuxMountReadWriteOncePod": {Writes: "labels of volumes, by mount options",
		Untried: locked,
		Pods:    "runs on with the labels that its volumes have"},
	"SupplementalGroupsPolicy": {Writes: "user in the status of containers, status.features of the Node",
		Untried: locked,
		Pods:    "runs on and is waited for"},
	"TaintTolerationComparisonOperators": {Writes: "nothing: kubelet compares taints",
		Seen: "a Pod that tolerated a taint NoExecute by Gt was ended, and deleted by the controller of taints; no other was tried",
		Pods: "is deleted where it tolerates a taint NoExecute by such an operator only; others run on and are waited for. Change the taint or the toleration before"},
	"UserNamespacesHostNetworkSupport": {Writes: "its name in status.declaredFeatures of the Node, pods/<uid>/userns",
		Seen: "the container had users of its own in the host's network; kubelet that started with the gate off ended the running Pod (PodFeatureUnsupported), and its file went",
		Pods: ends},
	"UserNamespacesSupport": {Writes: "pods/<uid>/userns, status.runtimeHandlers of the Node",
		Untried: locked,
		Pods:    "runs on and is waited for"},
	"VolumeBindMountOptions": {Writes: "its name in status.declaredFeatures of the Node, options of mounts",
		Seen: "the runtime does not know the options: kubelet did not declare the gate, and refused the Pod, which was waited for; none ran",
		Pods: ends},
	"WindowsCPUAndMemoryAffinity": {Writes: "cpu_manager_state and memory_manager_state",
		Untried: windows,
		Pods:    runsOn},
	"WindowsGracefulNodeShutdown": {Writes: "the registry, graceful_node_shutdown_state",
		Untried: windows,
		Pods:    runsOn},
}
