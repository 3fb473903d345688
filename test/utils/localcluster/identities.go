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
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
)

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
			return ca.Kubeconfig(c.Kubeconfig(identity.name), c.Server(identity.server), filepath.Base(identity.name)+"-"+identity.kind, identity.user, identity.groups...)
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
	// server is the kube-apiserver that the component talks to, "" for the
	// first.
	server string
}

func (c *Cluster) identities() []identity {
	identities := []identity{
		{name: "admin", kind: "client", user: "kubernetes-admin", groups: []string{user.SystemPrivilegedGroup}},
	}
	for i := range c.state.replicas() {
		// Each talks to a server of its own, as far as there are enough.
		server := Nth(APIServer, i%c.state.servers()+1)
		identities = append(identities,
			identity{name: Nth(ControllerManager, i+1), kind: "client", user: user.KubeControllerManager, server: server},
			identity{name: Nth(Scheduler, i+1), kind: "client", user: user.KubeScheduler, server: server})
	}
	for i := range c.state.Nodes {
		node := NodeName(i + 1)
		identities = append(identities,
			identity{name: Kubelet(node), kind: "kubelet", user: "system:node:" + node, groups: []string{user.NodesGroup}},
			identity{name: Proxy(node), kind: "kube-proxy", user: user.KubeProxy})
	}
	return identities
}
