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

package observe

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// serverName is a name that the certificate of every kube-apiserver has.
const serverName = "kubernetes.default.svc"

// readsPerServer is how often each of several servers behind one address is asked, for
// that each of them answers at least once.
const readsPerServer = 8

// server is one that answered.
type server struct {
	scrape *scrape
	client rest.Interface
	// address is its own, "" behind another one.
	address string
}

// servers reads kube-apiservers: each by its own address where that is reached, and
// those behind the usual address until as many have answered as there are.
func (r *reader) servers(ctx context.Context) {
	addresses, err := r.addresses(ctx)
	if err != nil {
		why, next := explain(ctx, err, "list endpointslices in the namespace default")
		r.gap(Gap{Component: APIServer, Why: "how many there are is not known: " + why, Next: next})
	}
	identities, err := r.identities(ctx)
	if err != nil && len(addresses) < 2 {
		// One address may be that of a balancer.
		why, next := explain(ctx, err, "list leases in the namespace kube-system")
		r.gap(Gap{Component: APIServer, Why: "how many there are behind one address is not known: " + why, Next: next})
	}
	expected := max(1, len(addresses), identities)
	r.expect(expected)
	found := r.direct(ctx, addresses)
	var failed error
	for range expected * readsPerServer {
		if len(found) >= expected || ctx.Err() != nil {
			break
		}
		// A connection that is kept leads to the same server.
		client, err := newClient(r.config)
		if err != nil {
			failed = err
			break
		}
		s, err := r.scrape(ctx, client, "/metrics")
		if err != nil {
			failed = err
			break
		}
		if !slices.ContainsFunc(found, func(f server) bool { return f.scrape.start == s.start }) {
			found = append(found, server{scrape: s, client: client})
		}
	}
	for i, s := range found {
		r.server(ctx, i, len(found), s)
	}
	if missing := expected - len(found); missing > 0 {
		why := fmt.Sprintf("%d of %d did not answer, or ended within the last hour", missing, expected)
		next := "an address of each server that is reached from here"
		if len(addresses) > 1 {
			next += ": " + strings.Join(addresses, ", ")
		}
		if failed != nil {
			why, next = explain(ctx, failed, "get the path /metrics of the API server (ClusterRole system:monitoring has it)")
		}
		r.gap(Gap{Component: APIServer, Why: why, Next: next})
	}
}

// addresses are those of all kube-apiservers, which each of them writes.
func (r *reader) addresses(ctx context.Context) ([]string, error) {
	list, err := r.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kubernetes"})
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			for _, port := range slice.Ports {
				if port.Port != nil && len(endpoint.Addresses) > 0 {
					addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses), nil
}

// identities is how many kube-apiservers have a Lease, which each renews where the gate
// APIServerIdentity is on.
func (r *reader) identities(ctx context.Context) (int, error) {
	list, err := r.client.CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: identityLabel})
	if err != nil {
		return 0, err
	}
	n := 0
	for _, lease := range list.Items {
		if lease.Spec.RenewTime != nil && time.Since(lease.Spec.RenewTime.Time) < time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second {
			n++
		}
	}
	return n, nil
}

// identityLabel selects the Leases of kube-apiservers.
const identityLabel = "apiserver.kubernetes.io/identity=kube-apiserver"

// direct asks servers by their own addresses, which not every client reaches. The
// credentials go to none but one with a certificate of the cluster's authority.
func (r *reader) direct(ctx context.Context, addresses []string) []server {
	if len(addresses) < 2 || r.config.Insecure || len(r.config.CAData)+len(r.config.CAFile) == 0 {
		return nil
	}
	found := make([]*server, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			config := rest.CopyConfig(r.config)
			config.Host, config.APIPath, config.ServerName = "https://"+address, "", serverName
			client, err := newClient(config)
			if err != nil {
				return
			}
			if s, err := r.scrape(ctx, client, "/metrics"); err == nil {
				found[i] = &server{scrape: s, client: client, address: address}
			}
		})
	}
	all.Wait()
	var servers []server
	for _, s := range found {
		if s != nil {
			servers = append(servers, *s)
		}
	}
	return servers
}

