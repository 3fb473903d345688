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
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// logindConfig is what kubelet writes for logind.
	logindConfig = "/etc/systemd/logind.conf.d/99-kubelet.conf"
	// shutdownState is when the last shutdown began and ended.
	shutdownState = root + "graceful_node_shutdown_state"
)

// gracefulShutdown has kubelet write for logind how long a shutdown may be delayed, and end
// Pods as one is announced. The gates are turned off twice: while a Pod runs, and after the
// shutdown. Both files stay.
func (n *realNode) gracefulShutdown(t *testing.T) {
	n.InstallTrialPackages(n.name)
	n.Exec(n.name, "systemctl", "start", "dbus.socket", "systemd-logind.service")
	n.inhibitShutdowns(t)
	config := n.Exec(n.name, "cat", logindConfig)
	if !strings.Contains(config, "InhibitDelayMaxSec=30") {
		t.Errorf("kubelet wrote %q for logind, want 30 seconds", config)
	}
	using := createPlainPod(t, n.Cluster, podName)
	// A gate that depends on another ends kubelet while it is on without that, also one of
	// Windows, which is on by default.
	const needing, needed = string(features.WindowsGracefulNodeShutdown), string(features.GracefulNodeShutdown)
	n.configureGate(string(features.GracefulNodeShutdownBasedOnPodPriority), false)
	n.configureGate(needed, false)
	n.RestartKubelet(n.name)
	n.waitForEnd(t, fmt.Sprintf("%s is enabled, but depends on features that are disabled: [%s]", needing, needed))
	n.configureGate(needing, false)
	n.permitShutdowns(t)
	n.checkRuns(t, using)
	n.checkStays(t, logindConfig, config)
	n.deletePod(using.Name)

	n.inhibitShutdowns(t)
	n.announceShutdown(t)
	state := n.Exec(n.name, "cat", shutdownState)
	n.permitShutdowns(t)
	n.checkStays(t, logindConfig, config)
	n.checkStays(t, shutdownState, state)
}

// inhibitShutdowns starts kubelet with both gates on, and waits until it inhibits shutdowns,
// which it does once it has written for logind.
func (n *realNode) inhibitShutdowns(t *testing.T) {
	n.configureGate(string(features.GracefulNodeShutdownBasedOnPodPriority), true)
	n.restart(string(features.GracefulNodeShutdown), true, map[string]any{"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"})
	framework.Eventually(t, "kubelet to inhibit shutdowns", func() error {
		if list := n.inhibitors(); !strings.Contains(list, "kubelet") {
			return fmt.Errorf("those that inhibit them are %q", list)
		}
		return nil
	})
}

// permitShutdowns starts kubelet with both gates off, waits until its managers have started,
// and checks that it inhibits nothing.
func (n *realNode) permitShutdowns(t *testing.T) {
	n.configureGate(string(features.GracefulNodeShutdownBasedOnPodPriority), false)
	n.restart(string(features.GracefulNodeShutdown), false, map[string]any{"shutdownGracePeriod": nil, "shutdownGracePeriodCriticalPods": nil})
	n.waitForManagers(t)
	if list := n.inhibitors(); strings.Contains(list, "kubelet") {
		t.Errorf("with the gate off shutdowns are inhibited: %q", list)
	}
}

// inhibitors are the processes that inhibit shutdowns, as logind lists them.
func (n *realNode) inhibitors() string {
	return n.Exec(n.name, "systemd-inhibit", "--list", "--no-legend")
}

// checkStays compares a file with what it was while the gate was on.
func (n *realNode) checkStays(t *testing.T, file, was string) {
	t.Helper()
	if now := n.Exec(n.name, "cat", file); now != was {
		t.Errorf("with the gate off %s is %q, and it was %q", file, now, was)
	}
}

// announceShutdown sends the signal of logind that a shutdown begins, by which kubelet ends
// all Pods, also those of the control plane. No shutdown follows: nodes share the machine.
func (n *realNode) announceShutdown(t *testing.T) {
	// kubelet inhibits shutdowns before it listens for them.
	n.waitForManagers(t)
	n.Exec(n.name, "busctl", "emit", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "PrepareForShutdown", "b", "true")
	framework.Eventually(t, "the end of the shutdown to be noted", func() error {
		// It is the year 1 until then.
		if state := n.Exec(n.name, "sh", "-c", `cat "$1" || true`, "sh", shutdownState); !strings.Contains(state, "endTime") || strings.Contains(state, `"0001-`) {
			return fmt.Errorf("%s is %q", shutdownState, state)
		}
		return nil
	})
	// A container that takes the whole period is killed as the end is noted.
	framework.Eventually(t, "all containers to have ended", func() error {
		if running := strings.Fields(n.Exec(n.name, "crictl", "ps", "--quiet")); len(running) > 0 {
			return fmt.Errorf("these run: %q", running)
		}
		return nil
	})
}

// withoutBreakpoints has CRIU do without hardware breakpoints. A virtual machine may not
// have them, and CRIU then waits for a process without end. It has no setting for that but
// this fault of its own tests.
const withoutBreakpoints = "[Service]\nEnvironment=CRIU_FAULT=130\n"

// containerCheckpoint asks for a checkpoint, which needs CRIU in the node. Where the kernel
// is too new for Debian's, there is none.
func (n *realNode) containerCheckpoint(t *testing.T) {
	gate := string(features.ContainerCheckpoint)
	n.InstallTrialPackages(n.name)
	if says := n.Exec(n.name, "sh", "-c", "criu check 2>&1 || true"); !strings.Contains(says, "Looks good") {
		t.Skipf("Debian's CRIU does not work on this machine's kernel: %s", strings.TrimSpace(says))
	}
	const folder = "/etc/systemd/system/containerd.service.d"
	n.Exec(n.name, "mkdir", "-p", folder)
	n.WriteFile(n.name, folder+"/criu.conf", []byte(withoutBreakpoints))
	n.Exec(n.name, "systemctl", "daemon-reload")
	n.Exec(n.name, "systemctl", "restart", "containerd")
	n.restart(gate, true, nil)
	n.permit()
	using := createPlainPod(t, n.Cluster, podName)
	checkpoints := "https://" + n.name + ":10250/checkpoint/" + using.Namespace + "/" + using.Name + "/" + using.Spec.Containers[0].Name
	answer := n.Exec(n.name, "curl", "--silent", "--insecure", "--request", "POST",
		"--cert", "/etc/kubernetes/pki/apiserver-kubelet-client.crt", "--key", "/etc/kubernetes/pki/apiserver-kubelet-client.key", checkpoints)
	if !strings.Contains(answer, `"items"`) {
		t.Fatalf("kubelet answers %q, want the names of archives", answer)
	}
	archives := n.Exec(n.name, "ls", root+"checkpoints")
	n.restart(gate, false, nil)
	n.checkRuns(t, using)
	if after := n.Exec(n.name, "ls", root+"checkpoints"); after != archives {
		t.Errorf("the archives were %q with the gate on, and are %q with it off", archives, after)
	}
	n.deletePod(using.Name)
}

// permit lets kube-apiserver's client ask kubelet for checkpoints, which kubeadm's roles do
// not.
func (n *realNode) permit() {
	n.Eventually("requests for checkpoints to be permitted", func(ctx context.Context) error {
		_, err := n.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "checkpoints"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "kube-apiserver-kubelet-client"}},
		}, metav1.CreateOptions{})
		return err
	})
}
