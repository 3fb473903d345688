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
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/utils/ptr"
)

// held is what a Feature says while the Pod holds it.
const held = "waiting for 1 pods using stop signals: " + metav1.NamespaceDefault + "/" + podName

// TestOneNode takes a gate through on, used by a container, and off on one node. The
// kubelet writes a field of the status, which is cleared; the Pod has one in its spec,
// which nothing may clear, so that turning off waits until the Pod is deleted.
func TestOneNode(t *testing.T) {
	c := kindcluster.Create(t, kindcluster.Config{FeatureGates: map[string]bool{gate: true}})
	history := framework.RecordFeature(t, c.Etcd(), gate)
	client := c.Client()
	waitForReports(c, true)
	history.Wait(t, 0, "On", framework.In(v1alpha1.StateOn))
	using := createPod(t, c)
	shownOn(t, c, client)

	on := history.Mark()
	node := c.ControlPlanes[0]
	c.SetGate(node, gate, false)
	c.SetGateOfKubeProxies(gate, false)
	turningOff := history.Wait(t, on, "held by the Pod", func(v framework.FeatureVersion) bool {
		return v.Status.State == v1alpha1.StateTurningOff && len(v.Status.Tasks) > 0 && v.Status.Tasks[0].Message == held &&
			condition(v.Feature, v1alpha1.ConditionProgressing).Reason == v1alpha1.ReasonBlocked &&
			condition(v.Feature, v1alpha1.ConditionUsesMatch).Reason == v1alpha1.ReasonAllUsersMatch
	})
	checkHeld(t, c, client, turningOff.Feature, using)
	waitForReports(c, false)

	c.Eventually("the Pod to be deleted", func(ctx context.Context) error {
		return c.Kube.CoreV1().Pods(using.Namespace).Delete(ctx, using.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(using.UID))})
	})
	history.Wait(t, on, "Off", framework.In(v1alpha1.StateOff))
	checkOff(t, c, client)
	checkInvariants(t, history.Since(0))
	// The first versions may still be those of the state On.
	states := slices.DeleteFunc(framework.States(history.Since(on)), func(state v1alpha1.FeatureState) bool { return state == v1alpha1.StateOn })
	if want := []v1alpha1.FeatureState{v1alpha1.StateTurningOff, v1alpha1.StateOff}; !slices.Equal(states, want) {
		t.Errorf("the states after On were %q, want %q", states, want)
	}
}

// shownOn checks what kubectl of the release shows while the gate is on.
func shownOn(t *testing.T, c *kindcluster.Cluster, client kindcluster.Client) {
	t.Helper()
	checkShown(t, client, []string{"Client Version: " + c.Version(), "Server Version: " + c.Version()}, "version")
	checkShown(t, client, []string{gate}, "get", "features", "--namespace=kube-system", gate)
	checkShown(t, client, []string{"feature.features.k8s.io/" + gate + "\n"}, "feature", "list", "--state=On", "--not-default", "--output=name")
	// kubelet queried the gate when it saw the Pod, and reports that within a minute.
	c.WaitForFeature(gate, "used by kubelet", func(f *v1alpha1.Feature) bool {
		return slices.ContainsFunc(f.Status.Uses, func(use v1alpha1.FeatureUse) bool { return use.Component == "kubelet" && use.Count > 0 })
	})
	checkShown(t, client, []string{"Configured:       on", "State:            On", "kubelet"}, "feature", "describe", gate)
	found := processes(t, client)
	for _, component := range components {
		if !slices.ContainsFunc(found, func(p process) bool {
			return p.Component == component && p.Version == c.Version() && p.Enabled && p.Explicit && ptr.Deref(p.Alive, false)
		}) {
			t.Errorf("kubectl feature uses %s has %+v, want a %s of %s that is alive and has an explicit value, on", gate, found, component, c.Version())
		}
	}
	// Without the Pod turning off would not wait.
	output, code := client.Run(t, "feature", "plan", gate, "--disable")
	if code == 0 || !strings.Contains(output, metav1.NamespaceDefault+"/"+podName) {
		t.Errorf("kubectl feature plan: exit code %d, and it has to name the Pod %s:\n%s", code, podName, output)
	}
}

