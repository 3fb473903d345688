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
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/component-base/featuregate"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/pkg/featurelifecycle/catalog"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/kubernetes/pkg/features"
)

// gateUse is a gate that a node writes for, and that is turned off while a Pod uses it.
type gateUse struct {
	gate featuregate.Feature
	// pod is the name of the Pod, empty if the node writes without one.
	pod string
	// used returns an error until the node wrote what the gate is for.
	used func(*usedNode) error
	// waits is true if the Feature waits for the Pod, by its name.
	waits bool
	// ends is the reason of the event with which kubelet ends the Pod when it starts with the
	// gate off. Without one the Pod keeps its containers.
	ends string
	// deleted is true if a controller deletes the Pod when it starts with the gate off.
	deleted bool
	// left returns an error until the node and the Pod are as they stay with the gate off.
	left func(*usedNode) error
	// stuck is true if left ends the Pod's container, which kubelet cannot start again.
	stuck bool
}

// usedNode is the node on which the gates are used.
type usedNode struct {
	*kindcluster.Cluster
	t    *testing.T
	name string
	// etcd is the image of etcd that the node has.
	etcd string
	// before has the Pods as they were with the gates on.
	before map[string]*corev1.Pod
	// authority signs certificates of Pods.
	authority authority
	// groupClaim is the claim that was made for a group of Pods.
	groupClaim string
}

// TestGatesWithPods turns gates off on a node whose Pods use them, and checks for each what
// the catalog says: what the node wrote, what becomes of the Pod, and what stays.
func TestGatesWithPods(t *testing.T) {
	c := kindcluster.Create(t, kindcluster.Config{
		ProxyMode: "nftables",
		// Groups of Pods, without which no claim is one of a group's.
		FeatureGates:  map[string]bool{string(features.GenericWorkload): true},
		RuntimeConfig: map[string]string{schedulingv1beta1.SchemeGroupVersion.String(): "true"},
	})
	c.LoadOwnImages()
	n := &usedNode{Cluster: c, t: t, name: c.ControlPlanes[0], before: map[string]*corev1.Pod{}, authority: newAuthority(t)}
	n.etcd = nodeImage(t, c, n.name, "registry.k8s.io/etcd")
	first, last := gateUses(), lateGateUses()
	etcd, histories := c.Etcd(), map[featuregate.Feature]*framework.History{}
	for _, use := range slices.Concat(first, last) {
		histories[use.gate] = framework.RecordFeature(t, etcd, string(use.gate))
	}
	n.selectLocalhost()
	n.turnOn(histories)
	n.createPods()
	for _, use := range first {
		n.checkUsed(t, use)
	}
	for _, use := range last[:1] {
		n.checkUsed(t, use)
	}
	n.turnOff(first, histories)
	for _, use := range first {
		if use.stuck {
			n.checkNotStarted(use.pod)
		}
	}
	recorded := n.recorded()
	n.deletePods(first)
	n.checkRecorded(recorded)
	n.deleteGroup()
	n.deleteClaims()

	// The other Pods of the node go with the taint.
	n.taint()
	n.checkUsed(t, last[1])
	n.turnOff(last, histories, features.PodLevelResourcesFixDefaulting, features.PodLevelResourcesFixKubeletQOSClass)
	n.deletePods(last)
	n.checkRecorded([]string{"pod-resources"})
	n.checkForgotten()
	stores := map[featuregate.Feature]bool{}
	for _, e := range catalog.All() {
		stores[e.Name] = len(e.OnDisable) > 0
	}
	for _, use := range slices.Concat(first, last) {
		t.Run(string(use.gate)+"/Off", func(t *testing.T) {
			clean := v1alpha1.ReasonNothingLeft
			if !stores[use.gate] {
				clean = v1alpha1.ReasonNothingDeclared
			}
			n.WaitForFeature(string(use.gate), "Off, and Clean with "+clean, func(f *v1alpha1.Feature) bool {
				return f.Status.State == v1alpha1.StateOff && condition(f, v1alpha1.ConditionClean).Reason == clean
			})
			checkInvariants(t, histories[use.gate].Since(0))
		})
	}
}

// turnOn turns the gates on that are off by default, and waits for them.
func (n *usedNode) turnOn(histories map[featuregate.Feature]*framework.History) {
	gates, marks := map[string]bool{}, map[featuregate.Feature]int{}
	for _, gate := range offByDefault {
		gates[string(gate)] = true
		histories[gate].Wait(n.t, 0, "Off", framework.In(v1alpha1.StateOff))
		marks[gate] = histories[gate].Mark()
	}
	n.SetGates(n.name, gates)
	n.SetGatesOfKubeProxies(gates)
	for _, gate := range offByDefault {
		histories[gate].Wait(n.t, marks[gate], "TurningOn", framework.In(v1alpha1.StateTurningOn))
		histories[gate].Wait(n.t, marks[gate], "On", framework.In(v1alpha1.StateOn))
	}
	n.WaitForKubelet(n.name)
}

// checkUsed waits until the node wrote what a gate is for, and keeps the Pod as it is then.
func (n *usedNode) checkUsed(t *testing.T, use gateUse) {
	framework.Eventually(t, "the node to use "+string(use.gate), func() error { return use.used(n) })
	if use.pod != "" {
		n.before[use.pod] = n.pod(use.pod)
	}
}

