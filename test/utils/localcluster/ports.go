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
	"fmt"
	"net"
	"strconv"
)

// choosePorts gives every component its port: the one it had, or a free one.
// The error names a port that another process uses.
func (c *Cluster) choosePorts() error {
	if c.config.APIServerPort != 0 {
		c.state.Ports[APIServer] = c.config.APIServerPort
	}
	// Free ports are held until all are chosen, or two would be the same.
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			listener.Close()
		}
	}()
	for _, name := range c.portNames() {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(c.state.Ports[name])))
		if err != nil {
			return fmt.Errorf("port %d of %s is in use by another program: %w; end that program, choose another port with --apiserver-port if it is kube-apiserver's, or remove %s for a new cluster",
				c.state.Ports[name], name, err, c.config.DataDir)
		}
		held = append(held, listener)
		c.state.Ports[name] = listener.Addr().(*net.TCPAddr).Port
	}
	return nil
}

// portNames are the ports that a cluster needs.
func (c *Cluster) portNames() []string {
	names := []string{Etcd, etcdPeer}
	for i := range c.state.servers() {
		names = append(names, Nth(APIServer, i+1))
	}
	for i := range c.state.replicas() {
		names = append(names, Nth(ControllerManager, i+1), Nth(Scheduler, i+1))
	}
	for i := range c.state.Nodes {
		node := NodeName(i + 1)
		names = append(names, Kubelet(node))
		if c.state.RealNodes {
			names = append(names, kubeletHealth(node), Proxy(node), proxyHealth(node))
		}
	}
	return names
}
