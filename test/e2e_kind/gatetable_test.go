//go:build linux

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

package e2ekind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
)

// offByDefault are the gates of the tests that have to be turned on first.
var offByDefault = []featuregate.Feature{
	features.AtomicWriteVolumeUserFields, features.DRANodeAllocatableResources, features.DRAOptionalNodeOperations,
	features.DRAWorkloadResourceClaims,
	features.EmptyDirVolumeMode, features.GRPCContainerProbeTLS, features.H2CContainerProbe, features.ImageVolumeWithDigest,
	features.InPlacePodVerticalScalingMemoryBackedVolumes, features.KubeProxyNFTablesLocalhostNodePorts,
	features.TaintTolerationComparisonOperators, features.UserNamespacesHostNetworkSupport, features.VolumeBindMountOptions,
}

// Reasons of events of kubelet.
const (
	unsupported = "PodFeatureUnsupported"
	failedMount = "FailedMount"
	unhealthy   = "Unhealthy"
)

// gateUses are gates that are turned off together. Those whose Pods kubelet ends come first:
// once it has, it has decided about the other Pods, too.
func gateUses() []gateUse {
	return []gateUse{
		{gate: features.RestartAllContainersOnContainerExits, pod: restartAll, waits: true, ends: unsupported,
			used: func(n *usedNode) error {
				return errors.Join(n.restartedOnce(restartAll), n.declares(features.RestartAllContainersOnContainerExits, true), n.hasCondition(restartAll, corev1.AllContainersRestarting, true))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.declares(features.RestartAllContainersOnContainerExits, false), n.hasCondition(restartAll, corev1.AllContainersRestarting, false))
			}},
		{gate: features.UserNamespacesHostNetworkSupport, pod: "users-on-host", waits: true, ends: unsupported,
			used: func(n *usedNode) error {
				return errors.Join(n.declares(features.UserNamespacesHostNetworkSupport, true), n.hasRange("users-on-host", true), n.isMapped("users-on-host"))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.declares(features.UserNamespacesHostNetworkSupport, false), n.hasRange("users-on-host", false))
			}},
		// The runtime does not know the options, so the node does not declare the gate.
		{gate: features.VolumeBindMountOptions, pod: "bind-options", waits: true, ends: unsupported,
			used: func(n *usedNode) error {
				return errors.Join(n.declares(features.VolumeBindMountOptions, false), n.isRefused("bind-options", unsupported, string(features.VolumeBindMountOptions)))
			}},
		{gate: features.AtomicWriteVolumeUserFields, pod: "file-users", waits: true,
			used: func(n *usedNode) error { return want("the file", n.inPod("file-users", "cat", "/secret/key"), "old") },
			left: fileGoesToRoot},
		{gate: features.ClusterTrustBundleProjection, pod: "trust", waits: true, stuck: true,
			used: func(n *usedNode) error { return n.hasBundle("trust") },
			left: func(n *usedNode) error {
				if err := errors.Join(n.hasBundle("trust"), n.hasEvent("trust", failedMount, "ClusterTrustBundle projection is not supported")); err != nil {
					return err
				}
				n.stopContainer("trust")
				return nil
			}},
		{gate: features.PodCertificateRequest, pod: "certificate", waits: true, stuck: true,
			used: func(n *usedNode) error { return n.hasCertificate("certificate") },
			left: func(n *usedNode) error {
				if err := errors.Join(n.hasCertificate("certificate"), n.hasEvent("certificate", failedMount, "unimplemented")); err != nil {
					return err
				}
				n.stopContainer("certificate")
				return nil
			}},
		{gate: features.EmptyDirVolumeMode, pod: "mode", waits: true, used: hasMode, left: hasMode},
		{gate: features.EnvFiles, pod: "env-file", waits: true,
			used: func(n *usedNode) error { return want("the variable", n.fileOf("env-file", "out"), "value") },
			left: variableIsEmpty},
		{gate: features.ContainerRestartRules, pod: "restart-rule", waits: true,
			used: func(n *usedNode) error { return n.restartedOnce("restart-rule") },
			left: ruleIsIgnored},
		// etcd answers the request of HTTP/2 with an error, and that of HTTP/1.1.
		{gate: features.H2CContainerProbe, pod: "http2-probe", waits: true,
			used: func(n *usedNode) error { return n.hasEvent("http2-probe", unhealthy, "415") },
			left: func(n *usedNode) error { return n.hasCondition("http2-probe", corev1.PodReady, true) }},
		{gate: features.GRPCContainerProbeTLS, pod: "tls-probe", waits: true,
			used: func(n *usedNode) error { return n.hasCondition("tls-probe", corev1.PodReady, true) },
			left: func(n *usedNode) error { return n.hasCondition("tls-probe", corev1.PodReady, false) }},
		{gate: features.ImageVolumeWithDigest, pod: "image-volume", used: hasImageWithoutDigest, left: hasImageWithoutDigest},
		{gate: features.InPlacePodLevelResourcesVerticalScaling, pod: "pod-resources", used: podResized, left: podStaysResized},
		{gate: features.InPlacePodVerticalScalingMemoryBackedVolumes, pod: "memory-volume",
			used: func(n *usedNode) error {
				return errors.Join(n.declares(features.InPlacePodVerticalScalingMemoryBackedVolumes, true), n.records("memory-volume", `"10Mi"`))
			},
			left: func(n *usedNode) error {
				return n.declares(features.InPlacePodVerticalScalingMemoryBackedVolumes, false)
			}},
		{gate: features.DRANodeAllocatableResources, pod: claimed,
			used: func(n *usedNode) error {
				return errors.Join(n.declares(features.DRANodeAllocatableResources, true), n.hasMemoryOfClaim(true))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.declares(features.DRANodeAllocatableResources, false), n.hasMemoryOfClaim(false))
			}},
		{gate: features.DRAOptionalNodeOperations, pod: claimed, waits: true,
			used: func(n *usedNode) error {
				return errors.Join(n.declares(features.DRAOptionalNodeOperations, true), n.knowsClaim(claimed, "skipNodeOperations"))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.declares(features.DRAOptionalNodeOperations, false), n.knowsClaim(claimed, "skipNodeOperations"))
			}},
		{gate: features.DRAWorkloadResourceClaims, pod: grouped, waits: true, used: (*usedNode).claimsOfGroup, left: (*usedNode).claimsOfGroup},
		{gate: features.ResourceHealthStatus, pod: devicePod,
			used: func(n *usedNode) error {
				return errors.Join(n.hasHealth(devicePod, "", true), n.knowsDevice(devicePod))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.hasHealth(devicePod, "", false), n.knowsDevice(devicePod))
			}},
		{gate: features.ResourceHealthStatusMessage, pod: healthPod,
			used: func(n *usedNode) error {
				return errors.Join(n.hasHealth(healthPod, healthMessage, true), n.knowsClaim(healthPod, healthDriver))
			},
			left: func(n *usedNode) error {
				return errors.Join(n.hasHealth(healthPod, healthMessage, false), n.knowsClaim(healthPod, healthDriver))
			}},
		declared(features.ExtendWebSocketsToKubelet),
		{gate: features.KubeletInUserNamespace,
			used: func(n *usedNode) error { return n.saysWhetherInUserNamespace(true) },
			left: func(n *usedNode) error { return n.saysWhetherInUserNamespace(false) }},
		{gate: features.KubeProxyNFTablesLocalhostNodePorts, pod: servedPod,
			used: func(n *usedNode) error { return errors.Join(n.hasLocalhostRules(true), n.servesOnLocalhost(true)) },
			left: func(n *usedNode) error { return errors.Join(n.hasLocalhostRules(false), n.servesOnLocalhost(false)) }},
	}
}

