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

package leader

import "hash/fnv"

// Of returns the server that leads a feature: the one with the highest hash of server
// and feature (rendezvous hashing). A server that is added or removed moves only its
// own share of the features. The order of servers does not matter. Without servers there
// is no leader: "".
func Of(feature string, servers []string) string {
	leader, highest := "", uint64(0)
	for _, server := range servers {
		weight := weigh(feature, server)
		// Equal weights are decided by name, so that every server decides alike.
		if leader == "" || weight > highest || (weight == highest && server > leader) {
			leader, highest = server, weight
		}
	}
	return leader
}

func weigh(feature, server string) uint64 {
	h := fnv.New64a()
	// The zero byte keeps ("ab","c") and ("a","bc") apart. Writing to a hash
	// never fails.
	_, _ = h.Write([]byte(server))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(feature))
	return mix(h.Sum64())
}

// mix spreads the last bytes of the input over all bits, which FNV alone does
// not: without it, features with a common prefix lean to one server.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
