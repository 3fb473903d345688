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

package v1alpha1

import "time"

// Pacing of reports. Processes follow it, and the server flow predicts from it how long it
// may lack the reports of a feature's users. It is part of the protocol of this version:
// a process that reports later than that holds transitions up.
//
// When n processes get the same value at the same moment, they report it within
// n/ReportsPerSecond seconds, MaxReportSpread at most, in random order. The first of them
// waits for a fraction of that time, 1/ReportHeadStart, while others still wait for the
// value itself. Processes that list all their features wait for nothing: servers have to
// agree before anything else happens.
const (
	// ReportsPerSecond is how many processes report the same change in a second. A small
	// kube-apiserver handles some more, and has to answer other clients meanwhile.
	ReportsPerSecond = 250
	// MaxReportSpread bounds the time over which the reports of one change are spread,
	// however many processes there are. A server throttles what exceeds its capacity, and
	// these processes retry later.
	MaxReportSpread = 35 * time.Second
	// ReportHeadStart is the divisor that makes the pause before the first report out of
	// the time over which reports are spread.
	ReportHeadStart = 8
	// MaxReportDelay is the longest time between a new value of a process and its report.
	MaxReportDelay = MaxReportSpread + MaxReportSpread/ReportHeadStart
	// ReportPeriod is the shortest time between two reports of a process if no value has
	// changed. What a process has queried for the first time is reported within it, and
	// some seconds.
	ReportPeriod = time.Minute
)
