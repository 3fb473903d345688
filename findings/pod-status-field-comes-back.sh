#!/usr/bin/env bash
# A field that a client removes from the status of a Pod is there again, and the answer is 200.
#
# Expected: what a JSON patch or an update of pods/status removes is removed, or refused.
# Happens: kube-apiserver of 1.37 takes three fields that are missing (resourceClaimStatuses,
#   nodeAllocatableResourceClaimStatuses, extendedResourceClaimStatus) and every
#   observedGeneration of 0 for ones that an old client does not know, and puts the stored
#   value back without an error. A list is cleared by an empty one, which differs from a missing
#   one in JSON alone: Go's types of the API cannot send it, since the field is omitempty. Nothing
#   clears the others.
# Versions: k8s.io/kubernetes v1.37.2, the strategy of pods/status; 1.36.3 keeps only observedGeneration.
# Matters: code that clears such a field, as this repository does when a gate goes off, succeeds
#   forever; a typed client cannot do it at all.
# Here: pkg/featurelifecycle/catalog/dra.go clears all elements of the list, which leaves an empty
#   one; pods.go says of observedGeneration that it stays; lifecycle/task reads each object again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kubernetes strategy 37.2
cat >"$work/strategy/main.go" <<'GO'
package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/registry/core/pod"
)

func read(text string) *api.Pod {
	var sent v1.Pod
	var read api.Pod
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		panic(err)
	}
	if err := legacyscheme.Scheme.Convert(&sent, &read, nil); err != nil {
		panic(err)
	}
	return &read
}

func main() {
	const stored = `{"status":{"observedGeneration":2,"resourceClaimStatuses":[{"name":"gpu"}],"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}`
	for _, sent := range []string{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"status":{"resourceClaimStatuses":[],"conditions":[{"type":"Ready","status":"True"}]}}`,
	} {
		update := read(sent)
		pod.StatusStrategy.PrepareForUpdate(context.Background(), update, read(stored))
		fmt.Println("sent  ", sent)
		fmt.Printf("stored %d claim statuses, observedGeneration %d, in the condition %d\n",
			len(update.Status.ResourceClaimStatuses), update.Status.ObservedGeneration, update.Status.Conditions[0].ObservedGeneration)
	}
	// What a typed client sends for an empty list.
	text, err := json.Marshal(v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{}})
	if err != nil {
		panic(err)
	}
	fmt.Println("typed ", string(text))
}
GO
tidy strategy
program strategy

conclude "a list that is missing from a Pod's status comes back; an empty one clears it, and no typed client can send it" <<'SEEN'
sent   {"status":{"conditions":[{"type":"Ready","status":"True"}]}}
stored 1 claim statuses, observedGeneration 2, in the condition 2
sent   {"status":{"resourceClaimStatuses":[],"conditions":[{"type":"Ready","status":"True"}]}}
stored 0 claim statuses, observedGeneration 2, in the condition 2
typed  {}
SEEN
