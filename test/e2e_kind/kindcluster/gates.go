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

package kindcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/feature-lifecycle/watchtools"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/e2e_kind/nodeconfig"
)

// Components of a control plane that kubeadm runs as static pods, and that have gates.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// StaticPods are all of them.
func StaticPods() []string { return []string{APIServer, ControllerManager, Scheduler} }

// Files of a node, and objects, in which kubeadm keeps what components are configured with.
const (
	kubeletConfig = "/var/lib/kubelet/config.yaml"
	kubeProxy     = "kube-proxy"
	// kubeProxyKey is where the ConfigMap kube-proxy has the KubeProxyConfiguration.
	kubeProxyKey = "config.conf"
	// kubeadmConfig is the ConfigMap with the ClusterConfiguration, at kubeadmKey.
	kubeadmConfig = "kubeadm-config"
	kubeadmKey    = "ClusterConfiguration"
)

// manifest is the file of a static pod.
func manifest(component string) string { return "/etc/kubernetes/manifests/" + component + ".yaml" }

// SetGate sets a gate in everything that one node has of its own: the static pods of a
// control plane, and kubelet, which starts again. kube-proxies share one configuration
// (SetGateOfKubeProxies). It does not wait for what that does to the feature.
func (c *Cluster) SetGate(node, gate string, value bool) {
	c.t.Helper()
	c.SetGates(node, map[string]bool{gate: value})
}

// SetGates is SetGate for several gates, with one start of each process.
func (c *Cluster) SetGates(node string, gates map[string]bool) {
	c.t.Helper()
	if slices.Contains(c.ControlPlanes, node) {
		for _, component := range StaticPods() {
			c.editFile(node, manifest(component), setting(gates, nodeconfig.SetGateFlag))
		}
	}
	c.editFile(node, kubeletConfig, setting(gates, nodeconfig.SetGate))
	c.RestartKubelet(node)
}

// setting returns a change of a file that sets several gates.
func setting(gates map[string]bool, set func([]byte, string, bool) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(data []byte) ([]byte, error) {
		for _, gate := range slices.Sorted(maps.Keys(gates)) {
			var err error
			if data, err = set(data, gate, gates[gate]); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
}

// SetFlag sets a flag of a static pod of a node; an empty value removes it. kubelet then
// replaces the pod.
func (c *Cluster) SetFlag(node, component, flag, value string) {
	c.t.Helper()
	c.editFile(node, manifest(component), func(data []byte) ([]byte, error) { return nodeconfig.SetFlag(data, flag, value) })
}

// RestartKubelet starts the kubelet of a node again. Containers keep running.
func (c *Cluster) RestartKubelet(node string) {
	c.t.Helper()
	c.Exec(node, "systemctl", "restart", "kubelet")
}

// EditKubelet changes the configuration of the kubelet of a node, which takes it when it
// starts again.
func (c *Cluster) EditKubelet(node string, change func([]byte) ([]byte, error)) {
	c.t.Helper()
	c.editFile(node, kubeletConfig, change)
}

// WaitForKubelet waits until the kubelet of a node answers that it is healthy, or says why
// it does not.
func (c *Cluster) WaitForKubelet(node string) {
	c.t.Helper()
	framework.Eventually(c.t, "the kubelet of "+node+" to be healthy", func() error {
		_, err := output(c.t.Context(), nil, "docker", "exec", node, "curl", "--silent", "--show-error", "--fail", "http://127.0.0.1:10248/healthz")
		if err != nil {
			logs, _ := output(c.t.Context(), nil, "docker", "exec", node, "journalctl", "--unit=kubelet", "--lines=5", "--output=cat")
			return fmt.Errorf("%w; its log ends with:\n%s", err, logs)
		}
		return nil
	})
}

// editFile changes a file of a node.
func (c *Cluster) editFile(node, file string, change func([]byte) ([]byte, error)) {
	c.t.Helper()
	changed, err := change(c.ReadFile(node, file))
	if err != nil {
		c.t.Fatalf("changing %s of %s: %v", file, node, err)
	}
	c.WriteFile(node, file, changed)
}

// SetGateOfKubeProxies sets a gate in the configuration of kube-proxies, replaces their
// pods one by one, as "kubectl rollout restart" does, and waits until all are new.
func (c *Cluster) SetGateOfKubeProxies(gate string, value bool) {
	c.t.Helper()
	c.SetGatesOfKubeProxies(map[string]bool{gate: value})
}

// SetGatesOfKubeProxies is SetGateOfKubeProxies for several gates.
func (c *Cluster) SetGatesOfKubeProxies(gates map[string]bool) {
	c.t.Helper()
	c.editConfigMap(kubeProxy, kubeProxyKey, setting(gates, nodeconfig.SetGate))
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
	c.patchKubeProxies(patch)
}

// EditKubeProxies changes the configuration of kube-proxies, which take it when they start
// again (SetGatesOfKubeProxies).
func (c *Cluster) EditKubeProxies(change func([]byte) ([]byte, error)) {
	c.t.Helper()
	c.editConfigMap(kubeProxy, kubeProxyKey, change)
}

// SetImageOfKubeProxies replaces kube-proxies by those of another image, and waits until
// all are new.
func (c *Cluster) SetImageOfKubeProxies(image string) {
	c.t.Helper()
	c.patchKubeProxies(fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, kubeProxy, image))
}

// patchKubeProxies changes the DaemonSet of kube-proxies and waits for its pods.
func (c *Cluster) patchKubeProxies(patch []byte) {
	c.t.Helper()
	var generation int64
	c.Eventually("the DaemonSet kube-proxy to be changed", func(ctx context.Context) error {
		set, err := c.Kube.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, kubeProxy, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			generation = set.Generation
		}
		return err
	})
	c.waitForKubeProxies(generation)
}

