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

// onNodes explains why a feature of SIG Node leaves nothing in etcd.
const onNodes = "what it leaves is on nodes"

// nodeLocal has the features whose state is on nodes and not in etcd. All of
// them stay Local: kubelet validates most of them with its own configuration
// before it reaches the API. Leftovers are for the node's owner. Paths are
// below kubelet's root directory unless they begin with a slash.
var nodeLocal = []Entry{
	{Feature: named("CPUManagerPolicyAlphaOptions"), Stateless: onNodes,
		Node:   "cpu_manager_state keeps the CPUs that containers were given under the options; they stay theirs until they end. The options themselves are not recorded.",
		Config: "cpuManagerPolicyOptions align-by-socket and distribute-cpus-across-cores: kubelet does not start with them while the gate is off."},
	{Feature: named("CPUManagerPolicyBetaOptions"), Stateless: onNodes,
		Node:   "cpu_manager_state keeps the CPUs that containers were given under the options; they stay theirs until they end. The options themselves are not recorded.",
		Config: "cpuManagerPolicyOptions distribute-cpus-across-numa: kubelet does not start with it while the gate is off."},
	{Feature: named("ContainerCheckpoint"), Stateless: onNodes,
		Node: "Archives of containers, with their memory, stay in checkpoints/ until an administrator deletes them; kubelet never does. The runtime's own copies are the runtime's."},
	{Feature: named("DisableCPUQuotaWithExclusiveCPUs"), Stateless: onNodes,
		Node: "Containers with exclusive CPUs that run without a CPU quota keep none until they start again."},
	// The state file is BasedOnPodPriority's.
	{Feature: named("GracefulNodeShutdown"), Stateless: onNodes,
		Node:   "/etc/systemd/logind.conf.d/99-kubelet.conf, which kubelet writes when systemd allows inhibitors less than the grace period, stays and continues to delay shutdowns that are inhibited, until an administrator deletes it. Kubelet's inhibitor lock ends with its process.",
		Config: "shutdownGracePeriod and shutdownGracePeriodCriticalPods: refused while the gate is off."},
	{Feature: named("GracefulNodeShutdownBasedOnPodPriority"), Stateless: onNodes,
		Node:   "graceful_node_shutdown_state has when the last shutdown began and ended, for metrics. It stays; nothing reads it while the gate is off, and the next shutdown with the gate on overwrites it.",
		Config: "shutdownGracePeriodByPodPriority: refused while the gate is off."},
	{Feature: named("InPlacePodVerticalScalingExclusiveCPUs"), Stateless: onNodes,
		Node: "allocated_pods_state, actuated_pods_state and cpu_manager_state keep what a resize gave to a Pod. That stays in force while the Pod runs; only further resizes are refused. The entry of a Pod that is gone stays until kubelet writes the files for another. The CPUs of the beginning (baselines in cpu_manager_state) go when kubelet without the gate writes the file."},
	{Feature: named("InPlacePodVerticalScalingExclusiveMemory"), Stateless: onNodes,
		Node: "allocated_pods_state and actuated_pods_state keep what a resize gave to a Pod; memory_manager_state has what the Pod was given first, also after a resize. That stays in force while the Pod runs; only further resizes are refused. The entry of a Pod that is gone stays until kubelet writes the files for another."},
	// A resize writes resources of init containers, a field that every Pod may
	// have.
	{Feature: named("InPlacePodVerticalScalingInitContainers"), Retained: declaredByNodes(), OtherCopies: statusCopies,
		Node: "allocated_pods_state and actuated_pods_state keep what a resize gave to init containers. The entry of a Pod that is gone stays until kubelet writes the files for another."},
	// A resize changes sizeLimit of emptyDir volumes, an older field.
	{Feature: named("InPlacePodVerticalScalingMemoryBackedVolumes"), Retained: declaredByNodes(), OtherCopies: statusCopies,
		Node: "allocated_pods_state and actuated_pods_state keep what a resize gave to volumes. The entry of a Pod that is gone stays until kubelet writes the files for another."},
	{Feature: named("KubeletEnsureSecretPulledImages"), Stateless: onNodes,
		Node:   "image_manager/pulling and image_manager/pulled keep which image was pulled with which Secret or ServiceAccount, by name and hash. While the gate is off nothing reads, adds or prunes them; once it is on again they count as before, so delete the directory if images changed hands meanwhile.",
		Config: "imagePullCredentialsVerificationPolicy and preloadedImagesVerificationAllowlist: refused while the gate is off; the policy is defaulted while it is on."},
	{Feature: named("LocalStorageCapacityIsolationFSQuotaMonitoring"), Stateless: onNodes,
		Node: "Project quotas of emptyDir volumes, and their lines in /etc/projects and /etc/projid. Kubelet removes them with the volume only while the gate is on: drain the node before the gate is turned off, or delete the lines."},
	{Feature: named("MemoryQoS"), Stateless: onNodes,
		Node:   "memory.min, memory.low and memory.high of cgroups that exist keep their values, since kubelet stops writing them: those of containers and Pods until they end, those of QoS classes and of reserved cgroups until the node is started again.",
		Config: "memoryReservationPolicy TieredReservation: refused while the gate is off. memoryThrottlingFactor, which has a default, is required while it is on."},
	// The files have had data of both formats since 1.37, whatever the gate
	// (pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpointV4). 1.36 wrote another
	// one with the gate on.
	{Feature: named("PodLevelResourceManagers"), Stateless: onNodes,
		Node:   "cpu_manager_state and memory_manager_state keep what Pods were given until they end, the latter until another Pod starts. kubelet without the gate passes over what belongs to a Pod as a whole, and adds up what its containers have. Under memoryManagerPolicy Static and topologyManagerScope pod several containers without memory of their own have all of their Pod's each, so kubelet does not start: drain the node of such Pods before, or delete both files while kubelet is stopped. Kubelets of 1.36 do not start without the gate beside files that were written with it, whatever their policies: drain the node, stop kubelet, delete both files, turn the gate off. Those of 1.37 start beside them, and keep them as they are while they give nothing to a Pod: delete both files, too, before a kubelet of 1.36 starts again without the gate.",
		Config: "cpuManagerPolicy and memoryManagerPolicy static: the feature does nothing without them."},
	{Feature: named("PodsAPI"), Stateless: onNodes,
		Node: "The file of the socket pods-api/pods-api.sock, on which nothing listens, stays after every end of kubelet until kubelet with the gate on or an administrator deletes it."},
	{Feature: named("QOSReserved"), Stateless: onNodes,
		Node:   "The memory limits of the cgroups of the QoS classes Burstable and BestEffort stay as they were last set until the node is started again or an administrator raises them.",
		Config: "--qos-reserved: not refused while the gate is off, but ignored without a word."},
	// The requests are objects that kubelet makes as any client may. Gate or
	// not, the CSR cleaner of kube-controller-manager deletes them: an hour
	// after they were decided, a day after they were made
	// (pkg/controller/certificates/cleaner).
	{Feature: named("RotateKubeletServerCertificate"), Stateless: onNodes + "; kubelet's CertificateSigningRequests end within a day, gate or not",
		Node:   "kubelet-server-current.pem and what it links to stay in the certificate directory (--cert-dir) until an administrator deletes them; kubelet without the gate does not read them. The certificates stay valid until they expire.",
		Config: "serverTLSBootstrap (--rotate-server-certificates): refused while the gate is off."},
	{Feature: named("TopologyManagerPolicyAlphaOptions"), Stateless: "no option is alpha at 1.37, so the gate guards nothing",
		Config: "topologyManagerPolicyOptions of level alpha, of which there are none at 1.37: kubelet does not start with them while the gate is off."},
	{Feature: named("TopologyManagerPolicyBetaOptions"), Stateless: "no option is beta at 1.37, so the gate guards nothing",
		Config: "topologyManagerPolicyOptions of level beta, of which there are none at 1.37: kubelet does not start with them while the gate is off."},
	{Feature: named("WindowsCPUAndMemoryAffinity"), Stateless: onNodes,
		Node:   "cpu_manager_state and memory_manager_state stay, unread. Containers that run keep their affinity until they end. Delete the files before the gate is turned on again: their data about containers is outdated by then.",
		Config: "cpuManagerPolicy, memoryManagerPolicy and topologyManagerPolicy on Windows: not refused while the gate is off, but without effect."},
	{Feature: named("WindowsGracefulNodeShutdown"), Stateless: onNodes,
		Node:   "The registry keeps kubelet's place in PreshutdownOrder, and its service the longer preshutdown timeout, until an administrator takes them out: Windows continues to wait for kubelet. graceful_node_shutdown_state is as for GracefulNodeShutdownBasedOnPodPriority.",
		Config: "shutdownGracePeriod and its relatives are the configuration of this gate on Windows, too; GracefulNodeShutdown decides whether they are refused."},
}
