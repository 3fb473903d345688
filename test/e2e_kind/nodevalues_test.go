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
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

// qosReserved has kubelet lower the memory limits of the cgroups of QoS classes, which stay,
// and a Pod below them runs on.
func (n *realNode) qosReserved(t *testing.T) {
	gate := string(features.QOSReserved)
	was := n.limitsOfClasses(t)
	if len(was) == 0 {
		t.Skip("the cgroups of QoS classes have no memory.limit_in_bytes: this is not cgroup v1")
	}
	n.restart(gate, true, map[string]any{"qosReserved": map[string]any{"memory": "50%"}})
	framework.Eventually(t, "lower limits of memory of all classes", func() error {
		now := n.limitsOfClasses(t)
		for file, limit := range was {
			if value, ok := now[file]; !ok || value >= limit {
				return fmt.Errorf("the limits were %v, and are %v", was, now)
			}
		}
		return nil
	})
	using := createPlainPod(t, n.Cluster, podName)
	// kubelet sets them again each minute until it ends.
	n.Exec(n.name, "systemctl", "stop", "kubelet")
	lowered := n.limitsOfClasses(t)
	n.restart(gate, false, nil)
	n.checkRuns(t, using)
	if diff := cmp.Diff(lowered, n.limitsOfClasses(t)); diff != "" {
		t.Errorf("the limits were %v, and differ with the gate on (-) and off again (+):\n%s", was, diff)
	}
	n.deletePod(using.Name)
	n.restart(gate, false, map[string]any{"qosReserved": nil})
}

// limitsOfClasses are the memory limits in bytes of the cgroups of QoS classes, Burstable and
// BestEffort, by files. cgroup v2 has no such files.
func (n *realNode) limitsOfClasses(t *testing.T) map[string]int64 {
	const files = `find /sys/fs/cgroup -path "*kubepods-b*.slice/memory.limit_in_bytes" ! -path "*-pod*"`
	limits := map[string]int64{}
	for line := range strings.Lines(n.Exec(n.name, "sh", "-c", `for file in $(`+files+`); do echo "$file $(cat "$file")"; done`)) {
		file, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		limit, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("%s is no limit of memory: %v", file, err)
		}
		limits[file] = limit
	}
	return limits
}

// http2Probe changes how kubelet defaults probes, and with that the UIDs of static pods with
// probes by HTTP: kubelet starts them again.
func (n *realNode) http2Probe(t *testing.T) {
	gate := string(features.H2CContainerProbe)
	container := func() string {
		return strings.TrimSpace(n.Exec(n.name, "crictl", "ps", "--quiet", "--name", "^etcd$"))
	}
	was := container()
	n.restart(gate, true, nil)
	framework.Eventually(t, "another container of etcd", func() error {
		if now := container(); now == "" || now == was {
			return fmt.Errorf("the containers are %q, and were %q", now, was)
		}
		return nil
	})
	was = container()
	n.restart(gate, false, nil)
	framework.Eventually(t, "another container of etcd with the gate off", func() error {
		if now := container(); now == "" || now == was {
			return fmt.Errorf("the containers are %q, and were %q", now, was)
		}
		return nil
	})
}

// memoryQoS has kubelet write memory.high, and with a policy memory.low, into cgroups, which
// cgroup v1 does not have. A container keeps its own with the gate off, and one that starts
// then gets none.
func (n *realNode) memoryQoS(t *testing.T) {
	if n.Exec(n.name, "stat", "--file-system", "--format=%T", "/sys/fs/cgroup") != "cgroup2fs\n" {
		t.Skip("cgroup v1 has neither memory.low nor memory.high: kubelet cannot write them here")
	}
	gate := string(features.MemoryQoS)
	n.restart(gate, true, map[string]any{"memoryReservationPolicy": "TieredReservation", "memoryThrottlingFactor": 0.9})
	using := n.createBurstablePod(t, "burstable")
	const unset = "0 max"
	was := n.memoryOf(using)
	if was == unset {
		t.Errorf("with the gate on memory.low and memory.high of the container are %q", was)
	}
	n.restart(gate, false, map[string]any{"memoryReservationPolicy": nil, "memoryThrottlingFactor": nil})
	n.checkRuns(t, using)
	if now := n.memoryOf(using); now != was {
		t.Errorf("memory.low and memory.high of the container were %q, and are %q with the gate off", was, now)
	}
	other := n.createBurstablePod(t, "burstable-without")
	if got := n.memoryOf(other); got != unset {
		t.Errorf("with the gate off memory.low and memory.high of a new container are %q, want %q", got, unset)
	}
	n.deletePod(using.Name)
	n.deletePod(other.Name)
	n.restart(gate, true, nil)
}

// memoryOf returns memory.low and memory.high of the first container of a Pod.
func (n *realNode) memoryOf(pod *corev1.Pod) string {
	_, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	const script = `dir=$(find /sys/fs/cgroup -type d -name "*$1*" | head -n 1); cat "$dir/memory.low" "$dir/memory.high"`
	return strings.Join(strings.Fields(n.Exec(n.name, "sh", "-ec", script, "sh", id)), " ")
}

// createBurstablePod creates a Pod with less memory requested than it may use, and waits until
// it runs.
func (n *realNode) createBurstablePod(t *testing.T, name string) *corev1.Pod {
	n.Eventually("the Pod "+name+" to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "main", Image: pauseImage(t, n.Cluster, n.name), ImagePullPolicy: corev1.PullNever,
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("16Mi")},
					Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
				},
			}}},
		}, metav1.CreateOptions{})
		return err
	})
	return waitForPodNamed(t, n.Cluster, name, "running", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}
