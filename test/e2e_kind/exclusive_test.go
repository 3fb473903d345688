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
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/nodeconfig"
	"k8s.io/kubernetes/pkg/features"
)

// exclusiveGates act on CPUs and memory that containers have alone. A Pod keeps them.
var exclusiveGates = map[featuregate.Feature]string{
	features.CPUManagerPolicyAlphaOptions: runsOn, features.CPUManagerPolicyBetaOptions: runsOn,
	features.InPlacePodVerticalScalingExclusiveCPUs:   "runs on with what it was given",
	features.InPlacePodVerticalScalingExclusiveMemory: "runs on with what it was given",
	features.PodLevelResourceManagers:                 runsOn,
}

// exclusivePod is the name of the Pod with a CPU and memory of its own.
const exclusivePod = "exclusive"

// exclusive gives a Pod a CPU by options of both levels, and memory, which is resized. It
// keeps both with the gates off, and is not resized any more.
func (n *realNode) exclusive(t *testing.T) {
	n.stopDNS()
	static := staticPolicies()
	options := map[string]any{"cpuManagerPolicyOptions": map[string]any{"align-by-socket": "true", "distribute-cpus-across-numa": "true"}}
	n.withGates(true, true, static, options)
	n.createExclusivePod(t)
	running := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
	was := waitForPodNamed(t, n.Cluster, exclusivePod, "running", running)
	n.resizeMemory("96Mi")
	waitForPodNamed(t, n.Cluster, exclusivePod, "resized", func(pod *corev1.Pod) bool {
		resources := pod.Status.ContainerStatuses[0].Resources
		return resources != nil && resources.Limits.Memory().String() == "96Mi"
	})
	// A resize does not change what kubelet's manager of memory has of a Pod.
	given := n.givenTo(t, was)
	if !strings.Contains(given, `"size":67108864`) {
		t.Errorf("the Pod has %s, want 64Mi of memory", given)
	}
	uid := string(was.UID)
	cpus := n.cpus(t)
	if baseline := cpus.Baselines[uid]["main"].Baseline; baseline == "" || baseline != cpus.Entries[uid]["main"] {
		t.Errorf("the Pod has the CPUs %q and the baselines %q, want the same one", cpus.Entries[uid], cpus.Baselines[uid])
	}

	n.withGates(false, false, map[string]any{"cpuManagerPolicyOptions": nil})
	n.resizeMemory("128Mi")
	is := waitForPodNamed(t, n.Cluster, exclusivePod, "refused the resize", func(pod *corev1.Pod) bool {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible {
				return true
			}
		}
		return false
	})
	if !running(is) || was.UID != is.UID || was.Status.ContainerStatuses[0].ContainerID != is.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the Pod was %+v, and is %+v", was.Status, is.Status)
	}
	if now := n.givenTo(t, was); now != given {
		t.Errorf("the Pod had %s, and has %s with the gates off", given, now)
	}
	n.deletePod(exclusivePod)
	n.waitForgotten(t, cpuState, uid)
	if baselines := n.cpus(t).Baselines; len(baselines) > 0 {
		t.Errorf("kubelet with the gate off wrote the baselines %q", baselines)
	}
	// The manager of memory forgets Pods that are gone when it has another to decide about.
	if file := n.Exec(n.name, "cat", memoryState); !strings.Contains(file, uid) {
		t.Errorf("%s forgot the Pod before another started: %s", memoryState, file)
	}
	createPlainPod(t, n.Cluster, podName)
	n.waitForgotten(t, memoryState, uid)
	n.deletePod(podName)
	for name := range static {
		static[name] = nil
	}
	n.withGates(false, true, static)
}

