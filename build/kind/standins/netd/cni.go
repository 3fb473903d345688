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
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"go4.org/netipx"
)

// object is one of JSON.
type object map[string]any

// configure writes the configuration of CNI where it has changed: containerd reads it
// at every change, and the node is Ready with the first.
func (n *network) configure(cidrs []netip.Prefix) error {
	if len(cidrs) == 0 {
		// kube-controller-manager has not given the node its part; that is an update.
		return nil
	}
	content, err := json.MarshalIndent(n.conflist(cidrs), "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(n.dir, "10-kindnet.conflist")
	if present, err := os.ReadFile(file); err == nil && bytes.Equal(present, content) {
		return nil
	}
	// Its readers never see a part: containerd ignores temporary names.
	if err := renameio.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("cannot write the node's configuration of CNI: %w", err)
	}
	return nil
}

func (n *network) conflist(cidrs []netip.Prefix) object {
	var to []object
	var ranges [][]object
	for _, cidr := range cidrs {
		everywhere := "::/0"
		if cidr.Addr().Is4() {
			everywhere = "0.0.0.0/0"
		}
		to = append(to, object{"dst": everywhere})
		ranges = append(ranges, []object{n.rangeOf(cidr)})
	}
	// Memory is where leases are kept, so that a node that starts again has none.
	ipam := object{"type": "host-local", "dataDir": "/run/cni-ipam-state", "routes": to, "ranges": ranges}
	return object{"cniVersion": "0.3.1", "name": "kindnet", "plugins": []object{
		{"type": "ptp", "ipMasq": true, "mtu": n.mtu, "ipam": ipam},
		{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
	}}
}

// rangeOf returns the node's part as a range of the whole pods' network. The first
// address is the gateway's; IPv4's last one is for broadcasts.
func (n *network) rangeOf(cidr netip.Prefix) object {
	subnet, gateway, last := cidr, cidr.Addr().Next(), netipx.PrefixLastIP(cidr)
	if cidr.Addr().Is4() {
		last = last.Prev()
	}
	for _, s := range n.subnets {
		if s.Overlaps(cidr) && s.Bits() < cidr.Bits() {
			subnet = s
		}
	}
	return object{"subnet": subnet, "rangeStart": gateway.Next(), "rangeEnd": last, "gateway": gateway}
}
