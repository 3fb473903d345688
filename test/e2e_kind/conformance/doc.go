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

// Package conformance runs upstream's end-to-end tests on a cluster of kind of the
// release, and on one of upstream's unchanged binaries of the same version, and
// compares what they say. "make kind-conformance" runs it.
//
// Where no registry is reachable, images are made from upstream's module
// (build/kind/e2e). Specs that need others are left out by name, with the reason.
package conformance