// deletePod deletes a Pod and waits until it is gone.
func (n *realNode) deletePod(name string) {
	n.Eventually("the Pod "+name+" to be gone", func(ctx context.Context) error {
		err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// waitForgotten waits until a file of kubelet does not have a Pod, which is gone.
func (n *realNode) waitForgotten(t *testing.T, file, uid string) {
	framework.Eventually(t, "kubelet to forget the Pod in "+file, func() error {
		if content := n.Exec(n.name, "cat", file); strings.Contains(content, uid) {
			return fmt.Errorf("it has %s", content)
		}
		return nil
	})
}

// staticPolicies are the fields of kubelet's configuration with which Pods get CPUs and
// memory of their own.
func staticPolicies() map[string]any {
	return map[string]any{
		"kubeReserved":     map[string]any{"cpu": "100m", "memory": "100Mi"},
		"cpuManagerPolicy": "static", "memoryManagerPolicy": "Static",
		"reservedMemory": []any{map[string]any{"numaNode": int64(0), "limits": map[string]any{"memory": "100Mi"}}},
	}
}

// withGates starts kubelet with the gates and fields of its configuration. Other policies
// need new files.
func (n *realNode) withGates(value, newFiles bool, fields ...map[string]any) {
	n.configure(value, newFiles, fields...)
	n.RestartKubelet(n.name)
	n.WaitForKubelet(n.name)
}

// configure is withGates for a kubelet that is stopped, and stays so.
func (n *realNode) configure(value, newFiles bool, fields ...map[string]any) {
	n.Exec(n.name, "systemctl", "stop", "kubelet")
	n.EditKubelet(n.name, func(data []byte) (_ []byte, err error) {
		for gate := range exclusiveGates {
			if data, err = nodeconfig.SetGate(data, string(gate), value); err != nil {
				return nil, err
			}
		}
		for _, some := range fields {
			for name, field := range some {
				if data, err = nodeconfig.SetField(data, field, name); err != nil {
					return nil, err
				}
			}
		}
		return data, nil
	})
	if newFiles {
		n.Exec(n.name, "rm", "-f", cpuState, memoryState)
	}
}

// stopDNS has CoreDNS give its CPUs back: a whole one has to be free.
func (n *realNode) stopDNS() {
	n.Eventually("CoreDNS to be stopped", func(ctx context.Context) error {
		_, err := n.Kube.AppsV1().Deployments(metav1.NamespaceSystem).UpdateScale(ctx, "coredns", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: metav1.NamespaceSystem},
		}, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		list, err := n.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d Pods", len(list.Items))
		}
		return err
	})
}

func (n *realNode) createExclusivePod(t *testing.T) {
	n.Eventually("the Pod to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: exclusivePod},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: pauseImage(t, n.Cluster, n.name), ImagePullPolicy: corev1.PullNever,
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("64Mi")}},
			}}},
		}, metav1.CreateOptions{})
		return err
	})
}

func (n *realNode) resizeMemory(memory string) {
	n.Eventually("the Pod to be resized", func(ctx context.Context) error {
		patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"memory":%[1]q},"limits":{"memory":%[1]q}}}]}}`, memory)
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, exclusivePod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
		return err
	})
}

// givenTo returns the CPUs that a Pod's process may use, and what kubelet's files say of the
// Pod's CPUs and memory.
func (n *realNode) givenTo(t *testing.T, pod *corev1.Pod) string {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	cpus := n.allowedCPUs(id)
	if cpus == "" || strings.ContainsAny(cpus, ",-") {
		t.Errorf("the Pod's process may use the CPUs %q, want one", cpus)
	}
	given := "the CPU " + cpus
	for _, file := range []string{cpuState, memoryState} {
		_, entry, found := strings.Cut(n.Exec(n.name, "cat", file), string(pod.UID)+`":`)
		if !found {
			t.Errorf("%s has nothing of the Pod", file)
		}
		entry, _, _ = strings.Cut(entry, "}")
		given += "; " + file + ": " + entry
	}
	return given
}

// allowedCPUs are the CPUs that a container's process may use.
func (n *realNode) allowedCPUs(container string) string {
	pid := strings.TrimSpace(n.Exec(n.name, "crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", container))
	return strings.TrimSpace(n.Exec(n.name, "sed", "-n", `s/^Cpus_allowed_list:\s*//p`, "/proc/"+pid+"/status"))
}
