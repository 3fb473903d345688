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
	"strings"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/feature-lifecycle/lifecycle"
	"k8s.io/feature-lifecycle/lifecycle/task"
	"k8s.io/kubernetes/pkg/features"
)

var (
	pods  = corev1.SchemeGroupVersion.WithResource("pods")
	nodes = corev1.SchemeGroupVersion.WithResource("nodes")

	evictionRequests = lifecyclev1alpha1.Resource("evictionrequests")
	evictions        = lifecyclev1alpha1.Resource("evictions")
)

// podsOfNodes are the features of SIG Node whose state is in Pods, in what makes Pods,
// and in Nodes.
//
// Fields of a Pod's spec cannot be changed, and a template that changes rolls
// its Pods into ones that do without the feature: all of them are waited for.
//
// Fields of status are removed. A kubelet whose gate is off rebuilds the status
// of running containers without them, and takes conditions that are not its own
// from the API (kubelet/status, mergePodStatus). So it does not restore removed
// fields. The tasks remove them from Pods that ended or whose kubelet is lost.
// Exceptions are fields that kubelet copies from one status to the next. These
// are mounts (see ImageVolumeWithDigest), and the whole status of an ended
// container that the runtime has forgotten, such as an init container's
// (kubelet_pods.go, convertToAPIContainerStatuses). From the latter the server
// drops fields that it knows to belong to a gate that is off.
var podsOfNodes = []Entry{
	{Feature: lifecycle.Feature{
		// Without the gate kubelet gives the files to root when it writes them
		// again, so containers of another user could no longer read them.
		Name: features.AtomicWriteVolumeUserFields,
		OnDisable: lifecycle.WaitForNoneInPods("users of the files of volumes",
			"spec.volumes[*].secret.defaultUser", "spec.volumes[*].secret.items[*].user",
			"spec.volumes[*].configMap.defaultUser", "spec.volumes[*].configMap.items[*].user",
			"spec.volumes[*].downwardAPI.defaultUser", "spec.volumes[*].downwardAPI.items[*].user",
			"spec.volumes[*].projected.defaultUser",
			"spec.volumes[*].projected.sources[*].secret.items[*].user",
			"spec.volumes[*].projected.sources[*].configMap.items[*].user",
			"spec.volumes[*].projected.sources[*].downwardAPI.items[*].user",
			"spec.volumes[*].projected.sources[*].serviceAccountToken.user",
			"spec.volumes[*].projected.sources[*].clusterTrustBundle.user",
			"spec.volumes[*].projected.sources[*].podCertificate.user"),
		Control: lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// Always is older than the gate for init containers, and the gate's
		// for others. Ephemeral containers are listed because the server
		// drops the fields from them, too; validation does not let them in.
		Name: features.ContainerRestartRules,
		OnDisable: lifecycle.WaitForNoneInPods("restart policies of containers",
			"spec.containers[*].restartPolicy", "spec.containers[*].restartPolicyRules",
			"spec.initContainers[*].restartPolicy=Never", "spec.initContainers[*].restartPolicy=OnFailure", "spec.initContainers[*].restartPolicyRules",
			"spec.ephemeralContainers[*].restartPolicy", "spec.ephemeralContainers[*].restartPolicyRules"),
		Control: lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// The status goes first, since it need not wait for users. kubelets
		// write it for every container, whatever its spec has.
		Name: features.ContainerStopSignals,
		OnDisable: slices.Concat(clearContainerStatuses("stopSignal"), lifecycle.WaitForNoneInPods("stop signals",
			"spec.containers[*].lifecycle.stopSignal", "spec.initContainers[*].lifecycle.stopSignal", "spec.ephemeralContainers[*].lifecycle.stopSignal")),
		Control: lifecycle.Dynamic,
	}, Retained: []Remainder{{
		Field: task.Field{Resource: pods.GroupResource(), Path: "status.initContainerStatuses[*].stopSignal"},
		Why:   "kubelet puts it back into the status of an init container that ended and that the runtime has forgotten, and the server, which drops it from specs only, takes it; it is the stop signal of a container that has ended, and goes with the Pod",
	}}, OtherCopies: templateCopies + "; " + statusCopies},
	{Feature: lifecycle.Feature{
		Name:      features.EmptyDirVolumeMode,
		OnDisable: lifecycle.WaitForNoneInPods("modes of emptyDir volumes", "spec.volumes[*].emptyDir.mode"),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// Without the gate kubelet leaves the variable empty, so a container
		// that starts again would run with another environment.
		Name: features.EnvFiles,
		OnDisable: lifecycle.WaitForNoneInPods("environment variables from files",
			"spec.containers[*].env[*].valueFrom.fileKeyRef", "spec.initContainers[*].env[*].valueFrom.fileKeyRef", "spec.ephemeralContainers[*].env[*].valueFrom.fileKeyRef"),
		Control: lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// The API goes away with the gate. No controller of 1.37 reads the
		// responders or the objects, but users wait for an eviction that they
		// requested: the pods that it is about come first.
		Name: features.EvictionRequestAPI,
		OnDisable: slices.Concat(lifecycle.WaitForNoneInPods("eviction responders", "spec.evictionResponders"), lifecycle.Tasks{
			lifecycle.ClearCollection(evictionRequests), lifecycle.ClearCollection(evictions),
		}),
	}, OtherCopies: templateCopies, APIs: []API{{
		GroupVersion: lifecyclev1alpha1.SchemeGroupVersion, Resources: []string{evictionRequests.Resource, evictions.Resource},
		Without: "evictions cannot be requested",
	}}, BootstrapRBAC: true},
	// kube-apiserver speaks WebSockets with kubelets for exec, attach and
	// port-forward.
	{Feature: named(features.ExtendWebSocketsToKubelet), Retained: declaredByNodes(), OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// Without the gate kubelet probes without TLS, and a server that
		// requires it fails the probe. Ephemeral containers have no probes;
		// the server drops the field from theirs all the same.
		Name:      features.GRPCContainerProbeTLS,
		OnDisable: lifecycle.WaitForNoneInPods("modes of gRPC probes", ofProbes("grpc.mode")...),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// While it is on, defaulting writes HTTP1 into the probes and hooks of
		// every Pod, though not of templates. Without the gate kubelet speaks
		// HTTP/1.1 with all, so only the other value is waited for in Pods. A
		// template with the field may change to the other value, gate or not.
		Name:      features.H2CContainerProbe,
		OnDisable: waitForValueInPods("a protocol in probes and hooks", "HTTP/2 in probes and hooks", string(corev1.HTTPProtocolHTTP2), append(ofProbes("httpGet.protocol"), ofHooks("httpGet.protocol")...)...),
		Control:   lifecycle.Central,
	}, Retained: defaulted(append(ofProbes("httpGet.protocol"), ofHooks("httpGet.protocol")...),
		"defaulting writes HTTP1 into every Pod while the gate is on; it is what kubelet does without the field, and goes with the Pod",
		"validation refuses probes and hooks of ephemeral containers: it is never stored"),
		OtherCopies: templateCopies,
		Node:        "kubelet defaults static Pods as the server does others: those with probes or hooks by HTTP, such as etcd's and kube-apiserver's, get another UID when the gate changes, and start again."},
	{Feature: lifecycle.Feature{
		Name:      features.HostnameOverride,
		OnDisable: lifecycle.WaitForNoneInPods("hostnameOverride", "spec.hostnameOverride"),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// With the gate off the server takes the volume and its mounts out of
		// a new Pod, whose containers then run without the files.
		Name:      features.ImageVolume,
		OnDisable: lifecycle.WaitForNoneInPods("image volumes", "spec.volumes[*].image"),
	}, OtherCopies: templateCopies},
	{Feature: lifecycle.Feature{
		// kubelet takes the mounts of a container from its last status while
		// the Pod exists, gate or not (kubelet_pods.go,
		// convertContainerStatus). It would restore removed ones. An empty
		// volumeStatus counts, since the server takes it for use. No kubelet up
		// to 1.37.2 writes one: it looks for the mount by a name that CRI does
		// not have (upstream pull request 142120). Others may write status, and
		// so may a later patch release.
		Name: features.ImageVolumeWithDigest,
		OnDisable: lifecycle.Tasks{lifecycle.WaitForNone(pods, "digests of image volumes in their status",
			"status.containerStatuses[*].volumeMounts[*].volumeStatus",
			"status.initContainerStatuses[*].volumeMounts[*].volumeStatus",
			"status.ephemeralContainerStatuses[*].volumeMounts[*].volumeStatus")},
		Control: lifecycle.Central,
	}, OtherCopies: statusCopies,
		Node: "kubelets up to 1.37.2 write no digest: they look for the mount by a name that container runtimes do not report (kubernetes/kubernetes#142120). What is waited for is what other clients, or kubelets of a later patch release, wrote."},
	{Feature: lifecycle.Feature{
		// The request is spec.resources, PodLevelResources' field.
		Name:      features.InPlacePodLevelResourcesVerticalScaling,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(pods, "status.resources"), lifecycle.ClearField(pods, "status.allocatedResources")},
		Control:   lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: statusCopies,
		Node: "The files allocated_pods_state and actuated_pods_state keep the resources of Pods; other resizes use them, too. The entry of a Pod that is gone stays until kubelet writes the files for another."},
	{Feature: lifecycle.Feature{
		// The field takes a node out of the preemption for resizes that
		// kube-scheduler does while the gate is on. With the gate off nothing
		// reads it.
		Name:      features.InPlacePodVerticalScalingSchedulerPreemption,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(nodes, "spec.podPreemptionPolicy")},
		Control:   lifecycle.Central,
	}, OtherCopies: appliedCopies},
	{Feature: lifecycle.Feature{
		// The status goes first, since it need not wait for users. A resize
		// changes the resources of containers, which every Pod may have.
		Name: features.InPlacePodVerticalScaling,
		OnDisable: slices.Concat(clearContainerStatuses("resources"), clearContainerStatuses("allocatedResources"),
			lifecycle.Tasks{
				lifecycle.ClearField(pods, "status.resize"),
				lifecycle.ClearField(pods, "status.conditions[type="+string(corev1.PodResizePending)+"]"),
				lifecycle.ClearField(pods, "status.conditions[type="+string(corev1.PodResizeInProgress)+"]"),
			},
			lifecycle.WaitForNoneInPods("resize policies", ofContainers("resizePolicy")...)),
	}, OtherCopies: templateCopies + "; " + statusCopies,
		Node: "allocated_pods_state and actuated_pods_state keep what a resize gave to a Pod. Kubelet without the gate does not read them, and a Pod that starts again gets what its spec has."},
	{Feature: lifecycle.Feature{
		// kubelet rewrites the information about the node when it starts,
		// without the field while its gate is off. A node that is down keeps it.
		Name:      features.KubeletInUserNamespace,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(nodes, "status.nodeInfo.runningInUserNamespace")},
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// kubelet does not clear it when the gate is off, it only stops
		// writing (kubelet_node_status.go, setNodeStatus).
		Name:      features.NodeDeclaredFeatures,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(nodes, "status.declaredFeatures")},
		Control:   lifecycle.Central,
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// kubelet without the gate refuses a Pod with the field, and ends one that
		// runs when it starts (kubelet/lifecycle). The server drops the field from
		// a new Pod, whose limits are then not enforced.
		Name:      features.PodLevelResources,
		OnDisable: lifecycle.WaitForNoneInPods("resources of the whole Pod", "spec.resources"),
		Control:   lifecycle.Central,
	}, OtherCopies: templateCopies,
		Node: "The cgroups of Pods have the limits of the whole Pod and go with the Pods."},
	{Feature: named(features.PodObservedGenerationTracking), Retained: []Remainder{
		{Field: task.Field{Resource: pods.GroupResource(), Path: "status.observedGeneration"}, Why: observedGenerations},
		{Field: task.Field{Resource: pods.GroupResource(), Path: "status.conditions[*].observedGeneration"}, Why: observedGenerations},
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		Name:      features.PodReadyToStartContainersCondition,
		OnDisable: lifecycle.Tasks{lifecycle.ClearField(pods, "status.conditions[type=PodReadyToStartContainers]")},
		Control:   lifecycle.Central,
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{Name: features.PodTopologyLabelsAdmission},
		// Only kube-apiserver queries the gate. Its labels cannot be
		// distinguished from those that a Pod was created with.
		Retained: []Remainder{
			{Field: task.Field{Resource: pods.GroupResource(), Path: "metadata.labels{topology.kubernetes.io/zone}"}, Why: podTopologyLabels},
			{Field: task.Field{Resource: pods.GroupResource(), Path: "metadata.labels{topology.kubernetes.io/region}"}, Why: podTopologyLabels},
		},
		OtherCopies: "environment variables and volumes of the downward API have the labels as long as the Pod has them; templates do not get them"},
	{Feature: lifecycle.Feature{
		// The server replaces the value by Default in a new Pod. Default is
		// what a container without the field has.
		Name:      features.ProcMountType,
		OnDisable: lifecycle.WaitForNoneInPods("an unmasked /proc", ofContainers("securityContext.procMount="+string(corev1.UnmaskedProcMount))...),
	}, OtherCopies: valueCopies},
	{Feature: lifecycle.Feature{
		// Validation does not let it into the status of ephemeral containers.
		Name: features.ResourceHealthStatus,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(pods, "status.containerStatuses[*].allocatedResourcesStatus"),
			lifecycle.ClearField(pods, "status.initContainerStatuses[*].allocatedResourcesStatus"),
		},
		Control: lifecycle.Central,
	}, Retained: []Remainder{
		{Field: task.Field{Resource: pods.GroupResource(), Path: "status.ephemeralContainerStatuses[*].allocatedResourcesStatus"}, Why: noEphemeralResources, Unstored: true},
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		Name: features.ResourceHealthStatusMessage,
		OnDisable: lifecycle.Tasks{
			lifecycle.ClearField(pods, "status.containerStatuses[*].allocatedResourcesStatus[*].resources[*].message"),
			lifecycle.ClearField(pods, "status.initContainerStatuses[*].allocatedResourcesStatus[*].resources[*].message"),
		},
		Control: lifecycle.Central,
	}, Retained: []Remainder{
		{Field: task.Field{Resource: pods.GroupResource(), Path: "status.ephemeralContainerStatuses[*].allocatedResourcesStatus[*].resources[*].message"}, Why: noEphemeralResources, Unstored: true},
	}, OtherCopies: statusCopies},
	{Feature: lifecycle.Feature{
		// Rules of sidecars are the gate's, too, whatever their action
		// (validation.go, validateInitContainerRestartPolicy). The condition
		// is in the status of each Pod that may restart so.
		Name: features.RestartAllContainersOnContainerExits,
		OnDisable: slices.Concat(lifecycle.Tasks{lifecycle.ClearField(pods, "status.conditions[type=AllContainersRestarting]")},
			lifecycle.WaitForNoneInPods("rules that restart all containers or sidecars",
				"spec.containers[*].restartPolicyRules[*].action=RestartAllContainers",
				"spec.initContainers[*].restartPolicyRules[*].action=RestartAllContainers",
				"spec.initContainers[restartPolicy=Always].restartPolicyRules")),
		Control: lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: valueCopies + "; " + statusCopies},
	{Feature: lifecycle.Feature{
		// Without the gate the groups of the image join those of the Pod. The
		// status goes first, since it need not wait for users; kubelets write
		// it for every container. A kubelet without the gate leaves what its
		// Node says about the runtime (kubelet/nodestatus, NodeFeatures).
		Name: features.SupplementalGroupsPolicy,
		OnDisable: slices.Concat(
			lifecycle.Tasks{lifecycle.ClearField(nodes, "status.features")},
			clearContainerStatuses("user"),
			lifecycle.WaitForNoneInPods("policies of supplemental groups", "spec.securityContext.supplementalGroupsPolicy")),
	}, OtherCopies: templateCopies + "; " + statusCopies},
	{Feature: lifecycle.Feature{
		// Each of the fields may be used without the other.
		Name:      features.UserNamespacesHostNetworkSupport,
		OnDisable: lifecycle.WaitForNoneInPods("a user namespace in the host's network", "spec[hostNetwork=true].hostUsers=false"),
		Control:   lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: valueCopies},
	{Feature: lifecycle.Feature{
		// kubelet without the gate does not start a Pod with the field. A
		// template with true may change to false, gate or not.
		Name:      features.UserNamespacesSupport,
		OnDisable: waitForValueInPods("a choice of user namespaces", "a user namespace", "false", "spec.hostUsers"),
	}, Retained: []Remainder{
		{Field: task.Field{Resource: pods.GroupResource(), Path: "spec.hostUsers"}, Why: "true is what a Pod without the field has, and goes with the Pod; false is waited for"},
		{Field: task.Field{Resource: nodes.GroupResource(), Path: "status.runtimeHandlers"}, Why: "kubelet lists what the runtime can, recursive read-only mounts among it, whose gate is finished; the list stays right"},
	}, OtherCopies: templateCopies + "; " + statusCopies,
		Node: "pods/<uid>/userns has the range of IDs of a Pod, and goes with the Pod."},
	{Feature: lifecycle.Feature{
		// The runtime mounts with the options whether kubelet's gate is on or
		// not; with the gate off the server lets no new pod have them.
		Name: features.VolumeBindMountOptions,
		OnDisable: lifecycle.WaitForNoneInPods("options of bind mounts",
			"spec.containers[*].volumeMounts[*].bindMountOptions", "spec.initContainers[*].volumeMounts[*].bindMountOptions", "spec.ephemeralContainers[*].volumeMounts[*].bindMountOptions"),
		Control: lifecycle.Central,
	}, Retained: declaredByNodes(), OtherCopies: templateCopies},
}

// ofContainers returns a path in all containers of a Pod.
func ofContainers(path string) []string {
	return []string{"spec.containers[*]." + path, "spec.initContainers[*]." + path, "spec.ephemeralContainers[*]." + path}
}

// ofProbes returns a path in all probes of all containers.
func ofProbes(path string) []string {
	return slices.Concat(ofContainers("livenessProbe."+path), ofContainers("readinessProbe."+path), ofContainers("startupProbe."+path))
}

// ofHooks returns a path in all lifecycle hooks of all containers.
func ofHooks(path string) []string {
	return slices.Concat(ofContainers("lifecycle.postStart."+path), ofContainers("lifecycle.preStop."+path))
}

// waitForValueInPods waits until no pod template has any of the fields, whatever its value,
// and no Pod has one of them with a value. The server permits every value in a template that
// has the field, and a Pod cannot change. So a value that does no harm in a Pod may still
// become the other one in a template once the gate is off.
func waitForValueInPods(inTemplates, inPods, value string, fields ...string) lifecycle.Tasks {
	tasks := lifecycle.WaitForNoneInPods(inTemplates, fields...)
	var valued []string
	for _, field := range fields {
		valued = append(valued, field+"="+value)
	}
	tasks[len(tasks)-1] = lifecycle.WaitForNone(pods, inPods, valued...)
	return tasks
}

// defaulted returns remainders for paths of containers in Pods that defaulting fills, but
// for those of ephemeral containers, which are never stored.
func defaulted(paths []string, why, notStored string) []Remainder {
	var remainders []Remainder
	for _, path := range paths {
		r := Remainder{Field: task.Field{Resource: pods.GroupResource(), Path: path}, Why: why}
		if strings.HasPrefix(path, "spec.ephemeralContainers") {
			r.Why, r.Unstored = notStored, true
		}
		remainders = append(remainders, r)
	}
	return remainders
}

// clearContainerStatuses removes a field from the status of all containers.
func clearContainerStatuses(field string) lifecycle.Tasks {
	return lifecycle.Tasks{
		lifecycle.ClearField(pods, "status.containerStatuses[*]."+field),
		lifecycle.ClearField(pods, "status.initContainerStatuses[*]."+field),
		lifecycle.ClearField(pods, "status.ephemeralContainerStatuses[*]."+field),
	}
}

// declaredByNodes is the list in which kubelets publish features that they have
// on, for the features that are published (component-helpers'
// nodedeclaredfeatures/features).
func declaredByNodes() []Remainder {
	return []Remainder{{
		Field: task.Field{Resource: nodes.GroupResource(), Path: "status.declaredFeatures"},
		Why:   "kubelet lists the gate's name there while NodeDeclaredFeatures is on, and rewrites the list when it starts; the name of a node that is down, or the last name of all, stays. No component queries the name while the gate is off, and NodeDeclaredFeatures clears the whole list",
	}}
}

const (
	podTopologyLabels    = "it is the Pod's location, which stays true, and goes with the Pod; people may have set it themselves, and Services, policies and the downward API may select by it, so removing it could change what a running Pod does"
	observedGenerations  = "the server keeps the number when a client clears it (registry/core/pod, preserveOldObservedGeneration), and kubelet counts on where there is one; it says which spec was observed, which stays true, and goes with the Pod"
	noEphemeralResources = "validation refuses it, since ephemeral containers have no resources of their own: it is never stored"
)
