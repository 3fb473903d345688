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

// Package featurelifecycle finishes feature gates: a gate that is turned off
// leaves nothing behind, and its users are visible to all (KEP-3920).
//
// A process wraps its gate (featuregate), takes the values that are set centrally and
// reports what it observed (agent). A server, kube-apiserver or an operator, runs the
// server flow (lifecycle/controller): it publishes a Feature for each gate and drives every
// change of its value through waiting for uses and the tasks that the feature's author
// declared (lifecycle).
//
//	apis/features/v1alpha1    api       the API: Feature and FeatureReport
//	client                    api       generated clients, informers, listers
//	featuregate               operator  the layer that records which features are queried
//	agent                     operator  a process's side: its report, and the values that are set centrally
//	operator                  operator  all of it for an operator with features of its own, in three calls
//	rollout                   part      which value a canary gives to an instance; pure
//	lifecycle                 operator  what authors declare: one literal for each feature
//	lifecycle/control         operator  which features a server decides for others, and who permits it
//	lifecycle/task            operator  what transitions do; finds and removes leftovers
//	lifecycle/controller      operator  watches, lets transition decide, commits
//	lifecycle/transition      part      decides what happens to a feature next; pure
//	lifecycle/tracker         part      which processes are alive and use a feature; pure
//	lifecycle/leader          part      which server leads a feature; pure
//	lifecycle/versionskew     part      whether a cluster may move up or down; pure
//	lifecycle/internal/phrase internal  what messages have in common
//	lifecycletest             operator  takes a feature through on, used, off and pristine in a test
//	intern                    part      equal lists of reports share their memory
//	watchtools                part      watches until a condition holds; errors of watches of an API that is not served
//	internal/backoff          internal  pauses of clients, and the errors that decide on them
//	internal/objectdiff       internal  what a write changed in an object beside a field
//	internal/stagger          internal  when processes that got a value at the same moment report it
//	examples/everywhere       example   checks whether a feature is on everywhere, for operators to copy
//
// All of it is alpha and may change between minor versions of Kubernetes. What to
// expect of a package is its tier:
//
//   - api: served objects and their generated clients, which change as an API of
//     version v1alpha1 may.
//   - operator: what an operator calls. Incompatible changes are seen in review and
//     listed in the changelog, with what to write instead.
//   - part: what the others and the binaries of Kubernetes are made of. It may change
//     or go in any version; of what a Config of lifecycle/controller has, which is
//     transition.Settings with tracker.Settings and transition.CanarySettings in it,
//     the same holds as of tier operator.
//   - example: to copy; it may change in any version.
//   - internal: cannot be imported.
//
// The library works without any package of k8s.io/kubernetes.
package featurelifecycle
