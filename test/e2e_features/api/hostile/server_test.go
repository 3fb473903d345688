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

package hostile

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes-features/test/e2e_features/framework"
)

// failing are how many rows of all tables are answered with which code of 5xx, and
// hangUps how many have a client that hangs up in its body: what that one is told is
// a matter of time, what the server counts is a 500. docs/security.md has the same
// numbers; a test of docs compares them.
var failing = map[int]int{500: 17, 501: 1, 504: 2, 505: 1}

const hangUps = 4

// TestFailing counts the rows. What they expect is what they get, or they fail.
func TestFailing(t *testing.T) {
	got, hung := map[int]int{}, 0
	for _, rows := range tables() {
		for _, r := range rows {
			if r.code >= http.StatusInternalServerError {
				got[r.code]++
			}
		}
	}
	for name, r := range raws() {
		if r.hangUp {
			hung++
			continue
		}
		if len(r.says) != 1 {
			t.Errorf("%s: %d codes are allowed, want one", name, len(r.says))
		}
		for code := range r.says {
			if code >= http.StatusInternalServerError {
				got[code]++
			}
		}
	}
	if diff := cmp.Diff(failing, got); diff != "" || hung != hangUps {
		t.Errorf("%d rows hang up, want %d; rows with 5xx (-want +got):\n%s", hung, hangUps, diff)
	}
}

// failure is an answer of 5xx that the server counts.
type failure struct {
	of   string
	code int
}

const (
	// ours are requests for the kinds of the group.
	ours = "features.k8s.io"
	// upstreams are those for kinds of upstream's, to compare with.
	upstreams = "upstream's"
)

// expect says that the server has one more failure to count, if the code is one.
func (w *world) expect(of string, code int) {
	if code >= http.StatusInternalServerError {
		w.failures[failure{of, code}]++
	}
}

var (
	failureSeries = regexp.MustCompile(`^apiserver_request_total\{code="(5[0-9]*)",([^}]*)\} ([0-9.e+]+)\n$`)
	// twins are of the kinds of upstream's that the rows have.
	twins = regexp.MustCompile(`group="",resource="(configmaps|namespaces)"`)
)

// counted are the answers of 5xx that the server has counted since its start.
func (w *world) counted(t *testing.T) map[failure]int {
	t.Helper()
	counted := map[failure]int{}
	for line := range strings.Lines(w.metrics(t)) {
		if !strings.HasPrefix(line, `apiserver_request_total{code="5`) {
			continue
		}
		series := failureSeries.FindStringSubmatch(line)
		if series == nil {
			t.Fatalf("this test does not understand the metric %s", line)
		}
		code, err := strconv.Atoi(series[1])
		if err != nil {
			t.Fatalf("%s: %v", series[0], err)
		}
		n, err := strconv.ParseFloat(series[3], 64)
		if err != nil {
			t.Fatalf("%s: %v", series[0], err)
		}
		switch {
		case strings.Contains(series[2], `group="features.k8s.io"`):
			counted[failure{ours, code}] += int(n)
		case twins.MatchString(series[2]):
			counted[failure{upstreams, code}] += int(n)
		}
	}
	return counted
}

// checkFailures compares the server's count of failures with the expected number. It
// includes unread responses of 5xx. The server counts when it has answered, so what
// it should count is waited for. What it should not may come late, and is then told
// by the next row.
func (w *world) checkFailures(t *testing.T) {
	t.Helper()
	var counted map[failure]int
	// One row's failure is not that of all that follow.
	defer func() { w.failures = counted }()
	// The difference is told below. It is not waited for where the answers were others.
	_ = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, framework.Patience, true, func(context.Context) (bool, error) {
		counted = w.counted(t)
		missing := false
		for what, n := range w.failures {
			missing = missing || counted[what] < n
		}
		return !missing || t.Failed(), nil
	})
	if diff := cmp.Diff(w.failures, counted); diff != "" {
		t.Errorf("the server counts other answers of 5xx than those that were expected (-expected +counted):\n%s", diff)
	}
}

func (w *world) metrics(t *testing.T) string {
	t.Helper()
	metrics, err := w.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(metrics)
}

// checkServer looks for panics that requests may have left in the server.
func (w *world) checkServer(t *testing.T) {
	t.Helper()
	for _, p := range w.Processes() {
		panics, err := framework.Panics(p)
		if err != nil {
			t.Error(err)
		}
		for _, line := range panics {
			t.Errorf("%s logs: %s", p.Name, short(line))
		}
	}
	metrics := w.metrics(t)
	for _, series := range regexp.MustCompile(`(?m)^apiserver_request_post_timeout_total\{[^}]*status="panic"[^}]*\} [0-9.e+]+$`).FindAllString(metrics, -1) {
		t.Errorf("a handler panicked: %s", series)
	}
	if !strings.Contains(metrics, `apiserver_request_total{code="4`) {
		t.Error("the metrics count no refused request; this test does not understand them any more")
	}
}
