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
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
)

// Names of components; those of nodes end in "/<node>".
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	kubeletPrefix     = "kubelet/"
	proxyPrefix       = "kube-proxy/"
	runtimePrefix     = "runtime/"
	etcdPeer          = "etcd-peer"
)

// Kubelet is the kubelet of a node.
func Kubelet(node string) string { return kubeletPrefix + node }

// Proxy is the kube-proxy of a node.
func Proxy(node string) string { return proxyPrefix + node }

// Nth is the name of one of several components of a kind, counted from 1.
func Nth(name string, number int) string {
	if number == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, number)
}

// Hostname is the name of the host that the server with a number finds itself on
// when there are several.
func Hostname(number int) string { return fmt.Sprintf("server-%d", number) }

// isServer is true for the names of kube-apiservers.
func isServer(name string) bool {
	return name == APIServer || strings.HasPrefix(name, APIServer+"-")
}

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
	// hostname is the name of the host that the process finds itself on, ""
	// for this machine's.
	hostname string
	// health is the URL of an unauthenticated health check, "" when there is
	// another way to tell.
	health string
}

// serviceIP is the first address of serviceRange.
var serviceIP = net.IPv4(10, 96, 0, 1)

const serviceRange = "10.96.0.0/16"

// PKI is the directory of the cluster's certificates and keys.
func (c *Cluster) PKI() string { return c.pkiDir() }

func (c *Cluster) pkiDir() string { return filepath.Join(c.config.DataDir, "pki") }

// Kubeconfig is the file with which a component or "admin" reaches the server.
func (c *Cluster) Kubeconfig(name string) string {
	if name == "admin" {
		return filepath.Join(c.config.DataDir, "admin.kubeconfig")
	}
	return filepath.Join(c.config.DataDir, "kubeconfig", name+".kubeconfig")
}

// Server is the URL of a kube-apiserver, or of the first for any other name.
func (c *Cluster) Server(name string) string {
	if !isServer(name) {
		name = APIServer
	}
	return fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports[name])
}

// Port is the port of a component on loopback, 0 if it has none.
func (c *Cluster) Port(name string) int { return c.state.Ports[name] }

// EtcdEndpoint is the URL of etcd.
func (c *Cluster) EtcdEndpoint() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.state.Ports[Etcd])
}

// components lists the cluster's processes in the order of their start. All
// knowledge of upstream's flags is here and in realnode.go.
func (c *Cluster) components() []component {
	list := []component{c.etcd()}
	for i := range c.state.servers() {
		list = append(list, c.apiServer(i+1))
	}
	for i := range c.state.replicas() {
		list = append(list, c.controllerManager(i+1), c.scheduler(i+1))
	}
	for i := range c.state.Nodes {
		node := NodeName(i + 1)
		if c.state.RealNodes {
			list = append(list, c.realNode(node)...)
		} else {
			list = append(list, c.hollowNode(node)...)
		}
	}
	for i := range list {
		if list[i].binary == "local-up" {
			list[i].args = append(list[i].args, c.config.ExtraArgs[list[i].name]...)
			continue
		}
		list[i].args = append(list[i].args, "--v=2")
		if list[i].gates && c.state.FeatureGates != "" {
			list[i].args = append(list[i].args, "--feature-gates="+c.state.FeatureGates)
		}
		list[i].args = append(list[i].args, c.state.Control.args(list[i], c.state.FeatureGates)...)
		list[i].args = append(list[i].args, c.config.ExtraArgs[list[i].name]...)
	}
	return list
}

// cert and key are the files of a certificate.
func (c *Cluster) cert(name string) string { return pki.CertFile(c.pkiDir(), name) }
func (c *Cluster) key(name string) string  { return pki.KeyFile(c.pkiDir(), name) }

func (c *Cluster) port(name string) string { return fmt.Sprint(c.state.Ports[name]) }

func (c *Cluster) etcd() component {
	return component{name: Etcd, binary: "local-up", port: c.state.Ports[Etcd], args: []string{
		"etcd",
		fmt.Sprintf("--unsafe-no-fsync=%t", c.config.Throwaway),
		"--data-dir=" + filepath.Join(c.config.DataDir, "etcd"),
		"--client-port=" + c.port(Etcd),
		"--peer-port=" + c.port(etcdPeer),
		"--ca-file=" + c.cert(pki.EtcdCA),
		"--cert-file=" + c.cert("etcd-server"),
		"--key-file=" + c.key("etcd-server"),
	}}
}