// turnOff turns gates off in all components, with those that need them, and checks each.
func (n *usedNode) turnOff(uses []gateUse, histories map[featuregate.Feature]*framework.History, needing ...featuregate.Feature) {
	gates, marks := map[string]bool{}, map[featuregate.Feature]int{}
	for _, gate := range needing {
		gates[string(gate)] = false
	}
	for _, use := range uses {
		gates[string(use.gate)] = false
		marks[use.gate] = histories[use.gate].Mark()
	}
	n.SetGates(n.name, gates)
	n.SetGatesOfKubeProxies(gates)
	n.WaitForKubelet(n.name)
	for _, use := range uses {
		n.t.Run(string(use.gate), func(t *testing.T) { n.checkTurnedOff(t, use, histories[use.gate], marks[use.gate]) })
	}
}

// checkTurnedOff checks a gate that is off everywhere: its Feature, its Pod, and the node.
func (n *usedNode) checkTurnedOff(t *testing.T, use gateUse, history *framework.History, mark int) {
	if use.waits {
		history.Wait(t, mark, "held by the Pod "+use.pod, func(v framework.FeatureVersion) bool {
			return v.Status.State == v1alpha1.StateTurningOff && slices.ContainsFunc(v.Status.Tasks, func(task v1alpha1.FeatureTask) bool {
				return strings.Contains(task.Message, metav1.NamespaceDefault+"/"+use.pod)
			})
		})
	} else {
		history.Wait(t, mark, "Off", framework.In(v1alpha1.StateOff))
	}
	switch {
	case use.pod == "":
	case use.deleted:
		framework.Eventually(t, "the Pod "+use.pod+" to be deleted", func() error { return n.isGone(use.pod) })
	case use.ends != "":
		framework.Eventually(t, "the Pod "+use.pod+" to have ended", func() error { return n.isRefused(use.pod, use.ends, "") })
	default:
		n.checkContainersKept(t, use.pod)
	}
	if use.left != nil {
		framework.Eventually(t, "the node to be without "+string(use.gate), func() error { return use.left(n) })
	}
}

// checkContainersKept compares a Pod with what it was: the same object and containers, which run.
func (n *usedNode) checkContainersKept(t *testing.T, name string) {
	was, is := n.before[name], n.pod(name)
	if is.UID != was.UID || is.DeletionTimestamp != nil || is.Status.Phase != corev1.PodRunning {
		t.Errorf("the Pod %s was %s with the UID %s, and is %s with the UID %s, deleted at %v", name, was.Status.Phase, was.UID, is.Status.Phase, is.UID, is.DeletionTimestamp)
	}
	for i, status := range is.Status.ContainerStatuses {
		before := was.Status.ContainerStatuses[i]
		if status.State.Running == nil || status.ContainerID != before.ContainerID || status.RestartCount != before.RestartCount {
			t.Errorf("a container of the Pod %s was %+v, and is %+v", name, before, status)
		}
	}
}

// isRefused returns an error unless kubelet has ended a Pod with a reason and a text. An event
// with the same may be lost: kubelet starts before the server does, and drops it.
func (n *usedNode) isRefused(name, reason, text string) error {
	status := n.pod(name).Status
	if status.Phase != corev1.PodFailed || status.Reason != reason || !strings.Contains(status.Message, text) {
		return fmt.Errorf("the Pod %s is %s with the reason %q, message %q; want it refused with %s, %q", name, status.Phase, status.Reason, status.Message, reason, text)
	}
	return nil
}

// hasEvent returns an error unless a Pod has an event with a reason and a text.
func (n *usedNode) hasEvent(pod, reason, text string) error {
	list, err := n.Kube.CoreV1().Events(metav1.NamespaceDefault).List(n.t.Context(), metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.name": pod, "reason": reason}.String()})
	if err != nil {
		return err
	}
	for _, event := range list.Items {
		if strings.Contains(event.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("the Pod %s has %d events with the reason %s, and none with the text %q", pod, len(list.Items), reason, text)
}

// isGone returns an error while there is a Pod.
func (n *usedNode) isGone(name string) error {
	_, err := n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Get(n.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("it is there"))
}

// pod reads a Pod.
func (n *usedNode) pod(name string) (found *corev1.Pod) {
	n.Eventually("the Pod "+name+" to be read", func(ctx context.Context) (err error) {
		found, err = n.Kube.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return found
}

// shell runs a script in the node, with arguments, and returns what it printed, also to its
// error stream, whether it fails or not.
func (n *usedNode) shell(script string, args ...string) string {
	return strings.TrimSpace(n.Exec(n.name, append([]string{"sh", "-c", "exec 2>&1; " + script + "; true", "sh"}, args...)...))
}

// inPod runs a command in the first container of a Pod, as shell does.
func (n *usedNode) inPod(pod string, command ...string) string {
	statuses := n.pod(pod).Status.ContainerStatuses
	if len(statuses) == 0 || statuses[0].ContainerID == "" {
		return "no container"
	}
	_, id, _ := strings.Cut(statuses[0].ContainerID, "://")
	return n.shell(`crictl exec "$@"`, append([]string{id}, command...)...)
}

// want returns an error unless something is as wanted.
func want(what, got, wanted string) error {
	if got != wanted {
		return fmt.Errorf("%s is %q, want %q", what, got, wanted)
	}
	return nil
}
