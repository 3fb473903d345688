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

// Package agent is the side of a process: it reports which features the process queried
// and what it observed, and takes the values of features that are set centrally (KEP-3920,
// "Values set centrally, values that change"). Kubernetes' binaries (pkg/featurelifecycle/reporting),
// kube-apiserver and operators (package operator) call it.
//
// A Reporter keeps one FeatureReport for the process: it writes the report once values are
// final, and again only when something changed. Processes that get a value at the same
// moment pace their reports (v1alpha1.ReportsPerSecond).
//
// A Syncer takes the values of Features whose status.control is Central, which a process
// takes when it starts, and Dynamic, which it follows while it runs. A process calls Load
// when it has read its own command line and its code has not queried the gate yet
// (featuregate.Gate.BeforeFinal). Load and Run hand values to the gate, which decides
// whether it can take them; package rollout decides which value a canary gives to the
// process.
//
// Syncing is cheap. All processes list the few Features that are not Local, rarely and
// from the server's cache. A watch costs the server memory while it is open, so there is
// one only while a feature is Dynamic, and it selects those. It is one of FeatureValues,
// which are small and change with the value alone. Where a server does not have them, it
// is one of Features. The newer of a Feature and its FeatureValue counts.
// kube-apiserver indexes its watchers by the control that they select: thousands of them
// cost nothing while other features change.
//
// Nothing in here fails the process, and only Load delays it, in bounded time.
package agent
