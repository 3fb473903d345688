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
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
)

// protocol marks the routes of netd, so that it finds those of an earlier process of
// its own and leaves all others alone.
const protocol netlink.RouteProtocol = 203

// routes are the routes to pods of other nodes: gateways by network.
type routes interface {
	list() (map[netip.Prefix]netip.Addr, error)
	replace(to netip.Prefix, via netip.Addr) error
	remove(to netip.Prefix, via netip.Addr) error
}

// syncRoutes makes the routes those of want.
func syncRoutes(r routes, want map[netip.Prefix]netip.Addr) error {
	present, err := r.list()
	if err != nil {
		return fmt.Errorf("cannot list routes to pods of other nodes: %w", err)
	}
	var errs []error
	for to, via := range present {
		if _, ok := want[to]; ok {
			continue
		}
		if err := r.remove(to, via); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove the route to %s via %s, which no node has: %w", to, via, err))
		}
	}
	for to, via := range want {
		if present[to] == via {
			continue
		}
		if err := r.replace(to, via); err != nil {
			errs = append(errs, fmt.Errorf("cannot set the route to %s via %s: %w", to, via, err))
		}
	}
	return errors.Join(errs...)
}

// kernel has the routes of the node's network namespace.
type kernel struct{}

func (kernel) list() (map[netip.Prefix]netip.Addr, error) {
	all, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, err
	}
	found := map[netip.Prefix]netip.Addr{}
	for _, route := range all {
		if route.Dst == nil {
			continue
		}
		to, ok := netipx.FromStdIPNet(route.Dst)
		via, gateway := netipx.FromStdIP(route.Gw)
		if ok && gateway {
			found[to] = via
		}
	}
	return found, nil
}

func (kernel) replace(to netip.Prefix, via netip.Addr) error {
	return netlink.RouteReplace(route(to, via))
}

func (kernel) remove(to netip.Prefix, via netip.Addr) error {
	return netlink.RouteDel(route(to, via))
}

func route(to netip.Prefix, via netip.Addr) *netlink.Route {
	return &netlink.Route{Dst: netipx.PrefixIPNet(to), Gw: via.AsSlice(), Protocol: protocol}
}

// mtuOf returns the size of packets on the interface that has the address.
func mtuOf(host netip.Addr) (int, error) {
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return 0, fmt.Errorf("cannot list the node's addresses: %w", err)
	}
	for _, a := range addresses {
		if address, _ := netipx.FromStdIP(a.IP); address != host {
			continue
		}
		link, err := netlink.LinkByIndex(a.LinkIndex)
		if err != nil {
			return 0, fmt.Errorf("cannot find the interface of %s: %w", host, err)
		}
		return link.Attrs().MTU, nil
	}
	return 0, fmt.Errorf("no interface has the address %s of HOST_IP; netd needs the network of the node (hostNetwork)", host)
}
