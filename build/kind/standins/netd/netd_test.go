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
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func node(name, address string, cidrs ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{PodCIDRs: cidrs},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: name},
			{Type: corev1.NodeInternalIP, Address: address},
		}},
	}
}

// fakeRoutes tells each change on a channel, if there is one.
type fakeRoutes struct {
	all     map[netip.Prefix]netip.Addr
	refuse  error
	changes chan string
}

func (f *fakeRoutes) list() (map[netip.Prefix]netip.Addr, error) { return maps.Clone(f.all), f.refuse }

func (f *fakeRoutes) replace(to netip.Prefix, via netip.Addr) error {
	f.all[to] = via
	return f.changed("+" + to.String() + " " + via.String())
}

func (f *fakeRoutes) remove(to netip.Prefix, via netip.Addr) error {
	delete(f.all, to)
	return f.changed("-" + to.String() + " " + via.String())
}

func (f *fakeRoutes) changed(what string) error {
	if f.changes != nil {
		f.changes <- what
	}
	return nil
}

func testNetwork(t *testing.T, subnets ...string) (*network, *fakeRoutes) {
	t.Helper()
	f := &fakeRoutes{all: map[netip.Prefix]netip.Addr{}}
	n := &network{host: netip.MustParseAddr("172.18.0.2"), dir: t.TempDir(), mtu: 1400, routes: f}
	for _, s := range subnets {
		n.subnets = append(n.subnets, netip.MustParsePrefix(s))
	}
	return n, f
}

func TestReconcileWritesConfiguration(t *testing.T) {
	n, _ := testNetwork(t, "10.244.0.0/16")
	if err := n.reconcile([]*corev1.Node{node("a", "172.18.0.2", "10.244.1.0/24"), node("b", "172.18.0.3", "10.244.2.0/24")}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(n.dir, "10-kindnet.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "10-kindnet.conflist"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Error(d)
	}
	left, err := os.ReadDir(n.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("%d files are there, not one", len(left))
	}
}

func TestReconcileWaitsForPartOfNode(t *testing.T) {
	n, _ := testNetwork(t, "10.244.0.0/16")
	if err := n.reconcile([]*corev1.Node{node("a", "172.18.0.2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "10-kindnet.conflist")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a configuration without addresses: %v", err)
	}
}

func TestReconcileKeepsRoutesToOtherNodes(t *testing.T) {
	n, f := testNetwork(t, "10.244.0.0/16")
	f.all[netip.MustParsePrefix("10.244.9.0/24")] = netip.MustParseAddr("172.18.0.9")
	f.all[netip.MustParsePrefix("10.244.2.0/24")] = netip.MustParseAddr("172.18.0.8")
	nodes := []*corev1.Node{node("a", "172.18.0.2", "10.244.1.0/24"), node("b", "172.18.0.3", "10.244.2.0/24"), node("c", "fd00::4", "10.244.3.0/24")}
	if err := n.reconcile(nodes); err != nil {
		t.Fatal(err)
	}
	want := map[netip.Prefix]netip.Addr{netip.MustParsePrefix("10.244.2.0/24"): netip.MustParseAddr("172.18.0.3")}
	if !maps.Equal(f.all, want) {
		t.Errorf("%v are not %v", f.all, want)
	}
	f.refuse = errors.New("no netlink")
	if err := n.reconcile(nodes); !errors.Is(err, f.refuse) {
		t.Errorf("%v is not the failure", err)
	}
}

func TestRangeOfNode(t *testing.T) {
	n, _ := testNetwork(t, "10.244.0.0/16", "fd00:10:244::/56")
	for _, c := range []struct{ cidr, subnet, start, end, gateway string }{
		{"10.244.1.0/24", "10.244.0.0/16", "10.244.1.2", "10.244.1.254", "10.244.1.1"},
		{"fd00:10:244:1::/64", "fd00:10:244::/56", "fd00:10:244:1::2", "fd00:10:244:1:ffff:ffff:ffff:ffff", "fd00:10:244:1::1"},
		{"10.9.1.64/26", "10.9.1.64/26", "10.9.1.66", "10.9.1.126", "10.9.1.65"},
	} {
		want := object{
			"subnet":     netip.MustParsePrefix(c.subnet),
			"rangeStart": netip.MustParseAddr(c.start),
			"rangeEnd":   netip.MustParseAddr(c.end),
			"gateway":    netip.MustParseAddr(c.gateway),
		}
		if got := n.rangeOf(netip.MustParsePrefix(c.cidr)); !maps.Equal(want, got) {
			t.Errorf("%s: %v, not %v", c.cidr, got, want)
		}
	}
}

func TestFollowNodes(t *testing.T) {
	n, f := testNetwork(t, "10.244.0.0/16")
	f.changes = make(chan string)
	client := fake.NewClientset(node("a", "172.18.0.2", "10.244.1.0/24"), node("b", "172.18.0.3", "10.244.2.0/24"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.follow(ctx, client) }()
	if got := <-f.changes; got != "+10.244.2.0/24 172.18.0.3" {
		t.Error(got)
	}
	if err := client.CoreV1().Nodes().Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-f.changes; got != "-10.244.2.0/24 172.18.0.3" {
		t.Error(got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestNewNetworkNamesSetting(t *testing.T) {
	for _, c := range []struct{ host, subnets, want string }{
		{"", "10.244.0.0/16", "HOST_IP"},
		{"127.0.0.1", "x", "POD_SUBNET"},
		{"192.0.2.77", "10.244.0.0/16", "hostNetwork"},
	} {
		if _, err := newNetwork(c.host, c.subnets); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v is no error with %s", err, c.want)
		}
	}
	n, err := newNetwork("127.0.0.1", "10.244.0.0/16, fd00::/56")
	if err != nil || n.mtu == 0 || len(n.subnets) != 2 {
		t.Errorf("%+v, %v", n, err)
	}
}
