#!/usr/bin/env bash
# A stored object of a stable API version loses a field between two releases, and no
# decoder says so.
#
# Expected: resource.k8s.io/v1 is the same version in Kubernetes 1.36 and 1.37; the JSON
#   decoder of API servers (sigs.k8s.io/json, strict) reports each field that it does not know.
# Happens: 1.37 took nodeAllocatableResourceMappings (field 13, an alpha feature's) out of
#   the v1 type. What is in etcd is protobuf: Unmarshal skips field 13 without an error, and
#   an update by the new release writes the object without it, so going back to 1.36 does
#   not bring the value back.
# Versions: k8s.io/api v0.36.3 and v0.37.2.
# Matters: an upgrade with the gate on loses data with a clean log; neither a search for
#   objects that cannot be decoded nor a strict client finds it.
# Here: pkg/featurelifecycle/catalog/dra.go declares which field the gate DRANodeAllocatableResources
#   leaves, so that turning it off before the upgrade shows and clears it; a finder of
#   ClearUnreadable (lifecycle/task/clearunreadable.go of the library) cannot see it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module old k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3
cat >old/main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	resourcev1 "k8s.io/api/resource/v1"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var slice resourcev1.ResourceSlice
	if os.Args[1] == "write" {
		slice.Spec.Devices = []resourcev1.Device{{
			Name:                            "cpu0",
			NodeAllocatableResourceMappings: map[corev1.ResourceName]resourcev1.NodeAllocatableResourceMapping{"cpu": {}},
		}}
		stored, err := slice.Marshal()
		check(err)
		check(os.WriteFile("stored.pb", stored, 0o600))
		text, err := json.Marshal(slice)
		check(err)
		check(os.WriteFile("sent.json", text, 0o600))
	}
	stored, err := os.ReadFile("stored.pb")
	check(err)
	slice = resourcev1.ResourceSlice{}
	check(slice.Unmarshal(stored))
	fmt.Printf("1.36 reads %q with %d mappings\n", slice.Spec.Devices[0].Name, len(slice.Spec.Devices[0].NodeAllocatableResourceMappings))
}
GO
sed -i 's|^	resourcev1 |	corev1 "k8s.io/api/core/v1"\n&|' old/main.go
module new k8s.io/api@v0.37.2 k8s.io/apimachinery@v0.37.2
cat >new/main.go <<'GO'
package main

import (
	"fmt"
	"os"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/json"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	stored, err := os.ReadFile("stored.pb")
	check(err)
	var slice resourcev1.ResourceSlice
	err = slice.Unmarshal(stored)
	fmt.Printf("1.37 decodes protobuf: error %v, device %q, %d resources\n", err, slice.Spec.Devices[0].Name, len(slice.Spec.Devices[0].NodeAllocatableResources))
	text, err := os.ReadFile("sent.json")
	check(err)
	strict, err := json.UnmarshalStrict(text, &resourcev1.ResourceSlice{})
	fmt.Printf("1.37 decodes JSON: error %v, strict errors %v\n", err, strict)
	updated, err := slice.Marshal()
	check(err)
	check(os.WriteFile("stored.pb", updated, 0o600))
	fmt.Println("1.37 writes fewer bytes:", len(updated) < len(stored))
}
GO
program old write
program new
program old read
conclude "protobuf of resource.k8s.io/v1 from 1.36 decodes in 1.37 without the field and without an error" <<'OUT'
1.36 reads "cpu0" with 1 mappings
1.37 decodes protobuf: error <nil>, device "cpu0", 0 resources
1.37 decodes JSON: error <nil>, strict errors [unknown field "spec.devices[0].nodeAllocatableResourceMappings"]
1.37 writes fewer bytes: true
1.36 reads "cpu0" with 0 mappings
OUT
