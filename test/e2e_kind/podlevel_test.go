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
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/utils/ptr"
)

// Files in which kubelet has what Pods were given alone.
const (
	cpuState    = root + "cpu_manager_state"
	memoryState = root + "memory_manager_state"
)

// givenCPUs are the data of cpu_manager_state, by UIDs of Pods.
type givenCPUs struct {
	Entries    map[string]map[string]string
	PodEntries map[string]struct{ CPUSet string }
	Baselines  map[string]map[string]struct{ Baseline string }
}

// givenMemory are the data of memory_manager_state, by UIDs of Pods.
type givenMemory struct {
	Entries    map[string]map[string][]memoryBlock
	PodEntries map[string]struct{ MemoryBlocks []memoryBlock }
}

type memoryBlock struct{ Size int64 }

// cpus reads cpu_manager_state.
func (n *realNode) cpus(t *testing.T) (given givenCPUs) {
	t.Helper()
	n.readState(t, cpuState, &given)
	return given
}

// memory reads memory_manager_state.
func (n *realNode) memory(t *testing.T) (given givenMemory) {
	t.Helper()
	n.readState(t, memoryState, &given)
	return given
}

// readState reads the data of a file, which are a text in it. kubelet is healthy some seconds
// before it writes a file that is not there.
func (n *realNode) readState(t *testing.T, file string, into any) {
	t.Helper()
	var checkpoint struct{ Data string }
	framework.Eventually(t, "kubelet to write "+file, func() error {
		content := n.Exec(n.name, "sh", "-c", `cat "$1" 2>/dev/null || true`, "sh", file)
		if err := json.Unmarshal([]byte(content), &checkpoint); err != nil {
			return fmt.Errorf("it is %q: %w", content, err)
		}
		return nil
	})
	if err := json.Unmarshal([]byte(checkpoint.Data), into); err != nil {
		t.Fatalf("the data of %s are %s: %v", file, checkpoint.Data, err)
	}
}

const (
	podLevelPod    = "pod-level"
	podLevelMemory = "64Mi"
	// unlike is what kubelet says as it ends, beside a file of memory that it cannot read.
	unlike = "the expected machine state is different from the real one"
)

// resourcesOfPods gives Pods a CPU and memory as a whole. kubelet without the gate runs on
// beside the files where a Pod has one container. Where it has several, each has all memory
// of the Pod in the file, and kubelet ends until the file is deleted.
func (n *realNode) resourcesOfPods(t *testing.T) {
	n.stopDNS()
	fields := staticPolicies()
	fields["topologyManagerScope"], fields["topologyManagerPolicy"] = "pod", "best-effort"
	n.withGates(true, true, fields)
	was := n.createPodLevelPod(t, 1)
	given := n.checkGiven(t, was)
	n.withGates(false, false)
	n.checkKept(t, was, given)
	n.deletePod(podLevelPod)
	n.waitForgotten(t, cpuState, string(was.UID))

	n.withGates(true, true)
	was = n.createPodLevelPod(t, 2)
	given = n.checkGiven(t, was)
	n.configure(false, false)
	n.RestartKubelet(n.name)
	n.waitForEnd(t, unlike)
	n.configure(false, true)
	n.RestartKubelet(n.name)
	n.WaitForKubelet(n.name)
	n.checkRuns(t, was)
	if cpus := n.cpus(t); len(cpus.PodEntries) > 0 || len(cpus.Entries[string(was.UID)]) > 0 {
		t.Errorf("the Pod had %s, and with new files and the gate off it has %+v", given, cpus)
	}
	n.deletePod(podLevelPod)
	for name := range fields {
		fields[name] = nil
	}
	n.withGates(false, true, fields)
}

