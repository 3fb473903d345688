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

// Package lifecycletest takes features through on, used, off and pristine on a
// running cluster: the proof that what a feature declares is complete. The
// fork's test/e2e_features/gates does that for the gates of Kubernetes; an operator's
// suite does it for its own features with Kit.Cycle, as the example shows.
//
// Suites that need something else between the steps take them one by one: Parse a
// fixture, Kit.Use it with the gate on, check with Case.Used what the fixture lacks,
// turn the gate off, Kit.WaitUntilOff, which releases what holds the feature, and
// check with Case.Left for remaining objects.
//
// Views show objects as they are in one moment, from the API (Kit.View) or from
// where they are stored (NewView). Problems are sentences for the author of the
// feature. A Cluster runs the fork's binaries for a suite; nothing else here
// starts or stops a process, and KitFor takes any other cluster.
package lifecycletest
