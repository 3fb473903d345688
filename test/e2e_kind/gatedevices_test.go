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
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// pluginResource is the resource of upstream's sample device plugin.
	pluginResource = "example.com/resource"
	// healthDriver serves two devices, of whose health it says healthMessage.
	healthDriver  = "health.example.com"
	healthMessage = "as new"
	// skippedDriver is a driver that runs nowhere: its devices need nothing on nodes.
	skippedDriver = "skipped.example.com"

	// Names of Pods, and of the claims and classes that they use.
	devicePod = "device"
	healthPod = "health"
	claimed   = "claimed"
	// grouped is a Pod of a group that has the claim, and that group.
	grouped = "grouped"

	// claimStates has what kubelet knows of claims, and pluginStates of devices of plugins.
	claimStates  = root + "dra_manager_state"
	pluginStates = root + "device-plugins/kubelet_internal_checkpoint"
)

// driverPod is a Pod with a driver of devices, as an administrator of the node runs it.
func (n *usedNode) driverPod(name, image string, folders []string, flags ...string) *corev1.Pod {
	return n.shellPod(name, "", func(spec *corev1.PodSpec) {
		container := &spec.Containers[0]
		container.Image = "localhost/" + image + ":v1"
		container.Command = append([]string{"/" + image}, flags...)
		spec.HostNetwork = true
		container.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		for i, folder := range folders {
			volume := fmt.Sprint("folder-", i)
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: folder, Type: ptr.To(corev1.HostPathDirectoryOrCreate),
			}}})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: folder})
		}
	})
}

// devicePods are drivers of devices, and Pods that use these.
func (n *usedNode) devicePods() []*corev1.Pod {
	claims := func(name string, change func(*corev1.Container)) *corev1.Pod {
		return n.shellPod(name, forever, func(spec *corev1.PodSpec) {
			spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimName: ptr.To(name)}}
			spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "claim"}}
			change(&spec.Containers[0])
		})
	}
	return []*corev1.Pod{
		n.driverPod("device-plugin", "sample-device-plugin", []string{root + "device-plugins", "/tmp"}),
		n.driverPod("health-driver", "healthdriver", []string{root + "plugins", root + "plugins_registry", "/var/run/cdi", "/etc/kubernetes"},
			"-kubeconfig=/etc/kubernetes/admin.conf", "-driver-name="+healthDriver, "-node-name="+n.name, "-message="+healthMessage),
		n.shellPod(devicePod, forever, func(spec *corev1.PodSpec) {
			spec.Containers[0].Resources.Limits = corev1.ResourceList{pluginResource: resource.MustParse("1")}
		}),
		claims(healthPod, func(*corev1.Container) {}),
		n.shellPod(grouped, forever, func(spec *corev1.PodSpec) {
			spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To(grouped)}
			spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To(grouped)}}
			spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "claim"}}
		}),
		// Only what has a limit of its own gets a higher one by its claim.
		claims(claimed, func(container *corev1.Container) {
			container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}
		}),
	}
}

// createClaims creates what Pods claim. The slice of the driver that runs nowhere belongs to
// no node: kubelet deletes those of its node that have no driver.
func (n *usedNode) createClaims() {
	resources := n.Kube.ResourceV1()
	create := func(what string, request func(context.Context) error) {
		n.Eventually(what+" to be created", func(ctx context.Context) error {
			if err := request(ctx); !apierrors.IsAlreadyExists(err) {
				return err
			}
			return nil
		})
	}
	create("the ResourceSlice", func(ctx context.Context) error {
		_, err := resources.ResourceSlices().Create(ctx, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: claimed},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: skippedDriver, Pool: resourceapi.ResourcePool{Name: claimed, ResourceSliceCount: 1}, AllNodes: ptr.To(true),
				SkipNodeOperations: []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll},
				Devices: []resourceapi.Device{{Name: claimed, NodeAllocatableResources: map[corev1.ResourceName]resourceapi.NodeAllocatableResource{
					corev1.ResourceMemory: {Mapping: &resourceapi.NodeAllocatableMapping{DeviceMultiplier: ptr.To(resource.MustParse("48Mi"))}},
				}}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	claim := func(class string) resourceapi.ResourceClaimSpec {
		return resourceapi.ResourceClaimSpec{
			Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "request", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}}},
		}
	}
	create("the ResourceClaimTemplate", func(ctx context.Context) error {
		_, err := resources.ResourceClaimTemplates(metav1.NamespaceDefault).Create(ctx, &resourceapi.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: grouped}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: claim(healthPod)},
		}, metav1.CreateOptions{})
		return err
	})
	create("the PodGroup", func(ctx context.Context) error {
		_, err := n.Kube.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Create(ctx, &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: grouped},
			Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}},
				ResourceClaims:   []schedulingv1beta1.PodGroupResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To(grouped)}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	for name, driver := range map[string]string{healthPod: healthDriver, claimed: skippedDriver} {
		create("the DeviceClass", func(ctx context.Context) error {
			_, err := resources.DeviceClasses().Create(ctx, &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{
				Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
			}}, metav1.CreateOptions{})
			return err
		})
		create("the ResourceClaim", func(ctx context.Context) error {
			_, err := resources.ResourceClaims(metav1.NamespaceDefault).Create(ctx, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claim(name)}, metav1.CreateOptions{})
			return err
		})
	}
}