// createPodLevelPod creates a Pod with resources as a whole, and containers without, and
// waits until they run.
func (n *realNode) createPodLevelPod(t *testing.T, containers int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: podLevelPod}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		Resources:                     &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse(podLevelMemory)}},
	}}
	for i := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprint("c", i), Image: pauseImage(t, n.Cluster, n.name), ImagePullPolicy: corev1.PullNever,
		})
	}
	n.Eventually("the Pod to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	return waitForPodNamed(t, n.Cluster, podLevelPod, "running", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Running == nil })
	})
}

// checkGiven checks what the files have of a Pod: what it was given as a whole, and the same
// for each container. It returns the CPU.
func (n *realNode) checkGiven(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	uid, memorySize := string(pod.UID), resource.MustParse(podLevelMemory)
	cpus, memory := n.cpus(t), n.memory(t)
	given := cpus.PodEntries[uid].CPUSet
	blocks := memory.PodEntries[uid].MemoryBlocks
	if given == "" || strings.ContainsAny(given, ",-") || len(blocks) != 1 || blocks[0].Size != memorySize.Value() {
		t.Errorf("the Pod was given the CPUs %q and the memory %+v, want one and %s", given, blocks, podLevelMemory)
	}
	for _, container := range pod.Spec.Containers {
		blocks := memory.Entries[uid][container.Name]
		if cpu := cpus.Entries[uid][container.Name]; cpu != given || len(blocks) != 1 || blocks[0].Size != memorySize.Value() {
			t.Errorf("the container %s was given the CPUs %q and the memory %+v, want %q and %s", container.Name, cpu, blocks, given, podLevelMemory)
		}
	}
	return given
}

// checkKept checks that a Pod runs on with its CPU, and that kubelet without the gate left
// its containers in the files.
func (n *realNode) checkKept(t *testing.T, was *corev1.Pod, cpu string) {
	t.Helper()
	n.checkRuns(t, was)
	uid := string(was.UID)
	if cpus := n.cpus(t); !maps.Equal(cpus.Entries[uid], map[string]string{"c0": cpu}) {
		t.Errorf("kubelet with the gate off has the CPUs %+v, want %s for the container", cpus, cpu)
	}
	if blocks := n.memory(t).Entries[uid]["c0"]; len(blocks) != 1 {
		t.Errorf("kubelet with the gate off has the memory %+v for the container", blocks)
	}
	_, id, _ := strings.Cut(was.Status.ContainerStatuses[0].ContainerID, "://")
	if allowed := n.allowedCPUs(id); allowed != cpu {
		t.Errorf("the container may use the CPUs %s, and had %s", allowed, cpu)
	}
}

// checkRuns checks that a Pod has the containers that it had, once kubelet has decided about it.
func (n *realNode) checkRuns(t *testing.T, was *corev1.Pod) {
	t.Helper()
	n.waitForManagers(t)
	is := waitForPodNamed(t, n.Cluster, was.Name, "read", func(*corev1.Pod) bool { return true })
	if is.UID != was.UID || is.Status.Phase != corev1.PodRunning {
		t.Errorf("the Pod %s was %+v, and is %+v", was.Name, was.Status, is.Status)
	}
	for i, status := range is.Status.ContainerStatuses {
		if status.State.Running == nil || status.ContainerID != was.Status.ContainerStatuses[i].ContainerID {
			t.Errorf("a container of the Pod %s was %+v, and is %+v", was.Name, was.Status.ContainerStatuses[i], status)
		}
	}
}

// waitForEnd waits until the log of kubelet, which starts again and again, has a text.
func (n *realNode) waitForEnd(t *testing.T, text string) {
	framework.Eventually(t, "kubelet to end with: "+text, func() error {
		log := n.Exec(n.name, "journalctl", "--unit=kubelet", "--output=cat", "--no-pager", "--lines=500")
		if !strings.Contains(log, text) {
			lines := strings.Split(strings.TrimSpace(log), "\n")
			return fmt.Errorf("its log has nothing of that, and ends with:\n%s", strings.Join(lines[max(0, len(lines)-5):], "\n"))
		}
		return nil
	})
}
