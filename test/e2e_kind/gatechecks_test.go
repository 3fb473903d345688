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
	"k8s.io/apimachinery/pkg/types"
)

// restartedOnce returns an error unless the first container of a Pod runs for the second time.
// A Pod whose container the runtime could not start is made again: none may start it again.
func (n *usedNode) restartedOnce(name string) error {
	pod := n.pod(name)
	statuses := pod.Status.ContainerStatuses
	if len(statuses) > 0 && statuses[0].State.Terminated != nil && statuses[0].State.Terminated.Reason == "StartError" {
		n.deletePod(name)
		n.createPod(n.restarting(name))
	}
	if len(statuses) == 0 || statuses[0].RestartCount != 1 || statuses[0].State.Running == nil {
		return fmt.Errorf("the containers of %s are %+v, want the first to run for the second time", name, statuses)
	}
	return nil
}

// hasRange returns an error unless kubelet has a Pod's range of user IDs in its file, or has not.
func (n *usedNode) hasRange(pod string, wanted bool) error {
	content := n.shell("cat "+root+"pods/$1/userns", string(n.pod(pod).UID))
	if strings.Contains(content, `"uidMappings"`) != wanted {
		return fmt.Errorf("want a file userns of %s: %t; it is %q", pod, wanted, content)
	}
	return nil
}

// isMapped returns an error unless a container's root is another user on the node.
func (n *usedNode) isMapped(pod string) error {
	ids := strings.Fields(n.inPod(pod, "cat", "/proc/self/uid_map"))
	if len(ids) != 3 || ids[0] != "0" || ids[1] == "0" {
		return fmt.Errorf("the users of %s are mapped as %q", pod, ids)
	}
	return nil
}

// fileOf reads a file of the volume data of a Pod.
func (n *usedNode) fileOf(pod, file string) string {
	return n.shell("cat "+root+"pods/$1/volumes/kubernetes.io~empty-dir/"+data+"/"+file, string(n.pod(pod).UID))
}

// fileGoesToRoot changes the Secret: kubelet without the gate gives the file to root when it
// writes it again, and the container of another user cannot read it any more.
func fileGoesToRoot(n *usedNode) error {
	ctx := n.t.Context()
	_, secretErr := n.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Patch(ctx, secret, types.MergePatchType, []byte(`{"stringData":{"key":"new"}}`), metav1.PatchOptions{})
	// kubelet syncs a Pod that changes, with its volumes.
	mark := fmt.Appendf(nil, `{"metadata":{"annotations":{"test":%q}}}`, n.inPod("file-users", "stat", "/secret/key"))
	_, podErr := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Patch(ctx, "file-users", types.MergePatchType, mark, metav1.PatchOptions{})
	if err := errors.Join(secretErr, podErr); err != nil {
		return err
	}
	if got := n.inPod("file-users", "cat", "/secret/key"); !strings.Contains(got, "Permission denied") {
		return fmt.Errorf("the container reads %q, want an error", got)
	}
	return want("the file's owner", n.shell("stat -L -c %u "+root+"pods/$1/volumes/kubernetes.io~secret/secret/key", string(n.pod("file-users").UID)), "0")
}

func hasMode(n *usedNode) error {
	return want("the mode", n.inPod("mode", "stat", "-c", "%a", "/data"), "750")
}

// variableIsEmpty ends the container, which kubelet starts again without the variable.
func variableIsEmpty(n *usedNode) error {
	if n.pod("env-file").Status.ContainerStatuses[0].RestartCount == 0 {
		return fmt.Errorf("the container is stopped: %s", n.stopContainer("env-file"))
	}
	return want("the variable", n.fileOf("env-file", "out"), "")
}

// stopContainer ends the container of a Pod.
func (n *usedNode) stopContainer(pod string) string {
	_, id, _ := strings.Cut(n.pod(pod).Status.ContainerStatuses[0].ContainerID, "://")
	return n.shell(`crictl stop --timeout=0 "$1"`, id)
}

// checkNotStarted checks that a container that was stopped has not started again, while one
// that was stopped later has (variableIsEmpty).
func (n *usedNode) checkNotStarted(pod string) {
	if running := n.shell(`crictl ps --quiet --label "io.kubernetes.pod.name=$1"`, pod); running != "" {
		n.t.Errorf("kubelet started a container of %s again: %s", pod, running)
	}
}

// ruleIsIgnored has the container exit as its rule has it: kubelet does not start it again.
func ruleIsIgnored(n *usedNode) error {
	pod := n.pod("restart-rule")
	n.shell("touch "+root+"pods/$1/volumes/kubernetes.io~empty-dir/"+data+"/2", string(pod.UID))
	if status := pod.Status.ContainerStatuses[0]; pod.Status.Phase != corev1.PodFailed || status.RestartCount != 1 {
		return fmt.Errorf("the Pod is %s, and its container %+v", pod.Status.Phase, status)
	}
	return nil
}

