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
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/kindcluster"
	"k8s.io/kubernetes-features/test/e2e_kind/nodeconfig"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"
)

// TestGatesOfKubelet turns gates on and off whose state is on nodes, and checks what the
// catalog says of it: what kubelet writes, what stays, and that it starts with the gate off.
func TestGatesOfKubelet(t *testing.T) {
	c := kindcluster.Create(t, kindcluster.Config{})
	n := &realNode{Cluster: c, t: t, name: c.ControlPlanes[0]}
	ran := false
	for _, trial := range kubeletTrials {
		t.Run(trial.name, func(t *testing.T) {
			ran = true
			defer func() {
				if t.Failed() {
					n.deletePodsOfTrial()
				}
			}()
			trial.run(n, t)
		})
	}
	if !ran {
		t.Errorf("no trial has the name that -test.run gives, %q: see kubeletTrials", flag.Lookup("test.run").Value)
	}
}

// deletePodsOfTrial deletes what a trial left that failed, so that it fails no other.
func (n *realNode) deletePodsOfTrial() {
	var left *corev1.PodList
	n.Eventually("the Pods of the trial to be listed", func(ctx context.Context) (err error) {
		left, err = n.Kube.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		return err
	})
	for _, pod := range left.Items {
		n.deletePod(pod.Name)
	}
}

// kubeletTrial is a part of TestGatesOfKubelet.
type kubeletTrial struct {
	name string
	run  func(*realNode, *testing.T)
	// gates are those that it turns off while a Pod runs, of which the catalog says what was
	// seen, with what it says of that Pod.
	gates map[featuregate.Feature]string
}

// kubeletTrials are in the order in which they run.
var kubeletTrials = []kubeletTrial{
	{"StateWithoutPolicies", (*realNode).podLevelResourceManagers, nil},
	trialOf(features.PodsAPI, (*realNode).podsAPI, runsOn),
	trialOf(features.RotateKubeletServerCertificate, (*realNode).rotateServerCertificate, runsOn),
	trialOf(features.ContainerCheckpoint, (*realNode).containerCheckpoint, runsOn),
	// It has run on no machine with cgroup v2, so that the catalog has nothing of it.
	{"MemoryQoS", (*realNode).memoryQoS, nil},
	trialOf(features.QOSReserved, (*realNode).qosReserved, "runs on below the limit"),
	trialOf(features.H2CContainerProbe, (*realNode).http2Probe, "Static Pods with probes by HTTP start again"),
	trialOf(features.KubeletEnsureSecretPulledImages, (*realNode).ensureSecretPulledImages, "runs on; Pods without the Secret get the image, too"),
	trialOf(features.KubeletServiceAccountTokenForCredentialProviders, (*realNode).tokensForPlugin, runsOn),
	{"ExclusiveCPUsAndMemory", (*realNode).exclusive, exclusiveGates},
	trialOf(features.PodLevelResourceManagers, (*realNode).resourcesOfPods, runsOn),
	// It ends all Pods.
	{"GracefulNodeShutdown", (*realNode).gracefulShutdown, map[featuregate.Feature]string{
		features.GracefulNodeShutdown: runsOn, features.GracefulNodeShutdownBasedOnPodPriority: runsOn,
	}},
}

// runsOn is what the catalog says of a Pod that keeps its containers.
const runsOn = "runs on"

// trialOf is a trial of one gate, whose name it has.
func trialOf(gate featuregate.Feature, run func(*realNode, *testing.T), pods string) kubeletTrial {
	return kubeletTrial{string(gate), run, map[featuregate.Feature]string{gate: pods}}
}

// realNode is a node whose kubelet gets a configuration for each gate.
type realNode struct {
	*kindcluster.Cluster
	t    *testing.T
	name string
}

// root is kubelet's root directory.
const root = "/var/lib/kubelet/"

// configureGate sets a gate in the configuration of kubelet, which does not start again for that.
func (n *realNode) configureGate(gate string, value bool) {
	n.EditKubelet(n.name, func(data []byte) ([]byte, error) { return nodeconfig.SetGate(data, gate, value) })
}

// restart starts kubelet with a gate and fields of its configuration; a nil field is unset.
func (n *realNode) restart(gate string, value bool, fields map[string]any) {
	n.EditKubelet(n.name, func(data []byte) ([]byte, error) {
		for name, field := range fields {
			var err error
			if data, err = nodeconfig.SetField(data, field, name); err != nil {
				return nil, err
			}
		}
		return nodeconfig.SetGate(data, gate, value)
	})
	n.RestartKubelet(n.name)
	n.WaitForKubelet(n.name)
}

// has tells whether the node has a file.
func (n *realNode) has(file string) bool {
	return strings.TrimSpace(n.Exec(n.name, "sh", "-c", `if [ -e "$1" ]; then echo yes; fi`, "sh", file)) == "yes"
}

