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
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/transport"
	"k8s.io/kubernetes-features/test/utils/localcluster/pki"
)

const (
	// readyTimeout is generous: the machine may be busy with a build.
	readyTimeout = 5 * time.Minute
	// readyPeriod is how often a component is asked.
	readyPeriod = 100 * time.Millisecond
	// tailLines is how much of a log a message shows.
	tailLines = 15
)

// waitReady returns once a component answers its health check. A component that
// dies meanwhile is named, with the end of its log.
func (c *Cluster) waitReady(ctx context.Context, component component) error {
	begun := time.Now()
	check, err := c.readiness(component)
	if err != nil {
		return err
	}
	p, ok := c.state.find(component.name)
	if !ok {
		return fmt.Errorf("component %s was not started", component.name)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, readyPeriod, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if !p.Alive() {
			return false, fmt.Errorf("%s died; the end of %s:\n%s", component.name, p.LogFile, p.Tail(tailLines))
		}
		last = check(ctx)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s is not ready after %s (%w); the end of %s:\n%s", component.name, time.Since(begun).Round(time.Second), errors.Join(err, last), p.LogFile, p.Tail(tailLines))
	}
	if err == nil {
		c.progress("%s ready (%.1f s)", component.name, time.Since(begun).Seconds())
	}
	return err
}

// readiness returns the check that tells whether a component is ready.
func (c *Cluster) readiness(component component) (func(context.Context) error, error) {
	switch {
	case component.name == Etcd:
		return c.etcdReady, nil
	case isServer(component.name):
		return func(ctx context.Context) error { return c.apiServerReady(ctx, component.name) }, nil
	case strings.HasPrefix(component.name, runtimePrefix):
		socket := c.runtimeSocket(strings.TrimPrefix(component.name, runtimePrefix))
		return func(ctx context.Context) error { return listening(ctx, "unix", socket) }, nil
	case strings.HasPrefix(component.name, kubeletPrefix) && c.runs(APIServer):
		return c.nodeReady(strings.TrimPrefix(component.name, kubeletPrefix))
	case component.health != "":
		return healthy(component.health), nil
	default:
		// A hollow proxy has nothing to ask: it is ready when it runs.
		return func(context.Context) error { return nil }, nil
	}
}

func (c *Cluster) etcdReady(ctx context.Context) error {
	// A client that finds nothing listening tries again only after a second.
	if err := listening(ctx, "tcp", net.JoinHostPort("127.0.0.1", c.port(Etcd))); err != nil {
		return err
	}
	client, err := c.EtcdClient()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err = client.Get(ctx, "health")
	return err
}

// EtcdClient reads and writes the cluster's database directly.
func (c *Cluster) EtcdClient() (*clientv3.Client, error) {
	config, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{
		CAFile:   pki.CertFile(c.pkiDir(), pki.EtcdCA),
		CertFile: pki.CertFile(c.pkiDir(), "apiserver-etcd-client"),
		KeyFile:  pki.KeyFile(c.pkiDir(), "apiserver-etcd-client"),
	}})
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{c.EtcdEndpoint()}, TLS: config, DialTimeout: 5 * time.Second})
}

// runs is true while a component's process is alive.
func (c *Cluster) runs(name string) bool {
	p, ok := c.state.find(name)
	return ok && p.Alive()
}

func listening(ctx context.Context, network, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (c *Cluster) apiServerReady(ctx context.Context, name string) error {
	config, err := c.RESTConfig("admin")
	if err != nil {
		return err
	}
	config.Host = c.Server(name)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := c.RESTConfig("admin")
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

func (c *Cluster) nodeReady(name string) (func(context.Context) error, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	begun := time.Now().Add(-time.Second)
	return func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// The heartbeat tells this kubelet from the one before a restart: it
		// renews its Lease at once, its status only when that changed.
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(begun) {
			return fmt.Errorf("kubelet of node %s has not renewed its Lease since it started", name)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not Ready", name)
	}, nil
}

// healthy asks an unauthenticated health check. The certificate is one that the
// component made for itself.
func healthy(url string) func(context.Context) error {
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}