// hasImageWithoutDigest returns an error unless a Pod has the files of an image, and its
// status has no digest of that, which no kubelet up to 1.37.2 writes.
func hasImageWithoutDigest(n *usedNode) error {
	if files := n.inPod("image-volume", "ls", "/image"); !strings.Contains(files, "bin") {
		return fmt.Errorf("the volume has the files %q", files)
	}
	for _, mount := range n.pod("image-volume").Status.ContainerStatuses[0].VolumeMounts {
		if mount.VolumeStatus != nil {
			return fmt.Errorf("the mount has the status %+v; the catalog says that kubelet writes none", mount.VolumeStatus)
		}
	}
	return nil
}

// hasQuota returns an error unless the cgroup of the Pod has what it was resized to.
func (n *usedNode) hasQuota(pod string) error {
	const files = `find /sys/fs/cgroup -path "*pod$1.slice/cpu.cfs_quota_us" -o -path "*pod$1.slice/cpu.max"`
	quota := strings.Fields(n.shell("cat $("+files+")", strings.ReplaceAll(string(n.pod(pod).UID), "-", "_")))
	if len(quota) == 0 || quota[0] != "30000" {
		return fmt.Errorf("the quota of the Pod's cgroup is %q, want 30000", quota)
	}
	return nil
}

// hasCgroups returns an error unless the node has cgroups of a Pod, in any hierarchy, or none.
func (n *usedNode) hasCgroups(pod string, wanted bool) error {
	const find = `find /sys/fs/cgroup -type d -name "*pod$1.slice" 2>/dev/null`
	if found := n.shell(find, strings.ReplaceAll(string(n.pod(pod).UID), "-", "_")); (found != "") != wanted {
		return fmt.Errorf("the cgroups of %s are %q, want some: %t", pod, found, wanted)
	}
	return nil
}

// records returns an error unless kubelet's file of what it gave to Pods has a text about one.
func (n *usedNode) records(pod, text string) error {
	_, after, _ := strings.Cut(n.shell("cat "+allocations), string(n.pod(pod).UID))
	if entry, _, _ := strings.Cut(strings.ReplaceAll(after, `\`, ""), "ContainerResources"); !strings.Contains(strings.ReplaceAll(after, `\`, ""), text) {
		return fmt.Errorf("the record of %s is %q, want one with %q", pod, entry, text)
	}
	return nil
}

// podResized returns an error unless kubelet resized the Pod and wrote so.
func podResized(n *usedNode) error {
	status := n.pod("pod-resources").Status
	if status.Resources == nil || status.Resources.Limits.Cpu().String() != "300m" || status.AllocatedResources.Cpu().String() != "300m" {
		return fmt.Errorf("the Pod has the resources %+v and %+v, want 300m of cpu", status.Resources, status.AllocatedResources)
	}
	return n.hasQuota("pod-resources")
}

// allocations is kubelet's file of what it gave to Pods.
const allocations = root + "allocated_pods_state"

// recorded are the names of Pods that kubelet's file of what it gave to Pods has.
func (n *usedNode) recorded() (names []string) {
	records := n.shell("cat " + allocations)
	for name, pod := range n.before {
		if strings.Contains(records, string(pod.UID)) {
			names = append(names, name)
		}
	}
	return names
}

// checkRecorded checks that the file has Pods, which are gone. kubelet writes it again only
// for another Pod.
func (n *usedNode) checkRecorded(names []string) {
	if len(names) == 0 {
		n.t.Errorf("%s had none of the Pods while they ran", allocations)
	}
	now := n.recorded()
	for _, name := range names {
		if !slices.Contains(now, name) {
			n.t.Errorf("%s forgot the Pod %s before it was written for another: it has %q", allocations, name, now)
		}
	}
}

// podStaysResized returns an error unless the fields of status are gone and the cgroup is as
// it was resized.
func podStaysResized(n *usedNode) error {
	status := n.pod("pod-resources").Status
	if status.Resources != nil || status.AllocatedResources != nil {
		return fmt.Errorf("the Pod has the resources %+v and %+v, want none", status.Resources, status.AllocatedResources)
	}
	return n.hasQuota("pod-resources")
}

// createSources creates the Secret and the bundle that volumes have, and claims.
func (n *usedNode) createSources() {
	n.Eventually("the Secret to be created", func(ctx context.Context) error {
		_, err := n.Kube.CoreV1().Secrets(metav1.NamespaceDefault).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"key": "old"},
		}, metav1.CreateOptions{})
		return err
	})
	n.createBundle()
	n.createClaims()
	n.createNodePort()
}
