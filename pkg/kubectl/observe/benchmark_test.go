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

package observe

import (
	"fmt"
	runtimemetrics "runtime/metrics"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkObserve reads 2,000 kubelets whose metrics have the size of real ones, of a node
// with some thirty Pods.
func BenchmarkObserve(b *testing.B) {
	const kubelets, lines, gates = 2000, 2500, 200
	f, config := newFake(b, 1)
	var scraped strings.Builder
	for i := range lines {
		fmt.Fprintf(&scraped, "kubelet_runtime_operations_duration_seconds_bucket{operation_type=\"operation_%d\",le=\"0.005\"} %d\n", i, i)
	}
	scraped.WriteString(metricsOf("v1.36.3", 1, manyGates(gates)))
	text := scraped.String()
	var nodes []corev1.Node
	for i := range kubelets {
		name := fmt.Sprintf("n%04d", i)
		nodes = append(nodes, f.node(name, "v1.36.3", nil, nil))
		f.text("/api/v1/nodes/"+name+"/proxy/metrics", text)
	}
	list(f, "/api/v1/nodes", "v1", "NodeList", nodes...)
	heap := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	peak := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		c, err := Observe(b.Context(), config, Options{Progress: func(int, int) {
			runtimemetrics.Read(heap)
			peak = max(peak, heap[0].Value.Uint64())
		}})
		if err != nil {
			b.Fatal(err)
		}
		if len(c.Processes) != kubelets {
			b.Fatalf("%d kubelets were observed, want %d", len(c.Processes), kubelets)
		}
	}
	b.ReportMetric(float64(len(text))/1024, "KiB/kubelet")
	// With what is not collected yet, and the server of the test.
	b.ReportMetric(float64(peak)/(1<<20), "MiB-heap")
}

func manyGates(n int) map[string]bool {
	gates := map[string]bool{}
	for i := range n {
		gates[fmt.Sprintf("SomeFeatureGate%03d", i)] = i%3 == 0
	}
	return gates
}
