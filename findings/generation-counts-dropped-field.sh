#!/usr/bin/env bash
# An update that stores nothing new raises metadata.generation, each time it is sent.
#
# Expected: an update whose fields of a gate that is off are dropped leaves the object as it is:
#   its generation stays, and nothing is written.
# Happens: kube-apiserver compares the spec of a ResourceSlice with the stored one before it drops
#   what is off. A DRA driver that publishes taints while DRADeviceTaints is off raises the
#   generation with each update of the same content, so that each is a write and an event to all
#   that watch. A Deployment's strategy drops first and compares then.
# Versions: k8s.io/kubernetes v1.37.2.
# Matters: after a gate went off, clients that do not know of it write the same object forever; who
#   waits for a quiet cluster, or counts writes, sees a change where nothing changes.
# Here: pkg/featurelifecycle/catalog/dra.go clears taints of ResourceSlices when the gate goes off;
#   a driver that still publishes them turns each of its updates into a write.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kubernetes strategy 37.2
cat >"$work/strategy/main.go" <<'GO'
package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
)

// published is what a driver sends.
func published() *resource.ResourceSlice {
	node := "node-1"
	return &resource.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resource.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node, Pool: resource.ResourcePool{Name: "pool", ResourceSliceCount: 1},
			Devices: []resource.Device{{Name: "gpu-0", Taints: []resource.DeviceTaint{{Key: "example.com/health", Value: "unknown", Effect: resource.DeviceTaintEffectNoSchedule}}}},
		},
	}
}

func main() {
	for _, on := range []bool{true, false} {
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"DRADeviceTaints": on, "DRADeviceTaintRules": on}); err != nil {
			panic(err)
		}
		stored := published()
		resourceslice.Strategy.PrepareForCreate(context.Background(), stored)
		fmt.Printf("DRADeviceTaints=%t: created with %d taints, generation %d\n", on, len(stored.Spec.Devices[0].Taints), stored.Generation)
		for range 3 {
			update := published()
			update.Generation = stored.Generation
			resourceslice.Strategy.PrepareForUpdate(context.Background(), update, stored)
			fmt.Printf("sent again: %d taints, generation %d\n", len(update.Spec.Devices[0].Taints), update.Generation)
			stored = update
		}
	}
}
GO
tidy strategy
program strategy

conclude "while DRADeviceTaints is off, each update of a ResourceSlice with the same taints raises its generation, and stores nothing else" <<'SEEN'
DRADeviceTaints=true: created with 1 taints, generation 1
sent again: 1 taints, generation 1
sent again: 1 taints, generation 1
sent again: 1 taints, generation 1
DRADeviceTaints=false: created with 0 taints, generation 1
sent again: 0 taints, generation 2
sent again: 0 taints, generation 3
sent again: 0 taints, generation 4
SEEN
