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

// Package tracker holds which processes are alive, what they report, and which of them
// use a feature. It is pure: the controller passes in the FeatureReports, Leases and
// Nodes that it watches, and the time. Nothing here has a client, reads a clock or logs.
// Aggregate and Waiting decide from the instances whether a transition has to wait
// (KEP-3920, "Waiting for uses").
//
// The words for processes that are not there mean the same everywhere:
//
//   - missing: expected to exist, and never reported. A Node exists whose kubelet has no
//     report, or a Lease is renewed whose report is not there.
//   - overdue: missing for longer than a process may take to report.
//   - unreachable: the report exists, and the Lease expired or the Node is not Ready.
//   - failed: unreachable, was seen alive by this observer, and did not terminate gracefully.
//   - lost: failed, and the report was deleted since.
//   - replaced: another process has written the report of the same name since. The one before
//     is its predecessor.
//   - not returned: terminated gracefully, and is missing on a Node that exists.
//   - stale: unreachable for the grace period, so that no transition waits for it.
//   - terminating: annotated its report because it ends gracefully.
//
// Processes that differ in nothing but their names are a group, which an Instance stands for.
package tracker
