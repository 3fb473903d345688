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

package measure

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
)

// Metrics are those of a server at one moment. Counters begin with its start.
type Metrics struct{ all testutil.Metrics }

// Scrape reads the metrics of the server that a client talks to.
func Scrape(ctx context.Context, client rest.Interface) (Metrics, error) {
	data, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return Metrics{}, fmt.Errorf("reading metrics: %w", err)
	}
	m := Metrics{all: testutil.NewMetrics()}
	if err := testutil.ParseMetrics(string(data), &m.all); err != nil {
		return Metrics{}, fmt.Errorf("reading metrics: %w", err)
	}
	if len(m.all) == 0 {
		return Metrics{}, fmt.Errorf("the server's /metrics has no metrics among %d bytes", len(data))
	}
	return m, nil
}

// Sum adds up the samples of a metric whose labels have the given values, 0 when
// there are none: counters with labels appear when they first count.
func (m Metrics) Sum(name string, labels map[string]string) float64 {
	sum := 0.0
	for _, sample := range m.all[name] {
		if matches(sample, labels) {
			sum += float64(sample.Value)
		}
	}
	return sum
}

func matches(sample *testutil.Sample, labels map[string]string) bool {
	for name, value := range labels {
		if string(sample.Metric[testutil.LabelName(name)]) != value {
			return false
		}
	}
	return true
}

// Requests is how many requests kube-apiserver has answered, watches included.
// Labels are those of apiserver_request_total: group, verb, resource, code ….
func (m Metrics) Requests(labels map[string]string) float64 {
	return m.Sum("apiserver_request_total", labels)
}

// TooManyRequests is the number of requests the server has turned away with 429.
func (m Metrics) TooManyRequests() float64 { return m.Requests(map[string]string{"code": "429"}) }

// Rejected is how many requests API priority and fairness has rejected, by flow schema
// and reason.
func (m Metrics) Rejected() map[string]float64 {
	rejected := map[string]float64{}
	for _, sample := range m.all["apiserver_flowcontrol_rejected_requests_total"] {
		if n := float64(sample.Value); n > 0 {
			rejected[fmt.Sprintf("%s (%s)", sample.Metric["flow_schema"], sample.Metric["reason"])] += n
		}
	}
	return rejected
}

// Live is the memory of a Go process after a collection, in bytes.
type Live struct {
	// Heap are the objects that are alive. Spans are the pieces of memory that have some of
	// them, and Kept are those that have none, and were not returned to the kernel yet.
	Heap, Spans, Kept int64
	// Stacks are those of goroutines.
	Stacks int64
	// RSS is the resident memory. Besides these it has what the program itself takes.
	RSS int64
}

// Less is what there is more than there was.
func (l Live) Less(before Live) Live {
	return Live{l.Heap - before.Heap, l.Spans - before.Spans, l.Kept - before.Kept, l.Stacks - before.Stacks, l.RSS - before.RSS}
}

// LiveMemory collects garbage in the server that a client talks to, and returns what is
// left.
func LiveMemory(ctx context.Context, client rest.Interface, pid int) (l Live, err error) {
	// Two collections: the first ends what finalizers keep. The heap profile with
	// this parameter makes one (net/http/pprof).
	for range 2 {
		if err := client.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").Do(ctx).Error(); err != nil {
			return l, fmt.Errorf("collecting garbage: %w", err)
		}
	}
	m, err := Scrape(ctx, client)
	if err != nil {
		return l, err
	}
	of := func(name string) int64 { return int64(m.Sum("go_memstats_"+name+"_bytes", nil)) }
	l = Live{Heap: of("alloc"), Spans: of("heap_inuse"), Kept: of("heap_idle") - of("heap_released"), Stacks: of("stack_inuse")}
	l.RSS, _, err = Memory(pid)
	return l, err
}
