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

// Command netd is the network of kind's nodes in place of kindnetd, which is to be
// had as an image only. kind's own manifest starts it, unchanged, on every node. It
// writes the node's configuration of CNI and keeps a route to the pods of every other
// node. There are no network policies.
//
// Traffic that leaves the pods' network is masqueraded by the plugin ptp. It exempts
// the network that an address is in, so addresses have the mask of the whole pods'
// network, of which host-local hands out the node's part. With the node's own part
// as the network, ptp would masquerade what goes to pods of other nodes. Programs of
// iptables or nft are the node's, where plugins run; this image needs none.
package main
