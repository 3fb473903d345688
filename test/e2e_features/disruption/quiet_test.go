//go:build linux

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

package disruption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
	"k8s.io/kubernetes-features/test/utils/localcluster"
)

// minute is what was written to etcd during a quiet minute.
type minute struct {
	// writes counts them by key.
	writes map[string]int
	total  int
	// requests counts those that kube-apiserver answered, by group, verb and
	// resource.
	requests map[string]int
	// processor is the time that kube-apiserver computed, in seconds; memory is what it
	// held in the end, in bytes.
	processor, memory float64
	// reporters are the keys of the Leases that FeatureReports name.
	reporters map[string]bool
}

// TestNoLoadAtRest compares what two clusters write while nothing happens, one
// with the system and one without. It may only be the Leases of processes that
// report and have no other sign of life.
func TestNoLoadAtRest(t *testing.T) {
	s := readSettings(t)
	if !s.wholeForm {
		t.Skip("the short form leaves this out: it takes several minutes")
	}
	t.Parallel()
	row := newRow("nothing happens for a minute (unexplained writes count as changed objects)")
	var with, without *minute
	t.Run("clusters", func(t *testing.T) {
		t.Run("with the system", func(t *testing.T) {
			t.Parallel()
			with = atRest(t, "")
		})
		t.Run("with FeatureLifecycle=false", func(t *testing.T) {
			t.Parallel()
			without = atRest(t, "FeatureLifecycle=false")
		})
	})
	if with == nil || without == nil {
		return
	}
	row.happened()
	said := func(format string, args ...any) { fmt.Fprintf(t.Output(), format+"\n", args...) }
	said("revisions of etcd in the minute: %d with the system, %d without", with.total, without.total)
	said("requests in the minute: %d with the system, %d without", with.answered(), without.answered())
	said("kube-apiserver in the minute: %.1f s of a core with the system, %.1f s without", with.processor, without.processor)
	said("memory of kube-apiserver: %.0f MiB with the system, %.0f MiB without", with.memory/(1<<20), without.memory/(1<<20))
	for _, what := range slices.Sorted(maps.Keys(with.requests)) {
		if here, there := with.requests[what], without.requests[what]; here != there {
			said("%s: %d requests, %d without the system", what, here, there)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(with.writes)) {
		here, there := with.writes[key], without.writes[key]
		switch {
		case with.reporters[key]:
			said("%s: written %d times, the Lease of a reporter", key, here)
		case !periodic(key) && there == 0:
			t.Errorf("%s: written %d times with the system alone", key, here)
			row.lost(0, 1)
		// Leases are renewed a little more often or less on a busy machine.
		case here > there+2+there/5:
			t.Errorf("%s: written %d times, %d without the system", key, here, there)
			row.lost(0, 1)
		default:
			said("%s: written %d times, %d without the system", key, here, there)
		}
	}
}

// answered is the number of requests. Watches count when they end.
func (m *minute) answered() int {
	total := 0
	for _, n := range m.requests {
		total += n
	}
	return total
}

// periodic is true for what upstream's components write from time to time while
// nothing happens, so that it may fall into one minute and not into another: the
// Leases of nodes, leaders and servers, and the status of nodes.
func periodic(key string) bool {
	for _, prefix := range []string{"/registry/leases/", "/registry/masterleases/", "/registry/minions/"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// atRest starts a cluster with nodes and returns what it writes in a minute that
// follows on a minute without a change of features.
func atRest(t *testing.T, gates string) *minute {
	t.Helper()
	c := framework.Start(t, localcluster.Config{Nodes: 3, FeatureGates: gates})
	result := &minute{writes: map[string]int{}, reporters: map[string]bool{}}
	if gates == "" {
		reports := c.WaitForReports("of every process", func(reports []v1alpha1.FeatureReport) bool { return len(reports) == 3+2*3 })
		for _, report := range reports {
			if lease := report.Spec.Liveness.Lease; lease != nil && lease.Name == report.Name {
				result.reporters["/registry/leases/"+lease.Namespace+"/"+lease.Name] = true
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*framework.Patience)
	defer cancel()
	events := c.Etcd().Watch(ctx, "/", clientv3.WithPrefix())
	// Processes ask for further gates in their first minutes and report them.
	calm := time.NewTimer(75 * time.Second)
	measured := make(<-chan time.Time)
	measuring := false
	var before map[string]int
	for {
		select {
		case response, ok := <-events:
			if !ok || response.Err() != nil {
				t.Fatalf("following etcd: %v, %v", response.Err(), ctx.Err())
			}
			for _, event := range response.Events {
				key := string(event.Kv.Key)
				if !measuring && strings.HasPrefix(key, "/registry/feature") {
					calm.Reset(75 * time.Second)
				}
				if measuring {
					result.writes[key]++
					result.total++
				}
			}
		case <-calm.C:
			measuring = true
			measured = time.After(time.Minute)
			before, result.processor = c.Requests(), -c.Metric("process_cpu_seconds_total")
		case <-measured:
			result.requests = c.Requests()
			result.processor += c.Metric("process_cpu_seconds_total")
			result.memory = c.Metric("process_resident_memory_bytes")
			for what, n := range before {
				if result.requests[what] -= n; result.requests[what] == 0 {
					delete(result.requests, what)
				}
			}
			return result
		}
	}
}
