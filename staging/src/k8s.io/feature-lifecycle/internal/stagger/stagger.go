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

package stagger

import (
	"time"

	v1alpha1 "k8s.io/feature-lifecycle/apis/features/v1alpha1"
)

// Delay returns how long one of n processes waits before it reports a value that all of
// them got. Fraction is its place among them: random, from 0 for the first to 1 for the
// last. A negative n counts as 0.
func Delay(n int, fraction float64) time.Duration {
	spread := v1alpha1.MaxReportSpread
	// Comparing first keeps the product from overflowing.
	if n = max(n, 0); n < int(v1alpha1.MaxReportSpread/time.Second)*v1alpha1.ReportsPerSecond {
		spread = time.Duration(n) * time.Second / v1alpha1.ReportsPerSecond
	}
	return spread/v1alpha1.ReportHeadStart + time.Duration(fraction*float64(spread))
}

// MaxDelay returns how long the last of n processes waits.
func MaxDelay(n int) time.Duration { return Delay(n, 1) }

const (
	// confirmationsPerSecond is how many processes that follow a FeatureValue confirm it in a
	// second while few do. A confirmation costs kube-apiserver less than a report does, and
	// counts are sent to none of them. It is no part of the protocol: processes have the
	// result from the FeatureValue.
	confirmationsPerSecond = 4 * v1alpha1.ReportsPerSecond
	// few is a number of them that may confirm faster than a server with two cores answers:
	// they wait in its queues (pkg/registry/features/rest, flowcontrol.go) and are answered
	// within seconds. More would fill the queues, and those that are turned away ask again up
	// to 45 seconds later.
	few = 2 * confirmationsPerSecond
	// manyPerSecond is for how many others the spread is a second longer, which is what such
	// a server answers beside 10,000 watches. All are spread evenly: 10,000 confirm 455 a
	// second. The longest spread makes the rate rise again from 15,200 on.
	manyPerSecond = 400
)

// Seconds returns the time over which n processes spread their confirmations, in whole
// seconds, as FeatureValue.reportWithinSeconds has it. It is rounded: fewer than half of
// confirmationsPerSecond confirm at once, and in the worst case half as many more come in
// one second as otherwise.
func Seconds(n int) int32 {
	const longest = int(v1alpha1.MaxReportSpread / time.Second)
	// Fewer than what follows keeps the sum from overflowing.
	n = min(max(n, 0), longest*confirmationsPerSecond)
	first := min(n, few)
	others := n - first
	return int32(min((first+confirmationsPerSecond/2)/confirmationsPerSecond+(others+manyPerSecond/2)/manyPerSecond, longest))
}

// Confirming returns when the first and the last of n processes that follow a FeatureValue
// confirm it, from the moment on at which they have it.
func Confirming(n int) (first, last time.Duration) {
	n = Count(Seconds(n))
	return Delay(n, 0), Delay(n, 1)
}

// Count returns the number of processes that spread their reports over a time, which is
// the n of Delay. A negative time counts as 0, and one above v1alpha1.MaxReportSpread as
// that.
func Count(seconds int32) int {
	longest := int32(v1alpha1.MaxReportSpread / time.Second)
	return int(min(max(seconds, 0), longest)) * v1alpha1.ReportsPerSecond
}
