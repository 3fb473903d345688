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

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		klog.ErrorS(err, "The node's network cannot be kept")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	n, err := newNetwork(os.Getenv("HOST_IP"), os.Getenv("POD_SUBNET"))
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server: %w; netd runs in a pod of the cluster", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return n.follow(ctx, client)
}

// resync is the time until a failure is retried.
const resync = 10 * time.Second

// network is the part of one node in the network of all pods, which has one subnet
// for each family of addresses.
type network struct {
	host    netip.Addr
	subnets []netip.Prefix
	dir     string
	mtu     int
	routes  routes
}

func newNetwork(hostIP, podSubnet string) (*network, error) {
	host, err := netip.ParseAddr(hostIP)
	if err != nil {
		return nil, fmt.Errorf("HOST_IP has to be the node's address: %w", err)
	}
	n := &network{host: host, dir: "/etc/cni/net.d", routes: kernel{}}
	for s := range strings.SplitSeq(podSubnet, ",") {
		subnet, err := netip.ParsePrefix(strings.TrimSpace(s))
		if err != nil {
			return nil, fmt.Errorf("POD_SUBNET has to be the network of all pods: %w", err)
		}
		n.subnets = append(n.subnets, subnet.Masked())
	}
	n.mtu, err = mtuOf(host)
	return n, err
}

// follow brings the node up to date whenever nodes change, until ctx ends.
func (n *network) follow(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, resync)
	nodes := factory.Core().V1().Nodes()
	// One element is enough: reconcile reads all nodes.
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	cache.WaitForCacheSync(ctx.Done(), nodes.Informer().HasSynced)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			all, err := nodes.Lister().List(labels.Everything())
			if err = errors.Join(err, n.reconcile(all)); err != nil {
				klog.ErrorS(err, "Failed to update the node's network, retrying", "within", resync)
			}
		}
	}
}

// reconcile writes the configuration of CNI for the own node, and sets routes to the
// others.
func (n *network) reconcile(nodes []*corev1.Node) error {
	var errs []error
	want := map[netip.Prefix]netip.Addr{}
	for _, node := range nodes {
		cidrs, addresses := podsOf(node), addressesOf(node)
		if addresses[n.host] {
			errs = append(errs, n.configure(cidrs))
			continue
		}
		for _, cidr := range cidrs {
			for address := range addresses {
				if address.Is4() == cidr.Addr().Is4() {
					want[cidr] = address
				}
			}
		}
	}
	return errors.Join(append(errs, syncRoutes(n.routes, want))...)
}

// podsOf returns the node's parts of the pods' network. The API server has validated
// them.
func podsOf(node *corev1.Node) (cidrs []netip.Prefix) {
	for _, cidr := range node.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			cidrs = append(cidrs, p.Masked())
		}
	}
	return cidrs
}

// addressesOf returns the addresses by which nodes reach each other.
func addressesOf(node *corev1.Node) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, a := range node.Status.Addresses {
		if address, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			addresses[address] = true
		}
	}
	return addresses
}