// deleteGroup deletes the group of a Pod that is gone. Its claim goes with it, though
// kube-controller-manager without the gate does not know who reserved it.
func (n *usedNode) deleteGroup() {
	groups := n.Kube.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault)
	n.Eventually("the PodGroup to be gone", func(ctx context.Context) error {
		err := groups.Delete(ctx, grouped, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	n.Eventually("the claim of the PodGroup to be gone", func(ctx context.Context) error {
		_, err := n.Kube.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Get(ctx, n.groupClaim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// claimsOfGroup returns an error unless the Pod runs with a claim that its group reserved,
// and which kubelet's file has. It remembers the claim, which the status of the Pod names.
func (n *usedNode) claimsOfGroup() error {
	pod := n.pod(grouped)
	statuses := pod.Status.ResourceClaimStatuses
	if pod.Status.Phase != corev1.PodRunning || len(statuses) != 1 {
		return fmt.Errorf("the Pod %s is %s with the claims %+v, want it running with one", grouped, pod.Status.Phase, statuses)
	}
	n.groupClaim = ptr.Deref(statuses[0].ResourceClaimName, "")
	claim, err := n.Kube.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Get(n.t.Context(), n.groupClaim, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if reserved := claim.Status.ReservedFor; len(reserved) != 1 || reserved[0].Resource != "podgroups" || reserved[0].Name != grouped {
		return fmt.Errorf("the claim %s is reserved for %+v, want the group %s", claim.Name, reserved, grouped)
	}
	return n.knowsClaim(n.groupClaim, healthDriver)
}

// deleteClaims deletes what Pods claimed that are gone.
func (n *usedNode) deleteClaims() {
	n.Eventually("the claim to be gone", func(ctx context.Context) error {
		claimErr := n.Kube.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Delete(ctx, claimed, metav1.DeleteOptions{})
		sliceErr := n.Kube.ResourceV1().ResourceSlices().Delete(ctx, claimed, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(claimErr) || !apierrors.IsNotFound(sliceErr) {
			return errors.Join(claimErr, sliceErr, errors.New("it is there"))
		}
		if states := n.shell("cat " + claimStates); strings.Contains(states, claimed) {
			return fmt.Errorf("%s has it: %s", claimStates, states)
		}
		return nil
	})
}

// hasHealth returns an error unless the status of a Pod's container has the health of its
// device, with a message, or has none.
func (n *usedNode) hasHealth(pod, message string, wanted bool) error {
	var all []corev1.ResourceHealth
	for _, status := range n.pod(pod).Status.ContainerStatuses {
		for _, resource := range status.AllocatedResourcesStatus {
			all = append(all, resource.Resources...)
		}
	}
	if !wanted && len(all) == 0 {
		return nil
	}
	if !wanted || len(all) != 1 || all[0].Health != corev1.ResourceHealthStatusHealthy || ptr.Deref(all[0].Message, "") != message {
		return fmt.Errorf("the devices of %s have the health %+v, want a healthy one with the message %q: %t", pod, all, message, wanted)
	}
	return nil
}

// knowsDevice returns an error unless kubelet's file has the device of the Pod.
func (n *usedNode) knowsDevice(pod string) error {
	if content := n.shell("cat " + pluginStates); !strings.Contains(content, string(n.pod(pod).UID)) {
		return fmt.Errorf("%s has nothing of %s: %s", pluginStates, pod, content)
	}
	return nil
}

// knowsClaim returns an error unless kubelet's file has a claim, with a text.
func (n *usedNode) knowsClaim(claim, text string) error {
	content := strings.ReplaceAll(n.shell("cat "+claimStates), `\`, "")
	if !strings.Contains(content, `"`+claim+`"`) || !strings.Contains(content, text) {
		return fmt.Errorf("%s is %s, want the claim %s with %s", claimStates, content, claim, text)
	}
	return nil
}

// hasMemoryOfClaim returns an error unless the container may use the memory of its claim, too,
// and the status of its Pod has the claim's, or has not.
func (n *usedNode) hasMemoryOfClaim(wanted bool) error {
	const files = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max"
	sum := resource.MustParse("80Mi")
	limit := want("the container's limit of memory", n.inPod(claimed, "sh", "-c", files), fmt.Sprint(sum.Value()))
	if statuses := n.pod(claimed).Status.NodeAllocatableResourceClaimStatuses; (len(statuses) > 0) != wanted {
		return errors.Join(limit, fmt.Errorf("the Pod has the memory of claims %+v, want some: %t", statuses, wanted))
	}
	return limit
}
