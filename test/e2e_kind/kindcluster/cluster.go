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
	"crypto/tls"
	"crypto/x509"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// Cluster is a cluster of kind for one test. Requests to its server are
// framework's; its processes are those of the nodes.
type Cluster struct {
	*framework.Cluster
	// ControlPlanes and Workers are the names of nodes, which are those of their
	// containers, too, in the order of their numbers.
	ControlPlanes, Workers []string

	t      testing.TB
	config Config
	// addresses has the nodes' own.
	addresses map[string]string
}

// controlPlaneLabel is on nodes with a control plane.
const controlPlaneLabel = "node-role.kubernetes.io/control-plane"

// findNodes reads the nodes' names and addresses.
func (c *Cluster) findNodes() {
	c.t.Helper()
	list, err := c.Kube.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatalf("reading the cluster's nodes: %v", err)
	}
	c.addresses = map[string]string{}
	for _, node := range list.Items {
		if _, ok := node.Labels[controlPlaneLabel]; ok {
			c.ControlPlanes = append(c.ControlPlanes, node.Name)
		} else {
			c.Workers = append(c.Workers, node.Name)
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && c.addresses[node.Name] == "" {
				c.addresses[node.Name] = address.Address
			}
		}
	}
	slices.Sort(c.ControlPlanes)
	slices.Sort(c.Workers)
	if want := max(1, c.config.ControlPlanes); len(c.ControlPlanes) != want || len(c.Workers) != c.config.Workers {
		c.t.Fatalf("the cluster has the nodes %q and %q, want %d control planes and %d workers", c.ControlPlanes, c.Workers, want, c.config.Workers)
	}
}

// Nodes are the names of all nodes.
func (c *Cluster) Nodes() []string { return slices.Concat(c.ControlPlanes, c.Workers) }

// Exec runs a command in a node and returns what it printed to its output.
func (c *Cluster) Exec(node string, command ...string) string {
	c.t.Helper()
	return c.ExecInput(node, nil, command...)
}

// ExecInput is Exec with an input.
func (c *Cluster) ExecInput(node string, input []byte, command ...string) string {
	c.t.Helper()
	out, err := output(c.t.Context(), input, "docker", append([]string{"exec", "-i", node}, command...)...)
	if err != nil {
		c.t.Fatalf("in the node %s: %v", node, err)
	}
	return out
}

// ReadFile reads a file of a node.
func (c *Cluster) ReadFile(node, file string) []byte {
	c.t.Helper()
	return []byte(c.Exec(node, "cat", file))
}

// WriteFile replaces a file of a node in one step. kubelet does not read the hidden file
// that comes before.
func (c *Cluster) WriteFile(node, file string, data []byte) {
	c.t.Helper()
	hidden := path.Join(path.Dir(file), "."+path.Base(file)+".new")
	c.ExecInput(node, data, "sh", "-ec", `umask 077; cat >"$1"; mv "$1" "$2"`, "sh", hidden, file)
}

// Etcd returns a client of the cluster's database, which is reached by the nodes'
// addresses. It hides that of framework, whose clusters have theirs on loopback.
func (c *Cluster) Etcd() *clientv3.Client {
	c.t.Helper()
	const dir = "/etc/kubernetes/pki/etcd/"
	node := c.ControlPlanes[0]
	certificate, err := tls.X509KeyPair(c.ReadFile(node, dir+"healthcheck-client.crt"), c.ReadFile(node, dir+"healthcheck-client.key"))
	if err != nil {
		c.t.Fatalf("the certificate of etcd's clients in %s: %v", node, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(c.ReadFile(node, dir+"ca.crt")) {
		c.t.Fatalf("%sca.crt of %s has no certificate", dir, node)
	}
	var endpoints []string
	for _, node := range c.ControlPlanes {
		endpoints = append(endpoints, "https://"+c.addresses[node]+":2379")
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: 5 * time.Second,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: authorities, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		c.t.Fatalf("reaching etcd of %s: %v", strings.Join(c.ControlPlanes, ", "), err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// Servers are the identities of kube-apiservers by the nodes that they run in.
func (c *Cluster) Servers() map[string]string {
	c.t.Helper()
	list, err := c.Kube.CoordinationV1().Leases(metav1.NamespaceSystem).List(c.t.Context(), metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		c.t.Fatalf("reading the identities of kube-apiservers: %v", err)
	}
	servers := map[string]string{}
	for _, lease := range list.Items {
		servers[lease.Labels[corev1.LabelHostname]] = lease.Name
	}
	for _, node := range c.ControlPlanes {
		if servers[node] == "" {
			c.t.Fatalf("the kube-apiserver of %s has no identity; there are %v", node, servers)
		}
	}
	return servers
}

// Eventually repeats a request while the server cannot answer it, for example because it
// starts again.
func (c *Cluster) Eventually(what string, request func(context.Context) error) {
	c.t.Helper()
	framework.Eventually(c.t, what, func() error {
		ctx, cancel := context.WithTimeout(c.t.Context(), requestTimeout)
		defer cancel()
		return request(ctx)
	})
}

// requestTimeout bounds one request.
const requestTimeout = 10 * time.Second
