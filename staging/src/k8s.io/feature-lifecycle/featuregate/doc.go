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

// Package featuregate is a layer over any feature gate of
// k8s.io/component-base/featuregate that records which features are queried.
// Binaries wrap their gate before their command is built; package agent reports
// the queried features to the cluster. Parsing, defaults, emulation, dependencies
// and locking stay the wrapped gate's; the layer needs nothing at construction,
// and a binary that never starts a reporter behaves exactly as without it.
//
// Enabled neither locks nor allocates: resolved values sit in an immutable
// snapshot that every mutation replaces before it returns.
//
// Values may also come from outside of the process (SetRemote; package agent
// takes them from the API). Precedence: what was set explicitly on this process
// > such a value > the default, to which AllAlpha and AllBeta belong (KEP-3920,
// "Values set centrally, values that change"). They never get into the wrapped
// gate, which keeps the values of the process's own configuration.
package featuregate