// apiServer is one of the servers, counted from 1. A server's identity is a hash
// of the host's name, so several on one machine need names of their own.
func (c *Cluster) apiServer(number int) component {
	name := Nth(APIServer, number)
	hostname := ""
	if c.state.servers() > 1 {
		hostname = Hostname(number)
	}
	return component{name: name, binary: "kube-apiserver", gates: true, port: c.state.Ports[name], hostname: hostname, args: []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + c.port(name),
		"--etcd-servers=" + cmp.Or(c.etcdOf[name], c.EtcdEndpoint()),
		"--etcd-cafile=" + c.cert(pki.EtcdCA),
		"--etcd-certfile=" + c.cert("apiserver-etcd-client"),
		"--etcd-keyfile=" + c.key("apiserver-etcd-client"),
		"--tls-cert-file=" + c.cert("apiserver"),
		"--tls-private-key-file=" + c.key("apiserver"),
		"--client-ca-file=" + c.cert(pki.ClusterCA),
		"--kubelet-client-certificate=" + c.cert("apiserver-kubelet-client"),
		"--kubelet-client-key=" + c.key("apiserver-kubelet-client"),
		"--requestheader-client-ca-file=" + c.cert(pki.FrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.cert("front-proxy-client"),
		"--proxy-client-key-file=" + c.key("front-proxy-client"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + filepath.Join(c.pkiDir(), pki.ServiceAccounts+".pub"),
		"--service-account-signing-key-file=" + c.key(pki.ServiceAccounts),
		"--service-cluster-ip-range=" + serviceRange,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		// It wants an address that is not on loopback and takes that of the default
		// route, which a machine without a network does not have. It is not used:
		// this one is for documentation (RFC 5737).
		"--advertise-address=192.0.2.1",
		// Endpoints of the service "kubernetes" must not be on loopback,
		// and no pod of a hollow node could reach them.
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		// A server that ends in order waits for its requests and then closes its
		// connections; without it for a minute for those of open watches.
		"--shutdown-send-retry-after=true",
	}}
}

func (c *Cluster) controllerManager(number int) component {
	name := Nth(ControllerManager, number)
	return component{name: name, binary: "kube-controller-manager", gates: true, port: c.state.Ports[name], health: c.health("https", name, "/healthz"), args: append(c.clientArgs(name),
		"--use-service-account-credentials=true",
		"--root-ca-file="+c.cert(pki.ClusterCA),
		"--service-account-private-key-file="+c.key(pki.ServiceAccounts),
		"--cluster-signing-cert-file="+c.cert(pki.ClusterCA),
		"--cluster-signing-key-file="+c.key(pki.ClusterCA),
		"--service-cluster-ip-range="+serviceRange,
		// It does not give its lock back when it is terminated: a short lock makes
		// restarts short.
		"--leader-elect-lease-duration=6s",
		"--leader-elect-renew-deadline=4s",
		"--leader-elect-retry-period=1s",
	)}
}

func (c *Cluster) scheduler(number int) component {
	name := Nth(Scheduler, number)
	return component{name: name, binary: "kube-scheduler", gates: true, port: c.state.Ports[name], health: c.health("https", name, "/healthz"), args: c.clientArgs(name)}
}

func (c *Cluster) health(scheme, name, path string) string {
	return fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, c.state.Ports[name], path)
}

// clientArgs are what controller manager and scheduler have in common.
func (c *Cluster) clientArgs(name string) []string {
	file := c.Kubeconfig(name)
	return append([]string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.state.Ports[name]),
		"--kubeconfig=" + file,
		"--authentication-kubeconfig=" + file,
		"--authorization-kubeconfig=" + file,
	}, c.election()...)
}

// election returns how controller managers and schedulers find out which of them
// works. One that is alone need not: it would wait after a restart until its own
// lock expires, and end itself when a busy machine keeps it from renewing that.
func (c *Cluster) election() []string {
	if c.state.replicas() == 1 {
		return []string{"--leader-elect=false"}
	}
	return []string{"--leader-elect=true"}
}

// hollowNode are kubelet and kube-proxy of a hollow node.
func (c *Cluster) hollowNode(node string) []component {
	// The hollow kubelet makes its directories below TMPDIR.
	env := []string{"TMPDIR=" + c.nodeDir(node)}
	hollow := func(name, morph string) component {
		return component{name: name, binary: "kubemark", gates: true, port: c.state.Ports[name], env: env, args: []string{
			"--morph=" + morph,
			"--name=" + node,
			"--kubeconfig=" + c.Kubeconfig(name),
			"--feature-values-file=" + filepath.Join(c.nodeDir(node), morph+"-feature-values.json"),
		}}
	}
	kubelet, proxy := hollow(Kubelet(node), "kubelet"), hollow(Proxy(node), "proxy")
	kubelet.args = append(kubelet.args, fmt.Sprintf("--kubelet-port=%d", kubelet.port))
	return []component{kubelet, proxy}
}
