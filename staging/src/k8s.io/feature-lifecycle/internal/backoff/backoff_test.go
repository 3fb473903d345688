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

package backoff

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"
)

// TestDelayDoublesUpToLongest also covers that the random part is below half.
func TestDelayDoublesUpToLongest(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 7: time.Minute, 8: time.Minute, 1 << 40: time.Minute} {
		for range 100 {
			if got := Delay(failures, time.Second, time.Minute); got <= want/2 || got > want {
				t.Fatalf("after %d failures the pause is %v, want more than %v and at most %v", failures, got, want/2, want)
			}
		}
	}
	if got := Delay(1, time.Minute, time.Second); got > time.Second {
		t.Errorf("the first pause is longer than the longest: %v", got)
	}
}

// TestThrottleDelaysOfManyClientsAreSpread: clients that were throttled together do not
// return together.
func TestThrottleDelaysOfManyClientsAreSpread(t *testing.T) {
	throttled, unavailable := apierrors.NewTooManyRequestsError("later"), apierrors.NewServiceUnavailable("later")
	for failures, want := range map[int][2]time.Duration{1: {throttleShortest, ThrottleWindow}, 2: {throttleShortest, 2 * ThrottleWindow}, 3: {throttleLongest / 2, throttleLongest}, 1 << 40: {throttleLongest / 2, throttleLongest}} {
		early, late, width := 0, 0, want[1]-want[0]
		for range 1000 {
			got := DelayFor(throttled, failures, time.Millisecond, time.Hour)
			if got < want[0] || got >= want[1] {
				t.Fatalf("after %d failures the pause is %v, want at least %v and less than %v", failures, got, want[0], want[1])
			}
			if got < want[0]+width/4 {
				early++
			}
			if got > want[1]-width/4 {
				late++
			}
		}
		// 250 of them are expected in each quarter.
		if early < 150 || late < 150 {
			t.Errorf("after %d failures %d of 1,000 retry in the first quarter of %v and %d in the last", failures, early, want, late)
		}
	}
	if got := DelayFor(unavailable, 1, time.Millisecond, time.Hour); got > time.Millisecond {
		t.Errorf("the pause after a server in trouble is %v, as if it had too many requests", got)
	}
}

func TestJitterStaysBelowLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.Int64Range(-10, int64(time.Hour)).Draw(t, "limit"))
		if got := Jitter(limit); got < 0 || got > max(0, limit-1) {
			t.Fatalf("Jitter(%v) is %v", limit, got)
		}
	})
}
