//go:build linux

/*
Copyright 2026 The Kubernetes Authors.

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

package single

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// random is a source of moments that can be had again with FAULTS_SEED.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("FAULTS_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("FAULTS_SEED is %q: %v", given, err)
		}
	}
	said(t, "the same moments again: FAULTS_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestTheLeaderIsKilled kills the server that clears the field at random moments
// of the clearing, once or twice in each transition. Mostly it is started again at
// once, as a supervisor does; sometimes it stays dead until another server has
// finished.
func TestTheLeaderIsKilled(t *testing.T) {
	t.Parallel()
	kills, objects := pick(20, 3), pick(2000, 500)
	restarted := faults.fault("the leader is killed (kill -9) while it clears " + strconv.Itoa(objects) + " objects; started again")
	var gone *row
	if !short {
		// Another server waits most of a minute for signs of life.
		gone = faults.fault("the same; it stays dead until another has finished")
	}
	moments := random(t)
	w := newWorld(t, objects)
	leader := w.leader()
	for round, killed := 1, 0; killed < kills; round++ {
		dead := !short && round%7 == 0
		row := restarted
		if dead {
			row = gone
		}
		r := w.turnOff(t, row)
		moment := 0
		for range min(1+(round+1)%2, kills-killed) {
			again := moment
			moment += 1 + moments.IntN((objects-moment)*9/10)
			r.cleared(t, moment)
			if again > 0 && w.feature.Last().Status.State == v1alpha1.StateOff {
				// It finished before it was ready.
				break
			}
			r.injected()
			if err := w.cluster.Kill(t.Context(), leader); err != nil {
				t.Fatal(err)
			}
			killed++
			said(t, "round %d: %s killed after %d objects", round, leader, moment)
			if dead {
				break
			}
			w.revive(t, leader)
		}
		took := r.restOff(t)
		if dead {
			w.revive(t, leader)
		}
		said(t, "round %d: L2: Off %.1f s after the last kill; S1, S3, S7 hold: %t", round, took.Seconds(), !t.Failed())
	}
}
