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
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Delay returns the pause after a number of consecutive failures, at least 1. It starts
// at shortest, doubles with each failure up to longest, and is shortened by a random part of
// its half, so that clients that failed together do not retry together.
func Delay(failures int, shortest, longest time.Duration) time.Duration {
	pause := Exponential(failures, shortest, longest)
	return pause - Jitter(pause/2)
}

// Exponential returns Delay without its random part, for a client that fails alone.
func Exponential(failures int, shortest, longest time.Duration) time.Duration {
	pause := min(shortest, longest)
	for range failures - 1 {
		if pause *= 2; pause >= longest {
			return longest
		}
	}
	return pause
}

const (
	// ThrottleWindow is the longest first pause after a server had too many requests.
	// Thousands of clients are throttled at the same moment, and a request that is
	// rejected costs the server nearly as much as one that is served.
	ThrottleWindow = 20 * time.Second
	// throttleShortest and throttleLongest bound all pauses of ThrottleDelay.
	throttleShortest, throttleLongest = time.Second, time.Minute
	// ThrottleStartWindow is the window in which processes that started together send
	// what can wait: 10,000 processes to a server that serves some 200 of them a second.
	// With the seconds before it and what the server needs, it stays below the minute
	// after which the server flow misses a report, and in which everything converges
	// after a fault.
	ThrottleStartWindow = 45 * time.Second
)

// ThrottleDelay returns the pause after a number of consecutive failures of which the last
// was that the server had too many requests. It is random, up to ThrottleWindow after the
// first failure, up to twice that after the second, and from half of a minute to a minute
// after all others: clients that were throttled together do not return together.
func ThrottleDelay(failures int) time.Duration {
	shortest, longest := throttleShortest, ThrottleWindow
	switch {
	case failures == 2:
		longest = 2 * ThrottleWindow
	case failures > 2:
		shortest, longest = throttleLongest/2, throttleLongest
	}
	return shortest + Jitter(longest-shortest)
}

// ThrottleStartDelay returns the pause of a process that was throttled at its start, and
// whose next request can wait: a random time within ThrottleStartWindow.
func ThrottleStartDelay() time.Duration {
	return throttleShortest + Jitter(ThrottleStartWindow-throttleShortest)
}

// DelayFor returns the pause after a number of consecutive failures of which err was the
// last: ThrottleDelay if the server had too many requests, and Delay otherwise.
func DelayFor(err error, failures int, shortest, longest time.Duration) time.Duration {
	if apierrors.IsTooManyRequests(err) {
		return ThrottleDelay(failures)
	}
	return Delay(failures, shortest, longest)
}

// Jitter returns a random duration of at least 0 and below limit, and 0 if limit is not
// positive.
func Jitter(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}