// checkHeld checks a Feature that waits for the Pod, and what is stored meanwhile.
func checkHeld(t *testing.T, c *kindcluster.Cluster, client kindcluster.Client, feature *v1alpha1.Feature, using *corev1.Pod) {
	t.Helper()
	checkCondition(t, feature, v1alpha1.ConditionConsistent, metav1.ConditionTrue, v1alpha1.ReasonServersAgree, "")
	checkCondition(t, feature, v1alpha1.ConditionUsesMatch, metav1.ConditionTrue, v1alpha1.ReasonAllUsersMatch, "all live users have the feature off")
	checkCondition(t, feature, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonBlocked, held)
	checkCondition(t, feature, v1alpha1.ConditionClean, metav1.ConditionUnknown, v1alpha1.ReasonInUse, "")
	if feature.Status.Configured == nil || feature.Status.Configured.Value || feature.Status.Configured.Source != v1alpha1.SourceCommandLine {
		t.Errorf("the configured value is %+v, want off by the command line", feature.Status.Configured)
	}
	c.WaitForEvent(gate, "TaskBlocked", held)
	for name, fields := range stopSignalsOfStatus(t, c) {
		t.Errorf("the status of the Pod %s has the stop signals of %q, though they were cleared", name, fields)
	}
	checkUntouched(t, c, using)
	checkShown(t, client, []string{"State:            TurningOff", held}, "feature", "describe", gate)
	checkShown(t, client, []string{"No process that reported has another value"}, "feature", "uses", gate, "--mismatched")
	if output, code := client.Run(t, "feature", "wait", gate, "--for=state=Off", "--timeout=1s"); code != 2 {
		t.Errorf("kubectl feature wait: exit code %d, want 2, for a wait that is over:\n%s", code, output)
	}
}

// stopSignalsOfStatus are the containers whose status has a stop signal, by Pods. Init
// containers that have ended are left out: kubelet puts the field back into theirs.
func stopSignalsOfStatus(t *testing.T, c *kindcluster.Cluster) map[string][]string {
	t.Helper()
	list, err := c.Kube.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("reading all Pods: %v", err)
	}
	found := map[string][]string{}
	for _, pod := range list.Items {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
			if status.StopSignal != nil && status.State.Terminated == nil {
				name := pod.Namespace + "/" + pod.Name
				found[name] = append(found[name], status.Name)
			}
		}
	}
	return found
}

// checkOff checks a Feature that is off, and that nothing is left.
func checkOff(t *testing.T, c *kindcluster.Cluster, client kindcluster.Client) {
	t.Helper()
	off := c.WaitForFeature(gate, "Off and clean", func(f *v1alpha1.Feature) bool {
		return f.Status.State == v1alpha1.StateOff && condition(f, v1alpha1.ConditionClean).Reason == v1alpha1.ReasonNothingLeft
	})
	checkCondition(t, off, v1alpha1.ConditionClean, metav1.ConditionTrue, v1alpha1.ReasonNothingLeft, "no stored object holds anything of the feature")
	checkCondition(t, off, v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonComplete, "")
	if off.Status.Transition != nil || len(off.Status.Tasks) > 0 {
		t.Errorf("the Feature is Off with the transition %+v and the tasks %+v", off.Status.Transition, off.Status.Tasks)
	}
	for name, fields := range stopSignalsOfStatus(t, c) {
		t.Errorf("the status of the Pod %s has the stop signals of %q while the feature is Off", name, fields)
	}
	checkShown(t, client, []string{"has the state Off"}, "feature", "wait", gate, "--for=state=Off", "--timeout=1m")
	checkShown(t, client, []string{"feature.features.k8s.io/" + gate + "\n"}, "feature", "list", "--state=Off", "--output=name")
	for _, p := range processes(t, client) {
		if p.Enabled && ptr.Deref(p.Alive, true) {
			t.Errorf("kubectl feature uses %s has %+v, want it off", gate, p)
		}
	}
}
