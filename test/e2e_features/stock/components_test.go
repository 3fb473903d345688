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

package stock

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// node is the one on which kubelet and kube-proxy run.
const node = "node-1"

// controlPlane are upstream's components that Pods stand for, with the ports of their
// metrics.
var controlPlane = []struct {
	component, process string
	port               int
	command            []string
}{
	{localcluster.ControllerManager, localcluster.ControllerManager, 10257, []string{"/bin/sh", "-c", "exec kube-controller-manager --feature-gates=" + gate + "=true 2>&1"}},
	{localcluster.Scheduler, localcluster.Scheduler, 10259, []string{"kube-scheduler", "--feature-gates=" + gate + "=true"}},
	{"kube-proxy", localcluster.Proxy(node), 10249, []string{"/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"}},
}

// TestComponents: all components of upstream are observed, those behind Pods by metrics
// where they show them without credentials, and else by the flags of their Pods.
func TestComponents(t *testing.T) {
	config := localcluster.Config{
		Nodes: 1, RealNodes: true, NodeIP: framework.NodeIP(),
		Only:     []string{localcluster.Etcd, localcluster.APIServer, localcluster.Runtime(node), localcluster.Kubelet(node)},
		Binaries: map[string]string{localcluster.APIServer: framework.Upstream(t, "kube-apiserver"), localcluster.Kubelet(node): framework.Upstream(t, "kubelet")},
		ExtraArgs: map[string][]string{
			localcluster.APIServer: {reach},
			// The proxy of Pods has no credentials for it.
			localcluster.ControllerManager: {"--feature-gates=" + gate + "=true", "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"},
			localcluster.Scheduler:         {"--feature-gates=" + gate + "=true"},
		},
	}
	for _, p := range controlPlane {
		config.Only = append(config.Only, p.process)
		config.Binaries[p.process] = framework.Upstream(t, p.component)
	}
	c := framework.Start(t, config)
	for _, p := range controlPlane {
		forward(t, p.port, c.Port(p.process))
		standIn(t, c, p.component, p.command)
	}
	joining(t, c)

	k := c.Kubectl("")
	sources := map[string]string{
		localcluster.APIServer: "its metrics", localcluster.ControllerManager: "its metrics", localcluster.Scheduler: "the flags of Pod kube-scheduler",
		"kubelet": "its metrics", "kube-proxy": "its metrics",
	}
	framework.Eventually(t, "all components to be observed", func() error {
		s, err := uses(t, k)
		if err == nil && len(s.Unknown) > 0 {
			err = fmt.Errorf("not observed: %s", strings.Join(s.Unknown, "\n"))
		}
		return errors.Join(err, shows(s, sources))
	})
	output, complaint := k.Run(t, "feature", "leftovers", ofServers)
	for _, name := range []string{"kubelet-config", "kubeadm-config"} {
		if !strings.Contains(output+complaint, "the ConfigMap "+name) {
			t.Errorf("that nodes that join have %s on by %s is not named: %s\n%s", ofServers, name, complaint, output)
		}
	}
	t.Run("viewer", func(t *testing.T) { checkView(t, c) })
}

// shows returns an error unless each component has its value of the gate, by its source.
func shows(s shown, sources map[string]string) error {
	var errs []error
	for component, source := range sources {
		at := slices.IndexFunc(s.Processes, func(p process) bool { return p.Component == component })
		if at < 0 {
			errs = append(errs, fmt.Errorf("%s is missing: %+v", component, s))
			continue
		}
		on := component == localcluster.ControllerManager || component == localcluster.Scheduler
		if p := s.Processes[at]; p.Observed != source || p.Enabled != on || p.Version != framework.UpstreamVersion {
			errs = append(errs, fmt.Errorf("%+v, want that it is on %t in %s, by %s", p, on, framework.UpstreamVersion, source))
		}
	}
	if len(s.Processes) != len(sources) {
		errs = append(errs, fmt.Errorf("%d processes, want %d", len(s.Processes), len(sources)))
	}
	return errors.Join(errs...)
}

// forward leads a port of the node's address to one of loopback, which the proxy of Pods
// does not reach.
func forward(t *testing.T, port, to int) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(framework.NodeIP(), strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go balance(listener, []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(to))})
}

// standIn makes a Pod that stands for a component, at the node's address. No scheduler and
// no kubelet runs it.
func standIn(t *testing.T, c *framework.Cluster, component string, command []string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: component, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"k8s-app": component}},
		Spec: corev1.PodSpec{
			SchedulerName: "none",
			// As kubeadm mounts the configuration of kube-proxy.
			Volumes: []corev1.Volume{{Name: component, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: component}}}}},
			Containers: []corev1.Container{{
				Name: component, Image: "registry.k8s.io/" + component + ":" + framework.UpstreamVersion, Command: command,
				VolumeMounts: []corev1.VolumeMount{{Name: component, MountPath: "/var/lib/" + component}},
			}},
		},
	}
	pods := c.Kube.CoreV1().Pods(metav1.NamespaceSystem)
	framework.Eventually(t, "the Pod "+component+" to be admitted", func() error {
		created, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status.PodIP, created.Status.PodIPs = framework.NodeIP(), []corev1.PodIP{{IP: framework.NodeIP()}}
		if _, err := pods.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		return nil
	})
}

// joining makes the ConfigMaps that kubeadm has.
func joining(t *testing.T, c *framework.Cluster) {
	t.Helper()
	for name, data := range map[string]map[string]string{
		"kube-proxy":     {"config.conf": "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"},
		"kubelet-config": {"kubelet": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfeatureGates:\n  " + ofServers + ": true\n"},
		"kubeadm-config": {"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nscheduler:\n  extraArgs:\n  - name: feature-gates\n    value: " + ofServers + "=true\n"},
	} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem}, Data: data}
		if _, err := c.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// checkView: who has the ClusterRoles view and system:monitoring sees what Pods and
// ConfigMaps tell, and is told what else is missing.
func checkView(t *testing.T, c *framework.Cluster) {
	for _, role := range []string{"view", "system:monitoring"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: viewer + "-" + strings.TrimPrefix(role, "system:")}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: viewer}},
		}
		if _, err := c.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	k := c.Kubectl(viewer)
	sources := map[string]string{
		localcluster.APIServer: "its metrics", localcluster.ControllerManager: "the flags of Pod kube-controller-manager",
		localcluster.Scheduler: "the flags of Pod kube-scheduler", "kube-proxy": "the default of " + framework.Minor(framework.UpstreamVersion),
	}
	framework.Eventually(t, "what the viewer may see", func() error {
		output, complaint := k.Run(t, "feature", "uses", gate, "-o", "json")
		var s shown
		if err := json.Unmarshal([]byte(output), &s); err != nil {
			return fmt.Errorf("%w: %s\n%s", err, complaint, output)
		}
		for _, permission := range []string{"permission to list nodes", "permission to list leases in the namespace kube-system"} {
			if !strings.Contains(strings.Join(s.Unknown, "\n"), permission) {
				return fmt.Errorf("%s is not named as missing: %q", permission, s.Unknown)
			}
		}
		if len(s.Unknown) != 2 {
			return fmt.Errorf("more is missing: %q", s.Unknown)
		}
		return shows(s, sources)
	})
}