// waitForManagers waits until kubelet has started what reads its files, sets cgroups up and
// decides about Pods: it answers that it is healthy some seconds before. It runs Pods only
// after (updateRuntimeUp of k8s.io/kubernetes/pkg/kubelet), and new ones after old ones, so
// that a new Pod is run, and waited for until it is gone.
func (n *realNode) waitForManagers(t *testing.T) {
	t.Helper()
	n.deletePod(createPlainPod(t, n.Cluster, "managers").Name)
}

// waitFor waits for a file: kubelet answers that it is healthy before it has written all.
func (n *realNode) waitFor(t *testing.T, file string) {
	framework.Eventually(t, "the node to have "+file, func() error {
		if !n.has(file) {
			return fmt.Errorf("there is none")
		}
		return nil
	})
}

// podLevelResourceManagers has kubelet write both state files, without any policy, which
// are the same with the gate on and off, so that kubelet starts beside either.
func (n *realNode) podLevelResourceManagers(t *testing.T) {
	gate := string(features.PodLevelResourceManagers)
	files := []string{cpuState, memoryState}
	written := map[bool]map[string]string{}
	for _, on := range []bool{false, true} {
		n.Exec(n.name, append([]string{"rm"}, files...)...)
		n.restart(gate, on, nil)
		n.waitForManagers(t)
		written[on] = map[string]string{}
		for _, file := range files {
			written[on][file] = n.Exec(n.name, "cat", file)
		}
	}
	if diff := cmp.Diff(written[false], written[true]); diff != "" {
		t.Errorf("the state files differ with the gate off (-) and on (+):\n%s", diff)
	}
	n.restart(gate, false, nil)
	n.waitForManagers(t)
	for _, file := range files {
		if now := n.Exec(n.name, "cat", file); now != written[true][file] {
			t.Errorf("kubelet with the gate off made %s of %s, which was %s", now, file, written[true][file])
		}
	}
}

// podsAPI ends a kubelet in order, and another by a crash. Either leaves the socket's file:
// kubelet renames it once it listens (k8s.io/cri-client/pkg/util, CreateListener), and what
// closing removes has the other name.
func (n *realNode) podsAPI(t *testing.T) {
	gate := string(features.PodsAPI)
	socket := root + "pods-api/pods-api.sock"
	// The exit code of curl for what it cannot connect to.
	const refused = "7"
	listening := func() bool {
		code := n.Exec(n.name, "sh", "-c", `curl --silent --max-time 5 --unix-socket "$1" http://kubelet/ >/dev/null; echo $?`, "sh", socket)
		return strings.TrimSpace(code) != refused
	}
	serve := func() {
		n.restart(gate, true, nil)
		framework.Eventually(t, "a kubelet with the socket", func() error {
			if !listening() {
				return fmt.Errorf("nothing listens on %s", socket)
			}
			return nil
		})
	}
	var using *corev1.Pod
	left := func(after string) {
		n.checkRuns(t, using)
		if !n.has(socket) || listening() {
			t.Errorf("after %s %s is there: %t, with a listener: %t; want a file without one", after, socket, n.has(socket), listening())
		}
	}
	serve()
	using = createPlainPod(t, n.Cluster, podName)
	n.restart(gate, false, nil)
	left("an end in order")
	serve()
	n.EditKubelet(n.name, func(data []byte) ([]byte, error) { return nodeconfig.SetGate(data, gate, false) })
	n.Exec(n.name, "systemctl", "kill", "--signal=SIGKILL", "--kill-whom=main", "kubelet")
	framework.Eventually(t, "a kubelet without the socket", func() error {
		if listening() {
			return fmt.Errorf("something listens on %s", socket)
		}
		return nil
	})
	n.WaitForKubelet(n.name)
	left("a crash")
	n.deletePod(using.Name)
}

// rotateServerCertificate has kubelet request a certificate, which stays.
func (n *realNode) rotateServerCertificate(t *testing.T) {
	gate := string(features.RotateKubeletServerCertificate)
	current := root + "pki/kubelet-server-current.pem"
	n.restart(gate, true, map[string]any{"serverTLSBootstrap": true})
	n.Eventually("a request of kubelet's to be approved", func(ctx context.Context) error {
		requests := n.Kube.CertificatesV1().CertificateSigningRequests()
		list, err := requests.List(ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("there is none")
		}
		for i := range list.Items {
			list.Items[i].Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
			}}
			if _, err := requests.UpdateApproval(ctx, list.Items[i].Name, &list.Items[i], metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	n.waitFor(t, current)
	using := createPlainPod(t, n.Cluster, podName)
	n.restart(gate, false, map[string]any{"serverTLSBootstrap": nil})
	n.checkRuns(t, using)
	n.deletePod(using.Name)
	if !n.has(current) {
		t.Errorf("%s went, and the catalog says that it stays", current)
	}
}

// createPlainPod creates a Pod that uses no gate, and waits until it runs.
func createPlainPod(t *testing.T, c *kindcluster.Cluster, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{
				Name: "main", Image: pauseImage(t, c, c.Nodes()[0]), ImagePullPolicy: corev1.PullNever,
			}},
		},
	}
	c.Eventually("the Pod "+name+" to be created", func(ctx context.Context) error {
		_, err := c.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	return waitForPodNamed(t, c, name, "running", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
}
