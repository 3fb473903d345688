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
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestPercentilesMatchRecordedValues(t *testing.T) {
	var l Latencies
	for i := range 100 {
		l.Record(time.Duration(100-i) * time.Millisecond)
	}
	d := l.Take()
	for p, want := range map[float64]time.Duration{0: 1, 1: 1, 50: 50, 99: 99, 99.5: 100, 100: 100} {
		if got := d.Percentile(p); got != want*time.Millisecond {
			t.Errorf("percentile %v is %s, want %d ms", p, got, want)
		}
	}
	if d.Count() != 100 || d.Max() != 100*time.Millisecond {
		t.Errorf("%d durations up to %s", d.Count(), d.Max())
	}
	if again := l.Take(); again.Count() != 0 || again.Percentile(99) != 0 {
		t.Errorf("what was taken is still there: %v", again)
	}
}

func TestSpread(t *testing.T) {
	if got := SpreadOf(3, 1, 2); got != (Spread{2, 1, 3}) {
		t.Errorf("of three: %v", got)
	}
	if got := SpreadOf(4, 1, 2, 3); got != (Spread{2.5, 1, 4}) {
		t.Errorf("of four: %v", got)
	}
	if got := SpreadOf(); got != (Spread{}) {
		t.Errorf("of none: %v", got)
	}
}

// TestMedianRange compares with the tables of the sign test.
func TestMedianRange(t *testing.T) {
	for n, want := range map[int][2]float64{1: {1, 1}, 5: {1, 5}, 6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 15: {4, 12}, 25: {8, 18}} {
		var figures []float64
		for i := range n {
			figures = append(figures, float64(n-i))
		}
		if low, high := MedianRange(figures...); low != want[0] || high != want[1] {
			t.Errorf("of %d figures: %v to %v, want %v", n, low, high, want)
		}
	}
	if low, high := MedianRange(); low != 0 || high != 0 {
		t.Errorf("of none: %v to %v", low, high)
	}
}

// TestAProcess observes this one while it uses what can be told.
func TestAProcess(t *testing.T) {
	p, err := ObserveProcess(t.Context(), os.Getpid(), func(context.Context) (int64, error) { return 42, nil })
	if err != nil {
		t.Fatal(err)
	}
	resident, _, err := Memory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	// Not from the heap, which may have room that is resident already.
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := range memory {
		memory[i] = byte(i)
	}
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now < before+100*time.Millisecond; {
		if now, err = CPU(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	usage, err := p.Stop()
	if err := errors.Join(err, syscall.Munmap(memory)); err != nil {
		t.Fatal(err)
	}
	if usage.CPU < 100*time.Millisecond || usage.Wall < 50*time.Millisecond || usage.Cores() <= 0 {
		t.Errorf("used %s in %s, which is less than it did", usage.CPU, usage.Wall)
	}
	if usage.RSSPeak < resident+size/2 {
		t.Errorf("the peak is %d over %d; the 64 MiB are missing", usage.RSSPeak, resident)
	}
	if usage.HeapPeak != 42 {
		t.Errorf("the heap is %d, not what was sampled", usage.HeapPeak)
	}
}

func TestMissingProcess(t *testing.T) {
	// Ids end at 2^22 (proc(5), pid_max).
	if _, err := ObserveProcess(t.Context(), 1<<22+1, nil); err == nil {
		t.Error("a process that cannot be was observed")
	}
}

func TestMetricsAreAddedUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="",resource="pods",verb="GET"} 3
apiserver_request_total{code="429",group="",resource="pods",verb="GET"} 2
apiserver_request_total{code="200",group="apps",resource="statefulsets",verb="PATCH"} 1e+06
# TYPE apiserver_flowcontrol_rejected_requests_total counter
apiserver_flowcontrol_rejected_requests_total{flow_schema="feature-reports",priority_level="feature-reports",reason="queue-full"} 7
apiserver_flowcontrol_rejected_requests_total{flow_schema="feature-reports",priority_level="feature-reports",reason="time-out"} 1
apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",priority_level="global-default",reason="queue-full"} 0
`))
	}))
	defer server.Close()
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}).CoreV1().RESTClient()
	m, err := Scrape(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Requests(map[string]string{"resource": "pods"}); got != 5 {
		t.Errorf("%v requests of pods, want 5", got)
	}
	if got := m.Requests(map[string]string{"verb": "PATCH"}); got != 1e6 {
		t.Errorf("%v patches, want 1e6", got)
	}
	if got := m.TooManyRequests(); got != 2 {
		t.Errorf("%v requests got 429, want 2", got)
	}
	if got, want := m.Rejected(), map[string]float64{"feature-reports (queue-full)": 7, "feature-reports (time-out)": 1}; !maps.Equal(got, want) {
		t.Errorf("rejected were %v, want %v", got, want)
	}
}

// TestPartsAreAddedUp: what was measured in several parts is what was measured in all of
// them, and requests that failed are told apart.
func TestPartsAreAddedUp(t *testing.T) {
	sum := Sum(
		Part{
			Seconds: 2, Usage: Usage{Wall: 2 * time.Second, CPU: time.Second, RSSPeak: 5}, Own: time.Second, Written: Written{Reports: 1, Features: 2, Leases: 3, Writes: 9},
			TooMany: 1, Rejected: map[string]float64{"queue-full": 1}, Lists: 1, Events: 2, Bytes: 3,
			Foreground: ForegroundStats{All: distribution([]time.Duration{1}), Codes: map[string]int{"200": 7, "429": 2, unanswered: 1}},
		},
		Part{
			Seconds: 1, Usage: Usage{Wall: time.Second, CPU: time.Second / 2, RSSPeak: 4}, Own: time.Second, Written: Written{Reports: 1, Writes: 1},
			TooMany: 2, Rejected: map[string]float64{"queue-full": 1, "time-out": 1}, Lists: 1, Events: 1, Bytes: 1,
			Foreground: ForegroundStats{All: distribution([]time.Duration{2}), Codes: map[string]int{"200": 1, "500": 4}},
		},
	)
	if sum.Seconds != 3 || sum.Usage.Cores() != 0.5 || sum.Usage.RSSPeak != 5 || sum.Own != 2*time.Second || sum.Written != (Written{Reports: 2, Features: 2, Leases: 3, Writes: 10}) ||
		sum.TooMany != 3 || !maps.Equal(sum.Rejected, map[string]float64{"queue-full": 2, "time-out": 1}) || sum.Lists != 2 || sum.Events != 3 || sum.Bytes != 4 {
		t.Errorf("the sum is %+v", sum)
	}
	if f := sum.Foreground; f.All.Count() != 2 || f.Failed() != 7 || f.Refused() != 2 || f.Unanswered() != 1 || sum.Refused() != 2 {
		t.Errorf("of the foreground %d requests ended, %d failed, %d with 429 and %d without an answer", f.All.Count(), f.Failed(), f.Refused(), f.Unanswered())
	}
}