// waitForKubeProxies watches the DaemonSet until its pods are those of a generation.
func (c *Cluster) waitForKubeProxies(generation int64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), framework.Patience)
	defer cancel()
	source := cache.NewListWatchFromClient(c.Kube.AppsV1().RESTClient(), "daemonsets", metav1.NamespaceSystem, fields.OneTermEqualSelector(metav1.ObjectNameField, kubeProxy))
	var last appsv1.DaemonSetStatus
	err := watchtools.UntilWithSync(ctx, source, &appsv1.DaemonSet{}, nil, func(event watch.Event) (bool, error) {
		set, ok := event.Object.(*appsv1.DaemonSet)
		if !ok {
			return false, nil
		}
		last = set.Status
		return last.ObservedGeneration >= generation && last.UpdatedNumberScheduled == last.DesiredNumberScheduled && last.NumberAvailable == last.DesiredNumberScheduled, nil
	})
	if err != nil {
		c.t.Fatalf("waiting for new kube-proxies: %v; the DaemonSet's status is %+v", err, last)
	}
}

// section is the part of kubeadm's ClusterConfiguration that has the flags of a static pod.
func section(component string) string {
	return map[string]string{APIServer: "apiServer", ControllerManager: "controllerManager", Scheduler: "scheduler"}[component]
}

// SetExtraArg sets a flag of a static pod in what kubeadm makes manifests of when it
// upgrades; an empty value removes it. Manifests that are there stay as they are (SetFlag).
func (c *Cluster) SetExtraArg(component, flag, value string) {
	c.t.Helper()
	c.editConfigMap(kubeadmConfig, kubeadmKey, func(data []byte) ([]byte, error) {
		return nodeconfig.SetExtraArg(data, section(component), flag, value)
	})
}

// editConfigMap changes a text in a ConfigMap of kube-system.
func (c *Cluster) editConfigMap(name, key string, change func([]byte) ([]byte, error)) {
	c.t.Helper()
	maps := c.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	c.Eventually("the ConfigMap "+name+" to be changed", func(ctx context.Context) error {
		object, err := maps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		changed, err := change([]byte(object.Data[key]))
		if err != nil {
			return fmt.Errorf("its key %s: %w", key, err)
		}
		object.Data[key] = string(changed)
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
}
