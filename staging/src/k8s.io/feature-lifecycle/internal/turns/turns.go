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

// Package turns says when processes that get a value at the same moment report it: one
// after the other, so that their reports do not hold up the value of the others, and
// the server flow knows how long it may be without a report.
package turns

import "time"

const (
	// perSecond is how many processes report in a second. A small kube-apiserver
	// takes some more, and everybody else is to get answers, too.
	perSecond = 250
	// most is the longest time for all of them, however many there are: a user is
	// not to be silent for long. What is more than the server takes is turned away,
	// and comes back later.
	most = 35 * time.Second
	// The first to report waits for one part in so many of the time that all take:
	// others still wait for the value itself.
	headStart = 8
	// Most is the longest that anybody waits for his turn.
	Most = most + most/headStart
)

// Of is how long a process waits for its turn among users of a feature. Its place is at
// random from 0 to 1.
func Of(users int, place float64) time.Duration {
	all := most
	// In this order also for a count that is beyond anything.
	if users = max(users, 0); users < int(most/time.Second)*perSecond {
		all = time.Duration(users) * time.Second / perSecond
	}
	return all/headStart + time.Duration(place*float64(all))
}

// Longest is how long the last of so many users waits.
func Longest(users int) time.Duration { return Of(users, 1) }
