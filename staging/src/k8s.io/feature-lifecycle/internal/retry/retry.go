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

// Package retry has what everybody who asks kube-apiserver from beside a process's
// own work needs: what its failures mean, and how long to wait before asking again.
package retry

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Missing is true when the server said that it does not have the API, or not the
// object. Nothing else means that: who is refused, or asks in a wrong way, has
// learnt nothing about it.
func Missing(err error) bool { return apierrors.IsNotFound(err) }

// NoAPI is true when the server said that it does not have the API: it does not know the
// path. One that has it answers with a Status of its own that an object is missing, or its
// namespace.
func NoAPI(err error) bool {
	return Missing(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Refused is true when the server does not allow the request. A server that has
// just started refuses for some seconds, until it has written its RBAC policy.
func Refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// Backoff is the pause after a number of failures in a row, at least 1. It begins
// with least, doubles with each failure up to most, and is shortened by a random
// part of its half, so that those who failed together do not ask together.
func Backoff(failures int, least, most time.Duration) time.Duration {
	pause := Doubled(failures, least, most)
	return pause - Jitter(pause/2)
}

// Doubled is Backoff at its longest, for who fails alone.
func Doubled(failures int, least, most time.Duration) time.Duration {
	pause := min(least, most)
	for range failures - 1 {
		if pause *= 2; pause >= most {
			return most
		}
	}
	return pause
}

const (
	// CrowdBackoff is the longest first pause after a server had too many requests:
	// thousands ask at the same moment, and one that is turned away costs the server
	// nearly as much as one that is not.
	CrowdBackoff = 20 * time.Second
	// crowdMost is the longest of all, leastCrowd the shortest.
	crowdMost, leastCrowd = time.Minute, time.Second
	// CrowdSpread is over which time those come who know of each other before they ask
	// for what can wait: 10,000 processes to a server that takes some 200 of them in a second.
	// With the seconds before it and what the server takes, it is to be less than the
	// minute after which the server flow misses a report, and in which everything has to
	// converge after a fault.
	CrowdSpread = 45 * time.Second
)

// Crowd is the pause after so many failures of which the last was that the server had
// too many requests: who is turned away together does not come back together. It is
// anywhere up to CrowdBackoff after the first, up to twice that after the second, and
// from half of crowdMost on after all others.
func Crowd(failures int) time.Duration {
	least, most := leastCrowd, CrowdBackoff
	switch {
	case failures == 2:
		most = 2 * CrowdBackoff
	case failures > 2:
		least, most = crowdMost/2, crowdMost
	}
	return least + Jitter(most-least)
}

// Spread is the pause of a process that has found at its start that thousands start
// with it, and whose next request can wait: anywhere within CrowdSpread.
func Spread() time.Duration { return leastCrowd + Jitter(CrowdSpread-leastCrowd) }

// After is the pause after so many failures of which err was the last: that of a crowd, or
// Backoff.
func After(err error, failures int, least, most time.Duration) time.Duration {
	if apierrors.IsTooManyRequests(err) {
		return Crowd(failures)
	}
	return Backoff(failures, least, most)
}

// Jitter is a random duration of at least 0 and less than most, 0 if most is not
// positive.
func Jitter(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}