// lateGateUses are those whose Pods would end with the gates of gateUses, or by a taint that
// all other Pods do not tolerate.
func lateGateUses() []gateUse {
	return []gateUse{
		{gate: features.PodLevelResources, pod: "pod-resources", waits: true, ends: "PodLevelResourcesNotSupported",
			used: func(n *usedNode) error {
				return errors.Join(n.hasQuota("pod-resources"), n.hasCgroups("pod-resources", true))
			},
			left: func(n *usedNode) error { return n.hasCgroups("pod-resources", false) }},
		{gate: features.TaintTolerationComparisonOperators, pod: "tolerates", deleted: true,
			used: func(n *usedNode) error {
				n.createPod(n.shellPod("tolerates", forever, func(spec *corev1.PodSpec) {
					spec.Tolerations = []corev1.Toleration{{Key: taintKey, Operator: corev1.TolerationOpGt, Value: "5", Effect: corev1.TaintEffectNoExecute}}
				}))
				return n.hasCondition("tolerates", corev1.PodReady, true)
			}},
	}
}

// declared is a gate that the node lists while it is on.
func declared(gate featuregate.Feature) gateUse {
	return gateUse{gate: gate,
		used: func(n *usedNode) error { return n.declares(gate, true) },
		left: func(n *usedNode) error { return n.declares(gate, false) }}
}

// node reads the node.
func (n *usedNode) node() (found *corev1.Node) {
	n.Eventually("the node to be read", func(ctx context.Context) (err error) {
		found, err = n.Kube.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		return err
	})
	return found
}

// declares returns an error unless the node lists a gate, or does not.
func (n *usedNode) declares(gate featuregate.Feature, wanted bool) error {
	if list := n.node().Status.DeclaredFeatures; slices.Contains(list, string(gate)) != wanted {
		return fmt.Errorf("the node declares %q, want with %s: %t", list, gate, wanted)
	}
	return nil
}

// saysWhetherInUserNamespace returns an error unless the Node says whether the IDs of its
// users are mapped, as they are where Docker runs without root, or says nothing.
func (n *usedNode) saysWhetherInUserNamespace(wanted bool) error {
	said, expected := "nothing", "nothing"
	if in := n.node().Status.NodeInfo.RunningInUserNamespace; in != nil {
		said = fmt.Sprint(*in)
	}
	mapped := strings.Join(strings.Fields(n.shell("cat /proc/self/uid_map")), " ")
	if wanted {
		expected = fmt.Sprint(mapped != "0 0 4294967295")
	}
	return want("runningInUserNamespace of the node with the IDs "+mapped, said, expected)
}

// hasCondition returns an error unless a condition of a Pod is true, or is not there or not
// true. That of restarts is false once all containers have started again, and counts, too.
func (n *usedNode) hasCondition(pod string, kind corev1.PodConditionType, wanted bool) error {
	conditions := n.pod(pod).Status.Conditions
	has := slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && (c.Status == corev1.ConditionTrue || kind == corev1.AllContainersRestarting)
	})
	if has != wanted {
		return fmt.Errorf("the Pod %s has the conditions %+v, want %s: %t", pod, conditions, kind, wanted)
	}
	return nil
}
