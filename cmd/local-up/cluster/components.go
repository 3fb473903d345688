/*
Copyright 2026 The Kubernetes Authors.

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

package cluster

import (
	"fmt"
	"net"
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes-features/cmd/local-up/pki"
)

// Names of components; those of nodes end in "/<node>".
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	kubeletPrefix     = "kubelet/"
	proxyPrefix       = "kube-proxy/"
)

// Kubelet is the kubelet of a node.
func Kubelet(node string) string { return kubeletPrefix + node }

// Proxy is the kube-proxy of a node.
func Proxy(node string) string { return proxyPrefix + node }

// NodeName is the name of the node with a number, from 1.
func NodeName(number int) string { return fmt.Sprintf("node-%d", number) }

// component is how one process of the cluster is started.
type component struct {
	name   string
	binary string
	args   []string
	// gates is true when the component takes --feature-gates.
	gates bool
	// port is its port, 0 when it has none.
	port int
	env  []string
	// health is the path of an unauthenticated health check on port, "" when
	// there is another way to tell.
	health string
}

// serviceIP is the first address of serviceRange.
var serviceIP = net.IPv4(10, 96, 0, 1)

const serviceRange = "10.96.0.0/16"

func (c *Cluster) pkiDir() string { return filepath.Join(c.config.DataDir, "pki") }

// Kubeconfig is the file with which a component or "admin" reaches the server.
func (c *Cluster) Kubeconfig(name string) string {
	if name == "admin" {
		return filepath.Join(c.config.DataDir, "admin.kubeconfig")
	}
	return filepath.Join(c.config.DataDir, "kubeconfig", name+".kubeconfig")
}

// Server is the URL of kube-apiserver.
func (c *Cluster) Server() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports[APIServer])
}

// EtcdEndpoint is the URL of etcd.
func (c *Cluster) EtcdEndpoint() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports[Etcd])
}

// certify makes all certificates and kubeconfigs that are missing.
func (c *Cluster) certify() error {
	dir := c.pkiDir()
	ca, err := pki.Open(dir, pki.ClusterCA)
	if err != nil {
		return err
	}
	frontProxy, err := pki.Open(dir, pki.FrontProxyCA)
	if err != nil {
		return err
	}
	etcd, err := pki.Open(dir, pki.EtcdCA)
	if err != nil {
		return err
	}
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	steps := []func() error{
		func() error { return pki.ServiceAccountKey(dir) },
		func() error { return ca.Server("apiserver", names, serviceIP) },
		func() error {
			return ca.Client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", user.SystemPrivilegedGroup)
		},
		func() error { return frontProxy.Client("front-proxy-client", "front-proxy-client") },
		func() error { return etcd.Server("etcd-server", nil) },
		func() error { return etcd.Client("apiserver-etcd-client", "kube-apiserver-etcd-client") },
	}
	for _, identity := range c.identities() {
		steps = append(steps, func() error {
			return ca.Kubeconfig(c.Kubeconfig(identity.name), c.Server(), filepath.Base(identity.name)+"-"+identity.kind, identity.user, identity.groups...)
		})
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// identity is who a component is to the server.
type identity struct {
	name, kind, user string
	groups           []string
}

func (c *Cluster) identities() []identity {
	identities := []identity{
		{name: "admin", kind: "client", user: "kubernetes-admin", groups: []string{user.SystemPrivilegedGroup}},
		{name: ControllerManager, kind: "client", user: user.KubeControllerManager},
		{name: Scheduler, kind: "client", user: user.KubeScheduler},
	}
	for i := range c.state.Nodes {
		node := NodeName(i + 1)
		identities = append(identities,
			identity{name: Kubelet(node), kind: "kubelet", user: "system:node:" + node, groups: []string{user.NodesGroup}},
			identity{name: Proxy(node), kind: "kube-proxy", user: user.KubeProxy})
	}
	return identities
}

// components lists the cluster's processes in the order of their start. All
// knowledge of upstream's flags is here.
func (c *Cluster) components() []component {
	dir := c.pkiDir()
	cert := func(name string) string { return pki.CertFile(dir, name) }
	key := func(name string) string { return pki.KeyFile(dir, name) }
	port := func(name string) string { return fmt.Sprint(c.state.Ports[name]) }
	list := []component{
		{name: Etcd, binary: "local-up", port: c.state.Ports[Etcd], args: []string{
			"etcd",
			"--data-dir=" + filepath.Join(c.config.DataDir, "etcd"),
			"--client-port=" + port(Etcd),
			"--peer-port=" + port("etcd-peer"),
			"--ca-file=" + cert(pki.EtcdCA),
			"--cert-file=" + cert("etcd-server"),
			"--key-file=" + key("etcd-server"),
		}},
		{name: APIServer, binary: "kube-apiserver", gates: true, port: c.state.Ports[APIServer], args: []string{
			"--bind-address=127.0.0.1",
			"--secure-port=" + port(APIServer),
			"--etcd-servers=" + c.EtcdEndpoint(),
			"--etcd-cafile=" + cert(pki.EtcdCA),
			"--etcd-certfile=" + cert("apiserver-etcd-client"),
			"--etcd-keyfile=" + key("apiserver-etcd-client"),
			"--tls-cert-file=" + cert("apiserver"),
			"--tls-private-key-file=" + key("apiserver"),
			"--client-ca-file=" + cert(pki.ClusterCA),
			"--kubelet-client-certificate=" + cert("apiserver-kubelet-client"),
			"--kubelet-client-key=" + key("apiserver-kubelet-client"),
			"--requestheader-client-ca-file=" + cert(pki.FrontProxyCA),
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file=" + cert("front-proxy-client"),
			"--proxy-client-key-file=" + key("front-proxy-client"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + filepath.Join(dir, pki.ServiceAccounts+".pub"),
			"--service-account-signing-key-file=" + key(pki.ServiceAccounts),
			"--service-cluster-ip-range=" + serviceRange,
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			// Endpoints of the service "kubernetes" must not be on loopback,
			// and no pod of a hollow node could reach them.
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true",
		}},
		{name: ControllerManager, binary: "kube-controller-manager", gates: true, port: c.state.Ports[ControllerManager], health: "/healthz", args: append(c.clientArgs(ControllerManager),
			"--use-service-account-credentials=true",
			"--root-ca-file="+cert(pki.ClusterCA),
			"--service-account-private-key-file="+key(pki.ServiceAccounts),
			"--cluster-signing-cert-file="+cert(pki.ClusterCA),
			"--cluster-signing-key-file="+key(pki.ClusterCA),
			"--service-cluster-ip-range="+serviceRange,
			// It does not give its lock back when it is told to end, and nobody
			// else is there to take it: a short lock makes restarts short.
			"--leader-elect-lease-duration=6s",
			"--leader-elect-renew-deadline=4s",
			"--leader-elect-retry-period=1s",
		)},
		{name: Scheduler, binary: "kube-scheduler", gates: true, port: c.state.Ports[Scheduler], health: "/healthz", args: c.clientArgs(Scheduler)},
	}
	for i := range c.state.Nodes {
		list = append(list, c.nodeComponents(NodeName(i+1))...)
	}
	for i := range list {
		if list[i].name == Etcd {
			continue
		}
		list[i].args = append(list[i].args, "--v=2")
		if list[i].gates && c.state.FeatureGates != "" {
			list[i].args = append(list[i].args, "--feature-gates="+c.state.FeatureGates)
		}
		list[i].args = append(list[i].args, c.config.ExtraArgs[list[i].name]...)
	}
	return list
}

// clientArgs are what controller manager and scheduler have in common.
func (c *Cluster) clientArgs(name string) []string {
	file := c.Kubeconfig(name)
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.state.Ports[name]),
		"--kubeconfig=" + file,
		"--authentication-kubeconfig=" + file,
		"--authorization-kubeconfig=" + file,
	}
}

// nodeComponents are kubelet and kube-proxy of a hollow node.
func (c *Cluster) nodeComponents(node string) []component {
	// The hollow kubelet makes its directories below TMPDIR.
	env := []string{"TMPDIR=" + filepath.Join(c.config.DataDir, "nodes", node)}
	hollow := func(name, morph string) component {
		return component{name: name, binary: "kubemark", gates: true, port: c.state.Ports[name], env: env, args: []string{
			"--morph=" + morph,
			"--name=" + node,
			"--kubeconfig=" + c.Kubeconfig(name),
		}}
	}
	kubelet, proxy := hollow(Kubelet(node), "kubelet"), hollow(Proxy(node), "proxy")
	kubelet.args = append(kubelet.args, fmt.Sprintf("--kubelet-port=%d", kubelet.port))
	return []component{kubelet, proxy}
}

// portNames are the ports that a cluster needs.
func (c *Cluster) portNames() []string {
	names := []string{Etcd, "etcd-peer", APIServer, ControllerManager, Scheduler}
	for i := range c.state.Nodes {
		names = append(names, Kubelet(NodeName(i+1)))
	}
	return names
}
