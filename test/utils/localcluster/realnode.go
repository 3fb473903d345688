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

package localcluster

import (
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
	"k8s.io/utils/ptr"
)

// Runtime is the fake container runtime of a real node.
func Runtime(node string) string { return runtimePrefix + node }

// kubeletHealth and proxyHealth name the ports of health checks.
func kubeletHealth(node string) string { return Kubelet(node) + "/health" }
func proxyHealth(node string) string   { return Proxy(node) + "/health" }

func (c *Cluster) runtimeSocket(node string) string {
	return filepath.Join(c.nodeDir(node), "cri.sock")
}

// RuntimeEndpoint is where the fake container runtime of a real node serves.
func (c *Cluster) RuntimeEndpoint(node string) string { return "unix://" + c.runtimeSocket(node) }

// StaticPods is the directory of a real node's static pods.
func (c *Cluster) StaticPods(node string) string {
	return filepath.Join(c.nodeDir(node), "static-pods")
}

func (c *Cluster) kubeletConfig(node string) string {
	return filepath.Join(c.nodeDir(node), "kubelet.yaml")
}

// realNode are the processes of a node with the real kubelet and kube-proxy.
func (c *Cluster) realNode(node string) []component {
	kubelet, proxy := Kubelet(node), Proxy(node)
	return []component{
		{name: Runtime(node), binary: "local-up", args: []string{"runtime", "--socket=" + c.runtimeSocket(node)}},
		{name: kubelet, binary: "kubelet", gates: true, port: c.state.Ports[kubelet], health: c.health("http", kubeletHealth(node), "/healthz"), args: []string{
			"--config=" + c.kubeletConfig(node),
			"--kubeconfig=" + c.Kubeconfig(kubelet),
			"--hostname-override=" + node,
			"--root-dir=" + filepath.Join(c.nodeDir(node), "kubelet"),
			"--cert-dir=" + filepath.Join(c.nodeDir(node), "pki"),
			"--node-ip=" + c.state.NodeIP,
		}},
		{name: proxy, binary: "kube-proxy", gates: true, port: c.state.Ports[proxy], health: c.health("http", proxyHealth(node), "/livez"), args: []string{
			"--kubeconfig=" + c.Kubeconfig(proxy),
			"--hostname-override=" + node,
			"--proxy-mode=nftables",
			"--metrics-bind-address=127.0.0.1:" + c.port(proxy),
			"--healthz-bind-address=127.0.0.1:" + c.port(proxyHealth(node)),
			// Limits of connection tracking are the machine's, not a namespace's.
			"--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0",
			"--conntrack-tcp-timeout-close-wait=0",
		}},
	}
}

// kubeletAddress is where kubelets listen: at the address of their nodes, too, by which
// servers reach them.
func (c *Cluster) kubeletAddress() string {
	if c.state.NodeIP == "" {
		return "127.0.0.1"
	}
	return "0.0.0.0"
}

// configureRealNode writes the kubelet's configuration. It manages no cgroups:
// its pods have no processes.
func (c *Cluster) configureRealNode(node string) error {
	if err := os.MkdirAll(c.StaticPods(node), 0o755); err != nil {
		return err
	}
	config := kubeletv1beta1.KubeletConfiguration{
		TypeMeta:                 metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Address:                  c.kubeletAddress(),
		Port:                     int32(c.state.Ports[Kubelet(node)]),
		HealthzBindAddress:       "127.0.0.1",
		HealthzPort:              ptr.To(int32(c.state.Ports[kubeletHealth(node)])),
		ContainerRuntimeEndpoint: c.RuntimeEndpoint(node),
		StaticPodPath:            c.StaticPods(node),
		PodLogsDir:               filepath.Join(c.nodeDir(node), "pod-logs"),
		FileCheckFrequency:       metav1.Duration{Duration: time.Second},
		Authentication: kubeletv1beta1.KubeletAuthentication{
			Anonymous: kubeletv1beta1.KubeletAnonymousAuthentication{Enabled: ptr.To(false)},
			X509:      kubeletv1beta1.KubeletX509Authentication{ClientCAFile: c.cert(pki.ClusterCA)},
		},
		RotateCertificates:     true,
		CgroupsPerQOS:          ptr.To(false),
		FailCgroupV1:           ptr.To(false),
		EnforceNodeAllocatable: []string{"none"},
		MakeIPTablesUtilChains: ptr.To(false),
		// The machine's disk is not the node's.
		EvictionHard:                map[string]string{"memory.available": "1Mi"},
		ImageGCHighThresholdPercent: ptr.To(int32(100)),
		NodeStatusUpdateFrequency:   metav1.Duration{Duration: 5 * time.Second},
		// The Node's Lease tells that it lives; its status need not.
		NodeStatusReportFrequency: metav1.Duration{Duration: 5 * time.Minute},
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(c.kubeletConfig(node), data, 0o644)
}
