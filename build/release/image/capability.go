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

package image

import "encoding/binary"

// CapabilityAttribute is the extended attribute that holds a file's
// capabilities.
const CapabilityAttribute = "security.capability"

// Constants of Linux' include/uapi/linux/capability.h.
const (
	capNetBindService = 10
	capRevision2      = 0x02000000
	capEffective      = 0x000001
)

// NetBindService is the value of CapabilityAttribute that "setcap
// cap_net_bind_service=+ep" writes: kube-apiserver may listen on ports below
// 1024 while it runs as any user.
func NetBindService() string {
	// Revision and flags, then the low and the high words of what is permitted
	// and what is inheritable, all of them little-endian.
	words := []uint32{capRevision2 | capEffective, 1 << capNetBindService, 0, 0, 0}
	var value []byte
	for _, word := range words {
		value = binary.LittleEndian.AppendUint32(value, word)
	}
	return string(value)
}
