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

package tracker

import "time"

// MaxLeaseTimeout bounds how long a Lease counts as alive without being seen to change.
// The identity Lease of kube-apiserver lasts an hour but is renewed every ten seconds
// (pkg/controlplane/apiserver/server.go), so its own duration hardly reveals a crash.
const MaxLeaseTimeout = 40 * time.Second

// LeaseTimeout returns how long a process counts as alive after its Lease was renewed:
// the Lease's own spec.leaseDurationSeconds, which may be nil, and no longer than
// MaxLeaseTimeout. The server flow and tools use the same.
func LeaseTimeout(durationSeconds *int32) time.Duration {
	if durationSeconds == nil || *durationSeconds <= 0 {
		return MaxLeaseTimeout
	}
	return min(MaxLeaseTimeout, time.Duration(*durationSeconds)*time.Second)
}
