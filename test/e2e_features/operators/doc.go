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

// Package operators runs operators with features of their own against real servers:
// replicas of the library's package operator, in the test's own process, each with the
// token of a service account and no other permissions than the library says
// (operator.Rules, lifecycle.Rules and NamespacedRules). They must not disturb each other or Kubernetes, and
// nothing may be left of them.
package operators