// newClient makes a client with connections of its own.
func newClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	// Clients with the same configuration share connections otherwise.
	config.Dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	client, err := newClientset(config)
	if err != nil {
		return nil, err
	}
	return client.Discovery().RESTClient(), nil
}

// server adds a process for a server that answered, with what it is told.
func (r *reader) server(ctx context.Context, i, n int, s server) {
	p := Process{Component: APIServer, Instance: s.address, Version: s.scrape.version, Complete: true, Gates: sourced(s.scrape.gates, "its metrics")}
	if p.Instance == "" {
		p.Instance = "server"
		if n > 1 {
			p.Instance = fmt.Sprintf("server %d of %d", i+1, n)
		}
	}
	r.conflicts(p, s.scrape)
	body, err := r.bytes(ctx, s.client, "/flagz", flagzAccept)
	if err == nil {
		var set map[string]bool
		if set, err = parseFlagz(body); err == nil {
			explicitly(p.Gates, set, "its /flagz")
		}
	}
	r.process(p)
	r.finish()
}

// conflicts names gates of which metrics have two values.
func (r *reader) conflicts(p Process, s *scrape) {
	for _, name := range s.conflicts {
		r.gap(Gap{
			Component: p.Component, Instances: []string{p.Instance}, Why: fmt.Sprintf("its metrics have %s on and off: a value of before another emulated version stays", name),
			Next: "start it again",
		})
	}
}

// serverFlags adds what kube-apiservers are told by the command lines of their Pods: those
// with /flagz off do not say which of their values are set. A server without an address of
// its own is one of the Pods, and what all of them are told is true of it.
func (r *reader) serverFlags() {
	servers := 0
	for _, p := range r.found.Processes {
		if p.Component == APIServer {
			servers++
		}
	}
	told := make([]Process, len(r.serverPods))
	for i, pod := range r.serverPods {
		told[i] = pod.process()
		// What its command line does not show is no gap where servers answer.
		told[i].Complete = servers > 0
		r.told(&told[i], pod)
		told[i].Complete = false
	}
	for i := range r.found.Processes {
		p := &r.found.Processes[i]
		if p.Component != APIServer {
			continue
		}
		at := slices.IndexFunc(r.serverPods, func(pod systemPod) bool {
			host, _, _ := net.SplitHostPort(p.Instance)
			return host != "" && (host == pod.Status.HostIP || host == pod.Status.PodIP)
		})
		its := at >= 0 || servers == 1 && len(told) == 1
		if at < 0 && len(told) > 0 && alike(told) {
			at = 0
		}
		if at >= 0 {
			addFlags(p, told[at], its)
		}
	}
	if servers == 0 {
		r.found.Processes = append(r.found.Processes, told...)
	}
}

// alike is true if all are told the same, as far as that is known.
func alike(told []Process) bool {
	if slices.ContainsFunc(told, func(p Process) bool { return p.Unread }) {
		return false
	}
	for _, p := range told[1:] {
		if p.Emulates != told[0].Emulates || !maps.EqualFunc(p.Gates, told[0].Gates, func(a, b Value) bool { return a.Enabled == b.Enabled }) {
			return false
		}
	}
	return true
}

// addFlags marks what a server is told, by its own Pod or by one that is told the same.
// Values stay those of its metrics.
func addFlags(p *Process, told Process, its bool) {
	if p.Emulates == "" {
		p.Emulates = told.Emulates
	}
	if its && p.Node == "" {
		p.Node = told.Node
	}
	if told.Unread {
		return
	}
	for _, v := range p.Gates {
		if v.Explicit != nil {
			return
		}
	}
	set, source := map[string]bool{}, ""
	for name, v := range told.Gates {
		set[name], source = v.Enabled, v.Source
	}
	explicitly(p.Gates, set, source)
}
