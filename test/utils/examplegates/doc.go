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

// Package examplegates names the gates that examples turn on and off: local-up,
// its demonstration, tests on clusters, and the commands of pages. Each is off by
// default, so that a new cluster has a story to tell: a gate that is off, used,
// and off again.
//
// # Why these
//
// A gate has to stay off for some versions, or every example breaks with the next
// one. Gates that are alpha do, and those of which 1.38.0-beta.0 has no other
// spec. At 1.37 that excludes StatefulSetRecreateStrategy, which is on there.
// What else an example needs is at each constant; the tests of this package hold
// it against the gates and the catalog of this build.
//
// # At the next version
//
// When a gate is on by default or locked, the test of this package fails and names
// it. Choose another that has what the comment at its constant demands: hack/gates
// prints the catalog, and kube_features.go of the version after has the specs that
// are known to come. Then change, in this order:
//
//  1. the constant, and its comment;
//  2. the objects that use it: cmd/local-up/demo for Cleared, the helpers of
//     test/e2e_features/values for Dynamic;
//  3. the pages: a test in docs refuses commands that turn on another gate.
//
// Tests that set MaxUnavailableStatefulSet both ways do not depend on its default
// and name it themselves.
package examplegates
